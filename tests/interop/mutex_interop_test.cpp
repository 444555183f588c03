#include <csignal>
#include <thread>

#include <gmock/gmock.h>

#include "interop/arrival_order.hpp"
#include "interop/interop_fixture.hpp"
#include "queue/farewell.hpp"

/// Mutexes of several clients on one path: Latchkey's, Curator's, and kazoo's with interop/kazoo.
namespace latchkey::test_support {
namespace {

using testing::HasSubstr;

TEST_P(MutexInteropTest, CuratorQueuesBehindUsAndAheadOfTheNextOfUs) {
  Lease first = take(open(), directory);
  const auto second = curator();
  second->order("mutex " + directory);
  ASSERT_TRUE(is_watched(first.node()));
  Waiter third(mutex(open()));
  ASSERT_TRUE(is_watched(entry(1)));
  EXPECT_FALSE(second->has_answer());

  first.release();

  ASSERT_TRUE(second->holds());
  EXPECT_FALSE(third.has_answer());
  EXPECT_EQ(second->ask("unlock"), "released");
  EXPECT_TRUE(third.holds());
}

TEST_P(MutexInteropTest, WeQueueBehindCuratorAndAheadOfTheNextOfIts) {
  const auto first = curator();
  first->order("mutex " + directory);
  ASSERT_TRUE(first->holds());
  Waiter second(mutex(open()));
  ASSERT_TRUE(is_watched(first->node()));
  const auto third = curator();
  third->order("mutex " + directory);
  ASSERT_TRUE(is_watched(entry(1)));
  EXPECT_FALSE(second.has_answer());

  EXPECT_EQ(first->ask("unlock"), "released");

  ASSERT_TRUE(second.holds());
  EXPECT_FALSE(third->has_answer());
  second.lease().release();
  EXPECT_TRUE(third->holds());
}

TEST_P(MutexInteropTest, ThreeClientsAreServedInOrderOfArrival) {
  const auto theirs = curator();
  const auto pythons = kazoo();
  Session session = open();
  std::vector<std::unique_ptr<Waiter>> ours;
  const std::vector<std::string> rounds = {"a", "b", "c"};
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    theirs->order("mutex " + directory, rounds[i]);
    ASSERT_TRUE(witness.queue_reaches(directory, 3 * i + 1));
    ours.push_back(std::make_unique<Waiter>(mutex(session)));
    ASSERT_TRUE(witness.queue_reaches(directory, 3 * i + 2));
    pythons->order("mutex " + directory, rounds[i]);
    ASSERT_TRUE(witness.queue_reaches(directory, 3 * i + 3));
  }

