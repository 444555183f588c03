#include "lock_name.hpp"

#include <fmt/core.h>

#include "latchkey/path.hpp"

namespace latchkey::app {

Result<std::string> lock_path(std::string_view name) {
  if (name.empty()) return Error(Code::kInvalidPath, "the name of the lock is empty");
  std::string path(name);
  if (!name.starts_with('/')) path.insert(0, std::string(kLocksRoot) + "/");
  const Path checked(path);
  if (checked.is_valid()) return path;
  return Error(Code::kInvalidPath,
               fmt::format("\"{}\" is no name for a lock: {}", name, checked.problem()));
}

std::string lock_name(std::string_view path) {
  const std::string root = std::string(kLocksRoot) + "/";
  const bool inside = path.starts_with(root) && path.size() > root.size();
  return std::string(inside ? path.substr(root.size()) : path);
}

}  // namespace latchkey::app
