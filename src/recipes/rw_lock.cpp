#include "latchkey/rw_lock.hpp"

#include <utility>

#include "recipes/hold.hpp"
#include "recipes/order.hpp"
#include "recipes/queue_recipe.hpp"

namespace latchkey::inline v0 {
namespace {

Lock side(const Session& session, const Path& directory, const RwLockOptions& options,
          queue::Tag tag) {
  const bool herd = options.watch == WatchPolicy::kDirectory;
  return Lock(std::make_shared<recipes::QueueRecipe>(
      session.host(), directory,
      recipes::EntryStyle{
          .contender = {.tag = tag,
                        .relist = queue::Relist::kAlways,
                        .watching = herd ? queue::Watching::kDirectory : queue::Watching::kNearest},
          .reason = options.reason,
          .acl = options.acl,
          .parent = options.parent}));
}

/// The one-time recipe of turning one writer's hold into a reader's.
class Downgrade final : public recipes::Recipe {
 public:
  Downgrade(std::shared_ptr<session::Host> host, std::string path, Lease writing)
      : Recipe(std::move(host), std::move(path)), writing_(std::move(writing)) {}

  [[nodiscard]] Result<void> check() const override {
    const std::shared_ptr<recipes::Hold>& hold = writing_.hold();
    const std::string what = "downgrade " + path() + ": ";
    if (!hold || writing_.state() == LeaseState::kReleased) {
      return Error(Code::kInvalidOption, what + "the lease has been released or moved away");
    }
    // In a forked child every lease looks lost.
    if (host()->is_forked()) return session::check_blocking(*host(), "downgrade " + path());
    if (writing_.state() == LeaseState::kLost)
      return Error(Code::kLost, what + "it was lost before");
    const std::string& node = writing_.node();
    const std::size_t slash = node.rfind('/');
    const auto place = queue::parse_place(node.substr(slash + 1));
    const bool is_writer = place && place->read_write && place->share == queue::Share::kExclusive;
    const std::string directory = slash == 0 ? "/" : node.substr(0, slash);
    if (&hold->host() != host().get() || !is_writer || directory != path()) {
      return not_a_writer();
    }
    return {};
  }

  std::shared_ptr<recipes::Claim> start(
      session::Machine& machine, queue::Wait,
      std::shared_ptr<recipes::Claimant> claimant) const override {
    const std::shared_ptr<recipes::Hold>& writing = writing_.hold();
    auto claim = writing->claim(machine, machine.now());
    if (!claim) {
      claimant->failed(Error(Code::kLost, "downgrade " + path() + ": it was lost before"));
      return nullptr;
    }
    const auto retire = [weak = std::weak_ptr(writing)] {
      if (const auto hold = weak.lock()) hold->retire();
    };
    if (!claim->downgrade(claimant, retire)) {
      claimant->failed(not_a_writer());
      return nullptr;
    }
    return claim;
  }

 private:
  [[nodiscard]] Error not_a_writer() const {
    return Error(Code::kInvalidOption, "downgrade " + path() + ": " + writing_.node() +
                                           " is not a writer's entry of this lock");
  }

  const Lease writing_;
};

}  // namespace

RwLock::RwLock(const Session& session, Path directory, RwLockOptions options)
    : read_(side(session, directory, options, queue::Tag::kRead)),
      write_(side(session, directory, options, queue::Tag::kWrite)) {}

LockRequest RwLock::downgrade_async(Lease writing, Deadline deadline) const {
  const recipes::Recipe& write = write_.recipe();
  auto order = std::make_unique<recipes::Order>();
  order->recipe = std::make_shared<Downgrade>(write.host(), write.path(), std::move(writing));
  order->deadline = deadline;
  return LockRequest(std::move(order));
}

Result<Lease> RwLock::upgrade(const Lease& reading) const {
  return Error(Code::kWouldDeadlock,
               "upgrade " + (reading.hold() ? reading.node() : read_.path()) +
                   ": two readers that both wait to write would wait for each other for ever; "
                   "release it and ask for write(), then look again at what was read");
}

}  // namespace latchkey::inline v0
