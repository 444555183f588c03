#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace latchkey::faults {

/// What a process has of the system while nobody asks anything of it.
struct Usage {
  pid_t process = 0;
  std::int64_t descriptors = 0;
  std::int64_t threads = 0;
  std::int64_t memory_kb = 0;  ///< Resident and its own: what comes from files is the kernel's.
};

/// From /proc. Throws std::runtime_error if there is no such process.
[[nodiscard]] Usage usage_of(pid_t process);
/// Of several as if they were one: the members of an ensemble, among whom clients move.
[[nodiscard]] Usage usage_of(std::span<const pid_t> processes);

/// How much more than at first is no leak.
struct Allowance {
  std::int64_t descriptors = 0;
  std::int64_t threads = 0;
  bool memory = true;  ///< Whether memory is looked at.
};

/// Nothing may be left over, not even one.
inline constexpr Allowance kClients{};
/// The journal has its next file open from when the present one is half full.
inline constexpr Allowance kServers{.descriptors = 1};
/// A Java machine starts threads and opens files of its own when it finds that it needs them, and
/// its heap is its own affair. What our clients may leave there are connections.
inline constexpr Allowance kApaches{.descriptors = 16, .threads = 32, .memory = false};

/// So many times at rest make up a process's idea of how much memory it needs: arenas, buffers and
/// stacks grow to what the worst moment wanted and stay there, and by then it has had such moments.
inline constexpr std::size_t kWarmUp = 4;
/// More than the most of the warm-up by this share, and by this much in any case, is a leak. Noise
/// has an end (another arena, a larger buffer, the MiB of zeros with which the journal fills its
/// next file); a leak has none and comes to any bound in a long run: it is wide rather than clever.
inline constexpr double kMemoryShare = 0.25;
inline constexpr std::int64_t kMemoryFloorKb = 2'048;

/// What the last of the readings has too much of, "descriptors grew from 14 to 17"; empty: nothing.
/// Readings are of one role, in order, each at rest. Descriptors and threads are held against the
/// first, whichever process had them: they are decided by what is open. Memory is held against the
/// warm-up of the same process.
/// Thread safety: a function of its arguments.
[[nodiscard]] std::string grown(std::span<const Usage> readings, const Allowance& allowance);

/// Readings of every role, by its name.
using Soak = std::map<std::string, std::vector<Usage>>;

/// The first and the last of each: "server 14 > 14 descriptors, 5 > 5 threads, 1004 > 1120 KiB;
/// ...".
[[nodiscard]] std::string to_text(const Soak& soak);

}  // namespace latchkey::faults
