#include <gmock/gmock.h>

#include "interop/interop_fixture.hpp"
#include "latchkey/inspect.hpp"

/// What our tools tell about other clients' locks, and requests to let go between clients.
namespace latchkey::test_support {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> dialects(const Queue& queue) {
  std::vector<std::string> all;
  for (const QueueEntry& entry : queue.entries) all.push_back(entry.dialect);
  return all;
}

TEST_P(InspectInteropTest, CuratorAndAStockKazooInOneDirectoryAreCalledUnsafe) {
  const auto theirs = curator();
  theirs->order("mutex " + directory);
  ASSERT_TRUE(theirs->holds());
  const auto stock = kazoo();
  stock->order("stock-mutex " + directory);
  ASSERT_TRUE(stock->holds()) << "they do not see each other";

  const auto queue = inspect(witness.session(), directory, soon());

  ASSERT_TRUE(ok(queue));
  EXPECT_THAT(dialects(*queue), ElementsAre("curator", "kazoo"));
  EXPECT_THAT(queue->warnings, Contains(HasSubstr("kazoo")));
}

TEST_P(InspectInteropTest, AQueueOfClientsWhoSeeEachOtherIsNothingToWorryAbout) {
  Session session = open();
  const Lease lease = take(session, directory, {.reason = "nightly run"});
  const auto theirs = curator();
  theirs->order("mutex " + directory);
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  const auto pythons = kazoo();
  pythons->order("mutex " + directory);
  ASSERT_TRUE(witness.queue_reaches(directory, 3));

  const auto queue = inspect(witness.session(), directory, soon());

  ASSERT_TRUE(ok(queue));
  EXPECT_THAT(dialects(*queue), ElementsAre("curator", "curator", "kazoo"));
  EXPECT_THAT(queue->warnings, IsEmpty());
  ASSERT_EQ(queue->holders().size(), 1U);
  EXPECT_EQ(queue->holders().front()->reason, "nightly run");
}

TEST_P(InspectInteropTest, ALeaseOfACuratorThatStillWaitsIsShownAsWaiting) {
  const auto first = curator();
  first->order("semaphore " + directory + " 1 1");
  ASSERT_TRUE(first->holds());
  const auto second = curator();
  second->order("semaphore " + directory + " 1 1");
  // Its lease is made before it may have it, and it stands first in the queue in front meanwhile.
  ASSERT_TRUE(witness.queue_reaches(directory + "/leases", 2));
  ASSERT_TRUE(witness.queue_reaches(directory + "/locks", 1));
  EXPECT_FALSE(second->has_answer());

  const auto queue = inspect(witness.synced(), directory, soon());

  ASSERT_TRUE(ok(queue));
  ASSERT_EQ(queue->holders().size(), 1U);
  EXPECT_EQ(directory + "/" + queue->holders().front()->node, first->node());
  std::vector<std::string> waiting;
  for (const QueueEntry& entry : queue->entries) {
    if (entry.standing == QueueEntry::Standing::kWaits) {
      waiting.push_back(entry.node.substr(0, entry.node.find('/')));
    }
  }
  EXPECT_THAT(waiting, testing::UnorderedElementsAre("leases", "locks"));
}

TEST_P(InspectInteropTest, CuratorsRevokerAsksUsToLetGo) {
  const Lease lease = take(open(), directory);
  const std::stop_token wish = lease.release_requested();
  const auto theirs = curator();

  EXPECT_EQ(theirs->ask("revoke " + lease.node()), "done");

  EXPECT_TRUE(eventually([&] { return wish.stop_requested(); }));
  EXPECT_EQ(lease.state(), LeaseState::kHeld) << "it is a wish";
  const auto queue = inspect(witness.session(), directory, soon());
  ASSERT_TRUE(ok(queue));
  EXPECT_TRUE(queue->entries.at(0).release_requested);
}

TEST_P(InspectInteropTest, OurRevokeAsksCuratorToLetGo) {
  const auto theirs = curator();
  theirs->order("revocable " + directory);
  ASSERT_TRUE(theirs->holds());

  ASSERT_TRUE(ok(revoke(witness.session(), theirs->node(), soon())));

  EXPECT_EQ(theirs->answer(), "revoked");
  EXPECT_EQ(theirs->ask("unlock"), "released");
  EXPECT_TRUE(witness.queue_reaches(directory, 0));
}

}  // namespace
}  // namespace latchkey::test_support
