#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "queue/messages.hpp"
#include "scenario/mini_probe.hpp"
#include "scenario/settled.hpp"

/// A second little world, for the locks that are not one queue in one directory: it has several
/// directories, transactions with several creates, and nodes whose names return. Its rules are
/// those of mini_world.hpp: a leader, a server for each client that may lag behind it, every
/// message in the open, nothing happens by itself, a value through and through.
namespace latchkey::pond {

using queue::Answer;
using queue::Ask;

struct Node {
  int session = -1;
  int actor = -1;
  std::int64_t czxid = 0;
  std::int32_t number = 0;
};

struct Change {
  enum class Kind { kCreate, kDelete, kMake, kClose };
  Kind kind = Kind::kDelete;
  std::string path;
  Node node;
};
using Transaction = std::vector<Change>;

/// Directories and the nodes in them.
struct Tree {
  std::set<std::string> directories;
  std::map<std::string, Node> nodes;
  std::map<std::string, std::int32_t> counters;

  /// Returns what it has deleted.
  std::vector<std::string> apply(const Transaction& transaction);
  [[nodiscard]] std::vector<std::string> children(const std::string& directory) const;
};

[[nodiscard]] std::string parent_of(const std::string& path);
[[nodiscard]] std::string last_part(const std::string& path);

struct Request {
  enum class Kind { kCreate, kCreateSequential, kList, kSync, kMake, kRead, kDelete, kProve };
  Kind kind = Kind::kSync;
  int actor = -1;  ///< -1: a debt of the session.
  std::size_t member = 0;
  Ask ask = 0;
  std::vector<std::string> paths;  ///< Several for creates, which are one transaction.
  bool watch = false;
};

/// What travels from a server to a client.
struct Message {
  enum class Kind { kReply, kGone, kTouched };
  Kind kind = Kind::kReply;
  Request request;
  Answer answer;
  std::size_t culprit = 0;         ///< Which path of a failed create.
  std::vector<std::string> paths;  ///< What was created, or listed; of an event its node.
  Node node;                       ///< Of a create the last one, of a read the one read.
  std::size_t position = 0;        ///< How many transactions the server had applied.
};

struct Client {
  bool crashed = false;
  bool session_open = true;  ///< As the leader knows it.
  bool session_known_over = false;
  bool connected = true;
  bool lags = false;
  bool lease_fresh = true;  ///< By its own clock.
  Tree view;
  std::size_t position = 0;
  std::size_t last_seen = 0;
  std::set<std::string> server_watches;
  std::set<std::string> watches;  ///< On the client's side.
  std::deque<Request> unsent;
  std::deque<Request> sent;
  std::deque<Request> ghosts;  ///< Of a cut connection: still on their way to the leader.
  std::deque<Message> inbox;
  std::vector<std::string> debts;
  std::vector<std::pair<int, std::pair<std::size_t, Ask>>> pauses;
};

/// What every actor shows of itself.
struct Standing {
  int client = 0;
  bool started = false;
  bool cancelled = false;
  bool answered = false;
  bool holding = false;
  bool telling = false;  ///< It has lost, and its holder is not told yet.
  bool done = false;
  std::vector<std::string> locks;  ///< What it holds when it holds.

  /// The watches it wants: by path and by the request that sets it. True once it is in place.
  std::map<std::pair<std::string, Ask>, bool> watches;

  [[nodiscard]] bool wants(const std::string& path) const {
    const auto first = watches.lower_bound({path, 0});
    return first != watches.end() && first->first.first == path;
  }
  void unwant(const std::string& path) {
    std::erase_if(watches, [&](const auto& one) { return one.first.first == path; });
  }
};

/// Everything but the actors.
class Pond {
 public:
  int add_client(bool lags = false);
  void make(const std::string& directory) { leader_.directories.insert(directory); }

  [[nodiscard]] const std::vector<Client>& clients() const { return clients_; }
  [[nodiscard]] const Tree& leader() const { return leader_; }
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] std::size_t log_size() const { return log_.size(); }
  Client& at(int client) { return clients_[static_cast<std::size_t>(client)]; }

