// The clients' half of the little world: carries out what contenders ask for.
#include <algorithm>

#include "queue/node_name.hpp"
#include "scenario/mini_probe.hpp"
#include "scenario/mini_world.hpp"

namespace latchkey::mini {
namespace {

using queue::Answer;
namespace action = queue::action;
namespace event = queue::event;
using Kind = Request::Kind;

constexpr Answer kOk{};
constexpr Answer kMaybe{Answer::Kind::kAmbiguous, Code::kConnectionLoss};

/// A lie that some mutants need: everything that stands before `own` in the queue.
std::vector<std::string> names_ahead(const Tree& tree, const Entry& own) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : tree.entries) {
    if (entry.number < own.number) names.push_back(name);
  }
  return names;
}

}  // namespace

int World::add_client(bool lags) {
  Client client;
  client.lags = lags;
  client.view = leader_;
  clients_.push_back(std::move(client));
  return static_cast<int>(clients_.size()) - 1;
}

int World::add_slot(const std::string& name, int client, queue::Contender::Options options) {
  const int slot = static_cast<int>(slots_.size());
  options.directory = kDirectory;
  if (options.relist == queue::Relist::kWhenNeeded) options.relist = options_.relist;
  options.farewell_from = std::min(options.farewell_from, options_.farewell_from);
  const std::uint64_t who = options_.repeat_guids ? 0 : static_cast<std::uint64_t>(slot) + 1;
  // A repeated guid repeats once: the second draw of each attempt differs.
  auto guids = [who, slot, count = std::uint64_t{0}]() mutable {
    const std::uint64_t low = count++;
    return queue::format_guid(low == 0 ? who : static_cast<std::uint64_t>(slot) + 1, low);
  };
  const bool in_company = options_.company && options.tag == queue::Tag::kLock &&
                          options.watching == queue::Watching::kNearest &&
                          options.wait == queue::Wait::kYes;
  slots_.emplace_back(name, client, queue::Contender(std::move(options), guids));
  slots_.back().in_company = in_company;
  return slot;
}

// ---- Callers ------------------------------------------------------------------------------------

void World::start(int slot) {
  slot_at(slot).started = true;
  tell(slot, event::Start{});
}

void World::cancel(int slot, Code code) {
  slot_at(slot).cancelled = true;
  tell(slot, event::Cancel{code});
}

void World::release(int slot) {
  slot_at(slot).holding = false;
  slot_at(slot).released = true;
  tell(slot, event::Release{});
}

/// From here on the caller does no more than read.
void World::downgrade(int slot) {
  slot_at(slot).downgrading = true;
  slot_at(slot).shares = true;
  tell(slot, event::Downgrade{});
}

void World::loss_is_told(int slot) {
  if (at(slot_at(slot).client).session_known_over) return;
  for (const std::string& name : std::exchange(slot_at(slot).withheld, {})) owe(slot, name);
}

void World::tell(int slot, const queue::Event& event) {
  local_.emplace_back(slot, event);
  if (telling_) return;
  telling_ = true;
  while (!local_.empty()) {
    const auto [who, what] = std::move(local_.front());
    local_.pop_front();
    if (slot_at(who).done || at(slot_at(who).client).crashed) continue;
    for (const queue::Action& wish : slot_at(who).machine.step(what)) carry_out(who, wish);
  }
  telling_ = false;
}

// ---- Wishes -------------------------------------------------------------------------------------

/// One wish at a time.
class Carrier {
 public:
  Carrier(World& world, int slot) : world_(world), slot_(slot), self_(world.slot_at(slot)) {}

