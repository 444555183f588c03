#include <variant>

#include <gtest/gtest.h>

#include "queue/name_contender.hpp"
#include "scenario/expect_explored.hpp"
#include "scenario/pond.hpp"

namespace latchkey::queue {

struct NameContenderProbe {
  static void fold(const NameContender& self, mini::Fold& fold) {
    fold.kind(self.phase_);
    if (self.phase_ == NameContender::Phase::kPausing) fold.kind(self.after_pause_);
    fold.kind(self.outcome_);
    fold.kind(self.arm_);
    fold.kind(self.round_);
    const NameContender::Asks& asks = self.asks_;
    fold.flags({self.leaving_, asks.create != 0, asks.read != 0, asks.sync != 0, asks.make != 0,
                asks.remove != 0, asks.prove != 0, asks.pause != 0, self.parents_.has_begun()});
    fold.number(static_cast<std::uint64_t>(self.own_.value_or(0)));
    fold.kind(self.sync_answer_ ? 1 + static_cast<int>(self.sync_answer_->kind) : 0);
    fold.flags({self.read_.has_value(), self.read_ && self.is_ours(*self.read_)});
    if (self.read_) fold.kind(self.read_->answer.kind);
  }
  static int role(const NameContender& self, Ask ask) {
    const NameContender::Asks& asks = self.asks_;
    int role = 1;
    for (const Ask slot :
         {asks.create, asks.read, asks.sync, asks.make, asks.remove, asks.prove, asks.pause}) {
      if (slot != 0 && slot == ask) return role;
      ++role;
    }
    return 0;
  }
};

}  // namespace latchkey::queue

namespace latchkey::pond::name {
namespace {

namespace action = queue::action;
namespace event = queue::event;
using queue::NameContender;
using Kind = Request::Kind;

const std::string kNode = "/names/a";
constexpr Answer kMaybe{Answer::Kind::kAmbiguous, Code::kConnectionLoss};

/// Mistakes that the layer below the contender makes here, to see that they are found.
enum class Mutant {
  kNone,
  kSessionIsIdentity,   ///< H07: what our session owns is ours.
  kBlindDelete,         ///< H22: a lost delete is sent again at once.
  kLookWithoutSync,     ///< H02: a sync is answered without being sent.
  kLossTakesNodeFirst,  ///< H09: the node goes before the holder is told.
};

/// One attempt at the name.
struct NameActor {
  Standing self;
  NameContender machine;
  Mutant mutant = Mutant::kNone;

  NameActor(int client, NameContender::Options options, Mutant mistake)
      : machine(std::move(options)), mutant(mistake) {
    self.client = client;
    self.locks = {kNode};
  }

  using W = World<NameActor>;

  void start(W& world, int id) { feed(world, id, event::Start{}); }
  void cancel(W& world, int id) { feed(world, id, event::Cancel{Code::kTimedOut}); }
  void release(W& world, int id) { feed(world, id, event::Release{}); }
  void told(W& world, int id) { feed(world, id, event::LossTold{}); }
  void heartbeat(W& world, int id) { feed(world, id, event::Heartbeat{}); }
  void lease_over(W& world, int id) { feed(world, id, event::LeaseOver{}); }
  void session_over(W& world, int id) { feed(world, id, event::SessionOver{Code::kSessionLost}); }
  void resume(W& world, int id, std::size_t, Ask ask) { feed(world, id, event::Resumed{ask}); }
  void watch_fired(W& world, int id, const std::string&, bool gone) {
    gone ? feed(world, id, event::NodeGone{}) : feed(world, id, event::NodeTouched{});
  }
  void gone_here(W&, int, const std::string&) {}

  void reply(W& world, int id, const Message& message) {
    const Ask ask = message.request.ask;
    const Answer& answer = message.answer;
    switch (message.request.kind) {
      case Kind::kCreate:
        return feed(world, id, event::Created{ask, answer, "", message.node.czxid});
      case Kind::kRead: {
        const bool owned = message.node.session == self.client;
        const bool is_signed = message.node.actor == id || mutant == Mutant::kSessionIsIdentity;
        return feed(world, id, event::NodeRead{ask, answer, owned, is_signed, message.node.czxid});
      }
      case Kind::kDelete: return feed(world, id, event::Removed{ask, answer});
      case Kind::kSync: return feed(world, id, event::Synced{ask, answer});
      case Kind::kMake: return feed(world, id, event::Made{ask, answer});
      case Kind::kProve: return feed(world, id, event::Proved{ask, answer});
      default: return;
    }
  }
  void ambiguous(W& world, int id, const Request& request) {
    if (mutant == Mutant::kBlindDelete && request.kind == Kind::kDelete) {
      return world.send(self.client, request);
    }
    Message message;
    message.request = request;
    message.answer = kMaybe;
    reply(world, id, message);
  }

