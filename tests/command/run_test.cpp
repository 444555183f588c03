#include <sys/stat.h>

#include <algorithm>

#include "command/run_fixture.hpp"

/// What a script sees of `latchkey run`: what it runs, and how it ends.
namespace latchkey::test_support {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

INSTANTIATE_TEST_SUITE_P(Apache, RunCommand, testing::Values(RunService::kApache));
INSTANTIATE_TEST_SUITE_P(Embedded, RunCommand, testing::Values(RunService::kEmbedded));

TEST_P(RunCommand, H100_TheCommandsCodeIsPassedOn) {
  for (const int expected : {0, 1, 7, 75, 255}) {
    const Ran ran = run({"run", name_, "--", "sh", "-c", "exit " + std::to_string(expected)});
    EXPECT_EQ(ran.status, code(expected));
    EXPECT_THAT(ran.err, IsEmpty());
  }
}

TEST_P(RunCommand, H100_ASignalThatEndedTheCommandIsAddedTo128) {
  EXPECT_EQ(run({"run", name_, "--", "sh", "-c", "kill -KILL $$"}).status, code(137));
  EXPECT_EQ(run({"run", name_, "--", "sh", "-c", "kill -USR1 $$"}).status, code(138));
}

TEST_P(RunCommand, H101_ACommandThatCannotBeRunIsToldAndReleasesAtOnce) {
  const Ran missing = run({"run", name_, "--", "/nowhere/x"});
  EXPECT_EQ(missing.status, code(127));
  EXPECT_THAT(missing.err, HasSubstr("cannot run /nowhere/x: No such file"));
  std::ofstream(file("text")) << "no program";
  // Who has left may be heard of a little later, but a session that is left behind lives longer.
  const Ran no_program = run({"run", "-w", "30", name_, "--", file("text")});
  EXPECT_EQ(no_program.status, code(126));
  EXPECT_THAT(no_program.err, HasSubstr("Permission denied; it may not be executed: chmod +x"));
  const Ran folder = run({"run", "-w", "30", name_, "--", "/tmp"});
  EXPECT_EQ(folder.status, code(126));
  EXPECT_THAT(folder.err, HasSubstr("it is a directory"));
  const Ran nowhere = run({"run", "-w", "30", name_, "--", "no-such-program"});
  EXPECT_EQ(nowhere.status, code(127));
  EXPECT_THAT(nowhere.err, HasSubstr("it is in no folder of PATH"));
  EXPECT_EQ(run({"run", "-w", "30", name_, "true"}).status, code(0));
}

TEST_P(RunCommand, H100_WhatIsTakenIsBusyAndTheCodeCanBeChosen) {
  const auto holder = hold();
  held_by();

  EXPECT_EQ(run({"run", "-n", name_, "true"}).status, code(1));
  EXPECT_EQ(run({"run", "-w", "0", name_, "true"}).status, code(1));
  EXPECT_EQ(run({"run", "-w", "0.2", name_, "true"}).status, code(1));
  EXPECT_EQ(run({"run", "-nE9", name_, "true"}).status, code(9));
  const Ran quiet = run({"run", "-w", "100ms", "-E", "0", name_, "true"});
  EXPECT_EQ(quiet.status, code(0));
  EXPECT_THAT(quiet.err, IsEmpty());
}

TEST_P(RunCommand, H100_WhatMakesNoSenseIsAUsageErrorWithASentence) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"run"}, "NAME is required"},
      {{"run", name_}, "what is to be run?"},
      {{"run", name_, "--"}, "what is to be run?"},
      {{"run", "./backup.sh"}, "latchkey run backup -- ./backup.sh"},
      {{"run", "a//b", "true"}, "is no name for a lock"},
      {{"run", "", "true"}, "the name of the lock is empty"},
      {{"run", name_, "--also", name_, "--", "true"}, "is named twice"},
      {{"run", "-x", "-s", name_, "true"}, "-x and -s exclude each other"},
      {{"run", "-n", "-w", "5", name_, "true"}, "-n and -w exclude each other"},
      {{"run", "a", "--also", "/locks/a", "--", "true"}, "/locks/a is named twice"},
      {{"--connect", "zk1", "ls"}, "options follow the subcommand: latchkey ls --connect"},
      {{"watch", "--events", "-r", "/locks"}, "\"-r\" is no path; write --events PATH"},
      {{"run", "-w", "soon", name_, "true"}, "is no time"},
      {{"run", "--weight", "2", name_, "true"}, "--weight needs -N"},
      {{"run", "-N", "2", "--weight", "3", name_, "true"}, "more than there are permits"},
      {{"run", "-N", "2", "-s", name_, "true"}, "neither exclusive nor shared"},
      {{"run", "--also", "b", "-s", name_, "true"}, "--also takes exclusive locks"},
      {{"run", "--lock-delay", "1", "-s", name_, "true"}, "--lock-delay is for one"},
      {{"run", "-c", "true", name_, "false"}, "-c has the command already"},
      {{"run", "--signal", "NONE", name_, "true"}, "is no signal"},
      {{"run", "--status-fd", "77", name_, "true"}, "--status-fd 77 is not open"},
      {{"run", "-E", "256", name_, "true"}, "\"256\" is no number from 0 to 255"},
      {{"run", "-E", name_}, "is no number from 0 to 255"},
      {{"run", "-N", "0", name_, "true"}, "\"0\" is no number from 1 to"},
      {{"run", "-w", "-1", name_, "true"}, "\"-1\" is less than nothing"},
      {{"run", "-w"}, "--wait needs a value: --wait TIME"},
      {{"run", "--on-lost", "cry", name_, "true"}, "\"cry\" is neither stop nor warn"},
      {{"run", "a\nb", "true"}, "\"a\\nb\" is no name for a lock"},
      {{"run", "-q", name_, "true"}, "there is no option -q"},
      {{"hold", name_}, "Usage: latchkey hold [OPTIONS] --for TIME NAME"},
      {{"who", name_, "b"}, "\"b\" is one word too many"},
      {{"once", "--forget", name_, "true"}, "--forget runs nothing"},
      {{"elect", "--observe", name_, "true"}, "--observe only looks"},
  };
  for (const auto& [words, part] : cases) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.status, code(64)) << part;
    EXPECT_THAT(ran.err, HasSubstr(part));
    EXPECT_THAT(ran.err, HasSubstr("--help"));
  }
}

