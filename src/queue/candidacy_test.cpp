#include "queue/candidacy.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::queue::candidacy {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

Candidacy::Options with_health() {
  return {.health_period = 1s, .min_pause = 100ms, .max_pause = 30s, .short_term = 10s};
}

Candidacy::Options without_health() {
  return {.min_pause = 100ms, .max_pause = 30s, .short_term = 10s};
}

std::string text(const Action& action) {
  if (std::holds_alternative<Stand>(action)) return "stand";
  if (std::holds_alternative<Withdraw>(action)) return "withdraw";
  if (std::holds_alternative<EndTerm>(action)) return "end term";
  if (std::holds_alternative<GiveUp>(action)) return "give up";
  if (std::holds_alternative<AskHealth>(action)) return "ask health";
  if (std::holds_alternative<Done>(action)) return "done";
  if (const auto* wake = std::get_if<Wake>(&action)) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(wake->after);
    return "wake in " + std::to_string(ms.count());
  }
  const auto& tell = std::get<Tell>(action);
  std::string told = "tell " + std::string(name(tell.state));
  if (tell.error) told += ": " + std::string(name(tell.error->code()));
  return told;
}

/// A candidate, the time, and what it has last asked for.
struct Rig {
  explicit Rig(Candidacy::Options options = without_health()) : candidacy(options) {}

  std::vector<std::string> step(const Event& event) {
    std::vector<std::string> texts;
    for (const Action& action : candidacy.step(event, now)) {
      texts.push_back(text(action));
      if (const auto* wake = std::get_if<Wake>(&action)) last_wake = *wake;
      if (const auto* end = std::get_if<EndTerm>(&action)) last_term = end->term;
      if (std::holds_alternative<Stand>(action)) ++entries;
    }
    return texts;
  }
  /// The time asked for passes.
  std::vector<std::string> wake() {
    now += last_wake.after;
    return step(Woken{last_wake.number});
  }
  std::vector<std::string> told() { return step(Told{last_term}); }
  void lead() {
    step(Start{});
    step(Granted{});
  }
  /// A term of this length, and back into the queue. Says for how long it had to rest.
  Duration serve(Duration length) {
    step(Granted{});
    now += length;
    step(Resign{});
    last_wake.after = {};
    const int before = entries;
    told();
    if (entries == before) {
      const Duration rest = last_wake.after;
      wake();
      return rest;
    }
    return {};
  }

  Candidacy candidacy;
  Instant now{1h};
  Wake last_wake{};
  std::uint64_t last_term = 0;
  int entries = 0;
};

Error over() { return Error(Code::kSessionLost); }

TEST(Candidacy, QueuesThenLeads) {
  Rig rig;

  EXPECT_THAT(rig.step(Start{}), ElementsAre("stand"));
  EXPECT_EQ(rig.candidacy.state(), ElectionState::kQueued);
  EXPECT_THAT(rig.step(Granted{}), ElementsAre("tell leading"));
  EXPECT_EQ(rig.candidacy.state(), ElectionState::kLeading);
}

TEST(Candidacy, H73_TheEndOfATermIsToldBeforeTheLockIsGivenUp) {
  Rig rig;
  rig.lead();

  EXPECT_THAT(rig.step(Resign{}), ElementsAre("end term", "tell queued"));
  EXPECT_EQ(rig.candidacy.state(), ElectionState::kQueued);
  EXPECT_THAT(rig.told(), ElementsAre("give up", "wake in 100"));
  EXPECT_THAT(rig.wake(), ElementsAre("stand"));
}

TEST(Candidacy, H73_ALossIsToldBeforeTheEntryIsGivenUp) {
  Rig rig;
  rig.lead();

  EXPECT_THAT(rig.step(Lost{Error(Code::kLost)}), ElementsAre("end term", "tell queued: Lost"));
  EXPECT_THAT(rig.told(), ElementsAre("give up", "wake in 100"));
}

TEST(Candidacy, H74_TheHealthHookIsAskedOncePerPeriodWhileLeading) {
  Rig rig(with_health());
  rig.step(Start{});
  EXPECT_THAT(rig.step(Granted{}), ElementsAre("tell leading", "wake in 1000"));

  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(rig.wake(), ElementsAre("ask health", "wake in 1000"));
    EXPECT_THAT(rig.step(Health{true}), IsEmpty());
  }

  EXPECT_EQ(rig.candidacy.state(), ElectionState::kLeading);
}

