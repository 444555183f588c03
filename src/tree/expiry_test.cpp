#include "tree/expiry.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"

namespace latchkey::tree {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr Duration kTick = seconds(2);
/// Not on a tick, as life has it.
constexpr Instant kExpiryStart{milliseconds(1'000'300)};

class ExpiryTest : public testing::Test {
 protected:
  Expiry expiry{kTick};
};

TEST_F(ExpiryTest, NothingIsDueWithoutSessions) {
  EXPECT_EQ(expiry.next(), std::nullopt);
  EXPECT_THAT(expiry.take_expired(kExpiryStart), IsEmpty());
}

TEST_F(ExpiryTest, ASessionRunsOutOnTheTickAfterItsDeadline) {
  expiry.add(1, seconds(4), kExpiryStart);

  const Instant tick = Instant(seconds(1'006));
  EXPECT_EQ(expiry.next(), tick);
  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(4)), IsEmpty());
  EXPECT_THAT(expiry.take_expired(tick - Duration(1)), IsEmpty());
  EXPECT_THAT(expiry.take_expired(tick), ElementsAre(1));
  EXPECT_EQ(expiry.size(), 0U);
}

TEST_F(ExpiryTest, ADeadlineOnATickRunsOutThere) {
  expiry.add(1, seconds(4), Instant(seconds(1'000)));

  EXPECT_THAT(expiry.take_expired(Instant(seconds(1'004)) - Duration(1)), IsEmpty());
  EXPECT_THAT(expiry.take_expired(Instant(seconds(1'004))), ElementsAre(1));
}

TEST_F(ExpiryTest, ASessionIsGivenOutOnce) {
  expiry.add(1, seconds(4), kExpiryStart);
  ASSERT_THAT(expiry.take_expired(kExpiryStart + seconds(10)), ElementsAre(1));

  expiry.touch(1, kExpiryStart + seconds(10));

  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(100)), IsEmpty());
  EXPECT_EQ(expiry.next(), std::nullopt);
}

TEST_F(ExpiryTest, ATouchCountsFromWhenItCame) {
  expiry.add(1, seconds(4), kExpiryStart);

  expiry.touch(1, kExpiryStart + seconds(3));

  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(7) - Duration(1)), IsEmpty());
  EXPECT_EQ(expiry.next(), Instant(seconds(1'008)));
  EXPECT_THAT(expiry.take_expired(Instant(seconds(1'008))), ElementsAre(1));
}

TEST_F(ExpiryTest, AnOldSignOfLifeTakesNothingAway) {
  expiry.add(1, seconds(4), kExpiryStart);

  expiry.touch(1, kExpiryStart - seconds(3));

  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(4) - Duration(1)), IsEmpty());
}

TEST_F(ExpiryTest, ARemovedSessionDoesNotRunOutAndLeavesNothingBehind) {
  expiry.add(1, seconds(4), kExpiryStart);
  expiry.add(2, seconds(4), kExpiryStart);
  expiry.add(3, seconds(4), kExpiryStart);

  expiry.remove(1);
  expiry.remove(1);

  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(10)), UnorderedElementsAre(2, 3));
  expiry.add(4, seconds(40), kExpiryStart);
  expiry.remove(4);
  EXPECT_EQ(expiry.next(), std::nullopt) << "nobody is left to come back for";
}

TEST_F(ExpiryTest, AddingAgainBringsANewTimeout) {
  expiry.add(1, seconds(40), kExpiryStart);
  expiry.add(1, seconds(4), kExpiryStart);

  EXPECT_EQ(expiry.size(), 1U);
  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(6)), ElementsAre(1));
  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(100)), IsEmpty());
}

TEST_F(ExpiryTest, H85_AStallIsAddedToEveryDeadline) {
  expiry.add(1, seconds(4), kExpiryStart);
  expiry.add(2, seconds(10), kExpiryStart);

  expiry.postpone(seconds(12), kExpiryStart + seconds(14));

  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(16) - Duration(1)), IsEmpty());
  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(18)), ElementsAre(1));
  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(22) - Duration(1)), IsEmpty());
  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(24)), ElementsAre(2));
}

