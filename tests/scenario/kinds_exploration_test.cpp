#include <algorithm>
#include <deque>
#include <variant>

#include <gtest/gtest.h>

#include "queue/contender.hpp"
#include "queue/permits.hpp"
#include "scenario/walk.hpp"

/// A mutex and a semaphore at one path, in every order of requests, answers and releases, and with
/// servers that lag behind each other: never do both hold.
namespace latchkey::walk::kinds {
namespace {

namespace action = queue::action;
namespace event = queue::event;
using queue::Answer;

/// How the layer below the machines is broken on purpose.
enum class Mutant {
  kNone,
  kQueueIsBlind,     ///< A queue does not see `leases`.
  kPermitsAreBlind,  ///< Permits are told that the path has no more children than theirs.
};

/// What is below the path after so many writes.
struct Tree {
  std::vector<std::string> entries;
  std::vector<std::string> leases;
  bool has_locks = false;
  bool has_leases = false;
  std::string size;
  std::string leases_number;  ///< Of the write that made them.

  [[nodiscard]] std::vector<std::string> children() const {
    std::vector<std::string> all = entries;
    if (has_locks) all.emplace_back(queue::kLocks);
    if (has_leases) all.emplace_back(queue::kLeases);
    return all;
  }
  [[nodiscard]] std::vector<std::string> elders() const {
    std::vector<std::string> older;
    std::copy_if(entries.begin(), entries.end(), std::back_inserter(older),
                 [this](const std::string& entry) {
                   return entry.substr(entry.size() - leases_number.size()) < leases_number;
                 });
    return has_leases ? older : std::vector<std::string>{};
  }
};

class World;

/// Sent, and perhaps answered: `run` is carried out by a server, and gives what the client is told.
struct Request {
  std::string name;
  bool is_write = false;
  std::function<std::function<void(World&)>(World&, Tree&)> run;
};

struct Actor {
  std::optional<queue::Contender> contender;
  std::optional<queue::Permits> permits;
  bool holds = false;
  bool started = false;
  std::deque<Request> outbox;
  std::deque<std::pair<std::string, std::function<void(World&)>>> inbox;
  std::size_t seen = 0;  ///< How many writes its server has carried out.
  std::string history;   ///< Of a deterministic machine: what it will do follows from it.
};

class World {
 public:
  World(int contenders, int permits, Mutant mutant) : mutant_(mutant) {
    for (int i = 0; i < contenders + permits; ++i) {
      const auto guids = [guid = queue::format_guid(1, static_cast<std::uint64_t>(i))] {
        return guid;
      };
      Actor actor;
      if (i < contenders) {
        actor.contender.emplace(
            queue::Contender::Options{.directory = "/p", .wait = queue::Wait::kNo}, guids);
      } else {
        actor.permits.emplace(
            queue::Permits::Options{.path = "/p", .size = 1, .wait = queue::Wait::kNo}, guids);
      }
      actors_.push_back(std::move(actor));
    }
  }

  [[nodiscard]] std::vector<Step<World>> steps() const {
    Steps<World> steps(*this);
    for (std::size_t i = 0; i < actors_.size(); ++i) {
      const Actor& one = actors_[i];
      const std::string who = std::to_string(i) + ' ';
      if (!one.started) steps.may(who + "comes", [i](World& world) { world.start(i); });
      if (one.holds) steps.may(who + "lets go", [i](World& world) { world.release(i); });
      if (!one.inbox.empty()) {
        steps.soon(who + "hears " + one.inbox.front().first, [i](World& world) { world.hear(i); });
      }
      if (one.outbox.empty()) continue;
      const Request& request = one.outbox.front();
      // A write happens at the leader; a read wherever its own server has got to.
      for (std::size_t at = request.is_write ? log_.size() - 1 : one.seen; at < log_.size(); ++at) {
        steps.soon(who + request.name + " at " + std::to_string(at),
                   [i, at](World& world) { world.serve(i, at); });
      }
    }
    return steps.take();
  }

  [[nodiscard]] std::size_t key() const {
    std::string text;
    for (const Actor& one : actors_) {
      text += one.history + '|' + std::to_string(one.seen) + (one.holds ? "h" : "");
      for (const Request& request : one.outbox) text += '>' + request.name;
      for (const auto& message : one.inbox) text += '<' + message.first;
    }
    for (const Tree& tree : log_) {
      for (const std::string& child : tree.children()) text += ',' + child;
      for (const std::string& lease : tree.leases) text += ';' + lease;
      text += tree.size;
    }
    return std::hash<std::string>{}(text);
  }
  [[nodiscard]] const std::string& violation() const { return violation_; }

