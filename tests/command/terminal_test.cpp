#include <csignal>
#include <string>
#include <vector>

#include "command/run_fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/sockets.hpp"

/// What people see who sit at a terminal: their keys, their prompt, and what becomes of a script.
namespace latchkey::test_support {

class AtTerminal : public RunCommand {
 protected:
  /// One line of bash, in a terminal of its own.
  TerminalChild script(const std::string& text) const { return on_terminal({"bash", "-c", text}); }
};

namespace {

using testing::HasSubstr;
using testing::Not;

INSTANTIATE_TEST_SUITE_P(Apache, AtTerminal, testing::Values(RunService::kApache));
INSTANTIATE_TEST_SUITE_P(Embedded, AtTerminal, testing::Values(RunService::kEmbedded));

constexpr std::string_view kCtrlBackslash = "\x1c";

TEST_P(AtTerminal, H99_ACommandThatReturns130EndsNoScript) {
  TerminalChild terminal =
      script(line({"run", name_, "--", "sh", "-c", "exit 130"}) + "; echo next=$?");

  EXPECT_EQ(terminal.wait(soon()), code(0));
  EXPECT_THAT(terminal.output(), HasSubstr("next=130"));
}

TEST_P(AtTerminal, H96_TheTerminalsSignalsReachThoseWhoLeftTheGroup) {
  for (const std::string_view key : {kCtrlC, kCtrlBackslash}) {
    std::filesystem::remove(file("far"));
    TerminalChild terminal = script(line({"run", name_, "--", "sh", "-c",
                                          "setsid sh -c \"echo \\$\\$ > " + file("far") +
                                              "; exec sleep 1000\" & echo on; exec sleep 1000"}));
    ASSERT_TRUE(terminal.shows("on", soon())) << terminal.output();
    const pid_t far = pid_in(file("far"));

    terminal.type(key);

    EXPECT_TRUE(terminal.wait(soon())) << terminal.output();
    EXPECT_TRUE(goes(far));
    EXPECT_TRUE(comes_free());
  }
}

TEST_P(AtTerminal, H96_ATerminalThatGoesTakesEverybodyAlong) {
  std::optional<TerminalChild> terminal;
  terminal.emplace(std::vector<std::string>{"bash", "-c",
                                            line({"run", name_, "--", "sh", "-c",
                                                  "setsid sh -c \"echo \\$\\$ > " + file("far") +
                                                      "; exec sleep 1000\" & echo $$ > " +
                                                      file("pid") + "; exec sleep 1000"}) +
                                                "; true"},
                   user_.environment());
  const pid_t far = pid_in(file("far"));
  const pid_t near = held_by();

  terminal->hang_up();

  EXPECT_TRUE(goes(near));
  EXPECT_TRUE(goes(far));
  EXPECT_EQ(run({"run", "-w", "60", name_, "true"}).status, code(0));
}

TEST_P(AtTerminal, H99_AWaiterLeavesTheQueueByAnotherKeyOrWithTheTerminal) {
  const auto holder = hold();
  held_by();
  Session session = open();
  for (const bool by_key : {true, false}) {
    TerminalChild waiter = on_terminal(user_.command({"run", name_, "--", "true"}));
    ASSERT_TRUE(waiter.shows("waiting for", soon())) << waiter.output();
    ASSERT_TRUE(eventually([&] { return entries(session, name_) == 2; }, soon()));

    if (by_key) {
      waiter.type(kCtrlBackslash);
      EXPECT_EQ(waiter.wait(soon()), code(131)) << waiter.output();
    } else {
      waiter.hang_up();
    }

    EXPECT_TRUE(eventually([&] { return entries(session, name_) == 1; }, soon())) << by_key;
  }
}

TEST_P(AtTerminal, H98_AWaitersLineIsNotDrawnOverTheShellsPrompt) {
  const auto holder = hold();
  held_by();
  Session session = open();
  TerminalChild terminal = shell();
  terminal.type(line({"run", name_, "--", "echo", "my turn"}) + "\n");
  ASSERT_TRUE(terminal.shows("waiting for", soon())) << terminal.output();

  terminal.type(kCtrlZ);
  ASSERT_TRUE(terminal.shows("Stopped", soon())) << terminal.output();
  const std::size_t stopped = terminal.output().size();
  // Each of them changes the queue that the line is about.
  for (int i = 0; i < 3; ++i) {
    const auto other = start({"run", name_, "--", "true"});
    ASSERT_TRUE(eventually([&] { return entries(session, name_) == 3; }, soon()));
    other->signal(SIGTERM);
    ASSERT_EQ(other->wait(soon()), code(143));
  }
  terminal.type("echo at''ease\n");
  ASSERT_TRUE(terminal.shows("atease", soon())) << terminal.output();
  EXPECT_THAT(terminal.output().substr(stopped), Not(HasSubstr("waiting for")));

  terminal.type("fg\n");
  EXPECT_TRUE(terminal.shows("waiting for", soon())) << "it is ours again";
  holder->signal(SIGTERM);
  EXPECT_TRUE(terminal.shows("my turn", soon())) << terminal.output();
}

TEST_P(AtTerminal, WhoeverWaitsForAServerIsToldSo) {
  const std::string nobody = "127.0.0.1:" + std::to_string(free_port());
  for (const auto& words : {std::vector<std::string>{"ls"},
                            {"run", name_, "--", "true"},
                            {"elect", name_, "--", "true"}}) {
    std::vector<std::string> asked = words;
    asked.insert(asked.begin() + 1, {"-z", nobody});
    TerminalChild terminal = on_terminal(user_.command(asked));

    EXPECT_TRUE(terminal.shows("nobody answers at " + nobody + " yet", soon())) << words[0];
    EXPECT_EQ(terminal.wait(soon()), code(69)) << terminal.output();
  }
}

TEST_P(AtTerminal, WatchGivesTheTerminalBackWhateverKeyEndsIt) {
  for (const std::string_view key : {kCtrlC, kCtrlBackslash}) {
    TerminalChild watch = on_terminal(user_.command({"watch", name_}));
    ASSERT_TRUE(watch.shows("q or Ctrl-C ends", soon())) << watch.output();

    watch.type(key);

    EXPECT_EQ(watch.wait(soon()), code(key == kCtrlC ? 130 : 131));
    EXPECT_THAT(watch.output(), testing::EndsWith("\033[?25h\033[?1049l"));
  }
}

TEST_P(AtTerminal, WatchHearsKeysAndSaysThatItIsCutOffWhateverTheServerDoes) {
  for (const std::vector<std::string>& what :
       {std::vector<std::string>{"watch"}, {"watch", name_}}) {
    FaultProxy proxy(connect_);
    std::vector<std::string> words = what;
    // Much longer than anybody waits for a key to do something.
    words.insert(words.end(), {"-z", proxy.connect_string(), "--session-timeout", "60s"});
    TerminalChild watch = on_terminal(user_.command(words));
    ASSERT_TRUE(watch.shows(what.size() == 1 ? "locks below" : "free", soon())) << watch.output();

    proxy.refuse();
    proxy.reset_all();

    EXPECT_TRUE(watch.shows("no connection", soon())) << watch.output();
    const Instant before = BootClock::now();
    watch.type("q");
    EXPECT_EQ(watch.wait(soon()), code(0));
    EXPECT_LT(BootClock::now() - before, 25s) << "it waited for the server";
  }
}

TEST_P(AtTerminal, H99_WatchLeavesIgnoredWhatWasIgnored) {
  const auto watch = start_in("trap '' HUP INT; exec \"$@\"", {"watch", name_});
  ASSERT_TRUE(watch->wait_for_line("free", soon()));

  watch->signal(SIGHUP);
  watch->signal(SIGINT);
  const auto holder = start({"run", name_, "--", "sh", "-c", "echo on; read x"});
  ASSERT_TRUE(holder->wait_for_line("on", soon()));

  EXPECT_TRUE(watch->wait_for_line("held by", soon())) << "it has gone on";
  watch->signal(SIGTERM);
  EXPECT_EQ(watch->wait(soon()), code(143));
}

}  // namespace
}  // namespace latchkey::test_support