TEST_F(ExpiryTest, H85_ASignOfLifeFromBeforeTheStallDoesNotUndoIt) {
  expiry.add(1, seconds(4), kExpiryStart);
  expiry.postpone(seconds(12), kExpiryStart + seconds(12));

  expiry.touch(1, kExpiryStart + seconds(1));

  EXPECT_THAT(expiry.take_expired(kExpiryStart + seconds(16) - Duration(1)), IsEmpty());
}

TEST_F(ExpiryTest, H85_WhoeverWasHeardOfAfterTheStallDoesNotOutliveItsClientByTheStall) {
  expiry.add(1, seconds(4), kExpiryStart);
  expiry.touch(1, kExpiryStart + seconds(60));

  expiry.postpone(seconds(59), kExpiryStart + seconds(60));

  EXPECT_EQ(expiry.deadline_of(1), kExpiryStart + seconds(64));
}

/// Sessions come, are heard of, stall and leave; a plain table of deadlines knows better.
class Crowd {
 public:
  explicit Crowd(std::uint64_t seed)
      : random_(seed),
        tick_(1 + random_.below(100)),
        expiry_(tick_),
        now_(Duration(random_.below(1'000))) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) step();
    // Coming back at next() and at no other time must be enough for everybody.
    while (expiry_.next() && !testing::Test::HasFailure()) advance(*expiry_.next());
    EXPECT_THAT(deadlines_, IsEmpty());
    EXPECT_EQ(expiry_.size(), 0U);
  }

 private:
  struct Known {
    Duration timeout;
    Instant deadline;
  };

  void step() {
    const auto id = static_cast<SessionId>(random_.below(30));
    switch (random_.below(8)) {
      case 0: return add(id);
      case 1:
        expiry_.remove(id);
        deadlines_.erase(id);
        return;
      case 2:
        return random_.below(10) == 0 ? postpone() : advance(now_ + Duration(random_.below(30)));
      case 3: return expiry_.next() ? advance(std::max(now_, *expiry_.next())) : add(id);
      default: return touch(id);
    }
  }

  void add(SessionId id) {
    const Duration timeout(1 + random_.below(500));
    expiry_.add(id, timeout, now_);
    deadlines_[id] = {timeout, now_ + timeout};
  }

  void touch(SessionId id) {
    expiry_.touch(id, now_);
    const auto known = deadlines_.find(id);
    if (known == deadlines_.end()) return;
    known->second.deadline = std::max(known->second.deadline, now_ + known->second.timeout);
  }

  void postpone() {
    const Duration stall(random_.below(300));
    expiry_.postpone(stall, now_);
    for (auto& [id, known] : deadlines_) {
      const Instant most = std::max(known.deadline, now_ + known.timeout);
      known.deadline = std::min(known.deadline + stall, most);
    }
  }

  void advance(Instant now) {
    now_ = now;
    for (const SessionId id : expiry_.take_expired(now)) {
      const auto known = deadlines_.find(id);
      ASSERT_NE(known, deadlines_.end()) << id << " is not there, or was given out before";
      EXPECT_LE(known->second.deadline, now) << id << " is early";
      deadlines_.erase(known);
    }
    for (const auto& [id, known] : deadlines_) {
      EXPECT_GT(known.deadline + tick_, now) << id << " is more than a tick late";
    }
    EXPECT_EQ(expiry_.size(), deadlines_.size());
    EXPECT_EQ(expiry_.next().has_value(), !deadlines_.empty());
    EXPECT_GT(expiry_.next().value_or(Instant::max()), now) << "the caller would spin";
  }

  base::Random random_;
  Duration tick_;
  Expiry expiry_;
  Instant now_;
  std::map<SessionId, Known> deadlines_;
};

TEST(ExpiryRandom, NobodyRunsOutEarlyTwiceOrMoreThanATickLate) {
  for (std::uint64_t seed = 1; seed <= 200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Crowd(seed).run(1'000);
  }
}

}  // namespace
}  // namespace latchkey::tree