  void check_at_rest() {
    for (const Actor& one : actors_) {
      if (one.started && one.history.find("answer") == std::string::npos) {
        violation_ = "somebody waits for ever";
      }
    }
  }

 private:
  void start(std::size_t i) {
    actors_[i].started = true;
    tell(i, "start", event::Start{});
  }
  void release(std::size_t i) {
    actors_[i].holds = false;
    tell(i, "release", event::Release{});
  }
  void hear(std::size_t i) {
    const auto message = std::move(actors_[i].inbox.front());
    actors_[i].inbox.pop_front();
    message.second(*this);
  }
  void serve(std::size_t i, std::size_t at) {
    Actor& one = actors_[i];
    const Request request = std::move(one.outbox.front());
    one.outbox.pop_front();
    Tree tree = log_[at];
    auto answer = request.run(*this, tree);
    if (request.is_write) log_.push_back(std::move(tree));
    one.seen = request.is_write ? log_.size() - 1 : at;
    if (answer) one.inbox.emplace_back(request.name + '@' + std::to_string(at), std::move(answer));
  }

  /// One of the two machines is there, and takes the event if it knows it.
  template <class Event>
  void tell(std::size_t i, const std::string& what, Event event) {
    Actor& one = actors_[i];
    one.history += what + '.';
    if constexpr (std::is_constructible_v<queue::Event, Event>) {
      if (one.contender) return carry_out(i, one.contender->step(event));
    }
    if constexpr (std::is_constructible_v<queue::PermitEvent, Event>) {
      if (one.permits) carry_out(i, one.permits->step(event));
    }
  }
  template <class Actions>
  void carry_out(std::size_t i, Actions actions) {
    for (auto& action : actions) {
      std::visit([&](auto& what) { carry_out_one(i, what); }, action);
    }
  }

  template <class Run>
  void ask(std::size_t i, std::string name, bool is_write, Run run) {
    actors_[i].outbox.push_back({std::move(name), is_write, std::move(run)});
  }
  /// Tells the actor an event when its answer is heard.
  template <class Event>
  static std::function<void(World&)> told(std::size_t i, std::string what, Event event) {
    return [i, what, event](World& world) { world.tell(i, what, event); };
  }
  static std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += name.substr(name.size() - 4) + ' ';
    return text;
  }
  [[nodiscard]] std::string numbered(const std::string& prefix) const {
    const std::string number = std::to_string(log_.size());
    return prefix + std::string(10 - number.size(), '0') + number;
  }

  // What both ask for.

  void carry_out_one(std::size_t i, action::List& list) {
    const bool permits = actors_[i].permits.has_value();
    ask(i, "list", false, [i, permits, ask = list.ask](World& world, Tree& tree) {
      std::vector<std::string> names = permits ? tree.leases : tree.children();
      if (!permits && world.mutant_ == Mutant::kQueueIsBlind) std::erase(names, queue::kLeases);
      const bool missing = permits && !tree.has_leases;
      const Answer answer = missing ? Answer{Answer::Kind::kNo, Code::kNoNode} : Answer{};
      return told(i, "listed " + joined(names), event::Listed{ask, answer, names});
    });
  }
  void carry_out_one(std::size_t i, action::Sync& sync) {
    ask(i, "sync", true, [i, ask = sync.ask](World&, Tree&) {
      return told(i, "synced", event::Synced{ask, {}});
    });
  }
  void carry_out_one(std::size_t i, action::Owe& owe) {
    ask(i, "delete", true, [name = owe.name](World&, Tree& tree) {
      std::erase(tree.entries, name);
      std::erase(tree.leases, name);
      return std::function<void(World&)>();
    });
  }
  void carry_out_one(std::size_t i, action::Prove& prove) {
    actors_[i].inbox.emplace_front("proof", told(i, "proved", event::Proved{prove.ask, {}}));
  }
  void carry_out_one(std::size_t i, action::Pause& pause) {
    actors_[i].inbox.emplace_back("pause", told(i, "resumed", event::Resumed{pause.ask}));
  }
  void carry_out_one(std::size_t i, action::MakeDirectory& make) {
    ask(i, "make", true, [i, ask = make.ask](World& world, Tree& tree) {
      const Answer there{Answer::Kind::kNo, Code::kNodeExists};
      const bool made = !std::exchange(tree.has_leases, true);
      if (made) tree.leases_number = world.numbered("");
      return told(i, "made", event::Made{ask, made ? Answer{} : there});
    });
  }
  void carry_out_one(std::size_t i, action::Fail& fail) {
    actors_[i].history += "answer " + std::string(name(fail.code)) + '.';
  }
  void carry_out_one(std::size_t i, action::Grant&) { hold(i); }
  void carry_out_one(std::size_t i, action::GrantAll&) { hold(i); }
  void hold(std::size_t i) {
    actors_[i].history += "answer.";
    actors_[i].holds = true;
    for (const Actor& one : actors_) {
      if (one.holds && one.permits.has_value() != actors_[i].permits.has_value()) {
        violation_ = "both kinds hold";
      }
    }
  }

