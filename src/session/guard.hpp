#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "latchkey/session.hpp"

namespace latchkey::session {

/// Runs user code. What it throws is logged and told, see SessionOptions::on_exception; it never
/// reaches the thread that happens to run it. Shared by tasks that may outlive their session.
/// Thread safety: any thread.
class Guard : public std::enable_shared_from_this<Guard> {
 public:
  /// Runs a task in order with the session's other hooks.
  using InOrder = std::function<void(std::function<void()>)>;

  Guard(const SessionOptions& options, InOrder in_order);

  /// `what` names the callback: "on_state", "the handler of a request". False: it has thrown.
  template <class Code>
  bool run(std::string_view what, Code&& code) const noexcept {
    try {
      std::forward<Code>(code)();
      return true;
    } catch (...) {
      tell(what, std::current_exception());
      return false;
    }
  }

 private:
  void tell(std::string_view what, const std::exception_ptr& thrown) const noexcept;

  const decltype(SessionOptions::log) log_;
  const decltype(SessionOptions::on_exception) on_exception_;
  const InOrder in_order_;
};

/// "a callback has thrown (on_state): too late"
[[nodiscard]] std::string text_of(std::string_view what, const std::exception_ptr& thrown);

}  // namespace latchkey::session
