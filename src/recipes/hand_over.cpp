#include "recipes/hand_over.hpp"

#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "queue/hand_over.hpp"
#include "recipes/answer.hpp"
#include "recipes/commons.hpp"
#include "recipes/inbox.hpp"
#include "recipes/misuse.hpp"
#include "recipes/seat.hpp"

namespace latchkey::recipes {
namespace {

namespace hand_over = queue::hand_over;

/// The turns of one session at one lock: does what their LocalLine says. Those who wait for it, or
/// have it, keep it alive.
/// Thread safety: session strand only: so the decision to pass on and the arrival of another cannot
/// cross (H70 d).
class LocalQueue final : public Claimant, public std::enable_shared_from_this<LocalQueue> {
 public:
  using Number = hand_over::Turn;
  /// An event, and what is needed besides to carry out the answer.
  struct Tiding {
    hand_over::Event event;
    std::optional<Error> error = {};  ///< Of a claim that failed.
    std::function<void()> told = {};  ///< Of a claim that was lost.
    session::Completion done = {};    ///< Of a release.
  };

  using Keeps = queue::LocalLine::Keeps;

  LocalQueue(session::Machine& machine, HandOver limits)
      : machine_(machine), line_(limits, machine.may_linger() ? Keeps::kYes : Keeps::kNo) {}

  std::shared_ptr<Claim> join(const Recipe& below, queue::Wait wait,
                              std::shared_ptr<Claimant> claimant) {
    const Number number = ++last_;
    auto seat = std::make_shared<Seat<LocalQueue>>(shared_from_this(), number, std::move(claimant));
    turns_.emplace(number, Turn{seat, below});
    feed({hand_over::Join{number, wait}});
    return seat;
  }

  void feed(Tiding tiding) {
    const auto alive = shared_from_this();
    inbox_.put(std::move(tiding), [this](Tiding& next) {
      for (const hand_over::Action& action : line_.step(next.event, machine_.now())) {
        std::visit([&](const auto& what) { carry_out(what, next); }, action);
      }
    });
  }

  // From seats.
  void cancel(Number turn, Code code) { feed({hand_over::Cancel{turn, code}}); }
  LetGo release(Number turn, session::Completion done) {
    feed({.event = hand_over::Release{turn, machine_.lease().deadline()}, .done = std::move(done)});
    return let_go_;
  }
  void on_lease_over() {
    if (const auto below = below_) below->on_lease_over();
  }
  void listen() {
    if (const auto below = below_) below->listen();
  }

  // From the claim they share.
  void granted(Granted grant) override {
    grant_ = std::move(grant);
    feed({hand_over::Granted{}});
  }
  void failed(Error error) override {
    const Code code = error.code();
    below_.reset();
    feed({.event = hand_over::Failed{code}, .error = std::move(error)});
  }
  void lost(Code code, std::function<void()> told) override {
    feed({.event = hand_over::Lost{code}, .told = std::move(told)});
  }
  void asked_to_let_go() override { feed({hand_over::AskedToLetGo{}}); }

 private:
  struct Turn {
    std::shared_ptr<Seat<LocalQueue>> seat;
    /// Only while it waits: whoever waits keeps its recipe, and the session with it.
    const Recipe& below;
  };

  /// Nobody holds now: the first of the turns is the one that has waited longest.
  void carry_out(const hand_over::Claim& action, Tiding&) {
    const Recipe& recipe = turns_.begin()->second.below;
    below_ = recipe.start(machine_, action.wait, shared_from_this());
  }

  void carry_out(const hand_over::Withdraw& action, Tiding&) {
    // Its answer comes all the same, and if it is a grant there has to be something to give up.
    const auto below = below_;
    below->cancel(action.code);
  }

  void carry_out(const hand_over::GiveUp& action, Tiding& tiding) {
    if (action.turn) turns_.erase(*action.turn);
    let_go_ = std::exchange(below_, {})->release(std::move(tiding.done));
  }

  void carry_out(const hand_over::Grant& action, Tiding&) {
    turns_.at(action.turn)
        .seat->grant({.token = Token(grant_->token.zxid(), action.hold),
                      .nodes = grant_->nodes,
                      .provable = false});
  }

  void carry_out(const hand_over::Fail& action, Tiding& tiding) {
    const auto turn = turns_.extract(action.turn);
    const auto& [seat, below] = turn.mapped();
    seat->fail(tiding.error ? *tiding.error
                            : lock_error(below.path(), action.code, "still in line"));
  }

  void carry_out(const hand_over::Lose& action, Tiding& tiding) {
    below_.reset();
    if (!action.turn) return tiding.told();
    turns_.extract(*action.turn).mapped().seat->lose(action.code, std::move(tiding.told));
  }

  void carry_out(const hand_over::AskToLetGo& action, Tiding&) {
    turns_.at(action.turn).seat->ask_to_let_go();
  }

  void carry_out(const hand_over::PassedOn& action, Tiding& tiding) {
    turns_.erase(action.turn);
    let_go_ = LetGo::kStillHeld;
    session::Outcome outcome;
    outcome.ok = true;
    if (tiding.done) tiding.done(std::move(outcome));
  }

  /// Never taken back: whoever comes back at once does so many times in the time of one breath.
  void carry_out(const hand_over::RingAt& action, Tiding&) {
    machine_.timers().add(action.at, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->feed({hand_over::Rang{}});
    });
  }

  session::Machine& machine_;
  queue::LocalLine line_;
  Inbox<Tiding> inbox_;
  Number last_ = 0;
  std::map<Number, Turn> turns_;  ///< Those who wait, and the holder.
  std::shared_ptr<Claim> below_;  ///< Asked for, or granted.
  std::optional<Granted> grant_;
  LetGo let_go_ = LetGo::kGivenUp;  ///< What the last release came to.
};

}  // namespace

HandOverRecipe::HandOverRecipe(std::shared_ptr<const Recipe> below, std::string key,
                               HandOver limits)
    : Recipe(below->host(), below->path()),
      below_(std::move(below)),
      key_("hand-over " + std::to_string(limits.count) + ' ' + std::to_string(limits.time.count()) +
           ' ' + std::move(key)),
      limits_(limits) {}

Result<void> HandOverRecipe::check() const {
  if (limits_.count < 0) {
    return invalid_option(path(), "hand_over.count is " + std::to_string(limits_.count),
                          "0, for none, and more");
  }
  if (auto valid = check_at_least(path(), "hand_over.time", limits_.time, {}); !valid) return valid;
  return below_->check();
}

std::shared_ptr<Claim> HandOverRecipe::start(session::Machine& machine, queue::Wait wait,
                                             std::shared_ptr<Claimant> claimant) const {
  const auto queue = common<LocalQueue>(
      machine, key_, [&] { return std::make_shared<LocalQueue>(machine, limits_); });
  return queue->join(*below_, wait, std::move(claimant));
}

}  // namespace latchkey::recipes
