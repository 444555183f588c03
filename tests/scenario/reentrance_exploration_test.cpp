#include <algorithm>
#include <chrono>
#include <deque>

#include <gtest/gtest.h>

#include "queue/reentrance.hpp"
#include "scenario/mini_probe.hpp"
#include "scenario/walk.hpp"

namespace latchkey::queue {

/// Looks into an owner's standing. `rank` says which of the levels that are left it is.
struct ReentranceProbe {
  template <class Rank>
  static void fold(const Reentrance& self, const Rank& rank, mini::Fold& fold) {
    fold.kind(self.phase_);
    fold.number(self.asking_ ? rank(self.asking_->level) + 1 : 0);
    fold.number(self.levels_.size());
    for (const reentrance::Level level : self.levels_) fold.number(rank(level));
    fold.flags({self.asked_to_let_go_});
  }
};

}  // namespace latchkey::queue

/// Everything that can happen to the owners of a lock that each may enter again (H55).
namespace latchkey::walk::reentrance {
namespace {

using namespace std::chrono_literals;
using namespace queue::reentrance;
using queue::Reentrance;
using queue::Wait;

/// How an owner's standing, or whoever carries out what it says, is broken on purpose.
enum class Mutant {
  kNone,
  kLetsAnotherIn,
  kIgnoresTheLease,
  kForgetsTheSecondLevel,
  kRefusesWithoutNeed,
  kForgetsToAnswer,
  kForgetsTheOwner,
  kJumpsTheQueue,
  kForgetsToClaim,
  kClaimsTwice,
  kForgetsToWithdraw,
  kLeavesItsClaim,
  kForgetsToEndTheLease,
  kForgetsToGiveUp,
  kGivesUpUnderALevel,
  kGivesUpTwice,
  kAnswersTwice,
  kLosesOneLevelOnly,
  kLosesTwice,
  kHidesWishes,
  kForgetsARelease,
  kEndsAReleaseTwice,
};

/// How often each may happen along one road.
struct Troubles {
  int failures = 0;  ///< Of a claim, for a reason of its own.
  int losses = 0;    ///< Of what was granted.
  int wishes = 0;    ///< That the holder let go.
  int lapses = 0;    ///< Of the lease, by the clock.
};

/// Some owners who share one session, and the queue in which their claims meet.
class World {
 public:
  World(std::size_t owners, std::size_t levels, Troubles troubles, Mutant mutant = Mutant::kNone)
      : most_(levels), left_(troubles), mutant_(mutant), owners_(owners) {}

  [[nodiscard]] std::vector<Step<World>> steps() const;
  [[nodiscard]] std::size_t key() const;
  [[nodiscard]] const std::string& violation() const { return violation_; }
  [[nodiscard]] const Troubles& left() const { return left_; }
  [[nodiscard]] Troubles& left() { return left_; }

  // What may happen.

  void enter(std::size_t owner, Wait wait) {
    const bool waited = waits(owner);
    levels_.push_back({.owner = owner});
    const Level level = levels_.size();
    const bool ignores = mutant_ == Mutant::kIgnoresTheLease;
    const Instant until = lapsed_ && !ignores ? kNow : kNow + 1h;
    const bool confuses = mutant_ == Mutant::kLetsAnotherIn && !in(0).empty() && !lapsed_;
    feed(confuses ? 0 : owner, Enter{level, wait, until});
    if (!waited && at(level).is == Lock::Is::kOver) violate("refused without need");
    if (waited && at(level).is != Lock::Is::kOver) violate("waits for itself");
  }
  void cancel(Level level) {
    const std::size_t owner = at(level).owner;
    const bool waited = at(level).is == Lock::Is::kWaiting;
    feed(owner, Cancel{level, Code::kTimedOut});
    const bool heard = at(level).is == Lock::Is::kOver || owners_[owner].claim == Claimed::kNo ||
                       owners_[owner].claim == Claimed::kWithdrawn;
    if (waited && !heard) violate("a cancel came to nothing");
  }
  void release(Level level) {
    at(level).is = Lock::Is::kReleasing;
    feed(at(level).owner, Release{level});
    if (at(level).is == Lock::Is::kReleasing) violate("a release was not answered");
  }
  void grant(std::size_t owner) {
    owners_[owner].claim = Claimed::kHeld;
    lapsed_ = false;  // Nobody is granted anything under a lease that is not proven.
    feed(owner, Granted{});
  }
  void refuse(std::size_t owner, Code code) {
    end_claim(owner);
    feed(owner, Failed{code});
  }
  void lose(std::size_t owner, Code code) {
    end_claim(owner);
    lapsed_ = false;
    feed(owner, Lost{code});
  }
  void wish(std::size_t owner) {
    owners_[owner].wished = true;
    feed(owner, AskedToLetGo{});
  }
  void lapse() { lapsed_ = true; }

