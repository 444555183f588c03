#include <algorithm>
#include <stdexcept>
#include <utility>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "integration/task.hpp"
#include "integration/thread_count.hpp"
#include "integration/watch_count.hpp"
#include "latchkey/election.hpp"
#include "latchkey/inspect.hpp"
#include "latchkey/multi_lock.hpp"
#include "latchkey/name_lock.hpp"
#include "latchkey/recursive_mutex.hpp"
#include "latchkey/run_while_held.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/semaphore.hpp"

/// Whoever waits and gives up, in whatever way and for whatever lock, leaves no node, no watch and
/// no thread. What is left is counted by the server and by the operating system.
namespace latchkey::test_support {
namespace {

/// A lock that somebody holds, as the holder and as those who wait for it see it.
struct Row {
  const char* name;
  std::function<Lock(const Session&, const std::string& path)> holder;
  std::function<Lock(const Session&, const std::string& path)> waiter;
};

template <class Make>
Row alike(const char* name, Make make) {
  return {name, make, make};
}

std::vector<Row> rows() {
  using Path = const std::string&;
  const auto reading = [](const Session& session, Path path) {
    return RwLock(session, path).read();
  };
  const auto writing = [](const Session& session, Path path) {
    return RwLock(session, path).write();
  };
  const auto watching_the_directory = [](const Session& session, Path path) {
    return RwLock(session, path, {.watch = WatchPolicy::kDirectory}).write();
  };
  return {
      alike("mutex", [](const Session& session, Path path) { return Mutex(session, path); }),
      alike("named mutex",
            [](const Session& session, Path path) { return Mutex(session, path, {.name = "a"}); }),
      alike("mutex with hand-over",
            [](const Session& session, Path path) {
              return Mutex(session, path, {.hand_over = {.count = 4}});
            }),
      alike("mutex with a lock delay",
            [](const Session& session, Path path) {
              return Mutex(session, path, {.lock_delay = 1h});
            }),
      alike("recursive mutex", [](const Session& session,
                                  Path path) { return RecursiveMutex(session, path).of(Owner()); }),
      {"reader", writing, reading},
      {"writer", reading, writing},
      alike("writer that watches the directory", watching_the_directory),
      alike("semaphore",
            [](const Session& session, Path path) {
              return Semaphore(session, path, {.size = 3}).permits(2);
            }),
      alike("multi-lock",
            [](const Session& session, Path path) {
              return MultiLock(session, {path + "/a", path + "/b"});
            }),
      alike("name lock", [](const Session& session, Path path) { return NameLock(session, path); }),
  };
}

Task leave_by_coroutine(Lock lock) {
  // Never resumed: its owner destroys it.
  Result<Lease> lease = co_await lock.lock_async(soon());
}

Task downgrade_by_coroutine(RwLock lock, Lease writing) {
  Result<Lease> lease = co_await lock.downgrade_async(std::move(writing), soon());
}

class LeavingTest : public MutexTest {
 protected:
  [[nodiscard]] std::size_t nodes() {
    const auto ours = session.call(Ephemerals{"/"}, soon());
    return ours ? ours->size() : 99;
  }

  /// It has a node of its own, or, for want of one, a watch.
  [[nodiscard]] bool queues() {
    return eventually([&] { return nodes() > 0 || service().watches_of(session.id()) > 0; });
  }

  [[nodiscard]] testing::AssertionResult has_left() {
    const bool gone =
        eventually([&] { return nodes() == 0 && service().watches_of(session.id()) == 0; });
    if (gone) return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << nodes() << " nodes and " << service().watches_of(session.id()) << " watches are left";
  }

  void give_up_in_every_way(const Lock& lock) {
    EXPECT_TRUE(fails_with(lock.lock(deadline_in(100ms)), Code::kTimedOut));
    EXPECT_TRUE(has_left()) << "timed out";

    std::stop_source stop;
    auto future = lock.lock_async(soon(), stop.get_token()).future();
    ASSERT_TRUE(queues());
    stop.request_stop();
    EXPECT_TRUE(fails_with(future.get(), Code::kCancelled));
    EXPECT_TRUE(has_left()) << "cancelled";

    std::stop_source other;
    Recorder<std::string> told;
    lock.lock_async(soon(), other.get_token()).then([told](Result<Lease> lease) {
      told.add(lease ? "held" : std::string(name(lease.error().code())));
      throw std::runtime_error("from a callback");
    });
    ASSERT_TRUE(queues());
    other.request_stop();
    ASSERT_TRUE(told.wait_for(1));
    EXPECT_EQ(told.last(), "Cancelled");
    EXPECT_TRUE(has_left()) << "a callback that throws";

    {
      const Task task = leave_by_coroutine(lock);
      ASSERT_TRUE(queues());
    }
    EXPECT_TRUE(has_left()) << "destroyed";
  }

