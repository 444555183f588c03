#include "keeper.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exit_code.hpp"

namespace latchkey::app::keeping {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::ElementsAre;
using testing::IsEmpty;

std::string text_of(const Action& action) {
  struct Text {
    std::string operator()(const Contend&) const { return "contend"; }
    std::string operator()(const Withdraw&) const { return "withdraw"; }
    std::string operator()(const Start&) const { return "start"; }
    std::string operator()(const SignalGroup& what) const { return number("group", what.number); }
    std::string operator()(const SignalAll& what) const { return number("all", what.number); }
    std::string operator()(const GiveTerminal&) const { return "terminal"; }
    std::string operator()(const StopFront& what) const { return number("stop", what.number); }
    std::string operator()(const Warn&) const { return "warn"; }
    std::string operator()(const SayTooLate&) const { return "too late"; }
    std::string operator()(const Release&) const { return "release"; }
    std::string operator()(const Exit& what) const { return number("exit", what.code); }
    static std::string number(const std::string& word, int value) {
      return word + ' ' + std::to_string(value);
    }
  };
  return std::visit(Text{}, action);
}

using Texts = std::vector<std::string>;

Texts texts_of(const Actions& actions) {
  Texts texts;
  for (const Action& action : actions) texts.push_back(text_of(action));
  return texts;
}

constexpr Instant kStart = Instant(100s);
const std::string kKill = "all " + std::to_string(SIGKILL);
const std::string kTerm = "all " + std::to_string(SIGTERM);
const std::string kGroupTerm = "group " + std::to_string(SIGTERM);
const std::string kGroupCont = "group " + std::to_string(SIGCONT);
const std::string kStopJob = "stop " + std::to_string(SIGTSTP);

class KeeperTest : public testing::Test {
 protected:
  void make(const Rules& rules = {}) {
    keeper_.emplace(rules);
    EXPECT_THAT(texts_of(keeper_->start()), ElementsAre("contend"));
  }
  Texts tell(const Event& event) { return texts_of(keeper_->step(event, now_, lease_)); }
  Texts tick_at(Instant at) {
    now_ = at;
    return tell(Tick{});
  }
  void run() {
    if (!keeper_) make();
    EXPECT_THAT(tell(Granted{}), ElementsAre("start"));
  }

