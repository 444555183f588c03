#pragma once

#include <csignal>
#include <optional>
#include <variant>
#include <vector>

#include "latchkey/deadline.hpp"

/// What goes into a Keeper and what comes out of it.
namespace latchkey::app::keeping {

/// How a process ended: by itself with a code, or by a signal.
struct Ending {
  int code = -1;
  int signal = 0;

  friend bool operator==(const Ending&, const Ending&) = default;
};

/// 128+n for signal n, as shells have it.
[[nodiscard]] int exit_code_of(Ending ending);

// What a keeper is told.

/// The lock is ours. Answers Contend.
struct Granted {};
/// It is not to be had; `code` is what to exit with. Answers Contend.
struct Refused {
  int code;
};
/// A signal that was meant for the command or for us.
struct Signal {
  int number;
};
/// The job is to be stopped: Ctrl-Z while the terminal is not the command's, or kill -TSTP.
struct Stop {
  int number;
};
/// The job goes on: fg, bg, SIGCONT.
struct Continue {};
/// Somebody else may hold the lock.
struct Lost {};
/// Somebody else wants the lock and asks for it.
struct Revoked {};
/// Whoever started us is gone, killed so that it could not say a word.
struct FrontGone {};
struct StartFailed {
  int code;
};
struct CommandStopped {
  int number;
};
struct CommandEnded {
  Ending ending;
  bool had_terminal = false;  ///< So the terminal's signals came to it and not to us.
};
/// No process of the command is left, descendants included.
struct AllGone {};
/// Answers Release; with a code if letting go did not end well.
struct Released {
  std::optional<int> code;
};
/// The time of wake_at() has come.
struct Tick {};

using Event = std::variant<Granted, Refused, Signal, Stop, Continue, Lost, Revoked, FrontGone,
                           StartFailed, CommandStopped, CommandEnded, AllGone, Released, Tick>;

// What a keeper wants done.

/// Ask for the lock. Answered by Granted or Refused.
struct Contend {};
/// Stop asking. The answer still comes.
struct Withdraw {};
/// Run the command. Answered by StartFailed, or by CommandEnded and AllGone.
struct Start {};
/// To the command's process group.
struct SignalGroup {
  int number;
};
/// To every process of the command that can be found.
struct SignalAll {
  int number;
};
/// The terminal to the command, if it is ours to give.
struct GiveTerminal {};
/// Let the shell see a stopped job.
struct StopFront {
  int number;
};
/// Say that the lock is lost and the command runs on.
struct Warn {};
/// Say that the lock came when it was as good as lost again, and nothing was run.
struct SayTooLate {};
/// Let go of the lock. Answered by Released.
struct Release {};
struct Exit {
  int code;
};

using Action = std::variant<Contend, Withdraw, Start, SignalGroup, SignalAll, GiveTerminal,
                            StopFront, Warn, SayTooLate, Release, Exit>;
using Actions = std::vector<Action>;

/// What the session knows of the lease at this moment. Every answered heartbeat moves it on.
struct LeaseTimes {
  Instant suspect_at = Instant::max();
  Instant deadline = Instant::max();
  Duration timeout = Duration::max();  ///< Of the session.
};

struct Rules {
  enum class OnLost { kStop, kWarn };
  enum class Afterwards { kExit, kContendAgain };

  int stop_signal = SIGTERM;
  Duration kill_after = std::chrono::seconds(5);
  Duration min_hold{0};
  OnLost on_lost = OnLost::kStop;
  Afterwards afterwards = Afterwards::kExit;
};

/// From when on the command is asked to end, if no word comes from the server: `kill_after` before
/// the lease runs out, but no more than a sixth of the time-out, or every short interruption would
/// end the command.
[[nodiscard]] Instant stop_at(const LeaseTimes& lease, const Rules& rules);
/// From when on it is killed: early enough to be gone when the lease runs out.
[[nodiscard]] Instant kill_at(const LeaseTimes& lease);

/// What becomes of a command that runs while a lock is held: when it is started, who is sent which
/// signal, when the lock is let go of, and how we exit.
///
///     waiting ──Granted──► running ──AllGone──► holding ──► releasing ──► done
///        ▲                                     (min_hold)      │
///        └──────────────────── Afterwards::kContendAgain ◄─────┘
///
/// - Before the grant a signal ends us, with the place in the queue given up. After it, signals are
///   passed on once and the lock is kept until the last process of the command is gone (H99, H101).
/// - When the lease nears its end the command is asked to end, then killed, before the lock can
///   pass to another host (H95); a command that is stopped is killed before it could go on (H98).
/// - Asked for the lock by somebody else, it stops the command and lets go; the code to exit with
/// is
///   the command's, as after any other signal.
/// - A job that is stopped while it waits keeps its place; should its turn come, it passes.
///
/// No I/O: time and lease are arguments. Thread safety: one thread at a time.
class Keeper {
 public:
  explicit Keeper(Rules rules) : rules_(rules) {}

  /// The first one: asks for the lock.
  [[nodiscard]] Actions start();
  [[nodiscard]] Actions step(const Event& event, Instant now, const LeaseTimes& lease);

  /// When to step with a Tick, unless something else happens before.
  [[nodiscard]] Instant wake_at(const LeaseTimes& lease) const;

  /// The lock was lost, or about to be, while the command ran.
  [[nodiscard]] bool is_lost() const { return lost_; }
  /// How the command ended, once it has.
  [[nodiscard]] const std::optional<Ending>& ending() const { return ending_; }

 private:
  enum class State { kWaiting, kRunning, kHolding, kReleasing, kDone };

  void on(const Granted& event);
  void on(const Refused& event);
  void on(const Signal& event);
  void on(const Stop& event);
  void on(const Continue& event);
  void on(const Lost& event);
  void on(const Revoked& event);
  void on(const FrontGone& event);
  void on(const StartFailed& event);
  void on(const CommandStopped& event);
  void on(const CommandEnded& event);
  void on(const AllGone& event);
  void on(const Released& event);
  void on(const Tick& event);

  void contend();
  void leave(int code);
  void check_lease();
  void ask_to_end();
  void continue_command();
  void kill_all();
  void release();
  void exit(int code);
  [[nodiscard]] int final_code() const;
  [[nodiscard]] bool ends_after_this() const;

  const Rules rules_;
  Actions actions_;
  Instant now_ = Instant::min();
  LeaseTimes lease_;

  State state_ = State::kWaiting;
  bool asked_ = false;          ///< Contend has not been answered.
  bool job_stopped_ = false;    ///< As the shell sees us.
  std::optional<int> leaving_;  ///< Not to run any more; the code to exit with.
  Instant leave_by_ = Instant::max();
  bool ending_wanted_ = false;  ///< Somebody has asked the command to end.
  bool front_gone_ = false;

  // Of one hold.
  Instant started_at_ = Instant::min();
  std::optional<Ending> ending_;
  std::optional<int> failure_;
  bool command_stopped_ = false;
  bool lost_ = false;
  std::optional<Instant> asked_to_end_at_;
  std::optional<Instant> killed_at_;
};

}  // namespace latchkey::app::keeping