  void fold(mini::Fold& fold) const { queue::NameContenderProbe::fold(machine, fold); }
  /// As fold(), for SettledPond.
  template <class Whose>
  void fold_settled(const Whose&, mini::Fold& to) const {
    fold(to);
  }
  [[nodiscard]] int role(std::size_t, Ask ask) const {
    return queue::NameContenderProbe::role(machine, ask);
  }

 private:
  void feed(W& world, int id, const queue::NameEvent& event) {
    events_.push_back(event);
    if (std::exchange(feeding_, true)) return;
    while (!events_.empty()) {
      const queue::NameEvent next = std::move(events_.front());
      events_.pop_front();
      for (const queue::NameAction& wish : machine.step(next)) {
        std::visit([&](const auto& what) { carry_out(world, id, what); }, wish);
      }
    }
    feeding_ = false;
  }
  void ask(W& world, int id, Kind kind, Ask number, const std::string& path, bool watch = false) {
    world.send(self.client, {kind, id, 0, number, {path}, watch});
  }

  void carry_out(W& world, int id, const action::CreateNode& one) {
    ask(world, id, Kind::kCreate, one.ask, kNode);
  }
  void carry_out(W& world, int id, const action::ReadNode& one) {
    ask(world, id, Kind::kRead, one.ask, kNode);
  }
  void carry_out(W& world, int id, const action::ReadAndWatchNode& one) {
    self.watches[{kNode, one.ask}] = false;
    ask(world, id, Kind::kRead, one.ask, kNode, true);
  }
  void carry_out(W& world, int id, const action::UnwatchNode&) { world.unwatch(id, kNode); }
  void carry_out(W& world, int id, const action::ForgetWatch&) { world.unwatch(id, kNode, false); }
  void carry_out(W& world, int id, const action::RemoveNode& one) {
    ask(world, id, Kind::kDelete, one.ask, kNode);
  }
  void carry_out(W&, int, const action::NodeRemoved&) {}
  void carry_out(W& world, int id, const action::Sync& one) {
    if (mutant == Mutant::kLookWithoutSync) return feed(world, id, event::Synced{one.ask, {}});
    ask(world, id, Kind::kSync, one.ask, kNode);
  }
  void carry_out(W& world, int id, const action::MakeDirectory& one) {
    ask(world, id, Kind::kMake, one.ask, one.path);
  }
  void carry_out(W& world, int id, const action::Withdraw& one) {
    if (!world.take_back(self.client, id, 0, one.ask)) return;
    feed(world, id, event::Created{one.ask, {Answer::Kind::kNo, Code::kCancelled}, "", 0});
  }
  void carry_out(W& world, int id, const action::Prove& one) {
    ask(world, id, Kind::kProve, one.ask, kNode);
  }
  void carry_out(W& world, int id, const action::Pause& one) {
    world.pause(self.client, id, 0, one.ask);
  }
  void carry_out(W& world, int id, const action::Grant& one) {
    if (self.answered) world.violate("answered twice");
    self.answered = self.holding = true;
    world.check_grant(self, id, one.czxid);
    const auto node = world.leader().nodes.find(kNode);
    if (node == world.leader().nodes.end() || node->second.czxid != one.czxid) {
      if (!world.is_robbed(id)) world.violate("holds without a node");
    }
  }
  void carry_out(W& world, int, const action::Fail&) {
    if (self.answered) world.violate("answered twice");
    self.answered = true;
  }
  void carry_out(W& world, int id, const action::Lose&) {
    if (!self.holding) world.violate("loses what it does not hold");
    // It goes on believing until it is told.
    self.telling = true;
    if (mutant == Mutant::kLossTakesNodeFirst) feed(world, id, event::LossTold{});
    if (mutant != Mutant::kLossTakesNodeFirst) self.holding = false;
  }
  void carry_out(W& world, int, const action::Done&) {
    if (!self.answered) world.violate("ends without an answer");
    self.done = true;
    if (!self.watches.empty()) world.violate("ends with a watch");
  }

