#include <algorithm>
#include <variant>

#include <gtest/gtest.h>

#include "queue/bundle.hpp"
#include "queue/node_name.hpp"
#include "scenario/expect_explored.hpp"
#include "scenario/pond.hpp"

namespace latchkey::queue {

struct BundleProbe {
  static void fold(const Bundle& self, mini::Fold& fold) {
    fold.flags({self.ended_, self.contended_, self.prover_.has_value()});
    fold.number(self.unwatched_.size());
    for (const Bundle::Seat& seat : self.seats_) {
      fold.flags({seat.create.has_value(), seat.list.has_value(), seat.prove != 0, seat.watches});
    }
  }
};

}  // namespace latchkey::queue

namespace latchkey::pond::multi {
namespace {

namespace action = queue::action;
namespace event = queue::event;
using queue::Bundle;
using queue::Contender;
using queue::ContenderProbe;
using Kind = Request::Kind;

constexpr Answer kMaybe{Answer::Kind::kAmbiguous, Code::kConnectionLoss};

/// Mistakes that the layer below the bundle makes here, to see that they are found.
enum class Mutant {
  kNone,
  kOneByOne,        ///< H49: each create is a transaction of its own.
  kLoserKeepsRest,  ///< H49: after a loss the other members are not released.
};

/// One claim to the locks of several directories.
struct MultiActor {
  Standing self;
  std::vector<Contender> members;
  Bundle bundle;
  Mutant mutant = Mutant::kNone;
  std::vector<action::Create> creates;
  std::size_t grants = 0;
  std::size_t ended = 0;

  MultiActor(int client, const std::vector<std::string>& directories, std::uint64_t who,
             queue::Wait wait = queue::Wait::kYes, Mutant mistake = Mutant::kNone)
      : bundle(directories.size()), mutant(mistake) {
    self.client = client;
    self.locks = directories;
    for (std::size_t i = 0; i < directories.size(); ++i) {
      members.emplace_back(
          Contender::Options{
              .directory = directories[i], .wait = wait, .spent = queue::Spent::kFail},
          [high = who * 16 + i + 1, low = std::uint64_t{0}]() mutable {
            return queue::format_guid(high, low++);
          });
    }
  }

  using W = World<MultiActor>;

  void start(W& world, int id) { tell_all(world, id, event::Start{}); }
  void cancel(W& world, int id) { feed(world, id, 0, event::Cancel{Code::kTimedOut}); }
  void release(W& world, int id) { tell_all(world, id, event::Release{}); }
  void told(W& world, int id) {
    for (const std::string& path : std::exchange(held_back_, {})) world.owe(self.client, path);
    losing_ = false;
    if (mutant != Mutant::kLoserKeepsRest) tell_all(world, id, event::Release{});
  }
  void heartbeat(W& world, int id) { tell_all(world, id, event::Heartbeat{}); }
  void lease_over(W& world, int id) { tell_all(world, id, event::LeaseOver{}); }
  void session_over(W& world, int id) {
    tell_all(world, id, event::SessionOver{Code::kSessionLost});
  }
  void resume(W& world, int id, std::size_t member, Ask ask) {
    feed(world, id, member, event::Resumed{ask});
  }
  void watch_fired(W& world, int id, const std::string& path, bool gone) {
    const std::string name = last_part(path);
    gone ? feed(world, id, member_of(path), event::Gone{name})
         : feed(world, id, member_of(path), event::Touched{name});
  }
  void gone_here(W& world, int id, const std::string& path) {
    const std::size_t member = member_of(path);
    if (member == members.size() || ContenderProbe::own(members[member]) == last_part(path)) return;
    self.unwant(path);
    feed(world, id, member, event::Gone{last_part(path)});
  }

  void reply(W& world, int id, const Message& message) {
    const Request& request = message.request;
    const std::size_t member = request.member;
    const Ask ask = request.ask;
    switch (request.kind) {
      case Kind::kCreateSequential: return created(world, id, message);
      case Kind::kList: {
        std::vector<std::string> children = message.paths;
        std::erase_if(children, [&](const std::string& child) {
          return world.is_owed(self.client, self.locks[member] + "/" + child);
        });
        return feed(world, id, member, event::Listed{ask, message.answer, std::move(children)});
      }
      case Kind::kSync: return feed(world, id, member, event::Synced{ask, message.answer});
      case Kind::kMake: return feed(world, id, member, event::Made{ask, message.answer});
      case Kind::kProve: return feed(world, id, member, event::Proved{ask, message.answer});
      case Kind::kRead:
        if (request.watch) return feed(world, id, member, event::Watched{ask, message.answer});
        return feed(world, id, member,
                    event::Looked{ask, message.answer, message.node.session == self.client,
                                  message.node.czxid});
      default: return;
    }
  }
  void ambiguous(W& world, int id, const Request& request) {
    Message message;
    message.request = request;
    message.answer = kMaybe;
    reply(world, id, message);
  }

