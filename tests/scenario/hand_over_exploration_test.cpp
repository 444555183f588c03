#include <algorithm>
#include <chrono>
#include <optional>

#include <gtest/gtest.h>

#include "latchkey/token.hpp"
#include "queue/hand_over.hpp"
#include "scenario/mini_probe.hpp"
#include "scenario/walk.hpp"

namespace latchkey::queue {

/// Looks into a line. Turns are told by how long ago they came: what was before does not matter.
struct LocalLineProbe {
  static void fold(const LocalLine& self, hand_over::Turn last, Instant now, mini::Fold& fold) {
    fold.kind(self.phase_);
    fold.number(self.waiting_.size());
    for (const auto& one : self.waiting_) {
      fold.number(last - one.turn);
      fold.kind(one.wait);
    }
    if (self.phase_ != LocalLine::Phase::kHeld) return;
    fold.number(last - self.holder_);
    fold.number(self.hold_);
    fold.number(static_cast<std::uint64_t>((now - self.since_).count()));
    fold.flags({self.asked_to_let_go_});
  }
};

}  // namespace latchkey::queue

/// Everything that can happen to those who share one claim to a lock (H70).
namespace latchkey::walk {
namespace {

using namespace std::chrono_literals;
using namespace queue::hand_over;
using queue::LocalLine;
using queue::Wait;

/// How the line, or whoever carries out what it says, is broken on purpose.
enum class Mutant {
  kNone,
  kCountsOneMore,
  kStopsTheClock,
  kIgnoresTheLease,
  kIgnoresWishes,
  kHidesWishes,
  kIgnoresLoss,
  kTellsEverybodyOfLoss,
  kLosesTwice,
  kOvertakes,
  kGrantsTwo,
  kReusesTokens,
  kForgetsToClaim,
  kClaimsTwice,
  kForgetsToWithdraw,
  kWithdrawsTwice,
  kForgetsToGiveUp,
  kGivesUpTwice,
  kGivesUpUnderAHolder,
  kAnswersTwice,
  kForgetsToAnswer,
  kTakesFailureForBusy,
  kTellsAnotherReason,
  kRefusesThePatient,
  kForgetsARelease,
  kEndsAReleaseTwice,
};

/// How often each may happen along one road.
struct Troubles {
  int failures = 0;  ///< Of the claim, for a reason of its own.
  int losses = 0;    ///< Of what was granted.
  int wishes = 0;    ///< That the holder let go.
  int lapses = 0;    ///< Of the lease, by the clock.
  int ends = 0;      ///< Of the session.
};

constexpr HandOver kLimits{.count = 3, .time = 2ms};

class World {
 public:
  World(int callers, Troubles troubles, Mutant mutant = Mutant::kNone)
      : callers_(callers),
        left_(troubles),
        mutant_(mutant),
        line_(
            {mutant == Mutant::kCountsOneMore ? kLimits.count + 1 : kLimits.count, kLimits.time}) {}

  [[nodiscard]] std::vector<Step<World>> steps() const;
  [[nodiscard]] std::size_t key() const;
  [[nodiscard]] const std::string& violation() const { return violation_; }
  [[nodiscard]] const Troubles& left() const { return left_; }
  [[nodiscard]] Troubles& left() { return left_; }

  // What may happen.

