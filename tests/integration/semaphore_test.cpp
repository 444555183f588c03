#include "latchkey/semaphore.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include "integration/fake_server.hpp"
#include "integration/mutex_fixture.hpp"
#include "integration/watch_count.hpp"

namespace latchkey::test_support {

class SemaphoreTest : public MutexTest {
 protected:
  [[nodiscard]] Semaphore semaphore(const Session& session, std::optional<int> size = {}) const {
    return Semaphore(session, directory, {.size = size});
  }
  /// Takes permits or ends the test.
  [[nodiscard]] Lease take_permits(const Session& session, int count,
                                   std::optional<int> size = {}) const {
    auto lease = semaphore(session, size).permits(count).lock(soon());
    if (!lease) throw std::runtime_error("take_permits: " + lease.error().message());
    return std::move(*lease);
  }
  /// All directories, and nobody takes them away again.
  void make_layout(const std::string& size) {
    make_node(witness.session(), directory, size);
    for (const std::string& path : {locks, leases}) make_node(witness.session(), path);
  }
  /// Nobody holds or waits, and no watch is left on anything.
  [[nodiscard]] testing::AssertionResult is_quiet() {
    for (const std::string& part : {locks, leases}) {
      if (auto quiet = witness.is_quiet(part); !quiet) return quiet << " in " << part;
    }
    const auto watches = [] { return watches_of_all(service()); };
    if (eventually([&] { return watches() == 0; })) return testing::AssertionSuccess();
    return testing::AssertionFailure() << watches() << " watches are left somewhere";
  }
  const std::string locks = directory + "/locks";
  const std::string leases = directory + "/leases";
};

INSTANTIATE_TEST_SUITE_P(Standalone, SemaphoreTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, SemaphoreTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, SemaphoreTest, testing::Values(ServiceKind::kEmbedded));

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using wire::Op;

/// Longer than any test takes.
constexpr auto kPermitTimeout = 60s;

TEST_P(SemaphoreTest, APermitIsANodeAndAllOfOneLeaseAreMadeAtOnce) {
  Session session = open();
  auto lease = semaphore(session, 5).permits(3).lock(soon());
  ASSERT_TRUE(ok(lease));

  const std::vector<std::string> nodes = lease->nodes();
  ASSERT_EQ(nodes.size(), 3U);
  for (const std::string& node : nodes) {
    const auto stat = witness.synced().exists(node, soon());
    ASSERT_TRUE(ok(stat));
    ASSERT_TRUE(stat->has_value()) << node;
    EXPECT_EQ((*stat)->czxid, lease->token().zxid());
    EXPECT_EQ((*stat)->ephemeral_owner, session.id());
    EXPECT_THAT(node, testing::MatchesRegex(leases + "/_c_.{36}-lease-[0-9]{10}"));
  }
  EXPECT_TRUE(ok(lease->check(soon())));
  EXPECT_TRUE(witness.queue_reaches(locks, 0)) << "whoever holds is no longer in line";
  const auto stored = witness.synced().get(directory, soon());
  ASSERT_TRUE(ok(stored));
  EXPECT_EQ(stored->data, "5");

  EXPECT_TRUE(ok(lease->release(soon())));
  EXPECT_TRUE(is_quiet());
}

TEST_P(SemaphoreTest, WithPermitsFreeItCostsTwoFlushesAndSetsNoWatch) {
  Proxied one = open_proxied(quick(kPermitTimeout));  // No heartbeat, which would set one.
  make_layout("2");
  ASSERT_TRUE(ok(one.session.sync(directory, soon())));
  one.proxy->log().clear();

  Lease lease = take_permits(one.session, 2, 2);
  ASSERT_TRUE(ok(lease.release(soon())));

  EXPECT_THAT(requests(*one.proxy),
              ElementsAre(Op::kGetData, Op::kCreate2, Op::kGetChildren,  // The queue in front.
                          Op::kMulti, Op::kGetChildren, Op::kGetData,    // The permits.
                          Op::kDelete, Op::kDelete, Op::kDelete));
}

TEST_P(SemaphoreTest, H47_ReleasesInEveryOrderWakeOneAfterTheOther) {
  Session session = open();
  std::array<int, 3> order{0, 1, 2};
  do {
    SCOPED_TRACE(testing::PrintToString(order));
    std::vector<Lease> holders;
    for (int i = 0; i < 3; ++i) holders.push_back(take_permits(open(), 1, 3));
    ASSERT_TRUE(witness.queue_reaches(locks, 0)) << "or a holder is taken for the first in line";
    std::vector<std::unique_ptr<Waiter>> waiters;
    for (std::size_t i = 0; i < 3; ++i) {
      waiters.push_back(std::make_unique<Waiter>(semaphore(session).permits()));
      ASSERT_TRUE(witness.queue_reaches(locks, i + 1));
    }

    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_FALSE(waiters[i]->has_answer());
      holders[static_cast<std::size_t>(order[i])].release();
      ASSERT_TRUE(waiters[i]->holds());
    }
    EXPECT_TRUE(witness.queue_reaches(leases, 3));
    for (auto& waiter : waiters) waiter->lease().release();
    ASSERT_TRUE(is_quiet());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(SemaphoreTest, H47_OnlyTheHeadWatchesTheLeasesAndAReturnedPermitWakesNobodyElse) {
  make_layout("2");
  std::vector<Lease> holders;
  for (int i = 0; i < 2; ++i) holders.push_back(take_permits(open(), 1, 2));
  ASSERT_TRUE(witness.queue_reaches(locks, 0));
  std::vector<Proxied> sessions;
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (std::size_t i = 0; i < 4; ++i) {
    sessions.push_back(open_proxied());
    waiters.push_back(std::make_unique<Waiter>(semaphore(sessions[i].session).permits()));
    ASSERT_TRUE(witness.queue_reaches(locks, i + 1));
  }
  ASSERT_TRUE(witness.queue_reaches(leases, 3)) << "two that count, and the head's";
  // Whatever is watched and not on data is a list.
  const auto watched_lists = [&] { return watches_of_all(service()) - witness.watches_below(""); };
  EXPECT_TRUE(eventually([&] { return watched_lists() == 1; })) << watched_lists();
  const auto about_the_leases = [&](const TrafficRecord& record) {
    return record.path.starts_with(leases);
  };
  EXPECT_GT(sessions[0].proxy->log().count(about_the_leases), 0U);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(sessions[i].proxy->log().count(about_the_leases), 0U) << i;
  }

  holders[0].release();

  ASSERT_TRUE(waiters[0]->holds());
  ASSERT_TRUE(witness.queue_reaches(locks, 3));
  ASSERT_TRUE(witness.queue_reaches(leases, 3)) << "the next is the head";
  EXPECT_TRUE(eventually([&] { return watched_lists() == 1; })) << watched_lists();
  const auto is_event = [](const TrafficRecord& record) {
    return record.direction == Direction::kToClient && record.op == Op::kNotification;
  };
  for (std::size_t i = 2; i < 4; ++i) {
    EXPECT_EQ(sessions[i].proxy->log().count(is_event), 0U) << i;
    EXPECT_EQ(sessions[i].proxy->log().count(about_the_leases), 0U) << i;
  }
  for (std::size_t i = 1; i < 4; ++i) EXPECT_FALSE(waiters[i]->has_answer()) << i;
}

TEST_P(SemaphoreTest, WhatIsNoSemaphoreIsNotResized) {
  make_node(witness.session(), directory, "somebody's own words");
  make_node(witness.session(), directory + "/child");

  EXPECT_TRUE(
      fails_with(semaphore(open()).resize(3, soon()), Code::kInvalidOption, "not a semaphore"));

  EXPECT_EQ(witness.synced().get(directory, soon())->data, "somebody's own words");
}

TEST_P(SemaphoreTest, OneThatCuratorMadeCanBeGivenASize) {
  make_node(witness.session(), directory);
  make_node(witness.session(), directory + "/leases");

  EXPECT_TRUE(ok(semaphore(open()).resize(3, soon())));

  EXPECT_EQ(*semaphore(open()).size(soon()), 3);
}

TEST_P(SemaphoreTest, ATimeOutSaysWhatWasWaitedFor) {
  Session session = open();
  const Lease two = take_permits(session, 2, 3);
  EXPECT_TRUE(fails_with(semaphore(open()).permits(2).lock(deadline_in(10s)), Code::kTimedOut,
                         "2 of 3 permits are taken"));
  ASSERT_TRUE(witness.queue_reaches(locks, 0)) << "whoever gave up has left";
  ASSERT_TRUE(witness.queue_reaches(leases, 2));
  Waiter first(semaphore(open()).permits(2));
  ASSERT_TRUE(witness.queue_reaches(leases, 4));
  const std::string ahead = witness.queue(locks).at(0);

  EXPECT_TRUE(fails_with(semaphore(open()).permits().lock(deadline_in(10s)), Code::kTimedOut,
                         "still behind " + ahead));
}

TEST_P(SemaphoreTest, ALargeRequestIsNotOvertakenBySmallOnes) {
  Session session = open();
  Lease three = take_permits(session, 3, 4);
  Waiter two(semaphore(open()).permits(2));
  ASSERT_TRUE(witness.queue_reaches(leases, 5));
  Waiter one(semaphore(open()).permits(1));
  ASSERT_TRUE(witness.queue_reaches(locks, 2));

  EXPECT_TRUE(fails_with(semaphore(session).permits().try_lock(), Code::kBusy));
  EXPECT_FALSE(one.has_answer());
  three.release();

  ASSERT_TRUE(two.holds());
  ASSERT_TRUE(one.holds());
  EXPECT_TRUE(witness.queue_reaches(leases, 3));
}

TEST_P(SemaphoreTest, H46_UnderLoadThereAreNeverMorePermitsOutThanThereAre) {
  constexpr int kSize = 4;
  constexpr int kHolds = 15;
  std::atomic<int> out = 0;
  std::atomic<int> excesses = 0;
  std::atomic<int> holds = 0;
  {
    std::vector<std::jthread> callers;
    for (const int weight : {3, 2, 1, 4, 2}) {
      callers.emplace_back([&, weight, session = open()] {
        const Lock lock = semaphore(session, kSize).permits(weight);
        for (int i = 0; i < kHolds; ++i) {
          auto lease = lock.lock(deadline_in(60s));
          ASSERT_TRUE(ok(lease));
          if ((out += weight) > kSize) ++excesses;
          ++holds;
          pause_between_looks();
          out -= weight;
        }
      });
    }
  }
  EXPECT_EQ(excesses, 0);
  EXPECT_EQ(holds, 5 * kHolds);
  EXPECT_TRUE(is_quiet());
}

TEST_P(SemaphoreTest, ThreadsOfOneSessionShareThePermitsLikeStrangers) {
  Session session = open();
  Lease first = take_permits(session, 1, 2);
  const Lease second = take_permits(session, 1, 2);
  Waiter third(semaphore(session).permits());
  ASSERT_TRUE(witness.queue_reaches(leases, 3));
  EXPECT_FALSE(third.has_answer());

  first.release();

  EXPECT_TRUE(third.holds());
}

TEST_P(SemaphoreTest, TryLockThatIsBusyLeavesNothingBehind) {
  Session session = open();
  const Lease holder = take_permits(session, 2, 3);
  ASSERT_TRUE(witness.queue_reaches(locks, 0));

  EXPECT_TRUE(fails_with(semaphore(open()).permits(2).try_lock(), Code::kBusy, "2 of 3"));
  EXPECT_TRUE(witness.is_quiet(locks));
  EXPECT_TRUE(witness.queue_reaches(leases, 2));
  auto last = semaphore(open()).permits(1).try_lock();
  EXPECT_TRUE(ok(last));
}

// The size.

TEST_P(SemaphoreTest, H46_AnotherSizeIsRefusedAndChangesNothing) {
  const Lease holder = take_permits(open(), 1, 3);

  const auto other = semaphore(open(), 5).permits().lock(soon());

  EXPECT_TRUE(fails_with(other, Code::kSizeMismatch, "has 3 permits, the caller says 5"));
  EXPECT_THAT(other.error().message(), HasSubstr(directory));
  EXPECT_TRUE(witness.is_quiet(locks));
  EXPECT_EQ(witness.queue(leases).size(), 1U);
  const auto size = semaphore(open()).size(soon());
  ASSERT_TRUE(ok(size));
  EXPECT_EQ(*size, 3);
}

TEST_P(SemaphoreTest, H46_WhatAQueueLeftAtThePathIsNoSize) {
  for (const char* left : {"left 4294967418", "held 4294967302", "gone 4294967302"}) {
    SCOPED_TRACE(left);
    const std::string path = fresh_path();
    make_node(witness.session(), path, left);

    auto held = Semaphore(open(), path, {.size = 2}).permits(2).lock(soon());
    ASSERT_TRUE(ok(held));
    const auto other = Semaphore(open(), path, {.size = 5}).permits(3).lock(soon());

    EXPECT_TRUE(fails_with(other, Code::kSizeMismatch, "has 2 permits, the caller says 5"));
  }
}

TEST_P(SemaphoreTest, H46_AWrongSizeIsRefusedWithoutWaitingInLine) {
  const Lease holder = take_permits(open(), 1, 1);
  Waiter head(semaphore(open()).permits());
  ASSERT_TRUE(witness.queue_reaches(leases, 2));

  EXPECT_TRUE(fails_with(semaphore(open(), 2).permits().lock(soon()), Code::kSizeMismatch));
  EXPECT_FALSE(head.has_answer());
}

TEST_P(SemaphoreTest, H46_OfTwoWhoComeFirstWithDifferentSizesOneIsRefused) {
  const std::array sessions{open(), open()};
  for (int round = 0; round < 10; ++round) {
    const std::string path = fresh_path();
    if (round % 2 == 1) make_node(witness.session(), path);  // Where another lock was.
    std::array<std::future<Result<Lease>>, 2> answers;
    for (std::size_t i = 0; i < 2; ++i) {
      const Semaphore one(sessions[i], path, {.size = static_cast<int>(i) + 2});
      answers[i] = one.permits().lock_async(soon()).future();
    }
    int refused = 0;
    // Held until both have their answer: without a holder the size goes, too.
    const std::array<Result<Lease>, 2> told{answers[0].get(), answers[1].get()};
    for (const Result<Lease>& lease : told) {
      if (lease) continue;
      ++refused;
      EXPECT_TRUE(fails_with(lease, Code::kSizeMismatch));
    }
    EXPECT_EQ(refused, 1);
  }
}

TEST_P(SemaphoreTest, WithoutASizeAnywhereNothingIsMade) {
  const auto lease = semaphore(open()).permits().lock(soon());

  EXPECT_TRUE(fails_with(lease, Code::kInvalidOption, "SemaphoreOptions::size"));
  const auto node = witness.synced().exists(directory, soon());
  ASSERT_TRUE(ok(node));
  EXPECT_FALSE(node->has_value());
  EXPECT_TRUE(fails_with(semaphore(open()).resize(3, soon()), Code::kNoNode, directory));
  const auto size = semaphore(open()).size(soon());
  ASSERT_TRUE(ok(size));
  EXPECT_EQ(*size, std::nullopt);
}

TEST_P(SemaphoreTest, NonsenseIsRefusedBeforeAnythingIsSent) {
  Session session = open();
  EXPECT_TRUE(fails_with(semaphore(session, 0).permits().try_lock(), Code::kInvalidOption));
  EXPECT_TRUE(fails_with(semaphore(session, 3).permits(0).try_lock(), Code::kInvalidOption));
  EXPECT_TRUE(
      fails_with(semaphore(session, 3).permits(4).try_lock(), Code::kInvalidOption, "its size"));
  EXPECT_TRUE(fails_with(semaphore(session, 3).resize(0, soon()), Code::kInvalidOption));
  const Semaphore nowhere(session, "pools", {.size = 1});
  EXPECT_TRUE(fails_with(nowhere.permits().try_lock(), Code::kInvalidPath));
  EXPECT_TRUE(witness.queue(directory).empty());
}

TEST_P(SemaphoreTest, MoreThanThereIsIsRefusedAndNotWaitedFor) {
  const Lease holder = take_permits(open(), 1, 2);

  const auto three = semaphore(open()).permits(3).lock(soon());

  EXPECT_TRUE(fails_with(three, Code::kInvalidOption, "3 permits are asked for"));
}

TEST_P(SemaphoreTest, H48_ALargerSizeLetsSeveralInAtOnce) {
  Session session = open();
  const Lease holder = take_permits(session, 1, 1);
  ASSERT_TRUE(witness.queue_reaches(locks, 0));
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (std::size_t i = 0; i < 3; ++i) {
    waiters.push_back(std::make_unique<Waiter>(semaphore(open()).permits()));
    ASSERT_TRUE(witness.queue_reaches(locks, i + 1));
  }
  ASSERT_TRUE(witness.queue_reaches(leases, 2));

  ASSERT_TRUE(ok(semaphore(session).resize(3, soon())));

  EXPECT_TRUE(waiters[0]->holds());
  EXPECT_TRUE(waiters[1]->holds());
  EXPECT_TRUE(witness.queue_reaches(leases, 4)) << "the last one waits as the head";
  EXPECT_FALSE(waiters[2]->has_answer());
  EXPECT_TRUE(fails_with(semaphore(session, 1).permits().try_lock(), Code::kSizeMismatch));
}

TEST_P(SemaphoreTest, H48_ASmallerSizeEvictsNobodyAndHoldsBackTheNext) {
  Session session = open();
  std::vector<Lease> holders;
  for (int i = 0; i < 3; ++i) holders.push_back(take_permits(session, 1, 3));
  Waiter waiter(semaphore(open()).permits());
  ASSERT_TRUE(witness.queue_reaches(leases, 4));

  ASSERT_TRUE(ok(semaphore(session).resize(1, soon())));
  for (Lease& holder : holders) {
    EXPECT_FALSE(waiter.has_answer());
    EXPECT_TRUE(ok(holder.check(soon())));
    ASSERT_TRUE(ok(holder.release(soon())));
  }

  EXPECT_TRUE(waiter.holds());
}

TEST_P(SemaphoreTest, H48_ASizeThatFallsBelowWhatTheHeadWantsEndsItsWait) {
  Session session = open();
  const Lease holder = take_permits(session, 2, 3);
  Waiter three(semaphore(open()).permits(3));
  ASSERT_TRUE(witness.queue_reaches(leases, 5));
  Waiter one(semaphore(open(), 3).permits(1));
  ASSERT_TRUE(witness.queue_reaches(locks, 2));

  ASSERT_TRUE(ok(semaphore(session).resize(2, soon())));

  ASSERT_FALSE(three.holds());
  EXPECT_TRUE(fails_with(three.answer(), Code::kInvalidOption, "has 2"));
  EXPECT_TRUE(witness.queue_reaches(leases, 3)) << "the next one is the head";
  EXPECT_FALSE(one.has_answer()) << "it agreed with the size of its day, and goes along";
}

TEST_P(SemaphoreTest, H76_TheSizeIsReadBehindASyncInOneFlush) {
  Proxied one = open_proxied();
  make_layout("4");
  one.proxy->log().clear();

  const auto size = semaphore(one.session).size(soon());

  ASSERT_TRUE(ok(size));
  EXPECT_EQ(*size, 4);
  std::vector<TrafficRecord> sent;
  for (const TrafficRecord& record : one.proxy->log().records()) {
    if (requests_of(record.op)(record) && record.path == directory) sent.push_back(record);
  }
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].op, Op::kSync);
  EXPECT_EQ(sent[1].op, Op::kGetData);
  EXPECT_EQ(sent[0].flush, sent[1].flush);
}

