// Readers and writers, in every order within small bounds.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "scenario/expect_explored.hpp"
#include "scenario/explorer.hpp"
#include "scenario/settled_line.hpp"

namespace latchkey::mini::rw {
namespace {

using queue::Relist;
using queue::Tag;
using queue::Watching;

enum class Started { kNo, kInOrder };

/// "rwr" is a reader, a writer and a reader, each with a session of its own.
World make(const std::string& kinds, Started started, Watching watching = Watching::kNearest,
           Mutant mutant = Mutant::kNone) {
  World world({.mutant = mutant});
  for (const char kind : kinds) {
    const int slot = world.add_slot(std::string(1, kind) + std::to_string(world.slots().size()),
                                    world.add_client(),
                                    {.tag = kind == 'r' ? Tag::kRead : Tag::kWrite,
                                     .relist = Relist::kAlways,
                                     .watching = watching});
    if (started == Started::kNo) continue;
    world.start(slot);
    settle(world);
  }
  return world;
}

void expect_all_is_well(const World& world, Troubles troubles) {
  expect_all_is_well_in(Explorer(world, troubles), 5);
}

/// Every queue of up to `most` readers and writers.
std::vector<std::string> all_kinds(std::size_t most) {
  std::vector<std::string> all{"r", "w"};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() < most) {
      all.push_back(all[i] + "r");
      all.push_back(all[i] + "w");
    }
  }
  return all;
}

// ---- Whoever leaves, in whatever order: the two policies grant alike, and as the rule says. -----

/// Who holds, by the rule itself: nobody ahead, or only readers ahead of a reader.
std::vector<bool> holders_by_rule(const std::string& kinds, const std::vector<bool>& gone) {
  std::vector<bool> holders(kinds.size());
  bool any_ahead = false;
  bool writer_ahead = false;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (gone[i]) continue;
    holders[i] = kinds[i] == 'r' ? !writer_ahead : !any_ahead;
    any_ahead = true;
    writer_ahead = writer_ahead || kinds[i] == 'w';
  }
  return holders;
}

enum class Leaves { kByRelease, kByCrash };

void everyone_leaves(const std::string& kinds, const std::vector<int>& order, Leaves how,
                     Watching watching) {
  World world = make(kinds, Started::kInOrder, watching);
  std::vector<bool> gone(kinds.size());
  for (const int slot : order) {
    const auto at = static_cast<std::size_t>(slot);
    if (how == Leaves::kByCrash) {
      world.crash(world.slots()[at].client);
      world.expire(world.slots()[at].client);
    } else if (world.slots()[at].holding) {
      world.release(slot);
    } else {
      world.cancel(slot, Code::kTimedOut);
    }
    settle(world);
    gone[at] = true;
    const std::vector<bool> holders = holders_by_rule(kinds, gone);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      ASSERT_EQ(world.slots()[i].holding, holders[i]) << kinds << ", slot " << i;
    }
    world.check();
    ASSERT_TRUE(world.violations().empty()) << world.violations().front();
  }
  ASSERT_TRUE(world.leader().entries.empty());
}

