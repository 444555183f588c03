#include <csignal>
#include <thread>

#include <gmock/gmock.h>

#include "interop/interop_fixture.hpp"
#include "latchkey/semaphore.hpp"

/// Curator's InterProcessSemaphoreV2 and ours on one path.
namespace latchkey::test_support {
namespace {

using testing::HasSubstr;

TEST_P(SemaphoreInteropTest, OneThatCuratorMadeHasNoSizeAndIsJoinedWithTheCallers) {
  const auto theirs = curator();
  theirs->order("semaphore " + directory + " 2 1");
  ASSERT_TRUE(theirs->holds());
  const Semaphore semaphore(open(), directory, {.size = 2});

  const auto second = semaphore.permits().lock(soon());
  ASSERT_TRUE(ok(second));
  EXPECT_TRUE(fails_with(semaphore.permits().try_lock(soon()), Code::kBusy));
  Waiter third(semaphore.permits());
  ASSERT_TRUE(witness.queue_reaches(directory + "/locks", 1));
  EXPECT_FALSE(third.has_answer());
  EXPECT_EQ(theirs->ask("unlock"), "released");

  EXPECT_TRUE(third.holds());
}

TEST_P(SemaphoreInteropTest, CuratorTakesFromOneThatWeMadeWhatIsLeft) {
  const Semaphore semaphore(open(), directory, {.size = 3});
  auto ours = semaphore.permits(2).lock(soon());
  ASSERT_TRUE(ok(ours));
  const auto theirs = curator();

  EXPECT_EQ(theirs->ask("try-semaphore " + directory + " 3 2"), "busy");
  EXPECT_THAT(theirs->ask("try-semaphore " + directory + " 3 1"), HasSubstr("held "));
  theirs->order("semaphore " + directory + " 3 1", "waits");
  ASSERT_TRUE(witness.queue_reaches(directory + "/leases", 4));
  EXPECT_FALSE(theirs->has_answer("waits"));
  ours->release();

  EXPECT_TRUE(theirs->holds("waits"));
  const auto size = semaphore.size(soon());
  ASSERT_TRUE(ok(size));
  EXPECT_EQ(*size, 3);
}

TEST_P(SemaphoreInteropTest, WhoeverWaitsIsServedInOrderOfArrival) {
  const std::string one = "semaphore " + directory + " 1 1";
  const Semaphore semaphore(open(), directory, {.size = 1});
  auto first = semaphore.permits().lock(soon());
  ASSERT_TRUE(ok(first));
  const auto theirs = curator();
  theirs->order(one, "second");
  ASSERT_TRUE(witness.queue_reaches(directory + "/locks", 1));
  Waiter third(semaphore.permits());
  ASSERT_TRUE(witness.queue_reaches(directory + "/locks", 2));
  theirs->order(one, "fourth");
  ASSERT_TRUE(witness.queue_reaches(directory + "/locks", 3));

  first->release();

  ASSERT_TRUE(theirs->holds("second"));
  EXPECT_FALSE(third.has_answer());
  EXPECT_EQ(theirs->ask("unlock", "second"), "released");
  ASSERT_TRUE(third.holds());
  EXPECT_FALSE(theirs->has_answer("fourth"));
  third.lease().release();
  EXPECT_TRUE(theirs->holds("fourth"));
}

TEST_P(SemaphoreInteropTest, UnderLoadThereAreNeverMoreHoldersThanPermits) {
  constexpr int kHolds = 10;
  const SharedSection section;
  const auto theirs = curator();
  const auto others = curator();
  const std::string load = "load " + section.folder() + " " + std::to_string(kHolds) +
                           " semaphore " + directory + " 3 1";

  theirs->order(load, "a");
  theirs->order(load, "b");
  others->order(load, "a");
  {
    std::vector<std::jthread> ours;
    for (const std::string who : {"ours-1", "ours-2", "ours-3"}) {
      ours.emplace_back([&, who, session = open()] {
        const Semaphore semaphore(session, directory, {.size = 3});
        Visitor visitor(section, "semaphore", who, 3);
        for (int i = 0; i < kHolds; ++i) {
          auto lease = semaphore.permits().lock(deadline_in(60s));
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

  EXPECT_EQ(section.conflicts(), 0) << testing::PrintToString(section.log());
  EXPECT_EQ(section.entered().size(), 6U * kHolds);
  EXPECT_TRUE(witness.is_quiet(directory + "/locks"));
  EXPECT_TRUE(witness.is_quiet(directory + "/leases"));
}

// Curator's acquire(2) takes one, lets the next in line pass, and queues again for the other. If
// whoever passes needs what Curator has, both wait; so do two Curators among themselves.
TEST_P(SemaphoreInteropTest, ACuratorThatWantsSeveralCanWaitForUsWhileWeWaitForIt) {
  const Semaphore semaphore(open(), directory, {.size = 2});
  auto first = semaphore.permits(2).lock(soon());
  ASSERT_TRUE(ok(first));
  const auto theirs = curator();
  theirs->order("semaphore " + directory + " 2 2");
  ASSERT_TRUE(witness.queue_reaches(directory + "/locks", 1));
  Waiter ours(semaphore.permits(2));
  ASSERT_TRUE(witness.queue_reaches(directory + "/locks", 2));
  const std::string before = witness.queue(directory + "/locks").at(0);

  first->release();

  ASSERT_TRUE(eventually([&] {
    const auto line = witness.queue(directory + "/locks");
    return line.size() == 2 && line.at(0) != before;
  }));
  EXPECT_FALSE(theirs->has_answer());
  EXPECT_FALSE(ours.has_answer());
  ours.cancel();
  EXPECT_TRUE(theirs->holds());
}

TEST_P(SemaphoreInteropTest, KazoosSemaphoreIsAnotherOneAlthoughItsPathIsTheSame) {
  const auto pythons = kazoo();
  pythons->order("stock-semaphore " + directory + " 1");
  ASSERT_TRUE(pythons->holds());

  const Semaphore semaphore(open(), directory, {.size = 1});

  EXPECT_TRUE(ok(semaphore.permits().try_lock(soon()))) << "or we have learned its layout";
}

TEST_P(SemaphoreInteropTest, ThePermitOfACuratorThatIsKilledComesBack) {
  const Semaphore semaphore(open(), directory, {.size = 1});
  Peer doomed(curator_command());
  Guest theirs(doomed, service().connect_string(), kDoomedTimeout);
  theirs.order("semaphore " + directory + " 1 1");
  ASSERT_TRUE(theirs.holds());
  Waiter ours(semaphore.permits());
  ASSERT_TRUE(witness.queue_reaches(directory + "/locks", 1));

  doomed.process().signal(SIGKILL);

  EXPECT_TRUE(ours.holds());
}

}  // namespace
}  // namespace latchkey::test_support
