#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command/invocation.hpp"
#include "latchkey/mutex.hpp"
#include "support/embedded_server.hpp"
#include "support/eventually.hpp"
#include "support/seeded_data.hpp"
#include "support/shared_servers.hpp"
#include "support/sockets.hpp"

/// What `latchkey doctor` finds, seen by whoever calls it.
namespace latchkey::test_support {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr ExitStatus kSick{1, 0};

/// A server that says what it is told to of itself, and lets nobody in.
class Talker {
 public:
  using Answers = std::map<std::string, std::string>;

  explicit Talker(Answers answers)
      : answers_(std::move(answers)),
        address_(loopback(free_port())),
        door_(listen_on(Endpoint(address_))),
        thread_([this] { talk(); }) {}
  ~Talker() {
    over_ = true;
    thread_.join();
  }
  Talker(const Talker&) = delete;
  Talker& operator=(const Talker&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  void talk() const {
    while (!over_) {
      pollfd door{door_.get(), POLLIN, 0};
      if (::poll(&door, 1, 20) <= 0) continue;
      const Fd guest(::accept4(door_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::array<char, 4> word{};
      if (::recv(guest.get(), word.data(), word.size(), MSG_WAITALL) != 4) continue;
      const auto answer = answers_.find(std::string(word.data(), word.size()));
      if (answer == answers_.end()) continue;
      static_cast<void>(
          ::send(guest.get(), answer->second.data(), answer->second.size(), MSG_NOSIGNAL));
    }
  }

  const Answers answers_;
  const std::string address_;
  const Fd door_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

class DoctorCommand : public testing::Test {
 protected:
  static Deadline soon() { return deadline_in(60s); }
  static std::string connect() { return shared_embedded().connect_string(); }

  NewUser user_;
};

TEST_F(DoctorCommand, NamesNodesThatAreNoContenders) {
  SessionOptions options;
  options.timeout = 60s;  // A busy machine takes no lock away.
  Session session = Session::open(connect(), options, soon()).value();
  const std::string path = fresh_path();
  const auto lease = Mutex(session, path).lock(soon());
  ASSERT_TRUE(lease);
  ASSERT_TRUE(session.create(path + "/notes", "", {}, soon()));

  const Ran ran = user_.run({"doctor", "-z", connect(), path});

  EXPECT_EQ(ran.status, kSick);
  EXPECT_THAT(ran.out, HasSubstr("warning: " + path + ": Nodes that are no contender's: notes."));
  EXPECT_THAT(ran.out, HasSubstr("try: "));
}

/// Whoever holds it would lose it.
TEST_F(DoctorCommand, TakesALockInsideALockForWhatItIs) {
  SessionOptions options;
  options.timeout = 60s;
  Session session = Session::open(connect(), options, soon()).value();
  const std::string path = fresh_path();
  const auto outer = Mutex(session, path).lock(soon());
  const auto inner = Mutex(session, path + "/db/main").lock(soon());
  ASSERT_TRUE(outer && inner);

  EXPECT_THAT(user_.run({"doctor", "-z", connect(), path}).out, Not(HasSubstr("remove them")));
}

TEST_F(DoctorCommand, SaysThatALockIsFree) {
  Session session = Session::open(connect(), {}, soon()).value();
  const std::string path = fresh_path();
  // No container, which the server might remove before anybody looks.
  ASSERT_TRUE(session.create(path, "", {}, soon()));
  ASSERT_TRUE(Mutex(session, path).lock(soon())->release(soon()));

  EXPECT_THAT(user_.run({"doctor", "-z", connect(), path}).out, HasSubstr(path + " is free"));
}

TEST_F(DoctorCommand, NamesACounterThatNearsItsEnd) {
  SeededData data;
  data.create("/locks", 1);
  data.create("/locks/old", 1);
  data.create("/locks/old/seed", 2'147'483'600);
  data.remove("/locks/old/seed");
  data.create("/locks/young", 2);
  EmbeddedServer server(LATCHKEY_COMMAND);
  data.save_for_embedded(server.data());
  server.start();

  const Ran ran = user_.run({"doctor", "--json", "-z", server.connect_string()});

  EXPECT_EQ(ran.status, kSick);
  EXPECT_THAT(ran.out, HasSubstr(R"({"weight":"bad","where":"/locks/old","what":"The directory's)"
                                 R"( counter stands at 21474836)"));
  EXPECT_THAT(ran.out, Not(HasSubstr("/locks/young")));
}

TEST_F(DoctorCommand, NamesServersThatAreSilentSlowOrOfAnotherVersion) {
  using Answers = Talker::Answers;
  const Talker old(Answers{{"ruok", "imok"},
                           {"srvr",
                            "Zookeeper version: 3.4.13-2d71af4, built on 06/29/2018\n"
                            "Latency min/avg/max: 0/2500/9000\nOutstanding: 5000\n"}});
  const Talker leaderless(Answers{
      {"ruok", "imok"}, {"srvr", "This ZooKeeper instance is not currently serving requests\n"}});
  const Talker shut(Answers{});
  const std::string all =
      old.address() + "," + leaderless.address() + "," + shut.address() + "," + connect();

  Ran ran;
  const auto all_speak = [&] {
    ran = user_.run({"doctor", "-z", all});  // It does not wait long for a word.
    const auto says = [&](const std::string& part) {
      return ran.out.find(part) != std::string::npos;
    };
    return says(old.address() + ": A request takes") &&
           says(leaderless.address() + ": It runs and") && !says(connect() + ": It");
  };
  EXPECT_TRUE(eventually(all_speak, soon())) << ran.out;

  EXPECT_EQ(ran.status, kSick) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(old.address() + ": ZooKeeper 3.4.13"));
  EXPECT_THAT(ran.out, HasSubstr(old.address() + ": A request takes 2500 ms on average."));
  EXPECT_THAT(ran.out, HasSubstr(old.address() + ": 5000 requests wait for their answer."));
  EXPECT_THAT(ran.out, HasSubstr(leaderless.address() + ": It runs and does not serve"));
  EXPECT_THAT(ran.out, HasSubstr(shut.address() + ": It does not answer."));
  EXPECT_THAT(ran.out, HasSubstr("The servers have different versions."));
  EXPECT_THAT(ran.out, Not(HasSubstr(connect() + ": It"))) << "nothing is wrong with this one";
}

TEST_F(DoctorCommand, SaysOnceThatNobodyAnswers) {
  const std::string nobody = "127.0.0.1:" + std::to_string(free_port());

  const Ran ran = user_.run({"doctor", "--json", "-z", nobody});

  EXPECT_EQ(ran.status, (ExitStatus{69, 0}));
  EXPECT_THAT(ran.out, HasSubstr("from --connect"));
  EXPECT_EQ(std::ranges::count(ran.out, '\n'), 1) << ran.out;
}

}  // namespace
}  // namespace latchkey::test_support