  void fold(mini::Fold& fold) const {
    queue::BundleProbe::fold(bundle, fold);
    for (const Contender& member : members) ContenderProbe::fold(member, fold);
    fold.number(grants);
    fold.number(ended);
    fold.flags({losing_});
    fold.texts(held_back_);
  }
  /// As fold(), for SettledPond.
  template <class Whose>
  void fold_settled(const Whose& whose, mini::Fold& fold) const {
    queue::BundleProbe::fold(bundle, fold);
    for (std::size_t i = 0; i < members.size(); ++i) {
      ContenderProbe::fold_settled(
          members[i], [&](const std::string& name) { return whose(path_of(i, name)); }, fold);
    }
    fold.number(grants);
    fold.number(ended);
  }
  [[nodiscard]] int role(std::size_t member, Ask ask) const {
    return ContenderProbe::role(members[member], ask);
  }

 private:
  [[nodiscard]] std::size_t member_of(const std::string& path) const {
    const auto found = std::find(self.locks.begin(), self.locks.end(), parent_of(path));
    return static_cast<std::size_t>(found - self.locks.begin());
  }
  [[nodiscard]] std::string path_of(std::size_t member, const std::string& name) const {
    return self.locks[member] + "/" + name;
  }
  void tell_all(W& world, int id, const queue::Event& event) {
    for (std::size_t i = 0; i < members.size(); ++i) feed(world, id, i, event);
  }
  void feed(W& world, int id, std::size_t member, const queue::Event& event) {
    events_.emplace_back(member, event);
    if (std::exchange(feeding_, true)) return;
    const auto contender = [this](std::size_t one) -> Contender& { return members[one]; };
    while (!events_.empty()) {
      const auto [who, what] = std::move(events_.front());
      events_.pop_front();
      for (const Bundle::Wish& wish : bundle.step(contender, who, what)) {
        std::visit([&](const auto& one) { carry_out(world, id, wish.member, one); }, wish.action);
      }
    }
    feeding_ = false;
  }

  /// What the one transaction came to, told to each member as multi_claim.cpp does.
  void created(W& world, int id, const Message& message) {
    if (mutant == Mutant::kOneByOne) {
      const std::string name = message.paths.empty() ? "" : last_part(message.paths[0]);
      return feed(world, id, message.request.member,
                  event::Created{message.request.ask, message.answer, name, message.node.czxid});
    }
    const auto asked = std::exchange(creates, {});
    for (std::size_t i = 0; i < asked.size(); ++i) {
      event::Created event{asked[i].ask, message.answer, "", message.node.czxid};
      if (message.answer.kind == Answer::Kind::kOk) event.name = last_part(message.paths[i]);
      if (message.answer.kind == Answer::Kind::kNo && i != message.culprit) {
        event.answer.code = Code::kRolledBack;
      }
      feed(world, id, i, event);
    }
  }

