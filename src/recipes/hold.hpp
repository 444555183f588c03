#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "latchkey/lease.hpp"
#include "recipes/claim.hpp"
#include "recipes/recipe.hpp"
#include "session/host.hpp"

namespace latchkey::recipes {

/// The caller's side of a claim: waits for its answer, then is what a Lease and the claim share.
/// It does not keep the session alive, because it may end with the machine held, and the session
/// must not: whoever takes it out of there does, see keep_session().
///
/// A hold ends once, by release or by loss. Its claim is told of the release with the session's
/// machine held, which may be a little later (let_go()); a loss that comes in between is nobody's.
/// Thread safety: any thread, except where a member says otherwise.
class Hold final : public Claimant,
                   public std::enable_shared_from_this<Hold>,
                   private session::Host::Task {
 public:
  /// Gets the one answer, with the machine held.
  using Sink = std::function<void(Result<std::shared_ptr<Hold>>)>;

  /// Starts a claim and sees to it that the answer comes by `deadline`. Session strand only.
  static std::shared_ptr<Hold> begin(const Recipe& recipe, session::Machine& machine,
                                     queue::Wait wait, Deadline deadline, Sink sink);

  Hold(const std::shared_ptr<session::Host>& host, session::Machine& machine, Sink sink);

  /// `hold` as a value that keeps its session alive as well. It has to end outside the strand.
  [[nodiscard]] static std::shared_ptr<Hold> keep_session(std::shared_ptr<session::Host> host,
                                                          std::shared_ptr<Hold> hold);

  [[nodiscard]] session::Host& host() const noexcept { return host_; }
  [[nodiscard]] Token token() const noexcept { return grant_->token; }
  [[nodiscard]] const std::vector<HeldNode>& nodes() const noexcept { return grant_->nodes; }
  [[nodiscard]] bool is_provable() const noexcept { return grant_->provable; }
  [[nodiscard]] std::stop_token lost() const noexcept { return lost_.get_token(); }
  [[nodiscard]] std::stop_token release_requested();

  /// By the clock, read now. A loss it finds is final and gets announced.
  [[nodiscard]] LeaseState state() noexcept;
  Released release() noexcept;
  /// As release(), for one who does not want to know what it came to: if another thread is with the
  /// session it does the rest.
  void let_go() noexcept;
  Result<void> release(Deadline deadline);
  Result<void> check(Deadline deadline);

  // Session strand only.

  [[nodiscard]] bool is_waiting() const { return phase_ == Phase::kWaiting; }
  /// The caller no longer wants to wait.
  void cancel(Code code);
  /// The claim, if it holds at this moment.
  [[nodiscard]] std::shared_ptr<Claim> claim(const session::Machine& machine, Instant now);
  /// The claim goes on without this hold: it is over, and nothing is released by it.
  void retire() { phase_ = Phase::kReleased; }
  /// Ends the hold and gives the claim to be told of it; nothing if it was over already.
  [[nodiscard]] std::shared_ptr<Claim> end(const session::Machine& machine, Instant now);

  void granted(Granted grant) override;
  void failed(Error error) override;
  void lost(Code code, std::function<void()> told) override;
  void asked_to_let_go() override;

 private:
  enum class Phase { kWaiting, kRefused, kHeld, kLost, kReleased };

  void run(session::Machine& machine, Instant now) noexcept override;
  [[nodiscard]] const std::stop_source& asked();
  void answer(Result<std::shared_ptr<Hold>> result);
  /// By the clock, read now.
  [[nodiscard]] bool lease_has_passed() const noexcept;
  /// Declares the loss if the lease has run out. Session strand only.
  void check_clock(const session::Machine& machine, Instant now);

  session::Host& host_;
  const std::weak_ptr<session::Host> shared_host_;
  session::Machine& machine_;
  std::weak_ptr<Claim> claim_;
  session::Timers::Id deadline_timer_ = 0;
  Sink sink_;
  std::optional<Granted> grant_;
  std::stop_source lost_;
  std::stop_source asked_{std::nostopstate};  ///< Once somebody cares. Session strand only.
  std::atomic<Phase> phase_{Phase::kWaiting};
  std::shared_ptr<Hold> letting_go_;  ///< Ourselves, until the claim is told.
  bool claim_over_ = false;           ///< It was lost before it was told. Session strand only.
};

}  // namespace latchkey::recipes
