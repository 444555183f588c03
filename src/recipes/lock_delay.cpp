#include "recipes/lock_delay.hpp"

#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "queue/lock_delay.hpp"
#include "session/submit.hpp"

namespace latchkey::recipes {
namespace {

/// Wins the claim below, looks who held before, waits if that one vanished, leaves its mark, and
/// only then tells its claimant. The mark is wiped out in front of the delete: if the two are torn
/// apart the next one waits in vain, which is the safe side.
class DelayedClaim final : public Claim, public Claimant {
 public:
  DelayedClaim(const std::shared_ptr<session::Host>& host, session::Machine& machine,
               std::string directory, std::chrono::milliseconds delay,
               std::shared_ptr<Claimant> claimant)
      : host_(*host),
        machine_(machine),
        directory_(std::move(directory)),
        delay_(delay),
        asking_(std::move(claimant)),
        claimant_(asking_) {}

  void start(const Recipe& below, queue::Wait wait) {
    self_ = shared_from_this();
    below_ = below.start(machine_, wait, std::shared_ptr<Claimant>(self_, this));
  }

  // Claim.

  void cancel(Code code) override {
    if (!asking_) return;
    if (!grant_) return below_->cancel(code);
    fail(error_of(code, timer_ != 0 ? "waiting out the lock delay" : ""));
  }

  void release(session::Completion done) override {
    LATCHKEY_ASSERT(!over_);
    over_ = true;
    if (marked_) leave_mark(std::string(queue::kNoHolder), [](Result<Multi::Outcome>) {});
    below_->release(std::move(done));
    end();
  }

  void on_lease_over() override { below_->on_lease_over(); }
  void listen() override { below_->listen(); }

  // Claimant.

  void granted(Granted grant) override {
    grant_ = std::move(grant);
    look();
  }

  void failed(Error error) override {
    over_ = true;
    std::exchange(asking_, {})->failed(std::move(error));
    end();
  }

  void lost(Code code, std::function<void()> told) override {
    over_ = true;
    const auto claimant = claimant_.lock();
    if (asking_) {
      std::exchange(asking_, {})->failed(error_of(code, "lost during the lock delay"));
      told();
    } else {
      claimant ? claimant->lost(code, std::move(told)) : told();
    }
    end();
  }

  void asked_to_let_go() override {
    asked_to_let_go_ = true;
    const auto claimant = claimant_.lock();
    if (!asking_ && claimant) claimant->asked_to_let_go();
  }

 private:
  [[nodiscard]] std::shared_ptr<DelayedClaim> self() {
    return std::static_pointer_cast<DelayedClaim>(shared_from_this());
  }
  [[nodiscard]] std::int64_t own() const { return grant_->nodes.front().czxid; }

  [[nodiscard]] Error error_of(Code code, std::string why) const {
    session::Outcome outcome;
    outcome.code = code;
    outcome.detail = std::move(why);
    return session::make_error("lock", directory_, outcome);
  }

  /// Behind a sync: a server that lags might not have the mark of the one who vanished.
  void look() {
    if (over_) return;
    session::submit<Sync>(host_, machine_, Sync{Path(directory_)}, Deadline::never(),
                          machine_.now(),
                          [self = self()](Result<void> done) { self->synced_ = bool(done); });
    session::submit<Get>(host_, machine_, Get{Path(directory_)}, Deadline::never(), machine_.now(),
                         [self = self()](Result<Node> node) { self->looked(std::move(node)); });
  }

  void looked(Result<Node> node) {
    if (over_) return;
    if (!node && !may_be_repeated(node.error())) return fail(node.error());
    if (!node || !synced_) return later(&DelayedClaim::look, machine_.back_off(++round_));
    if (!queue::has_vanished(node->data, own())) return mark();
    later(&DelayedClaim::mark, delay_);
  }

