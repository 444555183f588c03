#include <gmock/gmock.h>

#include "integration/election_fixture.hpp"
#include "latchkey/inspect.hpp"

/// What others see of a lock under a delay, and of an election with one (H73): whoever waits it out
/// neither holds nor leads.
namespace latchkey::test_support {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using wire::Op;

constexpr std::chrono::milliseconds kEndless = 1h;  ///< No test lives that long.
constexpr std::chrono::milliseconds kShort = 200ms;

class LockDelayViewTest : public ElectionTest {
 protected:
  [[nodiscard]] Mutex delayed(const Session& session, std::chrono::milliseconds delay) const {
    return Mutex(session, directory, {.reason = "a delay", .lock_delay = delay});
  }
  /// A holder whose session ends without a word from it to the lock.
  void hold_and_vanish() {
    Session session = open();
    auto lease = delayed(session, kShort).lock(soon());
    ASSERT_TRUE(ok(lease));
    ASSERT_TRUE(ok(session.close(soon())));
  }
  [[nodiscard]] Queue look(Session& session) {
    static_cast<void>(session.sync(directory, soon()));
    auto queue = inspect(session, directory, soon());
    if (!queue) throw std::runtime_error(queue.error().message());
    return *queue;
  }
};

INSTANTIATE_TEST_SUITE_P(Standalone, LockDelayViewTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, LockDelayViewTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, LockDelayViewTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(LockDelayViewTest, H73_AHolderIsShownAsHoldingAndByItsOwnWords) {
  Session session = open();
  const auto lease = delayed(session, kEndless).lock(soon());
  ASSERT_TRUE(ok(lease));

  const Queue queue = look(session);

  ASSERT_EQ(queue.holders().size(), 1U);
  EXPECT_EQ(queue.holders()[0]->reason, "a delay");
  EXPECT_EQ(queue.holders()[0]->token, lease->token());
}

TEST_P(LockDelayViewTest, H73_WhoeverWaitsOutTheDelayIsShownAsWaiting) {
  hold_and_vanish();
  Session session = open();
  {
    Waiter next(delayed(open(), kEndless));
    ASSERT_TRUE(witness.queue_reaches(directory, 1));

    const Queue queue = look(session);

    ASSERT_EQ(queue.entries.size(), 1U);
    EXPECT_EQ(queue.entries[0].standing, QueueEntry::Standing::kWaits);
    EXPECT_EQ(queue.entries[0].position, 1);
  }
  Waiter last(delayed(open(), kShort));
  ASSERT_TRUE(last.holds());
  EXPECT_EQ(look(session).holders().size(), 1U);
}

TEST_P(LockDelayViewTest, H73_ATryDuringTheDelayIsBusyAtOnceAndLeavesItToTheNext) {
  hold_and_vanish();
  Session session = open();

  EXPECT_TRUE(fails_with(delayed(session, kEndless).try_lock(soon()), Code::kBusy, "lock delay"));

  EXPECT_TRUE(witness.is_quiet(directory));
  Waiter next(delayed(open(), kEndless));
  ASSERT_TRUE(witness.queue_reaches(directory, 1));
  EXPECT_TRUE(look(session).holders().empty());
}

TEST_P(LockDelayViewTest, H73_WhoeverOnlyTriesHoldsWhenTheDelayIsOver) {
  hold_and_vanish();
  Session session = open();
  ASSERT_TRUE(fails_with(delayed(session, kShort).try_lock(soon()), Code::kBusy, "lock delay"));

  std::optional<Result<Lease>> last;
  EXPECT_TRUE(eventually([&] {
    last = delayed(open(), kShort).try_lock(soon());
    return last->has_value();
  })) << last->error();
}

TEST_P(LockDelayViewTest, H73_WhoeverNeverWaitsForTheWholeDelayHoldsWhenItIsOver) {
  constexpr auto kDelay = 6s;  // Even half of it is time enough for a grant.
  hold_and_vanish();
  Session session = open();

  EXPECT_TRUE(
      eventually([&] { return delayed(session, kDelay).lock(deadline_in(kDelay / 2)).has_value(); },
                 deadline_in(60s)));
}

TEST_P(LockDelayViewTest, H73_ATryThatIsHandedOverIsBusyDuringTheDelayToo) {
  hold_and_vanish();
  const Session session = open();
  const Mutex passing(session, directory, {.hand_over = {.count = 4}, .lock_delay = kEndless});

  EXPECT_TRUE(fails_with(passing.try_lock(soon()), Code::kBusy));

  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(LockDelayViewTest, H73_AnOldMarkMeansNothingForALockWithoutADelay) {
  hold_and_vanish();
  Session session = open();
  const Lease plain = take(session, directory);

  EXPECT_EQ(look(session).holders().size(), 1U);
}

TEST_P(LockDelayViewTest, H73_AQueueWatchShowsTheHolderWhenTheDelayIsOver) {
  hold_and_vanish();
  Recorder<std::string> seen;
  const QueueWatch watch(open(), directory, [seen](const Result<Queue>& queue) {
    std::string entries;
    for (const QueueEntry& entry : queue->entries) {
      entries += entry.standing == QueueEntry::Standing::kHolds ? 'h' : 'w';
    }
    seen.add(entries);
  });
  ASSERT_TRUE(seen.wait_for(1));

  Waiter next(delayed(open(), kShort));
  ASSERT_TRUE(next.holds());

  ASSERT_TRUE(eventually([&] { return seen.last() == "h"; })) << testing::PrintToString(seen.all());
  EXPECT_EQ(seen.all().front(), "");
  next.lease().release();
  EXPECT_TRUE(eventually([&] { return seen.last().empty(); }));
}

TEST_P(LockDelayViewTest, H73_AfterALeaderThatVanishedNobodyLeadsUntilTheDelayIsOver) {
  Proxied lost = open_proxied(quick(12s));
  const Election first(lost.session, directory, {.id = "first", .take_over_delay = kEndless});
  ASSERT_TRUE(leads(first));
  const Token old = *first.token();
  Proxied second = open_proxied();
  std::optional<Election> waits(std::in_place, second.session, directory,
                                ElectionOptions{.id = "second", .take_over_delay = kEndless});
  ASSERT_TRUE(candidates_become({"first", "second"}));
  const Election third(open(), directory, {.id = "third", .take_over_delay = kShort});
  ASSERT_TRUE(candidates_become({"first", "second", "third"}));
  Session session = open();
  Recorder<std::string> seen;
  const LeaderWatch watch(session, directory, [seen](Result<std::optional<Leader>> leader) {
    seen.add(!leader ? "!" : !*leader ? "-" : (*leader)->id);
  });
  ASSERT_TRUE(seen.wait_for(1));

  lost.proxy->refuse();
  lost.proxy->cut_all();  // Its session dies with its time-out.
  ASSERT_TRUE(candidates_become({"second", "third"}));
  ASSERT_TRUE(seen.wait_for(2));

  // It has noted that the leader vanished; had it gone on, its own mark would have left before the
  // second sync.
  ASSERT_TRUE(eventually([&] { return count(*second.proxy, Op::kMulti) > 0; }));
  ASSERT_TRUE(ok(second.session.sync(directory, soon())));
  ASSERT_TRUE(ok(second.session.sync(directory, soon())));
  EXPECT_EQ(count(*second.proxy, Op::kMulti), 1U);
  EXPECT_EQ(waits->state(), ElectionState::kQueued);
  const auto nobody = leader(session, directory, soon());
  ASSERT_TRUE(ok(nobody));
  EXPECT_EQ(*nobody, std::nullopt);

  waits.reset();  // The delay is left to the next one, which makes it short.
  ASSERT_TRUE(leads(third));
  EXPECT_GT(*third.token(), old);
  ASSERT_TRUE(seen.wait_for(3));
  EXPECT_THAT(seen.all(), ElementsAre("first", "-", "third"));
  const auto now = leader(session, directory, soon());
  ASSERT_TRUE(ok(now));
  ASSERT_TRUE(now->has_value());
  EXPECT_EQ((*now)->token, third.token());
}

TEST_P(LockDelayViewTest, H73_ALeaderWithoutADelayIsSeenThoughOneThatWaitsGoes) {
  hold_and_vanish();
  Session session = open();
  std::optional<Election> waits(std::in_place, open(), directory,
                                ElectionOptions{.id = "old", .take_over_delay = kEndless});
  ASSERT_TRUE(candidates_become({"old"}));
  Recorder<std::string> seen;
  const LeaderWatch watch(session, directory, [seen](Result<std::optional<Leader>> leader) {
    seen.add(!leader ? "!" : !*leader ? "-" : (*leader)->id);
  });
  ASSERT_TRUE(seen.wait_for(1));
  const Election plain(open(), directory, {.id = "new"});
  ASSERT_TRUE(candidates_become({"old", "new"}));

  waits.reset();

  ASSERT_TRUE(leads(plain));
  ASSERT_TRUE(seen.wait_for(2));
  EXPECT_THAT(seen.all(), ElementsAre("-", "new"));
}

}  // namespace
}  // namespace latchkey::test_support
