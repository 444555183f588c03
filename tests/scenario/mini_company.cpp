// Slots of one client as companions.
#include <algorithm>
#include <utility>

#include "queue/node_name.hpp"
#include "scenario/mini_world.hpp"

namespace latchkey::mini {

namespace event = queue::event;
using Id = queue::Company::Id;

bool World::waits_to_be_due(int slot, const queue::action::List& list) {
  Slot& self = slot_at(slot);
  if (!self.in_company || !list.may_wait) return false;
  if (!self.entry.empty()) self.entry.clear();
  const bool waits = at(self.client).company.enters(static_cast<Id>(slot));
  if (waits) {
    self.estate.reset();
    self.waiting_list = list.ask;
    say(self.name + " waits to be due");
  }
  tell_due(self.client);
  if (!self.estate) return waits;
  self.waiting_list = list.ask;
  say(self.name + " is an heir");
  if (!self.estate->behind.empty()) tell(slot, event::Foreseen{self.estate->behind.back()});
  return true;
}

void World::take_place(int slot, const Message& created) {
  Slot& self = slot_at(slot);
  if (!self.in_company || self.done) return;
  if (!created.name.empty() && own_node(slot) == created.name) {
    self.entry = created.name;
    at(self.client)
        .company.is_at(static_cast<Id>(slot), *queue::parse_place(created.name),
                       created.request.to);
    tell_due(self.client, slot);
    return inherit(slot, !created.request.to.empty());
  }
  self.estate.reset();
  at(self.client).company.goes_alone(static_cast<Id>(slot));
  if (const queue::Ask ask = std::exchange(self.waiting_list, 0)) {
    send(self.client, {Request::Kind::kList, slot, ask, {}});
  }
}

void World::inherit(int slot, bool in_place) {
  Slot& self = slot_at(slot);
  std::optional<queue::Estate> estate = std::exchange(self.estate, std::nullopt);
  if (!estate) return;
  const queue::Ask ask = std::exchange(self.waiting_list, 0);
  if (ask == 0) return;
  if (!in_place) return send(self.client, {Request::Kind::kList, slot, ask, {}});
  queue::Inherited known = queue::inherit(*std::move(estate), *queue::parse_place(self.entry));
  if (options_.mutant == Mutant::kGapIgnored) known.whole = true;
  std::erase_if(known.children, [&](const std::string& child) {
    const auto& debts = at(self.client).debts;
    return std::find(debts.begin(), debts.end(), child) != debts.end();
  });
  tell(slot, event::Listed{ask, {}, std::move(known.children), true, known.whole});
}

bool World::watches_companion(int slot, const queue::action::Watch& watch) {
  Slot& self = slot_at(slot);
  if (!self.in_company || watch.name == own_node(slot)) return false;
  const auto owner = at(self.client).company.owner_of(watch.name);
  if (!owner) return false;
  self.companion = watch.name;
  say(self.name + " watches its companion " + watch.name);
  tell(slot, event::Watched{watch.ask, {}});
  tell(static_cast<int>(*owner), event::Heartbeat{});
  return true;
}

void World::leave_company(int slot) {
  Slot& self = slot_at(slot);
  if (!std::exchange(self.in_company, false)) return;
  at(self.client).company.leaves(static_cast<Id>(slot));
  for (std::size_t other = 0; other < slots_.size(); ++other) {
    if (slots_[other].client != self.client || slots_[other].companion != self.entry) continue;
    if (self.entry.empty() || options_.mutant == Mutant::kLeavesUntold) continue;
    slots_[other].companion.clear();
    tell(static_cast<int>(other), event::Gone{self.entry});
  }
  tell_due(self.client);
}

void World::tell_due(int client, int just_come) {
  if (at(client).session_known_over) return;
  for (const Id near : at(client).company.take_near()) {
    tell(static_cast<int>(near), event::Heartbeat{});
  }
  for (const Id due : at(client).company.take_due()) {
    const int slot = static_cast<int>(due);
    const queue::Ask ask = std::exchange(slot_at(slot).waiting_list, 0);
    if (ask == 0) continue;
    auto known = at(client).company.known_to(due);
    if (!known && options_.mutant == Mutant::kListWithoutUs) known = {own_node(slot)};
    if (!known) {
      send(client, {Request::Kind::kList, slot, ask, {}});
      continue;
    }
    std::erase_if(*known, [&](const std::string& child) {
      const auto& debts = at(client).debts;
      return std::find(debts.begin(), debts.end(), child) != debts.end();
    });
    tell(slot, event::Listed{ask, {}, std::move(*known), slot == just_come});
  }
}

/// Its list waits, and nobody will make it due.
bool World::is_stranded(const Slot& slot) const {
  if (slot.waiting_list == 0) return false;
  const auto id = static_cast<Id>(&slot - slots_.data());
  return !clients_[static_cast<std::size_t>(slot.client)].company.ahead_of(id);
}

}  // namespace latchkey::mini
