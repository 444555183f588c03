#include "queue/admission.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace latchkey::queue {
namespace {

using Names = std::vector<std::string>;

std::string name_of(Tag tag, int number, std::string_view lock_name = {}) {
  std::string digits = std::to_string(number);
  digits.insert(0, 10 - digits.size(), '0');
  // Later numbers get guids that sort first: whoever orders by name gets it wrong.
  const auto high = ~static_cast<std::uint64_t>(number) << 20;
  return node_prefix(format_guid(high, 1), tag, lock_name) + digits;
}

std::vector<Place> queue_of(const Names& names) {
  std::vector<Place> places;
  for (const std::string& name : names) {
    if (auto place = parse_place(name)) places.push_back(*place);
  }
  return places;
}

Admission admit_in(const Names& names, const std::string& self) {
  return admit(queue_of(names), *parse_place(self));
}

TEST(Admission, TheOnlyOneHolds) {
  const std::string me = name_of(Tag::kLock, 4);
  EXPECT_TRUE(admit_in({me}, me).holds());
}

TEST(Admission, EveryoneWithASmallerNumberIsAheadTheNearestLast) {
  const std::string me = name_of(Tag::kLock, 7);
  const Names all{name_of(Tag::kLock, 9), me, name_of(Tag::kLock, 3), name_of(Tag::kLock, 5)};
  EXPECT_EQ(admit_in(all, me).ahead, (Names{name_of(Tag::kLock, 3), name_of(Tag::kLock, 5)}));
  EXPECT_FALSE(admit_in(all, me).holds());
  EXPECT_TRUE(admit_in(all, name_of(Tag::kLock, 3)).holds());
}

TEST(Admission, H36_OrderIsByNumberForAnyShuffleOfAnyGuids) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    Names in_order;
    for (int number = 0; number < 8; ++number) {
      in_order.push_back(node_prefix(format_guid(random(), random()), Tag::kLock) + "000000000" +
                         std::to_string(number));
    }
    Names shuffled = in_order;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    for (std::size_t i = 0; i < in_order.size(); ++i) {
      const Names before(in_order.begin(), in_order.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_EQ(admit_in(shuffled, in_order[i]).ahead, before);
    }
  }
}

TEST(Admission, H37_NearMissesChangeNothing) {
  const std::string me = name_of(Tag::kLock, 7);
  const std::string ahead = name_of(Tag::kLock, 5);
  Names all{me, ahead};
  for (std::size_t cut = 0; cut < ahead.size(); ++cut) {
    if (!parse_place(ahead.substr(0, cut))) all.push_back(ahead.substr(0, cut));
    if (!parse_place(ahead.substr(cut) + "x")) all.push_back(ahead.substr(cut) + "x");
  }
  EXPECT_GT(all.size(), 100U);
  EXPECT_EQ(admit_in(all, me).ahead, Names{ahead});
}

TEST(Admission, AllDialectsWaitInOneLine) {
  const std::string me = name_of(Tag::kLock, 9);
  const Names all{"0123456789abcdef0123456789abcdef__lock__0000000003",
                  "_c_0123456789abcdef0123456789abcdef-lock-0000000002",
                  "x-010000a1b2c3d4e5-0000000001", "LOCKNODE0000000011", me};
  EXPECT_EQ(admit_in(all, me).ahead, (Names{all[2], all[1], all[0]}));
}

TEST(Admission, H42_H43_AReaderWaitsForWritersAheadOfItOnly) {
  const Names all{name_of(Tag::kRead, 1), name_of(Tag::kWrite, 2), name_of(Tag::kRead, 3),
                  name_of(Tag::kWrite, 4)};
  EXPECT_TRUE(admit_in(all, all[0]).holds());
  EXPECT_EQ(admit_in(all, all[2]).ahead, Names{all[1]});
  EXPECT_EQ(admit_in(all, all[3]).ahead, (Names{all[0], all[1], all[2]}));
}

