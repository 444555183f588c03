#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "differential/generator.hpp"
#include "differential/liar.hpp"
#include "differential/runner.hpp"
#include "differential/service_endpoint.hpp"
#include "differential/shrink.hpp"

namespace latchkey::differential {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// One way to run ours, and how it is to be compared.
struct Contestant {
  const char* name;
  std::unique_ptr<Endpoint> (*make)(std::uint64_t seed);
  Pace pace;
  Grain grain;
};

const Contestant kContestants[] = {
    {"immediate journal",
     [](std::uint64_t seed) { return service_endpoint(Journal::kImmediate, seed); },
     Pace::kStepByStep, Grain::kSteps},
    {"delayed journal",
     [](std::uint64_t seed) { return service_endpoint(Journal::kDelayed, seed); }, Pace::kPiledUp,
     Grain::kStreams},
    {"over a socket", [](std::uint64_t) { return server_endpoint(); }, Pace::kStepByStep,
     Grain::kSteps},
};

std::string report(std::uint64_t seed, const Contestant& contestant, Script script,
                   const Difference& difference) {
  const auto answers = [](const Difference& found) {
    return "  Apache's shows\n" + found.expected + "  ours shows\n" + found.actual;
  };
  std::string text = std::string("ours (") + contestant.name +
                     ") differs from Apache's with seed " + std::to_string(seed) + " at step " +
                     std::to_string(difference.step) + "\n  " + describe(script[difference.step]) +
                     "\n" + answers(difference);
  std::cerr << text << "Looking for a shorter script..." << std::endl;
  script.resize(difference.step + 1);
  Difference last = difference;
  const auto differs = [&](const Script& shorter) {
    const auto ours = contestant.make(seed);
    const auto found = compare(play(shorter, apache_endpoint(), Pace::kStepByStep),
                               play(shorter, *ours, contestant.pace), contestant.grain);
    // Another one, at another step, is not the one to look for.
    if (!found || found->step + 1 != shorter.size()) return false;
    last = *found;
    return true;
  };
  const Script small = shrink(std::move(script), differs, 300'000);
  differs(small);
  return text + "The shortest script found, " + std::to_string(small.size()) + " steps:\n" +
         describe(small) + "At step " + std::to_string(last.step) + "\n" + answers(last);
}

TEST(Differential, H93_OursAndApacheCannotBeToldApart) {
  const std::uint64_t first = from_environment("LATCHKEY_DIFFERENTIAL_SEED", 1);
  const std::uint64_t seeds = from_environment("LATCHKEY_DIFFERENTIAL_SEEDS", 10);
  const std::uint64_t steps = from_environment("LATCHKEY_DIFFERENTIAL_STEPS", 800);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Script script = make_script(seed, steps);
    const Transcript expected = play(script, apache_endpoint(), Pace::kStepByStep);
    for (const Contestant& contestant : kContestants) {
      const auto ours = contestant.make(seed);
      const Transcript actual = play(script, *ours, contestant.pace);
      const auto difference = compare(expected, actual, contestant.grain);
      if (!difference) continue;
      ADD_FAILURE() << report(seed, contestant, script, *difference);
      break;
    }
  }
}

/// Enough of every kind of answer to lie about.
constexpr std::size_t kSteps = 600;

Transcript play_at(std::unique_ptr<Endpoint> endpoint) {
  return play(make_script(1, kSteps), *endpoint, Pace::kStepByStep);
}

Transcript lied(Lie lie, int which) {
  return play_at(lying_endpoint(service_endpoint(Journal::kImmediate, 1), lie, which));
}

TEST(DifferentialItself, CatchesEveryLie) {
  const Transcript honest = play_at(service_endpoint(Journal::kImmediate, 1));
  for (const Lie lie :
       {Lie::kVersion, Lie::kZxid, Lie::kNoEvent, Lie::kTwice, Lie::kEventAfter, Lie::kSilentEnd}) {
    for (const int which : {0, 5, 11}) {
      const auto steps = compare(honest, lied(lie, which), Grain::kSteps);
      const auto streams = compare(honest, lied(lie, which), Grain::kStreams);

      ASSERT_TRUE(steps) << "lie " << static_cast<int>(lie) << ", " << which;
      EXPECT_LT(steps->step, kSteps);
      EXPECT_NE(steps->expected, steps->actual);
      // An event that only misses the barrier is in its place as far as a stream can tell.
      EXPECT_TRUE(streams || lie == Lie::kEventAfter);
    }
  }
}

TEST(DifferentialItself, IsNotFooledByIdsAndTimes) {
  EXPECT_FALSE(compare(play_at(service_endpoint(Journal::kImmediate, 1)),
                       play_at(service_endpoint(Journal::kImmediate, 2)), Grain::kSteps));
}

TEST(DifferentialItself, ShrinksAScriptToWhatMatters) {
  const Script script = make_script(3, 300);
  const auto closes_and_returns = [](const Script& part) {
    bool closed = false;
    for (const Step& step : part) {
      if (std::holds_alternative<Return>(step.action) && closed) return true;
      const auto* request = std::get_if<Request>(&step.action);
      closed = closed || (request != nullptr && request->op == wire::Op::kCloseSession);
    }
    return false;
  };
  ASSERT_TRUE(closes_and_returns(script));

  EXPECT_EQ(shrink(script, closes_and_returns, 100'000).size(), 2U);
}

TEST(DifferentialItself, WritesTheSameScriptForTheSameSeed) {
  EXPECT_EQ(describe(make_script(7, 500)), describe(make_script(7, 500)));
  EXPECT_NE(describe(make_script(7, 500)), describe(make_script(8, 500)));
}

TEST(DifferentialItself, MostStepsSucceedAndEveryOperationDoesOnce) {
  const auto endpoint = service_endpoint(Journal::kImmediate, 1);
  const Transcript seen = play(make_script(2, 3'000), *endpoint, Pace::kStepByStep);
  std::map<wire::Op, int> fine;
  int replies = 0;
  int events = 0;
  for (const Transcript::Lines& lines : seen.steps) {
    for (const std::vector<Line>& of_actor : lines) {
      for (const Line& line : of_actor) {
        events += line.kind == Line::Kind::kEvent ? 1 : 0;
        if (line.kind != Line::Kind::kReply) continue;
        ++replies;
        if (line.err == wire::Err::kOk) ++fine[line.op];
      }
    }
  }
  int successes = 0;
  for (const auto& [op, count] : fine) successes += count;
  EXPECT_GT(successes, replies * 6 / 10);
  EXPECT_GT(events, 300);
  for (const wire::Op op : {wire::Op::kCreate,
                            wire::Op::kCreate2,
                            wire::Op::kCreateContainer,
                            wire::Op::kCreateTtl,
                            wire::Op::kDelete,
                            wire::Op::kSetData,
                            wire::Op::kSetAcl,
                            wire::Op::kMulti,
                            wire::Op::kMultiRead,
                            wire::Op::kExists,
                            wire::Op::kGetData,
                            wire::Op::kGetChildren,
                            wire::Op::kGetChildren2,
                            wire::Op::kGetAcl,
                            wire::Op::kSync,
                            wire::Op::kAddWatch,
                            wire::Op::kCheckWatches,
                            wire::Op::kRemoveWatches,
                            wire::Op::kSetWatches,
                            wire::Op::kSetWatches2,
                            wire::Op::kGetEphemerals,
                            wire::Op::kGetAllChildrenNumber,
                            wire::Op::kWhoAmI,
                            wire::Op::kAuth,
                            wire::Op::kCloseSession}) {
    EXPECT_GT(fine[op], 0) << name_of(op);
  }
}

}  // namespace
}  // namespace latchkey::differential