TEST_P(RunCommand, H100_OtherTroubleHasItsOwnCodes) {
  const Ran no_server = run({"run", "-z", "127.0.0.1:1", "-n", name_, "true"});
  EXPECT_EQ(no_server.status, code(69));
  EXPECT_THAT(no_server.err, HasSubstr("127.0.0.1:1"));
  EXPECT_EQ(run({"run", "--config", file("none"), name_, "true"}).status, code(78));

  const auto two = start({"run", "-N", "2", name_, "--", "sh", "-c", "echo on; exec sleep 1000"});
  ASSERT_TRUE(two->wait_for_line("on", soon()));
  EXPECT_EQ(run({"run", "-N", "3", name_, "true"}).status, code(76));
  for (const char* kind : {"-x", "-s"}) {
    const Ran mixed = run({"run", kind, name_, "true"});
    EXPECT_EQ(mixed.status, code(76));
    EXPECT_THAT(mixed.err, HasSubstr(name_ + " is a semaphore"));
    EXPECT_THAT(mixed.err, HasSubstr("latchkey run -N TOTAL"));
  }

  SessionOptions options;
  options.credentials = {{"digest", "ann:secret"}};
  Session ann = open(options);
  const std::string private_path = fresh_path();
  CreateOptions mine;
  mine.acl = creator_acl();
  ASSERT_TRUE(ann.create(private_path, "", mine, soon()));
  EXPECT_EQ(run({"run", private_path, "true"}).status, code(77));
}

