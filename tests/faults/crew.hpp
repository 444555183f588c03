#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "network.hpp"
#include "strike.hpp"
#include "support/child.hpp"
#include "support/fault_proxy.hpp"

namespace latchkey::faults {

struct CrewOptions {
  std::string program;                 ///< See worker.cpp.
  std::vector<std::string> addresses;  ///< Of the servers.
  std::chrono::milliseconds timeout{2'000};
  std::size_t size = 4;
  std::uint64_t seed = 0;
};

/// The clients as processes, each with links of its own to every server. Where the system allows it
/// every other one lives in a network of its own.
///
///     Crew crew(options, network);
///     crew.work(folder);
///     crew.strike(ClientFault::kKill, 100ms, random);
///     std::vector<std::string> troubles = crew.settle();
///
/// Thread safety: one thread at a time.
class Crew {
 public:
  Crew(CrewOptions options, const Network& network);

  /// Everybody contends from now on. The folder has a folder `histories` and the socket `store`.
  void work(std::filesystem::path folder);

  /// Does it to one of them, waits for its length, and undoes it. A client that was killed comes
  /// back as another process; the first half of them never is, and grows old. False: there was
  /// nothing that it could strike.
  [[nodiscard]] bool strike(ClientFault fault, std::chrono::milliseconds length,
                            base::Random& random);

  /// Everybody takes every lock once more and then does nothing, with open sessions. Returns who
  /// does not get there, and who has ended without being asked to.
  [[nodiscard]] std::vector<std::string> settle();
  /// Everybody closes its session and ends.
  [[nodiscard]] std::vector<std::string> leave();

  /// "w0" and so on.
  [[nodiscard]] std::vector<std::string> names() const;
  /// In the same order.
  [[nodiscard]] std::vector<pid_t> processes() const;

 private:
  struct Member {
    std::size_t number = 0;
    int starts = 0;
    bool own_network = false;
    std::string connect;
    std::vector<std::unique_ptr<test_support::FaultProxy>> links;
    std::unique_ptr<test_support::Child> process;
  };

  void add_links(Member& member) const;
  void launch(Member& member);
  void set_to_work(Member& member) const;
  [[nodiscard]] bool strike_link(ClientFault fault, Member& member,
                                 std::chrono::milliseconds length, base::Random& random) const;
  void strike_network(ClientFault fault, const Member& member,
                      std::chrono::milliseconds length) const;
  [[nodiscard]] Member& choose(ClientFault fault, base::Random& random);

  const CrewOptions options_;
  const Network& network_;
  base::Random seeds_;
  std::filesystem::path folder_;
  std::vector<Member> members_;
};

}  // namespace latchkey::faults
