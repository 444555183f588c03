#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "keeper.hpp"
#include "latchkey/error.hpp"
#include "latchkey/session.hpp"

namespace latchkey::app {

/// What is held while a command runs, with all that is between us and the service: a lock, or
/// leadership. All calls from one thread; `tell` may come from any, also inside a call.
class Tenure {
 public:
  /// What the command is told in its environment.
  struct Grant {
    std::string lock;
    std::string node;
    std::string token;
  };
  enum class Said { kAlways, kIfVerbose };
  /// Not to be had, or not needed: nothing has gone wrong with kOk.
  struct Refusal {
    int code = 0;
    std::string text;  ///< For people; may be empty.
    Said said = Said::kAlways;
  };
  struct Loss {};
  /// Somebody asks us to let go. It is ours until we do.
  struct Wish {};
  /// For people who want to know more; nothing else comes of it.
  struct Remark {
    std::string text;
    Said said = Said::kIfVerbose;
  };
  using News = std::variant<Grant, Refusal, Loss, Wish, Remark>;

  virtual ~Tenure() = default;

  /// Asks for it, with one Grant or Refusal for an answer; after a Grant there may be a Wish and a
  /// Loss, and a Remark at any time.
  virtual void contend(std::function<void(News)> tell) = 0;
  /// No longer asks: the answer comes soon, and whatever the server knows of us is removed.
  virtual void withdraw() = 0;
  /// The lease of what is held.
  [[nodiscard]] virtual keeping::LeaseTimes lease() const = 0;
  /// Every process of the command is gone. Before, a loss that was told is kept from those who wait
  /// for as long as the service allows.
  virtual void all_gone() = 0;
  /// Lets go; `ending` says how the command ended, if it ran and was not stopped by us. A Refusal:
  /// that did not end well.
  virtual std::optional<Refusal> release(const std::optional<keeping::Ending>& ending) = 0;
  /// Leaves the service. Waits for it a little.
  virtual void close() = 0;
};

/// What a session knows of its lease.
[[nodiscard]] keeping::LeaseTimes lease_of(const Session& session);

}  // namespace latchkey::app
