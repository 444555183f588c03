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
    const auto ago = [now](Instant then) {
      return static_cast<std::uint64_t>((now - then).count());
    };
    fold.kind(self.phase_);
    fold.number(self.waiting_.size());
    for (const auto& one : self.waiting_) {
      fold.number(last - one.turn);
      fold.kind(one.wait);
      fold.number(one.passed_over_since == Instant::max() ? 0 : 1 + ago(one.passed_over_since));
    }
    // Whoever comes after a breath is as late as one who comes an hour later.
    const bool lately = self.released_at_ > now - 2 * LocalLine::kBreath;
    fold.number(lately ? 1 + ago(self.released_at_) : 0);
    fold.flags({self.comes_again_, self.rings_});
    const bool held = self.phase_ == LocalLine::Phase::kHeld;
    const bool kept = self.phase_ == LocalLine::Phase::kKept;
    if (!held && !kept) return;
    fold.number(held ? last - self.holder_ : 0);
    fold.number(self.holds_);
    fold.number(ago(self.since_));
    fold.flags({self.asked_to_let_go_});
    if (kept) fold.number(ago(self.kept_until_));
    if (kept) fold.number(ago(self.lease_until_));
  }
};

}  // namespace latchkey::queue

/// Everything that can happen to those who share one claim to a lock (H70).
namespace latchkey::walk::hand_over {
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
  kPassesOverForEver,
  kForgetsToRing,
  kSleepsOn,
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

constexpr Duration kBreath = LocalLine::kBreath;

constexpr HandOver kLimits{.count = 4, .time = 2ms};

class World {
 public:
  World(int callers, Troubles troubles, Mutant mutant = Mutant::kNone)
      : callers_(callers),
        left_(troubles),
        mutant_(mutant),
        line_({mutant == Mutant::kCountsOneMore ? kLimits.count + 1 : kLimits.count, kLimits.time},
              LocalLine::Keeps::kYes) {}

  [[nodiscard]] std::vector<Step<World>> steps() const;
  [[nodiscard]] std::size_t key() const;
  [[nodiscard]] const std::string& violation() const { return violation_; }
  [[nodiscard]] const Troubles& left() const { return left_; }
  [[nodiscard]] Troubles& left() { return left_; }

  // What may happen.

