#include "scenario/permits_world.hpp"

#include <algorithm>
#include <utility>

#include "scenario/mini_tree.hpp"

namespace latchkey::mini::semaphore {

namespace action = queue::action;
namespace event = queue::event;
using queue::Answer;
using Kind = Request::Kind;

namespace {

constexpr Answer kUncertain{Answer::Kind::kAmbiguous, Code::kConnectionLoss};

std::size_t taken(const State& state, int claim) {
  int last = -1;
  for (const Lease& lease : state.leases) {
    if (lease.claim == claim) last = std::max(last, lease.number);
  }
  return static_cast<std::size_t>(
      std::count_if(state.leases.begin(), state.leases.end(),
                    [&](const Lease& lease) { return lease.number <= last; }));
}

int owned(const State& state, int claim) {
  return static_cast<int>(std::count_if(state.leases.begin(), state.leases.end(),
                                        [&](const Lease& lease) { return lease.claim == claim; }));
}

}  // namespace

/// Does what one machine asks for.
class Carrier {
 public:
  Carrier(World& world, int claim) : world_(world), claim_(claim) {}

  void operator()(const action::Queue&) { send({.kind = Kind::kQueue}); }
  void operator()(const action::Unqueue&) { send({.kind = Kind::kUnqueue}); }
  void operator()(const action::CreateAll& create) {
    send({.kind = Kind::kCreate, .ask = create.ask, .name = create.prefix});
  }
  void operator()(const action::List& list) { send({.kind = Kind::kList, .ask = list.ask}); }
  void operator()(const action::ListAndWatch& list) {
    self().last_list_watch = list.ask;
    send({.kind = Kind::kList, .ask = list.ask, .watch = true});
  }
  void operator()(const action::ReadSize& read) {
    if (read.watch) self().last_size_watch = read.ask;
    send({.kind = Kind::kSize, .ask = read.ask, .watch = read.watch});
  }
  void operator()(const action::Sync& sync) { send({.kind = Kind::kSync, .ask = sync.ask}); }
  void operator()(const action::Look& look) {
    send({.kind = Kind::kLook, .ask = look.ask, .name = look.name});
  }
  void operator()(const action::Prove& prove) { send({.kind = Kind::kProve, .ask = prove.ask}); }
  void operator()(const action::Pause& pause) { self().paused = pause.ask; }
  void operator()(const action::Owe& owe) {
    if (world_.mutant_ == Mutant::kCancelOwesNothing && self().failed) return;
    send({.kind = Kind::kDelete, .name = owe.name});
  }
  void operator()(const action::UnwatchDirectory&) {
    self().unwanted.insert(self().last_list_watch);
    self().watches_leases = self().server_watches_leases = false;
  }
  void operator()(const action::StoreSize&) {}  // There is one from the beginning.
  void operator()(const action::UnwatchSize&) {
    self().unwanted.insert(self().last_size_watch);
    self().watches_size = self().server_watches_size = false;
  }
  void operator()(const action::Withdraw& withdraw) {
    if (self().paused == withdraw.ask) self().paused.reset();
  }
  void operator()(const action::GrantAll& grant) { world_.granted(claim_, grant); }
  void operator()(const action::Fail& fail) {
    if (self().granted || self().failed) world_.violate("answered twice");
    self().failed = true;
    self().code = fail.code;
  }
  void operator()(const action::Lose&) {
    if (!self().holding) world_.violate("lost what was not held");
    self().holding = false;
  }
  void operator()(const action::Done&) {
    if (self().watches_leases || self().watches_size) world_.violate("a watch is left");
    self().done = true;
  }
  void operator()(const action::Warn&) {}
  // Not in this world: the directory is there and stays, and holders hear of no deletion.
  void operator()(const action::ListPath&) { world_.violate("looked at the path"); }
  void operator()(const action::MakeDirectory&) { world_.violate("made the directory"); }
  void operator()(const action::RemoveDirectory&) { world_.violate("removed the directory"); }
  void operator()(const action::Watch&) {}
  void operator()(const action::Unwatch&) {}

 private:
  Claimant& self() { return world_.at(claim_); }
  void send(Request request) { world_.send(claim_, std::move(request)); }