TEST(SemaphoreSize, H76_WithoutTheSyncWhatWasReadIsNoAnswer) {
  FakeServer server([](FakeServer::Guest& guest, int) {
    if (!guest.greet()) return;
    while (const auto request = guest.next_request()) {
      const bool is_read = request->op == Op::kGetData;
      guest.send(is_read ? reply_frame(request->xid, wire::Err::kOk, wire::GetDataReply{"4", {}})
                         : reply_frame(request->xid, wire::Err::kNoAuth));
    }
  });
  const Session session = open_session(server.connect_string(), quick());

  EXPECT_TRUE(fails_with(Semaphore(session, "/pool").size(soon()), Code::kNotAuthorized, "/pool"));
}

TEST_P(SemaphoreTest, OneThatCuratorMadeIsJoinedWithAWarning) {
  const std::string other = "/_c_01234567-89ab-4def-8123-456789abcdef-lease-";
  make_layout("");
  const auto theirs = witness.session().create(
      leases + other, "", {.lifetime = Lifetime::kEphemeral, .naming = Naming::kSequential},
      soon());
  ASSERT_TRUE(ok(theirs));
  const Recorder<std::string> log;
  SessionOptions options = patient();
  options.log = [log](LogLevel level, std::string_view text) {
    if (level == LogLevel::kWarning) log.add(std::string(text));
  };
  const Semaphore ours(open(std::move(options)), directory, {.size = 2});

  auto lease = ours.permits().lock(soon());
  ASSERT_TRUE(ok(lease));
  ASSERT_TRUE(log.wait_for(1));
  EXPECT_THAT(log.last(), HasSubstr("no size is stored at " + directory));
  Waiter second(ours.permits());
  ASSERT_TRUE(witness.queue_reaches(leases, 3));
  EXPECT_FALSE(second.has_answer());
  EXPECT_TRUE(fails_with(semaphore(open()).permits().try_lock(), Code::kInvalidOption));
  ASSERT_TRUE(ok(witness.session().remove(theirs->path, soon())));

  EXPECT_TRUE(second.holds());
  const auto data = witness.synced().get(directory, soon());
  ASSERT_TRUE(ok(data));
  EXPECT_EQ(data->data, "") << "nothing is written behind its back";
  EXPECT_EQ(log.size(), 1U);
}

