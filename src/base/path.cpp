#include "latchkey/path.hpp"

#include <utility>

#include "base/path_problem.hpp"

namespace latchkey::inline v0 {

Path::Path(std::string text) : text_(std::move(text)), problem_(base::path_problem(text_)) {}

Result<void> Path::check() const {
  if (is_valid()) return {};
  return Error(Code::kInvalidPath, "path \"" + text_ + "\": " + problem_);
}

}  // namespace latchkey::inline v0
