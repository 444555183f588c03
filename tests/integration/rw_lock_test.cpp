#include "latchkey/rw_lock.hpp"

#include <latch>
#include <memory>
#include <thread>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "integration/watch_count.hpp"

namespace latchkey::test_support {
namespace {

using wire::Op;

class RwLockTest : public MutexTest {
 protected:
  [[nodiscard]] RwLock rw(const Session& session,
                          WatchPolicy watch = WatchPolicy::kTargeted) const {
    return RwLock(session, directory, {.watch = watch});
  }
  [[nodiscard]] std::unique_ptr<Waiter> queue_up(const Lock& lock) {
    const std::size_t before = witness.queue(directory).size();
    auto waiter = std::make_unique<Waiter>(lock);
    EXPECT_TRUE(witness.queue_reaches(directory, before + 1));
    return waiter;
  }
};

TEST_P(RwLockTest, H42_AReaderIsNotBlockedByALaterWriter) {
  const Session session = open();
  auto first_writer = queue_up(rw(session).write());
  ASSERT_TRUE(first_writer->holds());
  auto reader = queue_up(rw(open()).read());
  auto second_writer = queue_up(rw(open()).write());
  first_writer->lease().release();
  ASSERT_TRUE(reader->holds());
  EXPECT_FALSE(second_writer->has_answer());
  reader->lease().release();
  ASSERT_TRUE(second_writer->holds());
  EXPECT_GT(second_writer->lease().token(), reader->lease().token());
}

TEST_P(RwLockTest, H43_AReaderBehindAWaitingWriterWaits) {
  auto first = queue_up(rw(open()).read());
  ASSERT_TRUE(first->holds());
  auto beside = queue_up(rw(open()).read());
  ASSERT_TRUE(beside->holds()) << "readers share";
  auto writer = queue_up(rw(open()).write());
  auto behind = queue_up(rw(open()).read());
  EXPECT_TRUE(fails_with(rw(open()).read().try_lock(), Code::kBusy));
  EXPECT_FALSE(behind->has_answer());
  beside->lease().release();
  first->lease().release();
  ASSERT_TRUE(writer->holds());
  EXPECT_FALSE(behind->has_answer());
  writer->lease().release();
  ASSERT_TRUE(behind->holds());
}

TEST_P(RwLockTest, H43_AStreamOfReadersDoesNotOvertakeAWaitingWriter) {
  const Recorder<std::pair<char, Token>> grants;
  std::vector<std::jthread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&, lock = rw(open())](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        auto lease = lock.read().lock(soon());
        ASSERT_TRUE(ok(lease));
        grants.add({'r', lease->token()});
        pause_between_looks();
      }
    });
  }
  ASSERT_TRUE(grants.wait_for(20));

  Waiter writer(rw(open()).write());
  ASSERT_TRUE(writer.holds());
  const Token token = writer.lease().token();
  grants.add({'w', token});
  const std::size_t before = grants.size();
  writer.lease().release();
  ASSERT_TRUE(grants.wait_for(before + 20)) << "they go on";
  readers.clear();

  bool written = false;
  for (const auto& [who, one] : grants.all()) {
    written = written || who == 'w';
    EXPECT_TRUE(who == 'w' || (one > token) == written);
  }
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(RwLockTest, H45_AWriterWaitsForEveryReaderWhoeverLeavesFirst) {
  for (const bool nearest_first : {true, false}) {
    auto one = queue_up(rw(open()).read());
    auto two = queue_up(rw(open()).read());
    ASSERT_TRUE(one->holds());
    ASSERT_TRUE(two->holds());
    auto writer = queue_up(rw(open()).write());
    (nearest_first ? two : one)->lease().release();
    ASSERT_TRUE(witness.queue_reaches(directory, 2));
    EXPECT_FALSE(writer->has_answer());
    (nearest_first ? one : two)->lease().release();
    ASSERT_TRUE(writer->holds());
    writer->lease().release();
    EXPECT_TRUE(witness.is_quiet(directory));
  }
}

TEST_P(RwLockTest, H44_ADowngradeLetsNoWriterIn) {
  const RwLock mine = rw(open());
  auto writing = mine.write().lock(soon());
  ASSERT_TRUE(ok(writing));
  const Token before = writing->token();
  auto writer = queue_up(rw(open()).write());
  auto reader = queue_up(rw(open()).read());

  auto reading = mine.downgrade(std::move(*writing), soon());
  ASSERT_TRUE(ok(reading));
  EXPECT_EQ(reading->token(), before) << "or it would be above the waiting writer's";
  EXPECT_NE(reading->node().find("__READ__"), std::string::npos);
  EXPECT_EQ(witness.queue(directory).size(), 3U);
  EXPECT_FALSE(writer->has_answer());
  EXPECT_FALSE(reader->has_answer()) << "it came after the writer";
  EXPECT_TRUE(ok(reading->check(soon())));

  reading->release();
  ASSERT_TRUE(writer->holds());
  EXPECT_FALSE(reader->has_answer());
  writer->lease().release();
  ASSERT_TRUE(reader->holds());
}