  void join(Wait wait) {
    arrived_.push_back({.wait = wait});
    const Join join{arrived_.size(), mutant_ == Mutant::kRefusesThePatient ? Wait::kNo : wait};
    if (mutant_ != Mutant::kOvertakes) return feed(join);
    // Every second one is told of late.
    if (!held_back_ && arrived_.size() % 2 == 0) {
      held_back_ = join;
      return;
    }
    feed(join);
    if (const auto late = std::exchange(held_back_, {})) feed(*late);
  }
  void cancel(Turn turn) {
    const bool waited = at(turn).is == Caller::Is::kWaiting;
    feed(Cancel{turn, Code::kTimedOut});
    if (waited && at(turn).is != Caller::Is::kOver) violate("a cancel was not answered");
  }
  void release(Turn turn) {
    if (mutant_ != Mutant::kGivesUpUnderAHolder) at(turn).is = Caller::Is::kReleasing;
    feed(Release{turn, lease_until()});
    if (at(turn).is == Caller::Is::kReleasing) violate("a release was not answered");
  }
  void grant() {
    claim_ = ClaimIs::kHeld;
    ++zxid_;
    holds_ = 0;
    since_ = now_;
    lapsed_ = wished_ = false;
    feed(Granted{});
  }
  void refuse(Code code) {
    const std::vector<Turn> waited = those(Caller::Is::kWaiting);
    const bool busy = code == Code::kBusy;
    claim_ = ClaimIs::kNone;
    Code told = code;
    if (mutant_ == Mutant::kTakesFailureForBusy) told = Code::kBusy;
    if (mutant_ == Mutant::kTellsAnotherReason) told = Code::kServerError;
    feed(Failed{told});
    for (const Turn turn : waited) {
      if (busy && at(turn).wait == Wait::kYes) continue;
      if (at(turn).is != Caller::Is::kOver) violate("was not told that the claim has failed");
      if (at(turn).code != code) violate("was told another reason");
    }
  }
  void answer_withdrawal() {
    claim_ = ClaimIs::kNone;
    feed(Failed{Code::kTimedOut});
  }
  void lose(Code code) {
    const std::vector<Turn> waited = those(Caller::Is::kWaiting);
    claim_ = ClaimIs::kNone;
    if (code == Code::kSessionLost) session_over_ = true;
    if (mutant_ != Mutant::kIgnoresLoss) feed(Lost{code});
    if (mutant_ == Mutant::kTellsEverybodyOfLoss) {
      for (const Turn turn : waited) feed(Cancel{turn, code});
    }
    if (those(Caller::Is::kWaiting) != waited) violate("one who never held was told of a loss");
    check();
  }
  void wish() {
    wished_ = true;
    if (mutant_ == Mutant::kIgnoresWishes) return;
    feed(AskedToLetGo{});
    if (!at(those(Caller::Is::kHolding).at(0)).asked) violate("a wish was not told");
  }
  void tick() { now_ += 1ms; }
  void lapse() { lapsed_ = true; }

 private:
  struct Caller {
    enum class Is { kWaiting, kHolding, kReleasing, kOver };
    Wait wait = Wait::kYes;
    Is is = Is::kWaiting;
    bool asked = false;
    Code code = Code::kLost;
  };
  enum class ClaimIs { kNone, kAsked, kWithdrawn, kHeld };