  void serve(int client);
  void catch_up(int client);
  void land(int client);
  void expire(int client);
  [[nodiscard]] bool can_expire(int client) const;
  [[nodiscard]] bool is_idle(int client) const;

  // For actors.
  void send(int client, Request request);
  /// Takes it out if it has not left yet.
  bool take_back(int client, int actor, std::size_t member, Ask ask);
  void pause(int client, int actor, std::size_t member, Ask ask) {
    at(client).pauses.push_back({actor, {member, ask}});
  }
  void owe(int client, const std::string& path);
  [[nodiscard]] bool is_owed(int client, const std::string& path);
  void violate(const std::string& what) { violations_.push_back(what); }
  /// A hold begins: is its token newer than all before it?
  void check_grant(const Standing& self, int actor, std::int64_t token);
  /// Has another hand deleted a node of that actor? Then it may believe what is not so for a while.
  [[nodiscard]] bool is_robbed(int actor) const { return robbed_.contains(actor); }

 protected:
  void commit(Transaction transaction);
  void apply_next(Client& client);
  void restore(Client& client, std::size_t goal);
  std::vector<Request> cut_off(int client);
  Message carry_out_at_leader(int client, const Request& request);
  Message create_at_leader(int client, const Request& request);
  void fold(mini::Fold& fold) const;

  Tree leader_;
  std::vector<Transaction> log_;
  std::vector<Client> clients_;
  std::set<int> robbed_;
  std::map<std::string, std::int64_t> tokens_;  ///< The newest of each lock.
  std::vector<std::string> violations_;
};

/// How often each kind of trouble may strike along one path.
struct Troubles {
  int cuts = 0;
  int cancels = 0;
  int lease_ends = 0;
  int crashes = 0;
  int deletions = 0;
  int heartbeats = 0;
};

/// A pond with actors. An Actor is a value that has a Standing `self` and
///   start(Pond&, int id), cancel, release, told, heartbeat, lease_over, session_over, resume,
///   reply, ambiguous, watch_fired, gone_here: what has happened to it;
///   fold(), role(): how two of its states are told apart.
template <class Actor>
class World : public Pond {
 public:
  int add(Actor actor) {
    actors_.push_back(std::move(actor));
    return static_cast<int>(actors_.size()) - 1;
  }
  [[nodiscard]] const std::vector<Actor>& actors() const { return actors_; }
  Actor& actor(int id) { return actors_[static_cast<std::size_t>(id)]; }

  void start(int id) {
    actor(id).self.started = true;
    settle(id, &Actor::start);
  }
  void cancel(int id) {
    actor(id).self.cancelled = true;
    settle(id, &Actor::cancel);
  }
  void release(int id) {
    actor(id).self.holding = false;
    settle(id, &Actor::release);
  }
  void told(int id) {
    actor(id).self.telling = false;
    settle(id, &Actor::told);
  }

  void receive(int client) {
    const Message message = std::move(at(client).inbox.front());
    at(client).inbox.pop_front();
    if (message.kind != Message::Kind::kReply) return fire(client, message);
    at(client).last_seen = std::max(at(client).last_seen, message.position);
    const Request& request = message.request;
    if (request.kind == Request::Kind::kProve) at(client).lease_fresh = true;
    if (request.actor < 0) {
      std::erase(at(client).debts, request.paths.front());
      return;
    }
    if (request.watch) settle_watch(client, message);
    actor(request.actor).reply(*this, request.actor, message);
    tell_debts();
  }

  void cut(int client) {
    for (const Request& request : cut_off(client)) {
      if (request.actor < 0) {
        send(client, request);
      } else {
        actor(request.actor).self.watches.erase({request.paths.front(), request.ask});
        actor(request.actor).ambiguous(*this, request.actor, request);
      }
    }
    tell_debts();
  }

  void attach(int client, bool newest) {
    Client& self = at(client);
    self.ghosts.clear();  // From here on the leader refuses what the old connection still carries.
    if (!self.session_open) {
      self.session_known_over = true;
      self.unsent.clear();
      self.debts.clear();
      self.watches.clear();
      self.pauses.clear();
      for_each_of(client, [&](Actor& one, int id) {
        one.self.watches.clear();
        one.session_over(*this, id);
      });
      return;
    }
    self.connected = true;
    restore(self, newest ? log_.size() : self.last_seen);
  }

