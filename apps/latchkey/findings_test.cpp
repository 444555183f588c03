#include "findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "queue/counter.hpp"

namespace latchkey::app {
namespace {

using testing::HasSubstr;
using Weight = Finding::Weight;

constexpr const char* kHealthy =
    "Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on 2022-02-25\n"
    "Latency min/avg/max: 0/0.4/12\nReceived: 20\nSent: 19\nConnections: 1\nOutstanding: 0\n"
    "Zxid: 0x100000004\nMode: standalone\nNode count: 7\n";

Queue lock_with(QueueEntry::Standing standing) {
  QueueEntry entry;
  entry.node = "_c_x-lock-0000000001";
  entry.standing = standing;
  entry.session = 0x1234;
  entry.created_ms = 1'000;
  Queue lock;
  lock.directory = "/locks/a";
  lock.exists = true;
  lock.entries = {entry};
  return lock;
}

TEST(Findings, AHealthyLockHasNone) {
  EXPECT_TRUE(diagnose(lock_with(QueueEntry::Standing::kHolds), 5, 2'000).empty());
}

TEST(Findings, WhatTheLibraryWarnsOfIsBad) {
  Queue lock = lock_with(QueueEntry::Standing::kHolds);
  lock.warnings = {"Entries of two kinds."};
  const auto found = diagnose(lock, 5, 2'000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].weight, Weight::kBad);
  EXPECT_EQ(found[0].what, "Entries of two kinds.");
}

TEST(Findings, AnEntryWithoutASessionIsAnOrphan) {
  Queue lock = lock_with(QueueEntry::Standing::kHolds);
  lock.entries[0].session = 0;
  const auto found = diagnose(lock, 5, 2'000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].where, "/locks/a/_c_x-lock-0000000001");
  EXPECT_THAT(found[0].advice, HasSubstr("revoke --force"));
}

TEST(Findings, ForeignNodesAreNamed) {
  const auto found = diagnose(lock_with(QueueEntry::Standing::kForeign), 5, 2'000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].what, HasSubstr("_c_x-lock-0000000001"));
}

TEST(Findings, H35_ACounterNearItsEndIsSeenInAnEmptyDirectoryToo) {
  Queue lock = lock_with(QueueEntry::Standing::kHolds);
  lock.entries.clear();
  EXPECT_TRUE(diagnose(lock, (1 << 30) - 1, 0).empty());
  EXPECT_EQ(diagnose(lock, 1 << 30, 0).front().weight, Weight::kWarning);
  EXPECT_EQ(diagnose(lock, queue::kSpentFrom, 0).front().weight, Weight::kBad);
  EXPECT_EQ(diagnose(lock, -5, 0).size(), 1U);
}

TEST(Findings, AHolderOfLongAgoIsANote) {
  const auto found = diagnose(lock_with(QueueEntry::Standing::kHolds), 5, 3 * 86'400'000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].weight, Weight::kNote);
}

TEST(ServerFindings, AHealthyServerHasNone) {
  EXPECT_TRUE(diagnose_server("zk1:2181", "imok", kHealthy).empty());
  EXPECT_EQ(version_of(kHealthy), "3.8.0");
}

TEST(ServerFindings, AServerIsCalledWhatItIs) {
  EXPECT_EQ(product_of(kHealthy), "ZooKeeper 3.8.0");
  EXPECT_EQ(product_of("Zookeeper version: 3.8.0-latchkey-0.1.0, built on 2026-01-31 00:00 UTC\n"),
            "Latchkey 0.1.0 (ZooKeeper 3.8.0)");
  EXPECT_EQ(product_of("This ZooKeeper instance is not currently serving requests\n"), "");
}

TEST(ServerFindings, SilenceIsBadAndAWhitelistIsNot) {
  EXPECT_EQ(diagnose_server("zk1:2181", "", "")[0].weight, Weight::kBad);
  const char* refused = "srvr is not executed because it is not in the whitelist.\n";
  EXPECT_EQ(diagnose_server("zk1:2181", "ruok is not executed because ...", refused)[0].weight,
            Weight::kNote);
}

TEST(ServerFindings, AServerWithoutALeaderDoesNotServe) {
  const char* alone = "This ZooKeeper instance is not currently serving requests\n";
  EXPECT_THAT(diagnose_server("zk1:2181", "imok", alone)[0].what, HasSubstr("no leader"));
}

TEST(ServerFindings, SlownessAndDamageAreSeen) {
  const std::string slow =
      "Latency min/avg/max: 1/2500.5/9000\nOutstanding: 5000\nJournal: DAMAGED, see the log\n";
  EXPECT_EQ(diagnose_server("zk1:2181", "imok", slow).size(), 3U);
}

TEST(ServerFindings, DifferentVersionsAreComparedWhereTheyAreKnown) {
  EXPECT_TRUE(compare_versions({{"a", "3.8.0"}, {"b", "3.8.0"}, {"c", ""}}).empty());
  EXPECT_EQ(compare_versions({{"a", "3.8.0"}, {"b", "3.9.1"}}).size(), 1U);
}

}  // namespace
}  // namespace latchkey::app
