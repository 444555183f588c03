#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <vector>

#include "job.hpp"

namespace latchkey::app {

/// Between the process that the shell sees and the one that keeps the session.
/// Thread safety: one thread at a time.
class Channel {
 public:
  struct Message {
    enum class Kind : int {
      // To the keeper.
      kSignal,
      kStop,
      kContinue,
      // To the front.
      kStarted,   ///< The command is under way; the value is its process group.
      kEnded,     ///< It has ended: the group's number is nobody's, or somebody else's.
      kStopJob,   ///< The value is the signal that stopped the command.
      kEndBy,     ///< End by this signal in the end, as the terminal meant it.
      kEndJobBy,  ///< The same, and let it come to the whole job: only the command has had it.
    };
    Kind kind;
    int value = 0;
  };

  explicit Channel(int fd) : fd_(fd) {}

  [[nodiscard]] int fd() const { return fd_; }
  void send(Message message) const;

  enum class State { kOpen, kClosed };
  /// Appends what has come.
  State receive(std::vector<Message>& messages) const;

 private:
  int fd_;
};

/// The signals that are passed on, and those of job control, SIGCHLD included. What was ignored
/// when we were started stays so, for us and for the command: nohup, or a shell's background job.
[[nodiscard]] sigset_t watched_signals();

/// Runs `keep` in a process of its own and stands in front of it: the shell sees this one, stops
/// it, continues it and gets its exit code, while the other keeps the session whatever happens to
/// the job (H98). Signals are passed on. Returns the exit code.
///
///     return stand_in_front([&](Channel channel, const Origin& origin) { return keep(channel); });
///
/// Should the keeper be killed, everything it ran is killed too, and the answer is kLost; should
/// the front be killed, the keeper finds the channel closed. Call it from the main thread, before
/// there are others.
int stand_in_front(const std::function<int(Channel, const Origin&)>& keep);

}  // namespace latchkey::app
