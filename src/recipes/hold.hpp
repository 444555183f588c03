#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>

#include "latchkey/lease.hpp"
#include "session/host.hpp"

namespace latchkey::recipes {

class Attempt;

/// What a Lease and the attempt that won it share. It keeps the session alive.
///
/// A hold ends once, by release or by loss, and only with the session's machine held: so the two
/// never cross, and whoever finds it still on knows that its attempt is there to be told.
/// Thread safety: any thread.
class Hold {
 public:
  Hold(std::shared_ptr<session::Host> host, std::weak_ptr<Attempt> attempt, Token token,
       std::string node);

  [[nodiscard]] session::Host& host() const noexcept { return *host_; }
  [[nodiscard]] Token token() const noexcept { return token_; }
  [[nodiscard]] const std::string& node() const noexcept { return node_; }
  [[nodiscard]] std::stop_token lost() const noexcept { return lost_.get_token(); }

  /// By the clock, read now. A loss it finds is final and gets announced.
  [[nodiscard]] LeaseState state() noexcept;
  Released release() noexcept;
  Result<void> release(Deadline deadline);

  /// Session strand only.
  void mark_lost() noexcept { phase_ = Phase::kLost; }
  /// Requests stop, which runs the user's callbacks: on the executor only.
  void announce_loss() { lost_.request_stop(); }

 private:
  enum class Phase { kHeld, kLost, kReleased };

  /// Ends the hold and gives the attempt to be told of it; nothing if it was over already.
  [[nodiscard]] std::shared_ptr<Attempt> end(const session::Machine& machine, Instant now);
  /// Declares the loss if the lease has run out. Session strand only.
  void check_clock(const session::Machine& machine, Instant now);

  const std::shared_ptr<session::Host> host_;
  const std::weak_ptr<Attempt> attempt_;
  const Token token_;
  const std::string node_;
  std::stop_source lost_;
  std::atomic<Phase> phase_{Phase::kHeld};
};

}  // namespace latchkey::recipes
