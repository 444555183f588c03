#include <csignal>
#include <thread>

#include <gmock/gmock.h>

#include "interop/arrival_order.hpp"
#include "interop/interop_fixture.hpp"
#include "latchkey/rw_lock.hpp"

/// Read-write locks of several clients on one path.
namespace latchkey::test_support {
namespace {

using testing::HasSubstr;

TEST_P(RwLockInteropTest, CuratorReadsBesideUsAndWritesInItsTurn) {
  const RwLock lock(open(), directory);
  auto reading = lock.read().lock(soon());
  ASSERT_TRUE(ok(reading));
  const auto reader = curator();
  reader->order("read " + directory);
  ASSERT_TRUE(reader->holds());
  const auto writer = curator();
  writer->order("write " + directory);
  ASSERT_TRUE(is_watched(reader->node()));
  Waiter behind(lock.read());
  ASSERT_TRUE(is_watched(entry(2)));

  EXPECT_EQ(reader->ask("unlock"), "released");
  ASSERT_TRUE(is_watched(reading->node()));
  EXPECT_FALSE(writer->has_answer());
  reading->release();

  ASSERT_TRUE(writer->holds());
  EXPECT_FALSE(behind.has_answer());
  EXPECT_EQ(writer->ask("unlock"), "released");
  EXPECT_TRUE(behind.holds());
}

TEST_P(RwLockInteropTest, WeReadBesideCuratorAndWriteInOurTurn) {
  const auto reader = curator();
  reader->order("read " + directory);
  ASSERT_TRUE(reader->holds());
  auto reading = RwLock(open(), directory).read().lock(soon());
  ASSERT_TRUE(ok(reading));
  Waiter writing(RwLock(open(), directory).write());
  ASSERT_TRUE(is_watched(reading->node()));
  const auto behind = curator();
  behind->order("read " + directory);
  ASSERT_TRUE(is_watched(entry(2)));

  reading->release();
  ASSERT_TRUE(is_watched(reader->node()));
  EXPECT_FALSE(writing.has_answer());
  EXPECT_EQ(reader->ask("unlock"), "released");

  ASSERT_TRUE(writing.holds());
  EXPECT_FALSE(behind->has_answer());
  writing.lease().release();
  EXPECT_TRUE(behind->holds());
}

TEST_P(RwLockInteropTest, ReadersAndWritersOfThreeClientsTakeTurns) {
  const RwLock lock(open(), directory);
  auto first = lock.write().lock(soon());
  ASSERT_TRUE(ok(first));
  const auto pythons = kazoo();
  const auto theirs = curator();
  pythons->order("read " + directory, "second");
  ASSERT_TRUE(is_watched(entry(0)));
  theirs->order("write " + directory);
  ASSERT_TRUE(is_watched(entry(1)));
  pythons->order("write " + directory, "fourth");
  ASSERT_TRUE(is_watched(entry(2)));
  Waiter fifth(lock.read());
  ASSERT_TRUE(is_watched(entry(3)));

  // A reader of stock kazoo 2.8 would now wait for the writer behind it, for ever.
  first->release();
  ASSERT_TRUE(pythons->holds("second"));
  EXPECT_FALSE(theirs->has_answer());
  EXPECT_EQ(pythons->ask("unlock", "second"), "released");

  ASSERT_TRUE(theirs->holds());
  EXPECT_FALSE(pythons->has_answer("fourth"));
  EXPECT_EQ(theirs->ask("unlock"), "released");
  ASSERT_TRUE(pythons->holds("fourth"));
  EXPECT_FALSE(fifth.has_answer());
  EXPECT_EQ(pythons->ask("unlock", "fourth"), "released");
  EXPECT_TRUE(fifth.holds());
}

TEST_P(RwLockInteropTest, UnderLoadAWriterIsAloneAndNobodyIsOvertaken) {
  constexpr int kHolds = 8;
  make_node(witness.session(), directory);  // So that its numbers do not begin anew.
  const SharedSection section;
  const auto theirs = curator();
  const auto pythons = kazoo();
  const std::string load = "load " + section.folder() + " " + std::to_string(kHolds);
  const std::vector<std::string> kinds = {"read", "write"};

  for (const std::string& kind : kinds) {
    theirs->order(load + " " + kind + " " + directory, kind + "-1");
    theirs->order(load + " " + kind + " " + directory, kind + "-2");
    pythons->order(load + " " + kind + " " + directory, kind);
  }
  {
    std::vector<std::jthread> ours;
    for (const std::string kind : {"read", "write", "read", "write"}) {
      ours.emplace_back([&, kind, who = "ours-" + std::to_string(ours.size()), session = open()] {
        const RwLock lock(session, directory);
        Visitor visitor(section, kind, who);
        for (int i = 0; i < kHolds; ++i) {
          auto lease = (kind == "read" ? lock.read() : lock.write()).lock(deadline_in(60s));
          ASSERT_TRUE(ok(lease));
          visitor.enter(lease->node());
          pause_between_looks();
          visitor.leave(lease->node());
        }
      });
    }
  }
  for (const std::string& kind : kinds) {
    EXPECT_EQ(theirs->answer(kind + "-1"), "done");
    EXPECT_EQ(theirs->answer(kind + "-2"), "done");
    EXPECT_EQ(pythons->answer(kind), "done");
  }

  EXPECT_EQ(section.conflicts(), 0) << testing::PrintToString(section.log());
  EXPECT_EQ(section.entered().size(), 10U * kHolds);
  EXPECT_TRUE(in_order_of_arrival(section.entered())) << testing::PrintToString(section.log());
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(RwLockInteropTest, AWriterOfCuratorsStaysOutWhenWeDowngrade) {
  const RwLock lock(open(), directory);
  auto writing = lock.write().lock(soon());
  ASSERT_TRUE(ok(writing));
  const auto theirs = curator();
  theirs->order("write " + directory);
  ASSERT_TRUE(is_watched(writing->node()));

  auto reading = lock.downgrade(std::move(*writing), soon());

  ASSERT_TRUE(ok(reading));
  ASSERT_TRUE(is_watched(reading->node()));
  EXPECT_FALSE(theirs->has_answer());
  reading->release();
  EXPECT_TRUE(theirs->holds());
}

TEST_P(RwLockInteropTest, AReaderOfCuratorsComesInWhenWeDowngrade) {
  const RwLock lock(open(), directory);
  auto writing = lock.write().lock(soon());
  ASSERT_TRUE(ok(writing));
  const auto theirs = curator();
  theirs->order("read " + directory);
  ASSERT_TRUE(is_watched(writing->node()));

  const auto reading = lock.downgrade(std::move(*writing), soon());

  ASSERT_TRUE(ok(reading));
  EXPECT_TRUE(theirs->holds());
  EXPECT_EQ(reading->state(), LeaseState::kHeld);
}

TEST_P(RwLockInteropTest, AWriterOfOursStaysOutWhenANewerCuratorDowngrades) {
  const auto theirs = curator();
  theirs->order("write " + directory);
  ASSERT_TRUE(theirs->holds());
  const RwLock lock(open(), directory);
  Waiter writing(lock.write());
  ASSERT_TRUE(is_watched(theirs->node()));

  theirs->order("downgrade-in-place");

  ASSERT_TRUE(theirs->holds());
  EXPECT_THAT(theirs->node(), HasSubstr("__READ__"));
  ASSERT_TRUE(is_watched(theirs->node()));
  EXPECT_FALSE(writing.has_answer());
  EXPECT_EQ(theirs->ask("unlock"), "released");
  EXPECT_TRUE(writing.holds());
}

TEST_P(RwLockInteropTest, AReaderOfOursComesInWhenANewerCuratorDowngrades) {
  const auto theirs = curator();
  theirs->order("write " + directory);
  ASSERT_TRUE(theirs->holds());
  const RwLock lock(open(), directory);
  Waiter reading(lock.read());
  ASSERT_TRUE(is_watched(theirs->node()));

  theirs->order("downgrade-in-place");

  ASSERT_TRUE(theirs->holds());
  EXPECT_TRUE(reading.holds());
}

// What Curator does before 5.5.0 (CURATOR-621): its reader gets a new number, behind writers who
// wait. They are let in while it reads, be they its own or ours; no other client can know.
TEST_P(RwLockInteropTest, AnOldCuratorThatDowngradesLetsQueuedWritersIn) {
  const auto first = curator();
  first->order("write " + directory);
  ASSERT_TRUE(first->holds());
  const auto theirs = curator();
  theirs->order("write " + directory);
  ASSERT_TRUE(is_watched(first->node()));
  Waiter ours(RwLock(open(), directory).write());
  ASSERT_TRUE(is_watched(entry(1)));

  first->order("downgrade");

  ASSERT_TRUE(first->holds());
  ASSERT_TRUE(theirs->holds()) << "or this Curator has learned better";
  EXPECT_EQ(theirs->ask("unlock"), "released");
  EXPECT_TRUE(ours.holds());
  EXPECT_EQ(witness.queue(directory).size(), 2U);
  EXPECT_EQ(entry(1), first->node()) << "it still reads";
}

TEST_P(RwLockInteropTest, AReaderOfCuratorsThatIsKilledMakesWayForOurWriter) {
  Peer doomed(curator_command());
  Guest theirs(doomed, service().connect_string(), kDoomedTimeout);
  theirs.order("read " + directory);
  ASSERT_TRUE(theirs.holds());
  Waiter writing(RwLock(open(), directory).write());
  ASSERT_TRUE(is_watched(theirs.node()));

  doomed.process().signal(SIGKILL);

  EXPECT_TRUE(writing.holds());
}

// Why a path is for one kind of lock; ours do see each other.
TEST_P(RwLockInteropTest, AReaderOfCuratorsDoesNotCountAMutexAndOursDoes) {
  const Lease held = take(open(), directory);
  const auto theirs = curator();
  theirs->order("read " + directory);

  EXPECT_TRUE(theirs->holds());
  EXPECT_EQ(held.state(), LeaseState::kHeld);
  EXPECT_TRUE(fails_with(RwLock(open(), directory).read().try_lock(soon()), Code::kBusy));
}

}  // namespace
}  // namespace latchkey::test_support