  void operator()(const action::Create& one) { world_.create(slot_, one); }
  void operator()(const action::List& one) {
    if (!world_.waits_to_be_due(slot_, one)) ask(Kind::kList, one.ask);
  }
  void operator()(const action::Sync& one) { ask(Kind::kSync, one.ask); }
  void operator()(const action::MakeDirectory& one) { ask(Kind::kMake, one.ask, one.path); }
  void operator()(const action::RemoveDirectory& one) { ask(Kind::kRemove, one.ask); }
  void operator()(const action::Look& one) { ask(Kind::kLook, one.ask, one.name); }
  void operator()(const action::Prove& one) { ask(Kind::kProve, one.ask); }
  void operator()(const action::ListAndWatch& one) {
    self_.wanted_watches.insert("");
    ask(Kind::kListAndWatch, one.ask);
  }
  void operator()(const action::Watch& one) {
    if (world_.watches_companion(slot_, one)) return;
    self_.wanted_watches.insert(one.name);
    ask(Kind::kWatch, one.ask, one.name);
  }
  void operator()(const action::ReadFarewell& one) { ask(Kind::kRead, one.ask); }
  void operator()(const action::Exchange& one) {
    world_.send(self_.client, {Kind::kExchange, slot_, one.ask, one.from, one.to});
  }
  void operator()(const action::Unwatch& one) { world_.unwatch(slot_, one.name); }
  void operator()(const action::UnwatchDirectory&) { world_.unwatch(slot_, ""); }
  void operator()(const action::Withdraw& one) { world_.withdraw(slot_, one.ask); }
  void operator()(const action::Owe& one) {
    const bool lost = self_.granted && !self_.holding && !self_.released;
    if (world_.options_.tells_losses_first && lost) return self_.withheld.push_back(one.name);
    world_.owe(slot_, one.name, one.farewell);
  }
  void operator()(const action::Bequeath& one) {
    if (world_.options_.estates && self_.in_company) world_.at(self_.client).estate = one.estate;
  }
  void operator()(const action::Grant& one) {
    world_.granted(slot_, one);
    if (!self_.in_company) return;
    world_.at(self_.client).company.holds(static_cast<queue::Company::Id>(slot_));
    world_.tell_due(self_.client);
  }
  void operator()(const action::Pause& one) {
    world_.at(self_.client).timers.emplace_back(slot_, one.ask);
    world_.say(self_.name + " pauses, round " + std::to_string(one.round));
  }
  void operator()(const action::Fail& one) {
    const bool second = std::exchange(self_.downgrading, false);
    if ((self_.granted && !second) || self_.failed) {
      world_.violate(self_.name + " is answered twice");
    }
    self_.failed = true;
    self_.holding = false;
    world_.say(self_.name + " fails: " + std::string(name(one.code)) +
               (one.why.empty() ? "" : " (" + one.why + ")"));
  }
  void operator()(const action::Lose& one) {
    if (!self_.holding) world_.violate(self_.name + " loses what it does not hold");
    self_.holding = false;
    world_.say(self_.name + " loses: " + std::string(name(one.code)));
  }
  void operator()(const action::Done&) {
    world_.leave_company(slot_);
    if (!self_.granted && !self_.failed) world_.violate(self_.name + " ends without an answer");
    if (self_.holding) world_.violate(self_.name + " ends while it holds");
    self_.done = true;
    world_.say(self_.name + " is done");
    // Whatever it watched has to be given back, or gone (H29).
    for (const std::string& watch : std::exchange(self_.wanted_watches, {})) {
      const Client& client = world_.at(self_.client);
      if (client.server_watches.contains(watch) && !world_.anyone_wants(self_.client, watch)) {
        world_.violate(self_.name + " leaves a watch on " + watch);
      }
    }
  }

 private:
  void ask(Kind kind, queue::Ask number, const std::string& what = {}) {
    world_.send(self_.client, {kind, slot_, number, what});
  }

  World& world_;
  int slot_;
  Slot& self_;
};

void World::carry_out(int slot, const queue::Action& wish) {
  std::visit(Carrier(*this, slot), wish);
}

namespace {

bool is_write(Kind kind) {
  return kind == Kind::kCreate || kind == Kind::kDelete || kind == Kind::kMake ||
         kind == Kind::kRemove || kind == Kind::kExchange;
}

}  // namespace

