#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command/invocation.hpp"
#include "latchkey/server.hpp"
#include "latchkey/session.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/shared_servers.hpp"

/// The server that a user has without asking for one.
namespace latchkey::test_support {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::SizeIs;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

/// What the server has to complain of; not that it was kept waiting, which is the machine's affair.
std::string complaints(const NewUser& user) {
  std::istringstream log(contents(user.state() / "server.log"));
  std::string all;
  for (std::string line; std::getline(log, line);) {
    if (line.find("held up for ") == std::string::npos) all += line + "\n";
  }
  return all;
}

/// Another serves. One look, as the first may vanish between two.
bool is_replaced(const NewUser& user, pid_t first) {
  const std::vector<pid_t> now = user.servers();
  return now.size() == 1 && now.front() != first;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::ptrdiff_t kStorm = 40;  // Each of them may be two processes, and is slow.
#else
constexpr std::ptrdiff_t kStorm = 200;
#endif

TEST(OwnServer, AFreshMachineNeedsNoSetUp) {
  const NewUser ann;

  const Ran ran = ann.run({"ls"});

  EXPECT_EQ(ran.status, kFine) << ran.err;
  ASSERT_THAT(ann.servers(), SizeIs(1));
  const std::string words = contents("/proc/" + std::to_string(ann.servers().front()) + "/cmdline");
  EXPECT_THAT(words, HasSubstr(std::string("--idle-stop\0"
                                           "600000ms\0",
                                           21)))
      << "ten minutes";
  struct stat folder {};
  ASSERT_EQ(::stat(ann.state().c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777U, 0700U);
}

TEST(OwnServer, TwoHundredAtOnceStartOne) {
  const NewUser ann;
  ChildOptions options;
  options.environment = ann.environment();
  std::vector<std::unique_ptr<Child>> storm;
  for (std::ptrdiff_t i = 0; i < kStorm; ++i) {
    storm.push_back(std::make_unique<Child>(ann.command({"ls", "--names"}), options));
  }

  for (const auto& one : storm) EXPECT_EQ(one->wait(deadline_in(240s)), kFine);

  EXPECT_THAT(ann.servers(), SizeIs(1));
  EXPECT_EQ(complaints(ann), "");
}

TEST(OwnServer, OneThatLivesIsWaitedForHoweverSlowItIs) {
  const NewUser ann;
  ASSERT_EQ(ann.run({"ls"}).status, kFine);
  const pid_t server = ann.servers().at(0);
  const auto knocks = [socket = ann.address().substr(5)] {
    return count_of(contents("/proc/net/unix"), socket + '\n');
  };
  ::kill(server, SIGSTOP);
  const std::size_t before = knocks();
  ChildOptions options;
  options.environment = ann.environment();
  Child patient(ann.command({"ls"}), options);
  Child starter(ann.command({"run", "-n", "job", "true"}), options);

  // Each of them gives an attempt up after a third of a session's time-out.
  const bool both = eventually([&] { return knocks() >= before + 10; }, deadline_in(60s));
  ::kill(server, SIGCONT);

  EXPECT_TRUE(both);
  EXPECT_EQ(patient.wait(deadline_in(60s)), kFine);
  EXPECT_EQ(starter.wait(deadline_in(60s)), kFine);
  EXPECT_THAT(ann.servers(), testing::ElementsAre(server));
}

TEST(OwnServer, AStormOfJobsThatDoNotWaitRunsOne) {
  const NewUser ann;
  ChildOptions options;
  options.environment = ann.environment();
  const auto go_on = ann.home() / "go-on";
  const Instant begin = BootClock::now();
  std::vector<std::unique_ptr<Child>> storm;
  for (std::ptrdiff_t i = 0; i < kStorm; ++i) {
    storm.push_back(std::make_unique<Child>(
        ann.command({"run", "-n", "nightly", "--", "sh", "-c",
                     "echo ran; until [ -e " + go_on.string() + " ]; do sleep 0.1; done"}),
        options));
  }

  // One of them is the one that runs; it holds the lock until all the others have answered.
  std::ptrdiff_t busy = 0;
  const auto others_answered = [&] {
    busy = std::ranges::count_if(storm, [](const auto& one) { return !one->running(); });
    return busy + 1 >= kStorm;
  };
  EXPECT_TRUE(eventually(others_answered, deadline_in(240s))) << busy;
  std::cout
      << kStorm << " jobs at once had their answers after "
      << std::chrono::duration_cast<std::chrono::milliseconds>(BootClock::now() - begin).count()
      << " ms\n";
  std::ofstream(go_on) << "";

  std::vector<ExitStatus> codes;
  for (const auto& one : storm) {
    codes.push_back(one->wait(deadline_in(60s)).value_or(ExitStatus{}));
  }
  EXPECT_EQ(std::ranges::count(codes, kFine), 1);
  EXPECT_EQ(std::ranges::count(codes, ExitStatus{1, 0}), kStorm - 1);
  EXPECT_THAT(ann.servers(), SizeIs(1));
  EXPECT_EQ(complaints(ann), "");
}

TEST(OwnServer, OneThatWasKilledIsReplacedAndItsDataIsThere) {
  const NewUser ann;
  ASSERT_EQ(ann.run({"ls"}).status, kFine);
  SessionOptions patient;
  patient.timeout = 60s;  // Long enough for a busy machine to bring the next server up.
  auto session = Session::open(ann.address(), patient, deadline_in(20s));
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->create("/kept", "", {}, deadline_in(20s)));
  const pid_t first = ann.servers().at(0);
  ::kill(first, SIGKILL);
  ASSERT_TRUE(eventually([&] { return ann.servers().empty(); }, deadline_in(60s)));
  ASSERT_TRUE(std::filesystem::exists(ann.address().substr(5))) << "it left its socket behind";

  EXPECT_EQ(ann.run({"ls"}).status, kFine);

  ASSERT_THAT(ann.servers(), SizeIs(1));
  EXPECT_NE(ann.servers()[0], first);
  const auto kept = session->exists("/kept", deadline_in(60s));
  ASSERT_TRUE(kept);
  EXPECT_TRUE(*kept);
}

TEST(OwnServer, StopsByItselfAndLeavesNothingBehind) {
  const NewUser ann;
  std::ofstream(ann.home() / "latchkey.conf") << "own-idle-stop = 50ms\n";

  ASSERT_EQ(ann.run({"ls", "--config", (ann.home() / "latchkey.conf").string()}).status, kFine);

  EXPECT_TRUE(eventually([&] { return ann.servers().empty(); }, deadline_in(60s)));
  EXPECT_FALSE(std::filesystem::exists(ann.address().substr(5)));
}

TEST(OwnServer, IsNotIdleWhileSomebodyHoldsALock) {
  NewUser ann;
  std::ofstream(ann.home() / "latchkey.conf") << "own-idle-stop = 50ms\n";
  ann.set("LATCHKEY_CONFIG", (ann.home() / "latchkey.conf").string());

  ASSERT_EQ(ann.run({"hold", "job", "--for", "1h"}).status, kFine);

  // Long past the idle time, by what happens and not by the clock.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ann.run({"who", "job"}).status, kFine);
  EXPECT_THAT(ann.servers(), SizeIs(1));
  EXPECT_EQ(count_of(contents(ann.state() / "server.log"), "nobody was here"), 0U);
  EXPECT_EQ(ann.run({"release", "job"}).status, kFine);
}

TEST(OwnServer, WhoeverComesWhileItStopsIsServed) {
  NewUser ann;
  std::ofstream(ann.home() / "latchkey.conf") << "own-idle-stop = 1ms\n";
  ann.set("LATCHKEY_CONFIG", (ann.home() / "latchkey.conf").string());
  std::vector<std::jthread> clients;
  std::vector<std::string> failures;
  std::mutex mutex;

  for (int client = 0; client < 3; ++client) {
    clients.emplace_back([&] {
      for (int i = 0; i < 40; ++i) {
        const Ran ran = ann.run({"ls", "--names"});
        const std::lock_guard lock(mutex);
        if (ran.status != kFine) failures.push_back(ran.err);
      }
    });
  }
  clients.clear();

  EXPECT_THAT(failures, testing::IsEmpty());
  EXPECT_GT(count_of(contents(ann.state() / "server.log"), "nobody was here"), 1U)
      << "it never stopped, so nothing was tried";
}

TEST(OwnServer, InheritsNothingOfWhoeverStartedIt) {
  const NewUser ann;
  const auto leaked = ann.home() / "leaked";
  std::ofstream(leaked) << "x";
  ChildOptions options;
  options.environment = ann.environment();
  Child shell({"sh", "-c", R"(trap '' USR1; exec 7<"$1"; cd "$2"; shift 2; exec "$@")", "sh",
               leaked.string(), ann.home().string(), LATCHKEY_COMMAND, "ls"},
              options);
  ASSERT_EQ(shell.wait(deadline_in(60s)), kFine);

  ASSERT_THAT(ann.servers(), SizeIs(1));
  const std::filesystem::path process = "/proc/" + std::to_string(ann.servers()[0]);
  for (const auto& fd : std::filesystem::directory_iterator(process / "fd")) {
    std::error_code ignored;
    EXPECT_NE(std::filesystem::read_symlink(fd, ignored), leaked);
  }
  EXPECT_EQ(std::filesystem::read_symlink(process / "cwd"), "/");
  EXPECT_NE(::getsid(ann.servers()[0]), ::getsid(0));
  // Not stopped by signals that its starter ignored.
  EXPECT_THAT(contents(process / "status"), HasSubstr("SigIgn:\t0000000001001000"))
      << "SIGPIPE and SIGXFSZ only";
}

TEST(OwnServer, GoesOnWithItsSessionsWhenItIsKilledUnderThem) {
  const NewUser ann;
  // Long enough for a busy machine to bring the next server up.
  ASSERT_EQ(ann.run({"hold", "--session-timeout", "60s", "job", "--for", "1h"}).status, kFine);
  const std::string before = ann.run({"ls", "--json", "job"}).out;
  const pid_t first = ann.servers().at(0);

  ::kill(first, SIGKILL);

  EXPECT_TRUE(eventually([&] { return is_replaced(ann, first); }, deadline_in(60s)));
  EXPECT_EQ(ann.run({"ls", "--json", "job"}).out, before);
  EXPECT_EQ(ann.run({"release", "job"}).status, kFine);
}

TEST(OwnServer, IsNoPartOfTheRunItWasStartedIn) {
  const NewUser ann;
  const std::string other = shared_embedded().connect_string();

  const Ran ran = ann.run({"run", "-z", other, fresh_path(), "--", LATCHKEY_COMMAND, "ls"});
  EXPECT_EQ(ran.status, kFine) << ran.err;
  EXPECT_THAT(ann.servers(), SizeIs(1));

  const std::string name = fresh_path();
  const Ran held = ann.run({"run", "-z", other, fresh_path(), "--", "sh", "-c",
                            "\"$@\"; kill -TERM $PPID; sleep 1000", "sh", LATCHKEY_COMMAND, "hold",
                            name, "--for", "1h"});
  EXPECT_EQ(held.status, (ExitStatus{143, 0})) << held.err;
  EXPECT_EQ(ann.run({"who", name}).status, kFine) << "the hold goes on";
}

TEST(OwnServer, OneThatWasRevivedOutlivesWhoeverRevivedIt) {
  const NewUser ann;
  ChildOptions options;
  options.environment = ann.environment();
  // Long enough for a busy machine to bring the next server up.
  Child holder(ann.command({"run", "--session-timeout", "60s", "x", "--", "sh", "-c",
                            "echo $PPID; exec sleep 1000"}),
               options);
  const auto keeper = holder.next_line(deadline_in(60s));
  ASSERT_TRUE(keeper);
  ASSERT_THAT(ann.servers(), SizeIs(1));
  const pid_t first = ann.servers().front();
  ::kill(first, SIGKILL);
  ASSERT_TRUE(eventually([&] { return is_replaced(ann, first); }, deadline_in(60s)));
  const std::vector<pid_t> second = ann.servers();

  ::kill(std::stoi(*keeper), SIGKILL);

  EXPECT_EQ(holder.wait(deadline_in(60s)), (ExitStatus{75, 0}));
  EXPECT_EQ(ann.run({"ls"}).status, kFine);
  EXPECT_EQ(ann.servers(), second);
}

TEST(OwnServer, ASocketsNameThatWouldBeTooLongIsPutElsewhere) {
  NewUser ann;
  ann.set("XDG_STATE_HOME", (ann.home() / std::string(120, 'x')).string());

  const Ran ran = ann.run({"ls"});

  EXPECT_EQ(ran.status, kFine) << ran.err;
  EXPECT_THAT(ann.address(), testing::StartsWith("unix:/tmp/latchkey-"));
}

TEST(OwnServer, IsFoundWithoutTheRuntimeFolderItWasStartedWith) {
  NewUser ann;
  std::filesystem::create_directory(ann.home() / "run");
  ASSERT_EQ(ann.run({"ls"}, {"XDG_RUNTIME_DIR=" + (ann.home() / "run").string()}).status, kFine);
  ASSERT_THAT(ann.address(), HasSubstr("/run/latchkey/"));

  EXPECT_EQ(ann.run({"ls"}).status, kFine);

  EXPECT_THAT(ann.servers(), SizeIs(1));
}

TEST(OwnServer, OneThatCannotStartSaysWhyInOneLine) {
  const NewUser ann;
  std::filesystem::create_directories(ann.state());
  std::ofstream(ann.state() / "data") << "a file where a folder should be";

  const Ran ran = ann.run({"ls"});

  EXPECT_EQ(ran.status, (ExitStatus{69, 0}));
  EXPECT_THAT(ran.err, HasSubstr("cannot start a server of your own"));
  EXPECT_THAT(ran.err, HasSubstr((ann.state() / "data").string()));
  EXPECT_THAT(ran.err, HasSubstr("server.log"));
}

TEST(OwnServer, AFolderThatIsNoneIsRefused) {
  const NewUser ann;
  std::filesystem::create_directories(ann.state().parent_path());
  std::ofstream(ann.state()) << "";

  const Ran ran = ann.run({"ls"});

  EXPECT_EQ(ran.status, (ExitStatus{78, 0}));
  EXPECT_THAT(ran.err, HasSubstr("XDG_STATE_HOME"));
}

TEST(OwnServer, AnOpenFolderIsClosedToOthers) {
  const NewUser ann;
  std::filesystem::create_directories(ann.state());
  ::chmod(ann.state().c_str(), 0755);

  ASSERT_EQ(ann.run({"ls"}).status, kFine);

  struct stat folder {};
  ASSERT_EQ(::stat(ann.state().c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777U, 0700U);
}

TEST(IdleStop, EndsAServerThatNobodyCameTo) {
  ServerOptions options;
  options.idle_stop = 1ms;
  options.handshake_timeout = 1ms;
  auto server = Server::start(options);
  ASSERT_TRUE(server);

  EXPECT_TRUE(server->wait());

  EXPECT_EQ(server->expire_session(1).error().code(), Code::kClosed);
}

TEST(IdleStop, ASessionBetweenTwoConnectionsCounts) {
  ServerOptions options;
  options.idle_stop = 2s;
  auto server = Server::start(options);
  ASSERT_TRUE(server);
  std::int64_t session = 0;
  {
    RawClient client(server->connect_string());
    session = client.connect(40'000)->session_id;
  }

  // Another that begins to be idle later has ended: so much for the time.
  options.handshake_timeout = 1ms;
  auto clock = Server::start(options);
  ASSERT_TRUE(clock);
  EXPECT_TRUE(clock->wait());

  const Result<void> expired = server->expire_session(session);
  EXPECT_TRUE(expired) << "it ended although the session lives";
  EXPECT_TRUE(server->wait()) << "with the session gone it ends";
}

}  // namespace
}  // namespace latchkey::test_support
