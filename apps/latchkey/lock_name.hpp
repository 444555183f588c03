#pragma once

#include <string>
#include <string_view>

#include "latchkey/result.hpp"

namespace latchkey::app {

/// The child of a lock that says that `latchkey once` has nothing left to do.
inline constexpr const char* kDoneMark = "done";

/// Where names live that are no paths.
inline constexpr const char* kLocksRoot = "/locks";

/// A name without a leading slash lives under /locks; with one it is the path as it stands.
/// Errors: kInvalidPath.
///
///     lock_path("backup");  // "/locks/backup"
[[nodiscard]] Result<std::string> lock_path(std::string_view name);

/// The shortest name that lock_path() turns into `path`.
///
///     lock_name("/locks/backup");  // "backup"
[[nodiscard]] std::string lock_name(std::string_view path);

}  // namespace latchkey::app