void World::send(int client, Request request) {
  static constexpr const char* kNames[] = {"create", "list",   "list+watch", "sync",
                                           "make",   "remove", "look",       "watch",
                                           "prove",  "delete", "exchange",   "read"};
  if (request.slot >= 0) {
    say(slot_at(request.slot).name + " -> " + kNames[static_cast<std::size_t>(request.kind)] +
        (request.name.empty() ? "" : " " + request.name) +
        (request.to.empty() ? "" : " for " + request.to));
  } else {
    say("client " + std::to_string(client) + " -> delete " + request.name +
        (request.farewell ? ", " + request.farewell->data : ""));
  }
  const bool skip_sync =
      options_.mutant == Mutant::kSearchWithoutSync && request.kind == Kind::kSync;
  const bool skip_proof =
      options_.mutant == Mutant::kGrantWithoutProof && request.kind == Kind::kProve;
  if (skip_sync) return tell(request.slot, event::Synced{request.ask, kOk});
  if (skip_proof) return tell(request.slot, event::Proved{request.ask, kOk});
  // Whatever leaves takes along what waits to leave, but for a create that leaves others theirs,
  // and for looks.
  const bool replaces = request.kind == Kind::kCreate && !request.to.empty();
  if (!replaces && is_write(request.kind)) send_lingering(client);
  Client& self = at(client);
  (self.connected ? self.sent : self.unsent).push_back(std::move(request));
}

void World::send_lingering(int client) {
  for (const std::string& name : std::exchange(at(client).lingering, {})) {
    send(client, {Kind::kDelete, -1, 0, name});
  }
}

/// As Machine::send_joined(): with the delete that it inherits from, or with any.
void World::create(int slot, const queue::action::Create& create) {
  Slot& self = slot_at(slot);
  Client& client = at(self.client);
  self.estate.reset();
  if (self.in_company) self.estate = std::exchange(client.estate, std::nullopt);
  Request request{Kind::kCreate, slot, create.ask, create.prefix};
  const auto lingers = [&](const std::string& name) {
    return std::find(client.lingering.begin(), client.lingering.end(), name) !=
           client.lingering.end();
  };
  if (self.estate && !lingers(self.estate->entry)) self.estate.reset();
  if (!client.lingering.empty()) {
    request.to = self.estate ? self.estate->entry : client.lingering.back();
    std::erase(client.lingering, request.to);
    if (!self.estate) send_lingering(self.client);
  }
  send(self.client, std::move(request));
}

void World::owe(int slot, const std::string& name, std::optional<queue::Farewell> farewell) {
  const int client = slot_at(slot).client;
  say(slot_at(slot).name + " owes " + name);
  if (options_.mutant == Mutant::kCancelOwesNothing && slot_at(slot).failed) return;
  // To others a companion's entry is there until its delete is answered: see Machine::owe_delete.
  if (!at(client).debts.empty() || !at(client).connected) farewell.reset();
  at(client).debts.push_back(name);
  if (options_.estates && at(client).connected) {
    at(client).lingering.push_back(name);
  } else {
    send(client, {Kind::kDelete, -1, 0, name, {}, std::move(farewell)});
  }
  for (std::size_t other = 0; other < slots_.size(); ++other) {
    const bool hears = !options_.company || slots_[other].wanted_watches.contains(name);
    if (slots_[other].client == client && static_cast<int>(other) != slot && hears) {
      slots_[other].wanted_watches.erase(name);  // The delete will use the watch up.
      tell(static_cast<int>(other), event::Gone{name});
    }
  }
  if (name == slot_at(slot).entry) leave_company(slot);
}

bool World::anyone_wants(int client, const std::string& watch) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& one) {
    return one.client == client && one.wanted_watches.contains(watch);
  });
}

void World::unwatch(int slot, const std::string& name) {
  if (slot_at(slot).companion == name && !name.empty()) return slot_at(slot).companion.clear();
  slot_at(slot).wanted_watches.erase(name);
  const int client = slot_at(slot).client;
  if (anyone_wants(client, name)) return;
  at(client).watches.erase(name);
  at(client).server_watches.erase(name);
}