 private:
  /// One lock() call.
  struct Lock {
    enum class Is { kWaiting, kIn, kReleasing, kOver };
    std::size_t owner = 0;
    Is is = Is::kWaiting;
    bool asked = false;
  };
  enum class Claimed { kNo, kAsked, kWithdrawn, kHeld };
  struct Owner {
    Reentrance standing;
    Claimed claim = Claimed::kNo;
    Wait wait = Wait::kYes;
    bool ending = false;  ///< It was said that the lease is over.
    bool wished = false;
  };

  Lock& at(Level level) { return levels_[level - 1]; }
  void violate(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  /// True once, for that mutant.
  [[nodiscard]] bool errs(Mutant how) {
    if (mutant_ != how || erred_) return false;
    return erred_ = true;
  }
  [[nodiscard]] std::vector<Level> those(std::size_t owner, Lock::Is is) const {
    std::vector<Level> found;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      if (levels_[i].owner == owner && levels_[i].is == is) found.push_back(i + 1);
    }
    return found;
  }
  [[nodiscard]] std::vector<Level> in(std::size_t owner) const {
    return those(owner, Lock::Is::kIn);
  }
  [[nodiscard]] bool waits(std::size_t owner) const {
    return !those(owner, Lock::Is::kWaiting).empty();
  }
  void end_claim(std::size_t owner) {
    std::erase(line_, owner);
    owners_[owner].claim = Claimed::kNo;
    owners_[owner].ending = owners_[owner].wished = false;
  }

  void feed(std::size_t owner, const queue::reentrance::Event& event) {
    for (const auto& action : owners_[owner].standing.step(event, kNow)) {
      std::visit([&](const auto& what) { carry_out(owner, what); }, action);
    }
    check();
  }

