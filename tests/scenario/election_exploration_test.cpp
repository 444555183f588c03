#include <array>
#include <chrono>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "queue/candidacy.hpp"
#include "scenario/explorer.hpp"
#include "scenario/mini_probe.hpp"
#include "scenario/walk.hpp"

/// Everything that can happen to a few candidates of one election: each is a Candidacy over a queue
/// of real contenders, and every message arrives before anybody does anything else (H73-H75).
namespace latchkey::walk::election {
namespace {

using namespace std::chrono_literals;
using namespace queue::candidacy;
using queue::Candidacy;

/// How whoever carries out a candidate's wishes is broken on purpose.
enum class Mutant {
  kNone,
  kGivesUpBeforeItIsTold,
  kForgetsToGiveUp,
  kForgetsToStand,
  kForgetsToWithdraw,
  kForgetsALoss,
};

/// How often each may happen along one road. Whoever likes may crash or close besides.
struct Troubles {
  int resigns = 0;
  int sicknesses = 0;  ///< The health hook says no.
  int robberies = 0;   ///< Another hand deletes an entry.
  int ends = 0;        ///< Of a session.
  int lapses = 0;      ///< Of a lease by the clock; the session survives it.
};

/// Is every term so short that a rest follows?
enum class Terms { kShort, kLong };

struct Candidate {
  explicit Candidate(Terms terms)
      : machine({.health_period = 1s,
                 .min_pause = 1ms,
                 .max_pause = 8ms,
                 .short_term = terms == Terms::kShort ? 1h : 0h}) {}

  Candidacy machine;
  int slot = -1;         ///< Of its claim in the queue; -1: it has none.
  bool granted = false;  ///< And was told so.
  bool told_of_loss = false;
  std::uint64_t ending = 0;
  std::uint64_t wake = 0;
  bool started = false;
  bool crashed = false;
  bool robbed = false;  ///< Of the entry of its present claim.
  bool over = false;    ///< It was told a last state.
  bool done = false;

  [[nodiscard]] bool is_out() const { return crashed || done; }
  [[nodiscard]] bool leads() const {
    return started && !is_out() && machine.state() == ElectionState::kLeading;
  }
  [[nodiscard]] bool rests() const { return started && !is_out() && slot < 0 && ending == 0; }
};

class Elections {
 public:
  Elections(int candidates, Troubles troubles, Terms terms = Terms::kShort,
            Mutant mutant = Mutant::kNone)
      : line_({.tells_losses_first = mutant != Mutant::kGivesUpBeforeItIsTold}),
        candidates_(static_cast<std::size_t>(candidates), Candidate(terms)),
        left_(troubles),
        mutant_(mutant) {
    for (int i = 0; i < candidates; ++i) line_.add_client();
  }

  [[nodiscard]] std::vector<Step<Elections>> steps() const;
  [[nodiscard]] std::size_t key() const;
  [[nodiscard]] const std::string& violation() const { return violation_; }
  [[nodiscard]] const Troubles& left() const { return left_; }
  [[nodiscard]] Troubles& left() { return left_; }

  // What may happen.

  void start(int who) {
    at(who).started = true;
    feed(who, Start{});
  }
  void resign(int who) { feed(who, Resign{}); }
  void close(int who) { feed(who, Close{}); }
  void fall_sick(int who) {
    feed(who, Woken{std::exchange(at(who).wake, 0)});
    feed(who, Health{false});
  }
  void hear_of_the_end(int who) { feed(who, Told{std::exchange(at(who).ending, 0)}); }
  void wake(int who) { feed(who, Woken{std::exchange(at(who).wake, 0)}); }
  void rob(int who) {
    at(who).robbed = true;
    line_.delete_entry(entry_of(who));
    look();
  }
  void crash(int who) {
    at(who).crashed = true;
    line_.crash(who);
    line_.expire(who);
    look();
  }
  void lapse(int who) {
    line_.lease_over(who);
    look();
  }
  /// Which of them hears of it first, the claim or the candidate, is nobody's promise.
  void end_session(int who, bool claim_first) {
    line_.expire(who);
    at(who).robbed = true;  // Its entry goes with the session.
    if (!claim_first) step(who, SessionOver{Error(Code::kSessionLost)});
    line_.cut(who);
    line_.attach(who, mini::World::Attach::kNewest);
    look();
    if (claim_first) feed(who, SessionOver{Error(Code::kSessionLost)});
  }