  void resume(int client) {
    const auto [id, what] = at(client).pauses.front();
    at(client).pauses.erase(at(client).pauses.begin());
    actor(id).resume(*this, id, what.first, what.second);
    tell_debts();
  }
  void heartbeat(int client) {
    for_each_of(client, [&](Actor& one, int id) { one.heartbeat(*this, id); });
  }
  void lease_over(int client) {
    at(client).lease_fresh = false;
    for_each_of(client, [&](Actor& one, int id) { one.lease_over(*this, id); });
    tell_debts();
  }
  void expire_now(int client) {
    if (at(client).connected) cut(client);
    expire(client);
  }
  void crash(int client) {
    static_cast<void>(cut_off(client));
    Client& self = at(client);
    self.crashed = true;
    self.unsent.clear();
    self.watches.clear();
    self.pauses.clear();
    self.debts.clear();
    for_each_of(client, [](Actor& one, int) { one.self.holding = one.self.telling = false; });
  }
  void delete_node(const std::string& path) {
    robbed_.insert(leader_.nodes.at(path).actor);
    commit({{Change::Kind::kDelete, path, {}}});
  }

  /// For actors: the watch is not wanted any more, and goes with the last who wanted it.
  void unwatch(int id, const std::string& path, bool on_server = true) {
    actor(id).self.unwant(path);
    const int client = actor(id).self.client;
    if (anyone_wants(client, path)) return;
    at(client).watches.erase(path);
    if (on_server) at(client).server_watches.erase(path);
  }

  void check() {
    std::map<std::string, int> holders;
    for (std::size_t i = 0; i < actors_.size(); ++i) {
      if (!actors_[i].self.holding || is_robbed(static_cast<int>(i))) continue;
      for (const std::string& lock : actors_[i].self.locks) {
        if (++holders[lock] > 1) violate("two hold " + lock);
      }
    }
  }