  void carry_out(std::size_t owner, const Claim& action) {
    if (mutant_ == Mutant::kForgetsToClaim) return;
    if (owners_[owner].claim != Claimed::kNo) violate("asks while it has a claim");
    owners_[owner].claim = Claimed::kAsked;
    owners_[owner].wait = action.wait;
    line_.push_back(owner);
    if (errs(Mutant::kClaimsTwice)) carry_out(owner, action);
  }
  void carry_out(std::size_t owner, const Withdraw& action) {
    if (mutant_ == Mutant::kLeavesItsClaim) {
      return carry_out(owner, Fail{those(owner, Lock::Is::kWaiting).at(0), action.code});
    }
    if (mutant_ != Mutant::kForgetsToWithdraw) owners_[owner].claim = Claimed::kWithdrawn;
  }
  void carry_out(std::size_t owner, const EndLease&) {
    if (mutant_ != Mutant::kForgetsToEndTheLease) owners_[owner].ending = true;
  }
  void carry_out(std::size_t owner, const GiveUp& action) {
    if (owners_[owner].claim != Claimed::kHeld) violate("gives up what it does not hold");
    if (!in(owner).empty()) violate("gives up under a level");
    end_release(action.level);
    if (mutant_ != Mutant::kForgetsToGiveUp) end_claim(owner);
    if (errs(Mutant::kGivesUpTwice)) carry_out(owner, action);
  }
  void carry_out(std::size_t owner, const StillHeld& action) {
    if (mutant_ == Mutant::kGivesUpUnderALevel) return carry_out(owner, GiveUp{action.level});
    end_release(action.level);
    if (mutant_ == Mutant::kForgetsTheOwner) owners_[owner].standing = Reentrance();
  }
  void end_release(Level level) {
    if (mutant_ == Mutant::kForgetsARelease || mutant_ == Mutant::kGivesUpTwice) return;
    if (at(level).is != Lock::Is::kReleasing) violate("a release ended twice");
    at(level).is = Lock::Is::kOver;
    if (errs(Mutant::kEndsAReleaseTwice)) end_release(level);
  }
  void carry_out(std::size_t owner, const Grant& action) {
    Lock& lock = at(action.level);
    if (lock.is != Lock::Is::kWaiting) violate("answered twice");
    if (lock.owner != owner) violate("let into what another holds");
    if (lapsed_) violate("let into what may be lost");
    const bool again = !in(owner).empty();
    if (again && mutant_ == Mutant::kForgetsTheSecondLevel) return;
    if (again && mutant_ == Mutant::kRefusesWithoutNeed) {
      return carry_out(owner, Fail{action.level, Code::kWouldDeadlock});
    }
    lock.is = Lock::Is::kIn;
  }
  void carry_out(std::size_t owner, const Fail& action) {
    if (mutant_ == Mutant::kForgetsToAnswer) return;
    if (at(action.level).is != Lock::Is::kWaiting) violate("answered twice");
    at(action.level).is = Lock::Is::kOver;
    if (errs(Mutant::kAnswersTwice)) carry_out(owner, action);
  }
  void carry_out(std::size_t owner, const Lose& action) {
    if (mutant_ == Mutant::kLosesOneLevelOnly && std::exchange(erred_, true)) return;
    if (at(action.level).is != Lock::Is::kIn) violate("loses what it does not hold");
    at(action.level).is = Lock::Is::kOver;
    if (errs(Mutant::kLosesTwice)) carry_out(owner, action);
  }
  void carry_out(std::size_t, const AskToLetGo& action) {
    if (mutant_ != Mutant::kHidesWishes) at(action.level).asked = true;
  }

  /// What is true whenever nothing is under way.
  void check() {
    std::size_t inside = 0;
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      const Owner& owner = owners_[i];
      const std::vector<Level> levels = in(i);
      if (!levels.empty()) ++inside;
      const bool held = owner.claim == Claimed::kHeld;
      if (!levels.empty() && !held) violate("is in without a claim");
      if (levels.empty() && held) violate("the lock is kept for nobody");
      const bool asks = owner.claim == Claimed::kAsked || owner.claim == Claimed::kWithdrawn;
      if (waits(i) && !asks && !owner.ending) violate("waits though nobody asks");
      if (!waits(i) && asks) violate("asks for nobody");
      if (owner.standing.is_out() != (owner.claim == Claimed::kNo)) violate("forgotten too early");
      for (const Level level : levels) {
        if (owner.wished && !at(level).asked) violate("a wish was not told");
      }
    }
    if (inside > 1) violate("two owners are in at once");
  }

  static constexpr Instant kNow{1h};

