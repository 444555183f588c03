#include <functional>
#include <optional>
#include <thread>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"

/// Giving up, at any moment and in any weather: on time, and without leaving anything behind.
namespace latchkey::test_support {
namespace {

using wire::Op;

/// A point on the way to a lock, named by the message at which the proxy stands still.
struct Stage {
  const char* name;
  std::function<int(FaultProxy&)> stop;
};

std::vector<Stage> stages() {
  const auto at_request = [](const char* name, Op op, int nth = 1) {
    return Stage{name, [=](FaultProxy& proxy) { return proxy.stop_at_request({op, nth}); }};
  };
  const auto at_reply = [](const char* name, Op op, int nth = 1) {
    return Stage{name, [=](FaultProxy& proxy) { return proxy.stop_at_reply({op, nth}); }};
  };
  return {
      at_request("create requested", Op::kCreate2),    at_reply("create answered", Op::kCreate2),
      at_request("list requested", Op::kGetChildren),  at_reply("list answered", Op::kGetChildren),
      at_request("own watch requested", Op::kGetData), at_reply("own watch answered", Op::kGetData),
      at_request("watch requested", Op::kGetData, 2),  at_reply("watch answered", Op::kGetData, 2)};
}

/// Far less than the minute after which a session that waits for its server would give up.
constexpr auto kAtOnce = 15s;

enum class Weather { kFair, kCut };

/// How an attempt is given up.
enum class GiveUp { kStop, kDeadline };

class MutexCancelTest : public MutexTest {
 protected:
  void give_up_at(const Stage& stage, GiveUp how, Weather weather) {
    SCOPED_TRACE(stage.name);
    Lease holder = take(keeper, directory);
    Instant deadline = BootClock::now() + 60s;
    std::optional<Waiter> waiter;
    if (how == GiveUp::kStop) {
      const int stop = stage.stop(*one.proxy);
      waiter.emplace(mutex(one.session), deadline);
      ASSERT_TRUE(one.proxy->wait_until_fired(stop));
    } else {
      deadline = stand_still_in_time(stage, waiter);
    }

    const Instant asked = how == GiveUp::kStop ? BootClock::now() : deadline;
    if (how == GiveUp::kStop) waiter->cancel();

    ASSERT_FALSE(waiter->holds());
    EXPECT_TRUE(fails_with(waiter->answer(),
                           how == GiveUp::kStop ? Code::kCancelled : Code::kTimedOut, directory));
    EXPECT_GE(waiter->answered_at(), asked);
    EXPECT_LT(waiter->answered_at() - asked, kAtOnce) << "H51: it waits for nothing any more";
    if (weather == Weather::kCut) one.proxy->cut_all();
    one.proxy->release();
    one.proxy->disarm_all();
    EXPECT_TRUE(witness.queue_reaches(directory, 1));
    EXPECT_TRUE(has_watches(0));
    ASSERT_TRUE(ok(holder.release(soon())));
    EXPECT_TRUE(witness.is_quiet(directory));
    EXPECT_EQ(one.session.id(), id) << "nothing was left to the session's end";
  }

  /// Of the session that gives up. The holder's own is none of them: it comes with a heartbeat.
  [[nodiscard]] bool has_watches(int count) const {
    return eventually([&] { return service().watches_of(id) == count; });
  }

  /// Begins an attempt that stands still at `stage` before its deadline passes, and returns that
  /// deadline. A slow machine needs more than the shortest one to come that far.
  Instant stand_still_in_time(const Stage& stage, std::optional<Waiter>& waiter) {
    Instant deadline;
    for (auto patience = 400ms; patience < 20s; patience *= 2) {
      EXPECT_TRUE(ok(one.session.sync(directory, soon())));
      const int stop = stage.stop(*one.proxy);
      deadline = BootClock::now() + patience;
      waiter.emplace(mutex(one.session), deadline);
      if (one.proxy->wait_until_fired(stop, deadline)) return deadline;
      EXPECT_FALSE(waiter->holds());
      one.proxy->disarm_all();
      one.proxy->release();
      EXPECT_TRUE(witness.queue_reaches(directory, 1));
    }
    ADD_FAILURE() << "the stage was never reached";
    return deadline;
  }

