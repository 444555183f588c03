#include "recipes/hand_over.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "session/operations.hpp"

namespace latchkey::recipes {
namespace {

class LocalQueue;

/// One caller's turn at a lock that is passed on locally.
class Turn final : public Claim {
 public:
  Turn(std::shared_ptr<LocalQueue> queue, const Recipe& below, queue::Wait wait,
       std::shared_ptr<Claimant> claimant)
      : queue_(std::move(queue)),
        below_(below),
        wait_(wait),
        asking_(std::move(claimant)),
        claimant_(asking_) {}

  void cancel(Code code) override;
  void release(session::Completion done) override;
  void on_lease_over() override;
  void listen() override;

  /// Only while it waits: whoever waits keeps its recipe, and the session with it.
  [[nodiscard]] const Recipe& below() const { return below_; }
  [[nodiscard]] queue::Wait wait() const { return wait_; }
  [[nodiscard]] std::shared_ptr<Claimant> take_asking() { return std::exchange(asking_, {}); }
  [[nodiscard]] std::shared_ptr<Claimant> claimant() const { return claimant_.lock(); }

 private:
  const std::shared_ptr<LocalQueue> queue_;
  const Recipe& below_;
  const queue::Wait wait_;
  std::shared_ptr<Claimant> asking_;
  const std::weak_ptr<Claimant> claimant_;
};

/// The turns of one session at one lock. Those who wait for it, or have it, keep it alive.
/// Thread safety: session strand only: so the decision to pass on and the arrival of another cannot
/// cross (H70 d).
class LocalQueue final : public Claimant, public std::enable_shared_from_this<LocalQueue> {
 public:
  LocalQueue(session::Machine& machine, HandOver limits) : machine_(machine), limits_(limits) {}

  void join(const std::shared_ptr<Turn>& turn) {
    const bool occupied = below_ != nullptr;
    waiting_.push_back(turn);
    if (!occupied) return start_below();
    if (turn->wait() == queue::Wait::kNo) cancel(turn, Code::kBusy);
  }

  void cancel(const std::shared_ptr<Turn>& turn, Code code) {
    const auto at = std::find(waiting_.begin(), waiting_.end(), turn);
    if (at == waiting_.end()) return;
    waiting_.erase(at);
    fail(*turn, code);
    if (waiting_.empty() && !granted_ && below_) std::exchange(below_, {})->cancel(code);
  }

  void release(const std::shared_ptr<Turn>& turn, session::Completion done) {
    LATCHKEY_ASSERT(holder_ == turn);
    const auto alive = shared_from_this();
    holder_.reset();
    if (may_pass_on()) {
      ++hold_;
      grant_next();
      session::Outcome outcome;
      outcome.ok = true;
      if (done) done(std::move(outcome));
      return;
    }
    give_up(std::move(done));
  }

  void on_lease_over() {
    if (below_) below_->on_lease_over();
  }
  void listen() {
    if (below_) below_->listen();
  }

  void granted(Granted grant) override {
    const auto alive = shared_from_this();
    grant_ = std::move(grant);
    granted_ = true;
    since_ = machine_.now();
    hold_ = 0;
    waiting_.empty() ? give_up({}) : grant_next();
  }

  void failed(Error error) override {
    const auto alive = shared_from_this();
    below_.reset();
    // Somebody who would not wait was refused; that says nothing to those who would.
    const bool busy = error.code() == Code::kBusy;
    for (const auto& turn : std::exchange(waiting_, {})) {
      if (busy && turn->wait() == queue::Wait::kYes) {
        waiting_.push_back(turn);
      } else {
        turn->take_asking()->failed(error);
      }
    }
    if (!waiting_.empty()) start_below();
  }

  /// Whoever waits here has never held: it is queued anew, on a session that may be over (H70 c).
  void lost(Code code, std::function<void()> told) override {
    const auto alive = shared_from_this();
    below_.reset();
    granted_ = false;
    asked_to_let_go_ = false;
    const auto holder = std::exchange(holder_, {});
    const auto claimant = holder ? holder->claimant() : nullptr;
    claimant ? claimant->lost(code, std::move(told)) : told();
    if (!waiting_.empty()) start_below();
  }