// Ways to end.

TEST_P(SemaphoreTest, H06_AWaiterThatGivesUpLeavesNothing) {
  Session session = open();
  Lease holder = take_permits(session, 2, 2);
  for (const bool as_head : {true, false}) {
    SCOPED_TRACE(as_head);
    std::optional<Waiter> head;
    if (!as_head) {
      head.emplace(semaphore(open()).permits());
      ASSERT_TRUE(witness.queue_reaches(leases, 3));
    }
    Waiter waiter(semaphore(open()).permits(2));
    ASSERT_TRUE(witness.queue_reaches(locks, as_head ? 1 : 2));
    ASSERT_TRUE(witness.queue_reaches(leases, as_head ? 4 : 3));

    waiter.cancel();

    ASSERT_FALSE(waiter.holds());
    EXPECT_TRUE(fails_with(waiter.answer(), Code::kCancelled, directory));
    EXPECT_TRUE(witness.queue_reaches(locks, as_head ? 0 : 1));
    EXPECT_TRUE(witness.queue_reaches(leases, as_head ? 2 : 3));
  }
  holder.release();
  EXPECT_TRUE(is_quiet());
}

TEST_P(SemaphoreTest, H06_AHeadThatRunsOutOfTimeMakesRoomForTheNext) {
  Session session = open();
  const Lease holder = take_permits(session, 1, 2);
  const Session late = open();
  Waiter two(semaphore(late).permits(2), deadline_in(10s));
  ASSERT_TRUE(witness.queue_reaches(leases, 3));
  Waiter one(semaphore(open()).permits());

  ASSERT_TRUE(one.holds(deadline_in(60s)));
  ASSERT_FALSE(two.holds());
  EXPECT_TRUE(fails_with(two.answer(), Code::kTimedOut));
}

