#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "command/beats.hpp"
#include "command/run_fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/sockets.hpp"

/// What we say is for people. Whether anybody hears it changes nothing else.
namespace latchkey::test_support {

class Unheard : public RunCommand {
 protected:
  Unheard() { ::mkfifo(pipe_.c_str(), 0600); }

  /// The end of the pipe that is read from, by nobody.
  [[nodiscard]] Fd open_pipe() const { return Fd(::open(pipe_.c_str(), O_RDWR | O_NONBLOCK)); }
  [[nodiscard]] Fd full_pipe() const {
    Fd pipe = open_pipe();
    while (::write(pipe.get(), "x", 1) == 1) {
    }
    return pipe;
  }
  [[nodiscard]] bool can_be_had() const {
    return run({"run", "-w", "60", name_, "true"}).status == code(0);
  }

  const std::string pipe_ = file("pipe");
  const std::string into_pipe_ = "exec \"$@\" 2>" + pipe_;
};

INSTANTIATE_TEST_SUITE_P(Apache, Unheard, testing::Values(RunService::kApache));
INSTANTIATE_TEST_SUITE_P(Embedded, Unheard, testing::Values(RunService::kEmbedded));

namespace {

TEST_P(Unheard, H95_ACutOffCommandIsDeadInTimeAlthoughNobodyReadsOurWords) {
  const Fd pipe = full_pipe();
  FaultProxy proxy(connect_);
  const auto first =
      start_in(into_pipe_, {"run", "-z", proxy.connect_string(), "--session-timeout", kQuickTimeout,
                            name_, "--", LATCHKEY_BEAT, file("first"), "stubborn"});
  ASSERT_TRUE(eventually([&] { return beats_in(file("first")).last != 0; }, soon()));

  proxy.hold(Hold::kBoth);
  const auto second = start({"run", name_, "--", LATCHKEY_BEAT, file("second"), "polite"});

  ASSERT_TRUE(eventually([&] { return beats_in(file("second")).last != 0; }, soon()));
  EXPECT_EQ(first->wait(soon()), code(75));
  EXPECT_LT(beats_in(file("first")).last, beats_in(file("second")).first);
}

TEST_P(Unheard, AWishIsFollowedAlthoughNobodyReadsOurWords) {
  const Fd pipe = full_pipe();
  const auto holder =
      start_in(into_pipe_, {"run", "-v", name_, "--", "sh", "-c", "echo on; exec sleep 1000"});
  ASSERT_TRUE(holder->wait_for_line("on", soon()));

  EXPECT_EQ(run({"revoke", "-w", "60s", name_}).status, code(0));
  EXPECT_EQ(holder->wait(soon()), code(143));
}

TEST_P(Unheard, ReadersMayGo) {
  for (const std::string descriptor : {"2", "3"}) {
    Fd reader = open_pipe();
    const auto holder = start_in("exec \"$@\" " + descriptor + ">" + pipe_,
                                 {"run", "-v", "--status-fd", descriptor, name_, "--", "sh", "-c",
                                  "grep -E '^Sig(Blk|Ign)' /proc/self/status; echo on; read x"});
    EXPECT_EQ(holder->next_line(soon()), "SigBlk:\t0000000000000000");
    EXPECT_EQ(holder->next_line(soon()), "SigIgn:\t0000000000000000");
    ASSERT_TRUE(holder->wait_for_line("on", soon()));

    reader.reset();
    ASSERT_TRUE(holder->write("x\n"));

    EXPECT_EQ(holder->wait(soon()), code(0)) << descriptor;
  }
}

TEST_P(Unheard, AStatusThatNobodyReadsKeepsNobody) {
  const Fd pipe = full_pipe();
  const auto ran = start_in("exec \"$@\" 3>" + pipe_,
                            {"run", "--status-fd", "3", name_, "--", "sh", "-c", "exit 4"});

  EXPECT_EQ(ran->wait(soon()), code(4));
  EXPECT_TRUE(can_be_had());
}

TEST_P(Unheard, StandardErrorMayBeClosed) {
  const std::string closed = "exec \"$@\" 2>&-";
  const auto fine = start_in(closed, {"run", "-v", name_, "--", "ls", "/proc/self/fd"});
  for (const char* number : {"0", "1", "2"}) EXPECT_EQ(fine->next_line(soon()), number);
  EXPECT_EQ(fine->next_line(soon()), std::nullopt) << "the last was the folder itself";
  EXPECT_EQ(fine->wait(soon()), code(0));

  EXPECT_EQ(start_in(closed, {"run", name_, "/nowhere/x"})->wait(soon()), code(127));
  EXPECT_EQ(start_in(closed, {"run", "-q", name_, "true"})->wait(soon()), code(64));
  EXPECT_EQ(start_in(closed, {"revoke", fresh_path()})->wait(soon()), code(1));
}

TEST_P(Unheard, StandardOutputThatTakesNothingIsAnError) {
  const auto full = start_in("exec \"$@\" >/dev/full", {"ls", "--json", "/"});
  EXPECT_EQ(full->wait(soon()), code(71));
}

TEST_P(Unheard, FollowersEndWhenStandardOutputTakesNothing) {
  const std::vector<std::vector<std::string>> followers = {
      {"watch", name_}, {"watch", "--json", name_}, {"elect", "--observe", name_}};
  for (const std::vector<std::string>& words : followers) {
    const auto full = start_in("exec \"$@\" >/dev/full", words);

    EXPECT_EQ(full->wait(soon()), code(71)) << words[0];
  }
}

TEST_P(Unheard, AWishThatComesBeforeTheGrantIsForTheHolderItBecomes) {
  const auto holder = hold();
  held_by();
  Session session = open();
  const auto holders = session.children(name_, soon());
  ASSERT_TRUE(holders && holders->names.size() == 1);
  const auto waiter =
      start_in("exec \"$@\" 2>" + file("err"), {"run", name_, "--", "sleep", "1000"});
  ASSERT_TRUE(eventually([&] { return entries(session, name_) == 2; }, soon()));
  const auto all = session.children(name_, soon());
  ASSERT_TRUE(all);
  for (const std::string& node : all->names) {
    if (node == holders->names.front()) continue;
    ASSERT_EQ(run({"revoke", name_ + "/" + node}).status, code(0));
  }

  holder->signal(SIGTERM);

  EXPECT_EQ(waiter->wait(soon()), code(143));
  EXPECT_THAT(contents(file("err")), testing::HasSubstr("somebody asks for " + name_ + ";"));
  EXPECT_TRUE(can_be_had());
}

TEST_P(Unheard, ALossThatComesWithTheGrantIsToldAtOnce) {
  const auto holder = hold();
  held_by();
  Session session = open();
  const auto waiter = start_in("exec \"$@\" 2>" + file("err"),
                               {"once", "--session-timeout", "40s", name_, "--", "sleep", "1000"});
  ASSERT_TRUE(eventually([&] { return entries(session, name_) == 2; }, soon()));
  auto all = session.children(name_, soon());
  ASSERT_TRUE(all);
  // The holder's first: so the waiter hears of its turn before it hears of its own end.
  std::ranges::sort(all->names, {},
                    [](const std::string& node) { return node.substr(node.size() - 10); });
  std::vector<Multi::Part> both;
  for (const std::string& node : all->names) {
    both.emplace_back(Remove{name_ + "/" + node});
  }

  ASSERT_TRUE(session.multi(both, soon()));

  EXPECT_EQ(waiter->wait(soon()), code(75));
  EXPECT_THAT(contents(file("err")), testing::HasSubstr(name_));
}

}  // namespace
}  // namespace latchkey::test_support