  void join(Wait wait) {
    arrived_.push_back({.wait = wait});
    const Join join{arrived_.size(), mutant_ == Mutant::kRefusesThePatient ? Wait::kNo : wait};
    comes_ = arrived_.size();
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
  /// With what is left of the lease, if it has not run out.
  void release(Turn turn, Duration lease) {
    if (mutant_ != Mutant::kGivesUpUnderAHolder) at(turn).is = Caller::Is::kReleasing;
    lease_until_ = lapsed_ ? kStart : now_ + lease;
    feed(Release{turn, mutant_ == Mutant::kIgnoresTheLease ? Instant::max() : lease_until_});
    if (at(turn).is == Caller::Is::kReleasing) violate("a release was not answered");
  }
  /// When it is asked for, or later: then time has passed before.
  void ring() {
    now_ = std::max(now_, *std::exchange(rings_at_, {}));
    feed(Rang{});
    if (is_kept() && now_ >= kept_since_ + kBreath) violate("kept for longer than a breath");
  }
  void grant() {
    claim_ = ClaimIs::kHeld;
    ++zxid_;
    holds_ = 0;
    since_ = now_;
    lapsed_ = wished_ = false;
    lease_until_ = Instant::max();
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
    const bool kept = is_kept();
    wished_ = true;
    if (mutant_ == Mutant::kIgnoresWishes) return;
    feed(AskedToLetGo{});
    if (kept && claim_ == ClaimIs::kHeld) violate("kept although asked to let go");
    if (!kept && !at(those(Caller::Is::kHolding).at(0)).asked) violate("a wish was not told");
  }
  void pass(Duration time) { now_ += time; }
  void lapse() { lapsed_ = true; }

 private:
  struct Caller {
    enum class Is { kWaiting, kHolding, kReleasing, kOver };
    Wait wait = Wait::kYes;
    Is is = Is::kWaiting;
    bool asked = false;
    Code code = Code::kLost;
    std::optional<Instant> passed_over = {};  ///< For the first time.
  };
  enum class ClaimIs { kNone, kAsked, kWithdrawn, kHeld };

  Caller& at(Turn turn) { return arrived_[turn - 1]; }
  void violate(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  [[nodiscard]] bool is_kept() const {
    return claim_ == ClaimIs::kHeld && those(Caller::Is::kHolding).empty();
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
    const bool passes_over =
        mutant_ == Mutant::kPassesOverForEver && std::holds_alternative<Join>(event);
    const bool sleeps_on = mutant_ == Mutant::kSleepsOn && std::holds_alternative<Rang>(event);
    Instant now = passes_over || sleeps_on ? kept_since_ : now_;
    if (mutant_ == Mutant::kStopsTheClock) now = kStart;
    for (const queue::hand_over::Action& action : line_.step(event, now)) {
      std::visit([this](const auto& what) { carry_out(what); }, action);
    }
    comes_ = 0;
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
  void carry_out(const PassedOn& action) {
    end_release(action.turn);
    if (is_kept()) kept_since_ = now_;
  }
  void carry_out(const RingAt& action) {
    if (rings_at_) violate("asks for two rings at once");
    if (mutant_ != Mutant::kForgetsToRing) rings_at_ = action.at;
  }
  void end_release(Turn turn) {
    if (mutant_ == Mutant::kForgetsARelease) return;
    if (at(turn).is != Caller::Is::kReleasing) violate("a release ended twice");
    at(turn).is = Caller::Is::kOver;
    if (errs(Mutant::kEndsAReleaseTwice)) end_release(turn);
  }
  void carry_out(const Grant& action) {
    if (at(action.turn).is != Caller::Is::kWaiting) violate("answered twice");
    if (!those(Caller::Is::kHolding).empty()) violate("two hold at once");
    if (those(Caller::Is::kWaiting).front() != action.turn) pass_over(action.turn);
    const Token token(zxid_, mutant_ == Mutant::kReusesTokens ? 0 : action.hold);
    if (token <= token_) violate("the token does not grow");
    token_ = token;
    ++holds_;
    if (holds_ > kLimits.count) violate("passed on too often");
    if (holds_ > 1 && now_ - since_ >= kLimits.time) violate("passed on after its time");
    if (holds_ > 1 && now_ >= lease_until_) violate("passed on without a lease");
    if (holds_ > 1 && wished_) violate("passed on although asked to let go");
    at(action.turn).is = Caller::Is::kHolding;
    const std::vector<Turn> next = those(Caller::Is::kWaiting);
    if (mutant_ == Mutant::kGrantsTwo && !next.empty()) carry_out(Grant{next[0], action.hold + 1});
  }
  /// Only by one who comes while nobody holds, and nobody for too long.
  void pass_over(Turn by) {
    if (by != comes_) violate("overtaken");
    for (const Turn turn : those(Caller::Is::kWaiting)) {
      if (turn == by) continue;
      Instant& since =
          at(turn).passed_over ? *at(turn).passed_over : at(turn).passed_over.emplace(kept_since_);
      if (now_ >= since + LocalLine::kPatience) violate("passed over for too long");
    }
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
    if (!action.turn) {
      if (!those(Caller::Is::kHolding).empty()) violate("the holder is not told of its loss");
      return;
    }
    if (at(*action.turn).is != Caller::Is::kHolding) violate("loses what it does not hold");
    at(*action.turn).is = Caller::Is::kOver;
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
    if (is_kept() && !anybody) violate("the lock is kept for nobody");
    if (is_kept() && !rings_at_) violate("the lock is kept and nobody looks");
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
  Instant lease_until_ = Instant::max();  ///< As of the last release.
  Instant kept_since_ = kStart;
  std::optional<Instant> rings_at_;
  Turn comes_ = 0;  ///< Who is joining now.
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
    if (is != Caller::Is::kHolding) continue;
    steps.may("release" + who, [turn](World& w) { w.release(turn, 1h); });
    steps.trouble("release with little of the lease left" + who, &Troubles::lapses,
                  [turn](World& w) { w.release(turn, kBreath / 2); });
  }
  if (rings_at_) steps.soon("ring", [](World& w) { w.ring(); });
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
    if (!is_kept()) steps.trouble("lapse", &Troubles::lapses, [](World& w) { w.lapse(); });
    if (now_ - since_ <= kLimits.time) steps.may("tick", [](World& w) { w.pass(1ms); });
    if (is_kept() && now_ == kept_since_)
      steps.may("half a breath", [](World& w) { w.pass(kBreath / 2); });
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
    const bool waits = one.is == Caller::Is::kWaiting && one.passed_over;
    fold.number(waits ? 1 + static_cast<std::uint64_t>((now_ - *one.passed_over).count()) : 0);
  }
  fold.number(rings_at_ ? 1 + static_cast<std::uint64_t>((now_ - *rings_at_).count()) : 0);
  if (is_kept()) {
    fold.number(static_cast<std::uint64_t>((now_ - kept_since_).count()));
    fold.number(static_cast<std::uint64_t>((now_ - lease_until_).count()));
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

TEST(HandOverExploration, H70_WhoComesBackTimeAndAgainPassesNobodyOverForLong) {
  // Six, so that a lock can be kept twice in a row and still be passed on.
  expect_all_is_well(World(6, {.losses = 1, .wishes = 1}));
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
    {"PassesOverForEver", Mutant::kPassesOverForEver, "passed over for too long"},
    {"ForgetsToRing", Mutant::kForgetsToRing, "the lock is kept and nobody looks"},
    {"SleepsOn", Mutant::kSleepsOn, "kept for longer than a breath"},
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
}  // namespace latchkey::walk::hand_over