TEST_P(RwLockTest, H44_ADowngradeBelowAChrootKnowsItsOwnDirectory) {
  make_node(witness.session(), directory);
  SessionOptions options;
  options.chroot = directory;
  const RwLock mine(open(options), "/");
  auto writing = mine.write().lock(soon());
  ASSERT_TRUE(ok(writing));

  EXPECT_TRUE(ok(mine.downgrade(std::move(*writing), soon())));
}

TEST_P(RwLockTest, H44_ReadersBehindADowngradedWriterEnterBesideIt) {
  const RwLock mine = rw(open());
  auto writing = mine.write().lock(soon());
  ASSERT_TRUE(ok(writing));
  auto reader = queue_up(rw(open()).read());
  auto reading = mine.downgrade(std::move(*writing), soon());
  ASSERT_TRUE(ok(reading));
  ASSERT_TRUE(reader->holds());
}

TEST_P(RwLockTest, H44_ADowngradeSurvivesALostConnectionAtEitherEndOfItsTransaction) {
  for (const auto cut : {&FaultProxy::cut_before_request, &FaultProxy::cut_after_request,
                         &FaultProxy::cut_before_reply, &FaultProxy::cut_after_reply}) {
    Proxied one = open_proxied();
    const RwLock mine = rw(one.session);
    auto writing = mine.write().lock(soon());
    ASSERT_TRUE(ok(writing));
    auto writer = queue_up(rw(open()).write());
    (one.proxy.get()->*cut)(Op::kMulti);
    auto reading = mine.downgrade(std::move(*writing), soon());
    ASSERT_TRUE(ok(reading));
    EXPECT_FALSE(writer->has_answer());
    EXPECT_TRUE(ok(reading->check(soon())));
    EXPECT_TRUE(ok(reading->release(soon())));
    ASSERT_TRUE(writer->holds());
    writer->lease().release();
    EXPECT_TRUE(witness.is_quiet(directory));
  }
}

TEST_P(RwLockTest, H18_AWritersTokenFencesTheReadersBeforeItAndReadersDoNotFenceEachOther) {
  // As docs/guarantees.md wants it: only a writer's token raises the maximum.
  std::optional<Token> largest;
  const auto use = [&](const Lease& lease, bool writes) {
    if (largest && lease.token() < *largest) return false;
    if (writes) largest = lease.token();
    return true;
  };
  auto one = rw(open()).read().lock(soon());
  auto two = rw(open()).read().lock(soon());
  ASSERT_TRUE(ok(one) && ok(two));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(use(*one, false));
    EXPECT_TRUE(use(*two, false));
  }
  // Both are overtaken without their knowing: their entries are deleted by another hand.
  ASSERT_TRUE(ok(witness.session().remove(one->node(), soon())));
  ASSERT_TRUE(ok(witness.session().remove(two->node(), soon())));
  auto writer = rw(open()).write().lock(soon());
  ASSERT_TRUE(ok(writer));
  EXPECT_TRUE(use(*writer, true));
  EXPECT_FALSE(use(*one, false));
  EXPECT_FALSE(use(*two, false));
}