TEST_P(SemaphoreTest, H05_LosingOnePermitIsLosingAll) {
  Session session = open(quick(kPermitTimeout));
  Lease lease = take_permits(session, 3, 3);
  Waiter waiter(semaphore(open()).permits(3));
  ASSERT_TRUE(witness.queue_reaches(leases, 6));
  // It watches its nodes from the first heartbeat on, or when somebody wants to be told.
  static_cast<void>(lease.release_requested());
  ASSERT_TRUE(eventually([&] { return service().watches_of(session.id()) == 3; }));

  ASSERT_TRUE(ok(witness.session().remove(lease.nodes()[1], soon())));

  ASSERT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_EQ(lease.state(), LeaseState::kLost);
  EXPECT_TRUE(waiter.holds()) << "the others are given up";
  EXPECT_TRUE(witness.queue_reaches(leases, 3));
}

TEST_P(SemaphoreTest, H05_AHeadWhosePermitIsDeletedGetsAnError) {
  Session session = open();
  const Lease holder = take_permits(session, 2, 2);
  Waiter head(semaphore(open()).permits(2));
  ASSERT_TRUE(witness.queue_reaches(leases, 4));

  ASSERT_TRUE(ok(witness.session().remove(leases + "/" + witness.queue(leases)[3], soon())));

  ASSERT_FALSE(head.holds());
  EXPECT_TRUE(fails_with(head.answer(), Code::kLost));
  EXPECT_TRUE(witness.queue_reaches(leases, 2));
}