void World::withdraw(int slot, queue::Ask ask) {
  Client& client = at(slot_at(slot).client);
  if (slot_at(slot).waiting_list == ask) {
    slot_at(slot).waiting_list = 0;
    return client.company.goes_alone(static_cast<queue::Company::Id>(slot));
  }
  std::erase(client.timers, std::pair{slot, ask});
  const auto found = std::find_if(client.unsent.begin(), client.unsent.end(), [&](const auto& one) {
    return one.slot == slot && one.ask == ask;
  });
  if (found == client.unsent.end()) return;
  const bool create = found->kind == Kind::kCreate;
  client.unsent.erase(found);
  if (!create) return;
  tell(slot, event::Created{ask, {Answer::Kind::kNo, Code::kCancelled}, "", 0});
  take_place(slot, {});
}

// ---- The wire -----------------------------------------------------------------------------------

void World::receive(int client) {
  Message message = std::move(at(client).inbox.front());
  at(client).inbox.pop_front();
  deliver(client, message);
}

void World::deliver(int client, const Message& message) {
  Client& self = at(client);
  if (message.kind == Message::Kind::kReply) return deliver_reply(client, message);

  self.watches.erase(message.name);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const int slot = static_cast<int>(i);
    if (slots_[i].client != client || slots_[i].done) continue;
    if (message.kind == Message::Kind::kGone) {
      self.company.gone(message.name);
      if (options_.company && !slots_[i].wanted_watches.contains(message.name)) continue;
      slots_[i].wanted_watches.erase(message.name);
      // A downgrade deletes it itself.
      if (message.name == own_node(slot) && !slots_[i].downgrading) {
        slots_[i].saw_own_missing = true;
        if (options_.mutant == Mutant::kOwnAbsenceIgnored) continue;
      }
      tell(slot, event::Gone{message.name});
      if (options_.mutant == Mutant::kWakeIsGrant && leader_.entries.contains(own_node(slot))) {
        for (const auto& ahead : names_ahead(leader_, leader_.entries.at(own_node(slot)))) {
          tell(slot, event::Gone{ahead});
        }
      }
    }
    if (message.kind == Message::Kind::kTouched) tell(slot, event::Touched{message.name});
    if (message.kind == Message::Kind::kDirectoryChanged) {
      slots_[i].wanted_watches.erase("");
      tell(slot, event::DirectoryChanged{});
    }
  }
}

void World::deliver_reply(int client, const Message& message) {
  Client& self = at(client);
  self.last_seen = std::max(self.last_seen, message.position);
  const Request& request = message.request;
  const int slot = request.slot;
  switch (request.kind) {
    case Kind::kDelete:
      if (request.farewell && message.answer.kind != Answer::Kind::kOk) {
        return send(client, {Kind::kDelete, -1, 0, request.name});
      }
      std::erase(self.debts, request.name);
      return;
    case Kind::kRead: return deliver_read(message);
    case Kind::kCreate:
      // If the transaction was undone then because there was nothing to delete.
      std::erase(self.debts, request.to);
      tell(slot, event::Created{request.ask, message.answer, message.name, message.czxid});
      return take_place(slot, message);
    case Kind::kList:
    case Kind::kListAndWatch: {
      std::vector<std::string> children = message.children;
      if (slot_at(slot).in_company && message.answer.kind == Answer::Kind::kOk) {
        self.company.listed(children);
      }
      const std::string own = own_node(slot);
      const bool missing = std::find(children.begin(), children.end(), own) == children.end();
      if (!own.empty() && missing) {
        slot_at(slot).saw_own_missing = true;
        if (options_.mutant == Mutant::kOwnAbsenceIgnored) children.push_back(own);
      }
      std::erase_if(children, [&](const std::string& child) {
        return std::find(self.debts.begin(), self.debts.end(), child) != self.debts.end();
      });
      if (options_.mutant == Mutant::kReadersNotCounted && own.find("__WRIT__") != own.npos) {
        std::erase_if(children,
                      [](const auto& child) { return child.find("__READ__") != child.npos; });
      }
      if (request.kind == Kind::kListAndWatch && message.answer.kind == Answer::Kind::kOk) {
        if (anyone_wants(client, "")) {
          self.watches.insert("");
        } else {
          self.server_watches.erase("");
        }
      }
      return tell(slot, event::Listed{request.ask, message.answer, std::move(children)});
    }
    case Kind::kSync: return tell(slot, event::Synced{request.ask, message.answer});
    case Kind::kMake: return tell(slot, event::Made{request.ask, message.answer});
    case Kind::kRemove: return tell(slot, event::Removed{request.ask, message.answer});
    case Kind::kLook: {
      const bool owned = message.owned || options_.mutant == Mutant::kNameIsIdentity;
      return tell(slot, event::Looked{request.ask, message.answer, owned, message.czxid});
    }
    case Kind::kExchange:
      return tell(slot, event::Exchanged{request.ask, message.answer, message.czxid});
    case Kind::kWatch: return deliver_watched(client, message);
    case Kind::kProve:
      self.lease_fresh = true;
      return tell(slot, event::Proved{request.ask, message.answer});
  }
}

