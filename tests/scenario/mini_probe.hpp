#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "queue/contender.hpp"

/// How two states of a little world are told apart.

namespace latchkey::mini {

/// Folds values into one number. Lists are folded with their length, so that "a, bc" is not "ab,
/// c".
class Fold {
 public:
  void number(std::uint64_t value) {
    value ^= value >> 31;
    value *= 0x7fb5d329728ea185ULL;
    value ^= value >> 27;
    sum_ = (sum_ ^ value) * 0x9e3779b97f4a7c15ULL;
    sum_ ^= sum_ >> 29;
  }
  void text(std::string_view text) { number(std::hash<std::string_view>{}(text)); }
  template <class Names>
  void texts(const Names& names) {
    number(names.size());
    for (const std::string& name : names) text(name);
  }
  template <class Enum>
  void kind(Enum value) {
    number(static_cast<std::uint64_t>(static_cast<int>(value)));
  }
  void flags(std::initializer_list<bool> flags) {
    std::uint64_t bits = 1;
    for (const bool flag : flags) bits = bits * 2 + (flag ? 1 : 0);
    number(bits);
  }
  [[nodiscard]] std::size_t sum() const { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

}  // namespace latchkey::mini

namespace latchkey::queue {

/// Looks into a contender.
struct ContenderProbe {
  static void fold(const Contender& self, mini::Fold& fold);
  /// What it would leave to an heir.
  static void fold_estate(const Contender& self, mini::Fold& fold);
  static int role(const Contender& self, Ask ask);

  /// Where nothing is on its way: what it knows, its neighbours by who they are and not by name, so
  /// that the same situation reached on another road is the same.
  template <class Whose>
  static void fold_settled(const Contender& self, const Whose& whose, mini::Fold& fold) {
    fold.kind(self.phase_);
    fold.kind(self.outcome_);
    fold.kind(self.own_arm_);
    fold.kind(self.watched_arm_);
    fold.flags({self.leaving_, self.may_downgrade_, self.directory_watched_,
                self.watched_czxid_ != 0, self.whole_});
    fold.number(self.ahead_.size());
    for (const std::string& name : self.ahead_) fold.kind(whose(name));
    fold.kind(self.watched_.empty() ? -1 : whose(self.watched_));
  }

  /// Would its next heartbeat watch its own node, and so show that it is gone?
  static bool learns_by_heartbeat(Contender copy) {
    for (const Action& action : copy.step(event::Heartbeat{})) {
      const auto* const watch = std::get_if<action::Watch>(&action);
      if (watch != nullptr && copy.is_own(watch->name)) return true;
    }
    return false;
  }
  static const std::string& lock_name(const Contender& self) { return self.options_->lock_name; }
  /// Whose farewell it looks for.
  static std::int64_t left(const Contender& self) { return self.left_; }
  /// Would its farewell be taken?
  static bool may_write(const Contender& self, std::int32_t version) {
    return self.version_ == version;
  }
  static bool waits(const Contender& self) { return self.phase_ == Contender::Phase::kWaiting; }
  static std::string own(const Contender& self) { return self.own_ ? self.own_->name : ""; }
  static const std::string& watched(const Contender& self) { return self.watched_; }
  static bool watches_directory(const Contender& self) {
    return self.options_->watching == Watching::kDirectory;
  }
};

}  // namespace latchkey::queue
