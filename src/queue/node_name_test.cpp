#include "queue/node_name.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace latchkey::queue {
namespace {

const std::string kUuid = "f2b7d1a0-3c5e-4d6f-8a9b-0c1d2e3f4a5b";
const std::string kHex = "f2b7d1a03c5e4d6f8a9b0c1d2e3f4a5b";

TEST(NodeName, ReadsEveryDialect) {
  struct Case {
    std::string child;
    Dialect dialect;
    Share share;
    std::string lock_name = {};
  };
  const std::string n = "0000000042";
  const Case cases[] = {
      {"_c_" + kUuid + "-lock-" + n, Dialect::kCurator, Share::kExclusive},
      {"_c_" + kUuid + "-latch-" + n, Dialect::kCurator, Share::kExclusive},
      {"_c_" + kUuid + "-lease-" + n, Dialect::kCurator, Share::kExclusive},
      {"_c_" + kUuid + "-__READ__" + n, Dialect::kCurator, Share::kShared},
      {"_c_" + kUuid + "-__WRIT__" + n, Dialect::kCurator, Share::kExclusive},
      {"_c_" + kUuid + "-jobs_lock_" + n, Dialect::kNamed, Share::kExclusive, "jobs"},
      {kHex + "__lock__" + n, Dialect::kKazoo, Share::kExclusive},
      {kHex + "__rlock__" + n, Dialect::kKazoo, Share::kShared},
      {"z" + kHex + "__lock__" + n, Dialect::kKazoo, Share::kExclusive},
      {kHex + "-lock-" + n, Dialect::kKazoo, Share::kExclusive},
      {"_c_" + kHex + "-lock-" + n, Dialect::kGo, Share::kExclusive},
      {"x-010000a1b2c3d4e5-" + n, Dialect::kZooKeeper, Share::kExclusive},
      {"x-72057594037927936-" + n, Dialect::kZooKeeper, Share::kExclusive},
      {"x--8070450532247928832-" + n, Dialect::kZooKeeper, Share::kExclusive},
      {"n_" + n, Dialect::kZooKeeper, Share::kExclusive},
      {"n-" + n, Dialect::kZooKeeper, Share::kExclusive},
      {"LOCKNODE" + n, Dialect::kPegasus, Share::kExclusive},
      {kUuid + "_" + n, Dialect::kRust, Share::kExclusive},
      {"latch-worker7-" + n, Dialect::kRust, Share::kExclusive},
      {"lock-" + n, Dialect::kTutorial, Share::kExclusive},
      {"seq-" + n, Dialect::kTutorial, Share::kExclusive},
      {"guid-lock-" + n, Dialect::kTutorial, Share::kExclusive},
      {"jobs_lock_" + n, Dialect::kTutorial, Share::kExclusive, "jobs"},
      {"host1-R-" + n, Dialect::kTutorial, Share::kShared},
      {"host1-W-" + n, Dialect::kTutorial, Share::kExclusive},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.child);
    const auto place = parse_place(one.child);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->name, one.child);
    EXPECT_EQ(place->number, 42);
    EXPECT_EQ(place->dialect, one.dialect);
    EXPECT_EQ(place->share, one.share);
    EXPECT_EQ(place->lock_name, one.lock_name);
    const bool ours = one.dialect == Dialect::kCurator || one.dialect == Dialect::kNamed;
    EXPECT_EQ(place->guid(), ours ? kUuid : "");
  }
}

TEST(NodeName, H35_ReadsWhatAServerPrintsBeyondTheEndOfTheCounter) {
  const std::string head = "_c_" + kUuid + "-lock-";
  const std::pair<const char*, std::int32_t> cases[] = {
      {"0000000000", 0},
      {"2147483647", 2147483647},
      {"-2147483648", -2147483648},
      {"-1000000000", -1000000000},
      {"-999999999", -999999999},
      {"-000000005", -5},
  };
  for (const auto& [text, number] : cases) {
    SCOPED_TRACE(text);
    const auto place = parse_place(head + text);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->number, number);
  }
}

TEST(NodeName, TheHyphenOfATagIsNoMinusSign) {
  EXPECT_EQ(parse_place("_c_" + kUuid + "-lock-0000000005")->number, 5);
  EXPECT_EQ(parse_place("x-010000a1b2c3d4e5-0000000005")->number, 5);
  EXPECT_EQ(parse_place("host-R-0000000005")->number, 5);
  EXPECT_EQ(parse_place("host-R--2147483648")->number, -2147483648);
}

TEST(NodeName, H37_NamesThatOnlyLookLikeContendersAreNone) {
  const std::string good = "_c_" + kUuid + "-lock-";
  const std::string cases[] = {
      "",
      "readme",
      "lease_holder",
      "0000000042",
      "info_0000000042",
      good,
      good + "42",
      good + "000000042",
      good + "00000000042",
      good + "2147483648",
      good + "9999999999",
      good + "-2147483649",
      good + "-0000000005",
      good + "-000000000",
      good + "000000004x",
      good + "0000000042 ",
      good + "0000000042-",
      good + "+000000042",
      good + "0x00000042",
      "_c_" + kUuid + "-LOCK-0000000042",
      "_c_" + kUuid + "-lock0000000042",
      "_c_" + kUuid + "-lock_0000000042",
      "_c_" + kUuid + "-_lock_0000000042",
      "_c_" + kUuid + "-a_lock_b_lock_0000000042",
      "_c_" + kUuid + "-__READ_0000000042",
      "_c_" + kUuid + "latch-0000000042",
      "_c_short-latch-0000000042",
      "deadlock-0000000042",
      "blocklock-0000000042",
      kHex + "_rlock__0000000042",
      "x-nothex-0000000042",
      "x--0000000042",
      "y-010000a1b2c3d4e5-0000000042",
      "LOCKNODE42",
      "MYLOCKNODE0000000042",
      "preseq-0000000042",
      "-R-0000000042",
      "latch--0000000042",
      kUuid.substr(1) + "_0000000042",
      "_lock_0000000042",
  };
  for (const std::string& child : cases) EXPECT_FALSE(parse_place(child)) << child;
}