TEST(Admission, H45_AWriterWaitsForEveryReaderAheadWhicheverLeavesFirst) {
  Names readers{name_of(Tag::kRead, 1), name_of(Tag::kRead, 2), name_of(Tag::kRead, 3)};
  const std::string writer = name_of(Tag::kWrite, 4);
  std::sort(readers.begin(), readers.end());
  do {
    Names left = readers;
    while (!left.empty()) {
      Names all = left;
      all.push_back(writer);
      EXPECT_FALSE(admit_in(all, writer).holds());
      left.pop_back();
    }
    EXPECT_TRUE(admit_in({writer}, writer).holds());
  } while (std::next_permutation(readers.begin(), readers.end()));
}

/// Every queue of up to five entries of each kind, of which any may have left already: who holds,
/// and who is in the way of the others, as the rule says it in one sentence.
TEST(Admission, H42_H43_H45_UpToFiveInEveryMixAndWithEveryGap) {
  constexpr Tag kKinds[] = {Tag::kLock, Tag::kRead, Tag::kWrite};
  int queues = 0;
  for (int mix = 0; mix < 3 * 3 * 3 * 3 * 3; ++mix) {
    for (int present = 1; present < 1 << 5; ++present) {
      Names all;
      std::vector<bool> reads;
      for (int i = 0, rest = mix; i < 5; ++i, rest /= 3) {
        if ((present >> i) % 2 == 0) continue;
        all.push_back(name_of(kKinds[rest % 3], i + 1));
        reads.push_back(kKinds[rest % 3] == Tag::kRead);
      }
      for (std::size_t self = 0; self < all.size(); ++self) {
        Names in_the_way;
        for (std::size_t i = 0; i < self; ++i) {
          if (!reads[self] || !reads[i]) in_the_way.push_back(all[i]);
        }
        const Admission admission = admit_in(all, all[self]);
        ASSERT_EQ(admission.ahead, in_the_way) << testing::PrintToString(all);
        ASSERT_EQ(admission.holds(), in_the_way.empty());
      }
      ++queues;
    }
  }
  EXPECT_EQ(queues, 243 * 31);
}

TEST(Admission, OtherLockNamesInTheSameDirectoryAreNotInTheWay) {
  const std::string me = name_of(Tag::kLock, 7, "red");
  const Names all{name_of(Tag::kLock, 1, "blue"), name_of(Tag::kLock, 2), "red_lock_0000000003",
                  name_of(Tag::kLock, 4, "red"), me};
  EXPECT_EQ(admit_in(all, me).ahead, (Names{all[2], all[3]}));
}

TEST(Admission, H35_ASharedNumberIsAFaultAndNeverATie) {
  const std::string me = "_c_" + format_guid(1, 1) + "-lock-2147483647";
  const std::string twin = "_c_" + format_guid(2, 2) + "-lock-2147483647";
  EXPECT_TRUE(admit_in({me, twin}, me).broken);
  EXPECT_FALSE(admit_in({me, twin}, me).holds());
  EXPECT_FALSE(admit_in({me, twin}, twin).holds());
}

TEST(Admission, H44_ADowngradedReaderMayCarryItsWritersNumber) {
  const std::string writer = name_of(Tag::kWrite, 5);
  const std::string reader = "_c_" + format_guid(9, 9) + "-__READ__0000000005";
  const std::string next = name_of(Tag::kWrite, 6);

  EXPECT_TRUE(admit_in({writer, reader}, reader).holds());
  EXPECT_FALSE(admit_in({writer, reader}, writer).broken);
  EXPECT_EQ(admit_in({reader, next}, next).ahead, Names{reader});
  EXPECT_EQ(admit_in({writer, reader, next}, next).ahead.size(), 2U);
}

TEST(Admission, H44_AWriterBehindAWriterIsWarnedOfADowngrade) {
  const Names all{name_of(Tag::kWrite, 1), name_of(Tag::kWrite, 2), name_of(Tag::kRead, 3)};
  EXPECT_TRUE(admit_in(all, all[1]).may_downgrade);
  EXPECT_FALSE(admit_in(all, all[2]).may_downgrade);
  EXPECT_FALSE(admit_in({name_of(Tag::kLock, 1), name_of(Tag::kLock, 2)}, name_of(Tag::kLock, 2))
                   .may_downgrade);
}

}  // namespace
}  // namespace latchkey::queue