TEST(Candidacy, H74_ABadAnswerEndsTheTerm) {
  Rig rig(with_health());
  rig.lead();
  rig.wake();

  EXPECT_THAT(rig.step(Health{false}), ElementsAre("end term", "tell queued: Cancelled"));
}

TEST(Candidacy, H74_AnAnswerThatDoesNotComeWithinThePeriodEndsTheTerm) {
  Rig rig(with_health());
  rig.lead();
  rig.wake();

  EXPECT_THAT(rig.wake(), ElementsAre("end term", "tell queued: Cancelled"));
}

TEST(Candidacy, H74_AHookThatStillHangsIsNotCalledAgainAndCountsAsBad) {
  Rig rig(with_health());
  rig.lead();
  rig.wake();
  rig.wake();
  rig.told();
  rig.wake();
  rig.step(Granted{});

  EXPECT_THAT(rig.wake(), ElementsAre("end term", "tell queued: Cancelled"));
}

TEST(Candidacy, H74_AnAnswerFromAnEarlierTermSaysNothingAboutThisOne) {
  Rig rig(with_health());
  rig.lead();
  rig.wake();
  rig.step(Resign{});
  rig.told();
  rig.wake();
  rig.step(Granted{});

  EXPECT_THAT(rig.step(Health{false}), IsEmpty());
  EXPECT_THAT(rig.wake(), ElementsAre("ask health", "wake in 1000"));
}

TEST(Candidacy, H75_ShortTermsMakeThePauseGrowUpToALimit) {
  Rig rig;
  rig.step(Start{});

  std::vector<Duration> pauses;
  for (int i = 0; i < 12; ++i) pauses.push_back(rig.serve(9s));

  EXPECT_THAT(pauses, ElementsAre(100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 12800ms,
                                  25600ms, 30s, 30s, 30s));
}

TEST(Candidacy, H75_ALongTermCostsNothingAndForgivesTheShortOnes) {
  Rig rig;
  rig.step(Start{});
  rig.serve(1s);
  rig.serve(1s);

  EXPECT_EQ(rig.serve(10s), 0s);
  EXPECT_EQ(rig.serve(1s), 100ms);
}

TEST(Candidacy, H75_OptionsOfNothingDoNotMakeABusyLoop) {
  Rig rig({.health_period = 0ms, .min_pause = 0ms, .max_pause = 0ms, .short_term = 10s});
  rig.step(Start{});

  EXPECT_GT(rig.serve(0s), 0s);
  rig.step(Granted{});
  EXPECT_GT(rig.last_wake.after, 0s);
}

TEST(Candidacy, OptionsWithoutEndDoNotOverflow) {
  constexpr Duration kMost = Duration::max();
  Rig rig({.health_period = kMost, .min_pause = kMost, .max_pause = kMost, .short_term = kMost});
  rig.step(Start{});
  rig.serve(1h);
  rig.serve(1h);

  EXPECT_GT(rig.now + rig.last_wake.after, rig.now);
}

TEST(Candidacy, H75_ResignDoesNothingWhereThereIsNoTerm) {
  Rig rig;
  EXPECT_THAT(rig.step(Resign{}), IsEmpty());
  rig.step(Start{});
  EXPECT_THAT(rig.step(Resign{}), IsEmpty());
  rig.step(Granted{});
  rig.step(Resign{});

  EXPECT_THAT(rig.step(Resign{}), IsEmpty()) << "the requeue is under way";
  EXPECT_THAT(rig.told(), ElementsAre("give up", "wake in 100"));
  EXPECT_THAT(rig.step(Resign{}), IsEmpty());
  EXPECT_THAT(rig.wake(), ElementsAre("stand"));
}

TEST(Candidacy, H75_ATryThatFailsIsRepeatedWithABackOff) {
  Rig rig;
  rig.step(Start{});

  EXPECT_THAT(rig.step(Failed{Error(Code::kLost)}),
              ElementsAre("tell queued: Lost", "wake in 100"));
  EXPECT_THAT(rig.wake(), ElementsAre("stand"));
  EXPECT_THAT(rig.step(Failed{Error(Code::kServerError)}),
              ElementsAre("tell queued: ServerError", "wake in 200"));
}