TEST_P(RwLockTest, ADowngradeThatTimesOutLeavesNothing) {
  Proxied one = open_proxied();
  const RwLock mine = rw(one.session);
  auto writing = mine.write().lock(soon());
  ASSERT_TRUE(ok(writing));
  one.proxy->hold(Hold::kToServer);
  EXPECT_TRUE(fails_with(mine.downgrade(std::move(*writing), deadline_in(100ms)), Code::kTimedOut));
  one.proxy->release();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(RwLockTest, MisuseOfDowngradeAndUpgradeIsRefused) {
  const Session session = open();
  const RwLock mine = rw(session);
  auto reading = mine.read().lock(soon());
  ASSERT_TRUE(ok(reading));
  EXPECT_TRUE(fails_with(mine.upgrade(*reading), Code::kWouldDeadlock, "write()"));
  EXPECT_TRUE(fails_with(mine.downgrade(std::move(*reading), soon()), Code::kInvalidOption));
  EXPECT_TRUE(witness.is_quiet(directory)) << "what was handed over has been let go";

  auto elsewhere = RwLock(session, directory + "-other").write().lock(soon());
  ASSERT_TRUE(ok(elsewhere));
  EXPECT_TRUE(fails_with(mine.downgrade(std::move(*elsewhere), soon()), Code::kInvalidOption));

  auto released = mine.write().lock(soon());
  ASSERT_TRUE(ok(released));
  released->release();
  EXPECT_TRUE(fails_with(mine.downgrade(std::move(*released), soon()), Code::kInvalidOption));
}

TEST_P(RwLockTest, TheDirectoryPolicyGrantsAsTheTargetedOne) {
  const auto herd = WatchPolicy::kDirectory;
  auto writer = queue_up(rw(open(), herd).write());
  ASSERT_TRUE(writer->holds());
  auto reader = queue_up(rw(open(), herd).read());
  auto targeted = queue_up(rw(open()).read());
  auto last = queue_up(rw(open(), herd).write());
  writer->lease().release();
  ASSERT_TRUE(reader->holds());
  ASSERT_TRUE(targeted->holds());
  EXPECT_FALSE(last->has_answer());
  targeted->lease().release();
  reader->lease().release();
  ASSERT_TRUE(last->holds());
  last->lease().release();
  EXPECT_TRUE(witness.is_quiet(directory));
}

/// Every wake uses up the watch on the directory and sets another.
TEST_P(RwLockTest, H29_AWaiterOfTheHerdThatWasWokenOftenLeavesNoWatchBehind) {
  auto holder = queue_up(rw(open()).write());
  ASSERT_TRUE(holder->holds());
  Proxied herded = open_proxied();
  auto waiter = queue_up(rw(herded.session, WatchPolicy::kDirectory).write());
  const TrafficFilter lists = replies_to(Op::kGetChildren);
  ASSERT_TRUE(herded.proxy->log().wait_for(lists, 1, soon()));
  for (std::size_t wakes = 1; wakes <= 3; ++wakes) {
    make_node(witness.session(), directory + "/stir-" + std::to_string(wakes));
    ASSERT_TRUE(herded.proxy->log().wait_for(lists, 1 + wakes, soon()));
  }

  waiter->cancel();
  ASSERT_FALSE(waiter->holds());
  holder->lease().release();

  EXPECT_TRUE(eventually([&] { return watches_of_all(service()) == 0; }));
}

TEST_P(RwLockTest, ATargetedReleaseWakesNobodyWhomItDoesNotConcern) {
  auto first = queue_up(rw(open()).read());
  auto second = queue_up(rw(open()).read());
  ASSERT_TRUE(first->holds());
  ASSERT_TRUE(second->holds());
  Proxied herded = open_proxied(quick(60s));
  Proxied targeted = open_proxied(quick(60s));
  auto one = queue_up(rw(herded.session, WatchPolicy::kDirectory).write());
  auto two = queue_up(rw(targeted.session).write());
  ASSERT_TRUE(targeted.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));
  targeted.proxy->log().clear();
  herded.proxy->log().clear();
  first->lease().release();
  ASSERT_TRUE(herded.proxy->log().wait_for(replies_to(Op::kGetChildren), 1, soon()));
  ASSERT_TRUE(ok(targeted.session.sync(directory, soon())));
  EXPECT_EQ(requests(*targeted.proxy), (std::vector{Op::kSync}));
}

TEST_P(RwLockTest, UnderLoadReadersShareAndWritersAreAlone) {
  std::atomic<int> readers = 0;
  std::atomic<int> writers = 0;
  std::atomic<int> bad = 0;
  std::vector<std::jthread> threads;
  const Session sessions[] = {open(), open()};
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const RwLock mine =
          rw(sessions[i % 2], i % 3 == 0 ? WatchPolicy::kDirectory : WatchPolicy::kTargeted);
      for (int round = 0; round < 15; ++round) {
        const bool writes = (round + i) % 3 == 0;
        auto lease = (writes ? mine.write() : mine.read()).lock(deadline_in(60s));
        if (!lease) {
          ++bad;
          continue;
        }
        if (!writes) {
          ++readers;
          pause_between_looks();
          bad += writers.load();
          --readers;
          continue;
        }
        bad += writers++ + readers.load();
        pause_between_looks();
        bad += readers.load();
        --writers;
        if (round % 2 != 0) continue;
        ++readers;
        auto reading = mine.downgrade(std::move(*lease), deadline_in(60s));
        pause_between_looks();
        bad += (reading ? 0 : 1) + writers.load();
        --readers;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(bad, 0);
  EXPECT_TRUE(witness.is_quiet(directory));
}

INSTANTIATE_TEST_SUITE_P(Standalone, RwLockTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, RwLockTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, RwLockTest, testing::Values(ServiceKind::kEmbedded));

}  // namespace
}  // namespace latchkey::test_support