void World::deliver_watched(int client, const Message& message) {
  Client& self = at(client);
  const Request& request = message.request;
  Answer answer = message.answer;
  if (answer.kind == Answer::Kind::kOk) {
    // Nobody may want it by now: then it goes as it came (H29).
    if (anyone_wants(client, request.name)) {
      self.watches.insert(request.name);
    } else {
      self.server_watches.erase(request.name);
    }
  } else {
    slot_at(request.slot).wanted_watches.erase(request.name);
    if (answer.code == Code::kNoNode) self.company.gone(request.name);
    if (options_.mutant == Mutant::kDeafToNoNode) answer = kOk;
    if (request.name == own_node(request.slot)) slot_at(request.slot).saw_own_missing = true;
  }
  tell(request.slot, event::Watched{request.ask, answer, message.czxid});
}

void World::deliver_read(const Message& message) {
  const int slot = message.request.slot;
  const auto& [text, version, mzxid] = message.data;
  event::FarewellRead read{message.request.ask, message.answer, text, version, mzxid};
  const bool lies = options_.mutant == Mutant::kAnyFarewell && queue::parse_farewell(text);
  if (lies) read.data = queue::format_farewell(queue::ContenderProbe::left(slot_at(slot).machine));
  if (options_.mutant == Mutant::kDataNotMinded && !queue::makes_room(text)) read.data.clear();
  tell(slot, read);
}

/// A request that a cut left without an answer. Nobody was told anything, so nothing is known.
void World::ambiguous(int client, const Request& request) {
  const queue::Ask ask = request.ask;
  switch (request.kind) {
    case Kind::kCreate:
      if (!request.to.empty()) send(client, {Kind::kDelete, -1, 0, request.to});
      tell(request.slot, event::Created{ask, kMaybe, "", 0});
      return take_place(request.slot, {});
    case Kind::kList:
    case Kind::kListAndWatch: return tell(request.slot, event::Listed{ask, kMaybe, {}});
    case Kind::kSync: return tell(request.slot, event::Synced{ask, kMaybe});
    case Kind::kMake: return tell(request.slot, event::Made{ask, kMaybe});
    case Kind::kRemove: return tell(request.slot, event::Removed{ask, kMaybe});
    case Kind::kLook: return tell(request.slot, event::Looked{ask, kMaybe, false, 0});
    case Kind::kWatch: return tell(request.slot, event::Watched{ask, kMaybe});
    case Kind::kProve: return tell(request.slot, event::Proved{ask, kMaybe});
    case Kind::kExchange: return tell(request.slot, event::Exchanged{ask, kMaybe, 0});
    case Kind::kRead: return tell(request.slot, event::FarewellRead{ask, kMaybe});
    case Kind::kDelete:
      if (options_.mutant == Mutant::kDebtNotRetried) {
        std::erase(at(client).debts, request.name);
      } else {
        send(client, {Kind::kDelete, -1, 0, request.name});  // A farewell is said once.
      }
      return;
  }
}

