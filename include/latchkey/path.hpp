#pragma once

#include <string>
#include <string_view>

#include "latchkey/export.hpp"
#include "latchkey/result.hpp"

namespace latchkey::inline v0 {

/// A node's path, checked when it is made by the same rules the server uses: it begins with `/`,
/// does not end with it, has no empty, `.` or `..` part and no character ZooKeeper refuses.
///
///     const Path path("/customers/" + customer);
///     if (!path.is_valid()) std::cerr << path.problem() << '\n';
///
/// A Path may be made from any text. Using one that is not valid gives Code::kInvalidPath with the
/// text and the reason, and sends nothing.
///
/// Thread safety: immutable.
class LATCHKEY_EXPORT Path {
 public:
  Path(std::string text);
  Path(std::string_view text) : Path(std::string(text)) {}
  Path(const char* text) : Path(std::string(text)) {}

  [[nodiscard]] bool is_valid() const noexcept { return problem_.empty(); }
  /// Why the path is refused: "a part is empty"; empty if it is not.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// Success, or the error every operation on this path would give.
  [[nodiscard]] Result<void> check() const;

  friend bool operator==(const Path& a, const Path& b) noexcept { return a.text_ == b.text_; }

 private:
  std::string text_;
  std::string problem_;
};

}  // namespace latchkey::inline v0