  void asked_to_let_go() override {
    asked_to_let_go_ = true;
    const auto claimant = holder_ ? holder_->claimant() : nullptr;
    if (claimant) claimant->asked_to_let_go();
  }

 private:
  /// The lease is looked at now, not when it was won.
  [[nodiscard]] bool may_pass_on() const {
    const Instant now = machine_.now();
    return !waiting_.empty() && !asked_to_let_go_ &&
           hold_ + 1 < static_cast<std::uint32_t>(std::max(limits_.count, 1)) &&
           now - since_ < limits_.time && now < machine_.lease().deadline();
  }

  void grant_next() {
    holder_ = waiting_.front();
    waiting_.pop_front();
    holder_->take_asking()->granted(
        {.token = Token(grant_->token.zxid(), hold_), .nodes = grant_->nodes, .provable = false});
    const auto claimant = holder_->claimant();
    if (asked_to_let_go_ && claimant) claimant->asked_to_let_go();
  }

  void give_up(session::Completion done) {
    granted_ = false;
    asked_to_let_go_ = false;
    std::exchange(below_, {})->release(std::move(done));
    if (!waiting_.empty()) start_below();
  }

  /// What is below never answers before start() returns: it has to ask the server first.
  void start_below() {
    const bool patient = std::any_of(waiting_.begin(), waiting_.end(), [](const auto& turn) {
      return turn->wait() == queue::Wait::kYes;
    });
    below_ = waiting_.front()->below().start(
        machine_, patient ? queue::Wait::kYes : queue::Wait::kNo, shared_from_this());
  }

  void fail(Turn& turn, Code code) {
    session::Outcome outcome;
    outcome.code = code;
    turn.take_asking()->failed(session::make_error("lock", turn.below().path(), outcome));
  }

  session::Machine& machine_;
  const HandOver limits_;
  std::shared_ptr<Claim> below_;  ///< Asked for, or granted.
  bool granted_ = false;
  bool asked_to_let_go_ = false;
  std::optional<Granted> grant_;
  Instant since_{};
  std::uint32_t hold_ = 0;
  std::deque<std::shared_ptr<Turn>> waiting_;
  std::shared_ptr<Turn> holder_;
};

void Turn::cancel(Code code) {
  queue_->cancel(std::static_pointer_cast<Turn>(shared_from_this()), code);
}

void Turn::release(session::Completion done) {
  queue_->release(std::static_pointer_cast<Turn>(shared_from_this()), std::move(done));
}

void Turn::on_lease_over() { queue_->on_lease_over(); }
void Turn::listen() { queue_->listen(); }

}  // namespace

HandOverRecipe::HandOverRecipe(std::shared_ptr<const Recipe> below, std::string key,
                               HandOver limits)
    : Recipe(below->host(), below->path()),
      below_(std::move(below)),
      key_("hand-over " + std::to_string(limits.count) + ' ' + std::to_string(limits.time.count()) +
           ' ' + std::move(key)),
      limits_(limits) {}

Result<void> HandOverRecipe::check() const { return below_->check(); }

std::shared_ptr<Claim> HandOverRecipe::start(session::Machine& machine, queue::Wait wait,
                                             std::shared_ptr<Claimant> claimant) const {
  auto& commons = machine.commons();
  auto queue = std::static_pointer_cast<LocalQueue>(commons[key_].lock());
  if (!queue) {
    std::erase_if(commons, [](const auto& item) { return item.second.expired(); });
    queue = std::make_shared<LocalQueue>(machine, limits_);
    commons[key_] = queue;
  }
  auto turn = std::make_shared<Turn>(queue, *below_, wait, std::move(claimant));
  queue->join(turn);
  return turn;
}

}  // namespace latchkey::recipes