  void check_at_rest() {
    bool anyone_holds = false;
    for (const Actor& one : actors_) anyone_holds = anyone_holds || one.self.holding;
    for (std::size_t i = 0; i < actors_.size(); ++i) {
      const Standing& self = actors_[i].self;
      if (!self.started || self.done || at(self.client).crashed || self.holding) continue;
      if (!anyone_holds) violate("actor " + std::to_string(i) + " sleeps though nobody holds");
      if (self.answered) violate("actor " + std::to_string(i) + " never ends");
    }
    for (const auto& [path, node] : leader_.nodes) {
      if (node.actor < 0) continue;
      const Standing& self = actor(node.actor).self;
      if (self.done || at(self.client).crashed) violate(path + " is an orphan");
    }
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      for (const std::string& watch : clients_[i].server_watches) {
        if (!anyone_wants(static_cast<int>(i), watch)) violate("a watch is left on " + watch);
      }
    }
  }

  [[nodiscard]] std::size_t key() const {
    mini::Fold fold;
    Pond::fold(fold);
    const auto requests = [&](const auto& all, auto request_of) {
      for (const auto& item : all) {
        const Request& one = request_of(item);
        fold.kind(one.kind);
        fold.kind(one.actor);
        fold.number(one.member);
        fold.texts(one.paths);
        if (one.actor >= 0) fold.kind(role_of(one.actor, one.member, one.ask));
      }
    };
    const auto itself = [](const Request& one) -> const Request& { return one; };
    for (const Client& client : clients_) {
      requests(client.unsent, itself);
      requests(client.sent, itself);
      requests(client.ghosts, itself);
      requests(client.inbox, [](const Message& one) -> const Request& { return one.request; });
      for (const auto& [id, what] : client.pauses) {
        fold.kind(id);
        fold.kind(role_of(id, what.first, what.second));
      }
    }
    for (const Actor& one : actors_) {
      const Standing& self = one.self;
      fold.flags(
          {self.started, self.cancelled, self.answered, self.holding, self.telling, self.done});
      for (const auto& [watch, armed] : self.watches) {
        fold.text(watch.first);
        fold.flags({armed});
      }
      one.fold(fold);
    }
    return fold.sum();
  }

 private:
  [[nodiscard]] int role_of(int id, std::size_t member, Ask ask) const {
    return actors_[static_cast<std::size_t>(id)].role(member, ask);
  }
  [[nodiscard]] bool anyone_wants(int client, const std::string& path) const {
    return std::any_of(actors_.begin(), actors_.end(), [&](const Actor& one) {
      return one.self.client == client && one.self.wants(path);
    });
  }
  /// Nobody may want it by the time it is in place: then it goes as it came (H29).
  void settle_watch(int client, const Message& message) {
    const std::string& path = message.request.paths.front();
    auto& watches = actor(message.request.actor).self.watches;
    const auto wanted = watches.find({path, message.request.ask});
    const bool set = message.answer.kind == Answer::Kind::kOk;
    if (wanted != watches.end() && set) wanted->second = true;
    if (wanted != watches.end() && !set) watches.erase(wanted);
    if (!set) return;
    if (anyone_wants(client, path)) {
      at(client).watches.insert(path);
    } else {
      at(client).server_watches.erase(path);
    }
  }
  template <class Act>
  void for_each_of(int client, Act act) {
    for (std::size_t i = 0; i < actors_.size(); ++i) {
      if (actors_[i].self.client == client) act(actors_[i], static_cast<int>(i));
    }
  }
  void settle(int id, void (Actor::*what)(World&, int)) {
    (actor(id).*what)(*this, id);
    tell_debts();
  }
  void fire(int client, const Message& message) {
    const std::string& path = message.paths.front();
    at(client).watches.erase(path);
    for_each_of(client, [&](Actor& one, int id) {
      const auto fired = std::erase_if(one.self.watches, [&](const auto& watch) {
        return watch.first.first == path && watch.second;
      });
      if (fired == 0) return;
      one.watch_fired(*this, id, path, message.kind == Message::Kind::kGone);
    });
    tell_debts();
  }
  /// A node that a session owes counts as gone for all its contenders.
  void tell_debts() {
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      // Whoever hears of one may owe another.
      for (std::size_t debt = 0; debt < clients_[i].debts.size(); ++debt) {
        const std::string path = clients_[i].debts[debt];
        for_each_of(static_cast<int>(i),
                    [&](Actor& one, int id) { one.gone_here(*this, id, path); });
      }
    }
  }

  std::vector<Actor> actors_;
};

/// A World for walk::Settled.
template <class Actor>
class SettledPond {
 public:
  explicit SettledPond(World<Actor> world) : world_(std::move(world)) {}

  [[nodiscard]] int count() const { return static_cast<int>(world_.actors().size()); }
  [[nodiscard]] walk::Stands stands(int who) const {
    const Standing& self = standing(who);
    const bool crashed = world_.clients()[static_cast<std::size_t>(self.client)].crashed;
    if (crashed || self.done) return walk::Stands::kGone;
    if (!self.started) return walk::Stands::kAbsent;
    return self.holding ? walk::Stands::kHolds : walk::Stands::kWaits;
  }
  void start(int who) { world_.start(who); }
  void release(int who) { world_.release(who); }
  void cancel(int who) { world_.cancel(who); }
  /// The process ends, and after a while its session.
  void crash(int who) {
    world_.crash(standing(who).client);
    world_.expire(standing(who).client);
  }
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int client = 0; client < static_cast<int>(world_.clients().size()); ++client) {
        moved = moved || !world_.at(client).sent.empty() || !world_.at(client).inbox.empty();
        if (!world_.at(client).sent.empty()) world_.serve(client);
        if (!world_.at(client).inbox.empty()) world_.receive(client);
      }
    }
    for (const auto& [path, node] : world_.leader().nodes) whose_[path] = node.actor;
  }

  [[nodiscard]] std::size_t key() const {
    mini::Fold fold;
    const auto whose = [this](const std::string& path) {
      const auto found = whose_.find(path);
      return found == whose_.end() ? -1 : found->second;
    };
    for (int who = 0; who < count(); ++who) {
      fold.kind(stands(who));
      if (stands(who) == walk::Stands::kGone) continue;
      world_.actors()[static_cast<std::size_t>(who)].fold_settled(whose, fold);
    }
    std::map<std::pair<std::string, std::int32_t>, int> lines;
    for (const auto& [path, node] : world_.leader().nodes) {
      lines[{parent_of(path), node.number}] = node.actor;
    }
    for (const auto& [place, actor] : lines) {
      fold.text(place.first);
      fold.kind(actor);
    }
    return fold.sum();
  }
  [[nodiscard]] std::string violation() {
    world_.check();
    world_.check_at_rest();
    return world_.violations().empty() ? std::string() : world_.violations().front();
  }

 private:
  [[nodiscard]] const Standing& standing(int who) const {
    return world_.actors()[static_cast<std::size_t>(who)].self;
  }

  World<Actor> world_;
  std::map<std::string, int> whose_;  ///< Every node there has ever been, by path.
};

