#include <csignal>

#include <gmock/gmock.h>

#include "interop/interop_fixture.hpp"
#include "latchkey/election.hpp"

/// Curator's LeaderLatch and our Election in one directory.
namespace latchkey::test_support {
namespace {

bool leads(const Election& election) {
  return eventually([&] { return election.state() == ElectionState::kLeading; });
}

TEST_P(ElectionInteropTest, WeLeadAfterCuratorAndCuratorAfterUs) {
  const auto theirs = curator();
  theirs->order("latch " + directory + " theirs-1", "a");
  ASSERT_TRUE(theirs->holds("a"));
  Election ours(open(), directory, {.id = "ours"});
  ASSERT_TRUE(is_watched(theirs->node()));
  theirs->order("latch " + directory + " theirs-2", "b");
  ASSERT_TRUE(is_watched(entry(1)));
  EXPECT_EQ(ours.state(), ElectionState::kQueued);

  EXPECT_EQ(theirs->ask("unlock", "a"), "released");

  ASSERT_TRUE(leads(ours));
  EXPECT_FALSE(theirs->has_answer("b"));
  ours.close();
  EXPECT_TRUE(theirs->holds("b"));
}

TEST_P(ElectionInteropTest, KazooLeadsInItsTurn) {
  const auto first = kazoo();
  first->order("latch " + directory + " first");
  ASSERT_TRUE(first->holds());
  Election ours(open(), directory, {.id = "ours"});
  ASSERT_TRUE(is_watched(first->node()));
  const auto third = kazoo();
  third->order("latch " + directory + " third");
  ASSERT_TRUE(is_watched(entry(1)));
  const auto theirs = curator();
  theirs->order("latch " + directory + " theirs");
  ASSERT_TRUE(is_watched(entry(2)));

  EXPECT_EQ(first->ask("unlock"), "released");
  ASSERT_TRUE(leads(ours));
  EXPECT_FALSE(third->has_answer());
  ours.close();
  ASSERT_TRUE(third->holds());
  EXPECT_FALSE(theirs->has_answer());
  EXPECT_EQ(third->ask("unlock"), "released");
  EXPECT_TRUE(theirs->holds());
}

TEST_P(ElectionInteropTest, WhenWeResignWeQueueAgainBehindCurator) {
  Election ours(open(), directory, {.id = "ours"});
  ASSERT_TRUE(leads(ours));
  const auto theirs = curator();
  theirs->order("latch " + directory + " theirs");
  ASSERT_TRUE(is_watched(entry(0)));

  ours.resign();

  ASSERT_TRUE(theirs->holds());
  ASSERT_TRUE(is_watched(theirs->node()));
  EXPECT_EQ(theirs->ask("unlock"), "released");
  EXPECT_TRUE(leads(ours));
}

TEST_P(ElectionInteropTest, ObserversOfBothSeeTheSameLeader) {
  Session session = open();
  const auto theirs = curator();
  Election ours(session, directory, {.id = "ours"});
  ASSERT_TRUE(leads(ours));
  theirs->order("latch " + directory + " theirs");
  ASSERT_TRUE(is_watched(entry(0)));
  const auto pythons = kazoo();
  pythons->order("latch " + directory + " pythons");
  ASSERT_TRUE(is_watched(entry(1)));

  EXPECT_EQ(theirs->ask("leader " + directory, "observer"), "leader ours");
  // Its server may not have heard of the last of them yet.
  EXPECT_TRUE(eventually([&] {
    return theirs->ask("participants " + directory, "observer") ==
           "participants ours theirs pythons";
  }));
  ours.close();

  ASSERT_TRUE(theirs->holds());
  const auto now = leader(session, directory, soon());
  ASSERT_TRUE(ok(now));
  ASSERT_TRUE(now->has_value());
  EXPECT_EQ((*now)->id, "theirs");
  EXPECT_EQ(directory + "/" + witness.queue(directory).at(0), theirs->node());
}

TEST_P(ElectionInteropTest, ACuratorLeaderThatIsKilledMakesWayForUs) {
  Peer doomed(curator_command());
  Guest theirs(doomed, service().connect_string(), kDoomedTimeout);
  theirs.order("latch " + directory + " theirs");
  ASSERT_TRUE(theirs.holds());
  const Election ours(open(), directory, {.id = "ours"});
  ASSERT_TRUE(is_watched(theirs.node()));

  doomed.process().signal(SIGKILL);

  EXPECT_TRUE(leads(ours));
}

}  // namespace
}  // namespace latchkey::test_support
