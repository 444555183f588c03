#include "command/run_fixture.hpp"
#include "support/fault_proxy.hpp"

/// What becomes of a command when others have a say: who asks for its lock, who takes it away, who
/// looks and who cleans up.
namespace latchkey::test_support {

class FollowCommand : public RunCommand {};

namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

INSTANTIATE_TEST_SUITE_P(Apache, FollowCommand, testing::Values(RunService::kApache));
INSTANTIATE_TEST_SUITE_P(Embedded, FollowCommand, testing::Values(RunService::kEmbedded));

TEST_P(FollowCommand, WhoIsAskedForItsLockStopsTheCommandAndLetsGo) {
  const auto holder = hold();
  const pid_t command = held_by();

  const Ran asked = run({"revoke", "-w", "60", name_});

  EXPECT_EQ(asked.status, code(0)) << asked.err;
  EXPECT_EQ(holder->wait(soon()), code(143));
  EXPECT_TRUE(is_gone(command));
  EXPECT_TRUE(is_free());
}

TEST_P(FollowCommand, WhoIsAskedWhileItOnlyHoldsOnLetsGoAtOnce) {
  const auto quick =
      start({"run", "--min-hold", "1h", name_, "--", "sh", "-c", "echo $$ > " + file("pid")});
  ASSERT_TRUE(goes(held_by()));

  EXPECT_EQ(run({"revoke", "-w", "60", name_}).status, code(0));

  EXPECT_EQ(quick->wait(soon()), code(0));
}

TEST_P(FollowCommand, WhatIsDoneOnceIsNoStrangersNode) {
  ASSERT_EQ(run({"once", name_, "--", "true"}).status, code(0));

  EXPECT_THAT(run({"ls", name_}).out, HasSubstr("done"));
  const Ran json = run({"ls", "--json", name_});
  EXPECT_THAT(json.out, HasSubstr("\"standing\":\"done\""));
  EXPECT_THAT(json.out, Not(HasSubstr("foreign")));
  Ran doctor;
  const auto is_well = [&] {
    doctor = run({"doctor", name_});  // A slow answer is a finding, too.
    return doctor.status == code(0);
  };
  EXPECT_TRUE(eventually(is_well, soon())) << doctor.out;
  EXPECT_THAT(doctor.out, HasSubstr("Nothing is wrong."));
}

TEST_P(FollowCommand, WhatIsDoneOnceIsOneLockAndNotTwo) {
  const std::string name = "once" + name_;
  ASSERT_EQ(run({"once", name, "--", "true"}).status, code(0));
  const auto lock = start({"run", name + "/done-too/done", "--", "sh", "-c", "echo on; read x"});
  ASSERT_TRUE(lock->wait_for_line("on", soon()));

  const Ran names = run({"ls", "-r", "--names", "/locks/" + name});

  EXPECT_EQ(names.out, name + "\n" + name + "/done-too/done\n") << "a lock may be called done";
  EXPECT_THAT(run({"ls"}).out, testing::ContainsRegex(name + " +done"));
}

TEST_P(FollowCommand, ASemaphoresSizeIsShownAndCanBeChanged) {
  const auto holder = start({"run", "-N", "2", name_, "--", "sh", "-c", "echo on; read x"});
  ASSERT_TRUE(holder->wait_for_line("on", soon()));
  EXPECT_THAT(run({"ls", name_}).err, HasSubstr("1 of 2 permits are held"));
  EXPECT_THAT(run({"who", name_}).err, HasSubstr("1 of 2 permits are held"));

  EXPECT_EQ(run({"resize", name_, "3"}).status, code(0));

  EXPECT_THAT(run({"ls", "--json", name_}).out, HasSubstr("\"size\":3"));
  EXPECT_THAT(run({"ls", "-r", name_}).out, HasSubstr("held 1/3"));
  EXPECT_EQ(run({"run", "-n", "-N", "3", "--weight", "2", name_, "true"}).status, code(0));
  const Ran old = run({"run", "-n", "-N", "2", name_, "true"});
  EXPECT_EQ(old.status, code(76));
  EXPECT_THAT(old.err, HasSubstr("3"));
  EXPECT_THAT(old.err, HasSubstr("latchkey resize"));
}

TEST_P(FollowCommand, OnlyASemaphoreHasASize) {
  EXPECT_EQ(run({"resize", name_, "3"}).status, code(76));
  const auto holder = hold();
  held_by();

  EXPECT_EQ(run({"resize", name_, "3"}).status, code(76));
  EXPECT_EQ(run({"resize", name_, "0"}).status, code(64));
  EXPECT_EQ(run({"run", "-n", name_, "true"}).status, code(1)) << "nothing has changed";
}

TEST_P(FollowCommand, ALeaderCannotBeAskedAndKeepsItsName) {
  const auto ann = start({"elect", name_, "--id", "ann", "--", "sh", "-c", "echo on; read x"});
  ASSERT_TRUE(ann->wait_for_line("on", soon()));

  const Ran asked = run({"revoke", name_});

  EXPECT_EQ(asked.status, code(76));
  EXPECT_THAT(asked.err, HasSubstr("latchkey revoke --force " + name_));
  EXPECT_THAT(run({"ls", name_}).out, HasSubstr("ann"));
}

TEST_P(FollowCommand, CtrlZGivesTheScreenBackUntilItGoesOn) {
  TerminalChild terminal = shell();
  terminal.type(line({"watch"}) + "\n");
  ASSERT_TRUE(terminal.shows("q or Ctrl-C ends", soon())) << terminal.output();

  terminal.type("\x1a");
  ASSERT_TRUE(terminal.shows("\033[?1049l", soon())) << terminal.output();
  ASSERT_TRUE(terminal.shows("Stopped", soon())) << terminal.output();

  terminal.type("fg\n");
  ASSERT_TRUE(terminal.shows("\033[?1049h", soon())) << terminal.output();
  ASSERT_TRUE(terminal.shows("q or Ctrl-C ends", soon())) << terminal.output();
  terminal.type("q");
  ASSERT_TRUE(terminal.shows("\033[?1049l", soon())) << terminal.output();
  terminal.type("echo code $?\n");
  EXPECT_TRUE(terminal.shows("code 0", soon())) << terminal.output();
}

TEST_P(FollowCommand, WhoseLeadIsTakenAwayStopsAndRunsAgain) {
  const auto ann = start({"elect", name_, "--", "sh", "-c",
                          "trap '' TERM; echo lead $LATCHKEY_NODE; exec sleep 1000"});
  Session session = open();
  const auto entry = [&] {
    const auto all = session.children(name_, soon());
    return all && all->names.size() == 1 ? name_ + "/" + all->names.front() : std::string();
  };
  const auto leads_with = [](const std::string& node) { return "lead " + node; };
  const auto first = ann->wait_for_line("lead", soon());
  const std::string first_entry = entry();
  ASSERT_THAT(first, testing::Optional(leads_with(first_entry)));

  ASSERT_TRUE(session.remove(first_entry, soon()));

  const auto second = ann->wait_for_line("lead", soon());
  const std::string second_entry = entry();
  ASSERT_THAT(second, testing::Optional(leads_with(second_entry)));
  EXPECT_NE(first_entry, second_entry);
  ann->signal(SIGKILL);
}

TEST_P(FollowCommand, ALeaderKnowsItsEntryAlthoughTheServerIsSlow) {
  FaultProxy proxy(connect_);
  for (const wire::Op op : {wire::Op::kGetChildren, wire::Op::kGetChildren2}) {
    proxy.delay_reply({op, 1, kForever}, 1500ms);
  }
  const auto ann = start({"elect", "-z", proxy.connect_string(), "--session-timeout", "40s", name_,
                          "--", "sh", "-c", "echo lead $LATCHKEY_NODE; exec sleep 1000"});

  const auto line = ann->wait_for_line("lead", soon());

  ASSERT_TRUE(line);
  EXPECT_THAT(*line, HasSubstr("lead " + name_ + "/"));
  ann->signal(SIGTERM);
  EXPECT_EQ(ann->wait(soon()), code(143));
}

TEST_P(FollowCommand, WhoseSessionEndsRunsForTheLeadOnANewOne) {
  FaultProxy proxy(connect_);
  const auto ann = start({"elect", "-z", proxy.connect_string(), "--session-timeout", kQuickTimeout,
                          name_, "--", "sh", "-c", "echo lead $$; exec sleep 1000"});
  const auto first = ann->wait_for_line("lead", soon());
  ASSERT_TRUE(first);

  proxy.hold(Hold::kBoth);
  const pid_t command = std::atoi(first->substr(5).c_str());
  ASSERT_TRUE(goes(command));
  ASSERT_EQ(run({"run", "-w", "60", name_, "true"}).status, code(0)) << "the session has ended";
  proxy.release();
  proxy.cut_all();

  EXPECT_TRUE(ann->wait_for_line("lead", soon()));
  ann->signal(SIGTERM);
  EXPECT_EQ(ann->wait(soon()), code(143));
}

TEST_P(FollowCommand, H98_ACandidateThatFailedWhileItWasStoppedSaysSoWhenItGoesOn) {
  Session session = open();
  // For good: a container would be the server's to remove whenever the candidate rests.
  ASSERT_TRUE(session.create(name_, "", {}, soon()));
  const auto leader = start({"elect", name_, "--", "sh", "-c", "echo on; exec sleep 1000"});
  ASSERT_TRUE(leader->wait_for_line("on", soon()));
  FaultProxy proxy(connect_);
  const auto candidate = start(
      {"elect", "-z", proxy.connect_string(), "--session-timeout", "10s", name_, "--", "true"});
  ASSERT_TRUE(eventually([&] { return entries(session, name_) == 2; }, soon()));
  candidate->signal(SIGTSTP);
  ASSERT_TRUE(comes_to(candidate->pid(), 'T'));
  leader->signal(SIGTERM);
  ASSERT_EQ(leader->wait(soon()), code(143));
  // It passes its turn, and rests; meanwhile nobody can queue there any more.
  const std::vector<Multi::Part> closed = {Remove{name_},
                                           Create{name_, "", {.lifetime = Lifetime::kEphemeral}}};
  const auto close = [&] {
    const auto outcome = session.multi(closed, soon());
    return outcome && outcome->committed;
  };
  ASSERT_TRUE(eventually(close, soon()));
  const auto is_refusal = [](const TrafficRecord& record) {
    return record.op == wire::Op::kCreate2 && record.err == wire::Err::kNoChildrenForEphemerals;
  };
  ASSERT_TRUE(proxy.log().wait_for(is_refusal, 1, soon()));
  const auto pings = [&] { return proxy.log().count(requests_of(wire::Op::kPing)); };
  const auto before = pings();  // With the next one it has long had the answer.
  ASSERT_TRUE(eventually([&] { return pings() > before; }, soon()));

  candidate->signal(SIGCONT);

  EXPECT_EQ(candidate->wait(soon()), code(76));
}

TEST_P(FollowCommand, WhoLosesTheServerSaysWhichAndWhatToTry) {
  const auto holder = hold();
  held_by();
  const std::vector<std::vector<std::string>> followers = {
      {"watch", name_}, {"wait", name_}, {"elect", "--observe", name_}, {"run", name_, "true"}};
  for (std::vector<std::string> words : followers) {
    FaultProxy proxy(connect_);
    words.insert(words.begin() + 1,
                 {"-z", proxy.connect_string(), "--session-timeout", kQuickTimeout});
    const auto follower = start_in("exec \"$@\" 2>" + file("err"), words);
    const auto looks = [&] {
      return proxy.log().count(requests_of(wire::Op::kGetChildren)) +
             proxy.log().count(requests_of(wire::Op::kGetChildren2));
    };
    ASSERT_TRUE(eventually([&] { return looks() > 0; }, soon())) << words[0];

    proxy.refuse();
    proxy.reset_all();

    EXPECT_EQ(follower->wait(soon()), code(75)) << words[0];
    EXPECT_THAT(contents(file("err")), HasSubstr(proxy.connect_string())) << words[0];
    EXPECT_THAT(contents(file("err")), HasSubstr("latchkey doctor")) << words[0];
  }
}

TEST_P(FollowCommand, ALockDelayKeepsTheNextFromFollowingOneThatVanished) {
  const auto holder = hold({"--session-timeout", kQuickTimeout, "--lock-delay", "1h"});
  held_by();
  Session session = open();
  const auto careful = start({"run", "--lock-delay", "1h", name_, "--", "echo", "ran"});
  ASSERT_TRUE(eventually([&] { return entries(session, name_) == 2; }, soon()));

  ::kill(keeper_of(holder->pid()), SIGKILL);
  EXPECT_EQ(holder->wait(soon()), code(75));
  ASSERT_TRUE(eventually([&] { return entries(session, name_) == 1; }, soon()));

  EXPECT_EQ(run({"run", "-w", "1", name_, "true"}).status, code(1)) << "its place is kept";
  careful->signal(SIGTERM);
  EXPECT_EQ(careful->wait(soon()), code(143));
  EXPECT_EQ(careful->next_line(soon()), std::nullopt) << "it never ran";
}

TEST_P(FollowCommand, CleaningUpLeavesALiveSemaphoreAlone) {
  const std::string name = "gc" + name_.substr(1);
  const auto holder =
      start({"run", "-N", "2", name, "--", "sh", "-c", "echo on; read x; echo off"});
  ASSERT_TRUE(holder->wait_for_line("on", soon()));

  EXPECT_EQ(run({"gc"}).status, code(0));

  EXPECT_EQ(run({"run", "-n", "-N", "2", "--weight", "2", name, "true"}).status, code(1));
  EXPECT_EQ(run({"run", "-n", "-N", "2", name, "true"}).status, code(0));
  ASSERT_TRUE(holder->write("on\n"));
  EXPECT_EQ(holder->wait(soon()), code(0));
  EXPECT_EQ(run({"run", "-w", "30", "-N", "2", "--weight", "2", name, "true"}).status, code(0));
}

TEST_P(FollowCommand, TheServiceInUseCanBeMeasured) {
  const Ran ran = run({"bench", "--for", "50ms", "--contenders", "2", "--json"});

  EXPECT_EQ(ran.status, code(0)) << ran.err;
  for (const char* what :
       {"session opened and closed", "lock taken and let go", "lock handed over"}) {
    EXPECT_THAT(ran.out, HasSubstr(std::string("{\"what\":\"") + what));
  }
  EXPECT_THAT(run({"ls", "--names"}).out, Not(HasSubstr("bench-"))) << "it cleans up";
}

}  // namespace
}  // namespace latchkey::test_support
