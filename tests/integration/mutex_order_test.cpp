#include <algorithm>
#include <atomic>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "integration/thread_count.hpp"

/// Who gets the lock, in which order, and who is woken on the way.
namespace latchkey::test_support {
namespace {

using testing::IsEmpty;
using wire::Op;

/// Locks and lets go `cycles` times; what is counted is unprotected but for the lock.
void contend(const Mutex& mutex, int cycles, Section& section, long& unprotected) {
  Mutex mine = mutex;
  for (int i = 0; i < cycles; ++i) {
    auto lease = mine.lock(deadline_in(60s));
    ASSERT_TRUE(ok(lease));
    section.enter(*lease);
    ++unprotected;
    section.leave();
  }
}

TEST_P(MutexTest, H36_GrantsInArrivalOrder) {
  std::vector<Session> sessions;
  for (int i = 0; i < 3; ++i) sessions.push_back(open());
  std::vector<std::unique_ptr<Waiter>> line;
  for (std::size_t i = 0; i < 6; ++i) {
    line.push_back(std::make_unique<Waiter>(mutex(sessions[i % 3])));
    ASSERT_TRUE(witness.queue_reaches(directory, i + 1));
  }
  const std::vector<std::string> queue = witness.queue(directory);

  std::optional<Token> before;
  for (std::size_t i = 0; i < line.size(); ++i) {
    ASSERT_TRUE(line[i]->holds()) << i;
    for (std::size_t later = i + 1; later < line.size(); ++later) {
      EXPECT_FALSE(line[later]->has_answer()) << later << " while " << i << " holds";
    }
    EXPECT_EQ(line[i]->lease().node(), directory + "/" + queue[i]);
    EXPECT_TRUE(!before || line[i]->lease().token() > *before);
    before = line[i]->lease().token();
    EXPECT_EQ(line[i]->lease().release(), Released::kNow);
  }
  EXPECT_TRUE(witness.is_quiet(directory));
}

/// Each finds the session taken by one of the others now and then, on its way in or out, and leaves
/// to that one what it wants. Were it forgotten there, the next heartbeat would bring it, and that
/// is later than the deadline.
TEST_P(MutexTest, H31_WhatIsLeftToAnotherThreadOfTheSessionIsNotForgotten) {
  constexpr int kPairs = 500;
  SessionOptions options = patient();
  options.timeout = 40s;
  const Session session = open(options);
  std::vector<std::jthread> threads;
  std::atomic<int> done = 0;
  for (const char* name : {"/a", "/b", "/b"}) {
    threads.emplace_back([&, path = directory + name] {
      const Mutex mine(session, path);
      for (int i = 0; i < kPairs && ok(mine.lock(deadline_in(5s))); ++i) ++done;
    });
  }
  threads.clear();

  EXPECT_EQ(done, 3 * kPairs);
}

TEST_P(MutexTest, H33_AReleaseWakesOnlyTheNextInLine) {
  Proxied second_one = open_proxied();
  Proxied third_one = open_proxied();
  Lease holder = take(open(), directory);
  Waiter second(mutex(second_one.session));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  Waiter third(mutex(third_one.session));
  ASSERT_TRUE(third_one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));
  third_one.proxy->log().clear();

  holder.release();
  ASSERT_TRUE(second.holds());

  // Whatever the server has for the third is there before its answer to this.
  ASSERT_TRUE(ok(third_one.session.sync(directory, soon())));
  ASSERT_TRUE(ok(third_one.session.exists(directory, soon())));
  EXPECT_FALSE(third.has_answer());
  EXPECT_EQ(requests(*third_one.proxy), (std::vector{Op::kSync, Op::kExists}));
  EXPECT_EQ(third_one.proxy->log().count(replies_to(Op::kNotification)), 0U);
}

TEST_P(MutexTest, H27_AWaiterThatLeavesWakesOnlyItsSuccessorWhichGetsNothing) {
  Proxied third_one = open_proxied();
  Lease holder = take(open(), directory);
  auto middle = std::make_unique<Session>(open());
  Waiter second(mutex(*middle));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  Waiter third(mutex(third_one.session));
  ASSERT_TRUE(third_one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));

  ASSERT_TRUE(ok(middle->close(soon())));