  void throw_while_it_is_held(const Lock& lock) {
    const auto work = [](std::stop_token) { throw std::runtime_error("from the work"); };
    EXPECT_THROW(static_cast<void>(run_while_held(lock, work)), std::runtime_error);
    EXPECT_TRUE(has_left()) << "the work throws";

    Recorder<bool> told;
    lock.lock_async(soon()).then([told](Result<Lease> lease) {
      told.add(lease.has_value());
      throw std::runtime_error("from a callback");
    });
    ASSERT_TRUE(told.wait_for(1));
    EXPECT_TRUE(told.last());
    EXPECT_TRUE(has_left()) << "a callback that throws";
  }

  /// Threads that have nothing to do take a while to end.
  [[nodiscard]] bool no_thread_is_left() {
    return eventually([&] { return threads() <= threads_before; });
  }
  [[nodiscard]] bool no_watch_is_left() {
    return eventually([&] { return watches_of_all(service()) == 0; });
  }

  Session keeper = open();
  Session session = open();
  const int threads_before = threads();
};

INSTANTIATE_TEST_SUITE_P(Standalone, LeavingTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, LeavingTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, LeavingTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(LeavingTest, H06_WhoeverGivesUpLeavesNoNodeNoWatchAndNoThreadWhateverTheLock) {
  int number = 0;
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    const std::string path = directory + "-" + std::to_string(++number);
    auto held = row.holder(keeper, path).lock(soon());
    ASSERT_TRUE(ok(held));
    const Lock lock = row.waiter(session, path);

    give_up_in_every_way(lock);
    ASSERT_TRUE(ok(held->release(soon())));
    throw_while_it_is_held(lock);
  }
  EXPECT_TRUE(no_watch_is_left()) << watches_of_all(service());
  EXPECT_TRUE(no_thread_is_left()) << threads() << " after " << threads_before;
}

TEST_P(LeavingTest, H73_WhoeverGivesUpDuringALockDelayLeavesNothing) {
  make_node(witness.session(), directory, "held 1");  // By somebody who has vanished.
  const Mutex lock(session, directory, {.lock_delay = 1h});

  give_up_in_every_way(lock);

  EXPECT_TRUE(no_watch_is_left()) << watches_of_all(service());
  EXPECT_TRUE(no_thread_is_left()) << threads() << " after " << threads_before;
}

/// A writer whose wish to read on does not reach the server, and who gives that up.
TEST_P(LeavingTest, H44_WhoeverGivesUpADowngradeLeavesNoNodeNoWatchAndNoThread) {
  Proxied one = open_proxied();
  const RwLock lock(one.session, directory);
  const int before = threads();
  using GiveUp = std::function<void(Lease)>;
  const std::vector<std::pair<const char*, GiveUp>> ways{
      {"timed out",
       [&](Lease writing) {
         EXPECT_TRUE(
             fails_with(lock.downgrade(std::move(writing), deadline_in(100ms)), Code::kTimedOut));
       }},
      {"cancelled",
       [&](Lease writing) {
         std::stop_source stop;
         auto future =
             lock.downgrade_async(std::move(writing), soon()).stopped_by(stop.get_token()).future();
         stop.request_stop();
         EXPECT_TRUE(fails_with(future.get(), Code::kCancelled));
       }},
      {"a callback that throws",
       [&](Lease writing) {
         Recorder<std::string> told;
         lock.downgrade_async(std::move(writing), deadline_in(100ms))
             .then([told](Result<Lease> lease) {
               told.add(lease ? "held" : std::string(name(lease.error().code())));
               throw std::runtime_error("from a callback");
             });
         ASSERT_TRUE(told.wait_for(1));
         EXPECT_EQ(told.last(), "TimedOut");
       }},
      {"destroyed",
       [&](Lease writing) { const Task task = downgrade_by_coroutine(lock, std::move(writing)); }},
  };
  for (const auto& [way, give_up] : ways) {
    SCOPED_TRACE(way);
    auto writing = lock.write().lock(soon());
    ASSERT_TRUE(ok(writing));
    one.proxy->hold(Hold::kToServer);

    give_up(std::move(*writing));

    one.proxy->release();
    EXPECT_TRUE(witness.is_quiet(directory));
  }
  EXPECT_TRUE(no_watch_is_left()) << watches_of_all(service());
  EXPECT_TRUE(eventually([&] { return threads() <= before; })) << threads() << " after " << before;
}

TEST_P(LeavingTest, HandlersOfAnElectionThatThrowHarmNobody) {
  Recorder<std::string> seen;
  const LeaderWatch watch(session, directory, [seen](Result<std::optional<Leader>> leader) {
    seen.add(leader && *leader ? (*leader)->id : "nobody");
    throw std::runtime_error("from an observer");
  });
  Recorder<ElectionState> told;
  Election first(session, directory, {.id = "first", .on_change = [told](const auto& news) {
                                        told.add(news.state);
                                        // A lead that throws resigns: see ElectionTest.
                                        if (news.state == ElectionState::kLeading) return;
                                        throw std::runtime_error("from a candidate");
                                      }});
  ASSERT_TRUE(eventually([&] { return first.state() == ElectionState::kLeading; }));
  Election second(keeper, directory, {.id = "second"});
  ASSERT_TRUE(witness.queue_reaches(directory, 2));

  first.resign();
  ASSERT_TRUE(eventually([&] { return second.state() == ElectionState::kLeading; }));
  const auto has_seen = [&](const char* id) {
    const auto all = seen.all();
    return std::count(all.begin(), all.end(), id) > 0;
  };
  // An observer sees what is, and not all that was.
  ASSERT_TRUE(eventually([&] { return has_seen("second"); })) << testing::PrintToString(seen.all());
  second.close();
  ASSERT_TRUE(eventually([&] { return first.state() == ElectionState::kLeading; }));
  first.close();

  using enum ElectionState;
  ASSERT_TRUE(told.wait_for(4));
  EXPECT_THAT(told.all(), testing::ElementsAre(kLeading, kQueued, kLeading, kClosed));
  EXPECT_TRUE(eventually([&] { return seen.last() == "nobody"; }))
      << testing::PrintToString(seen.all());
  EXPECT_TRUE(ok(session.sync("/", soon()))) << "the session goes on";
}

TEST_P(LeavingTest, CandidatesAndObserversThatAreDestroyedLeaveNothing) {
  Election leading(keeper, directory, {.id = "keeper"});
  ASSERT_TRUE(eventually([&] { return leading.state() == ElectionState::kLeading; }));
  {
    const Election candidate(session, directory);
    ASSERT_TRUE(queues());
  }
  EXPECT_TRUE(has_left()) << "a candidate";

  Recorder<std::string> seen;
  {
    const LeaderWatch watch(session, directory, [seen](Result<std::optional<Leader>> leader) {
      seen.add(leader && *leader ? (*leader)->id : "nobody");
    });
    ASSERT_TRUE(seen.wait_for(1));
    EXPECT_TRUE(eventually([&] { return service().watches_of(session.id()) > 0; }));
  }
  EXPECT_TRUE(has_left()) << "who watches the leader";
  {
    const QueueWatch watch(session, directory, [seen](Result<Queue> queue) {
      seen.add(queue ? std::to_string(queue->entries.size()) : "no queue");
      throw std::runtime_error("from an observer");
    });
    ASSERT_TRUE(seen.wait_for(2));
  }
  EXPECT_TRUE(has_left()) << "who watches the queue";
  EXPECT_THAT(seen.all(), testing::ElementsAre("keeper", "1"));
  leading.close();
  EXPECT_TRUE(no_watch_is_left()) << watches_of_all(service());
  EXPECT_TRUE(no_thread_is_left()) << threads() << " after " << threads_before;
}

}  // namespace
}  // namespace latchkey::test_support