  World& world_;
  int claim_;
};

int World::add(int count, std::optional<int> size, bool lags, queue::Wait wait) {
  const int claim = static_cast<int>(claims_.size());
  const auto guid = queue::format_guid(7, static_cast<std::uint64_t>(claim));
  claims_.emplace_back(count,
                       queue::Permits({.path = "/s", .count = count, .size = size, .wait = wait},
                                      [guid] { return guid; }));
  claims_.back().lags = lags;
  return claim;
}

void World::tell(int claim, const queue::PermitEvent& event) {
  for (const queue::PermitAction& action : at(claim).machine.step(event)) {
    std::visit(Carrier(*this, claim), action);
  }
}

// What callers and other hands do.

void World::start(int claim) {
  at(claim).started = true;
  tell(claim, event::Start{});
}

void World::cancel(int claim) {
  at(claim).cancelled = true;
  tell(claim, event::Cancel{Code::kTimedOut});
}

void World::release(int claim) {
  at(claim).holding = false;
  tell(claim, event::Release{});
}

void World::lease_over(int claim) { tell(claim, event::LeaseOver{}); }

void World::crash(int claim) {
  Claimant& self = at(claim);
  self.crashed = true;
  self.holding = false;
  self.sent.clear();
  self.inbox.clear();
  self.ghosts.clear();
  self.server_watches_leases = self.server_watches_size = false;
  std::erase(line_, claim);
  State next = leader();
  std::erase_if(next.leases, [&](const Lease& lease) { return lease.claim == claim; });
  commit(std::move(next));
}

void World::resize(int size) {
  State next = leader();
  next.size = size;
  commit(std::move(next));
}

void World::rob(std::size_t lease) {
  State next = leader();
  at(next.leases[lease].claim).robbed = true;
  next.leases.erase(next.leases.begin() + static_cast<std::ptrdiff_t>(lease));
  commit(std::move(next));
}

// The servers.

void World::commit(State state) {
  history_.push_back(std::move(state));
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    Claimant& self = claims_[i];
    const int claim = static_cast<int>(i);
    if (owned(leader(), claim) == self.count &&
        taken(leader(), claim) <= static_cast<std::size_t>(leader().size)) {
      self.was_admitted = true;
    }
    if (!self.lags && self.connected && !self.crashed) {
      while (self.position < newest()) apply_next(self);
    }
  }
}

void World::apply_next(Claimant& self) {
  const State& before = history_[self.position];
  const State& after = history_[++self.position];
  if (before.leases != after.leases && std::exchange(self.server_watches_leases, false)) {
    self.inbox.push_back({.kind = Message::Kind::kLeasesChanged});
  }
  if (before.size != after.size && std::exchange(self.server_watches_size, false)) {
    self.inbox.push_back({.kind = Message::Kind::kSizeChanged});
  }
}

void World::send(int claim, Request request) {
  Claimant& self = at(claim);
  const bool swap = mutant_ == Mutant::kSizeBeforeList && request.kind == Kind::kSize &&
                    !self.sent.empty() && self.sent.back().kind == Kind::kList;
  self.sent.push_back(std::move(request));
  if (swap) std::swap(self.sent[self.sent.size() - 1], self.sent[self.sent.size() - 2]);
}

void World::serve(int claim) {
  Claimant& self = at(claim);
  const Request request = std::move(self.sent.front());
  self.sent.pop_front();
  Message reply = carry_out(claim, request);
  reply.request = request;
  reply.position = self.position;
  const bool answered = request.kind != Kind::kQueue && request.kind != Kind::kUnqueue &&
                        request.kind != Kind::kDelete;
  if (answered) self.inbox.push_back(std::move(reply));
}