  EXPECT_TRUE(fails_with(second.holds() ? Result<void>() : Result<void>(second.answer().error()),
                         Code::kClosed));
  // It turns to the one before.
  EXPECT_TRUE(third_one.proxy->log().wait_for(replies_to(Op::kGetData), 3, soon()));
  ASSERT_TRUE(ok(third_one.session.sync(directory, soon())));
  EXPECT_FALSE(third.has_answer());
  EXPECT_EQ(holder.state(), LeaseState::kHeld);

  holder.release();
  EXPECT_TRUE(third.holds());
}

TEST_P(MutexTest, H27_AWaiterThatLeftBeforeItsSuccessorWatchedItChangesNothing) {
  Proxied third_one = open_proxied();
  Lease holder = take(open(), directory);
  auto second = std::make_unique<Waiter>(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  // The list shows the second, the watch comes too late.
  const int stop = third_one.proxy->stop_at_reply(Op::kGetChildren);
  Waiter third(mutex(third_one.session));
  ASSERT_TRUE(third_one.proxy->wait_until_fired(stop));

  second.reset();
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  third_one.proxy->release();

  ASSERT_TRUE(third_one.proxy->log().wait_for(replies_to(Op::kGetData), 3, soon()));
  EXPECT_FALSE(third.has_answer());
  holder.release();
  EXPECT_TRUE(third.holds());
}

TEST_P(MutexTest, H26_APredecessorThatVanishesBetweenListAndWatchIsAWake) {
  Proxied second_one = open_proxied();
  Lease holder = take(open(), directory);
  const int stop = second_one.proxy->stop_at_reply(Op::kGetChildren);
  Waiter second(mutex(second_one.session));
  ASSERT_TRUE(second_one.proxy->wait_until_fired(stop));

  ASSERT_TRUE(ok(holder.release(soon())));
  second_one.proxy->release();

  ASSERT_TRUE(second.holds());
  EXPECT_EQ(count(*second_one.proxy, Op::kCreate2), 1U);
  EXPECT_EQ(count(*second_one.proxy, Op::kExists), 0U);
  second.lease().release();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexTest, TryLockSaysBusyAndLeavesNothing) {
  Session session = open();
  Mutex lock = mutex(session);
  Lease holder = take(open(), directory);

  const auto refused = lock.try_lock();
  EXPECT_TRUE(fails_with(refused, Code::kBusy, directory));
  EXPECT_TRUE(witness.queue_reaches(directory, 1));

  ASSERT_TRUE(ok(holder.release(soon())));
  auto granted = lock.try_lock();
  EXPECT_TRUE(ok(granted));
  // Not even for the same session.
  EXPECT_TRUE(fails_with(lock.try_lock(), Code::kBusy));
}

TEST_P(MutexTest, H34_AChangeOfThePredecessorsDataIsNotItsEnd) {
  Proxied second_one = open_proxied();
  Lease holder = take(open(), directory);
  Waiter second(mutex(second_one.session));
  ASSERT_TRUE(second_one.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));

  for (std::size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(ok(witness.session().set(holder.node(), "touched", soon())));
    ASSERT_TRUE(second_one.proxy->log().wait_for(replies_to(Op::kGetData), 2 + i, soon()));
  }
  EXPECT_FALSE(second.has_answer());

  holder.release();
  EXPECT_TRUE(second.holds());
}

TEST_P(MutexTest, H07_TwoThreadsOfOneSessionAreStrangersToEachOther) {
  Session session = open();
  Lease first = take(session, directory);
  Waiter second(mutex(session));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));

  ASSERT_TRUE(ok(session.sync(directory, soon())));
  EXPECT_FALSE(second.has_answer());

  first.release();
  ASSERT_TRUE(second.holds());
  EXPECT_GT(second.lease().token(), first.token());
}

TEST_P(MutexTest, H24_ADoubleReleaseDoesNotTouchTheNextHolder) {
  Proxied one = open_proxied();
  Lease first = take(one.session, directory);
  Waiter second(mutex(one.session));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));

  EXPECT_EQ(first.release(), Released::kNow);
  ASSERT_TRUE(second.holds());
  EXPECT_EQ(first.release(), Released::kAlreadyOver);
  EXPECT_TRUE(ok(first.release(soon())));

  ASSERT_TRUE(witness.queue_reaches(directory, 1));
  EXPECT_EQ(second.lease().state(), LeaseState::kHeld);
  EXPECT_EQ(count(*one.proxy, Op::kDelete), 1U);
}

