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
/// zero: that its session is to end with its process, and when that began. Never 0.
///
///     request.protocol_version = process_mark(*start_ticks());
[[nodiscard]] constexpr std::int32_t process_mark(std::uint64_t ticks) {
  return static_cast<std::int32_t>(0x8000'0000U | static_cast<std::uint32_t>(ticks & 0x7FFF'FFFFU));
}

}  // namespace latchkey::base
