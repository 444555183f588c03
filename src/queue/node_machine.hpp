#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "queue/messages.hpp"

namespace latchkey::queue {

/// Hands an event to `on`, by its kind. Whatever was asked, and however long ago: an answer that
/// says that the session is over is handed on as just that.
template <class Event, class On>
void hand_to(const On& on, Event& event) {
  std::visit(
      [&on](auto& what) {
        if constexpr (requires { what.answer; }) {
          if (what.answer.kind != Answer::Kind::kOk && is_session_over(what.answer.code)) {
            return on(event::SessionOver{what.answer.code});
          }
        }
        on(what);
      },
      event);
}

/// What the machines have in common that keep nodes for a caller: numbered requests, back-offs, and
/// one answer to the caller. `Action` is what the machine asks for.
///
/// Thread safety: one thread at a time.
template <class Action>
class NodeMachine {
 protected:
  /// What the caller was told last.
  enum class Outcome { kOpen, kGranted, kEnded };
  /// Is a node watched?
  enum class Arm : std::uint8_t { kNo, kAsked, kArmed, kRefused };

  void want(Action action) {
    if (out_.capacity() == 0) out_.reserve(kUsual);
    out_.push_back(std::move(action));
  }
  /// Asks for What{number, rest...}; its answer is awaited in `slot`.
  template <class What, class... Rest>
  void ask(Ask& slot, Rest... rest) {
    slot = ++last_ask_;
    want(What{slot, std::move(rest)...});
  }
  /// Is this the answer that was awaited in `slot`? Then none is any more.
  [[nodiscard]] static bool take(Ask& slot, Ask ask) {
    if (slot == 0 || slot != ask) return false;
    slot = 0;
    return true;
  }
  void withdraw(Ask& slot) {
    if (slot != 0) want(action::Withdraw{slot});
    slot = 0;
  }

  /// The first of grant, failure and loss wins (H50): whoever has an answer does not fail.
  void fail(Code code, std::string why = {}) {
    if (outcome_ != Outcome::kOpen) return;
    outcome_ = Outcome::kEnded;
    want(action::Fail{code, std::move(why)});
  }
  void fail(Refusal refusal) { fail(refusal.code, std::move(refusal.why)); }
  void lose(Code code) {
    outcome_ = Outcome::kEnded;
    want(action::Lose{code});
  }
  /// A hold is lost, an attempt fails.
  void lose_or_fail(Code code, std::string why = {}) {
    outcome_ == Outcome::kGranted ? lose(code) : fail(code, std::move(why));
  }

  std::vector<Action> out_;  ///< What the step under way has asked for.
  Outcome outcome_ = Outcome::kOpen;
  bool leaving_ = false;  ///< The caller has its answer; only traces are left to remove.
  int round_ = 0;         ///< Back-offs in a row.

 private:
  /// What one step asks for, hardly ever more.
  static constexpr std::size_t kUsual = 4;

  Ask last_ask_ = 0;
};

}  // namespace latchkey::queue