  std::optional<Keeper> keeper_;
  Instant now_ = kStart;
  /// As with a time-out of ten seconds whose last proof was sent at kStart.
  LeaseTimes lease_{kStart + 4'167ms, kStart + 5'730ms, 10s};
};

TEST_F(KeeperTest, H101_LetsGoOnlyWhenTheLastProcessIsGone) {
  run();

  EXPECT_THAT(tell(CommandEnded{{7, 0}}), IsEmpty());
  EXPECT_THAT(tell(AllGone{}), ElementsAre("release"));
  EXPECT_THAT(tell(Released{}), ElementsAre("exit 7"));
}

TEST_F(KeeperTest, H101_ACommandThatCannotBeRunReleasesAtOnce) {
  make({.min_hold = 1h});
  run();

  EXPECT_THAT(tell(StartFailed{127}), ElementsAre("release"));
  EXPECT_THAT(tell(Released{}), ElementsAre("exit 127"));
}

TEST_F(KeeperTest, H100_ASignalThatEndedTheCommandIsAddedTo128) {
  run();
  tell(CommandEnded{{-1, SIGSEGV}});
  tell(AllGone{});

  EXPECT_THAT(tell(Released{}), ElementsAre("exit 139"));
}

TEST_F(KeeperTest, H99_ASignalBeforeTheGrantEndsUsWithTheQueueLeft) {
  make();

  EXPECT_THAT(tell(Signal{SIGINT}), ElementsAre("withdraw"));
  EXPECT_THAT(tell(Refused{1}), ElementsAre("exit 130"));
}

TEST_F(KeeperTest, H99_AGrantThatCrossesTheSignalIsGivenBack) {
  make();
  tell(Signal{SIGTERM});

  EXPECT_THAT(tell(Granted{}), ElementsAre("release"));
  EXPECT_THAT(tell(Released{}), ElementsAre("exit 143"));
}

TEST_F(KeeperTest, H99_AServerThatDoesNotAnswerCannotKeepUs) {
  make();
  tell(Signal{SIGTERM});

  EXPECT_THAT(tick_at(keeper_->wake_at(lease_)), ElementsAre("exit 143"));
}

TEST_F(KeeperTest, H99_ASignalAfterTheGrantIsPassedOnOnceAndTheLockKept) {
  run();

  EXPECT_THAT(tell(Signal{SIGTERM}), ElementsAre(kGroupTerm));
  EXPECT_THAT(tell(Tick{}), IsEmpty());
  EXPECT_THAT(tell(CommandEnded{{0, 0}}), ElementsAre(kTerm));
  EXPECT_THAT(tell(AllGone{}), ElementsAre("release"));
  EXPECT_THAT(tell(Released{}), ElementsAre("exit 0"));
}

TEST_F(KeeperTest, WhoIsAskedForTheLockStopsTheCommandAndLetsGo) {
  run();

  EXPECT_THAT(tell(Revoked{}), ElementsAre(kTerm));
  EXPECT_THAT(tell(Revoked{}), IsEmpty()) << "once is enough";
  tell(CommandEnded{{-1, SIGTERM}});
  EXPECT_THAT(tell(AllGone{}), ElementsAre("release"));
  EXPECT_THAT(tell(Released{}), ElementsAre("exit 143"));
}

TEST_F(KeeperTest, WhoIsAskedForTheLockKillsACommandThatDoesNotListen) {
  make({.kill_after = 1s});
  run();
  tell(Revoked{});

  EXPECT_THAT(tick_at(kStart + 1s), ElementsAre(kKill));
}

TEST_F(KeeperTest, WhoIsAskedForALockThatIsOnlyHeldOnToLetsGo) {
  make({.min_hold = 1h});
  run();
  tell(CommandEnded{{0, 0}});
  EXPECT_THAT(tell(AllGone{}), IsEmpty());

  EXPECT_THAT(tell(Revoked{}), ElementsAre("release"));
  EXPECT_THAT(tell(Released{}), ElementsAre("exit 0"));
}

TEST_F(KeeperTest, H96_WhatSurvivesACommandThatWasToEndIsAskedThenKilled) {
  make({.kill_after = 1s});
  run();
  tell(Signal{SIGTERM});
  tell(CommandEnded{{-1, SIGTERM}});

  EXPECT_THAT(tick_at(now_ + 999ms), IsEmpty());
  EXPECT_THAT(tick_at(now_ + 1ms), ElementsAre(kKill));
}

TEST_F(KeeperTest, H96_WhatSurvivesACommandThatEndedByItselfIsWaitedFor) {
  run();
  tell(CommandEnded{{0, 0}});
  lease_ = {Instant::max(), Instant::max(), 10s};

  EXPECT_THAT(tick_at(now_ + 1h), IsEmpty());
  EXPECT_THAT(tell(Signal{SIGINT}), ElementsAre("all 2"));
}

TEST_F(KeeperTest, H95_AsksToEndAndKillsBeforeTheLeaseRunsOut) {
  make({.kill_after = 1s});
  run();

  const Instant asked = keeper_->wake_at(lease_);
  EXPECT_EQ(asked, lease_.deadline - 1s);
  EXPECT_THAT(tick_at(asked), ElementsAre(kTerm));
  const Instant killed = keeper_->wake_at(lease_);
  EXPECT_EQ(killed, lease_.deadline - 500ms);
  EXPECT_THAT(tick_at(killed), ElementsAre(kKill));
  tell(CommandEnded{{-1, SIGKILL}});
  tell(AllGone{});
  EXPECT_THAT(tell(Released{}), ElementsAre("exit 75"));
}

TEST_F(KeeperTest, H95_ALongGraceDoesNotEndACommandBeforeTheServerIsOverdue) {
  make({.kill_after = 1h});
  run();

  EXPECT_EQ(keeper_->wake_at(lease_), lease_.suspect_at);
  EXPECT_THAT(tick_at(lease_.suspect_at - 1ns), IsEmpty());
}

TEST_F(KeeperTest, H95_AnAnswerMovesTheEndOn) {
  run();
  const Instant first = keeper_->wake_at(lease_);
  lease_ = {lease_.suspect_at + 2s, lease_.deadline + 2s, 10s};

  EXPECT_THAT(tick_at(first), IsEmpty());
  EXPECT_EQ(keeper_->wake_at(lease_), first + 2s);
}

TEST_F(KeeperTest, H95_ALossIsNotWaitedOut) {
  run();

  EXPECT_THAT(tell(Lost{}), ElementsAre(kKill));
}

TEST_F(KeeperTest, H95_AGrantThatComesTooLateStartsNothing) {
  for (const auto on_lost : {Rules::OnLost::kStop, Rules::OnLost::kWarn}) {
    make({.on_lost = on_lost});
    now_ = lease_.deadline;

    EXPECT_THAT(tell(Granted{}), ElementsAre("too late", "release"));
    EXPECT_THAT(tell(Released{}), ElementsAre("exit 75"));
  }
}

TEST_F(KeeperTest, H95_OnlyAWarningIfThatIsWhatWasAskedFor) {
  make({.on_lost = Rules::OnLost::kWarn});
  run();

  EXPECT_EQ(keeper_->wake_at(lease_), Instant::max());
  EXPECT_THAT(tick_at(lease_.deadline + 1s), IsEmpty());
  EXPECT_THAT(tell(Lost{}), ElementsAre("warn"));
  tell(CommandEnded{{0, 0}});
  tell(AllGone{});
  EXPECT_THAT(tell(Released{}), ElementsAre("exit 0"));
}

TEST_F(KeeperTest, H96_WhoeverSurvivesTheTerminalsSignalIsAskedToEnd) {
  for (const int number : {SIGINT, SIGQUIT, SIGHUP}) {
    keeper_.reset();
    run();

    EXPECT_THAT(tell(CommandEnded{{-1, number}, true}), ElementsAre(kTerm));
    EXPECT_THAT(tick_at(now_ + 5s), ElementsAre(kKill));
    EXPECT_THAT(tell(AllGone{}), ElementsAre("release"));
    now_ = kStart;
  }
}

TEST_F(KeeperTest, H101_WhoeverSurvivesASignalOfTheCommandsOwnIsWaitedFor) {
  for (const CommandEnded& end :
       {CommandEnded{{-1, SIGINT}, false}, CommandEnded{{-1, SIGSEGV}, true},
        CommandEnded{{130, 0}, true}}) {
    keeper_.reset();
    run();

    EXPECT_THAT(tell(end), IsEmpty());
  }
}

TEST_F(KeeperTest, H97_AKilledFrontTakesTheCommandAlong) {
  run();

  EXPECT_THAT(tell(FrontGone{}), ElementsAre(kKill));
  tell(CommandEnded{{-1, SIGKILL}});
  EXPECT_THAT(tell(AllGone{}), ElementsAre("release"));
  EXPECT_THAT(tell(Released{}), ElementsAre("exit 137"));
}

TEST_F(KeeperTest, H98_AStoppedCommandStopsTheJobAndGoesOnWithIt) {
  run();

  EXPECT_THAT(tell(CommandStopped{SIGTSTP}), ElementsAre(kStopJob));
  EXPECT_THAT(tell(Continue{}), ElementsAre("terminal", kGroupCont));
  EXPECT_THAT(tell(Continue{}), ElementsAre("terminal"));
}

TEST_F(KeeperTest, H98_ACommandStoppedByHandStopsNobodyElse) {
  run();

  EXPECT_THAT(tell(CommandStopped{SIGSTOP}), IsEmpty());
}

TEST_F(KeeperTest, H98_AStoppedCommandWhoseLeaseRanOutIsKilledAndNotContinued) {
  run();
  tell(CommandStopped{SIGTSTP});
  now_ = lease_.deadline + 20s;

  EXPECT_THAT(tell(Continue{}), ElementsAre(kKill));
}

TEST_F(KeeperTest, H98_AStoppedCommandThatHasToEndIsContinuedForIt) {
  run();
  tell(CommandStopped{SIGTSTP});

  EXPECT_THAT(tick_at(keeper_->wake_at(lease_)), ElementsAre(kTerm, kGroupCont));
}

TEST_F(KeeperTest, H98_AJobStoppedWhileItWaitsPassesItsTurn) {
  make();
  EXPECT_THAT(tell(Stop{SIGTSTP}), ElementsAre(kStopJob));

  EXPECT_THAT(tell(Granted{}), ElementsAre("release"));
  EXPECT_THAT(tell(Released{}), IsEmpty());
  EXPECT_THAT(tell(Continue{}), ElementsAre("contend"));
  EXPECT_THAT(tell(Granted{}), ElementsAre("start"));
}

TEST_F(KeeperTest, HoldsAtLeastAsLongAsItWasTold) {
  make({.min_hold = 3s});
  run();
  tell(CommandEnded{{4, 0}});

  EXPECT_THAT(tell(AllGone{}), IsEmpty());
  EXPECT_EQ(keeper_->wake_at(lease_), kStart + 3s);
  EXPECT_THAT(tick_at(kStart + 3s), ElementsAre("release"));
  EXPECT_THAT(tell(Released{}), ElementsAre("exit 4"));
}

TEST_F(KeeperTest, ASignalEndsTheLeastHold) {
  make({.min_hold = 3s});
  run();
  tell(CommandEnded{{4, 0}});
  tell(AllGone{});

  EXPECT_THAT(tell(Signal{SIGINT}), ElementsAre("release"));
}

TEST_F(KeeperTest, QueuesAgainAfterATermUntilASignalEndsIt) {
  make({.afterwards = Rules::Afterwards::kContendAgain});
  run();
  tell(CommandEnded{{1, 0}});
  tell(AllGone{});

  EXPECT_THAT(tell(Released{}), ElementsAre("contend"));
  run();
  EXPECT_THAT(tell(Lost{}), ElementsAre(kKill));
  tell(CommandEnded{{-1, SIGKILL}});
  tell(AllGone{});
  EXPECT_THAT(tell(Released{}), ElementsAre("contend"));
  run();
  tell(Signal{SIGTERM});
  tell(CommandEnded{{0, 0}});
  tell(AllGone{});
  EXPECT_THAT(tell(Released{}), ElementsAre("exit 0"));
}

/// A tiny model of the world around a keeper: what can happen in it depends on what the keeper did.
struct World {
  explicit World(const Rules& rules) : keeper(rules), stops(rules.on_lost == Rules::OnLost::kStop) {
    note(keeper.start());
  }