TEST_P(SemaphoreTest, AWishToLetGoReachesTheHolder) {
  Session session = open();
  const Lease lease = take_permits(session, 2, 2);
  const std::stop_token asked = lease.release_requested();

  ASSERT_TRUE(ok(witness.session().set(lease.nodes()[1], "__REVOKE__", soon())));

  EXPECT_TRUE(eventually([&] { return asked.stop_requested(); }));
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
}

TEST_P(SemaphoreTest, H47_ThePermitsOfACrashedHolderComeBack) {
  Proxied doomed = open_proxied(quick(10s));
  const Lease lease = take_permits(doomed.session, 2, 3);
  Waiter waiter(semaphore(open()).permits(3));
  ASSERT_TRUE(witness.queue_reaches(leases, 5));

  doomed.proxy->hold(Hold::kBoth);

  EXPECT_TRUE(waiter.holds(deadline_in(60s)));
  EXPECT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
}

TEST_P(SemaphoreTest, H47_AHeadThatCrashesDoesNotHoldUpTheNext) {
  const Lease holder = take_permits(open(), 1, 2);
  Proxied doomed = open_proxied(quick(10s));
  Waiter head(semaphore(doomed.session).permits(2));
  ASSERT_TRUE(witness.queue_reaches(leases, 3));
  Waiter next(semaphore(open()).permits());
  ASSERT_TRUE(witness.queue_reaches(locks, 2));

  doomed.proxy->hold(Hold::kBoth);

  EXPECT_TRUE(next.holds(deadline_in(60s)));
}

