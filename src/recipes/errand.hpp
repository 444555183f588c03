#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "latchkey/lock.hpp"
#include "latchkey/node.hpp"
#include "queue/messages.hpp"
#include "recipes/claim.hpp"
#include "session/host.hpp"
#include "session/operations.hpp"

namespace latchkey::recipes {

/// How the directories of a lock are made, where they are missing.
struct Ground {
  std::string directory;  ///< The lock's own, as the user knows it; empty if none is its own.
  std::vector<Acl> acl;   ///< Of that one. Those above it are open to everyone.
  Parent parent = Parent::kContainer;
  std::string base = {};       ///< A level above it that is the lock's own too, if there is one.
  std::string base_data = {};  ///< What is written there, by whoever makes it.
};

/// Tells the holder that it no longer holds. Whoever comes next must not hold before it knows: what
/// was held may be given up when `told` is called, which is when the holder's callbacks have run,
/// but not later than the session's time-out, should one hang. Session strand only.
void announce_loss(session::Machine& machine, Claimant& claimant, Code code,
                   std::function<void()> told);

/// A fresh identity, for an attempt's nodes.
[[nodiscard]] std::string new_guid();

/// What all claims have in common that keep nodes of their own on the server: a place among the
/// session's members, requests numbered by their asks, the proof of the lease, pauses, missing
/// directories, and the words to the claimant. What to do and when is said by a machine of
/// src/queue; a MachineErrand feeds it.
///
/// Thread safety: session strand only.
class Errand : public Claim, public session::Member {
 public:
  void on_lease_proven() final;

 protected:
  Errand(const std::shared_ptr<session::Host>& host, session::Machine& machine,
         std::shared_ptr<Claimant> claimant)
      : host_(*host), machine_(machine), asking_(std::move(claimant)), claimant_(asking_) {}

  /// What the lock is called by its user.
  [[nodiscard]] virtual const std::string& path() const = 0;
  /// Made when it is needed, which is seldom, and not kept: there are many of us.
  [[nodiscard]] virtual Ground ground() const = 0;

  /// From here on it keeps itself alive, until finish().
  void begin();
  /// Nothing is left to do. Whoever waits for a removal that has not been told of hears now that
  /// there was nothing to remove.
  void finish();

  /// Sends a request for `ask`; `done` runs with the machine held, and with us alive.
  template <class Body, class Done>
  session::CallId send(queue::Ask ask, wire::Op op, const std::string& path, const Body& body,
                       Done done, std::optional<session::WatchWish> watch = std::nullopt) {
    session::Call call{
        .op = op, .path = path, .watch = std::move(watch), .lets_linger = !session::is_write(op)};
    call.frame.reserve(path.size() + 32);
    wire::append_frame(call.frame, wire::RequestHeader{0, op}, body);
    return submit(ask, std::move(call), std::move(done));
  }
  template <class Body, class Done>
  session::CallId send(queue::Ask ask, wire::Op op, const Body& body, Done done,
                       std::optional<session::WatchWish> watch = std::nullopt) {
    return send(ask, op, body.path, body, std::move(done), std::move(watch));
  }
  template <class Done>
  session::CallId submit(queue::Ask ask, session::Call&& call, Done done) {
    call.done = [self = weak_self().lock(), ask, op = call.op, path = path_to_report(call),
                 done = std::move(done)](session::Outcome&& outcome) mutable {
      self->answered(ask, op, path, outcome);
      done(std::move(outcome));
    };
    return submit(ask, std::move(call));
  }
  /// A one-shot watch: `happened` runs unless we or the session have ended before.
  [[nodiscard]] session::WatchWish watch_wish(session::WatchOn on, Watcher happened);
  /// Takes it back if it has not left yet: then it ends with kCancelled.
  void withdraw(queue::Ask ask);

  using Told = std::function<void(queue::Answer)>;
  void sync(queue::Ask ask, Told done);
  /// Success once the session's lease is proven fresh (P5, H12), if need be by a sync: when it
  /// lasts, or, over a slow way, when two proofs in a row have left some of it. Never when it is
  /// over.
  void prove(queue::Ask ask, Told done);
  /// Calls back after a back-off that grows with `round`.
  void pause(int round, std::function<void()> done);
  /// Creates one directory level, `path` as the user knows it.
  void make_directory(queue::Ask ask, const std::string& path, Told done) {
    make_directory(ask, path, ground().parent, std::move(done));
  }

  // Words to the claimant.

  void tell_granted(Granted grant);
  void tell_failed(Error error);
  /// See announce_loss(); with nobody to tell, `told` is called at once.
  void tell_lost(Code code, std::function<void()> told);
  /// Somebody wants the holder to let go. A wish that comes while we wait is for the holder we
  /// become.
  void tell_asked_to_let_go();
  /// What was held is gone from the server, or stays for the reason given.
  void tell_removed(session::Outcome outcome);

  [[nodiscard]] Error error_of(Code code, const std::string& why) const;

  session::Host& host_;
  session::Machine& machine_;
  std::shared_ptr<Claimant> asking_;  ///< Until it has its answer.
  std::weak_ptr<Claimant> claimant_;
  /// Who wants to know when what was held is gone from the server: kept until taken.
  void keep_on_removed(session::Completion told) {
    if (told) on_removed_ = std::make_unique<session::Completion>(std::move(told));
  }
  [[nodiscard]] session::Completion take_on_removed() {
    const auto told = std::exchange(on_removed_, {});
    return told ? std::move(*told) : session::Completion();
  }

 private:
  session::CallId submit(queue::Ask ask, session::Call&& call);
  void answered(queue::Ask ask, wire::Op op, const std::string& path,
                const session::Outcome& outcome);
  /// Empty if nobody wants to hear of it.
  [[nodiscard]] std::string path_to_report(const session::Call& call) const;
  void end_proof(queue::Answer answer);
  void make_directory(queue::Ask ask, const std::string& path, Parent parent, Told done);
  /// For callbacks that must not keep us alive.
  [[nodiscard]] std::weak_ptr<Errand> weak_self() {
    return std::static_pointer_cast<Errand>(shared_from_this());
  }

  std::shared_ptr<Claim> self_;
  session::Machine::MemberId member_ = 0;
  session::Timers::Id pause_timer_ = 0;
  session::Timers::Id proof_timer_ = 0;
  std::unique_ptr<Told>
      unproven_;            ///< Waits until the lease is proven, or it is time to ask again.
  bool was_short_ = false;  ///< The last proof of ours left a lease, and too little of it.
  session::Timers::Id heartbeat_timer_ = 0;
  std::vector<std::pair<queue::Ask, session::CallId>> calls_;  ///< Unanswered: a few.
  std::unique_ptr<session::Completion> on_removed_;
  bool asked_to_let_go_ = false;  ///< And not yet told.
};

}  // namespace latchkey::recipes