/// Goes through every order in which the messages, callers and troubles of a world can happen, each
/// state once, as explorer.hpp does.
template <class Actor>
class Explorer {
 public:
  using W = World<Actor>;

  Explorer(const W& world, Troubles troubles) : world_(world), troubles_(troubles) {}

  void run(std::size_t most_states = 2'000'000) {
    std::unordered_set<std::size_t> seen;
    std::vector<Frame> road;
    enter(road, seen, world_, troubles_, "begin");
    while (!road.empty() && failure_.empty() && seen.size() < most_states) {
      Frame& frame = road.back();
      if (frame.next == frame.steps.size()) {
        road.pop_back();
        continue;
      }
      const Step step = frame.steps[frame.next++];
      Troubles left = frame.left;
      if (step.price) --(left.*step.price);
      W world = frame.next == frame.steps.size() ? std::move(frame.world) : frame.world;
      step.happen(world, step.who);
      enter(road, seen, std::move(world), left, step.name + (" " + std::to_string(step.who)));
    }
    complete_ = road.empty();
    states_ = seen.size();
  }

  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] std::size_t states() const { return states_; }
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  struct Step {
    const char* name;
    int who;
    void (*happen)(W& world, int who);
    int Troubles::*price = nullptr;
    bool by_itself = false;
  };
  struct Frame {
    W world;
    Troubles left;
    std::vector<Step> steps;
    std::size_t next;
    std::string came_by;
  };

  void enter(std::vector<Frame>& road, std::unordered_set<std::size_t>& seen, W world,
             const Troubles& left, std::string came_by) {
    world.check();
    std::size_t budget = 0;
    for (const int count : {left.cuts, left.cancels, left.lease_ends, left.crashes, left.deletions,
                            left.heartbeats}) {
      budget = budget * 8 + static_cast<std::size_t>(count);
    }
    const std::size_t mark = world.key() ^ (budget * 0x9e3779b97f4a7c15ULL);
    if (world.violations().empty() && !seen.insert(mark).second) return;
    std::vector<Step> steps = steps_of(world, left);
    const bool at_rest =
        std::none_of(steps.begin(), steps.end(), [](const Step& step) { return step.by_itself; });
    if (at_rest) world.check_at_rest();
    road.push_back({std::move(world), left, std::move(steps), 0, std::move(came_by)});
    if (road.back().world.violations().empty()) return;
    for (const Frame& frame : road) failure_ += frame.came_by + "\n";
    for (const std::string& what : road.back().world.violations()) failure_ += "=> " + what + "\n";
  }

  static std::vector<Step> steps_of(const W& world, const Troubles& left) {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < world.clients().size(); ++i) {
      if (is_predictable(world, static_cast<int>(i), left)) {
        return {
            {"receive", static_cast<int>(i), [](W& w, int who) { w.receive(who); }, nullptr, true}};
      }
    }
    for (std::size_t i = 0; i < world.clients().size(); ++i) {
      add_client_steps(world, static_cast<int>(i), steps);
    }
    for (std::size_t i = 0; i < world.actors().size(); ++i) {
      add_actor_steps(world, static_cast<int>(i), steps);
    }
    for (std::size_t i = 0; i < world.leader().nodes.size(); ++i) {
      steps.push_back({"operator deletes node", static_cast<int>(i),
                       [](W& w, int which) {
                         w.delete_node(std::next(w.leader().nodes.begin(), which)->first);
                       },
                       &Troubles::deletions});
    }
    std::erase_if(steps, [&](const Step& step) { return step.price && left.*step.price == 0; });
    return steps;
  }

  /// As in explorer.cpp: what such a client receives commutes with everything else.
  static bool is_predictable(const W& world, int id, const Troubles& left) {
    const Client& client = world.clients()[static_cast<std::size_t>(id)];
    if (client.inbox.empty() || client.crashed || !client.lease_fresh) return false;
    if (left.cuts + left.cancels + left.lease_ends + left.crashes + left.heartbeats > 0) {
      return false;
    }
    return std::all_of(world.actors().begin(), world.actors().end(), [&](const Actor& one) {
      return one.self.client != id || (one.self.started && !one.self.holding && !one.self.telling);
    });
  }

  static void add_client_steps(const W& world, int id, std::vector<Step>& steps) {
    const Client& client = world.clients()[static_cast<std::size_t>(id)];
    const auto natural = [&](const char* name, auto happen) {
      steps.push_back({name, id, happen, nullptr, true});
    };
    if (client.crashed) {
      if (!client.ghosts.empty() && client.session_open) {
        natural("land", [](W& w, int who) { w.land(who); });
      }
      if (world.can_expire(id)) natural("expire", [](W& w, int who) { w.expire(who); });
      return;
    }
    if (client.session_known_over) return;
    if (!client.inbox.empty()) natural("receive", [](W& w, int who) { w.receive(who); });
    if (!client.pauses.empty()) natural("resume", [](W& w, int who) { w.resume(who); });
    if (client.connected) {
      if (!client.sent.empty()) natural("serve", [](W& w, int who) { w.serve(who); });
      if (client.position < world.log_size()) {
        natural("catch up", [](W& w, int who) { w.catch_up(who); });
      }
      steps.push_back({"cut", id, [](W& w, int who) { w.cut(who); }, &Troubles::cuts});
    } else {
      if (!client.ghosts.empty()) natural("land", [](W& w, int who) { w.land(who); });
      natural("attach", [](W& w, int who) { w.attach(who, true); });
      if (client.lags && client.session_open && client.last_seen < world.log_size()) {
        natural("attach to a laggard", [](W& w, int who) { w.attach(who, false); });
      }
    }
    if (client.lease_fresh) {
      steps.push_back(
          {"lease over", id, [](W& w, int who) { w.lease_over(who); }, &Troubles::lease_ends});
    }
    if (world.can_expire(id)) {
      steps.push_back({"expire", id, [](W& w, int who) { w.expire_now(who); }});
    }
    steps.push_back({"crash", id, [](W& w, int who) { w.crash(who); }, &Troubles::crashes});
  }

  static void add_actor_steps(const W& world, int id, std::vector<Step>& steps) {
    const Standing& self = world.actors()[static_cast<std::size_t>(id)].self;
    const Client& client = world.clients()[static_cast<std::size_t>(self.client)];
    if (client.crashed) return;
    if (self.telling) {
      steps.push_back({"tell", id, [](W& w, int who) { w.told(who); }, nullptr, true});
    }
    if (self.done) return;
    if (!self.started) {
      if (client.session_known_over) return;
      steps.push_back({"start", id, [](W& w, int who) { w.start(who); }, nullptr, true});
      return;
    }
    if (self.holding) {
      steps.push_back({"release", id, [](W& w, int who) { w.release(who); }});
      steps.push_back({"heartbeat", self.client, [](W& w, int who) { w.heartbeat(who); },
                       &Troubles::heartbeats});
    }
    if (!self.cancelled) {
      steps.push_back({"cancel", id, [](W& w, int who) { w.cancel(who); }, &Troubles::cancels});
    }
  }

  const W& world_;
  Troubles troubles_;
  std::string failure_;
  std::size_t states_ = 0;
  bool complete_ = false;
};

}  // namespace latchkey::pond