  const std::size_t most_;
  Troubles left_;
  const Mutant mutant_;
  bool erred_ = false;
  std::vector<Owner> owners_;
  std::vector<Lock> levels_;
  std::deque<std::size_t> line_;  ///< Owners, by their claims.
  bool lapsed_ = false;
  std::string violation_;
};

std::vector<Step<World>> World::steps() const {
  Steps<World> steps(*this);
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    const std::string who = " " + std::to_string(i);
    if (levels_.size() < most_) {
      steps.may("enter" + who, [i](World& w) { w.enter(i, Wait::kYes); });
      steps.may("try" + who, [i](World& w) { w.enter(i, Wait::kNo); });
    }
    const Owner& owner = owners_[i];
    const bool asks = owner.claim == Claimed::kAsked || owner.claim == Claimed::kWithdrawn;
    const bool first = (!line_.empty() && line_.front() == i) || mutant_ == Mutant::kJumpsTheQueue;
    if (owner.claim == Claimed::kAsked && first)
      steps.soon("grant" + who, [i](World& w) { w.grant(i); });
    if (asks && !first && owner.wait == Wait::kNo) {
      steps.soon("busy" + who, [i](World& w) { w.refuse(i, Code::kBusy); });
    }
    if (owner.claim == Claimed::kWithdrawn) {
      steps.soon("withdrawn" + who, [i](World& w) { w.refuse(i, Code::kTimedOut); });
    }
    if (asks) {
      steps.trouble("fail" + who, &Troubles::failures,
                    [i](World& w) { w.refuse(i, Code::kNotAuthorized); });
    }
    if (owner.claim != Claimed::kHeld) continue;
    // A lease that has run out is noticed sooner or later, and at once by whoever says so.
    if (lapsed_ || owner.ending) {
      steps.soon("lease over" + who, [i](World& w) { w.lose(i, Code::kSessionLost); });
    }
    steps.trouble("lose" + who, &Troubles::losses, [i](World& w) { w.lose(i, Code::kLost); });
    steps.trouble("wish" + who, &Troubles::wishes, [i](World& w) { w.wish(i); });
    steps.trouble("lapse", &Troubles::lapses, [](World& w) { w.lapse(); });
  }
  for (Level level = 1; level <= levels_.size(); ++level) {
    const Lock::Is is = levels_[level - 1].is;
    const std::string which = " level " + std::to_string(level);
    if (is == Lock::Is::kOver) continue;
    steps.may("cancel" + which, [level](World& w) { w.cancel(level); });
    if (is == Lock::Is::kIn) steps.may("release" + which, [level](World& w) { w.release(level); });
  }
  return steps.take();
}

/// What is over does not matter, nor which owner is which: they are told apart by their first
/// level.
std::size_t World::key() const {
  std::vector<Level> left;
  std::vector<std::size_t> order;
  for (Level level = 1; level <= levels_.size(); ++level) {
    const Lock& lock = levels_[level - 1];
    if (lock.is == Lock::Is::kOver) continue;
    left.push_back(level);
    const bool known = std::find(order.begin(), order.end(), lock.owner) != order.end();
    if (!known) order.push_back(lock.owner);
  }
  const auto place_in = [](const auto& list, std::size_t what) {
    return static_cast<std::uint64_t>(std::find(list.begin(), list.end(), what) - list.begin());
  };
  const auto rank = [&](Level level) { return place_in(left, level); };

  mini::Fold fold;
  fold.number(levels_.size());
  fold.number(left.size());
  for (const Level level : left) {
    const Lock& lock = levels_[level - 1];
    fold.kind(lock.is);
    fold.number(place_in(order, lock.owner));
    fold.flags({lock.asked});
  }
  for (const std::size_t which : order) {
    const Owner& owner = owners_[which];
    queue::ReentranceProbe::fold(owner.standing, rank, fold);
    fold.kind(owner.claim);
    fold.flags({owner.wait == Wait::kYes, owner.ending, owner.wished});
    fold.number(place_in(line_, which));
  }
  fold.flags({lapsed_, erred_});
  for (const int count : {left_.failures, left_.losses, left_.wishes, left_.lapses}) {
    fold.number(static_cast<std::uint64_t>(count));
  }
  return fold.sum();
}

TEST(ReentranceExploration, H55_OneOwnerOfFiveLevelsReleasedInEveryOrder) {
  expect_all_is_well(World(1, 5, {.failures = 1, .losses = 1, .wishes = 1, .lapses = 1}));
}

