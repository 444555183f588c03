#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "strike.hpp"

namespace latchkey::faults {

/// A network namespace of this process's own, from which clients in further ones are reached over
/// pairs of virtual interfaces. Nothing outside of these is touched, and all of it goes when the
/// processes do.
///
///     Network network = Network::enter();      // First thing in main(): it is for this thread
///     if (!network.means().namespaces) std::cout << network.why_not();   // and those it starts.
///     network.link(2, worker.pid());           // In there it is named Network::kInterface.
///     network.set_up(2, false);
///
/// Thread safety: one thread at a time.
class Network {
 public:
  static constexpr const char* kInterface = "latch0";

  /// Moves the calling thread into a new namespace if the system lets it; as root of a new user
  /// namespace if it is not root already.
  [[nodiscard]] static Network enter();

  [[nodiscard]] const Means& means() const { return means_; }
  /// Empty if everything can be done.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

  /// Ends of link `number`: ours and that of the process in its own namespace.
  [[nodiscard]] static std::string our_address(std::size_t number);
  [[nodiscard]] static std::string their_address(std::size_t number);

  /// Makes the link to a process that has a namespace of its own. The one to its predecessor is
  /// removed if it still stands. Throws std::runtime_error.
  void link(std::size_t number, pid_t process) const;
  void take_down(std::size_t number) const;
  void bring_up(std::size_t number) const;
  void lose_packets(std::size_t number) const;
  void lose_nothing(std::size_t number) const;

 private:
  Means means_;
  std::string why_not_;
};

}  // namespace latchkey::faults
