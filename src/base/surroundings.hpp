#pragma once

#include <cstdint>
#include <string>

#include "latchkey/deadline.hpp"
#include "latchkey/export.hpp"

namespace latchkey::base {

/// What a process learns from the machine it runs on: time, luck, its own name. Everything that
/// asks the operating system for one of these asks here, so that a simulation can answer instead.
///
///     const SurroundingsScope scope(&mine);
///     BootClock::now();   // mine.now()
///     kernel_random();    // mine.random()
///
/// Only the calling thread is affected; in production nobody ever puts one in place.
/// Thread safety: one thread at a time.
class Surroundings {
 public:
  Surroundings() = default;
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

  [[nodiscard]] virtual Instant now() noexcept = 0;
  /// Milliseconds since 1970.
  [[nodiscard]] virtual std::int64_t wall_ms() noexcept = 0;
  [[nodiscard]] virtual std::uint64_t random() noexcept = 0;

 protected:
  ~Surroundings() = default;
};

/// The calling thread's; null: the operating system is asked. Visible, so that two libraries in one
/// program, each with this code inside, mean the same variable.
extern LATCHKEY_EXPORT thread_local constinit Surroundings* surroundings;

/// Puts one in place, or none, for as long as it lives. Thread safety: one thread at a time.
class SurroundingsScope {
 public:
  explicit SurroundingsScope(Surroundings* mine) noexcept : before_(surroundings) {
    surroundings = mine;
  }
  SurroundingsScope(const SurroundingsScope&) = delete;
  SurroundingsScope& operator=(const SurroundingsScope&) = delete;
  ~SurroundingsScope() { surroundings = before_; }

 private:
  Surroundings* const before_;
};

/// The wall clock, in milliseconds since 1970: for people to read, never to decide by.
[[nodiscard]] std::int64_t wall_ms() noexcept;

/// Who this process is, for people to read.
struct ProcessName {
  std::string host;
  std::int64_t pid = 0;
  std::string program;
};
[[nodiscard]] ProcessName process_name();

}  // namespace latchkey::base
