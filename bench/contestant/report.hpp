#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace latchkey::bench {

using Clock = std::chrono::steady_clock;

[[nodiscard]] double seconds_since(Clock::time_point start);

/// Processor time of this process so far, user and system, in seconds.
[[nodiscard]] double processor_s();

/// Resident memory of this process now.
[[nodiscard]] long resident_kb();

/// Tells the driver that set-up and warm-up are over, and the measured part begins: it reads the
/// server's processor time and the proxy's counters at this moment.
void say_begin();

/// Waits until the driver says to go on.
void wait_for_go();

/// The one line of JSON that a contestant ends with.
///
///     Report report;
///     report.add("ops", 17);
///     report.add_latencies(latencies_ns);
///     report.print();
///
/// Thread safety: one thread at a time.
class Report {
 public:
  void add(const std::string& name, double value);
  void add(const std::string& name, const std::string& text);

  /// Adds "quantiles_us" at the points of docs/benchmarks.md, "samples", and sorts the argument.
  void add_latencies(std::vector<std::uint32_t>& latencies_ns);

  void print() const;

 private:
  void add_raw(const std::string& name, const std::string& json);

  std::string json_;
};

}  // namespace latchkey::bench