TEST(NodeName, ExtraTagsAreExclusive) {
  const std::vector<std::string> tags{"_", "-job-"};
  EXPECT_FALSE(parse_place("info_0000000042"));
  ASSERT_TRUE(parse_place("info_0000000042", tags));
  EXPECT_EQ(parse_place("info_0000000042", tags)->dialect, Dialect::kExtra);
  EXPECT_EQ(parse_place("x-job-0000000042", tags)->share, Share::kExclusive);
  EXPECT_EQ(parse_place("-job-0000000042", tags)->number, 42);
  EXPECT_FALSE(parse_place("x-job-042", tags));
  EXPECT_EQ(parse_place("lock-0000000042", tags)->dialect, Dialect::kTutorial);
}

TEST(NodeName, WhatWeFormatWeReadBack) {
  struct Case {
    Tag tag;
    Share share;
    std::string lock_name;
  };
  const Case cases[] = {
      {Tag::kLock, Share::kExclusive, ""},       {Tag::kRead, Share::kShared, ""},
      {Tag::kWrite, Share::kExclusive, ""},      {Tag::kLatch, Share::kExclusive, ""},
      {Tag::kLease, Share::kExclusive, ""},      {Tag::kLock, Share::kExclusive, "a b"},
      {Tag::kLock, Share::kExclusive, "a-lock-"}};
  for (const Case& one : cases) {
    const std::string prefix = node_prefix(kUuid, one.tag, one.lock_name);
    SCOPED_TRACE(prefix);
    const auto place = parse_place(prefix + "0000000007");
    ASSERT_TRUE(place);
    EXPECT_EQ(place->guid(), kUuid);
    EXPECT_EQ(place->number, 7);
    EXPECT_EQ(place->share, one.share);
    EXPECT_EQ(place->lock_name, one.lock_name);
    EXPECT_EQ(place->read_write, one.tag == Tag::kRead || one.tag == Tag::kWrite);
  }
}

TEST(NodeName, LockNamesThatWouldBeAmbiguousAreRefused) {
  EXPECT_TRUE(is_lock_name("jobs"));
  EXPECT_TRUE(is_lock_name("jobs_lock"));
  EXPECT_TRUE(is_lock_name("größe"));
  EXPECT_FALSE(is_lock_name(""));
  EXPECT_FALSE(is_lock_name("a/b"));
  EXPECT_FALSE(is_lock_name("a_lock_b"));
  EXPECT_FALSE(is_lock_name("a\nb"));
  EXPECT_FALSE(is_lock_name("a\x7f"));
  EXPECT_FALSE(is_lock_name("a\xc2\x85"));
  EXPECT_FALSE(is_lock_name(std::string_view("a\0b", 3)));
}

TEST(NodeName, ACandidateOfAnElectionIsToldFromALockThatIsNamedLikeOne) {
  EXPECT_TRUE(is_candidate(node_prefix(kUuid, Tag::kLatch) + "0000000042"));
  EXPECT_FALSE(is_candidate(node_prefix(kUuid, Tag::kLock) + "0000000042"));
  EXPECT_FALSE(is_candidate(node_prefix(kUuid, Tag::kLock, "latch-x") + "0000000042"));
  EXPECT_FALSE(is_candidate(node_prefix(kUuid, Tag::kLatch)));
  EXPECT_FALSE(is_candidate(""));
}

TEST(NodeName, AGuidIsAVersion4Uuid) {
  EXPECT_EQ(format_guid(0, 0), "00000000-0000-4000-8000-000000000000");
  EXPECT_EQ(format_guid(~0ULL, ~0ULL), "ffffffff-ffff-4fff-bfff-ffffffffffff");
  EXPECT_EQ(format_guid(0x0123456789abcdefULL, 0x0123456789abcdefULL),
            "01234567-89ab-4def-8123-456789abcdef");
}

TEST(NodeName, H36_NumbersOrderPlacesWhateverTheGuidsAre) {
  std::mt19937_64 random(20240517);
  for (int round = 0; round < 200; ++round) {
    std::vector<Place> places;
    for (std::int32_t number = 0; number < 12; ++number) {
      std::string digits = std::to_string(number * 97);
      digits.insert(0, 10 - digits.size(), '0');
      const std::string guid = format_guid(random(), random());
      places.push_back(*parse_place(node_prefix(guid, Tag::kLock) + digits));
    }
    std::vector<Place> shuffled = places;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    std::sort(shuffled.begin(), shuffled.end(),
              [](const Place& a, const Place& b) { return a.number < b.number; });
    EXPECT_EQ(shuffled, places);
  }
}

}  // namespace
}  // namespace latchkey::queue