Message World::carry_out(int claim, const Request& request) {
  Claimant& self = at(claim);
  const auto catch_up = [&] {
    while (self.position < newest()) apply_next(self);
  };
  Message reply;
  switch (request.kind) {
    case Kind::kQueue: line_.push_back(claim); break;
    case Kind::kUnqueue: std::erase(line_, claim); break;
    case Kind::kCreate: {
      State next = leader();
      const auto czxid = static_cast<std::int64_t>(history_.size());
      for (int i = 0; i < self.count; ++i) {
        next.leases.push_back({sequential_name(request.name, counter_), counter_, claim, czxid});
        ++counter_;
        reply.names.push_back(next.leases.back().name);
      }
      reply.czxid = czxid;
      commit(std::move(next));
      catch_up();
      break;
    }
    case Kind::kDelete: {
      State next = leader();
      std::erase_if(next.leases, [&](const Lease& lease) { return lease.name == request.name; });
      if (next.leases != leader().leases) commit(std::move(next));
      catch_up();
      break;
    }
    case Kind::kSync:
    case Kind::kProve:
      if (mutant_ != Mutant::kSearchWithoutSync) catch_up();
      break;
    case Kind::kList:
      for (const Lease& lease : history_[self.position].leases) reply.names.push_back(lease.name);
      if (request.watch && mutant_ != Mutant::kDeafToLeases) self.server_watches_leases = true;
      break;
    case Kind::kSize:
      reply.data = std::to_string(history_[self.position].size);
      if (request.watch && mutant_ != Mutant::kDeafToSize) self.server_watches_size = true;
      break;
    case Kind::kLook: {
      reply.answer = {Answer::Kind::kNo, Code::kNoNode};
      for (const Lease& lease : history_[self.position].leases) {
        if (lease.name != request.name) continue;
        reply.answer = {};
        reply.owned = lease.claim == claim;
        reply.czxid = lease.czxid;
      }
      break;
    }
  }
  return reply;
}

void World::catch_up(int claim) { apply_next(at(claim)); }

void World::promote(int claim) {
  at(claim).told_first = true;
  tell(claim, event::First{});
}

// The network.

void World::cut(int claim) {
  Claimant& self = at(claim);
  self.connected = false;
  self.server_watches_leases = self.server_watches_size = false;
  std::deque<Message> told;
  for (const Message& lost : std::exchange(self.inbox, {})) {
    if (lost.kind != Message::Kind::kReply) continue;
    told.push_back({.request = lost.request, .answer = kUncertain, .names = {}, .data = {}});
    told.back().position = self.last_seen;
  }
  std::deque<Request> kept;
  for (const Request& request : std::exchange(self.sent, {})) {
    // The queue in front and what is owed are others' business: they get there in the end.
    const bool lasts = request.kind == Kind::kQueue || request.kind == Kind::kUnqueue ||
                       request.kind == Kind::kDelete;
    if (lasts) {
      kept.push_back(request);
      continue;
    }
    if (request.kind == Kind::kCreate) self.ghosts.push_back(request);
    told.push_back({.request = request, .answer = kUncertain, .names = {}, .data = {}});
    told.back().position = self.last_seen;
  }
  self.sent = std::move(kept);
  self.inbox = std::move(told);
}

void World::land(int claim) {
  Claimant& self = at(claim);
  const Request request = std::move(self.ghosts.front());
  self.ghosts.pop_front();
  State next = leader();
  const auto czxid = static_cast<std::int64_t>(history_.size());
  for (int i = 0; i < self.count; ++i, ++counter_) {
    next.leases.push_back({sequential_name(request.name, counter_), counter_, claim, czxid});
  }
  commit(std::move(next));
}

void World::attach(int claim, Attach to) {
  Claimant& self = at(claim);
  self.connected = true;
  self.ghosts.clear();  // The session has moved.
  self.position = to == Attach::kNewest ? newest() : self.last_seen;
  // What changed since the newest state the client has seen is told now.
  bool leases = false;
  bool size = false;
  for (std::size_t i = self.last_seen; i < self.position; ++i) {
    leases = leases || history_[i].leases != history_[i + 1].leases;
    size = size || history_[i].size != history_[i + 1].size;
  }
  if (self.watches_leases) {
    if (leases) self.inbox.push_back({.kind = Message::Kind::kLeasesChanged});
    self.server_watches_leases = !leases;
  }
  if (self.watches_size) {
    if (size) self.inbox.push_back({.kind = Message::Kind::kSizeChanged});
    self.server_watches_size = !size;
  }
}

