#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::tree {

/// The text of a quota node, "count=4,bytes=5=;byteHardLimit=10": numbers under names, written the
/// way Apache writes them so that its tools read it back, and read as leniently as Apache reads
/// them.
///
///     auto limits = QuotaText::parse("bytes=10;count=3");
///     limits->get("count");           // 3
///     limits->get("countHardLimit");  // -1
///     limits->text();                 // "count=3,bytes=10"
///
/// It does not know which names have a meaning. Thread safety: one thread at a time.
class QuotaText {
 public:
  /// Pairs may come in any order, separated by any run of ',' and ';'; of two with one name the
  /// later counts. Nothing if the text is not of that form; the empty text is.
  [[nodiscard]] static std::optional<QuotaText> parse(std::string_view text);

  /// -1 if the name is not there.
  [[nodiscard]] std::int64_t get(std::string_view name) const;
  void set(std::string_view name, std::int64_t value);
  [[nodiscard]] std::string text() const;

 private:
  std::map<std::string, std::int64_t, std::less<>> values_;
};

inline constexpr std::string_view kQuotaRoot = "/zookeeper/quota";
inline constexpr std::string_view kQuotaLimits = "zookeeper_limits";
inline constexpr std::string_view kQuotaStats = "zookeeper_stats";

}  // namespace latchkey::tree