 private:
  Candidate& at(int who) { return candidates_[static_cast<std::size_t>(who)]; }
  [[nodiscard]] int count() const { return static_cast<int>(candidates_.size()); }
  [[nodiscard]] const mini::Slot& slot(int number) const {
    return line_.slots()[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] std::string entry_of(int who) const {
    const int slot = candidates_[static_cast<std::size_t>(who)].slot;
    for (const auto& [name, entry] : line_.leader().entries) {
      if (entry.slot == slot) return name;
    }
    return {};
  }
  void violate(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  /// True once, for that mutant.
  [[nodiscard]] bool errs(Mutant how) {
    if (mutant_ != how || erred_) return false;
    return erred_ = true;
  }

  void feed(int who, const Event& event) {
    step(who, event);
    look();
  }
  void step(int who, const Event& event) {
    for (const Action& action : at(who).machine.step(event, Instant{1h})) {
      std::visit([&](const auto& what) { carry_out(who, what); }, action);
    }
  }

  void carry_out(int who, const Stand&) {
    if (at(who).slot >= 0) violate("a second claim");
    if (errs(Mutant::kForgetsToStand)) return;
    at(who).granted = at(who).told_of_loss = at(who).robbed = false;
    at(who).slot = line_.add_slot(std::to_string(who), who, {.tag = queue::Tag::kLatch});
    line_.start(at(who).slot);
  }
  void carry_out(int who, const Withdraw&) {
    if (at(who).slot < 0 || errs(Mutant::kForgetsToWithdraw)) return;
    if (!slot(at(who).slot).done) line_.cancel(at(who).slot, Code::kCancelled);
    at(who).slot = -1;
  }
  void carry_out(int who, const EndTerm& end) {
    at(who).ending = end.term;
    if (mutant_ == Mutant::kGivesUpBeforeItIsTold) carry_out(who, GiveUp{});
  }
  void carry_out(int who, const GiveUp&) {
    if (at(who).slot < 0 || errs(Mutant::kForgetsToGiveUp)) return;
    if (slot(at(who).slot).holding) line_.release(at(who).slot);
    line_.loss_is_told(at(who).slot);
    at(who).slot = -1;
  }
  void carry_out(int who, const AskHealth&) { at(who).wake = 0; }
  void carry_out(int who, const Wake& wake) { at(who).wake = wake.number; }
  void carry_out(int who, const Tell& tell) {
    if (at(who).over) violate("news after the last");
    at(who).over = tell.state == ElectionState::kFailed || tell.state == ElectionState::kClosed;
  }
  void carry_out(int who, const Done&) {
    if (at(who).done) violate("done twice");
    if (!at(who).over) violate("done without a last word");
    at(who).done = true;
    at(who).wake = at(who).ending = 0;
  }

  /// Everything arrives, and whoever waits for an answer of the queue gets it.
  void look() {
    for (bool moved = true; moved;) {
      mini::settle(line_);
      moved = false;
      for (int who = 0; who < count(); ++who) moved = moved || tell(who);
    }
    for (const auto& [name, entry] : line_.leader().entries) whose_[name] = entry.slot;
    check();
  }
  /// Says whether there was anything to tell.
  bool tell(int who) {
    Candidate& self = at(who);
    if (self.crashed || self.slot < 0) return false;
    const mini::Slot& claim = slot(self.slot);
    if (claim.failed) {
      self.slot = -1;
      step(who, Failed{Error(Code::kLost)});
      return true;
    }
    if (claim.holding && !self.granted) {
      self.granted = true;
      step(who, Granted{});
      line_.heartbeat(who);
      return true;
    }
    if (self.granted && !claim.holding && !self.told_of_loss) {
      self.told_of_loss = true;
      if (errs(Mutant::kForgetsALoss)) return false;
      step(who, Lost{Error(Code::kLost)});
      return true;
    }
    return false;
  }

  void check();

  mini::World line_;
  std::vector<Candidate> candidates_;
  std::map<std::string, int> whose_;  ///< Every entry there has ever been, by slot.
  Troubles left_;
  Mutant mutant_;
  bool erred_ = false;
  std::string violation_;
};

void Elections::check() {
  line_.check();
  line_.check_at_rest();
  if (!line_.violations().empty()) violate(line_.violations().front());

  int leaders = 0;
  bool ends = false;
  bool stands = false;
  for (const Candidate& one : candidates_) {
    if (one.done && one.slot >= 0) violate("a claim outlives its candidate");
    if (!one.started || one.is_out()) continue;
    if (one.leads() && !one.granted) violate("leads without the lock");
    if (one.leads() && one.told_of_loss) violate("leads though the lock is lost");
    if (one.leads()) ++leaders;
    if (one.ending != 0 && !one.robbed) ends = true;
    if (one.slot >= 0 && !one.granted) stands = true;
    if (one.rests() && one.wake == 0) violate("out of the queue, and nothing on its way");
  }
  if (leaders > 1) violate("two lead at a time");
  if (leaders > 0 && ends) violate("one leads before another has heard of its end");
  if (stands && leaders == 0 && !ends) violate("somebody stands and nobody leads");

  // First come, first served.
  std::map<std::int32_t, int> line;
  for (const auto& [name, entry] : line_.leader().entries) line[entry.number] = entry.slot;
  if (line.empty()) return;
  for (const Candidate& one : candidates_) {
    if (one.leads() && one.slot != line.begin()->second) {
      violate("one leads who is not the first in line");
    }
  }
}

std::vector<Step<Elections>> Elections::steps() const {
  Steps<Elections> steps(*this);
  bool first = true;
  for (int who = 0; who < count(); ++who) {
    const Candidate& one = candidates_[static_cast<std::size_t>(who)];
    const auto does = [who](void (Elections::*deed)(int)) {
      return [who, deed](Elections& world) { (world.*deed)(who); };
    };
    const std::string name = " " + std::to_string(who);
    // They are alike: whoever comes first may be called the first.
    if (!one.started && std::exchange(first, false))
      steps.may("start" + name, does(&Elections::start));
    if (!one.started || one.is_out()) continue;
    if (one.ending != 0) steps.soon("the end is told to" + name, does(&Elections::hear_of_the_end));
    if (one.rests() && one.wake != 0) steps.soon("wake" + name, does(&Elections::wake));
    steps.may("crash" + name, does(&Elections::crash));
    if (!one.over) steps.may("close" + name, does(&Elections::close));
    if (one.leads()) {
      steps.trouble("resign" + name, &Troubles::resigns, does(&Elections::resign));
      steps.trouble("sick" + name, &Troubles::sicknesses, does(&Elections::fall_sick));
      steps.trouble("lapse" + name, &Troubles::lapses, does(&Elections::lapse));
    }
    if (!entry_of(who).empty()) {
      steps.trouble("rob" + name, &Troubles::robberies, does(&Elections::rob));
    }
    for (const bool claim_first : {false, true}) {
      steps.trouble("session over" + name, &Troubles::ends,
                    [who, claim_first](Elections& world) { world.end_session(who, claim_first); });
    }
  }
  return steps.take();
}

std::size_t Elections::key() const {
  mini::Fold fold;
  const auto whose = [this](const std::string& name) {
    const auto found = whose_.find(name);
    if (found == whose_.end()) return -1;
    return slot(found->second).client * 2 + (line_.leader().entries.contains(name) ? 1 : 0);
  };
  fold.flags({erred_});
  for (const int left :
       {left_.resigns, left_.sicknesses, left_.robberies, left_.ends, left_.lapses}) {
    fold.kind(left);
  }
  for (const Candidate& one : candidates_) {
    fold.flags({one.started, one.crashed, one.robbed, one.over, one.done, one.granted,
                one.told_of_loss, one.ending != 0, one.wake != 0, one.slot >= 0});
    fold.kind(one.machine.state());
    if (one.slot < 0 || one.is_out()) continue;
    queue::ContenderProbe::fold_settled(slot(one.slot).machine, whose, fold);
  }
  std::map<std::int32_t, int> line;
  for (const auto& [name, entry] : line_.leader().entries) line[entry.number] = entry.slot;
  for (const auto& [number, in_line] : line) fold.kind(slot(in_line).client);
  return fold.sum();
}

TEST(ElectionExploration, H73_FiveStandLeadCloseAndCrashInEveryOrder) {
  expect_all_is_well(Elections(5, {}));
}

TEST(ElectionExploration, H75_FiveResignAndStandAgainInEveryOrder) {
  expect_all_is_well(Elections(5, {.resigns = 1}));
  expect_all_is_well(Elections(3, {.resigns = 3}));
}

TEST(ElectionExploration, H75_AfterALongTermTheyStandAgainAtOnce) {
  expect_all_is_well(Elections(4, {.resigns = 2, .lapses = 1}, Terms::kLong));
}

TEST(ElectionExploration, H74_FallingSickIsLikeResigning) {
  expect_all_is_well(Elections(4, {.resigns = 1, .sicknesses = 1}));
}

TEST(ElectionExploration, H05_AnOperatorDeletesTheEntryOfAnyOfFive) {
  expect_all_is_well(Elections(5, {.robberies = 1}));
  expect_all_is_well(Elections(3, {.resigns = 1, .robberies = 2}));
}

TEST(ElectionExploration, H73_ALeaseOfAnyOfFiveEndsByTheClock) {
  expect_all_is_well(Elections(5, {.lapses = 1}));
  expect_all_is_well(Elections(3, {.resigns = 1, .robberies = 1, .lapses = 2}));
}

TEST(ElectionExploration, H73_TheSessionOfAnyOfFiveEnds) {
  expect_all_is_well(Elections(5, {.ends = 1}));
  expect_all_is_well(Elections(3, {.resigns = 1, .robberies = 1, .ends = 1}));
}

/// What `./dev test` and the sanitizers see of the five above that take long.
TEST(ElectionExplorationSmall, H05_H73_H75_ThreeResignAreRobbedAndLapse) {
  expect_all_is_well(Elections(3, {.resigns = 1}));
  expect_all_is_well(Elections(3, {.robberies = 1}));
  expect_all_is_well(Elections(3, {.lapses = 1}));
  expect_all_is_well(Elections(2, {.resigns = 1, .robberies = 1, .lapses = 1}));
  expect_all_is_well(Elections(2, {.resigns = 2, .lapses = 1}, Terms::kLong));
}

TEST(ElectionExploration, MistakesAreFound) {
  const std::pair<Mutant, const char*> mistakes[] = {
      {Mutant::kGivesUpBeforeItIsTold, "one leads before another has heard of its end"},
      {Mutant::kForgetsToGiveUp, "a claim outlives its candidate"},
      {Mutant::kForgetsToStand, "out of the queue, and nothing on its way"},
      {Mutant::kForgetsToWithdraw, "a claim outlives its candidate"},
      {Mutant::kForgetsALoss, "leads though the lock is lost"},
  };
  for (const auto& [mutant, what] : mistakes) {
    SCOPED_TRACE(what);
    expect_found(Elections(3, {.resigns = 1, .robberies = 1}, Terms::kShort, mutant), what);
  }
  expect_found(Elections(2, {.lapses = 1}, Terms::kShort, Mutant::kGivesUpBeforeItIsTold),
               "one leads before another has heard of its end");
}

}  // namespace
}  // namespace latchkey::walk::election