TEST(ReentranceExploration, H55_ThreeOwnersOfFiveLevels) {
  expect_all_is_well(World(3, 5, {.losses = 1}));
}

TEST(ReentranceExploration, H55_FiveOwnersTakeTurns) { expect_all_is_well(World(5, 5, {})); }

TEST(ReentranceExploration, H55_FiveOwnersWithAFailureALossAWishAndALeaseThatEnds) {
  expect_all_is_well(World(5, 5, {.failures = 1, .losses = 1, .wishes = 1, .lapses = 1}));
}

TEST(ReentranceExploration, H55_ALeaseThatRanOutLetsNobodyInAgain) {
  expect_all_is_well(World(2, 5, {.losses = 1, .lapses = 2}));
}

TEST(ReentranceExploration, H55_EverythingInEveryOrder) {
  expect_all_is_well(World(3, 5, {.failures = 1, .losses = 1, .wishes = 1, .lapses = 1}));
}

// A net that catches nothing is worth nothing: each rule is broken once, and that has to be found.

struct Broken {
  const char* name;
  Mutant mutant;
  const char* found;
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class ReentranceExplorationFinds : public testing::TestWithParam<Broken> {};

TEST_P(ReentranceExplorationFinds, H55_AnOwnerThat) {
  expect_found(
      World(2, 4, {.failures = 1, .losses = 1, .wishes = 1, .lapses = 1}, GetParam().mutant),
      GetParam().found);
}

constexpr Broken kBroken[] = {
    {"LetsAnotherIn", Mutant::kLetsAnotherIn, "let into what another holds"},
    {"IgnoresTheLease", Mutant::kIgnoresTheLease, "let into what may be lost"},
    {"ForgetsTheSecondLevel", Mutant::kForgetsTheSecondLevel, "waits though nobody asks"},
    {"RefusesWithoutNeed", Mutant::kRefusesWithoutNeed, "refused without need"},
    {"ForgetsToAnswer", Mutant::kForgetsToAnswer, "waits for itself"},
    {"ForgetsTheOwner", Mutant::kForgetsTheOwner, "forgotten too early"},
    {"JumpsTheQueue", Mutant::kJumpsTheQueue, "two owners are in at once"},
    {"LeavesItsClaim", Mutant::kLeavesItsClaim, "asks for nobody"},
    {"ForgetsToClaim", Mutant::kForgetsToClaim, "waits though nobody asks"},
    {"ClaimsTwice", Mutant::kClaimsTwice, "asks while it has a claim"},
    {"ForgetsToWithdraw", Mutant::kForgetsToWithdraw, "a cancel came to nothing"},
    {"ForgetsToEndTheLease", Mutant::kForgetsToEndTheLease, "waits though nobody asks"},
    {"ForgetsToGiveUp", Mutant::kForgetsToGiveUp, "the lock is kept for nobody"},
    {"GivesUpUnderALevel", Mutant::kGivesUpUnderALevel, "gives up under a level"},
    {"GivesUpTwice", Mutant::kGivesUpTwice, "gives up what it does not hold"},
    {"AnswersTwice", Mutant::kAnswersTwice, "answered twice"},
    {"LosesOneLevelOnly", Mutant::kLosesOneLevelOnly, "is in without a claim"},
    {"LosesTwice", Mutant::kLosesTwice, "loses what it does not hold"},
    {"HidesWishes", Mutant::kHidesWishes, "a wish was not told"},
    {"ForgetsARelease", Mutant::kForgetsARelease, "a release was not answered"},
    {"EndsAReleaseTwice", Mutant::kEndsAReleaseTwice, "a release ended twice"},
};

INSTANTIATE_TEST_SUITE_P(Mutants, ReentranceExplorationFinds, testing::ValuesIn(kBroken),
                         [](const auto& broken) { return broken.param.name; });

}  // namespace
}  // namespace latchkey::walk::reentrance
