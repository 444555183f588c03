#include "server/bond.hpp"

#include <gtest/gtest.h>

#include "base/process.hpp"

namespace latchkey::server {
namespace {

constexpr std::uint64_t kStart = 123'456;
constexpr pid_t kProcess = 4'711;
const std::int32_t kAsked = base::process_mark(kProcess, kStart);
const Evidence kSure{.pid = kProcess, .start_ticks = kStart, .is_watched = true};

TEST(Bond, HoldsForAProcessThatAskedAndIsWhoItSays) { EXPECT_TRUE(is_bound(kAsked, kSure)); }

TEST(Bond, IsNotMadeUnlessAskedFor) {
  EXPECT_FALSE(is_bound(0, kSure)) << "as every other client sends it";
  EXPECT_FALSE(is_bound(1, kSure));
  EXPECT_FALSE(is_bound(static_cast<std::int32_t>(kStart), kSure));
}

TEST(Bond, WithAnyDoubtTheTimeoutRules) {
  Evidence unseen = kSure;
  unseen.pid = 0;
  Evidence unwatched = kSure;
  unwatched.is_watched = false;
  Evidence gone = kSure;
  gone.start_ticks.reset();

  for (const Evidence& doubtful : {unseen, unwatched, gone, Evidence{}}) {
    EXPECT_FALSE(is_bound(kAsked, doubtful));
  }
}

TEST(Bond, IsNotMadeWithAnotherProcessOfThatNumber) {
  Evidence other = kSure;
  other.start_ticks = kStart + 1;

  EXPECT_FALSE(is_bound(kAsked, other));
}

/// A script starts both in the same tick, and what ends with the proxy would be the client's.
TEST(Bond, IsNotMadeWithAProxyThatBeganTogetherWithItsClient) {
  Evidence proxy = kSure;
  proxy.pid = kProcess + 1;

  EXPECT_FALSE(is_bound(kAsked, proxy));
}

}  // namespace
}  // namespace latchkey::server
