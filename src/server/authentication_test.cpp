#include "server/authentication.hpp"

#include <gtest/gtest.h>

namespace latchkey::server {
namespace {

using Identities = std::vector<tree::Identity>;

TEST(Authentication, HidesThePasswordTheWayApacheDoes) {
  // From Apache's own DigestAuthenticationProvider.
  EXPECT_EQ(authenticate("digest", "super:test", ""),
            (Identities{{"digest", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}}));
}

TEST(Authentication, KnowsWhoMayDoEverything) {
  EXPECT_EQ(authenticate("digest", "super:test", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="),
            (Identities{{"super", ""}, {"digest", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}}));
  EXPECT_EQ(authenticate("digest", "super:Test", "super:D/InIHSb7yEEbrWz8b9l71RjZJU=")->size(), 1U);
}

TEST(Authentication, ProvesNothingInAnUnknownScheme) {
  EXPECT_EQ(authenticate("sasl", "ann", ""), std::nullopt);
  EXPECT_EQ(authenticate("super", "", ""), std::nullopt);
  EXPECT_EQ(authenticate("", "", ""), std::nullopt);
}

TEST(Authentication, TakesCredentialsWithoutAPassword) {
  const auto ann = authenticate("digest", "ann", "");
  ASSERT_TRUE(ann);
  EXPECT_TRUE(ann->front().id.starts_with("ann:"));
}

}  // namespace
}  // namespace latchkey::server
