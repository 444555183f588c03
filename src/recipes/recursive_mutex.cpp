#include "latchkey/recursive_mutex.hpp"

#include <atomic>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "queue/reentrance.hpp"
#include "recipes/answer.hpp"
#include "recipes/inbox.hpp"
#include "recipes/queue_recipe.hpp"
#include "recipes/seat.hpp"

namespace latchkey::recipes {
namespace {

namespace reentrance = queue::reentrance;

class Standing;

/// Which owners have the lock or wait for it. Session strand only.
using Owners = std::map<Owner, std::shared_ptr<Standing>>;

/// A loss that several have to be told of: when all know, `told` is called.
struct Notice {
  std::function<void()> told;
  std::size_t missing = 1;  ///< One for whoever tells the others.

  void one_knows() {
    if (--missing == 0) told();
  }
};

/// One owner's claim to the lock, and the levels on top of it: does what its Reentrance says.
/// Session strand only.
class Standing final : public Claimant, public std::enable_shared_from_this<Standing> {
 public:
  using Number = reentrance::Level;

  /// An event, and what is needed besides to carry out the answer.
  struct Tiding {
    reentrance::Event event;
    std::optional<Error> error = {};      ///< Of a claim that failed.
    std::shared_ptr<Notice> notice = {};  ///< Of a claim that was lost.
    session::Completion done = {};        ///< Of a release.
  };

  Standing(std::shared_ptr<Owners> owners, Owner owner, session::Machine& machine)
      : owners_(std::move(owners)), owner_(owner), machine_(machine) {}

  std::shared_ptr<Claim> enter(const Recipe& below, queue::Wait wait,
                               std::shared_ptr<Claimant> claimant) {
    const Number number = ++last_;
    auto seat = std::make_shared<Seat<Standing>>(shared_from_this(), number, std::move(claimant));
    levels_.emplace(number, Level{seat, below});
    feed({reentrance::Enter{number, wait, machine_.lease().deadline()}});
    return seat;
  }

  // From seats.
  void cancel(Number level, Code code) { feed({reentrance::Cancel{level, code}}); }
  LetGo release(Number level, session::Completion done) {
    feed({.event = reentrance::Release{level}, .done = std::move(done)});
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
    feed({reentrance::Granted{}});
  }
  void failed(Error error) override {
    const Code code = error.code();
    below_.reset();
    feed({.event = reentrance::Failed{code}, .error = std::move(error)});
  }
  void lost(Code code, std::function<void()> told) override {
    below_.reset();
    feed({.event = reentrance::Lost{code},
          .notice = std::make_shared<Notice>(Notice{.told = std::move(told)})});
  }
  void asked_to_let_go() override { feed({reentrance::AskedToLetGo{}}); }

 private:
  struct Level {
    std::shared_ptr<Seat<Standing>> seat;
    const Recipe& below;  ///< Only while it waits: whoever waits keeps it.
  };

  void feed(Tiding tiding) {
    const auto alive = shared_from_this();
    inbox_.put(std::move(tiding), [this](Tiding& next) {
      for (const reentrance::Action& action : reentrance_.step(next.event, machine_.now())) {
        std::visit([&](const auto& what) { carry_out(what, next); }, action);
      }
      if (next.notice) next.notice->one_knows();
    });
    const auto at = owners_->find(owner_);
    if (reentrance_.is_out() && at != owners_->end() && at->second == alive) owners_->erase(at);
  }