TEST(Candidacy, ARefusalIsFinal) {
  for (const Code code : {Code::kNotAuthorized, Code::kInvalidAcl, Code::kInvalidPath,
                          Code::kNoNode, Code::kTooLarge, Code::kSessionLost, Code::kClosed}) {
    Rig rig;
    rig.step(Start{});

    EXPECT_THAT(rig.step(Failed{Error(code)}),
                ElementsAre("tell failed: " + std::string(name(code)), "withdraw", "done"));
    EXPECT_THAT(rig.step(Close{}), IsEmpty());
    EXPECT_EQ(rig.candidacy.state(), ElectionState::kFailed);
  }
}

TEST(Candidacy, MayBeClosedInEveryState) {
  Rig standing;
  standing.step(Start{});
  EXPECT_THAT(standing.step(Close{}), ElementsAre("tell closed", "withdraw", "done"));

  Rig leading;
  leading.lead();
  EXPECT_THAT(leading.step(Close{}), ElementsAre("end term", "tell closed"));
  EXPECT_THAT(leading.told(), ElementsAre("give up", "done"));

  Rig ending;
  ending.lead();
  ending.step(Resign{});
  EXPECT_THAT(ending.step(Close{}), ElementsAre("tell closed"));
  EXPECT_THAT(ending.told(), ElementsAre("give up", "done"));

  Rig resting;
  resting.lead();
  resting.step(Resign{});
  resting.told();
  EXPECT_THAT(resting.step(Close{}), ElementsAre("tell closed", "done"));
  EXPECT_THAT(resting.wake(), IsEmpty());
  EXPECT_THAT(resting.step(Close{}), IsEmpty());
}

TEST(Candidacy, TheEndOfTheSessionIsFinalInEveryState) {
  Rig standing;
  standing.step(Start{});
  EXPECT_THAT(standing.step(SessionOver{over()}),
              ElementsAre("tell failed: SessionLost", "withdraw", "done"));

  Rig leading;
  leading.lead();
  EXPECT_THAT(leading.step(SessionOver{over()}),
              ElementsAre("end term", "tell failed: SessionLost"));
  EXPECT_THAT(leading.told(), ElementsAre("give up", "done"));

  Rig ending;
  ending.lead();
  ending.step(Lost{Error(Code::kLost)});
  EXPECT_THAT(ending.step(SessionOver{over()}), ElementsAre("tell failed: SessionLost"));
  EXPECT_THAT(ending.told(), ElementsAre("give up", "done"));

  Rig closing;
  closing.lead();
  closing.step(Close{});
  EXPECT_THAT(closing.step(SessionOver{over()}), IsEmpty());
  EXPECT_THAT(closing.told(), ElementsAre("give up", "done"));

  Rig resting;
  resting.lead();
  resting.step(Resign{});
  resting.told();
  EXPECT_THAT(resting.step(SessionOver{over()}), ElementsAre("tell failed: SessionLost", "done"));
}

TEST(Candidacy, H75_AnHourOfFlappingMakesFewEntries) {
  Rig rig;
  rig.step(Start{});
  const Instant end = rig.now + 1h;
  Instant rests_until = rig.now;
  bool ending = false;
  while (rig.now < end) {
    // Connected: whoever stands gets in at once.
    if (rig.candidacy.state() == ElectionState::kQueued && rig.now >= rests_until) {
      if (ending) rig.step(Woken{rig.last_wake.number});
      rig.step(Granted{});
    }
    rig.now += 100ms;
    // And disconnected: whoever leads has lost.
    if (rig.candidacy.state() == ElectionState::kLeading) {
      rig.step(Lost{Error(Code::kLost)});
      rig.told();
      ending = true;
      rests_until = rig.now + rig.last_wake.after;
    }
    rig.now += 100ms;
  }

  EXPECT_GT(rig.entries, 100);
  EXPECT_LT(rig.entries, 140) << "one in max_pause, and those on the way there";
}

/// Everything that can happen, in every order, up to a length. The world around the candidate does
/// only what it may do: it answers what was asked.
class World {
 public:
  explicit World(Candidacy::Options options) : candidacy_(options) {}

  /// Follows every continuation.
  void explore(int steps) {
    ++worlds;
    if (steps == 0) return;
    for (const Event& event : possible()) {
      World next(*this);
      next.path_ += std::to_string(event.index());
      next.take(event);
      if (testing::Test::HasFailure()) return;
      next.explore(steps - 1);
    }
  }

  static inline long worlds = 0;

 private:
  enum class Claim { kNone, kWaiting, kHeld, kLost };

