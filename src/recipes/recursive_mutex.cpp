#include "latchkey/recursive_mutex.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "recipes/queue_recipe.hpp"

namespace latchkey::recipes {
namespace {

class Standing;

/// Which owners have the lock or wait for it. Session strand only.
using Owners = std::map<Owner, std::shared_ptr<Standing>>;

/// One lock() of an owner.
class Level final : public Claim {
 public:
  Level(std::shared_ptr<Standing> standing, const std::shared_ptr<Claimant>& claimant)
      : standing_(std::move(standing)), claimant_(claimant) {}

  void cancel(Code code) override;
  void release(session::Completion done) override;
  void on_lease_over() override;
  void listen() override;

  [[nodiscard]] std::shared_ptr<Claimant> claimant() const { return claimant_.lock(); }

 private:
  const std::shared_ptr<Standing> standing_;
  const std::weak_ptr<Claimant> claimant_;
};

/// One owner's claim to the lock, and the levels on top of it. Session strand only.
class Standing final : public Claimant, public std::enable_shared_from_this<Standing> {
 public:
  Standing(std::shared_ptr<Owners> owners, Owner owner)
      : owners_(std::move(owners)), owner_(owner) {}

  std::shared_ptr<Claim> start(const Recipe& recipe, session::Machine& machine, queue::Wait wait,
                               std::shared_ptr<Claimant> claimant) {
    (*owners_)[owner_] = shared_from_this();
    auto level = std::make_shared<Level>(shared_from_this(), claimant);
    levels_.push_back(level);
    asking_ = std::move(claimant);
    below_ = recipe.start(machine, wait, shared_from_this());
    return level;
  }

  [[nodiscard]] bool waits() const { return asking_ != nullptr; }

  std::shared_ptr<Claim> enter_again(const std::shared_ptr<Claimant>& claimant) {
    auto level = std::make_shared<Level>(shared_from_this(), claimant);
    levels_.push_back(level);
    claimant->granted(*grant_);
    if (asked_to_let_go_) claimant->asked_to_let_go();
    return level;
  }

  void cancel(Code code) {
    if (waits()) below_->cancel(code);
  }

  void release(const Level* level, session::Completion done) {
    const auto alive = shared_from_this();
    std::erase_if(levels_, [&](const auto& one) { return one.get() == level; });
    if (levels_.empty()) {
      owners_->erase(owner_);
      return below_->release(std::move(done));
    }
    session::Outcome outcome;
    outcome.ok = true;
    if (done) done(std::move(outcome));
  }

  void on_lease_over() { below_->on_lease_over(); }
  void listen() { below_->listen(); }

  void granted(Granted grant) override {
    grant_ = std::move(grant);
    std::exchange(asking_, {})->granted(*grant_);
  }

  void failed(Error error) override {
    const auto alive = shared_from_this();
    owners_->erase(owner_);
    levels_.clear();
    std::exchange(asking_, {})->failed(std::move(error));
  }

  void lost(Code code, std::function<void()> told) override {
    const auto alive = shared_from_this();
    owners_->erase(owner_);
    const auto levels = std::exchange(levels_, {});
    const auto missing = std::make_shared<std::size_t>(levels.size() + 1);
    const auto one_told = [missing, told = std::move(told)] {
      if (--*missing == 0) told();
    };
    for (const auto& level : levels) {
      const auto claimant = level->claimant();
      claimant ? claimant->lost(code, one_told) : one_told();
    }
    one_told();
  }

  void asked_to_let_go() override {
    asked_to_let_go_ = true;
    for (const auto& level : levels_) {
      if (const auto claimant = level->claimant()) claimant->asked_to_let_go();
    }
  }

 private:
  const std::shared_ptr<Owners> owners_;
  const Owner owner_;
  std::shared_ptr<Claim> below_;
  std::shared_ptr<Claimant> asking_;  ///< The first level's, until it has its answer.
  std::optional<Granted> grant_;
  std::vector<std::shared_ptr<Level>> levels_;
  bool asked_to_let_go_ = false;
};

void Level::cancel(Code code) { standing_->cancel(code); }
void Level::release(session::Completion done) { standing_->release(this, std::move(done)); }
void Level::on_lease_over() { standing_->on_lease_over(); }
void Level::listen() { standing_->listen(); }

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
    auto standing = find();
    if (standing && !standing->waits() && machine.now() >= machine.lease().deadline()) {
      standing->on_lease_over();  // Nobody is let into what may be lost already.
      standing = find();
    }
    if (!standing) {
      return std::make_shared<Standing>(owners_, owner_)
          ->start(*below_, machine, wait, std::move(claimant));
    }
    if (!standing->waits()) return standing->enter_again(claimant);
    claimant->failed(
        Error(Code::kWouldDeadlock, "lock " + path() +
                                        ": this owner is waiting for it already; another "
                                        "task needs an owner of its own"));
    return nullptr;
  }

 private:
  [[nodiscard]] std::shared_ptr<Standing> find() const {
    const auto at = owners_->find(owner_);
    return at == owners_->end() ? nullptr : at->second;
  }

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