TEST_P(RunCommand, H101_TheCommandKnowsItsLock) {
  const Ran ran = run(
      {"run", name_, "--", "sh", "-c", "echo \"$LATCHKEY_LOCK|$LATCHKEY_NODE|$LATCHKEY_TOKEN|\""});

  EXPECT_THAT(ran.out, testing::MatchesRegex(name_ + "\\|" + name_ + "/[^|]+\\|[0-9]+\\|\n"));
}

TEST_P(RunCommand, H101_ArgumentsAreNotTouched) {
  const Ran ran = run({"run", name_, "printf", "[%s]", "a b", "$HOME", "*", "", "--", "-n", ";"});

  EXPECT_EQ(ran.out, "[a b][$HOME][*][][--][-n][;]");
}

TEST_P(RunCommand, AShellIsUsedIfItIsAskedFor) {
  user_.set("SHELL", "/bin/sh");
  const Ran ran = run({"run", name_, "-c", "echo $((6 * 7)); exit 3"});

  EXPECT_EQ(ran.out, "42\n");
  EXPECT_EQ(ran.status, code(3));
}

TEST_P(RunCommand, H99_TheCommandStartsWithNoDescriptorOrSignalOfOurs) {
  const Ran plain = run({"run", name_, "--", "ls", "/proc/self/fd"});
  const Ran told = run({"run", "--status-fd", "2", name_, "--", "ls", "/proc/self/fd"});
  const Ran signals = run({"run", name_, "--", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"});

  EXPECT_EQ(plain.out, "0\n1\n2\n3\n");  // The last is the folder itself.
  EXPECT_EQ(told.out, plain.out);
  EXPECT_EQ(signals.out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_P(RunCommand, H99_StandardInputIsTheCommands) {
  const auto child = start({"run", name_, "--", "cat"});
  ASSERT_TRUE(child->write("through\n"));

  EXPECT_TRUE(child->wait_for_line("through", soon()));
  child->close_stdin();
  EXPECT_EQ(child->wait(soon()), code(0));
}

TEST_P(RunCommand, SharedOnesRunBesideEachOtherAndNotBesideAnExclusiveOne) {
  const auto reader = hold({"-s"});
  held_by();

  EXPECT_EQ(run({"run", "-ns", name_, "true"}).status, code(0));
  EXPECT_EQ(run({"run", "-n", name_, "true"}).status, code(1));
  EXPECT_EQ(run({"run", "-nx", name_, "true"}).status, code(1));
}

TEST_P(RunCommand, APermitIsOneOfSeveral) {
  const auto two = hold({"-N", "3", "--weight", "2"});
  held_by();

  EXPECT_EQ(run({"run", "-n", "-N", "3", name_, "true"}).status, code(0));
  EXPECT_EQ(run({"run", "-n", "-N", "3", "--weight", "2", name_, "true"}).status, code(1));
}

TEST_P(RunCommand, SeveralLocksAreHeldTogether) {
  const std::string other = fresh_path();
  const auto both = hold({"--also", other});
  held_by();

  EXPECT_EQ(run({"run", "-n", name_, "true"}).status, code(1));
  EXPECT_EQ(run({"run", "-n", other, "true"}).status, code(1));
}

TEST_P(RunCommand, AQuickCommandHoldsAsLongAsItWasTold) {
  const auto quick =
      start({"run", "--min-hold", "1h", name_, "--", "sh", "-c", "echo $$ > " + file("pid")});
  ASSERT_TRUE(goes(held_by()));

  EXPECT_EQ(run({"run", "-w", "0.5", name_, "true"}).status, code(1));
  quick->signal(SIGTERM);
  EXPECT_EQ(quick->wait(soon()), code(0));
  EXPECT_TRUE(comes_free());
}

TEST_P(RunCommand, TheStatusIsOneLineOfJson) {
  const Ran ran = run({"run", "--status-fd", "1", name_, "--", "sh", "-c", "exit 75"});
  EXPECT_THAT(ran.out, HasSubstr("{\"outcome\":\"ended\",\"exit\":75,\"lock\":\"" + name_));
  EXPECT_THAT(ran.out, HasSubstr("\"code\":75"));
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);

  const auto holder = hold();
  held_by();
  const Ran busy = run({"run", "-n", "--status-fd", "1", name_, "true"});
  EXPECT_THAT(busy.out, HasSubstr("{\"outcome\":\"refused\",\"exit\":1"));
  const Ran none = run({"run", "--status-fd", "1", fresh_path(), "/nowhere/x"});
  EXPECT_THAT(none.out, HasSubstr("{\"outcome\":\"not_started\",\"exit\":127"));
  EXPECT_THAT(none.out, HasSubstr("\"error\":\"cannot run /nowhere/x: No such file"));
  const Ran unnamed = run({"run", "--status-fd", "1", "a//b", "true"});
  EXPECT_THAT(unnamed.out, HasSubstr("{\"outcome\":\"refused\",\"exit\":64,\"error\":\""));
}

TEST_P(RunCommand, WhoAndWhatForIsSeenByThoseWhoLook) {
  const auto holder = hold({"--id", "db1-nightly", "--reason", "all hosts"});
  held_by();

  EXPECT_THAT(run({"ls", name_}).out, HasSubstr("db1-nightly: all hosts"));
}

TEST_P(RunCommand, WhoWantsToKnowIsToldWhatHappens) {
  EXPECT_THAT(run({"run", "-v", name_, "true"}).err, HasSubstr("holds " + name_ + " with token "));
  const auto holder = hold();
  held_by();
  EXPECT_THAT(run({"run", "-v", "-n", name_, "true"}).err, HasSubstr(name_));
}

TEST_P(RunCommand, WhoWaitsOnATerminalSeesItsPlaceAndTheHolder) {
  const std::string name = GetParam() == RunService::kApache ? "/nightly-a" : "/nightly-e";
  const auto holder =
      start({"run", "--reason", "all hosts", name, "--", "sh", "-c", "echo on; exec sleep 1000"});
  ASSERT_TRUE(holder->wait_for_line("on", soon()));
  TerminalChild waiter = on_terminal(user_.command({"run", name, "--", "echo", "my turn"}));

  EXPECT_TRUE(waiter.shows("1st in line; held by", soon())) << waiter.output();
  EXPECT_TRUE(waiter.shows("all hosts", soon())) << waiter.output();
  holder->signal(SIGTERM);
  EXPECT_TRUE(waiter.shows("\r\033[K", soon())) << waiter.output();
  EXPECT_TRUE(waiter.shows("my turn", soon())) << waiter.output();
  EXPECT_EQ(waiter.wait(soon()), code(0));
}

TEST_P(RunCommand, OnceIsRunByTheFirstAndWaitedForByTheOthers) {
  const std::string go = file("go");
  ASSERT_EQ(::mkfifo(go.c_str(), 0600), 0);
  const auto first =
      start({"once", name_, "--", "sh", "-c", "echo begun; read x < " + go + "; echo did"});
  ASSERT_TRUE(first->wait_for_line("begun", soon()));
  const auto second = start({"once", name_, "--", "echo", "again"});
  EXPECT_EQ(run({"once", "-n", name_, "--", "echo", "again"}).status, code(1));
  EXPECT_TRUE(second->running());

  std::ofstream(go) << "go\n";
  EXPECT_EQ(first->wait(soon()), code(0));

  EXPECT_EQ(second->next_line(soon()), std::nullopt);
  EXPECT_EQ(second->wait(soon()), code(0));
  EXPECT_THAT(run({"once", name_, "--", "echo", "again"}).out, IsEmpty());
}

TEST_P(RunCommand, OnceIsTriedByTheNextAfterAFailureOrAKill) {
  EXPECT_EQ(run({"once", name_, "--", "sh", "-c", "exit 3"}).status, code(3));
  const auto killed = start({"once", "--session-timeout", kQuickTimeout, name_, "--", "sh", "-c",
                             "echo begun; exec sleep 1000"});
  ASSERT_TRUE(killed->wait_for_line("begun", soon()));
  killed->signal(SIGKILL);

  EXPECT_EQ(run({"once", name_, "--", "echo", "did"}).out, "did\n");
  EXPECT_EQ(run({"once", name_, "--", "echo", "did"}).out, "");
  EXPECT_EQ(run({"once", name_, "--forget"}).status, code(0));
  EXPECT_EQ(run({"once", name_, "--", "echo", "did"}).out, "did\n");
}

TEST_P(RunCommand, OnceIsNotDoneIfTheLockWasLost) {
  const auto first = start({"once", name_, "--", "sh", "-c", "echo $LATCHKEY_NODE; read x"});
  const auto node = first->next_line(soon());
  ASSERT_TRUE(node);
  Session session = open();
  ASSERT_TRUE(session.remove(*node, soon()));

  EXPECT_EQ(first->wait(soon()), code(75));
  EXPECT_EQ(run({"once", name_, "--", "echo", "did"}).out, "did\n");
}

TEST_P(RunCommand, OneOfTheElectedRunsAndAnotherTakesOver) {
  const auto observer = start({"elect", name_, "--observe", "--json"});
  ASSERT_TRUE(observer->wait_for_line("{\"leader\":null}", soon()));
  const std::vector<std::string> lead = {"--", "sh", "-c", "echo leads; exec sleep 1000"};
  const auto candidate = [&](const std::string& id) {
    std::vector<std::string> words = {"elect", name_, "--id", id};
    words.insert(words.end(), lead.begin(), lead.end());
    return start(words);
  };
  const auto ann = candidate("ann");
  ASSERT_TRUE(ann->wait_for_line("leads", soon()));
  ASSERT_TRUE(observer->wait_for_line("{\"leader\":\"ann\",\"token\":\"", soon()));
  const auto bob = candidate("bob");
  Session session = open();
  ASSERT_TRUE(eventually([&] { return entries(session, name_) == 2; }, soon()));

  ann->signal(SIGTERM);

  EXPECT_TRUE(bob->wait_for_line("leads", soon()));
  EXPECT_EQ(ann->wait(soon()), code(143));
  EXPECT_TRUE(observer->wait_for_line("\"bob\"", soon()));
}

TEST_P(RunCommand, WhoIsElectedQueuesAgainWhenItsCommandEnds) {
  const auto ann = start({"elect", name_, "--", "sh", "-c", "echo term $LATCHKEY_TOKEN"});
  const auto first = ann->wait_for_line("term", soon());
  const auto second = ann->wait_for_line("term", soon());

  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  ann->signal(SIGTERM);
  EXPECT_TRUE(ann->wait(soon()));
}

TEST_P(RunCommand, WhoWouldWaitForItselfIsTold) {
  for (const std::vector<std::string>& outer :
       {std::vector<std::string>{"run", name_}, {"run", name_ + "x", "--also", name_}}) {
    for (const char* inner : {"run", "once"}) {
      std::vector<std::string> words = outer;
      words.emplace_back("--");
      for (const std::string& word : user_.command({inner, name_, "--", "true"})) {
        words.push_back(word);
      }
      const Ran ran = run(words);
      EXPECT_EQ(ran.status, code(64));
      EXPECT_THAT(ran.err, HasSubstr(name_ + " is held by the latchkey run that this one"));
    }
  }
}

TEST_P(RunCommand, WhoAsksInsideForSomethingElseGetsIt) {
  const auto inside = [&](std::vector<std::string> outer, const std::vector<std::string>& inner) {
    outer.emplace_back("--");
    for (const std::string& word : user_.command(inner)) outer.push_back(word);
    return run(outer).status;
  };

  EXPECT_EQ(inside({"run", name_}, {"run", name_ + "y", "true"}), code(0));
  EXPECT_EQ(inside({"run", name_}, {"run", "-n", name_, "true"}), code(1));
  EXPECT_EQ(inside({"run", "-s", name_}, {"run", "-s", name_, "true"}), code(0));
  EXPECT_EQ(inside({"run", "-N", "2", name_ + "z"}, {"run", "-N", "2", name_ + "z", "true"}),
            code(0));
}

TEST_P(RunCommand, H96_ANameDoesNotMakeAProcessOneOfOurs) {
  const auto holder = start({"run", name_, "--", "bash", "-c",
                             "(exec -a latchkey-daemon sleep 1000) & echo $! > " + file("far") +
                                 "; echo $$ > " + file("pid") + "; exit 5"});
  const pid_t far = pid_in(file("far"));
  ASSERT_TRUE(goes(held_by()));

  EXPECT_FALSE(is_free()) << "it is still there";
  holder->signal(SIGTERM);

  EXPECT_EQ(holder->wait(soon()), code(5));
  EXPECT_TRUE(is_gone(far));
}

TEST_P(RunCommand, AStatusLineAlsoTellsOfACommandLineThatCannotBeRead) {
  for (const std::string option : {"--status-fd=3", "--status-fd 3"}) {
    const auto wrong = start_in("exec \"$@\" " + option + " -- true 3>" + file("status"),
                                {"run", name_, "--stauts"});

    EXPECT_EQ(wrong->wait(soon()), code(64));
    EXPECT_THAT(contents(file("status")),
                testing::StartsWith("{\"outcome\":\"refused\",\"exit\":64,"));
    EXPECT_THAT(contents(file("status")), HasSubstr("--stauts"));
  }
}

TEST_P(RunCommand, VerboseSaysForWhomItWaitsAndWhoIsInTheWay) {
  const auto holder = hold({"--reason", "the big move"});
  held_by();
  Session session = open();
  const auto waiter =
      start_in("exec \"$@\" 2>" + file("err"), {"run", "-v", name_, "--", "sh", "-c", "exit 3"});
  EXPECT_TRUE(eventually(
      [&] {
        return contents(file("err")).find("waiting for " + name_ + ", 1st in line; held by ") !=
               std::string::npos;
      },
      soon()))
      << contents(file("err"));

  // A server that is kept from its answer for longer than a look lasts is asked again.
  Ran refused;
  const auto says_who = [&] {
    refused = run({"run", "-nv", name_, "true"});
    return refused.err.find("not to be had at once; ") != std::string::npos;
  };
  EXPECT_TRUE(eventually(says_who, soon())) << refused.err;
  EXPECT_EQ(refused.status, code(1));
  EXPECT_THAT(refused.err, HasSubstr("the big move"));

  holder->signal(SIGTERM);
  EXPECT_EQ(waiter->wait(soon()), code(3));
  EXPECT_THAT(contents(file("err")), HasSubstr("the command ended with code 3"));
}

TEST_P(RunCommand, VerboseSaysWhichTimeOutTheServerGrants) {
  EXPECT_THAT(run({"run", "-v", "--session-timeout", "20d", name_, "true"}).err,
              HasSubstr("and not 1728000000 ms"));
  EXPECT_THAT(run({"run", "-v", name_, "true"}).err, Not(HasSubstr("time-out")));
}

TEST_P(RunCommand, AnElectionSaysThatTheCommandFailedAndThatItRests) {
  const auto ann = start_in("exec \"$@\" 2>" + file("err"),
                            {"elect", "-v", name_, "--", "sh", "-c", "echo term; exit 7"});
  ASSERT_TRUE(ann->wait_for_line("term", soon()));
  ASSERT_TRUE(ann->wait_for_line("term", soon()));

  ann->signal(SIGTERM);
  ASSERT_TRUE(ann->wait(soon()));
  EXPECT_THAT(contents(file("err")), HasSubstr("the command ended with code 7"));
  EXPECT_THAT(contents(file("err")), HasSubstr("it rests first"));
}

}  // namespace
}  // namespace latchkey::test_support
