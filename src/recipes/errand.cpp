#include "recipes/errand.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/random.hpp"
#include "queue/node_name.hpp"
#include "recipes/answer.hpp"

namespace latchkey::recipes {

using queue::Answer;
using queue::Ask;
using session::Outcome;
using wire::Op;

void announce_loss(session::Machine& machine, Claimant& claimant, Code code,
                   std::function<void()> told) {
  struct Notice {
    std::function<void()> told;
    session::Timers::Id timer = 0;
  };
  const auto notice = std::make_shared<Notice>(Notice{.told = std::move(told)});
  machine.begin_telling();
  const auto pass_on = [&machine, notice] {
    machine.timers().cancel(notice->timer);
    const auto first = std::exchange(notice->told, {});
    if (!first) return;
    first();
    machine.end_telling();
  };
  notice->timer = machine.timers().add(machine.now() + machine.timeout(), pass_on);
  claimant.lost(code, pass_on);
}

std::string new_guid() {
  std::array<std::uint64_t, 2> words{};
  base::kernel_random(words);
  return queue::format_guid(words[1], words[0]);
}

void Errand::begin() {
  self_ = shared_from_this();
  member_ = machine_.join(*this);
}

void Errand::finish() {
  machine_.leave(member_);
  for (const session::Timers::Id timer : {pause_timer_, proof_timer_, heartbeat_timer_}) {
    machine_.timers().cancel(timer);
  }
  Outcome outcome;
  outcome.code = machine_.is_over() ? machine_.over_code() : Code::kLost;
  tell_removed(std::move(outcome));
  self_.reset();
}

// Requests.

std::string Errand::path_to_report(const session::Call& call) const {
  return session::is_reporting(host_) ? machine_.relative(call.path) : std::string();
}

void Errand::answered(Ask ask, Op op, const std::string& path, const Outcome& outcome) {
  std::erase_if(calls_, [&](const auto& one) { return one.first == ask; });
  // With their memory: many of us hold for long and ask for nothing.
  if (calls_.empty()) calls_.shrink_to_fit();
  session::report(host_, op, path, outcome);
}

session::CallId Errand::submit(Ask ask, session::Call&& call) {
  const session::CallId id = machine_.submit(std::move(call), machine_.now());
  if (calls_.empty()) calls_.reserve(2);  // Create and list.
  calls_.emplace_back(ask, id);
  return id;
}

session::WatchWish Errand::watch_wish(session::WatchOn on, Watcher happened) {
  return {.on = on,
          .watcher = [weak = weak_self(), happened = std::move(happened)](const WatchEvent& event) {
            const auto self = weak.lock();
            if (self && event.kind != EventKind::kSessionOver) happened(event);
          }};
}

void Errand::withdraw(Ask ask) {
  const auto call = std::ranges::find(calls_, ask, &std::pair<Ask, session::CallId>::first);
  if (call != calls_.end()) machine_.withdraw(call->second, machine_.now());
}

void Errand::sync(Ask ask, Told done) {
  send(ask, Op::kSync, wire::PathOnly{machine_.absolute(path())},
       [done = std::move(done)](Outcome&& outcome) { done(answer_of(outcome)); });
}

void Errand::prove(Ask ask, Told done) {
  if (machine_.lease().lasts(machine_.now())) return done(Answer{});
  sync(ask, [this, done = std::move(done)](Answer answer) {
    const session::LeaseClock& lease = machine_.lease();
    const bool is_proven = answer.kind == Answer::Kind::kOk && machine_.now() < lease.deadline();
    // Twice in a row no more than this: the way is that long, and later proofs leave no more. They
    // come as often as it takes to keep what is left of the lease from ending.
    const bool is_enough = lease.lasts(machine_.now()) || (is_proven && was_short_);
    was_short_ = is_proven && !is_enough;
    if (answer.kind != Answer::Kind::kOk || is_enough) return done(answer);
    // An answer that took a lease's time to come, or came after a long silence of ours, proves
    // nothing about now: ask again after a heartbeat, unless another answer proves it before.
    machine_.timers().cancel(proof_timer_);
    unproven_ = std::make_unique<Told>(done);
    proof_timer_ =
        machine_.timers().add(machine_.now() + machine_.lease().heartbeat(), [weak = weak_self()] {
          if (const auto self = weak.lock()) self->end_proof({Answer::Kind::kAmbiguous, {}});
        });
  });
}

void Errand::on_lease_proven() {
  if (machine_.lease().lasts(machine_.now())) end_proof(Answer{});
}

void Errand::end_proof(Answer answer) {
  machine_.timers().cancel(proof_timer_);
  if (const auto done = std::exchange(unproven_, {})) (*done)(answer);
}

void Errand::pause(int round, std::function<void()> done) {
  pause_timer_ = machine_.timers().add(machine_.now() + machine_.back_off(round),
                                       [weak = weak_self(), done = std::move(done)] {
                                         if (const auto self = weak.lock()) done();
                                       });
}

void Errand::make_directory(Ask ask, const std::string& path, Parent parent, Told done) {
  const bool container = parent == Parent::kContainer;
  // The options speak of this lock; what lies above it is everybody's.
  Ground ground = this->ground();
  const bool is_base = !ground.base.empty() && path == ground.base;
  const bool is_ours = path == ground.directory || is_base;
  send(ask, container ? Op::kCreateContainer : Op::kCreate2,
       wire::Create{machine_.absolute(path), is_base ? std::move(ground.base_data) : std::string{},
                    session::to_wire(is_ours ? ground.acl : open_acl()),
                    container ? wire::CreateMode::kContainer : wire::CreateMode::kPersistent},
       [this, ask, path, container, done = std::move(done)](Outcome&& outcome) {
         // Servers before 3.5 know no containers.
         if (container && !outcome.ok && outcome.code == Code::kUnimplemented) {
           return make_directory(ask, path, Parent::kPersistent, done);
         }
         done(answer_of(outcome));
       });
}

// Words to the claimant.

Error Errand::error_of(Code code, const std::string& why) const {
  if (why.empty() && code == Code::kTimedOut) {
    Outcome outcome;
    outcome.code = code;
    outcome.detail = machine_.last_trouble();
    return session::make_error("lock", path(), outcome);
  }
  const std::string hint = code == Code::kNoNode ? machine_.chroot_hint() : std::string();
  return lock_error(path(), code, why.empty() || hint.empty() ? why + hint : why + "; " + hint);
}

void Errand::tell_granted(Granted grant) {
  // A heartbeat tells us to watch our own node, but where requests are frequent there are none.
  machine_.timers().cancel(heartbeat_timer_);
  // We are alive until finish(), which cancels it.
  heartbeat_timer_ = machine_.timers().add(machine_.now() + machine_.lease().heartbeat(),
                                           [this] { on_heartbeat(); });
  claimant_ = asking_;
  std::exchange(asking_, {})->granted(std::move(grant));
  if (std::exchange(asked_to_let_go_, false)) tell_asked_to_let_go();
}

void Errand::tell_failed(Error error) { std::exchange(asking_, {})->failed(std::move(error)); }

void Errand::tell_lost(Code code, std::function<void()> told) {
  const auto claimant = claimant_.lock();
  if (!claimant) return told();
  announce_loss(machine_, *claimant, code,
                [self = shared_from_this(), told = std::move(told)] { told(); });
}

void Errand::tell_asked_to_let_go() {
  const auto claimant = claimant_.lock();
  if (asking_) {
    asked_to_let_go_ = true;
  } else if (claimant) {
    claimant->asked_to_let_go();
  }
}

void Errand::tell_removed(Outcome outcome) {
  if (const auto told = take_on_removed()) told(std::move(outcome));
}

}  // namespace latchkey::recipes
