#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "command/run_fixture.hpp"
#include "support/fault_proxy.hpp"

/// The moments around the command's beginning and end: between fork and exec, and with the front
/// or the keeper missing.
namespace latchkey::test_support {

class RunStart : public RunCommand {
 protected:
  /// A PATH that takes minutes to search: each of its folders is a chain of long symbolic links.
  /// So between fork and exec there is time for whatever a test wants to happen there.
  RunStart() {
    constexpr int kLinks = 38;
    constexpr int kFolders = 30'000;
    const std::filesystem::path slow = folder_.path() / "slow";
    std::filesystem::create_directories(slow / "d");
    std::string way;
    while (way.size() < 4'000) way += "d/../";
    for (int i = 0; i < kLinks; ++i) {
      const std::string next = i + 1 < kLinks ? "s" + std::to_string(i + 1) : "d";
      std::filesystem::create_symlink(way + next, slow / ("s" + std::to_string(i)));
    }
    std::filesystem::rename(slow / "s0", slow / "a");
    std::string search;
    for (int i = 0; i < kFolders; ++i) search += "a:";
    std::ofstream(file("path")) << search;
  }

  /// Before a command in a shell: so that what it runs under the lock does not begin for minutes.
  [[nodiscard]] std::string slowly() const {
    return "cd " + file("slow") + " && PATH=$(cat " + file("path") + ") ";
  }
  /// 0: none yet.
  [[nodiscard]] static pid_t child_of(pid_t parent) {
    const std::string number = std::to_string(parent);
    return std::atoi(contents("/proc/" + number + "/task/" + number + "/children").c_str());
  }
  /// The process that is about to become the command, below whoever started it.
  [[nodiscard]] static pid_t beginner_of(pid_t front) {
    pid_t beginner = 0;
    // Anew each time: a shell has other children before.
    const auto is_there = [&] { return (beginner = child_of(child_of(front))) != 0; };
    EXPECT_TRUE(eventually(is_there, soon()));
    return beginner;
  }
};

namespace {

using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Apache, RunStart, testing::Values(RunService::kApache));
INSTANTIATE_TEST_SUITE_P(Embedded, RunStart, testing::Values(RunService::kEmbedded));

TEST_P(RunStart, H95_ACommandThatHasNotBegunIsKilledBeforeTheLockIsLost) {
  FaultProxy proxy(connect_);
  const auto holder =
      start_in(slowly() + "exec \"$@\"", {"run", "-z", proxy.connect_string(), "--session-timeout",
                                          kQuickTimeout, name_, "--", "nowhere"});
  const pid_t beginner = beginner_of(holder->pid());

  proxy.hold(Hold::kBoth);

  EXPECT_EQ(holder->wait(soon()), code(75));
  EXPECT_TRUE(is_gone(beginner));
}

TEST_P(RunStart, H99_ASignalEndsACommandThatHasNotBegun) {
  const auto holder = start_in(slowly() + "exec \"$@\"", {"run", name_, "--", "nowhere"});
  const pid_t beginner = beginner_of(holder->pid());

  holder->signal(SIGTERM);

  EXPECT_EQ(holder->wait(soon()), code(143));
  EXPECT_TRUE(is_gone(beginner));
  EXPECT_EQ(run({"run", "-w", "60", name_, "true"}).status, code(0));
}

TEST_P(RunStart, H98_CtrlZWhileTheCommandBeginsGivesTheShellItsPrompt) {
  TerminalChild terminal = shell();
  terminal.type(slowly() + line({"run", name_, "--", "nowhere"}) + "\n");
  const auto shows_up = [&] { return child_of(child_of(child_of(terminal.pid()))) != 0; };
  ASSERT_TRUE(eventually(shows_up, soon()));
  const pid_t beginner = child_of(child_of(child_of(terminal.pid())));

  ASSERT_TRUE(eventually(
      [&] {
        terminal.type(kCtrlZ);  // Until the terminal is with the command, it is for the front.
        return terminal.shows("Stopped", deadline_in(1s));
      },
      soon()))
      << terminal.output();
  EXPECT_TRUE(comes_to(beginner, 'T'));
  terminal.type("echo $((20 + 22)) prompt\n");
  EXPECT_TRUE(terminal.shows("42 prompt", soon())) << terminal.output();

  terminal.type("fg\n");
  EXPECT_TRUE(eventually([&] { return state_of(beginner) != 'T'; }, soon()));
  terminal.type(kCtrlC);
  EXPECT_TRUE(goes(beginner));
  EXPECT_EQ(run({"run", "-w", "60", name_, "true"}).status, code(0));
}

TEST_P(RunStart, H97_AKilledKeeperWhoseCommandHasEndedSaysSo) {
  const auto holder =
      start_in("exec \"$@\" 2>" + file("err"),
               {"run", "--min-hold", "1h", name_, "--", "sh", "-c", "echo $$ > " + file("pid")});
  const pid_t command = held_by();
  const pid_t keeper = keeper_of(holder->pid());
  ASSERT_TRUE(goes(command));
  ASSERT_TRUE(comes_to(keeper, 'S'));

  ::kill(keeper, SIGKILL);

  EXPECT_EQ(holder->wait(soon()), code(75));
  EXPECT_THAT(contents(file("err")), HasSubstr("the command had ended before"));
}

TEST_P(RunStart, H97_AKilledKeeperLeavesTheTerminalToTheScript) {
  TerminalChild script =
      on_terminal({"bash", "-c",
                   line({"run", name_, "--", "sh", "-c",
                         "echo $PPID > " + file("keeper") + "; echo on; exec sleep 1000"}) +
                       "; read x; echo \"read $x\""});
  ASSERT_TRUE(script.shows("on", soon())) << script.output();

  ::kill(pid_in(file("keeper")), SIGKILL);

  ASSERT_TRUE(script.shows("killed", soon())) << script.output();
  script.type("a word\n");
  EXPECT_TRUE(script.shows("read a word", soon())) << script.output();
}

TEST_P(RunStart, H97_AFrontThatHasNotHeardOfTheCommandTakesItAlongAllTheSame) {
  const auto holder = hold();
  held_by();
  Session session = open();
  const auto waiter =
      start({"run", name_, "--", "sh", "-c",
             "setsid sh -c 'echo $$ > " + file("far") + "; exec sleep 1000' & exec sleep 1000"});
  ASSERT_TRUE(eventually([&] { return entries(session, name_) == 2; }, soon()));
  const pid_t keeper = keeper_of(waiter->pid());
  waiter->pause();
  holder->signal(SIGTERM);
  const pid_t far = pid_in(file("far"));

  ::kill(keeper, SIGKILL);
  ASSERT_TRUE(eventually([&] { return state_of(keeper) == 'Z'; }, soon()));
  waiter->resume();

  EXPECT_EQ(waiter->wait(soon()), code(75));
  EXPECT_TRUE(is_gone(far));
}

}  // namespace
}  // namespace latchkey::test_support