  std::deque<queue::NameEvent> events_;
  bool feeding_ = false;
};

enum class Sessions { kOneEach, kShared };

World<NameActor> make_world(int actors, Sessions sessions = {}, bool lags = false,
                            Mutant mutant = Mutant::kNone, queue::Wait wait = queue::Wait::kYes) {
  World<NameActor> world;
  world.make("/names");
  for (int i = 0; i < actors; ++i) {
    const bool shared = sessions == Sessions::kShared && i > 0;
    const int client = shared ? 0 : world.add_client(lags && i == 0);
    world.add(NameActor(client, {.node = kNode, .wait = wait}, mutant));
  }
  return world;
}

void expect_all_is_well(const World<NameActor>& world, Troubles troubles) {
  mini::expect_all_is_well_in(Explorer<NameActor>(world, troubles), 20);
}

void expect_found(const World<NameActor>& world, Troubles troubles, const std::string& what) {
  mini::expect_found_in(Explorer<NameActor>(world, troubles), what);
}

TEST(NameExploration, UpToFiveRaceAndNoWakeUpIsLost) {
  for (const int actors : {2, 3, 4}) expect_all_is_well(make_world(actors), {});
  expect_all_is_well(make_world(5, Sessions::kShared), {});
}

// Who of those that wait gets it when it goes is left to luck: they are alike, so any will do.
TEST(NameExploration, FiveArriveReleaseCancelAndCrashInEveryOrder) {
  walk::expect_all_is_well_when_settled(SettledPond(make_world(5)), walk::Alike::kYes);
}

TEST(NameExploration, TryLockEndsAtOnce) {
  expect_all_is_well(make_world(3, {}, false, Mutant::kNone, queue::Wait::kNo), {.cuts = 1});
}

TEST(NameExploration, H01_H21_AConnectionLostAtAnyMoment) {
  expect_all_is_well(make_world(1), {.cuts = 3});
  expect_all_is_well(make_world(2), {.cuts = 2});
  expect_all_is_well(make_world(3), {.cuts = 1});
}

TEST(NameExploration, H02_AConnectionLostBehindALaggingServer) {
  expect_all_is_well(make_world(2, {}, true), {.cuts = 2});
}

TEST(NameExploration, H06_H50_ACancelAtAnyMoment) {
  expect_all_is_well(make_world(2), {.cuts = 1, .cancels = 1});
  expect_all_is_well(make_world(3), {.cancels = 2});
  expect_all_is_well(make_world(2, {}, true), {.cuts = 1, .cancels = 1});
}

TEST(NameExploration, H07_AttemptsOfOneSessionExcludeEachOther) {
  expect_all_is_well(make_world(2, Sessions::kShared), {.cuts = 2, .cancels = 1});
  expect_all_is_well(make_world(3, Sessions::kShared), {.cuts = 1});
}

TEST(NameExploration, H09_H12_ALeaseEndsAndTheSessionMayOrMayNotSurvive) {
  expect_all_is_well(make_world(2), {.lease_ends = 2});
  expect_all_is_well(make_world(2), {.cuts = 1, .lease_ends = 1, .heartbeats = 1});
}

TEST(NameExploration, H31_AClientCrashesAtAnyMoment) {
  expect_all_is_well(make_world(3), {.crashes = 1});
  expect_all_is_well(make_world(2), {.cuts = 1, .crashes = 1});
}

// A delete on its way may hit a stranger then, but nothing else can make that happen.
TEST(NameExploration, H05_AnOperatorDeletesTheNodeOfAnyHolder) {
  expect_all_is_well(make_world(1), {.cuts = 1, .deletions = 1, .heartbeats = 1});
  expect_all_is_well(make_world(2), {.deletions = 2, .heartbeats = 1});
  expect_all_is_well(make_world(2), {.cuts = 1, .deletions = 1, .heartbeats = 1});
}

TEST(NameExploration, H39_ItsDirectoryIsMissing) {
  World<NameActor> world;
  for (int i = 0; i < 2; ++i) {
    world.add(NameActor(world.add_client(), {.node = kNode}, Mutant::kNone));
  }
  expect_all_is_well(world, {.cuts = 1, .cancels = 1});
}

TEST(NameExplorationFinds, H07_ASessionTakenForAnIdentity) {
  expect_found(make_world(2, Sessions::kShared, false, Mutant::kSessionIsIdentity), {.cuts = 1},
               "two hold");
}

TEST(NameExplorationFinds, H22_ALostDeleteThatIsSentAgainBlindly) {
  expect_found(make_world(2, {}, false, Mutant::kBlindDelete), {.cuts = 1}, "stranger");
}

TEST(NameExplorationFinds, H02_ALookWithoutSync) {
  expect_found(make_world(2, {}, true, Mutant::kLookWithoutSync), {.cuts = 1}, "=> ");
}

TEST(NameExplorationFinds, H09_ANodeThatGoesBeforeTheLossIsTold) {
  expect_found(make_world(2, {}, false, Mutant::kLossTakesNodeFirst), {.lease_ends = 1},
               "two hold");
}

}  // namespace
}  // namespace latchkey::pond::name
