// What has to hold in the little world, and how two of its states are told apart.
#include <algorithm>
#include <utility>

#include "queue/admission.hpp"
#include "scenario/mini_probe.hpp"
#include "scenario/mini_world.hpp"

namespace latchkey::queue {

int ContenderProbe::role(const Contender& self, Ask ask) {
  const Contender::Asks& asks = self.asks_;
  int role = 1;
  for (const Ask slot :
       {asks.create, asks.list, asks.sync, asks.make, asks.remove, asks.watch, asks.own_watch,
        asks.prove, asks.pause, asks.exchange, asks.look, asks.farewell}) {
    if (slot != 0 && slot == ask) return role;
    ++role;
  }
  for (const Traces::Trace& trace : self.traces_.all()) {
    if (trace.ask != 0 && trace.ask == ask) return role;
    ++role;
  }
  return 0;  // An answer that will be dropped.
}

void ContenderProbe::fold(const Contender& self, mini::Fold& fold) {
  const auto answer = [&](const std::optional<Answer>& one) {
    fold.number(one ? static_cast<std::uint64_t>(one->kind) * 1000 +
                          static_cast<std::uint64_t>(one->code) + 1
                    : 0);
  };
  fold.kind(self.phase_);
  if (self.phase_ == Contender::Phase::kPausing) fold.kind(self.after_pause_);
  fold.kind(self.outcome_);
  fold.kind(self.round_);
  const Contender::Asks& asks = self.asks_;
  fold.flags({self.leaving_,
              self.downgrading_,
              asks.create != 0,
              asks.list != 0,
              asks.sync != 0,
              asks.make != 0,
              asks.remove != 0,
              asks.watch != 0,
              asks.own_watch != 0,
              asks.prove != 0,
              asks.pause != 0,
              asks.exchange != 0,
              asks.look != 0,
              asks.farewell != 0,
              self.may_downgrade_,
              self.directory_watched_,
              static_cast<bool>(self.parents_),
              self.own_.has_value(),
              self.given_up_.has_value(),
              self.fresh_,
              self.whole_});
  fold.number(static_cast<std::uint64_t>(self.given_up_.value_or(0)));
  fold.number(static_cast<std::uint64_t>(self.later_one_.value_or(0)));
  fold.kind(self.later_ones_seen_);
  fold.text(self.guid_);
  fold.text(own(self));
  fold.kind(self.tag_);
  fold.number(static_cast<std::uint64_t>(self.czxid_));
  fold.texts(self.owed_);
  fold.texts(self.traces_.strangers());
  fold.number(self.traces_.all().size());
  for (const Traces::Trace& one : self.traces_.all()) {
    fold.text(one.place.name);
    fold.kind(one.is);
    fold.number(static_cast<std::uint64_t>(one.czxid));
    fold.flags({one.ask != 0});
  }
  answer(self.create_answer_);
  answer(self.list_answer_);
  answer(self.sync_answer_);
  fold.texts(self.children_);
  fold.texts(self.ahead_);
  fold.text(self.watched_);
  fold.number(static_cast<std::uint64_t>(self.watched_czxid_));
  fold.number(self.phase_ == Contender::Phase::kReading ? static_cast<std::uint64_t>(self.left_)
                                                        : 0);
  fold.kind(self.version_.value_or(-1));
  fold.kind(self.watched_arm_);
  fold.kind(self.own_arm_);
  if (self.parents_) fold.text(self.parents_->path());
}

void ContenderProbe::fold_estate(const Contender& self, mini::Fold& fold) {
  fold.flags({self.was_first_, self.too_many_behind_});
  fold.kind(self.last_);
  fold.texts(self.after_);
}

}  // namespace latchkey::queue

