#include "base/slab.hpp"

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace latchkey::base {
namespace {

TEST(Slab, FindsWhatIsInIt) {
  Slab<std::string> slab;
  const auto a = slab.insert("a");
  const auto b = slab.insert("b");

  EXPECT_EQ(*slab.find(a), "a");
  EXPECT_EQ(*slab.find(b), "b");
  EXPECT_EQ(slab.size(), 2U);
}

TEST(Slab, WhatIsTakenIsGone) {
  Slab<std::string> slab;
  const auto a = slab.insert("a");

  EXPECT_EQ(slab.take(a), "a");
  EXPECT_EQ(slab.take(a), std::nullopt);
  EXPECT_EQ(slab.find(a), nullptr);
  EXPECT_EQ(slab.size(), 0U);
}

TEST(Slab, AnOldIdDoesNotFindTheNewTenant) {
  Slab<std::string> slab;
  const auto a = slab.insert("a");
  slab.take(a);

  const auto b = slab.insert("b");

  EXPECT_NE(a, b);
  EXPECT_EQ(slab.find(a), nullptr);
  EXPECT_EQ(*slab.find(b), "b");
}

TEST(Slab, NonsenseFindsNothing) {
  Slab<int> slab;
  EXPECT_EQ(slab.find(0), nullptr);
  slab.insert(1);

  EXPECT_EQ(slab.find(0), nullptr);
  EXPECT_EQ(slab.find(~std::uint64_t{0}), nullptr);
  EXPECT_EQ(slab.find(7), nullptr);
}

TEST(Slab, IdsAreNeverReusedNotEvenWhenTheirNumbersRunOut) {
  Slab<int, std::uint8_t> slab;
  std::set<std::uint64_t> ids;

  for (int i = 0; i < 2'000; ++i) {
    const auto id = slab.insert(int{i});
    EXPECT_NE(id, 0U);
    EXPECT_TRUE(ids.insert(id).second) << i;
    EXPECT_EQ(slab.take(id), i);
  }

  EXPECT_EQ(slab.find(0), nullptr);
  EXPECT_EQ(slab.size(), 0U);
}

TEST(Slab, HoldsWhatCanOnlyBeMoved) {
  Slab<std::unique_ptr<int>> slab;

  const auto id = slab.insert(std::make_unique<int>(7));

  EXPECT_EQ(**slab.take(id), 7);
}

}  // namespace
}  // namespace latchkey::base