  [[nodiscard]] std::vector<Event> possible() const {
    std::vector<Event> events = {Signal{SIGTERM}, Signal{SIGUSR1}, Continue{}, Tick{}};
    if (front) {
      events.insert(events.end(), {Event(FrontGone{}), Event(Stop{SIGTSTP})});
    }
    if (asked) events.insert(events.end(), {Event(Granted{}), Event(Refused{1})});
    if (held && !lost) events.emplace_back(Lost{});
    if (main) {
      events.insert(events.end(), {Event(CommandStopped{SIGTSTP}), Event(CommandEnded{{0, 0}})});
    }
    if (others && !main) events.emplace_back(AllGone{});
    if (releasing) events.emplace_back(Released{});
    return events;
  }

  void happen(const Event& event) {
    if (std::holds_alternative<Granted>(event)) held = true, lost = false;
    if (std::holds_alternative<Granted>(event) || std::holds_alternative<Refused>(event)) {
      asked = false;
    }
    if (std::holds_alternative<Stop>(event)) stopped = false;  // Until it is said so.
    if (std::holds_alternative<Continue>(event)) stopped = false;
    if (std::holds_alternative<FrontGone>(event)) front = false;
    if (std::holds_alternative<Lost>(event)) lost = true;
    if (std::holds_alternative<CommandEnded>(event)) main = false;
    if (std::holds_alternative<AllGone>(event)) others = false;
    if (std::holds_alternative<Released>(event)) held = releasing = false;
    now += 1ms;
    note(keeper.step(event, now, lease));
  }

