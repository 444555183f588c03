#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "scenario/explorer.hpp"
#include "scenario/mini_probe.hpp"
#include "scenario/settled.hpp"

namespace latchkey::mini {

/// A World for walk::Settled.
class SettledLine {
 public:
  explicit SettledLine(World world) : world_(std::move(world)) {}

  [[nodiscard]] int count() const { return static_cast<int>(world_.slots().size()); }
  [[nodiscard]] walk::Stands stands(int who) const {
    const Slot& slot = world_.slots()[static_cast<std::size_t>(who)];
    const bool crashed = world_.clients()[static_cast<std::size_t>(slot.client)].crashed;
    if (crashed || slot.done) return walk::Stands::kGone;
    if (!slot.started) return walk::Stands::kAbsent;
    return slot.holding ? walk::Stands::kHolds : walk::Stands::kWaits;
  }
  void start(int who) { world_.start(who); }
  void release(int who) { world_.release(who); }
  void cancel(int who) { world_.cancel(who, Code::kTimedOut); }
  /// The process ends, and after a while its session.
  void crash(int who) {
    const int client = world_.slots()[static_cast<std::size_t>(who)].client;
    world_.crash(client);
    world_.expire(client);
  }
  void settle() {
    mini::settle(world_);
    for (const auto& [name, entry] : world_.leader().entries) whose_[name] = entry.slot;
  }

  [[nodiscard]] std::size_t key() const {
    Fold fold;
    const auto whose = [this](const std::string& name) {
      const auto found = whose_.find(name);
      return found == whose_.end() ? -1 : found->second;
    };
    for (int who = 0; who < count(); ++who) {
      fold.kind(stands(who));
      if (stands(who) == walk::Stands::kGone) continue;
      const queue::Contender& machine = world_.slots()[static_cast<std::size_t>(who)].machine;
      queue::ContenderProbe::fold_settled(machine, whose, fold);
      fold.flags({queue::ContenderProbe::may_write(machine, world_.leader().data.version)});
    }
    std::map<std::int32_t, int> line;
    for (const auto& [name, entry] : world_.leader().entries) line[entry.number] = entry.slot;
    for (const auto& [number, slot] : line) fold.kind(slot);
    fold.flags({world_.leader().data.text.empty()});
    return fold.sum();
  }
  [[nodiscard]] std::string violation() {
    world_.check();
    world_.check_at_rest();
    return world_.violations().empty() ? std::string() : world_.violations().front();
  }

 protected:
  World& world() { return world_; }
  [[nodiscard]] const Slot& slot(int who) const {
    return world_.slots()[static_cast<std::size_t>(who)];
  }

 private:
  World world_;
  std::map<std::string, int> whose_;  ///< Every entry there has ever been.
};

}  // namespace latchkey::mini
