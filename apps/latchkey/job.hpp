#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "keeper.hpp"

namespace latchkey::app {

/// How we were started, which the command has to find again: the signal mask, and the process group
/// that the shell knows. Take it before anything is changed.
struct Origin {
  sigset_t mask{};
  pid_t group = -1;
  bool ignores_pipe = false;  ///< SIGPIPE

  [[nodiscard]] static Origin now();
};

/// Of all processes with their parents, those that descend from `root`.
///
///     descendants_of(1, {{2, 1}, {3, 2}, {5, 4}});  // {2, 3}
[[nodiscard]] std::vector<pid_t> descendants_of(
    pid_t root, const std::vector<std::pair<pid_t, pid_t>>& processes);

/// The descendants of this process, without those that start_daemon() has started, on whosever
/// behalf: they have nothing to do with the command.
[[nodiscard]] std::vector<pid_t> contained_processes();

/// Sends `number` to each of `processes`, and, if `group` is not 0, to a process group that may
/// have some whom one look does not find.
void signal_processes(int number, const std::vector<pid_t>& processes, pid_t group);

/// The command as processes: a group of its own, in the foreground of the terminal if we were, and
/// killed by the kernel should this process be (H97). What leaves the group stays our descendant,
/// because orphans come to us (H96).
///
/// Not contained: our own daemons, whoever is adopted by another subreaper, started by a daemon on
/// the command's behalf, or, if this process is killed, what is not a direct child.
///
/// Thread safety: one thread, which has to be the main thread, because the kernel's parent-death
/// signal comes when the thread that forked ends.
class Job {
 public:
  /// `words` are what to run, `environment` is added to ours as "NAME=value".
  Job(std::vector<std::string> words, Origin origin);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Why there is no command: the exit code as a shell has it, 126 or 127, or 71.
  struct Failure {
    int code = 0;
    int error = 0;  ///< errno
  };
  /// Nothing: it is under way. Does not wait until the command has begun, which may take long, or
  /// never be the case if somebody stops it before; that it could not is told by reap().
  [[nodiscard]] std::optional<Failure> start(const std::vector<std::string>& environment);
  /// Behind the StartFailed that reap() has told.
  [[nodiscard]] const Failure& failure() const { return failure_; }
  /// For people: "it is a directory", rather than "Permission denied".
  [[nodiscard]] static std::string why(const std::string& word, int error);

  /// The command's process id, and that of its group.
  [[nodiscard]] pid_t group() const { return pid_; }
  void signal_group(int number) const;
  void signal_all(int number) const;

  /// What has happened to our processes since the last call.
  [[nodiscard]] std::vector<keeping::Event> reap();

  /// Whether the command had the terminal at any time.
  [[nodiscard]] bool was_in_foreground() const { return was_in_foreground_; }
  /// The terminal is with the group that the shell knows.
  [[nodiscard]] bool is_ours_to_give() const;
  /// And if so: to the command, unless it has no use for it.
  void give_terminal();
  /// It was stopped because it wants the terminal (SIGTTIN, SIGTTOU). True: it has it now, and can
  /// go on; otherwise it gets it as soon as it is ours to give.
  [[nodiscard]] bool claim_terminal();
  /// And back, if it is with the command.
  void take_terminal() const;

 private:
  /// The command's process has ended, and is told so.
  [[nodiscard]] keeping::Event end_of_leader(int status);
  /// The errno that kept it from becoming the command; 0: it did, or was killed before.
  [[nodiscard]] int take_report();

  const std::vector<std::string> words_;
  const Origin origin_;
  int terminal_ = -1;
  pid_t pid_ = -1;
  int report_ = -1;  ///< Gets an errno if exec fails.
  Failure failure_;
  bool leader_lives_ = false;  ///< As long as it does, nobody else can have the group's number.
  /// In a pipeline the others may: a pager behind us is stopped if it has no terminal. So a command
  /// that does not both read from it and write to it gets it only when it asks.
  bool wants_terminal_;
  bool was_in_foreground_ = false;
};

}  // namespace latchkey::app