  void note(const Actions& actions) {
    for (const Action& action : actions) {
      if (done) broken = "acts after its exit";
      if (std::holds_alternative<Contend>(action)) {
        if (asked || held) broken = "asks twice";
        asked = true;
        killed = false;
      }
      if (std::holds_alternative<Start>(action)) {
        if (!held) broken = "runs without the lock";
        if (stopped) broken = "runs in a stopped job";
        if (others) broken = "runs twice";
        main = others = true;
      }
      if (std::holds_alternative<Release>(action)) {
        if (others) broken = "lets go too early";
        if (!held) broken = "lets go of nothing";
        releasing = true;
      }
      if (const auto* all = std::get_if<SignalAll>(&action)) killed |= all->number == SIGKILL;
      const auto* group = std::get_if<SignalGroup>(&action);
      if (group != nullptr && group->number == SIGCONT && (killed || (lost && stops))) {
        broken = "continues what must not run";
      }
      if (const auto* stop = std::get_if<StopFront>(&action)) stopped = stop->number != 0;
      if (std::holds_alternative<Exit>(action)) {
        if (others) broken = "leaves a process behind";
        done = true;
      }
    }
    if (held && lost && others && stops && !killed) broken = "lets it run on without the lock";
  }

  Keeper keeper;
  bool stops;
  Instant now = kStart;
  LeaseTimes lease{Instant::max(), Instant::max(), 10s};
  bool front = true;
  bool asked = false;
  bool held = false;
  bool lost = false;
  bool main = false;    ///< The command itself.
  bool others = false;  ///< Any process of it.
  bool killed = false;
  bool stopped = false;
  bool releasing = false;
  bool done = false;
  std::string broken;
};

class KeeperExploration : public testing::TestWithParam<Rules::Afterwards> {
 protected:
  void explore(const Rules& rules, int depth) {
    path_.clear();
    go(rules, depth);
  }

