#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "testing/process.hpp"

namespace latchkey::testing {

/// A connection of the simulated network. Never used twice.
using LinkId = std::uint64_t;

/// A server as the network sees it. Everything happens within events of its process.
/// Thread safety: one thread at a time.
class Server {
 public:
  Server(std::size_t index, Process& process) : index_(index), process_(process) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;

  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] Process& process() { return process_; }

  [[nodiscard]] virtual bool is_listening() const = 0;
  virtual void accepted(LinkId link) = 0;
  virtual void received(LinkId link, std::string_view bytes) = 0;
  virtual void hung_up(LinkId link) = 0;
  /// The process's clock was set: timers are to be computed anew.
  virtual void clock_changed() = 0;

 private:
  const std::size_t index_;
  Process& process_;
};

}  // namespace latchkey::testing
