#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "latchkey/result.hpp"
#include "process.hpp"

namespace latchkey::app {

/// An Apache ZooKeeper for as long as a demonstration takes: own temporary folder, free loopback
/// port, gone with this object. Needs the distribution's packages of packages.txt.
/// Thread safety: one thread at a time.
class Apache {
 public:
  /// Starts the server and waits until it grants sessions; it takes a second or two.
  /// Errors: kUnreachable, with the end of its log.
  static Result<Apache> start();

  [[nodiscard]] std::string connect_string() const;

  Apache(Apache&& other) noexcept = default;
  ~Apache();

 private:
  Apache(std::filesystem::path folder, int port, Process process);

  std::filesystem::path folder_;
  int port_;
  Process process_;
};

}  // namespace latchkey::app