void World::resume(int claim) {
  const queue::Ask ask = *std::exchange(at(claim).paused, std::nullopt);
  tell(claim, event::Resumed{ask});
}

// The clients.

void World::receive(int claim) {
  Claimant& self = at(claim);
  const Message message = std::move(self.inbox.front());
  self.inbox.pop_front();
  deliver(claim, message);
}

void World::deliver(int claim, const Message& message) {
  Claimant& self = at(claim);
  switch (message.kind) {
    case Message::Kind::kReply: return deliver_reply(claim, message);
    case Message::Kind::kLeasesChanged:
      self.woken = true;
      if (std::exchange(self.watches_leases, false)) tell(claim, event::DirectoryChanged{});
      return;
    case Message::Kind::kSizeChanged:
      if (std::exchange(self.watches_size, false)) tell(claim, event::SizeChanged{});
      return;
  }
}

void World::deliver_reply(int claim, const Message& message) {
  Claimant& self = at(claim);
  const Request& request = message.request;
  self.last_seen = std::max(self.last_seen, message.position);
  const bool ok = message.answer.kind == Answer::Kind::kOk;
  const bool unwanted = self.unwanted.erase(request.ask) > 0;
  switch (request.kind) {
    case Kind::kCreate:
      return tell(claim,
                  event::AllCreated{request.ask, message.answer, message.names, message.czxid});
    case Kind::kList: {
      if (request.watch && ok) {
        self.watches_leases = !unwanted;
        if (unwanted) self.server_watches_leases = false;
      }
      std::vector<std::string> names = message.names;
      if (mutant_ == Mutant::kWakeIsGrant && self.woken) {
        std::erase_if(names, [&](const auto& name) { return !self.machine.is_own(name); });
      }
      return tell(claim, event::Listed{request.ask, message.answer, std::move(names)});
    }
    case Kind::kSize:
      if (request.watch && ok) {
        self.watches_size = !unwanted;
        if (unwanted) self.server_watches_size = false;
      }
      return tell(claim, event::SizeRead{request.ask, message.answer, message.data});
    case Kind::kSync: return tell(claim, event::Synced{request.ask, message.answer});
    case Kind::kProve: return tell(claim, event::Proved{request.ask, message.answer});
    case Kind::kLook:
      return tell(claim, event::Looked{request.ask, message.answer, message.owned, message.czxid});
    case Kind::kQueue:
    case Kind::kUnqueue:
    case Kind::kDelete: return;
  }
}

void World::granted(int claim, const action::GrantAll& grant) {
  Claimant& self = at(claim);
  if (self.granted || self.failed) violate("answered twice");
  self.granted = self.holding = true;
  if (grant.names.size() != static_cast<std::size_t>(self.count)) violate("too few nodes");
  // The semaphore's promise by server order (H46, H48).
  if (!self.was_admitted) violate("holds what it never had a right to");
  if (line_.empty() || line_.front() != claim) violate("overtook somebody");
  for (const std::string& name : grant.names) {
    const bool there = std::any_of(leader().leases.begin(), leader().leases.end(),
                                   [&](const Lease& lease) { return lease.name == name; });
    if (!there && !self.robbed) violate("holds without a node");
  }
}

void World::check_at_rest() {
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    const Claimant& self = claims_[i];
    const int claim = static_cast<int>(i);
    const bool in_line = std::find(line_.begin(), line_.end(), claim) != line_.end();
    if (!self.started) continue;
    if (self.crashed || self.done || self.holding) {
      if (in_line) violate("orphan in the queue");
      if (self.holding) continue;
      if (owned(leader(), claim) > 0) violate("orphan among the leases");
      continue;
    }
    // It waits, so it is in line, and if it is the head then for a reason.
    if (!in_line) violate("sleeps outside the queue");
    if (self.granted || self.failed) violate("has its answer and goes on");
    if (line_.front() != claim) continue;
    if (owned(leader(), claim) != self.count) violate("waits without its nodes");
    if (taken(leader(), claim) <= static_cast<std::size_t>(leader().size)) {
      violate("sleeps while permits are free");
    }
    if (self.count > leader().size) violate("waits for more than there is");
  }
}

}  // namespace latchkey::mini::semaphore
