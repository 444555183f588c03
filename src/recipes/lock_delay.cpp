#include "recipes/lock_delay.hpp"

#include <optional>
#include <utility>
#include <variant>

#include "queue/lock_delay.hpp"
#include "recipes/answer.hpp"
#include "recipes/errand.hpp"
#include "recipes/inbox.hpp"
#include "recipes/misuse.hpp"

namespace latchkey::recipes {
namespace {

namespace lock_delay = queue::lock_delay;
using queue::Ask;
using session::Outcome;
using wire::Op;

/// A claim below, and what a LockDelay says has to be done between its grant and ours. A member of
/// the session of its own: the claim below does not end with the lease.
class DelayedClaim final : public Errand, public Claimant {
 public:
  DelayedClaim(const std::shared_ptr<session::Host>& host, session::Machine& machine,
               std::string path, std::chrono::milliseconds delay, queue::Wait wait,
               std::shared_ptr<Claimant> claimant)
      : Errand(host, machine, std::move(claimant)),
        path_(std::move(path)),
        directory_(machine.absolute(path_)),
        wait_(wait),
        delay_(delay, wait) {}

  void start(const Recipe& below) {
    begin();
    below_ = below.start(machine_, wait_, self());
  }

  void cancel(Code code) override { feed(lock_delay::Cancel{code}); }
  LetGo release(session::Completion done) override {
    keep_on_removed(std::move(done));
    feed(lock_delay::Release{});
    return LetGo::kGivenUp;
  }
  void listen() override { below_->listen(); }

  void on_heartbeat() override {}
  void on_lease_over() override { feed(lock_delay::LeaseOver{}); }
  void on_session_over(Code) override {}  // The claim below says so.

  // From the claim below.

  void granted(Granted grant) override {
    const std::int64_t czxid = grant.nodes.front().czxid;
    grant_ = std::move(grant);
    feed(lock_delay::First{czxid});
  }
  void failed(Error error) override {
    error_ = std::move(error);
    feed(lock_delay::Failed{error_->code()});
  }
  /// What was lost is given up when our holder knows as well (H09).
  void lost(Code code, std::function<void()> told) override {
    below_told_ = std::move(told);
    feed(lock_delay::Lost{code});
  }
  void asked_to_let_go() override { tell_asked_to_let_go(); }

 private:
  [[nodiscard]] const std::string& path() const override { return path_; }
  [[nodiscard]] Ground ground() const override { return {}; }
  [[nodiscard]] std::shared_ptr<DelayedClaim> self() {
    return std::static_pointer_cast<DelayedClaim>(shared_from_this());
  }

  void feed(lock_delay::Event event) {
    const auto alive = shared_from_this();
    inbox_.put(std::move(event), [this](const lock_delay::Event& next) {
      for (lock_delay::Action& action : delay_.step(next, machine_.now())) {
        std::visit([this](auto& what) { carry_out(what); }, action);
      }
    });
  }

  void carry_out(lock_delay::Withdraw& action) { below_->cancel(action.code); }

  void carry_out(lock_delay::Look&) {
    looked_ = {};
    sync(++last_ask_, [this](queue::Answer answer) {
      looked_.synced = answer.kind == queue::Answer::Kind::kOk;
    });
    send(++last_ask_, Op::kGetData, wire::PathWatch{directory_, false}, [this](Outcome&& outcome) {
      looked_.answer = answer_of(outcome);
      if (auto* reply = std::get_if<wire::GetDataReply>(&outcome.reply)) {
        looked_.data = std::move(reply->data).value_or(std::string{});
        looked_.mzxid = reply->stat.mzxid;
        looked_.marked_at = reply->stat.mtime_ms;
      }
    });
    send(++last_ask_, Op::kExists, wire::PathWatch{entry(), false}, [this](Outcome&& outcome) {
      if (looked_.answer.kind == queue::Answer::Kind::kOk) looked_.answer = answer_of(outcome);
      if (auto* reply = std::get_if<wire::StatReply>(&outcome.reply)) {
        looked_.came_at = reply->stat.ctime_ms;
      }
      feed(std::exchange(looked_, {}));
    });
  }

  void carry_out(lock_delay::WaitOut& action) {
    delay_timer_ = machine_.timers().add(action.until, [weak = std::weak_ptr(self())] {
      if (const auto claim = weak.lock()) claim->feed(lock_delay::Resumed{});
    });
  }

  void carry_out(lock_delay::Pause& action) {
    pause(action.round, [this] { feed(lock_delay::Resumed{}); });
  }

  void carry_out(lock_delay::Mark& action) {
    set_mark(std::move(action.text), [this](Outcome&& outcome) {
      feed(lock_delay::Marked{answer_of_multi(outcome, 2), machine_.lease().deadline()});
    });
  }

  void carry_out(lock_delay::Wipe&) {
    set_mark(std::string(queue::kNoHolder), [](Outcome&&) {});
  }

  [[nodiscard]] std::string entry() const { return machine_.absolute(grant_->nodes.front().path); }

  void set_mark(std::string text, session::Completion done) {
    wire::Multi body;
    body.ops.push_back({Op::kCheck, wire::PathVersion{entry(), -1}});
    body.ops.push_back({Op::kSetData, wire::SetData{directory_, std::move(text), -1}});
    send(++last_ask_, Op::kMulti, directory_, body, std::move(done));
  }

  void carry_out(lock_delay::GiveUp&) { below_->release(take_on_removed()); }
  void carry_out(lock_delay::Grant&) { tell_granted(*grant_); }

  void carry_out(lock_delay::Fail& action) {
    tell_failed(error_ ? *error_ : error_of(action.code, action.why));
  }

  void carry_out(lock_delay::Lose& action) {
    tell_lost(action.code, [this] { feed(lock_delay::Told{}); });
  }

  void carry_out(lock_delay::Done&) {
    machine_.timers().cancel(delay_timer_);
    if (below_told_) std::exchange(below_told_, {})();
    finish();
  }

  const std::string path_;
  const std::string directory_;  ///< As the server knows it.
  const queue::Wait wait_;
  queue::LockDelay delay_;
  Inbox<lock_delay::Event> inbox_;
  std::shared_ptr<Claim> below_;
  std::optional<Granted> grant_;
  std::optional<Error> error_;  ///< Why the claim below has failed.
  std::function<void()> below_told_;
  session::Timers::Id delay_timer_ = 0;
  lock_delay::Looked looked_;  ///< So far.
  Ask last_ask_ = 0;
};

}  // namespace

DelayRecipe::DelayRecipe(std::shared_ptr<const Recipe> below, std::chrono::milliseconds delay,
                         std::string lock_name)
    : Recipe(below->host(), below->path()),
      below_(std::move(below)),
      delay_(delay),
      lock_name_(std::move(lock_name)) {}

Result<void> DelayRecipe::check() const {
  if (auto valid = check_at_least(path(), "a lock delay", delay_, {}); !valid) return valid;
  if (!lock_name_.empty()) {
    return Error(Code::kInvalidOption, "lock " + path() + ", name \"" + lock_name_ +
                                           "\": a lock delay needs a directory of its own");
  }
  return below_->check();
}

std::shared_ptr<Claim> DelayRecipe::start(session::Machine& machine, queue::Wait wait,
                                          std::shared_ptr<Claimant> claimant) const {
  auto claim =
      std::make_shared<DelayedClaim>(host(), machine, path(), delay_, wait, std::move(claimant));
  claim->start(*below_);
  return claim;
}

}  // namespace latchkey::recipes
