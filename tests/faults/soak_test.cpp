#include "soak.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "support/sockets.hpp"

namespace latchkey::faults {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr Usage kUsual{.process = 7, .descriptors = 14, .threads = 5, .memory_kb = 6'000};

/// In which round of a run it is found, and what is said; 0: in none.
struct Found {
  std::size_t round = 0;
  std::string what = {};
};

template <class Next>
Found find_leak(std::size_t rounds, const Next& next, const Allowance& allowance = kClients) {
  std::vector<Usage> readings;
  for (std::size_t round = 1; round <= rounds; ++round) {
    readings.push_back(next(round));
    std::string what = grown(readings, allowance);
    if (!what.empty()) return {round, std::move(what)};
  }
  return {};
}

TEST(Soak, OneDescriptorOrThreadTooManyIsALeak) {
  Usage more = kUsual;
  more.descriptors = 15;
  EXPECT_THAT(grown(std::vector{kUsual, more}, kClients),
              HasSubstr("descriptors grew from 14 to 15"));
  more = kUsual;
  more.threads = 6;
  EXPECT_THAT(grown(std::vector{kUsual, more}, kClients), HasSubstr("threads grew from 5 to 6"));
}

TEST(Soak, FewerThanAtFirstAreNone) {
  const Usage fewer{.process = 7, .descriptors = 12, .threads = 4, .memory_kb = 10};
  EXPECT_THAT(grown(std::vector{kUsual, fewer}, kClients), IsEmpty());
  EXPECT_THAT(grown({}, kClients), IsEmpty());
}

TEST(Soak, DescriptorsAreHeldAgainstTheFirstWhicheverProcessHadThem) {
  const Found found = find_leak(9, [](std::size_t round) {
    Usage usage = kUsual;
    usage.process = static_cast<pid_t>(round);  // It was killed in each.
    usage.descriptors += round == 6 ? 1 : 0;
    return usage;
  });
  EXPECT_EQ(found.round, 6U);
}

TEST(Soak, ASlowLeakOfMemoryIsFound) {
  const Found found = find_leak(120, [](std::size_t round) {
    Usage usage = kUsual;
    usage.memory_kb += 64 * static_cast<std::int64_t>(round);
    return usage;
  });
  EXPECT_EQ(found.round, 37U);  // 33 * 64 KiB are more than the floor.
  EXPECT_THAT(found.what, HasSubstr("memory grew from 6256 to 8368"));
}

TEST(Soak, OfALargeProcessTheShareIsAllowed) {
  const auto leaks = [](std::size_t round) {
    Usage usage = kUsual;
    usage.memory_kb = 100'000 + 1'000 * static_cast<std::int64_t>(round);
    return usage;
  };
  EXPECT_EQ(find_leak(30, leaks).round, 0U);
  EXPECT_EQ(find_leak(31, leaks).round, 31U);  // 104,000 and a quarter are 130,000.
}

TEST(Soak, NoiseIsNotALeak) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    base::Random random(seed);
    const Found found = find_leak(500, [&](std::size_t round) {
      Usage usage = kUsual;
      // At first less than later, then anything within an arena or two.
      usage.memory_kb += round == 1 ? -3'000 : static_cast<std::int64_t>(random.below(1'500));
      usage.descriptors -= static_cast<std::int64_t>(round == 1 ? 0 : random.below(2));
      return usage;
    });
    EXPECT_EQ(found.round, 0U) << "seed " << seed << ": " << found.what;
  }
}

TEST(Soak, ALeakIsFoundBeneathNoise) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    base::Random random(seed);
    const Found found = find_leak(120, [&](std::size_t round) {
      Usage usage = kUsual;
      usage.memory_kb += static_cast<std::int64_t>(random.below(1'500) + 64 * round);
      return usage;
    });
    EXPECT_GT(found.round, kWarmUp) << "seed " << seed;
  }
}

TEST(Soak, AProcessThatIsNewMayNeedWhatItNeeds) {
  const Found found = find_leak(20, [](std::size_t round) {
    Usage usage = kUsual;
    usage.process = round <= 10 ? 7 : 8;
    usage.memory_kb = round <= 10 ? 6'000 : 60'000;
    return usage;
  });
  EXPECT_EQ(found.round, 0U) << found.what;
}

TEST(Soak, ApacheMayGrowALittleAndItsHeapAsItLikes) {
  std::vector<Usage> readings(kWarmUp + 1, kUsual);
  readings.back().descriptors += kApaches.descriptors;
  readings.back().threads += kApaches.threads;
  readings.back().memory_kb *= 100;
  EXPECT_THAT(grown(readings, kApaches), IsEmpty());
  ++readings.back().descriptors;
  EXPECT_THAT(grown(readings, kApaches), HasSubstr("descriptors grew from 14 to 31"));
}

TEST(Soak, AProcessIsReadAsItIs) {
  const Usage before = usage_of(::getpid());
  EXPECT_GT(before.memory_kb, 0);
  const test_support::Fd one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<char> touched(32 << 20, 'x');
  std::jthread thread([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  const Usage after = usage_of(::getpid());
  EXPECT_EQ(after.descriptors, before.descriptors + 1);
  EXPECT_EQ(after.threads, before.threads + 1);
  EXPECT_GE(after.memory_kb, before.memory_kb + (30 << 10));
  EXPECT_EQ(touched.back(), 'x');

  const std::vector<pid_t> twice(2, ::getpid());
  EXPECT_EQ(usage_of(twice).descriptors, 2 * after.descriptors);
  EXPECT_THROW(static_cast<void>(usage_of(pid_t{-1})), std::runtime_error);
}

}  // namespace
}  // namespace latchkey::faults
