#pragma once

#include <cstdint>
#include <optional>

#include "latchkey/result.hpp"
#include "storage/files.hpp"

namespace latchkey::storage {

inline constexpr const char* kEpochName = "epoch";
inline constexpr const char* kHalfEpochName = "epoch.tmp";

/// The upper half of a zxid.
[[nodiscard]] inline std::int64_t epoch_of(std::int64_t zxid) { return zxid >> 32; }

/// The highest epoch whose zxids anybody may have seen, in a file of its own beside the journal. It
/// is written after the first entry of an epoch is durable and before anybody is told of it. So
/// a journal that ends in an earlier epoch has lost something; and where it is lost on purpose,
/// later zxids, and the fencing tokens that are made of them, still grow.
///
/// Nothing: there is no such file. Errors: kDamaged, kStorage.
[[nodiscard]] Result<std::optional<std::int64_t>> read_epoch(Files& files);
/// Returns when it is durable.
[[nodiscard]] Result<void> write_epoch(Files& files, std::int64_t epoch);

}  // namespace latchkey::storage
