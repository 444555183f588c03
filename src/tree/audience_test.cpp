#include "tree/audience.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace latchkey::tree {
namespace {

wire::WireAcl acl_entry(std::int32_t permissions, std::string scheme, std::string id) {
  return {{permissions, std::move(scheme), std::move(id)}};
}

AclRef shared(AclList list) { return std::make_shared<const AclList>(std::move(list)); }

/// So many who are meant, and none who asks.
AclList strangers(int count) {
  AclList list;
  for (int i = 0; i < count; ++i) {
    list.push_back(acl_entry(kAllPermissions, "digest", "user" + std::to_string(i) + ":x"));
  }
  return list;
}

std::vector<Identity> identities_of(int peer, int count) {
  std::vector<Identity> identities{{"ip", "10.0.0.1"}};
  for (int i = 1; i < count; ++i) {
    identities.push_back({"digest", "p" + std::to_string(peer) + "-" + std::to_string(i) + ":x"});
  }
  return identities;
}

std::string random_address(base::Random& random) {
  const auto part = [&] { return std::to_string(random.below(3)); };
  switch (random.below(3)) {
    case 0: return "10.0." + part() + "." + part();
    case 1: return "::ffff:10.0." + part() + "." + part();
    default: return "2001:db8::" + part() + ":" + part();
  }
}

Identity random_identity(base::Random& random) {
  const std::string number = std::to_string(random.below(40));
  switch (random.below(8)) {
    case 0: return {"x509", "CN=" + number};
    case 1: return {"digest", "user" + number + ":x"};
    case 2: return {"made-up", "user" + number + ":x"};
    case 3: return {"ip", "no address"};
    case 4: return {"ip", random_address(random) + "%eth0"};
    default: return {"ip", random_address(random)};
  }
}

wire::WireAcl random_entry(base::Random& random) {
  const auto permissions = static_cast<std::int32_t>(random.below(32));
  const std::string number = std::to_string(random.below(40));
  switch (random.below(9)) {
    case 0: return acl_entry(permissions, "x509", "CN=" + number);
    case 1: return acl_entry(permissions, "digest", "user" + number + ":x");
    case 2: return acl_entry(permissions, "made-up", "user" + number + ":x");
    case 3: return acl_entry(permissions, "ip", "10.0.0.0/" + std::to_string(24 + random.below(9)));
    case 4:
      return acl_entry(permissions, "ip", "2001:db8::/" + std::to_string(100 + random.below(29)));
    case 5: return acl_entry(permissions, "ip", "::/" + std::to_string(80 + random.below(49)));
    default: return acl_entry(permissions, "ip", random_address(random));
  }
}

TEST(Audience, H92_IsWhoeverTheListPermitsToRead) {
  base::Random random(7);
  int heard = 0;
  for (int round = 0; round < 2'000; ++round) {
    AclList list;
    const std::uint64_t size = 1 + random.below(12);
    for (std::uint64_t i = 0; i < size; ++i) list.push_back(random_entry(random));
    const AclRef acl = shared(list);
    Audience audience;
    for (PeerId peer = 1; peer < 6; ++peer) {
      std::vector<Identity> identities;
      const std::uint64_t count = 1 + random.below(6);
      for (std::uint64_t i = 0; i < count; ++i) identities.push_back(random_identity(random));
      const bool expected = permits(list, kRead, identities);

      ASSERT_EQ(audience.may_hear(acl, peer, identities), expected) << "round " << round;
      ASSERT_EQ(audience.may_hear(acl, peer, identities), expected) << "and again";
      heard += expected ? 1 : 0;
    }
  }
  EXPECT_GT(heard, 1'000);
  EXPECT_LT(heard, 9'000);
}

TEST(Audience, H92_SuperAndEverybodyHearEverything) {
  AclList list = strangers(50);
  const std::vector<Identity> super{{"ip", "10.0.0.1"}, {"super", ""}};
  EXPECT_TRUE(Audience().may_hear(shared(list), 1, super));
  EXPECT_FALSE(Audience().may_hear(shared(list), 1, identities_of(1, 2)));
  list.push_back(acl_entry(kAllPermissions & ~kRead, "world", "anyone"));
  EXPECT_FALSE(Audience().may_hear(shared(list), 1, identities_of(1, 2)));
  list.push_back(acl_entry(kRead, "world", "anyone"));
  EXPECT_TRUE(Audience().may_hear(shared(list), 1, identities_of(1, 2)));
}

/// Gone through for each who asks, the list alone would be 50 million comparisons.
TEST(Audience, H89_AListIsGoneThroughOnceForAllAndEachIsLookedUpOnce) {
  constexpr int kPeers = 500;
  constexpr int kParts = 10;
  const AclRef list = shared(strangers(1'000));
  Audience audience;

  for (int part = 0; part < kParts; ++part) {
    for (int peer = 1; peer <= kPeers; ++peer) {
      ASSERT_FALSE(audience.may_hear(list, static_cast<PeerId>(peer), identities_of(peer, 100)));
    }
  }

  // 64 for each that is found, 32 for each entry of the list.
  EXPECT_EQ(audience.work(), 64U * kParts * kPeers + 64U * 100 * kPeers + 32U * 1'000);
}

/// A list that is freed may leave its address to the next one.
TEST(Audience, H92_NoListIsTakenForTheOneBeforeIt) {
  Audience audience;
  const std::vector<Identity> identities = identities_of(1, 2);
  for (int i = 0; i < 100; ++i) {
    AclList list = strangers(20);
    if (i % 2 == 0) list.push_back(acl_entry(kRead, "ip", "10.0.0.0/8"));
    ASSERT_EQ(audience.may_hear(shared(std::move(list)), 1, identities), i % 2 == 0);
  }
}

TEST(Audience, H94_WhatIsRememberedIsBounded) {
  Audience audience;
  const AclRef kept = shared(strangers(100));
  for (int i = 0; i < 700; ++i) {
    ASSERT_FALSE(audience.may_hear(shared(strangers(1'000)), 1, identities_of(1, 2)));
    ASSERT_FALSE(audience.may_hear(kept, 1, identities_of(1, 2)));
  }
  // It was forgotten once, and gone through again.
  EXPECT_EQ(audience.work(), 700U * 2 * 64 + 702U * 2 * 64 + 32U * (700 * 1'000 + 2 * 100));
}

}  // namespace
}  // namespace latchkey::tree