  Caller& at(Turn turn) { return arrived_[turn - 1]; }
  void violate(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  [[nodiscard]] Instant lease_until() const {
    if (mutant_ == Mutant::kIgnoresTheLease) return Instant::max();
    return lapsed_ ? kStart : now_ + 1h;
  }
  [[nodiscard]] std::vector<Turn> those(Caller::Is is) const {
    std::vector<Turn> turns;
    for (std::size_t i = 0; i < arrived_.size(); ++i) {
      if (arrived_[i].is == is) turns.push_back(i + 1);
    }
    return turns;
  }
  /// True once, for that mutant.
  [[nodiscard]] bool errs(Mutant how) {
    if (mutant_ != how || erred_) return false;
    return erred_ = true;
  }

  void feed(const queue::hand_over::Event& event) {
    const Instant now = mutant_ == Mutant::kStopsTheClock ? kStart : now_;
    for (const queue::hand_over::Action& action : line_.step(event, now)) {
      std::visit([this](const auto& what) { carry_out(what); }, action);
    }
    check();
  }

  void carry_out(const Claim& action) {
    if (mutant_ == Mutant::kForgetsToClaim && zxid_ > 0) return;
    if (claim_ != ClaimIs::kNone) violate("asks while it has a claim");
    claim_ = ClaimIs::kAsked;
    claim_wait_ = action.wait;
    if (errs(Mutant::kClaimsTwice)) carry_out(action);
  }
  void carry_out(const Withdraw& action) {
    if (claim_ != ClaimIs::kAsked) violate("withdraws what is not asked for");
    if (mutant_ != Mutant::kForgetsToWithdraw) claim_ = ClaimIs::kWithdrawn;
    if (errs(Mutant::kWithdrawsTwice)) carry_out(action);
  }
  void carry_out(const GiveUp& action) {
    if (claim_ != ClaimIs::kHeld) violate("gives up what it does not hold");
    if (!those(Caller::Is::kHolding).empty()) violate("gives up what somebody holds");
    if (action.turn) end_release(*action.turn);
    if (mutant_ != Mutant::kForgetsToGiveUp) claim_ = ClaimIs::kNone;
    if (errs(Mutant::kGivesUpTwice)) carry_out(GiveUp{});
  }
  void carry_out(const PassedOn& action) { end_release(action.turn); }
  void end_release(Turn turn) {
    if (mutant_ == Mutant::kForgetsARelease) return;
    if (at(turn).is != Caller::Is::kReleasing) violate("a release ended twice");
    at(turn).is = Caller::Is::kOver;
    if (errs(Mutant::kEndsAReleaseTwice)) end_release(turn);
  }
  void carry_out(const Grant& action) {
    if (at(action.turn).is != Caller::Is::kWaiting) violate("answered twice");
    if (!those(Caller::Is::kHolding).empty()) violate("two hold at once");
    if (those(Caller::Is::kWaiting).front() != action.turn) violate("overtaken");
    const Token token(zxid_, mutant_ == Mutant::kReusesTokens ? 0 : action.hold);
    if (token <= token_) violate("the token does not grow");
    token_ = token;
    ++holds_;
    if (holds_ > kLimits.count) violate("passed on too often");
    if (holds_ > 1 && now_ - since_ >= kLimits.time) violate("passed on after its time");
    if (holds_ > 1 && lapsed_) violate("passed on without a lease");
    if (holds_ > 1 && wished_) violate("passed on although asked to let go");
    at(action.turn).is = Caller::Is::kHolding;
    const std::vector<Turn> next = those(Caller::Is::kWaiting);
    if (mutant_ == Mutant::kGrantsTwo && !next.empty()) carry_out(Grant{next[0], action.hold + 1});
  }
  void carry_out(const Fail& action) {
    if (mutant_ == Mutant::kForgetsToAnswer) return;
    if (at(action.turn).is != Caller::Is::kWaiting) violate("answered twice");
    const bool patient = at(action.turn).wait == Wait::kYes;
    if (action.code == Code::kBusy && patient) violate("one who would wait was refused");
    at(action.turn).is = Caller::Is::kOver;
    at(action.turn).code = action.code;
    if (errs(Mutant::kAnswersTwice)) carry_out(action);
  }
  void carry_out(const Lose& action) {
    if (at(action.turn).is != Caller::Is::kHolding) violate("loses what it does not hold");
    at(action.turn).is = Caller::Is::kOver;
    if (errs(Mutant::kLosesTwice)) carry_out(action);
  }
  void carry_out(const AskToLetGo& action) {
    if (mutant_ != Mutant::kHidesWishes) at(action.turn).asked = true;
  }

  /// What is true whenever nothing is under way.
  void check() {
    const bool anybody = !those(Caller::Is::kWaiting).empty();
    const bool holder = !those(Caller::Is::kHolding).empty();
    if (anybody && claim_ == ClaimIs::kNone) violate("waits though nobody asks");
    if (!anybody && claim_ == ClaimIs::kAsked) violate("asks for nobody");
    if (claim_ == ClaimIs::kHeld && !holder) violate("the lock is kept for nobody");
    if (claim_ != ClaimIs::kHeld && holder) violate("holds without a claim");
  }

  static constexpr Instant kStart{1h};

  const int callers_;
  Troubles left_;
  const Mutant mutant_;
  bool erred_ = false;
  LocalLine line_;
  std::vector<Caller> arrived_;
  std::optional<Join> held_back_;
  ClaimIs claim_ = ClaimIs::kNone;
  Wait claim_wait_ = Wait::kYes;
  std::int64_t zxid_ = 0;
  Token token_{0};
  int holds_ = 0;  ///< On this claim.
  Instant now_ = kStart;
  Instant since_ = kStart;
  bool lapsed_ = false;
  bool wished_ = false;
  bool session_over_ = false;
  std::string violation_;
};

std::vector<Step<World>> World::steps() const {
  Steps<World> steps(*this);
  // All are alike, so whoever comes next is the next one; only whether it would wait differs.
  if (static_cast<int>(arrived_.size()) < callers_) {
    steps.may("join", [](World& w) { w.join(Wait::kYes); });
    steps.may("try", [](World& w) { w.join(Wait::kNo); });
  }
  for (Turn turn = 1; turn <= arrived_.size(); ++turn) {
    const Caller::Is is = arrived_[turn - 1].is;
    const std::string who = " " + std::to_string(turn);
    if (is == Caller::Is::kOver) continue;
    steps.may("cancel" + who, [turn](World& w) { w.cancel(turn); });
    if (is == Caller::Is::kHolding)
      steps.may("release" + who, [turn](World& w) { w.release(turn); });
  }
  if (claim_ == ClaimIs::kAsked && session_over_) {
    steps.soon("refuse", [](World& w) { w.refuse(Code::kSessionLost); });
  } else if (claim_ == ClaimIs::kAsked) {
    steps.soon("grant", [](World& w) { w.grant(); });
    if (claim_wait_ == Wait::kNo) steps.may("busy", [](World& w) { w.refuse(Code::kBusy); });
    steps.trouble("fail", &Troubles::failures, [](World& w) { w.refuse(Code::kNotAuthorized); });
  }
  if (claim_ == ClaimIs::kWithdrawn) {
    steps.soon("withdrawn", [](World& w) { w.answer_withdrawal(); });
    // The grant may have been on its way already.
    if (!session_over_) steps.may("grant after all", [](World& w) { w.grant(); });
  }
  if (claim_ == ClaimIs::kHeld) {
    steps.trouble("lose", &Troubles::losses, [](World& w) { w.lose(Code::kLost); });
    steps.trouble("session over", &Troubles::ends, [](World& w) { w.lose(Code::kSessionLost); });
    steps.trouble("wish", &Troubles::wishes, [](World& w) { w.wish(); });
    steps.trouble("lapse", &Troubles::lapses, [](World& w) { w.lapse(); });
    if (now_ - since_ <= kLimits.time) steps.may("tick", [](World& w) { w.tick(); });
  }
  return steps.take();
}

std::size_t World::key() const {
  mini::Fold fold;
  queue::LocalLineProbe::fold(line_, arrived_.size(), now_, fold);
  fold.number(arrived_.size());
  for (const Caller& one : arrived_) {
    fold.kind(one.is);
    fold.flags({one.wait == Wait::kYes && one.is == Caller::Is::kWaiting, one.asked});
  }
  fold.kind(claim_);
  fold.kind(claim_wait_);
  fold.number(held_back_ ? held_back_->turn : 0);
  if (claim_ == ClaimIs::kHeld) {
    fold.number(static_cast<std::uint64_t>(holds_));
    fold.number(static_cast<std::uint64_t>((now_ - since_).count()));
  }
  fold.flags({lapsed_, wished_, session_over_, erred_});
  for (const int count : {left_.failures, left_.losses, left_.wishes, left_.lapses, left_.ends}) {
    fold.number(static_cast<std::uint64_t>(count));
  }
  return fold.sum();
}

TEST(HandOverExploration, H70_FiveComeGoAndGiveUpInEveryOrderWithinCountAndTime) {
  expect_all_is_well(World(5, {}));
}

TEST(HandOverExploration, H70_AfterALossOnlyTheHolderIsToldAndTheOthersAreQueuedAnew) {
  expect_all_is_well(World(5, {.failures = 1, .losses = 2}));
}

TEST(HandOverExploration, H70_ASessionThatEndsGrantsNothingMore) {
  expect_all_is_well(World(5, {.failures = 1, .ends = 1}));
}

TEST(HandOverExploration, H70_ALeaseThatRanOutIsNotPassedOn) {
  expect_all_is_well(World(5, {.losses = 1, .lapses = 2}));
}

TEST(HandOverExploration, H70_EverythingInEveryOrder) {
  expect_all_is_well(World(5, {.failures = 1, .losses = 1, .wishes = 1, .lapses = 1, .ends = 1}));
}

// A net that catches nothing is worth nothing: each rule is broken once, and that has to be found.

struct Broken {
  const char* name;
  Mutant mutant;
  const char* found;
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class HandOverExplorationFinds : public testing::TestWithParam<Broken> {};

TEST_P(HandOverExplorationFinds, H70_ALineThat) {
  expect_found(World(5, {.failures = 1, .losses = 1, .wishes = 1, .lapses = 1}, GetParam().mutant),
               GetParam().found);
}

constexpr Broken kBroken[] = {
    {"CountsOneMore", Mutant::kCountsOneMore, "passed on too often"},
    {"StopsTheClock", Mutant::kStopsTheClock, "passed on after its time"},
    {"IgnoresTheLease", Mutant::kIgnoresTheLease, "passed on without a lease"},
    {"IgnoresWishes", Mutant::kIgnoresWishes, "passed on although asked to let go"},
    {"HidesWishes", Mutant::kHidesWishes, "a wish was not told"},
    {"IgnoresLoss", Mutant::kIgnoresLoss, "holds without a claim"},
    {"TellsEverybodyOfLoss", Mutant::kTellsEverybodyOfLoss,
     "one who never held was told of a loss"},
    {"LosesTwice", Mutant::kLosesTwice, "loses what it does not hold"},
    {"Overtakes", Mutant::kOvertakes, "overtaken"},
    {"GrantsTwo", Mutant::kGrantsTwo, "two hold at once"},
    {"ReusesTokens", Mutant::kReusesTokens, "the token does not grow"},
    {"ForgetsToClaim", Mutant::kForgetsToClaim, "waits though nobody asks"},
    {"ClaimsTwice", Mutant::kClaimsTwice, "asks while it has a claim"},
    {"ForgetsToWithdraw", Mutant::kForgetsToWithdraw, "asks for nobody"},
    {"WithdrawsTwice", Mutant::kWithdrawsTwice, "withdraws what is not asked for"},
    {"ForgetsToGiveUp", Mutant::kForgetsToGiveUp, "the lock is kept for nobody"},
    {"GivesUpTwice", Mutant::kGivesUpTwice, "gives up what it does not hold"},
    {"GivesUpUnderAHolder", Mutant::kGivesUpUnderAHolder, "gives up what somebody holds"},
    {"AnswersTwice", Mutant::kAnswersTwice, "answered twice"},
    {"ForgetsToAnswer", Mutant::kForgetsToAnswer, "a cancel was not answered"},
    {"TakesFailureForBusy", Mutant::kTakesFailureForBusy, "was not told that the claim has failed"},
    {"TellsAnotherReason", Mutant::kTellsAnotherReason, "was told another reason"},
    {"RefusesThePatient", Mutant::kRefusesThePatient, "one who would wait was refused"},
    {"ForgetsARelease", Mutant::kForgetsARelease, "a release was not answered"},
    {"EndsAReleaseTwice", Mutant::kEndsAReleaseTwice, "a release ended twice"},
};

INSTANTIATE_TEST_SUITE_P(Mutants, HandOverExplorationFinds, testing::ValuesIn(kBroken),
                         [](const auto& broken) { return broken.param.name; });

}  // namespace
}  // namespace latchkey::walk