namespace latchkey::mini {

using queue::ContenderProbe;

namespace {

void fold_data(const Data& data, Fold& fold) {
  fold.text(data.text);
  fold.kind(data.version);
  fold.number(static_cast<std::uint64_t>(data.mzxid));
}

void fold_tree(const Tree& tree, Fold& fold) {
  fold.texts(tree.levels);
  fold_data(tree.data, fold);
  fold.number(tree.entries.size());
  for (const auto& [name, entry] : tree.entries) {
    fold.text(name);
    fold.kind(entry.session);
    fold.number(static_cast<std::uint64_t>(entry.czxid));
  }
}

void fold_estate(const std::optional<queue::Estate>& estate, Fold& fold) {
  fold.flags({estate.has_value()});
  if (!estate) return;
  fold.text(estate->entry);
  fold.kind(estate->last);
  fold.texts(estate->behind);
}

void fold_message(const Message& message, Fold& fold) {
  fold.kind(message.kind);
  fold.kind(message.answer.kind);
  fold.kind(message.answer.code);
  fold.text(message.name);
  fold.number(static_cast<std::uint64_t>(message.czxid));
  fold.flags({message.owned});
  fold.texts(message.children);
  fold_data(message.data, fold);
  fold.number(message.position);
}

}  // namespace

Waiting waiting_of(const queue::Contender& contender) {
  return {ContenderProbe::waits(contender), ContenderProbe::watched(contender)};
}

void World::say(const std::string& line) {
  if (transcribes_) said_.push_back(line);
}

std::string World::own_node(int slot) const {
  return ContenderProbe::own(slots_[static_cast<std::size_t>(slot)].machine);
}

bool World::is_idle(int client) const {
  const Client& self = clients_[static_cast<std::size_t>(client)];
  if (self.crashed) return !self.session_open;
  if (self.session_known_over) return true;
  return self.connected && self.sent.empty() && self.inbox.empty() && self.unsent.empty() &&
         self.lingering.empty() && self.timers.empty() && self.position == log_.size();
}

/// A grant must be true by the leader's order, not only in the eyes of the one who is told (14.3).
void World::granted(int slot, const queue::action::Grant& grant) {
  Slot& self = slot_at(slot);
  say(self.name + " is granted " + grant.name + ", token " + std::to_string(grant.token));
  const bool second = std::exchange(self.downgrading, false);
  if ((self.granted && !second) || self.failed) violate(self.name + " is answered twice");
  self.granted = true;
  self.holding = true;
  grants_.push_back(slot);
  const queue::Place place = queue::parse_place(grant.name).value_or(queue::Place{});
  self.shares = place.share == queue::Share::kShared;
  if (!self.shares && !self.robbed) {
    std::int64_t& newest = newest_tokens_[place.lock_name];
    if (grant.token <= newest) violate("the token of " + self.name + " does not grow");
    newest = std::max(newest, grant.token);
  }

  const auto own = leader_.entries.find(grant.name);
  if (own == leader_.entries.end()) {
    // Another hand may delete what we stand on; then we may not have seen it yet.
    if (!self.robbed || self.saw_own_missing) violate(self.name + " holds without a node");
    return;
  }
  if (own->second.session != self.client || own->second.czxid != grant.czxid) {
    violate(self.name + " holds with a stranger's node");
  }
  const std::vector<std::string>& debts = at(self.client).debts;
  for (const auto& [name, entry] : leader_.entries) {
    const auto other = queue::parse_place(name);
    if (!other || entry.number >= own->second.number) continue;
    if (other->lock_name != place.lock_name) continue;
    if (self.shares && other->share == queue::Share::kShared) continue;
    if (std::find(debts.begin(), debts.end(), name) != debts.end()) continue;
    violate(self.name + " holds although " + name + " is ahead");
  }
}

void World::check() {
  std::map<std::string, std::pair<int, int>> holders;  // Of each name: writers and readers.
  for (const Slot& slot : slots_) {
    if (!slot.holding || slot.robbed) continue;
    auto& [writers, readers] = holders[ContenderProbe::lock_name(slot.machine)];
    ++(slot.shares ? readers : writers);
  }
  for (const auto& [name, count] : holders) {
    const auto [writers, readers] = count;
    if (writers > 1 || (writers == 1 && readers > 0)) violate("two hold at a time");
  }

  // No sleeping first: whoever waits has something on its way to it, or a watch that will fire.
  for (const Slot& slot : slots_) {
    const Waiting waiting = waiting_of(slot.machine);
    const Client& client = clients_[static_cast<std::size_t>(slot.client)];
    if (client.crashed || client.session_known_over || !is_idle(slot.client)) continue;
    if (is_stranded(slot)) violate(slot.name + " waits for nobody of its company");
    if (!slot.companion.empty() && !client.company.owner_of(slot.companion)) {
      violate(slot.name + " waits for a companion that has left");
    }
    if (!waiting.waits || !slot.companion.empty()) continue;
    const bool herd = ContenderProbe::watches_directory(slot.machine);
    if ((!herd && !leader_.entries.contains(waiting.watched)) ||
        !client.server_watches.contains(waiting.watched)) {
      violate(slot.name + " waits for " + waiting.watched + ", which will not wake it");
    }
  }
}

void World::check_at_rest() {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    const Client& client = clients_[i];
    if (!client.crashed && !client.debts.empty()) violate("a debt is never paid");
    for (const std::string& watch : client.server_watches) {
      if (!anyone_wants(static_cast<int>(i), watch)) violate("a watch is left on " + watch);
    }
  }
  for (const auto& [name, entry] : leader_.entries) {
    if (entry.slot < 0) continue;
    const Slot& slot = slot_at(entry.slot);
    const bool is_over = slot.done && slot.withheld.empty();
    if (is_over || at(slot.client).crashed) violate(name + " is an orphan");
  }
  std::vector<queue::Place> places;
  for (const auto& [name, entry] : leader_.entries) {
    if (auto place = queue::parse_place(name)) places.push_back(std::move(*place));
  }
  for (const Slot& slot : slots_) {
    if (slot.done || !slot.started || at(slot.client).crashed || slot.holding) continue;
    if (slot.robbed) {
      // Who waits to be due finds out then, and who does not watch itself yet with a heartbeat.
      const bool will_know =
          slot.waiting_list != 0 || ContenderProbe::learns_by_heartbeat(slot.machine);
      if (!will_know) violate(slot.name + " sleeps without a node");
    } else {
      const auto own = queue::parse_place(own_node(static_cast<int>(&slot - slots_.data())));
      if (own ? queue::admit(places, *own).holds() : places.empty()) {
        violate(slot.name + " sleeps although it is its turn");
      }
    }
  }
}

