#include <sys/stat.h>

#include <csignal>
#include <iostream>

#include "command/beats.hpp"
#include "command/run_fixture.hpp"
#include "support/fault_proxy.hpp"

/// The command as processes and as a job: what happens to it, to us and to the lock when somebody
/// signals, stops, kills or cuts off any of them.
namespace latchkey::test_support {

class RunJob : public RunCommand {};

namespace {

using testing::HasSubstr;
using testing::Not;

INSTANTIATE_TEST_SUITE_P(Apache, RunJob, testing::Values(RunService::kApache));
INSTANTIATE_TEST_SUITE_P(Embedded, RunJob, testing::Values(RunService::kEmbedded));

TEST_P(RunJob, H95_ACutOffCommandIsDeadBeforeTheNextOneStarts) {
  constexpr int kRuns = 6;
  for (int i = 0; i < kRuns; ++i) {
    const std::string number = std::to_string(i);
    FaultProxy proxy(connect_);
    const auto first =
        start({"run", "-z", proxy.connect_string(), "--session-timeout", kQuickTimeout, name_, "--",
               LATCHKEY_BEAT, file("first" + number), i % 2 == 0 ? "stubborn" : "polite"});
    ASSERT_TRUE(eventually([&] { return beats_in(file("first" + number)).last != 0; }, soon()));
    const auto second = start({"run", name_, "--", LATCHKEY_BEAT, file("second" + number), "polite",
                               file("first" + number)});

    proxy.hold(Hold::kBoth);

    EXPECT_EQ(first->wait(soon()), code(75));
    ASSERT_TRUE(eventually([&] { return beats_in(file("second" + number)).last != 0; }, soon()));
    const Beats before = beats_in(file("first" + number));
    const Beats after = beats_in(file("second" + number));
    EXPECT_LT(before.last, after.first);
    EXPECT_EQ(contents(file("second" + number) + ".rival"), "dead\n");
    std::cout << "run " << i << ": dead " << (after.first - before.last) / 1'000'000
              << " ms before the next began\n";
    second->signal(SIGTERM);
    EXPECT_EQ(second->wait(soon()), code(143));
  }
}

TEST_P(RunJob, H95_AShortInterruptionEndsNothing) {
  FaultProxy proxy(connect_);
  const auto holder = hold({"-z", proxy.connect_string()});
  const pid_t command = held_by();

  proxy.reset_all();
  ASSERT_TRUE(eventually([&] { return proxy.connections_accepted() >= 2; }, soon()));

  EXPECT_FALSE(is_free());
  EXPECT_FALSE(is_gone(command));
  holder->signal(SIGTERM);
  EXPECT_EQ(holder->wait(soon()), code(143));
}

TEST_P(RunJob, H95_ANodeDeletedByAnotherHandKillsAtOnce) {
  const auto holder = start({"run", name_, "--", "sh", "-c",
                             "trap '' TERM; echo $LATCHKEY_NODE; while :; do sleep 1000; done"});
  const auto node = holder->next_line(soon());
  ASSERT_TRUE(node);
  Session session = open();

  ASSERT_TRUE(session.remove(*node, soon()));

  EXPECT_EQ(holder->wait(soon()), code(75));
}

TEST_P(RunJob, H95_WithWarnTheCommandRunsOn) {
  const auto holder = start(
      {"run", "--on-lost", "warn", name_, "--", "sh", "-c", "echo $LATCHKEY_NODE; read x; exit 4"});
  const auto node = holder->next_line(soon());
  ASSERT_TRUE(node);
  Session session = open();
  ASSERT_TRUE(session.remove(*node, soon()));
  ASSERT_TRUE(eventually([&] { return is_free(); }, soon()));

  EXPECT_TRUE(holder->running());
  ASSERT_TRUE(holder->write("on\n"));
  EXPECT_EQ(holder->wait(soon()), code(4));
}

TEST_P(RunJob, H96_ASignalReachesThoseWhoLeftTheGroup) {
  const auto holder =
      start({"run", name_, "--", "sh", "-c",
             "setsid sh -c 'echo $$ > " + file("far") + "; exec sleep 1000' & echo $$ > " +
                 file("near") + "; sleep 1000"});
  const pid_t far = pid_in(file("far"));
  const pid_t near = pid_in(file("near"));

  holder->signal(SIGTERM);

  EXPECT_EQ(holder->wait(soon()), code(143));
  EXPECT_TRUE(is_gone(far));
  EXPECT_TRUE(is_gone(near));
  EXPECT_TRUE(comes_free());
}

TEST_P(RunJob, H96_WhoDoesNotListenIsKilledAfterAWhile) {
  const auto holder = start({"run", "--kill-after", "0.2", name_, "--", "sh", "-c",
                             "setsid sh -c 'trap \"\" TERM; echo $$ > " + file("far") +
                                 "; while :; do sleep 1000; done' & sleep 1000"});
  const pid_t far = pid_in(file("far"));

  holder->signal(SIGTERM);

  EXPECT_EQ(holder->wait(soon()), code(143));
  EXPECT_TRUE(is_gone(far));
}

TEST_P(RunJob, H101_TheLockIsKeptForTheLastDescendant) {
  const std::string go = file("go");
  ASSERT_EQ(::mkfifo(go.c_str(), 0600), 0);
  const auto holder = start({"run", name_, "--", "sh", "-c",
                             "(read x < " + go + ") & echo $$ > " + file("pid") + "; exit 5"});
  ASSERT_TRUE(goes(held_by()));

  EXPECT_FALSE(is_free());
  std::ofstream(go) << "go\n";
  EXPECT_EQ(holder->wait(soon()), code(5));
  EXPECT_TRUE(comes_free());
}

TEST_P(RunJob, H97_AKilledWrapperTakesTheCommandAlongAndReleases) {
  const auto holder = hold();
  const pid_t command = held_by();

  holder->signal(SIGKILL);

  EXPECT_TRUE(goes(command));
  EXPECT_EQ(run({"run", "-w", "60", name_, "true"}).status, code(0));
}

TEST_P(RunJob, H97_AKilledKeeperTakesTheCommandAlongAndIsToldAsALoss) {
  const auto holder = start({"run", name_, "--", "sh", "-c",
                             "setsid sh -c 'echo $$ > " + file("far") +
                                 "; exec sleep 1000' & echo $$ > " + file("pid") + "; sleep 1000"});
  const pid_t far = pid_in(file("far"));
  const pid_t command = held_by();

  ::kill(keeper_of(holder->pid()), SIGKILL);

  EXPECT_EQ(holder->wait(soon()), code(75));
  EXPECT_TRUE(goes(command));
  EXPECT_TRUE(goes(far));
}

TEST_P(RunJob, H97_AKilledKeeperThatOnlyWaitedSaysSo) {
  const auto holder = hold();
  held_by();
  Session session = open();
  const auto waiter = start_in("exec \"$@\" 2>" + file("err"), {"run", name_, "--", "true"});
  ASSERT_TRUE(eventually([&] { return entries(session, name_) == 2; }, soon()));

  ::kill(keeper_of(waiter->pid()), SIGKILL);

  EXPECT_EQ(waiter->wait(soon()), code(75));
  EXPECT_THAT(contents(file("err")), HasSubstr("nothing was run"));
}

TEST_P(RunJob, H97_TheCommandDiesWithBothOfOurProcesses) {
  const auto holder = hold();
  const pid_t command = held_by();
  const pid_t keeper = keeper_of(holder->pid());

  holder->pause();  // It must not get to do anything about it.
  ::kill(keeper, SIGKILL);
  holder->signal(SIGKILL);

  EXPECT_TRUE(goes(command));
}

TEST_P(RunJob, TheSignalToEndByCanBeChosen) {
  const auto holder =
      start({"run", "--signal", "sigusr1", "--kill-after", "1h", name_, "--", "sh", "-c",
             "trap 'echo got; exit 5' USR1; echo on; while :; do read x; done"});
  ASSERT_TRUE(holder->wait_for_line("on", soon()));

  EXPECT_EQ(run({"revoke", "-w", "60s", name_}).status, code(0));

  EXPECT_EQ(holder->next_line(soon()), "got");
  EXPECT_EQ(holder->wait(soon()), code(5));
}

TEST_P(RunJob, H99_ASignalBeforeTheGrantEndsTheWaitAndLeavesTheQueue) {
  const auto holder = hold();
  held_by();
  Session session = open();
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    const auto waiter = start({"run", name_, "--", "touch", file("ran")});
    ASSERT_TRUE(eventually([&] { return entries(session, name_) == 2; }, soon()));

    waiter->signal(number);

    EXPECT_EQ(waiter->wait(soon()), code(128 + number));
    // It does not wait long for a slow server, but its session would live longer than this.
    EXPECT_TRUE(eventually([&] { return entries(session, name_) == 1; }, deadline_in(30s)));
  }
  EXPECT_FALSE(std::filesystem::exists(file("ran")));
}

TEST_P(RunJob, H99_ASignalAfterTheGrantIsPassedOnOnce) {
  for (const std::string name : {"TERM", "INT", "HUP", "QUIT", "USR1", "USR2"}) {
    const auto holder =
        start({"run", name_, "--", "sh", "-c",
               "trap 'echo got' " + name + "; echo ready; read x; read x; echo end; exit 6"});
    ASSERT_TRUE(holder->wait_for_line("ready", soon()));

    holder->signal(name == "TERM"   ? SIGTERM
                   : name == "INT"  ? SIGINT
                   : name == "HUP"  ? SIGHUP
                   : name == "QUIT" ? SIGQUIT
                   : name == "USR1" ? SIGUSR1
                                    : SIGUSR2);

    EXPECT_EQ(holder->next_line(soon()), "got") << name;
    EXPECT_FALSE(is_free());
    holder->close_stdin();
    EXPECT_EQ(holder->next_line(soon()), "end") << name;
    EXPECT_EQ(holder->wait(soon()), code(6));
  }
}

TEST_P(RunJob, H99_WhatWasIgnoredStaysIgnored) {
  const auto holder = std::make_unique<Child>(
      [&] {
        std::vector<std::string> words = {"sh", "-c", "trap '' HUP; exec \"$@\"", "sh"};
        for (const std::string& word : user_.command(
                 {"run", name_, "--", "sh", "-c", "echo on; kill -HUP $PPID $$; read x; exit 8"})) {
          words.push_back(word);
        }
        return words;
      }(),
      ChildOptions{.environment = user_.environment()});
  ASSERT_TRUE(holder->wait_for_line("on", soon()));
  holder->signal(SIGHUP);

  ASSERT_TRUE(holder->write("x\n"));
  EXPECT_EQ(holder->wait(soon()), code(8));
}

TEST_P(RunJob, H99_CtrlCOnATerminalEndsTheWaitByThatSignal) {
  const auto holder = hold();
  held_by();
  TerminalChild waiter = on_terminal(user_.command({"run", name_, "--", "true"}));
  ASSERT_TRUE(waiter.shows("waiting for", soon())) << waiter.output();

  waiter.type(kCtrlC);

  EXPECT_EQ(waiter.wait(soon()), (ExitStatus{-1, SIGINT}));
  Session session = open();
  EXPECT_TRUE(eventually([&] { return entries(session, name_) == 1; }, soon()));
}

TEST_P(RunJob, H99_TheCommandHasTheTerminalAndCtrlCEndsTheScriptAsWell) {
  TerminalChild script = on_terminal({"bash", "-c",
                                      line({"run", name_, "--", "sh", "-c",
                                            "echo on; read x; echo \"read $x\"; "
                                            "exec sleep 1000"}) +
                                          "; echo 'not reached'"});
  ASSERT_TRUE(script.shows("on", soon())) << script.output();
  script.type("a word\n");
  ASSERT_TRUE(script.shows("read a word", soon())) << script.output();

  script.type(kCtrlC);

  EXPECT_EQ(script.wait(soon()), (ExitStatus{-1, SIGINT}));
  EXPECT_THAT(script.output(), Not(HasSubstr("not reached")));
  EXPECT_TRUE(comes_free());
}

TEST_P(RunJob, H98_CtrlZGivesTheShellItsPromptAndKeepsTheLock) {
  TerminalChild terminal = shell();
  terminal.type(line({"run", "--session-timeout", kQuickTimeout, name_, "--", "sh", "-c",
                      "echo $$ > " + file("pid") + "; read x; echo \"read $x\"; exit 9"}) +
                "\n");
  const pid_t command = held_by();

  terminal.type(kCtrlZ);
  ASSERT_TRUE(terminal.shows("Stopped", soon())) << terminal.output();
  EXPECT_TRUE(comes_to(command, 'T'));
  terminal.type("echo $((20 + 22)) prompt\n");
  EXPECT_TRUE(terminal.shows("42 prompt", soon())) << terminal.output();
  EXPECT_TRUE(is_kept());

  terminal.type("fg\n");
  EXPECT_TRUE(comes_to(command, 'S')) << terminal.output();
  terminal.type("again\n");
  EXPECT_TRUE(terminal.shows("read again", soon())) << terminal.output();
  terminal.type("echo code $?\n");
  EXPECT_TRUE(terminal.shows("code 9", soon())) << terminal.output();
  EXPECT_TRUE(comes_free());
}

TEST_P(RunJob, H98_ABackgroundJobThatReadsIsStoppedUntilItIsInTheForeground) {
  TerminalChild terminal = shell();
  terminal.type(line({"run", name_, "--", "sh", "-c",
                      "echo $$ > " + file("pid") + "; read x; echo \"read $x\""}) +
                " &\n");
  const pid_t command = held_by();
  ASSERT_TRUE(comes_to(command, 'T')) << terminal.output();
  // Before a prompt the shell tells what has stopped by then: the command has, the job will.
  ASSERT_TRUE(eventually(
      [&] {
        terminal.type("\n");
        return terminal.shows("]+  Stopped", deadline_in(200ms));  // And not the test's name.
      },
      soon()))
      << terminal.output();

  terminal.type("fg\n");
  ASSERT_TRUE(comes_to(command, 'S')) << terminal.output();
  terminal.type("here\n");
  EXPECT_TRUE(terminal.shows("read here", soon())) << terminal.output();
}

TEST_P(RunJob, H99_APagerBehindUsHasTheTerminal) {
  TerminalChild terminal = shell();
  terminal.type(
      line({"run", name_, "--", "sh", "-c", "echo $$ > " + file("pid") + "; exec sleep 1000"}) +
      "| sh -c 'read x < /dev/tty; echo \"key $x\"'; echo code $?\n");
  const pid_t command = held_by();

  terminal.type("pressed\n");
  EXPECT_TRUE(terminal.shows("key pressed", soon())) << terminal.output();
  ::kill(command, SIGTERM);
  EXPECT_TRUE(terminal.shows("code 0", soon())) << terminal.output();
}

TEST_P(RunJob, H99_ACommandBehindAPipeHasTheTerminalWhenItAsks) {
  TerminalChild terminal = shell();
  terminal.type(
      "echo piped | " +
      line({"run", name_, "--", "sh", "-c", "read y; read x < /dev/tty; echo \"$y, key $x\""}) +
      "; echo code $?\n");

  terminal.type("pressed\n");
  EXPECT_TRUE(terminal.shows("piped, key pressed", soon())) << terminal.output();
  EXPECT_TRUE(terminal.shows("code 0", soon())) << terminal.output();
}

TEST_P(RunJob, H98_WhoeverIsStoppedTheLockIsKeptAndTheCommandGoesOn) {
  const auto holder = hold({"--session-timeout", kQuickTimeout});
  const pid_t command = held_by();

  holder->signal(SIGTSTP);
  EXPECT_TRUE(comes_to(command, 'T'));
  EXPECT_TRUE(is_kept());
  holder->signal(SIGCONT);
  EXPECT_TRUE(comes_to(command, 'S'));

  ::kill(command, SIGSTOP);
  EXPECT_TRUE(comes_to(command, 'T'));
  EXPECT_TRUE(is_kept());
  ::kill(command, SIGCONT);
  EXPECT_TRUE(comes_to(command, 'S'));

  holder->signal(SIGSTOP);
  EXPECT_TRUE(is_kept());
  holder->signal(SIGCONT);

  ::kill(keeper_of(holder->pid()), SIGSTOP);
  EXPECT_TRUE(is_kept());
  holder->signal(SIGTERM);
  EXPECT_EQ(holder->wait(soon()), code(143));
}

TEST_P(RunJob, H98_ACommandStoppedWhileTheLockIsLostNeverGoesOn) {
  FaultProxy proxy(connect_);
  const auto holder = start({"run", "-z", proxy.connect_string(), "--session-timeout",
                             kQuickTimeout, name_, "--", LATCHKEY_BEAT, file("beats"), "stubborn"});
  ASSERT_TRUE(eventually([&] { return beats_in(file("beats")).last != 0; }, soon()));
  holder->signal(SIGTSTP);
  ASSERT_TRUE(comes_to(holder->pid(), 'T'));
  proxy.hold(Hold::kBoth);
  // Its own code, which is not that of a lock which is not to be had.
  ASSERT_EQ(
      run({"run", "-w", "60", "-E", "99", name_, "--", LATCHKEY_BEAT, "/dev/null/none", "polite"})
          .status,
      code(1));
  const long long last = beats_in(file("beats")).last;

  holder->signal(SIGCONT);

  EXPECT_EQ(holder->wait(soon()), code(75));
  EXPECT_EQ(beats_in(file("beats")).last, last);
}

TEST_P(RunJob, H98_AWaiterThatIsStoppedPassesItsTurn) {
  auto holder = hold();
  held_by();
  Session session = open();
  const auto waiter = start({"run", name_, "--", "echo", "my turn"});
  ASSERT_TRUE(eventually([&] { return entries(session, name_) == 2; }, soon()));
  waiter->signal(SIGTSTP);
  ASSERT_TRUE(comes_to(waiter->pid(), 'T'));

  holder->signal(SIGTERM);
  ASSERT_EQ(holder->wait(soon()), code(143));

  EXPECT_EQ(run({"run", "-w", "60", name_, "true"}).status, code(0));
  waiter->signal(SIGCONT);
  EXPECT_EQ(waiter->next_line(soon()), "my turn");
  EXPECT_EQ(waiter->wait(soon()), code(0));
}

}  // namespace
}  // namespace latchkey::test_support