  [[nodiscard]] std::vector<Event> possible() const {
    if (!started_) return {Start{}};
    std::vector<Event> events{Resign{}, Close{}};
    if (!session_over_) events.emplace_back(SessionOver{over()});
    if (claim_ == Claim::kWaiting) {
      events.emplace_back(Granted{});
      events.emplace_back(Failed{Error(Code::kLost)});
      events.emplace_back(Failed{Error(Code::kNotAuthorized)});
    }
    if (claim_ == Claim::kHeld) events.emplace_back(Lost{Error(Code::kLost)});
    if (ending_ != 0) events.emplace_back(Told{ending_});
    if (asked_) events.emplace_back(Health{false});
    if (asked_) events.emplace_back(Health{true});
    if (wake_ != 0) events.emplace_back(Woken{wake_});
    return events;
  }

  void take(const Event& event) {
    const bool was_told = std::holds_alternative<Told>(event);
    if (was_told) ending_ = 0;
    if (std::holds_alternative<Start>(event)) started_ = true;
    if (std::holds_alternative<Granted>(event)) claim_ = Claim::kHeld;
    if (std::holds_alternative<Failed>(event)) claim_ = Claim::kNone;
    if (std::holds_alternative<Lost>(event)) claim_ = Claim::kLost;
    if (std::holds_alternative<Health>(event)) asked_ = false;
    if (std::holds_alternative<Woken>(event)) wake_ = 0;
    if (std::holds_alternative<SessionOver>(event)) session_over_ = true;
    now_ += 1s;
    for (const Action& action : candidacy_.step(event, now_)) {
      std::visit([this](const auto& what) { check(what); }, action);
    }
    // The place in the queue is never lost silently: something is always on its way.
    const bool alive =
        claim_ == Claim::kWaiting || claim_ == Claim::kHeld || ending_ != 0 || wake_ != 0;
    EXPECT_TRUE(done_ || alive) << path_;
    EXPECT_TRUE(!done_ || final_) << path_;
    EXPECT_TRUE(!session_over_ || done_ || ending_ != 0) << path_;
    EXPECT_TRUE(!done_ || claim_ == Claim::kNone || withdrawn_) << path_;
    EXPECT_EQ(candidacy_.state() == ElectionState::kLeading,
              claim_ == Claim::kHeld && ending_ == 0 && !final_ && !withdrawn_)
        << path_;
  }

  void check(const Stand&) {
    EXPECT_EQ(claim_, Claim::kNone) << path_;
    EXPECT_FALSE(final_) << path_;
    claim_ = Claim::kWaiting;
  }
  void check(const Withdraw&) { withdrawn_ = true; }
  void check(const EndTerm& end) {
    EXPECT_TRUE(claim_ == Claim::kHeld || claim_ == Claim::kLost) << path_;
    EXPECT_GT(end.term, last_ended_) << path_;
    last_ended_ = end.term;
    ending_ = end.term;
  }
  void check(const GiveUp&) {
    EXPECT_TRUE(claim_ == Claim::kHeld || claim_ == Claim::kLost) << path_;
    EXPECT_EQ(ending_, 0U) << path_;
    claim_ = Claim::kNone;
  }
  void check(const AskHealth&) {
    EXPECT_FALSE(asked_) << path_;
    asked_ = true;
  }
  void check(const Wake& wake) { wake_ = wake.number; }
  void check(const Tell& tell) {
    EXPECT_FALSE(final_) << path_;
    final_ = tell.state == ElectionState::kFailed || tell.state == ElectionState::kClosed;
  }
  void check(const Done&) {
    EXPECT_FALSE(done_) << path_;
    done_ = true;
  }

  Candidacy candidacy_;
  std::string path_;
  Instant now_{1h};
  Claim claim_ = Claim::kNone;
  bool started_ = false;
  bool withdrawn_ = false;
  bool asked_ = false;
  bool session_over_ = false;
  bool final_ = false;
  bool done_ = false;
  std::uint64_t ending_ = 0;
  std::uint64_t last_ended_ = 0;
  std::uint64_t wake_ = 0;
};

TEST(Candidacy, H73_H74_H75_EverythingInEveryOrder) {
  World::worlds = 0;
  World(with_health()).explore(9);
  EXPECT_GT(World::worlds, 10'000);
}

TEST(Candidacy, H75_ResigningAndLosingInEveryOrderForLonger) {
  World::worlds = 0;
  World({.min_pause = 100ms, .max_pause = 30s, .short_term = 0s}).explore(10);
  EXPECT_GT(World::worlds, 10'000);
}

}  // namespace
}  // namespace latchkey::queue::candidacy
