#include <gtest/gtest.h>

#include "latchkey/mutex.hpp"
#include "latchkey/session.hpp"
#include "testing/world.hpp"

namespace latchkey::testing {
namespace {

using namespace std::chrono_literals;

/// Counts what a recovery lost.
struct Losses final : Observer {
  void on_recovered(const Recovery& recovery) override {
    ++recoveries;
    if (recovery.lost) ++lost;
  }
  int recoveries = 0;
  int lost = 0;
};

WorldOptions on_disk(std::uint64_t seed) {
  return {.seed = seed, .store = Store::kDisk, .segment_bytes = 4'096, .fold_bytes = 8'192};
}

/// Creates nodes one after the other until told to stop, and remembers which were acknowledged.
class Writer {
 public:
  explicit Writer(Session session) : session_(std::move(session)) {}

  void go() {
    const std::string path = "/node" + std::to_string(++number_);
    session_.async(Create{Path(path), std::string(100, 'x'), {}}, deadline_in(60s),
                   [this, path](const Result<Created>& created) {
                     if (created) acknowledged.push_back(path);
                     if (!stopped) go();
                   });
  }

  bool stopped = false;
  std::vector<std::string> acknowledged;

 private:
  Session session_;
  int number_ = 0;
};

TEST(SimServer, H78_WhatWasAcknowledgedSurvivesEveryKindOfCrash) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    WorldOptions options = on_disk(seed);
    if (seed % 4 == 0) options.store = Store::kMemory;
    World world(options);
    Losses losses;
    world.watch(losses);
    Process& ann = world.start_process("ann");
    Session session = world.open(ann);
    Writer writer(session);
    world.post(ann, 0s, [&] { writer.go(); });
    for (int crash = 0; crash < 5; ++crash) {
      world.run_for(world.timeline().draw(10ms, 300ms));
      world.crash(0, crash % 2 == 0 ? Crash::kPower : Crash::kProcess);
      world.run_for(50ms);
      world.restart(0);
      ASSERT_TRUE(world.leader().is_up()) << *world.leader().trouble();
      ASSERT_TRUE(session.wait_connected(deadline_in(20s))) << "seed " << seed;
    }
    writer.stopped = true;
    world.run_for(5s);

    EXPECT_EQ(losses.recoveries, 5);
    EXPECT_EQ(losses.lost, 0) << "seed " << seed;
    EXPECT_GT(writer.acknowledged.size(), 5U);
    for (const std::string& path : writer.acknowledged) {
      EXPECT_TRUE(session.exists(Path(path), deadline_in(5s))->has_value()) << path << ' ' << seed;
    }
    world.unwatch(losses);
  }
}

TEST(SimServer, FoldsItsJournalAndRecoversFromTheSnapshot) {
  World world(on_disk(1));
  Process& ann = world.start_process("ann");
  Session session = world.open(ann);
  Writer writer(session);
  world.post(ann, 0s, [&] { writer.go(); });
  ASSERT_TRUE(world.run_until([&] { return world.leader().folds() > 2; }, 60s));
  writer.stopped = true;
  world.run_for(1s);

  world.crash(0, Crash::kPower);
  world.restart(0);

  ASSERT_TRUE(world.leader().is_up()) << *world.leader().trouble();
  for (const std::string& path : writer.acknowledged) {
    EXPECT_TRUE(session.exists(Path(path), deadline_in(20s))->has_value()) << path;
  }
}

TEST(SimServer, H83_AFullDiskEndsTheServerAndNobodyGetsAnAnswer) {
  World world(on_disk(2));
  Process& ann = world.start_process("ann");
  Session session = world.open(ann);
  Writer writer(session);
  world.post(ann, 0s, [&] { writer.go(); });
  world.run_for(1s);

  world.fill_disk();

  ASSERT_TRUE(world.run_until([&] { return !world.leader().is_up(); }, 60s));
  EXPECT_EQ(world.leader().trouble()->code(), Code::kStorage);
  world.make_room();
  world.restart(0);
  ASSERT_TRUE(world.leader().is_up()) << *world.leader().trouble();
  EXPECT_TRUE(session.wait_connected(deadline_in(20s)));
}

TEST(SimServer, H84_AFailedSyncEndsTheServer) {
  World world(on_disk(2));
  Session session = world.open(world.start_process("ann"));
  ASSERT_TRUE(session.wait_connected(deadline_in(5s)));

  world.fail_sync();
  const auto created = session.create("/a", "", {}, deadline_in(2s));

  EXPECT_FALSE(created);
  EXPECT_FALSE(world.leader().is_up());
}

TEST(SimServer, H85_NobodyExpiresBecauseTheServerWasHeldUp) {
  World world({.seed = 2});
  Session session = world.open(world.start_process("ann"));
  ASSERT_TRUE(session.wait_connected(deadline_in(5s)));
  const std::int64_t id = session.id();

  world.pause(world.leader().process(), 15s);
  world.run_for(40s);

  EXPECT_EQ(session.state(), SessionState::kConnected);
  EXPECT_EQ(session.id(), id);
}

TEST(SimServer, AStalledDiskHoldsUpWritesAndNotReads) {
  World world({.seed = 2});
  Session session = world.open(world.start_process("ann"));
  Session other = world.open(world.start_process("bob"));
  ASSERT_TRUE(session.wait_connected(deadline_in(5s)));
  ASSERT_TRUE(other.wait_connected(deadline_in(5s)));
  world.stall_disk(3s);
  bool created = false;
  session.async(Create{"/a", "", {}}, deadline_in(20s),
                [&](const Result<Created>& done) { created = done.has_value(); });
  world.run_for(1s);

  EXPECT_TRUE(other.exists("/", deadline_in(1s)));
  EXPECT_FALSE(created);
  world.run_for(5s);
  EXPECT_TRUE(created);
}

TEST(SimServer, H20_AWipedServerKnowsNobody) {
  World world({.seed = 2});
  Session session = world.open(world.start_process("ann"));
  ASSERT_TRUE(session.create("/a", "", {}, deadline_in(5s)));

  world.wipe();
  world.run_for(60s);

  EXPECT_EQ(session.state(), SessionState::kExpired);
  Session other = world.open(world.start_process("bob"));
  const auto found = other.exists("/a", deadline_in(5s));
  ASSERT_TRUE(found) << found.error();
  EXPECT_FALSE(found->has_value());
}

TEST(SimServer, H19_WhatARestoredServerHasForgottenIsNotHeldForLong) {
  World world(on_disk(2));
  Process& ann = world.start_process("ann");
  Session session = world.open(ann);
  const Mutex mutex(session, Path("/locks/a"));
  ASSERT_TRUE(session.create("/old", "", {}, deadline_in(5s)));
  const auto copy = world.leader().disk().content();
  auto lease = mutex.lock(deadline_in(5s));
  ASSERT_TRUE(lease);

  world.restore(copy);
  world.run_for(60s);

  EXPECT_EQ(lease->state(), LeaseState::kLost);
  Session other = world.open(ann);
  EXPECT_TRUE(other.exists("/old", deadline_in(5s))->has_value());
  EXPECT_FALSE(other.exists("/locks/a", deadline_in(5s))->has_value());
}

}  // namespace
}  // namespace latchkey::testing
