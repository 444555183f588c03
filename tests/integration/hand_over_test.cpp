#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"

/// Passing a lock on within a process (H70), and waiting after a holder that vanished (H73).
namespace latchkey::test_support {
namespace {

using wire::Op;

/// A lock that has been asked for when the constructor returns, and is in line locally.
class Asked {
 public:
  explicit Asked(const Lock& lock) : future_(lock.lock_async(deadline_in(60s)).future()) {}

  [[nodiscard]] bool has_answer() const {
    return answer_ || future_.wait_for(0s) == std::future_status::ready;
  }
  [[nodiscard]] testing::AssertionResult holds() { return ok(answer()); }
  [[nodiscard]] Result<Lease>& answer() {
    if (!answer_) answer_.emplace(future_.get());
    return *answer_;
  }
  [[nodiscard]] Lease& lease() { return *answer(); }

 private:
  std::future<Result<Lease>> future_;
  std::optional<Result<Lease>> answer_;
};

class HandOverTest : public MutexTest {
 protected:
  [[nodiscard]] Mutex passing(const Session& session, int count = 16,
                              std::chrono::milliseconds time = 60s) const {
    return Mutex(session, directory, {.hand_over = {.count = count, .time = time}});
  }
};

TEST_P(HandOverTest, H70_ThreadsOfOneSessionPassTheLockOnWithoutAWrite) {
  Proxied one = open_proxied();
  auto first = passing(one.session).lock(soon());
  ASSERT_TRUE(ok(first));
  // Two mutexes on one path and session share: nobody else is in the queue.
  Asked second(passing(one.session));
  Asked third(passing(one.session));
  ASSERT_TRUE(ok(one.session.sync("/", soon())));
  EXPECT_EQ(witness.queue(directory).size(), 1U);
  one.proxy->log().clear();
  const Token before = first->token();
  EXPECT_EQ(first->release(), Released::kStillHeld);
  ASSERT_TRUE(second.holds());
  EXPECT_GT(second.lease().token(), before);
  EXPECT_EQ(second.lease().token().zxid(), before.zxid());
  EXPECT_EQ(second.lease().token().hold(), 1U);
  EXPECT_FALSE(third.has_answer());
  second.lease().release();
  ASSERT_TRUE(third.holds());
  EXPECT_EQ(third.lease().token().hold(), 2U);
  EXPECT_EQ(count(*one.proxy, Op::kDelete) + count(*one.proxy, Op::kCreate2), 0U);
  third.lease().release();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(HandOverTest, H70_OnlyThoseWhoseEntriesWouldBeAlikeShareOne) {
  const Session session = open();
  const MutexOptions plain{.hand_over = {.count = 16, .time = 60s}};
  MutexOptions other_tags = plain;
  other_tags.extra_tags = {"-theirs-"};
  MutexOptions other_acl = plain;
  other_acl.acl = {{kAllPermissions, "ip", "127.0.0.1"}};
  MutexOptions other_parent = plain;
  other_parent.parent = Parent::kPersistent;
  auto first = Mutex(session, directory, plain).lock(soon());
  ASSERT_TRUE(ok(first));

  Asked tags(Mutex(session, directory, other_tags));
  EXPECT_TRUE(witness.queue_reaches(directory, 2));
  Asked acl(Mutex(session, directory, other_acl));
  EXPECT_TRUE(witness.queue_reaches(directory, 3));
  Asked parent(Mutex(session, directory, other_parent));
  EXPECT_TRUE(witness.queue_reaches(directory, 4));

  first->release();
  for (Asked* next : {&tags, &acl, &parent}) {
    ASSERT_TRUE(next->holds());
    EXPECT_EQ(next->lease().token().hold(), 0U);
    next->lease().release();
  }
}

TEST_P(HandOverTest, H70_AfterTheLastPassOthersGetTheirTurn) {
  const Session session = open();
  auto first = passing(session, 2).lock(soon());
  ASSERT_TRUE(ok(first));
  Waiter stranger(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  Asked second(passing(session, 2));
  Asked third(passing(session, 2));
  first->release();
  ASSERT_TRUE(second.holds());
  EXPECT_FALSE(stranger.has_answer());
  second.lease().release();
  ASSERT_TRUE(stranger.holds());
  EXPECT_FALSE(third.has_answer());
  stranger.lease().release();
  ASSERT_TRUE(third.holds());
  EXPECT_GT(third.lease().token(), stranger.lease().token());
}

TEST_P(HandOverTest, H70_TimeEndsARunAsWell) {
  const Session session = open();
  auto first = passing(session, 1000, 0ms).lock(soon());
  ASSERT_TRUE(ok(first));
  Waiter stranger(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  Asked second(passing(session, 1000, 0ms));
  first->release();
  ASSERT_TRUE(stranger.holds());
  EXPECT_FALSE(second.has_answer());
  stranger.lease().release();
  ASSERT_TRUE(second.holds());
}

TEST_P(HandOverTest, H70_TwoSessionsOfEightThreadsTakeBoundedTurnsAndTokensGrow) {
  // What a session may do in a row is counted by the other's waiting.
  constexpr int kLimit = 4;
  const Session sessions[] = {open(), open()};
  std::mutex record;
  std::vector<std::pair<int, Token>> holds;
  std::atomic<int> inside = 0;
  std::atomic<int> bad = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      const Mutex mine = passing(sessions[i % 2], kLimit);
      for (int round = 0; round < 12; ++round) {
        auto lease = mine.lock(deadline_in(60s));
        if (!lease || inside++ != 0) ++bad;
        if (!lease) continue;
        {
          const std::lock_guard guard(record);
          holds.emplace_back(i % 2, lease->token());
        }
        pause_between_looks();
        --inside;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(bad, 0);
  int run = 0;
  for (std::size_t i = 1; i < holds.size(); ++i) {
    EXPECT_LT(holds[i - 1].second, holds[i].second);
    const bool same_entry = holds[i - 1].second.zxid() == holds[i].second.zxid();
    run = same_entry ? run + 1 : 1;
    EXPECT_LE(run, kLimit);
  }
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(HandOverTest, H70_OneThatComesBackAtOnceForEverStarvesNobody) {
  const Session session = open();
  const Mutex mine = passing(session, 1'000'000);
  std::atomic<int> bad = 0;
  const auto take_once = [&](Token& last) {
    auto lease = mine.lock(deadline_in(60s));
    if (!lease || lease->token() <= last) ++bad;
    if (lease) last = lease->token();
  };
  std::jthread greedy([&](const std::stop_token& stop) {
    for (Token last{0}; !stop.stop_requested();) take_once(last);
  });

  // Threads of their own: a lock that is kept for a moment goes to a newcomer first, so the order
  // of two requests is not known, and each must let go without the other.
  std::vector<std::jthread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      Token last{0};
      for (int round = 0; round < 100; ++round) take_once(last);
    });
  }
  others.clear();

  greedy.request_stop();
  greedy.join();
  EXPECT_EQ(bad, 0);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(HandOverTest, H70_OneThatDoesNotComeBackKeepsTheLockFromNobody) {
  const Session session = open();
  auto first = passing(session).lock(soon());
  ASSERT_TRUE(ok(first));
  std::vector<Asked> waiters;
  for (int i = 0; i < 8; ++i) waiters.emplace_back(passing(session));
  first->release();
  for (Asked& waiter : waiters) {
    ASSERT_TRUE(waiter.holds());
    // Somebody comes at once, as a rule, and so is expected to the next time; and is gone again.
    waiter.lease().release();
    std::stop_source stop;
    auto comes = passing(session).lock_async(deadline_in(60s), stop.get_token()).future();
    stop.request_stop();
    static_cast<void>(comes.get());
  }
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(HandOverTest, H70_AnEndedSessionGrantsNothingToItsLocalWaiters) {
  Session session = open();
  auto first = passing(session).lock(soon());
  ASSERT_TRUE(ok(first));
  std::vector<Asked> waiters;
  for (int i = 0; i < 5; ++i) waiters.emplace_back(passing(session));
  ASSERT_TRUE(ok(session.close(soon())));
  for (Asked& waiter : waiters) EXPECT_TRUE(fails_with(waiter.answer(), Code::kClosed));
  EXPECT_EQ(first->state(), LeaseState::kLost);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(HandOverTest, H70_AnExpiredSessionGrantsNothingToItsLocalWaiters) {
  Proxied one = open_proxied(quick(10s));
  auto first = passing(one.session).lock(soon());
  ASSERT_TRUE(ok(first));
  std::vector<Asked> waiters;
  for (int i = 0; i < 5; ++i) waiters.emplace_back(passing(one.session));
  one.proxy->hold(Hold::kBoth);
  ASSERT_TRUE(witness.is_quiet(directory)) << "the server has expired the session";
  one.proxy->cut_all();
  one.proxy->release();
  for (Asked& waiter : waiters) EXPECT_TRUE(fails_with(waiter.answer(), Code::kSessionLost));
  EXPECT_EQ(first->state(), LeaseState::kLost);
}

TEST_P(HandOverTest, H70_AGuardCannotTellLocalHoldsApartAndSaysSo) {
  const Session session = open();
  auto lease = passing(session).lock(soon());
  ASSERT_TRUE(ok(lease));
  Multi multi;
  EXPECT_TRUE(fails_with(lease->guard(multi), Code::kInvalidOption, "token"));
}

TEST_P(HandOverTest, H70_ALostEntryIsNotPassedOn) {
  const Session session = open();
  auto first = passing(session).lock(soon());
  ASSERT_TRUE(ok(first));
  static_cast<void>(first->release_requested());  // Watch the node now.
  Asked second(passing(session));
  ASSERT_TRUE(ok(witness.session().remove(first->node(), soon())));
  ASSERT_TRUE(second.holds()) << "queued anew";
  EXPECT_EQ(first->state(), LeaseState::kLost);
  EXPECT_NE(second.lease().node(), first->node());
  EXPECT_GT(second.lease().token().zxid(), first->token().zxid());
}

TEST_P(HandOverTest, LocalWaitersTimeOutAndAreCancelledByThemselves) {
  const Session session = open();
  auto first = passing(session).lock(soon());
  ASSERT_TRUE(ok(first));
  EXPECT_TRUE(fails_with(passing(session).lock(deadline_in(50ms)), Code::kTimedOut));
  EXPECT_TRUE(fails_with(passing(session).try_lock(), Code::kBusy));
  first->release();
  EXPECT_TRUE(witness.is_quiet(directory));

  const Lease stranger = take(open(), directory);
  EXPECT_TRUE(fails_with(passing(session).try_lock(), Code::kBusy));
  EXPECT_TRUE(fails_with(passing(session).lock(deadline_in(50ms)), Code::kTimedOut));
  EXPECT_TRUE(witness.queue_reaches(directory, 1));
}

TEST_P(HandOverTest, ARequestToLetGoEndsTheRun) {
  const Session session = open();
  auto first = passing(session).lock(soon());
  ASSERT_TRUE(ok(first));
  const std::stop_token asked = first->release_requested();
  Waiter stranger(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  Asked second(passing(session));
  ASSERT_TRUE(ok(witness.session().set(first->node(), "__REVOKE__", soon())));
  ASSERT_TRUE(eventually([&] { return asked.stop_requested(); }));
  first->release();
  ASSERT_TRUE(stranger.holds());
  EXPECT_FALSE(second.has_answer());
}

// ---- Lock delay ---------------------------------------------------------------------------------

class LockDelayTest : public MutexTest {
 protected:
  static constexpr std::chrono::milliseconds kDelay = 700ms;
  [[nodiscard]] Mutex delayed(const Session& session,
                              std::chrono::milliseconds delay = kDelay) const {
    return Mutex(session, directory, {.lock_delay = delay});
  }
  /// A holder whose session ends without a word from it to the lock.
  void hold_and_vanish() {
    Session session = open();
    auto lease = delayed(session).lock(soon());
    ASSERT_TRUE(ok(lease));
    ASSERT_TRUE(ok(session.close(soon())));
  }
};

TEST_P(LockDelayTest, H73_AfterAHolderThatVanishedTheNextOneWaits) {
  hold_and_vanish();
  const Instant vanished = BootClock::now();
  auto next = delayed(open()).lock(soon());
  ASSERT_TRUE(ok(next));
  EXPECT_GE(BootClock::now() - vanished, kDelay);
  EXPECT_TRUE(ok(next->check(soon())));
}

TEST_P(LockDelayTest, H73_AfterAHolderThatLetGoNobodyWaits) {
  const Session session = open();
  // A delay that no test would survive.
  auto first = delayed(session, 1h).lock(soon());
  ASSERT_TRUE(ok(first));
  Waiter next(delayed(open(), 1h));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  first->release();
  ASSERT_TRUE(next.holds());
  EXPECT_GT(next.lease().token(), first->token());
}

TEST_P(LockDelayTest, H73_WhoeverGivesUpDuringTheDelayLeavesItToTheNext) {
  hold_and_vanish();
  EXPECT_TRUE(fails_with(delayed(open(), 1h).lock(deadline_in(100ms)), Code::kTimedOut));
  EXPECT_TRUE(witness.queue(directory).empty() || witness.is_quiet(directory));
  EXPECT_TRUE(fails_with(delayed(open(), 1h).lock(deadline_in(100ms)), Code::kTimedOut));
  EXPECT_TRUE(witness.is_quiet(directory));
  EXPECT_TRUE(ok(delayed(open()).lock(soon())));
}

TEST_P(LockDelayTest, H73_AnEntryDeletedDuringTheDelayIsLost) {
  hold_and_vanish();
  Waiter next(delayed(open(), 1h));
  ASSERT_TRUE(witness.queue_reaches(directory, 1));
  ASSERT_TRUE(
      ok(witness.session().remove(directory + "/" + witness.queue(directory).front(), soon())));
  EXPECT_FALSE(next.holds());
  EXPECT_TRUE(fails_with(next.answer(), Code::kLost));
}

TEST_P(LockDelayTest, H73_ASessionThatEndsDuringTheDelaySaysSo) {
  hold_and_vanish();
  Session session = open();
  Waiter next(delayed(session, 1h));
  ASSERT_TRUE(witness.queue_reaches(directory, 1));
  ASSERT_TRUE(ok(session.close(soon())));
  EXPECT_FALSE(next.holds());
  EXPECT_TRUE(fails_with(next.answer(), Code::kClosed));
}

TEST_P(LockDelayTest, H73_ASilenceDuringTheDelayCostsNobodyItsPlace) {
  // The delay ends before we are heard again, or after.
  for (const auto delay : {200ms, 15000ms}) {
    hold_and_vanish();
    Proxied one = open_proxied(quick(20s));  // What is left of it behind the lease is for us.
    const Lease clock = take(one.session, fresh_path());
    Waiter next(delayed(one.session, delay));
    ASSERT_TRUE(witness.queue_reaches(directory, 1));
    const std::string entry = directory + "/" + witness.queue(directory).front();
    one.proxy->hold(Hold::kBoth);
    ASSERT_TRUE(eventually([&] { return clock.state() == LeaseState::kLost; }));
    one.proxy->release();
    ASSERT_TRUE(next.holds(deadline_in(60s)));
    EXPECT_EQ(next.lease().node(), entry);
    next.lease().release();
    ASSERT_TRUE(witness.is_quiet(directory)) << "or the next round waits for its session";
  }
}

TEST_P(LockDelayTest, H09_H73_AHolderWhoseLeaseRanOutIsToldAndCountsAsVanished) {
  Proxied one = open_proxied(quick(20s));  // What is left of it behind the lease is for us.
  auto lease = delayed(one.session, 1h).lock(soon());
  ASSERT_TRUE(ok(lease));
  one.proxy->hold(Hold::kBoth);
  ASSERT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
  one.proxy->release();
  // The session has survived; its lock has not, and its mark stays behind.
  EXPECT_TRUE(witness.is_quiet(directory));
  EXPECT_EQ(one.session.state(), SessionState::kConnected);
  auto mark = witness.synced().get(directory, soon());
  ASSERT_TRUE(ok(mark));
  EXPECT_EQ(mark->data, "held " + std::to_string(lease->token().zxid()));
  EXPECT_EQ(lease->release(), Released::kAlreadyOver);
}

TEST_P(LockDelayTest, AWishThatComesDuringTheDelayIsForTheHolderItBecomes) {
  hold_and_vanish();
  Waiter next(delayed(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 1));
  const std::string node = directory + "/" + witness.queue(directory).front();
  ASSERT_TRUE(ok(witness.session().set(node, "__REVOKE__", soon())));
  ASSERT_TRUE(next.holds());
  const std::stop_token asked = next.lease().release_requested();
  EXPECT_TRUE(eventually([&] { return asked.stop_requested(); }));
}

TEST_P(LockDelayTest, TheMarkSurvivesLostConnections) {
  for (const auto cut : {&FaultProxy::cut_before_request, &FaultProxy::cut_after_request,
                         &FaultProxy::cut_before_reply, &FaultProxy::cut_after_reply}) {
    Proxied one = open_proxied();
    (one.proxy.get()->*cut)(Op::kMulti);
    auto lease = delayed(one.session, 1h).lock(soon());
    ASSERT_TRUE(ok(lease));
    EXPECT_TRUE(ok(lease->release(soon())));
    EXPECT_TRUE(witness.is_quiet(directory));
  }
}

TEST_P(LockDelayTest, NamedLocksAndNegativeDelaysAreRefused) {
  const Session session = open();
  EXPECT_TRUE(fails_with(Mutex(session, directory, {.name = "a", .lock_delay = 1s}).try_lock(),
                         Code::kInvalidOption));
  EXPECT_TRUE(fails_with(delayed(session, -1ms).try_lock(), Code::kInvalidOption));
}

INSTANTIATE_TEST_SUITE_P(Standalone, HandOverTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, HandOverTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, HandOverTest, testing::Values(ServiceKind::kEmbedded));
INSTANTIATE_TEST_SUITE_P(Standalone, LockDelayTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, LockDelayTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, LockDelayTest, testing::Values(ServiceKind::kEmbedded));

}  // namespace
}  // namespace latchkey::test_support