std::size_t World::key() const {
  Fold fold;
  const auto requests = [&](const auto& all, auto request_of) {
    fold.number(all.size());
    for (const auto& item : all) {
      const Request& one = request_of(item);
      fold.kind(one.kind);
      fold.kind(one.slot);
      if (one.slot >= 0) {
        const auto& machine = slots_[static_cast<std::size_t>(one.slot)].machine;
        fold.kind(ContenderProbe::role(machine, one.ask));
      }
      fold.text(one.name);
      fold.text(one.to);
      fold.kind(one.farewell ? one.farewell->version : -1);
    }
  };
  const auto itself = [](const Request& one) -> const Request& { return one; };
  fold_tree(leader_, fold);
  fold.number(static_cast<std::uint64_t>(leader_.counter));
  fold.number(log_.size());
  for (const auto& [name, token] : newest_tokens_) fold.number(static_cast<std::uint64_t>(token));
  for (const Client& client : clients_) {
    fold.flags({client.crashed, client.session_open, client.session_known_over, client.connected,
                client.lease_fresh});
    fold_tree(client.view, fold);
    fold.number(client.position);
    fold.number(client.last_seen);
    fold.texts(client.server_watches);
    fold.texts(client.watches);
    fold.texts(client.debts);
    requests(client.unsent, itself);
    requests(client.sent, itself);
    requests(client.ghosts, itself);
    requests(client.inbox, [](const Message& one) -> const Request& { return one.request; });
    for (const Message& message : client.inbox) fold_message(message, fold);
    fold.text(client.company.describe());
    fold.number(client.timers.size());
    for (const auto& [slot, ask] : client.timers) fold.kind(slot);
    fold.texts(client.lingering);
    fold_estate(client.estate, fold);
  }
  for (const Slot& slot : slots_) {
    ContenderProbe::fold(slot.machine, fold);
    fold.texts(slot.wanted_watches);
    fold.texts(slot.withheld);
    fold.flags({slot.started, slot.cancelled, slot.granted, slot.failed, slot.holding, slot.done,
                slot.saw_own_missing, slot.robbed, slot.shares, slot.downgrading,
                slot.waiting_list != 0});
    fold.text(slot.entry);
    fold.text(slot.companion);
    fold_estate(slot.estate, fold);
    if (options_.estates) ContenderProbe::fold_estate(slot.machine, fold);
  }
  return fold.sum();
}

}  // namespace latchkey::mini