  void ask(W& world, int id, std::size_t member, Kind kind, Ask number, const std::string& path,
           bool watch = false) {
    world.send(self.client, {kind, id, member, number, {path}, watch});
  }
  void carry_out(W& world, int id, std::size_t member, const action::Create& one) {
    if (mutant == Mutant::kOneByOne) {
      return ask(world, id, member, Kind::kCreateSequential, one.ask, path_of(member, one.prefix));
    }
    creates.push_back(one);
    if (creates.size() < members.size()) return;
    Request request{Kind::kCreateSequential, id, 0, creates[0].ask, {}, false};
    for (std::size_t i = 0; i < creates.size(); ++i) {
      request.paths.push_back(path_of(i, creates[i].prefix));
    }
    world.send(self.client, std::move(request));
  }
  void carry_out(W& world, int id, std::size_t member, const action::List& one) {
    ask(world, id, member, Kind::kList, one.ask, self.locks[member]);
  }
  void carry_out(W& world, int id, std::size_t member, const action::Sync& one) {
    ask(world, id, member, Kind::kSync, one.ask, self.locks[member]);
  }
  void carry_out(W& world, int id, std::size_t member, const action::MakeDirectory& one) {
    ask(world, id, member, Kind::kMake, one.ask, one.path);
  }
  void carry_out(W& world, int id, std::size_t member, const action::Look& one) {
    ask(world, id, member, Kind::kRead, one.ask, path_of(member, one.name));
  }
  void carry_out(W& world, int id, std::size_t member, const action::Watch& one) {
    self.watches[{path_of(member, one.name), one.ask}] = false;
    ask(world, id, member, Kind::kRead, one.ask, path_of(member, one.name), true);
  }
  void carry_out(W& world, int id, std::size_t member, const action::Unwatch& one) {
    world.unwatch(id, path_of(member, one.name));
  }
  void carry_out(W& world, int id, std::size_t member, const action::Withdraw& one) {
    const bool is_create = !creates.empty() && creates[member].ask == one.ask;
    const std::size_t sender = is_create ? 0 : member;
    const bool taken_back =
        world.take_back(self.client, id, sender, is_create ? creates[0].ask : one.ask);
    if (!taken_back || !is_create) return;
    // One takes back the create of all: they have all given up by then.
    const auto asked = std::exchange(creates, {});
    for (std::size_t i = 0; i < asked.size(); ++i) {
      feed(world, id, i,
           event::Created{asked[i].ask, {Answer::Kind::kNo, Code::kCancelled}, "", 0});
    }
  }
  void carry_out(W& world, int id, std::size_t member, const action::Prove& one) {
    ask(world, id, member, Kind::kProve, one.ask, self.locks[member]);
  }
  void carry_out(W& world, int id, std::size_t member, const action::Pause& one) {
    world.pause(self.client, id, member, one.ask);
  }
  void carry_out(W&, int, std::size_t, const action::Bequeath&) {}  // They leave one by one.
  void carry_out(W& world, int, std::size_t member, const action::Owe& one) {
    const std::string path = path_of(member, one.name);
    if (losing_) return held_back_.push_back(path);
    world.owe(self.client, path);
  }
  void carry_out(W& world, int id, std::size_t member, const action::Grant& one) {
    if (self.answered) world.violate("answered twice");
    check_place(world, id, member, one);
    if (++grants < members.size()) return;
    self.answered = self.holding = true;
    world.check_grant(self, id, one.czxid);
  }
  /// Is it first in that directory by the leader's order?
  void check_place(W& world, int id, std::size_t member, const action::Grant& one) const {
    const auto own = world.leader().nodes.find(path_of(member, one.name));
    if (own == world.leader().nodes.end()) {
      if (!world.is_robbed(id)) world.violate("holds without a node");
      return;
    }
    for (const auto& [path, node] : world.leader().nodes) {
      if (parent_of(path) != self.locks[member] || node.number >= own->second.number) continue;
      if (!world.is_owed(self.client, path)) world.violate("holds although " + path + " is ahead");
    }
  }
  void carry_out(W& world, int, std::size_t, const action::Fail&) {
    if (self.holding) world.violate("fails while it holds");
    self.answered = true;
  }
  void carry_out(W& world, int, std::size_t, const action::Lose&) {
    if (!self.holding && !losing_) world.violate("loses what it does not hold");
    self.holding = false;
    self.telling = losing_ = true;
  }
  void carry_out(W& world, int, std::size_t, const action::Done&) {
    if (++ended < members.size()) return;
    if (!self.answered) world.violate("ends without an answer");
    if (!self.watches.empty()) world.violate("ends with a watch");
    self.done = true;
  }
  template <class Unused>
  void carry_out(W& world, int, std::size_t, const Unused&) {
    world.violate("asks for what a member never needs");
  }