TEST_P(SemaphoreTest, H09_ALeaseThatEndsByTheClockIsGivenUpIfTheSessionSurvives) {
  Proxied one = open_proxied(quick(10s));
  const Lease lease = take_permits(one.session, 2, 2);
  one.proxy->hold(Hold::kToServer);
  ASSERT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));

  one.proxy->release();
  one.proxy->disarm_all();

  EXPECT_TRUE(witness.queue_reaches(leases, 0));
  EXPECT_TRUE(is_quiet());
}

TEST_P(SemaphoreTest, H12_AHeadWaitsOnThroughASilenceLongerThanItsLease) {
  Proxied one = open_proxied(quick(20s));  // What is left of it behind the lease is for us.
  const Lease gauge = take(one.session, directory + "-gauge");
  Lease holder = take_permits(open(), 1, 1);
  Waiter head(semaphore(one.session).permits());
  ASSERT_TRUE(witness.queue_reaches(leases, 2));
  one.proxy->hold(Hold::kToServer);
  ASSERT_TRUE(eventually([&] { return gauge.state() == LeaseState::kLost; }));
  EXPECT_FALSE(head.has_answer());

  one.proxy->release();
  holder.release();

  ASSERT_TRUE(head.holds());
  EXPECT_EQ(head.lease().state(), LeaseState::kHeld);
}