  void later(void (DelayedClaim::*next)(), Duration span) {
    const Instant now = machine_.now();
    const Instant at = span < Instant::max() - now ? now + span : Instant::max();
    timer_ = machine_.timers().add(at, [weak = std::weak_ptr(self()), next] {
      const auto claim = weak.lock();
      if (!claim) return;
      claim->timer_ = 0;
      ((*claim).*next)();
    });
  }

  static bool may_be_repeated(const Error& error) {
    return error.effect() == Effect::kUnknown || is_retryable(error.code()) ||
           error == Code::kServerError;
  }

  void mark() {
    if (over_) return;
    marked_ = true;  // Perhaps, from the asking on.
    leave_mark(queue::format_holder(own()), [self = self()](Result<Multi::Outcome> outcome) {
      self->marked(std::move(outcome));
    });
  }

  /// Only while our node is there: a mark is never written over a later holder's.
  void leave_mark(std::string text, session::Sink<Multi::Outcome> done) {
    Multi multi;
    multi.parts.emplace_back(Check{Path(grant_->nodes.front().path)});
    multi.parts.emplace_back(Set{Path(directory_), std::move(text)});
    session::submit<Multi>(host_, machine_, std::move(multi), Deadline::never(), machine_.now(),
                           std::move(done));
  }

  void marked(Result<Multi::Outcome> outcome) {
    if (over_) return;
    if (!outcome && !may_be_repeated(outcome.error())) return fail(outcome.error());
    if (!outcome) return later(&DelayedClaim::mark, machine_.back_off(++round_));
    if (!outcome->committed) {
      const bool gone = outcome->parts.front().error() == Code::kNoNode;
      return fail(gone ? Error(Code::kLost, "lock " + directory_ + ": our queue entry is gone")
                       : outcome->parts.back().error());
    }
    const auto claimant = std::exchange(asking_, {});
    claimant->granted(*grant_);
    if (asked_to_let_go_) claimant->asked_to_let_go();
  }

  /// What was won below is given back.
  void fail(Error error) {
    if (!asking_) return;
    const auto asking = std::exchange(asking_, {});
    release({});
    asking->failed(std::move(error));
  }

  void end() {
    machine_.timers().cancel(timer_);
    self_.reset();
  }

  session::Host& host_;
  session::Machine& machine_;
  const std::string directory_;
  const std::chrono::milliseconds delay_;
  std::shared_ptr<Claimant> asking_;  ///< Until it has its answer.
  const std::weak_ptr<Claimant> claimant_;
  std::shared_ptr<Claim> self_;  ///< Until it is over.
  std::shared_ptr<Claim> below_;
  std::optional<Granted> grant_;
  session::Timers::Id timer_ = 0;
  int round_ = 0;  ///< Back-offs.
  bool synced_ = false;
  bool marked_ = false;
  bool asked_to_let_go_ = false;
  bool over_ = false;
};

}  // namespace

DelayRecipe::DelayRecipe(std::shared_ptr<const Recipe> below, std::chrono::milliseconds delay,
                         std::string lock_name)
    : Recipe(below->host(), below->path()),
      below_(std::move(below)),
      delay_(delay),
      lock_name_(std::move(lock_name)) {}

Result<void> DelayRecipe::check() const {
  if (delay_.count() < 0) {
    return Error(Code::kInvalidOption, "lock " + path() + ": a lock delay cannot be negative");
  }
  if (!lock_name_.empty()) {
    return Error(Code::kInvalidOption, "lock " + path() + ", name \"" + lock_name_ +
                                           "\": a lock delay needs a directory of its own");
  }
  return below_->check();
}

std::shared_ptr<Claim> DelayRecipe::start(session::Machine& machine, queue::Wait wait,
                                          std::shared_ptr<Claimant> claimant) const {
  auto claim = std::make_shared<DelayedClaim>(host(), machine, path(), delay_, std::move(claimant));
  claim->start(*below_, wait);
  return claim;
}

}  // namespace latchkey::recipes
