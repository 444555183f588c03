#include "keeper.hpp"

#include <algorithm>
#include <utility>

#include "exit_code.hpp"

namespace latchkey::app::keeping {
namespace {

using std::chrono::milliseconds;

/// Whoever presses Ctrl-C while we wait is not kept longer by a server that does not answer.
constexpr milliseconds kLeavePatience(2'000);
/// What dies leaves children to us that were not found before; so once is not enough.
constexpr milliseconds kKillAgain(20);
constexpr milliseconds kLongestMargin(500);

bool ends_commands(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

/// Ctrl-C, Ctrl-\ and a terminal that goes.
bool is_of_terminals(int signal) {
  return signal == SIGINT || signal == SIGQUIT || signal == SIGHUP;
}

/// SIGSTOP is not among them: nobody but the command was meant.
bool stops_jobs(int signal) { return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU; }

Instant before(Instant at, Duration span) {
  return at == Instant::max() || at < Instant{} ? at : at - span;
}

Instant after(Instant at, Duration span) {
  return Instant::max() - at < span ? Instant::max() : at + span;
}

}  // namespace

int exit_code_of(Ending ending) { return ending.signal != 0 ? 128 + ending.signal : ending.code; }

Instant kill_at(const LeaseTimes& lease) {
  return before(lease.deadline, std::min<Duration>(kLongestMargin, lease.timeout / 20));
}

Instant stop_at(const LeaseTimes& lease, const Rules& rules) {
  const Duration grace = std::min(rules.kill_after, lease.timeout / 6);
  return std::min(kill_at(lease), std::max(lease.suspect_at, before(lease.deadline, grace)));
}

Actions Keeper::start() {
  contend();
  return std::exchange(actions_, {});
}

Actions Keeper::step(const Event& event, Instant now, const LeaseTimes& lease) {
  now_ = now;
  lease_ = lease;
  if (state_ == State::kDone) return {};
  // Before anything else: a command that was stopped must not go on without the lock.
  if (state_ == State::kRunning) check_lease();
  std::visit([this](const auto& what) { on(what); }, event);
  return std::exchange(actions_, {});
}

void Keeper::contend() {
  state_ = State::kWaiting;
  started_at_ = Instant::min();
  ending_.reset();
  failure_.reset();
  command_stopped_ = lost_ = false;
  asked_to_end_at_.reset();
  killed_at_.reset();
  if (job_stopped_) return;
  asked_ = true;
  actions_.emplace_back(Contend{});
}

void Keeper::leave(int code) {
  if (!asked_ || leaving_) return exit(leaving_.value_or(code));
  leaving_ = code;
  leave_by_ = after(now_, kLeavePatience);
  actions_.emplace_back(Withdraw{});
}

void Keeper::on(const Granted&) {
  if (state_ != State::kWaiting) return;
  asked_ = false;
  lost_ = now_ >= kill_at(lease_);  // We slept, or the machine did.
  if (lost_ && !leaving_) actions_.emplace_back(SayTooLate{});
  if (leaving_ || job_stopped_ || lost_) return release();
  state_ = State::kRunning;
  started_at_ = now_;
  actions_.emplace_back(Start{});
}

void Keeper::on(const Refused& event) {
  if (state_ == State::kWaiting) exit(leaving_.value_or(event.code));
}

void Keeper::on(const Signal& event) {
  const bool final = ends_commands(event.number);
  switch (state_) {
    case State::kWaiting: return leave(exit_code_of({-1, event.number}));
    case State::kRunning: break;
    case State::kHolding: ending_wanted_ = true; return release();
    case State::kReleasing: ending_wanted_ |= final; return;
    case State::kDone: return;
  }
  ending_wanted_ |= final;
  if (ending_) {
    actions_.emplace_back(SignalAll{event.number});
    if (final && !asked_to_end_at_) asked_to_end_at_ = now_;
    return;
  }
  actions_.emplace_back(SignalGroup{event.number});
  if (final) continue_command();
}

void Keeper::on(const Stop& event) {
  if (state_ == State::kRunning && !ending_) {
    actions_.emplace_back(SignalGroup{event.number});
    return;
  }
  job_stopped_ = true;
  actions_.emplace_back(StopFront{event.number});
}

void Keeper::on(const Continue&) {
  job_stopped_ = false;
  if (state_ == State::kWaiting && !asked_) contend();
  if (state_ != State::kRunning || ending_ || killed_at_) return;
  actions_.emplace_back(GiveTerminal{});
  continue_command();
}

void Keeper::on(const Lost&) {
  if (state_ != State::kRunning) return;
  const bool news = !std::exchange(lost_, true);
  if (rules_.on_lost == Rules::OnLost::kStop) {
    if (!killed_at_) kill_all();
  } else if (news) {
    actions_.emplace_back(Warn{});
  }
}

void Keeper::on(const Revoked&) {
  if (state_ != State::kRunning && state_ != State::kHolding) return;
  ending_wanted_ = true;
  if (state_ == State::kHolding) return release();
  if (!asked_to_end_at_) ask_to_end();
}

void Keeper::on(const FrontGone&) {
  front_gone_ = true;
  switch (state_) {
    case State::kWaiting: return leave(exit_code_of({-1, SIGKILL}));
    case State::kRunning: return kill_all();
    case State::kHolding: return release();
    case State::kReleasing:
    case State::kDone: return;
  }
}

void Keeper::on(const StartFailed& event) {
  if (state_ != State::kRunning) return;
  failure_ = event.code;
  release();
}

void Keeper::on(const CommandStopped& event) {
  if (state_ != State::kRunning || ending_) return;
  command_stopped_ = true;
  if (asked_to_end_at_) return continue_command();
  if (!stops_jobs(event.number)) return;
  job_stopped_ = true;
  actions_.emplace_back(StopFront{event.number});
}

void Keeper::on(const CommandEnded& event) {
  if (state_ != State::kRunning) return;
  ending_ = event.ending;
  if (event.had_terminal && is_of_terminals(event.ending.signal)) ending_wanted_ = true;
  if (ending_wanted_ && !asked_to_end_at_) ask_to_end();
}

void Keeper::on(const AllGone&) {
  if (state_ != State::kRunning || !ending_) return;
  const bool hurry = lost_ || ending_wanted_ || front_gone_;
  if (hurry || now_ >= after(started_at_, rules_.min_hold)) return release();
  state_ = State::kHolding;
}

void Keeper::on(const Released& event) {
  if (state_ != State::kReleasing) return;
  if (event.code && !failure_) failure_ = event.code;
  if (ends_after_this()) return exit(final_code());
  contend();
}

void Keeper::on(const Tick&) {
  if (state_ == State::kWaiting && leaving_ && now_ >= leave_by_) exit(*leaving_);
  if (state_ == State::kHolding && now_ >= after(started_at_, rules_.min_hold)) release();
}

void Keeper::check_lease() {
  if (killed_at_) {
    if (now_ >= after(*killed_at_, kKillAgain)) kill_all();
    return;
  }
  if (rules_.on_lost == Rules::OnLost::kStop && now_ >= kill_at(lease_)) {
    lost_ = true;
    return kill_all();
  }
  if (asked_to_end_at_) {
    if (now_ >= after(*asked_to_end_at_, rules_.kill_after)) kill_all();
    return;
  }
  if (rules_.on_lost == Rules::OnLost::kStop && now_ >= stop_at(lease_, rules_)) {
    lost_ = true;
    ask_to_end();
  }
}

void Keeper::ask_to_end() {
  asked_to_end_at_ = now_;
  actions_.emplace_back(SignalAll{rules_.stop_signal});
  continue_command();
}

void Keeper::continue_command() {
  if (!command_stopped_ || killed_at_) return;
  command_stopped_ = false;
  actions_.emplace_back(SignalGroup{SIGCONT});
}

void Keeper::kill_all() {
  killed_at_ = now_;
  actions_.emplace_back(SignalAll{SIGKILL});
}

void Keeper::release() {
  state_ = State::kReleasing;
  actions_.emplace_back(Release{});
}

void Keeper::exit(int code) {
  state_ = State::kDone;
  actions_.emplace_back(Exit{code});
}

bool Keeper::ends_after_this() const {
  if (leaving_ || failure_ || ending_wanted_ || front_gone_) return true;
  if (!ending_ && !lost_) return false;  // Its turn came while the job was stopped.
  return rules_.afterwards == Rules::Afterwards::kExit;
}

int Keeper::final_code() const {
  if (leaving_) return *leaving_;
  if (failure_) return *failure_;
  // Whoever lets a command run on has to have one.
  if (lost_ && (!ending_ || rules_.on_lost == Rules::OnLost::kStop)) return kLost;
  return exit_code_of(ending_.value_or(Ending{kOk, 0}));
}

Instant Keeper::wake_at(const LeaseTimes& lease) const {
  switch (state_) {
    case State::kWaiting: return leaving_ ? leave_by_ : Instant::max();
    case State::kHolding: return after(started_at_, rules_.min_hold);
    case State::kReleasing:
    case State::kDone: return Instant::max();
    case State::kRunning: break;
  }
  if (killed_at_) return after(*killed_at_, kKillAgain);
  const bool stops = rules_.on_lost == Rules::OnLost::kStop;
  const Instant by_lease = stops ? kill_at(lease) : Instant::max();
  if (asked_to_end_at_) return std::min(by_lease, after(*asked_to_end_at_, rules_.kill_after));
  return stops ? stop_at(lease, rules_) : Instant::max();
}

}  // namespace latchkey::app::keeping