  bool losing_ = false;
  std::vector<std::string> held_back_;
  std::deque<std::pair<std::size_t, queue::Event>> events_;
  bool feeding_ = false;
};

using W = World<MultiActor>;
using Locks = std::vector<std::string>;

enum class Sessions { kOneEach, kShared };
enum class Directories { kThere, kMissing };

/// One actor for each list of locks.
W make_world(const std::vector<Locks>& claims, Sessions sessions = {}, Mutant mutant = {},
             Directories directories = {}, bool lags = false) {
  W world;
  if (directories == Directories::kThere) {
    for (const char* directory : {"/x", "/y", "/z"}) world.make(directory);
  }
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const bool shared = sessions == Sessions::kShared && i > 0;
    const int client = shared ? 0 : world.add_client(lags && i == 0);
    world.add(MultiActor(client, claims[i], i + 1, queue::Wait::kYes, mutant));
  }
  return world;
}

void expect_all_is_well(const W& world, Troubles troubles) {
  mini::expect_all_is_well_in(Explorer<MultiActor>(world, troubles), 20);
}

void expect_found(const W& world, Troubles troubles, const std::string& what) {
  mini::expect_found_in(Explorer<MultiActor>(world, troubles), what);
}

const Locks kXy{"/x", "/y"};
const Locks kYx{"/y", "/x"};

TEST(MultiExploration, H49_MembersInAnyOrderNeverWaitInACircle) {
  expect_all_is_well(make_world({kXy, kYx}), {});
  expect_all_is_well(make_world({kXy, kYx, {"/x"}}), {});
  expect_all_is_well(make_world({kXy, kYx}, Sessions::kShared), {});
  Locks second{"/x", "/y", "/z"};
  do {
    expect_all_is_well(make_world({{"/x", "/y", "/z"}, second}), {});
  } while (std::next_permutation(second.begin(), second.end()));
}

TEST(MultiExploration, H49_ThreeThatOverlapInPairs) {
  expect_all_is_well(make_world({{"/x", "/y"}, {"/y", "/z"}, {"/z", "/x"}}), {});
}

TEST(MultiExploration, H49_FiveArriveReleaseCancelAndCrashInEveryOrder) {
  walk::expect_all_is_well_when_settled(SettledPond(
      make_world({{"/x", "/y"}, {"/y", "/z"}, {"/z", "/x"}, {"/y"}, {"/z", "/y", "/x"}})));
}

TEST(MultiExploration, H01_AConnectionLostAtAnyMoment) {
  expect_all_is_well(make_world({kXy}), {.cuts = 2});
  expect_all_is_well(make_world({kXy, kYx}), {.cuts = 1});
  expect_all_is_well(make_world({kXy, kYx}, Sessions::kShared), {.cuts = 1});
  expect_all_is_well(make_world({kXy, {"/y"}}, {}, {}, {}, true), {.cuts = 1});
}

TEST(MultiExploration, H06_H50_ACancelAtAnyMomentLeavesNothing) {
  expect_all_is_well(make_world({kXy}), {.cuts = 2, .cancels = 1});
  expect_all_is_well(make_world({kXy, {"/y"}}), {.cuts = 1, .cancels = 1});
  expect_all_is_well(make_world({kXy, kYx}), {.cancels = 1});
}

TEST(MultiExploration, H05_AnOperatorDeletesAnyNodeAtAnyMoment) {
  expect_all_is_well(make_world({kXy, {"/y"}}), {.deletions = 1, .heartbeats = 1});
  expect_all_is_well(make_world({kXy}), {.cuts = 1, .deletions = 2});
}

TEST(MultiExploration, H09_H12_ALeaseEndsAndTheSessionMayOrMayNotSurvive) {
  expect_all_is_well(make_world({kXy, kYx}), {.lease_ends = 1});
  expect_all_is_well(make_world({kXy, {"/y"}}), {.cuts = 1, .lease_ends = 1});
}

TEST(MultiExploration, H31_AClientCrashesAtAnyMoment) {
  expect_all_is_well(make_world({kXy, kYx}), {.crashes = 1});
}

TEST(MultiExploration, H39_DirectoriesAreMissing) {
  expect_all_is_well(make_world({kXy, {"/y"}}, {}, {}, Directories::kMissing), {.cancels = 1});
  expect_all_is_well(make_world({kXy}, {}, {}, Directories::kMissing), {.cuts = 1, .cancels = 1});
}

TEST(MultiExplorationFinds, H49_CreatesThatAreNotOneTransaction) {
  expect_found(make_world({kXy, kYx}, {}, Mutant::kOneByOne), {}, "sleeps though nobody holds");
}

TEST(MultiExplorationFinds, H49_ALossThatKeepsTheOtherMembers) {
  expect_found(make_world({kXy, kYx}, {}, Mutant::kLoserKeepsRest),
               {.deletions = 1, .heartbeats = 1}, "never ends");
}

}  // namespace
}  // namespace latchkey::pond::multi