  Session keeper = open(quick(60s));
  Proxied one = open_proxied(quick(60s));
  const std::int64_t id = one.session.id();
};

INSTANTIATE_TEST_SUITE_P(Standalone, MutexCancelTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, MutexCancelTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, MutexCancelTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(MutexCancelTest, H06_AStopRequestAtAnyStepLeavesNothing) {
  for (const Stage& stage : stages()) give_up_at(stage, GiveUp::kStop, Weather::kFair);
}

TEST_P(MutexCancelTest, H06_AStopRequestAtAnyStepLeavesNothingThoughTheConnectionBreaks) {
  for (const Stage& stage : stages()) give_up_at(stage, GiveUp::kStop, Weather::kCut);
}

TEST_P(MutexCancelTest, H51_ADeadlineAtAnyStepIsKeptAndLeavesNothing) {
  for (const Stage& stage : stages()) give_up_at(stage, GiveUp::kDeadline, Weather::kCut);
}

TEST_P(MutexCancelTest, H51_ADeadlineIsKeptBehindASilentPartition) {
  for (const auto which : {Hold::kToServer, Hold::kToClient, Hold::kBoth}) {
    one.proxy->hold(which);
    const Instant deadline = BootClock::now() + 300ms;

    EXPECT_TRUE(fails_with(mutex(one.session).lock(deadline), Code::kTimedOut, directory));
    EXPECT_LT(BootClock::now() - deadline, kAtOnce);
    EXPECT_TRUE(fails_with(mutex(one.session).try_lock(deadline_in(100ms)), Code::kTimedOut));

    one.proxy->release();
    EXPECT_TRUE(witness.is_quiet(directory));
  }
  EXPECT_EQ(one.session.id(), id);
}

TEST_P(MutexCancelTest, H51_ADeadlineIsKeptWithoutAnyServer) {
  one.proxy->refuse();
  one.proxy->cut_all();
  ASSERT_TRUE(eventually([&] { return one.session.state() == SessionState::kSuspended; }));
  one.proxy->log().clear();
  const Instant deadline = BootClock::now() + 2s;

  EXPECT_TRUE(fails_with(mutex(one.session).lock(deadline), Code::kTimedOut, "refused"));
  EXPECT_LT(BootClock::now() - deadline, kAtOnce);

  one.proxy->accept();
  EXPECT_TRUE(ok(one.session.sync(directory, soon())));
  EXPECT_EQ(count(*one.proxy, Op::kCreate2), 0U) << "what was never sent is taken back";
}

TEST_P(MutexCancelTest, H29_TimedOutAttemptsLeaveNoWatchOnALongHolder) {
  Lease holder = take(keeper, directory);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        Mutex lock = mutex(one.session);
        for (int j = 0; j < 25; ++j) {
          EXPECT_TRUE(fails_with(lock.lock(deadline_in(10ms)), Code::kTimedOut));
        }
      });
    }
  }
  EXPECT_TRUE(has_watches(0));
  EXPECT_TRUE(witness.queue_reaches(directory, 1));

  Waiter waiter(mutex(one.session));
  EXPECT_TRUE(has_watches(2)) << "one on its own node, one on the holder's";
  waiter.cancel();
  EXPECT_TRUE(has_watches(0));
}

TEST_P(MutexCancelTest, H50_ADeadlineThatRacesTheGrantHasOneWinner) {
  int granted = 0;
  int refused = 0;
  for (int round = 0; round < 60; ++round) {
    Lease holder = take(keeper, directory);
    const Instant moment = BootClock::now() + 8ms;
    Waiter waiter(mutex(one.session), moment + std::chrono::microseconds(40 * (round - 10)));
    while (BootClock::now() < moment) std::this_thread::yield();

    holder.release();

    ASSERT_TRUE(eventually([&] { return waiter.has_answer(); }));
    if (waiter.answer()) {
      ++granted;
      EXPECT_EQ(waiter.lease().state(), LeaseState::kHeld);
    } else {
      ++refused;
      EXPECT_TRUE(fails_with(waiter.answer(), Code::kTimedOut));
    }
  }
  EXPECT_EQ(granted + refused, 60);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexCancelTest, H50_AStopThatRacesTheGrantHasOneWinner) {
  for (int round = 0; round < 40; ++round) {
    Lease holder = take(keeper, directory);
    Waiter waiter(mutex(one.session));
    ASSERT_TRUE(witness.queue_reaches(directory, 2));
    std::jthread stopper([&] { waiter.cancel(); });

    holder.release();

    ASSERT_TRUE(eventually([&] { return waiter.has_answer(); }));
    EXPECT_TRUE(waiter.answer() || waiter.answer().error() == Code::kCancelled);
  }
  EXPECT_TRUE(witness.is_quiet(directory));
}

}  // namespace
}  // namespace latchkey::test_support