// Faults at exact messages.

TEST_P(SemaphoreTest, H01_PermitsWhoseReplyIsLostAreFoundAndAdopted) {
  Proxied one = open_proxied(quick(kPermitTimeout));
  const Lease other = take_permits(open(), 1, 4);
  const int cut = one.proxy->cut_after_request(Op::kMulti);

  Lease lease = take_permits(one.session, 3, 4);

  EXPECT_EQ(one.proxy->fired(cut), 1);
  EXPECT_EQ(count(*one.proxy, Op::kMulti), 1U);
  EXPECT_EQ(witness.queue(leases).size(), 4U);
  EXPECT_TRUE(ok(lease.check(soon())));
  const auto stat = witness.synced().exists(lease.node(), soon());
  EXPECT_EQ(lease.token().zxid(), (*stat)->czxid);
  EXPECT_TRUE(ok(lease.release(soon())));
  EXPECT_TRUE(witness.queue_reaches(leases, 1));
}

TEST_P(SemaphoreTest, H02_TheSearchForLostPermitsStandsBehindASync) {
  Proxied one = open_proxied(quick(kPermitTimeout));
  make_layout("2");
  ASSERT_TRUE(ok(one.session.sync(directory, soon())));
  one.proxy->log().clear();
  one.proxy->cut_before_reply(Op::kMulti);

  const Lease lease = take_permits(one.session, 2, 2);

  EXPECT_TRUE(ok(lease.check(soon())));
  const auto sent = requests(*one.proxy);
  const auto multi = std::find(sent.begin(), sent.end(), Op::kMulti);
  EXPECT_THAT(std::vector<Op>(multi, std::find(multi, sent.end(), Op::kExists)),
              ElementsAre(Op::kMulti, Op::kGetChildren, Op::kGetData, Op::kSync, Op::kGetChildren));
}