  // What one of them asks for.

  void carry_out_one(std::size_t i, action::Create& create) {
    ask(i, "create", true, [i, create](World& world, Tree& tree) {
      tree.entries.push_back(world.numbered(create.prefix));
      return told(i, "created", event::Created{create.ask, {}, tree.entries.back(), 1});
    });
  }
  /// The line in front is taken for short: whoever takes permits is first.
  void carry_out_one(std::size_t i, action::Queue& queue) {
    ask(i, "queue", true, [i, missing = queue.missing](World&, Tree& tree) {
      if (!tree.has_locks && missing == queue::Missing::kFail) {
        return told(i, "no queue", event::OutOfLine{Code::kNoNode});
      }
      tree.has_locks = true;
      return told(i, "first", event::First{});
    });
  }
  void carry_out_one(std::size_t i, action::CreateAll& create) {
    ask(i, "take", true, [i, create](World& world, Tree& tree) {
      event::AllCreated created{.ask = create.ask, .answer = {}, .names = {}, .czxid = 1};
      if (!tree.has_leases) {
        created.answer = {Answer::Kind::kNo, Code::kNoNode};
        return told(i, "not taken", created);
      }
      tree.leases.push_back(world.numbered(create.prefix));
      created.names = {tree.leases.back()};
      return told(i, "taken", created);
    });
  }
  void carry_out_one(std::size_t i, action::ReadSize& read) {
    ask(i, "size", false, [i, ask = read.ask](World& world, Tree& tree) {
      const int children =
          world.mutant_ == Mutant::kPermitsAreBlind ? 2 : static_cast<int>(tree.children().size());
      return told(i, "size " + std::to_string(children),
                  event::SizeRead{ask, {}, tree.size, children});
    });
  }
  void carry_out_one(std::size_t i, action::StoreSize& store) {
    ask(i, "store", true, [i, store](World&, Tree& tree) {
      const Answer late{Answer::Kind::kNo, Code::kBadVersion};
      const bool stored = tree.size.empty();
      if (stored) tree.size = std::to_string(store.size);
      return told(i, stored ? "stored" : "not stored",
                  event::SizeStored{store.ask, stored ? Answer{} : late});
    });
  }
  void carry_out_one(std::size_t i, action::ListPath& list) {
    ask(i, "look", false, [i, ask = list.ask](World&, Tree& tree) {
      return told(i, "looked " + joined(tree.children()),
                  event::PathListed{ask, {}, tree.children(), tree.elders()});
    });
  }

  /// Withdrawals come too late here, and nobody waits, so nobody watches.
  template <class Other>
  void carry_out_one(std::size_t, Other&) {}

  Mutant mutant_;
  std::vector<Actor> actors_;
  std::vector<Tree> log_ = std::vector<Tree>(1);
  std::string violation_;
};

TEST(KindsExploration, AQueueAndPermitsAtOnePathNeverBothHold) {
  expect_all_is_well(World(1, 1, Mutant::kNone));
}

TEST(KindsExploration, TwoOfAQueueAndPermitsAtOnePathNeverBothHold) {
  expect_all_is_well(World(2, 1, Mutant::kNone));
}

TEST(KindsExplorationFinds, AQueueThatDoesNotSeeTheLeases) {
  expect_found(World(1, 1, Mutant::kQueueIsBlind), "both kinds hold");
}

TEST(KindsExplorationFinds, PermitsThatDoNotCountTheChildrenOfTheirPath) {
  expect_found(World(1, 1, Mutant::kPermitsAreBlind), "both kinds hold");
}

}  // namespace
}  // namespace latchkey::walk::kinds
