#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::base {

/// getpid() without the system call. In a forked child the kernel has wiped what was remembered, so
/// it is right there too, which is the point of asking (H53). Thread safety: any thread.
[[nodiscard]] pid_t process_id() noexcept;

/// When a process began, in the kernel's ticks since the machine did: with its number it names a
/// process for good, since the next one with that number begins later. `process` is a number, or
/// "self". Nothing if there is no such process, or it is not ours to see.
/// Thread safety: any thread.
[[nodiscard]] std::optional<std::uint64_t> start_ticks(std::string_view process = "self");
/// The same out of the text of /proc/<number>/stat.
[[nodiscard]] std::optional<std::uint64_t> parse_start_ticks(std::string_view stat);

/// What a client says of itself in the place of the protocol version, where everybody else has a
/// zero: that its session is to end with its process, and which one that is: its number and when it
/// began. Never 0. Two that began in the same tick have different marks, and so have two of the
/// same number, unless they began 248 days apart to the tick.
///
///     request.protocol_version = process_mark(process_id(), *start_ticks());
[[nodiscard]] constexpr std::int32_t process_mark(pid_t process, std::uint64_t ticks) {
  constexpr std::uint32_t kOdd = 0x9E37'79B1;  // Spreads neighbouring numbers, and loses none.
  const std::uint32_t both =
      static_cast<std::uint32_t>(process) * kOdd + static_cast<std::uint32_t>(ticks);
  return static_cast<std::int32_t>(0x8000'0000U | (both & 0x7FFF'FFFFU));
}

}  // namespace latchkey::base