TEST_P(SemaphoreTest, H06_ACutAtEveryMessageEndsInOneGrantOrNothing) {
  using Cut = int (FaultProxy::*)(const Match&);
  for (const Cut cut : {&FaultProxy::cut_before_request, &FaultProxy::cut_after_request,
                        &FaultProxy::cut_before_reply, &FaultProxy::cut_after_reply}) {
    for (const Op op : {Op::kGetData, Op::kCreate2, Op::kGetChildren, Op::kMulti, Op::kDelete}) {
      SCOPED_TRACE(testing::Message() << "op " << static_cast<int>(op));
      Proxied one = open_proxied(quick(kPermitTimeout));
      Lease holder = take_permits(open(), 1, 2);
      (one.proxy.get()->*cut)(op);

      Waiter waiter(semaphore(one.session, 2).permits(2));
      ASSERT_TRUE(witness.queue_reaches(leases, 3));
      EXPECT_FALSE(waiter.has_answer());
      holder.release();

      ASSERT_TRUE(waiter.holds());
      EXPECT_EQ(witness.queue(leases).size(), 2U);
      EXPECT_TRUE(ok(waiter.lease().release(soon())));
      ASSERT_TRUE(is_quiet());
    }
  }
}

TEST_P(SemaphoreTest, H06_AWaiterThatGivesUpWhileItsPermitsAreInDoubtLeavesNothing) {
  make_layout("2");  // Or a queue in front that is reaped meanwhile is made anew, behind a sync.
  Proxied one = open_proxied(quick(kPermitTimeout));
  Lease holder = take_permits(open(), 1, 2);
  // Or it would stop at a sync of its own, before it has any permits.
  ASSERT_TRUE(ok(one.session.sync(directory, soon())));
  one.proxy->cut_after_request(Op::kMulti);
  one.proxy->stop_at_request(Match(Op::kSync).on(directory));
  Waiter waiter(semaphore(one.session).permits(2));
  ASSERT_TRUE(witness.queue_reaches(leases, 3));

  waiter.cancel();
  ASSERT_FALSE(waiter.holds());
  EXPECT_TRUE(fails_with(waiter.answer(), Code::kCancelled));
  one.proxy->disarm_all();
  one.proxy->release();

  EXPECT_TRUE(witness.queue_reaches(leases, 1));
  holder.release();
  EXPECT_TRUE(is_quiet());
}

TEST_P(SemaphoreTest, H32_AnEventLostWithItsConnectionIsMadeUpFor) {
  make_layout("1");  // Or it is reaped as soon as it is empty, and there is nothing to resize.
  for (const auto fault : {&FaultProxy::cut_before_reply, &FaultProxy::cut_after_reply}) {
    for (const bool by_size : {false, true}) {
      Proxied one = open_proxied(quick(kPermitTimeout));
      Lease holder = take_permits(open(), 1, 1);
      ASSERT_TRUE(witness.queue_reaches(locks, 0));          // Or it would wait in line.
      ASSERT_TRUE(ok(one.session.sync(directory, soon())));  // Or it would look twice.
      Waiter waiter(semaphore(one.session).permits());
      ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetData), 3, soon()));
      const int cut = (one.proxy.get()->*fault)(Op::kNotification);

      if (by_size) {
        ASSERT_TRUE(ok(semaphore(witness.session()).resize(2, soon())));
      } else {
        holder.release();
      }

      ASSERT_TRUE(waiter.holds());
      EXPECT_TRUE(one.proxy->wait_until_fired(cut));
      waiter.lease().release();
      holder.release();
      ASSERT_TRUE(is_quiet());
      ASSERT_TRUE(ok(semaphore(witness.session()).resize(1, soon())));
    }
  }
}

}  // namespace
}  // namespace latchkey::test_support