TEST_P(MutexTest, H31_EightThreadsOfOneSessionTakeTurns) {
  Session session = open();
  Section section;
  long unprotected = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 8; ++i) {
      workers.emplace_back([&] { contend(mutex(session), 40, section, unprotected); });
    }
  }
  EXPECT_EQ(section.overlaps(), 0);
  EXPECT_EQ(section.disorders(), 0);
  EXPECT_EQ(section.holds(), 320);
  EXPECT_EQ(unprotected, 320);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexTest, H28_SessionsAndThreadsExcludeEachOtherAndLeaveNoWatchBehind) {
  std::vector<Session> sessions;
  for (int i = 0; i < 3; ++i) sessions.push_back(open());
  Section section;
  long unprotected = 0;
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < 6; ++i) {
      workers.emplace_back([&, i] { contend(mutex(sessions[i % 3]), 40, section, unprotected); });
    }
  }
  EXPECT_EQ(section.overlaps(), 0);
  EXPECT_EQ(section.disorders(), 0);
  EXPECT_EQ(unprotected, 240);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexTest, AThousandLocksOfOneSessionAreHeldAtOnceWithoutAThreadForEach) {
  Session session = open(quick(30s));
  std::vector<Lease> leases;
  leases.push_back(take(session, directory + "/warm-up"));
  const int before = threads();

  for (int i = 0; i < 1'000; ++i) {
    leases.push_back(take(session, directory + "/" + std::to_string(i)));
  }

  EXPECT_LE(threads(), before + 2);
  for (const Lease& lease : leases) ASSERT_EQ(lease.state(), LeaseState::kHeld);
  leases.clear();
  EXPECT_TRUE(eventually([&] {
    const auto left = session.call(Ephemerals{directory}, soon());
    return left && left->empty();
  }));
}

TEST_P(MutexTest, H33_OneReleaseBeforeHundredsOfWaitersCostsAHandfulOfRequests) {
  constexpr std::size_t kWaiters = 200;
  // No heartbeat comes in between: each of the crowd would watch its own node then.
  Proxied crowd = open_proxied(quick(60s));
  Lease holder = take(open(quick(60s)), directory);
  std::vector<std::unique_ptr<Waiter>> line;
  for (std::size_t i = 0; i < kWaiters; ++i) {
    line.push_back(std::make_unique<Waiter>(mutex(crowd.session)));
  }
  ASSERT_TRUE(witness.queue_reaches(directory, kWaiters + 1));
  // The first of them watches itself and the holder, the others wait for each other.
  ASSERT_TRUE(crowd.proxy->log().wait_for(replies_to(Op::kGetData), 2, soon()));
  // The last of them may not know its place yet. Behind the first sync all do, and what they have
  // asked for then has passed the proxy behind the second.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(ok(crowd.session.sync(directory, soon())));
  crowd.proxy->log().clear();

  ASSERT_TRUE(ok(holder.release(soon())));
  ASSERT_TRUE(eventually([&] {
    return std::any_of(line.begin(), line.end(), [](const auto& one) { return one->has_answer(); });
  }));

  ASSERT_TRUE(ok(crowd.session.sync(directory, soon())));
  EXPECT_LE(requests(*crowd.proxy).size(), 4U);
  EXPECT_EQ(crowd.proxy->log().count(replies_to(Op::kNotification)), 1U);
  EXPECT_EQ(
      std::count_if(line.begin(), line.end(), [](const auto& one) { return one->has_answer(); }),
      1);
  for (auto& one : line) one->cancel();
  line.clear();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexTest, LocksOfDifferentNamesShareADirectoryWithoutMeeting) {
  Session session = open();
  Lease red = take(session, directory, {.name = "red"});
  Lease blue = take(open(), directory, {.name = "blue"});
  Lease plain = take(open(), directory);
  Waiter second_red(Mutex(session, directory, {.name = "red"}));
  ASSERT_TRUE(witness.queue_reaches(directory, 4));

  ASSERT_TRUE(ok(session.sync(directory, soon())));
  EXPECT_FALSE(second_red.has_answer());
  blue.release();
  plain.release();
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  EXPECT_FALSE(second_red.has_answer());

  red.release();
  ASSERT_TRUE(second_red.holds());
  EXPECT_THAT(second_red.lease().node(), testing::HasSubstr("-red_lock_"));
}

}  // namespace
}  // namespace latchkey::test_support