  void carry_out(const reentrance::Claim& action, Tiding&) {
    const Recipe& recipe = levels_.at(action.level).below;
    below_ = recipe.start(machine_, action.wait, shared_from_this());
  }
  void carry_out(const reentrance::Withdraw& action, Tiding&) {
    const auto below = below_;
    below->cancel(action.code);
  }
  void carry_out(const reentrance::EndLease&, Tiding&) { on_lease_over(); }
  void carry_out(const reentrance::GiveUp& action, Tiding& tiding) {
    levels_.erase(action.level);
    let_go_ = std::exchange(below_, {})->release(std::move(tiding.done));
  }
  void carry_out(const reentrance::Grant& action, Tiding&) {
    levels_.at(action.level).seat->grant(*grant_);
  }
  void carry_out(const reentrance::Fail& action, Tiding& tiding) {
    const auto level = levels_.extract(action.level);
    const auto& [seat, below] = level.mapped();
    if (tiding.error) return seat->fail(*tiding.error);
    if (action.code == Code::kWouldDeadlock) {
      return seat->fail(Error(action.code, "lock " + below.path() +
                                               ": this owner is waiting for it already; another "
                                               "task needs an owner of its own"));
    }
    seat->fail(lock_error(below.path(), action.code, {}));
  }
  void carry_out(const reentrance::Lose& action, Tiding& tiding) {
    ++tiding.notice->missing;
    levels_.extract(action.level).mapped().seat->lose(action.code, [notice = tiding.notice] {
      notice->one_knows();
    });
  }
  void carry_out(const reentrance::AskToLetGo& action, Tiding&) {
    levels_.at(action.level).seat->ask_to_let_go();
  }
  void carry_out(const reentrance::StillHeld& action, Tiding& tiding) {
    levels_.erase(action.level);
    let_go_ = LetGo::kStillHeld;
    session::Outcome outcome;
    outcome.ok = true;
    if (tiding.done) tiding.done(std::move(outcome));
  }

  const std::shared_ptr<Owners> owners_;
  const Owner owner_;
  session::Machine& machine_;
  queue::Reentrance reentrance_;
  Inbox<Tiding> inbox_;
  Number last_ = 0;
  std::map<Number, Level> levels_;  ///< Those who wait, and those who are in.
  std::shared_ptr<Claim> below_;    ///< Asked for, or granted.
  std::optional<Granted> grant_;
  LetGo let_go_ = LetGo::kGivenUp;  ///< What the last release came to.
};

/// The lock as one owner sees it.
class OwnedRecipe final : public Recipe {
 public:
  OwnedRecipe(std::shared_ptr<const Recipe> below, std::shared_ptr<Owners> owners, Owner owner)
      : Recipe(below->host(), below->path()),
        below_(std::move(below)),
        owners_(std::move(owners)),
        owner_(owner) {}

  [[nodiscard]] Result<void> check() const override { return below_->check(); }

  std::shared_ptr<Claim> start(session::Machine& machine, queue::Wait wait,
                               std::shared_ptr<Claimant> claimant) const override {
    auto& standing = (*owners_)[owner_];
    if (!standing) standing = std::make_shared<Standing>(owners_, owner_, machine);
    return std::shared_ptr(standing)->enter(*below_, wait, std::move(claimant));
  }

 private:
  const std::shared_ptr<const Recipe> below_;
  const std::shared_ptr<Owners> owners_;
  const Owner owner_;
};

}  // namespace
}  // namespace latchkey::recipes

namespace latchkey::inline v0 {

Owner::Owner() {
  static std::atomic<std::uint64_t> last = 0;
  id_ = ++last;
}

Owner Owner::this_thread() {
  thread_local const Owner owner;
  return owner;
}

struct RecursiveMutex::Parts {
  std::shared_ptr<const recipes::Recipe> below;
  std::shared_ptr<recipes::Owners> owners = std::make_shared<recipes::Owners>();
};

RecursiveMutex::RecursiveMutex(const Session& session, Path directory, MutexOptions options)
    : parts_(std::make_shared<Parts>(
          Parts{recipes::mutex_recipe(session.host(), std::move(directory), options)})) {}

Lock RecursiveMutex::of(Owner owner) const {
  return Lock(std::make_shared<recipes::OwnedRecipe>(parts_->below, parts_->owners, owner));
}

Result<Lease> RecursiveMutex::lock(Deadline deadline, std::stop_token stop) const {
  return of(Owner::this_thread()).lock(deadline, std::move(stop));
}

Result<Lease> RecursiveMutex::try_lock(Deadline deadline, std::stop_token stop) const {
  return of(Owner::this_thread()).try_lock(deadline, std::move(stop));
}

}  // namespace latchkey::inline v0