  int paths_ = 0;
  int ends_ = 0;

 private:
  /// A keeper cannot be copied, so each way is gone from its beginning.
  void go(const Rules& rules, int depth) {
    World world(rules);
    for (const std::size_t choice : path_) {
      const std::vector<Event> events = world.possible();
      world.happen(events[choice]);
    }
    ++paths_;
    if (!world.broken.empty()) {
      std::string way;
      for (const std::size_t choice : path_) way += std::to_string(choice) + ' ';
      FAIL() << world.broken << " after " << way;
    }
    if (world.done) ++ends_;
    if (world.done || depth == 0) return;
    const std::size_t count = world.possible().size();
    for (std::size_t i = 0; i < count && !HasFatalFailure(); ++i) {
      path_.push_back(i);
      go(rules, depth - 1);
      path_.pop_back();
    }
  }

  std::vector<std::size_t> path_;
};

TEST_P(KeeperExploration, InNoOrderOfEventsDoesTheCommandOutliveTheLock) {
  for (const auto on_lost : {Rules::OnLost::kStop, Rules::OnLost::kWarn}) {
    for (const Duration min_hold : {Duration(0), Duration(1h)}) {
      explore({.min_hold = min_hold, .on_lost = on_lost, .afterwards = GetParam()}, 6);
    }
  }
  EXPECT_GT(paths_, 100'000);
  EXPECT_GT(ends_, 10'000);
}

INSTANTIATE_TEST_SUITE_P(Afterwards, KeeperExploration,
                         testing::Values(Rules::Afterwards::kExit,
                                         Rules::Afterwards::kContendAgain));

}  // namespace
}  // namespace latchkey::app::keeping
