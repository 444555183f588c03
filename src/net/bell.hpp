#pragma once

#include "latchkey/deadline.hpp"

namespace latchkey::net {

/// How a thread waits for a socket and can be called away from it: ring() ends the wait that is
/// under way, or else the next one. Thread safety: ring() from any thread, the rest from its own.
class Bell {
 public:
  /// Made on first use, and made anew in a forked child, which shares its parent's descriptors.
  /// Null if there is no descriptor to be had.
  static Bell* of_this_thread();

  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring() const noexcept;
  /// Until the socket has something to read or is broken, the bell rings or the deadline passes; a
  /// signal may end it too.
  void wait(int socket, Deadline deadline) const noexcept;

 private:
  explicit Bell(int event) : event_(event) {}
  ~Bell();
  friend struct BellOfThread;

  const int event_;
};

}  // namespace latchkey::net