void World::cut(int client) {
  Client& self = at(client);
  say("client " + std::to_string(client) + " is cut off");
  std::vector<Request> unanswered;
  for (const Message& message : self.inbox) {
    if (message.kind == Message::Kind::kReply) unanswered.push_back(message.request);
  }
  unanswered.insert(unanswered.end(), self.sent.begin(), self.sent.end());
  self.connected = false;
  self.ghosts = std::exchange(self.sent, {});
  // Reads of a connection that is gone bother nobody.
  std::erase_if(self.ghosts, [](const Request& request) {
    return request.kind != Kind::kCreate && request.kind != Kind::kDelete &&
           request.kind != Kind::kMake && request.kind != Kind::kRemove &&
           request.kind != Kind::kExchange;
  });
  self.inbox.clear();
  self.server_watches.clear();
  for (const Request& request : unanswered) ambiguous(client, request);
  send_lingering(client);
}

void World::attach(int client, Attach to) {
  Client& self = at(client);
  self.ghosts.clear();  // From here on the leader refuses what the old connection still carries.
  if (!self.session_open) {
    say("client " + std::to_string(client) + " learns that its session is over");
    self.session_known_over = true;
    self.unsent.clear();
    self.debts.clear();
    self.lingering.clear();
    self.watches.clear();
    self.timers.clear();
    self.company = queue::Company();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].client != client) continue;
      slots_[i].wanted_watches.clear();
      tell(static_cast<int>(i), event::SessionOver{Code::kSessionLost});
    }
    return;
  }
  say("client " + std::to_string(client) + " re-attaches");
  self.connected = true;
  const std::size_t floor = self.last_seen;
  const std::size_t goal = to == Attach::kNewest ? log_.size() : floor;
  self.view = Tree{};
  for (self.position = 0; self.position < goal; ++self.position) {
    self.view.apply(log_[self.position]);
  }
  // setWatches: what has gone since is told now, the rest is watched again.
  for (const std::string& name : self.watches) {
    const bool gone = !name.empty() && !self.view.entries.contains(name);
    if (!gone && !(name.empty() && goal > floor)) {
      self.server_watches.insert(name);
      continue;
    }
    Message message;
    message.kind = gone ? Message::Kind::kGone : Message::Kind::kDirectoryChanged;
    message.name = name;
    self.inbox.push_back(std::move(message));
  }
  while (!self.unsent.empty()) {
    self.sent.push_back(std::move(self.unsent.front()));
    self.unsent.pop_front();
  }
}

void World::resume(int client) {
  const auto [slot, ask] = at(client).timers.front();
  at(client).timers.erase(at(client).timers.begin());
  tell(slot, event::Resumed{ask});
}

void World::heartbeat(int client) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].client == client) tell(static_cast<int>(i), event::Heartbeat{});
  }
}

void World::lease_over(int client) {
  say("lease of client " + std::to_string(client) + " is over");
  at(client).lease_fresh = false;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].client == client) tell(static_cast<int>(i), event::LeaseOver{});
  }
}

void World::crash(int client) {
  say("client " + std::to_string(client) + " crashes");
  Client& self = at(client);
  self.crashed = true;
  self.connected = false;
  self.ghosts = std::exchange(self.sent, {});
  std::erase_if(self.ghosts, [](const Request& request) {
    return request.kind != Kind::kCreate && request.kind != Kind::kDelete &&
           request.kind != Kind::kExchange;
  });
  self.unsent.clear();
  self.inbox.clear();
  self.watches.clear();
  self.server_watches.clear();
  self.timers.clear();
  self.debts.clear();
  self.lingering.clear();
  for (Slot& slot : slots_) {
    if (&at(slot.client) == &self) slot.holding = false;
  }
}

}  // namespace latchkey::mini
