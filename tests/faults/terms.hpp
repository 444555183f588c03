#pragma once

#include <array>
#include <cstdint>

#include "checker.hpp"

namespace latchkey::faults {

/// What the workers contend for, and what the checker holds them to.
struct Contended {
  const char* name;
  const char* path;
  std::int64_t capacity;
  Order order;
};

inline constexpr Contended kMutex{"mutex", "/faults/mutex", 1, Order::kByToken};
inline constexpr Contended kRw{"rw", "/faults/rw", 1'000, Order::kByToken};
inline constexpr Contended kSemaphore{"semaphore", "/faults/semaphore", 3, Order::kNone};
inline constexpr Contended kElection{"election", "/faults/election", 1, Order::kByToken};
inline constexpr std::array kAll{kMutex, kRw, kSemaphore, kElection};

/// A node whose data is a number, made before the workers start. Mutex holders count it up.
inline constexpr const char* kLedger = "/ledger";

/// Whether a holder writes to the fenced store.
enum class Fence { kTokens, kNone };

}  // namespace latchkey::faults
