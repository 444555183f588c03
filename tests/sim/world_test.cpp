#include "testing/world.hpp"

#include <optional>

#include <gtest/gtest.h>

#include "latchkey/mutex.hpp"

namespace latchkey::testing {
namespace {

using namespace std::chrono_literals;

/// Takes the lock, holds it for a while and takes it again, for ever.
class WorldWorker {
 public:
  WorldWorker(World& world, Process& process, Session session)
      : world_(world), process_(process), mutex_(session, Path("/locks/a")) {}

  void go() {
    mutex_.lock_async(deadline_in(10s)).then([this](Result<Lease> lease) {
      if (!lease) {
        ++failed;
        return later(50ms);
      }
      world_.note(static_cast<std::uint64_t>(lease->token().zxid()));
      ++acquired;
      lease_.emplace(std::move(*lease));
      later(world_.timeline().draw(0ms, 3ms));
    });
  }

  int acquired = 0;
  int failed = 0;

 private:
  void later(Duration span) {
    world_.post(process_, span, [this] {
      lease_.reset();
      go();
    });
  }

  World& world_;
  Process& process_;
  Mutex mutex_;
  std::optional<Lease> lease_;
};

struct Outline {
  std::uint64_t trace = 0;
  std::uint64_t events = 0;
  int acquired = 0;
};

Outline run(WorldOptions options, Duration span) {
  World world(std::move(options));
  std::vector<std::unique_ptr<WorldWorker>> workers;
  std::vector<Session> sessions;
  for (const char* name : {"ann", "bob", "cyd"}) {
    Process& process = world.start_process(name);
    sessions.push_back(world.open(process));
    workers.push_back(std::make_unique<WorldWorker>(world, process, sessions.back()));
    world.post(process, 0s, [worker = workers.back().get()] { worker->go(); });
  }
  for (const Instant end = world.now() + span; world.now() < end;) {
    world.run_for(world.timeline().draw(100ms, 2s));
    const Session& session = sessions[world.random().below(sessions.size())];
    world.cut(world.host_of(session));
  }
  Outline result{world.trace(), world.events(), 0};
  for (const auto& worker : workers) result.acquired += worker->acquired;
  return result;
}

TEST(World, HandsAMutexOverBetweenThreeSessions) {
  World world({.seed = 1});
  std::vector<Session> sessions;
  std::vector<Mutex> mutexes;
  for (const char* name : {"ann", "bob", "cyd"}) {
    sessions.push_back(world.open(world.start_process(name)));
    mutexes.emplace_back(sessions.back(), Path("/locks/a"));
  }
  auto first = mutexes[0].lock(deadline_in(5s));
  ASSERT_TRUE(first) << first.error();
  std::vector<Lease> granted;
  for (const std::size_t i : {1U, 2U}) {
    mutexes[i].lock_async(deadline_in(60s)).then([&](Result<Lease> lease) {
      if (lease) granted.push_back(std::move(*lease));
    });
    world.run_for(1s);
  }

  EXPECT_TRUE(granted.empty());
  first->release();
  ASSERT_TRUE(world.run_until([&] { return granted.size() == 1; }, 5s));
  EXPECT_GT(granted[0].token(), first->token());
  granted[0].release();
  ASSERT_TRUE(world.run_until([&] { return granted.size() == 2; }, 5s));
  EXPECT_GT(granted[1].token(), granted[0].token());
}

TEST(World, RunsTheSameTwiceForOneSeed) {
  for (const std::size_t followers : {0U, 2U}) {
    for (const Store store : {Store::kMemory, Store::kDisk}) {
      const WorldOptions options{.seed = 7, .followers = followers, .store = store};

      const Outline first = run(options, 3s);
      const Outline second = run(options, 3s);

      EXPECT_GT(first.acquired, 100);
      EXPECT_EQ(first.trace, second.trace) << followers << " followers";
      EXPECT_EQ(first.events, second.events);
    }
  }
}

TEST(World, RunsOtherwiseForAnotherSeed) {
  EXPECT_NE(run({.seed = 7}, 1s).trace, run({.seed = 8}, 1s).trace);
}

TEST(World, RefusesABlockingCallInsideACallback) {
  World world({.seed = 1});
  Process& ann = world.start_process("ann");
  Session session = world.open(ann);
  std::optional<Code> code;

  world.post(ann, 1s, [&] {
    const auto stat = session.exists("/", deadline_in(1s));
    if (!stat) code = stat.error().code();
  });
  world.run_for(2s);

  EXPECT_EQ(code, Code::kWouldDeadlock);
}

TEST(World, ABlockingCallEndsAtItsDeadlineBySimulatedTime) {
  World world({.seed = 1});
  Process& ann = world.start_process("ann");
  Session session = world.open(ann);
  ASSERT_TRUE(session.wait_connected(deadline_in(1s)));
  world.partition(ann, 0, Silence::kBoth);
  const Instant before = world.now();

  const auto stat = session.exists("/", deadline_in(2s));

  ASSERT_FALSE(stat);
  EXPECT_EQ(stat.error().code(), Code::kTimedOut);
  EXPECT_GE(world.now() - before, 2s);
  EXPECT_LT(world.now() - before, 2s + 100ms);
}

TEST(World, LetsNothingOfItselfOutlast) {
  std::optional<Session> session;
  {
    World world({.seed = 1});
    session = world.open(world.start_process("ann"));
    world.run_for(1s);
    EXPECT_EQ(session->state(), SessionState::kConnected);
  }
  EXPECT_EQ(session->state(), SessionState::kClosed);
  EXPECT_EQ(base::surroundings, nullptr);
}

}  // namespace
}  // namespace latchkey::testing