TEST(RwExploration, H42_H43_H45_UpToFiveInEveryMixLeaveInEveryOrderUnderBothPolicies) {
  for (const std::string& kinds : all_kinds(5)) {
    std::vector<int> order(kinds.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    do {
      for (const Watching watching : {Watching::kNearest, Watching::kDirectory}) {
        everyone_leaves(kinds, order, Leaves::kByRelease, watching);
        everyone_leaves(kinds, order, Leaves::kByCrash, watching);
        ASSERT_FALSE(HasFatalFailure());
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// Whoever comes first comes first in the mix: so every order of arrival is gone through.
TEST(RwExploration, H42_H43_H45_FiveInEveryMixArriveReleaseCancelAndCrashInEveryOrder) {
  for (const std::string& kinds : all_kinds(5)) {
    if (kinds.size() < 5) continue;
    for (const Watching watching : {Watching::kNearest, Watching::kDirectory}) {
      walk::expect_all_is_well_when_settled(SettledLine(make(kinds, Started::kNo, watching)),
                                            walk::Alike::kYes);
    }
    ASSERT_FALSE(HasFailure()) << kinds;
  }
}

/// A line whose writers may become readers, and may go when they have just asked for that.
class DowngradingLine : public SettledLine {
 public:
  using SettledLine::SettledLine;

  [[nodiscard]] bool may_downgrade(int who) const {
    return stands(who) == walk::Stands::kHolds && !slot(who).shares;
  }
  void downgrade(int who) { world().downgrade(who); }
  void downgrade_and_give_up(int who) {
    downgrade(who);
    cancel(who);
  }
  void downgrade_and_crash(int who) {
    downgrade(who);
    crash(who);
  }
  [[nodiscard]] std::size_t key() const {
    Fold fold;
    fold.number(SettledLine::key());
    for (int who = 0; who < count(); ++who) fold.flags({slot(who).shares});
    return fold.sum();
  }
};

TEST(RwExploration, H44_FiveInEveryMixOfWhomEveryWriterMayBecomeAReaderGiveUpOrCrash) {
  for (const std::string& kinds : all_kinds(5)) {
    if (kinds.size() < 5) continue;
    for (const Watching watching : {Watching::kNearest, Watching::kDirectory}) {
      walk::expect_all_is_well_when_settled(DowngradingLine(make(kinds, Started::kNo, watching)),
                                            walk::Alike::kYes);
    }
    ASSERT_FALSE(HasFailure()) << kinds;
  }
}

// ---- Every order of messages. -------------------------------------------------------------------

TEST(RwExploration, StrangersArriveAndLeaveAsTheyLike) {
  for (const char* kinds : {"rw", "ww", "rr", "rrw", "rww"}) {
    expect_all_is_well(make(kinds, Started::kNo), {});
    expect_all_is_well(make(kinds, Started::kNo, Watching::kDirectory), {});
  }
}

TEST(RwExploration, ALineOfThreeWithTrouble) {
  for (const std::string& kinds : all_kinds(3)) {
    if (kinds.size() < 3) continue;
    expect_all_is_well(make(kinds, Started::kInOrder), {.cuts = 1, .cancels = 1});
    expect_all_is_well(make(kinds, Started::kInOrder), {.cancels = 1, .crashes = 1});
    expect_all_is_well(make(kinds, Started::kInOrder), {.deletions = 1});
  }
}

TEST(RwExploration, TheDirectoryWatchSurvivesTrouble) {
  for (const char* kinds : {"w", "rw", "wr", "ww"}) {
    expect_all_is_well(make(kinds, Started::kNo, Watching::kDirectory), {.cuts = 1, .cancels = 1});
    expect_all_is_well(make(kinds, Started::kNo, Watching::kDirectory), {.deletions = 1});
    expect_all_is_well(make(kinds, Started::kNo, Watching::kDirectory), {.crashes = 1});
  }
}

// ---- Downgrade. ---------------------------------------------------------------------------------

TEST(RwExploration, H44_ADowngradeLetsNoWriterInAtAnyMomentOfTheirArrival) {
  for (const char* kinds : {"w", "ww", "wr", "wrw", "wwr"}) {
    expect_all_is_well(make(kinds, Started::kNo), {.downgrades = 1});
  }
  expect_all_is_well(make("ww", Started::kNo, Watching::kDirectory), {.downgrades = 2});
}

TEST(RwExploration, H44_ADowngradeWithWritersAndReadersQueuedBehindIt) {
  for (const char* kinds : {"ww", "wr", "www", "wrw", "wwr", "wrr"}) {
    expect_all_is_well(make(kinds, Started::kInOrder), {.cancels = 1, .downgrades = 1});
    expect_all_is_well(make(kinds, Started::kInOrder), {.crashes = 1, .downgrades = 1});
  }
  expect_all_is_well(make("wwrw", Started::kInOrder), {.downgrades = 2});
}

TEST(RwExploration, H44_ADowngradeWhoseAnswerIsLost) {
  for (const char* kinds : {"w", "ww", "wr"}) {
    expect_all_is_well(make(kinds, Started::kInOrder), {.cuts = 2, .downgrades = 1});
    expect_all_is_well(make(kinds, Started::kInOrder), {.cuts = 1, .cancels = 1, .downgrades = 1});
  }
}

TEST(RwExploration, H44_ADowngradeWhoseLeaseEndsOrWhoseNodeIsDeleted) {
  for (const char* kinds : {"w", "ww"}) {
    expect_all_is_well(make(kinds, Started::kInOrder), {.lease_ends = 1, .downgrades = 1});
    expect_all_is_well(make(kinds, Started::kInOrder),
                       {.cuts = 1, .lease_ends = 1, .downgrades = 1});
    expect_all_is_well(make(kinds, Started::kInOrder),
                       {.deletions = 1, .heartbeats = 1, .downgrades = 1});
  }
}

TEST(RwExplorationFinds, H44_ADowngradeThatLetsAWriterInAmongFiveWhoComeAndGo) {
  const World world = make("wwwww", Started::kNo, Watching::kNearest, Mutant::kReadersNotCounted);
  walk::expect_found(walk::Settled<DowngradingLine>(DowngradingLine(world), walk::Alike::kYes),
                     "w4 holds although");
}

TEST(RwExplorationFinds, H44_AWriterThatDoesNotSeeTheReaderInItsPredecessorsPlace) {
  const World world = make("ww", Started::kInOrder, Watching::kNearest, Mutant::kReadersNotCounted);
  Explorer explorer(world, {.downgrades = 1});
  explorer.run();
  EXPECT_NE(explorer.failure().find("two hold at a time"), std::string::npos)
      << "found: " << explorer.failure();
}

}  // namespace
}  // namespace latchkey::mini::rw
