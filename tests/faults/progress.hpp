#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace latchkey::faults {

/// What a run is doing, for the line that is printed every few seconds and, with the times of the
/// histories, for whoever reads those. Thread safety: any thread.
class Progress {
 public:
  /// Who strikes: one of the two that do so at the same time.
  enum class Side { kClients, kServers };

  /// `log` gets a line for every beginning and every end.
  explicit Progress(const std::filesystem::path& log) : log_(log) {}

  void begin(Side side, std::string_view fault);
  /// Whether it met anybody: a cut needs a connection, a lost reply a reply.
  void end(Side side, bool struck);

  /// How often each fault has struck.
  [[nodiscard]] std::map<std::string, int> faults() const;
  /// "kill-leader, cut", or "none".
  [[nodiscard]] std::string present() const;

 private:
  mutable std::mutex mutex_;
  std::ofstream log_;
  std::map<std::string, int> faults_;
  std::map<Side, std::string> present_;
};

/// Counts the grants in the histories of a folder while they are being written, each time from
/// where it stopped. Thread safety: one thread at a time.
class GrantCounter {
 public:
  explicit GrantCounter(std::filesystem::path folder) : folder_(std::move(folder)) {}
  [[nodiscard]] std::uint64_t count();

 private:
  const std::filesystem::path folder_;
  std::map<std::string, std::streamoff> read_;
  std::uint64_t grants_ = 0;
};

}  // namespace latchkey::faults