  for (std::size_t i = 0; i < rounds.size(); ++i) {
    ASSERT_TRUE(theirs->holds(rounds[i]));
    EXPECT_FALSE(ours[i]->has_answer());
    EXPECT_EQ(theirs->ask("unlock", rounds[i]), "released");
    ASSERT_TRUE(ours[i]->holds());
    EXPECT_FALSE(pythons->has_answer(rounds[i]));
    ours[i]->lease().release();
    ASSERT_TRUE(pythons->holds(rounds[i]));
    EXPECT_TRUE(i + 1 == rounds.size() || !theirs->has_answer(rounds[i + 1]));
    EXPECT_EQ(pythons->ask("unlock", rounds[i]), "released");
  }
  EXPECT_TRUE(witness.is_quiet(directory));
}

/// Ours say farewell there, which is nothing to Curator, and Curator says none.
TEST_P(MutexInteropTest, InADeepQueueNobodyIsPassedOverEither) {
  const auto theirs = curator();
  std::vector<std::unique_ptr<Waiter>> ours;
  std::size_t arrived = 0;
  const auto join = [&] {
    ours.push_back(std::make_unique<Waiter>(mutex(open())));
    return witness.queue_reaches(directory, ++arrived);
  };
  while (arrived < queue::kDeep + 4) ASSERT_TRUE(join());
  for (const char* lane : {"a", "b"}) {
    theirs->order("mutex " + directory, lane);
    ASSERT_TRUE(witness.queue_reaches(directory, ++arrived));
    ASSERT_TRUE(join());
    ASSERT_TRUE(join());
  }

  std::size_t next = 0;
  const auto take_turn = [&] {
    ASSERT_TRUE(ours[next]->holds()) << next;
    ours[next++]->lease().release();
  };
  while (next < queue::kDeep + 4) take_turn();
  for (const char* lane : {"a", "b"}) {
    ASSERT_TRUE(theirs->holds(lane));
    EXPECT_FALSE(ours[next]->has_answer());
    EXPECT_EQ(theirs->ask("unlock", lane), "released");
    take_turn();
    take_turn();
  }
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexInteropTest, UnderLoadThereIsOneHolderAtATimeInOrderOfArrival) {
  constexpr int kHolds = 20;
  make_node(witness.session(), directory);  // So that its numbers do not begin anew.
  const SharedSection section;
  const auto theirs = curator();
  const auto others = curator();
  const auto pythons = kazoo();
  const std::string load =
      "load " + section.folder() + " " + std::to_string(kHolds) + " mutex " + directory;

  theirs->order(load, "a");
  theirs->order(load, "b");
  others->order(load, "a");
  pythons->order(load, "a");
  pythons->order(load, "b");
  {
    std::vector<std::jthread> ours;
    for (const std::string who : {"ours-1", "ours-2", "ours-3"}) {
      ours.emplace_back([&, who, session = open()] {
        Visitor visitor(section, "write", who);
        for (int i = 0; i < kHolds; ++i) {
          auto lease = mutex(session).lock(deadline_in(60s));
          ASSERT_TRUE(ok(lease));
          visitor.enter(lease->node());
          pause_between_looks();
          visitor.leave(lease->node());
        }
      });
    }
  }
  EXPECT_EQ(theirs->answer("a"), "done");
  EXPECT_EQ(theirs->answer("b"), "done");
  EXPECT_EQ(others->answer("a"), "done");
  EXPECT_EQ(pythons->answer("a"), "done");
  EXPECT_EQ(pythons->answer("b"), "done");

  EXPECT_EQ(section.conflicts(), 0) << testing::PrintToString(section.log());
  EXPECT_EQ(section.entered().size(), 8U * kHolds);
  EXPECT_TRUE(in_order_of_arrival(section.entered())) << testing::PrintToString(section.log());
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexInteropTest, WhoeverTriesFindsItBusyWhoeverHoldsIt) {
  const auto theirs = curator();
  const auto pythons = kazoo();
  Session session = open();
  const std::string try_it = "try-mutex " + directory;

  Lease lease = take(session, directory);
  EXPECT_EQ(theirs->ask(try_it), "busy");
  EXPECT_EQ(pythons->ask(try_it), "busy");
  ASSERT_TRUE(ok(lease.release(soon())));

  EXPECT_THAT(theirs->ask(try_it), HasSubstr("held "));
  EXPECT_TRUE(fails_with(mutex(session).try_lock(soon()), Code::kBusy));
  ASSERT_TRUE(witness.queue_reaches(directory, 1)) << "our entry goes behind the answer";
  EXPECT_EQ(pythons->ask(try_it), "busy");
  EXPECT_EQ(theirs->ask("unlock"), "released");

  EXPECT_THAT(pythons->ask(try_it), HasSubstr("held "));
  EXPECT_TRUE(fails_with(mutex(session).try_lock(soon()), Code::kBusy));
  ASSERT_TRUE(witness.queue_reaches(directory, 1)) << "our entry goes behind the answer";
  EXPECT_EQ(theirs->ask(try_it), "busy");
  EXPECT_EQ(pythons->ask("unlock"), "released");

  EXPECT_TRUE(ok(mutex(session).try_lock(soon())));
}

TEST_P(MutexInteropTest, ACuratorHolderThatIsKilledMakesWayForUsAndThenForKazoo) {
  Peer doomed(curator_command());
  Guest first(doomed, service().connect_string(), kDoomedTimeout);
  first.order("mutex " + directory);
  ASSERT_TRUE(first.holds());
  Waiter second(mutex(open()));
  ASSERT_TRUE(is_watched(first.node()));
  const auto third = kazoo();
  third->order("mutex " + directory);
  ASSERT_TRUE(is_watched(entry(1)));

  doomed.process().signal(SIGKILL);

  ASSERT_TRUE(second.holds());
  EXPECT_FALSE(third->has_answer());
  second.lease().release();
  EXPECT_TRUE(third->holds());
}

TEST_P(MutexInteropTest, ACuratorWaiterThatIsKilledIsSkipped) {
  Lease first = take(open(), directory);
  Peer doomed(curator_command());
  Guest second(doomed, service().connect_string(), kDoomedTimeout);
  second.order("mutex " + directory);
  ASSERT_TRUE(is_watched(first.node()));
  Waiter third(mutex(open()));
  ASSERT_TRUE(is_watched(entry(1)));

  doomed.process().signal(SIGKILL);

  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  ASSERT_TRUE(is_watched(first.node()));
  EXPECT_FALSE(third.has_answer());
  first.release();
  EXPECT_TRUE(third.holds());
}

TEST_P(MutexInteropTest, AHolderOfOursThatIsKilledMakesWayForCuratorAndThenForKazoo) {
  Child first({LATCHKEY_LOCK_HOLDER, service().connect_string(), directory,
               std::to_string(kDoomedTimeout.count())});
  ASSERT_TRUE(first.wait_for_line("held ", soon()));
  const auto second = curator();
  second->order("mutex " + directory);
  ASSERT_TRUE(is_watched(entry(0)));
  const auto third = kazoo();
  third->order("mutex " + directory);
  ASSERT_TRUE(is_watched(entry(1)));

  first.signal(SIGKILL);

  ASSERT_TRUE(second->holds());
  EXPECT_FALSE(third->has_answer());
  EXPECT_EQ(second->ask("unlock"), "released");
  EXPECT_TRUE(third->holds());
}

TEST_P(KazooInteropTest, StockKazooIsSeenByUsAndByTheSubclassButNotByCurator) {
  const auto stock = kazoo();
  stock->order("stock-mutex " + directory);
  ASSERT_TRUE(stock->holds());
  EXPECT_THAT(stock->node(), HasSubstr("__lock__"));
  Waiter ours(mutex(open()));
  ASSERT_TRUE(is_watched(stock->node()));
  const auto subclass = kazoo();
  EXPECT_EQ(subclass->ask("try-mutex " + directory), "busy");

  // Curator would wait for us, who wait for stock kazoo; alone with stock kazoo it walks in.
  const auto theirs = curator();
  EXPECT_EQ(theirs->ask("try-mutex " + directory), "busy");
  ours.cancel();
  ASSERT_TRUE(witness.queue_reaches(directory, 1));
  EXPECT_THAT(theirs->ask("try-mutex " + directory), HasSubstr("held "));
}

TEST_P(KazooInteropTest, StockKazooSeesNeitherUsNorCurator) {
  const auto stock = kazoo();
  {
    const Lease lease = take(open(), directory);
    EXPECT_THAT(stock->ask("try-stock-mutex " + directory), HasSubstr("held "));
    EXPECT_EQ(lease.state(), LeaseState::kHeld);
    EXPECT_EQ(stock->ask("unlock"), "released");
  }
  const auto theirs = curator();
  theirs->order("mutex " + directory);
  ASSERT_TRUE(theirs->holds());
  EXPECT_THAT(stock->ask("try-stock-mutex " + directory), HasSubstr("held "));
}

TEST_P(KazooInteropTest, ADirectoryThatWasReapedIsMadeAgainByTheSubclass) {
  const auto subclass = kazoo();
  const auto stock = kazoo();
  const auto reaped = [&] {
    static_cast<void>(witness.session().sync(directory, soon()));
    const auto stat = witness.session().exists(directory, soon());
    return stat && !*stat;
  };
  // Both know the directory before it goes, and it is never empty until then: made by kazoo it
  // would be no container.
  Lease lease = take(open(), directory);
  subclass->order("mutex " + directory);
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  lease.release();
  ASSERT_TRUE(subclass->holds());
  stock->order("stock-mutex " + directory);
  ASSERT_TRUE(stock->holds());
  EXPECT_EQ(stock->ask("unlock"), "released");
  EXPECT_EQ(subclass->ask("unlock"), "released");
  ASSERT_TRUE(eventually(reaped));

  EXPECT_THAT(stock->ask("again"), HasSubstr("NoNodeError"));
  EXPECT_THAT(subclass->ask("again"), HasSubstr("held "));
  EXPECT_TRUE(fails_with(mutex(open()).try_lock(soon()), Code::kBusy));
}

TEST_P(KazooInteropTest, TheSubclassListsTheContendersOfAllClients) {
  const Lease lease = take(open(), directory, {.reason = "nightly run"});
  const auto theirs = curator();
  theirs->order("mutex " + directory);
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  const auto pythons = kazoo();
  pythons->order("mutex " + directory);
  pythons->order("stock-mutex " + directory, "b");
  ASSERT_TRUE(witness.queue_reaches(directory, 4));

  EXPECT_EQ(pythons->ask("contenders " + directory, "c"), "contenders 4");
}

}  // namespace
}  // namespace latchkey::test_support
