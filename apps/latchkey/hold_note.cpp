#include "hold_note.hpp"

#include <array>
#include <ctime>

namespace latchkey::app {
namespace {

constexpr std::string_view kHead = "(hold: ";
constexpr std::string_view kMiddle = " until ";

}  // namespace

std::string format_hold(const HoldNote& note) {
  return note.reason + (note.reason.empty() ? "" : " ") + std::string(kHead) + note.owner +
         std::string(kMiddle) + note.until + ")";
}

std::optional<HoldNote> parse_hold(std::string_view text) {
  // From the right: the reason is anybody's text.
  const std::size_t head = text.rfind(kHead);
  if (head == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  std::string_view inside = text.substr(head + kHead.size());
  inside.remove_suffix(1);
  const std::size_t middle = inside.rfind(kMiddle);
  if (middle == std::string_view::npos) return std::nullopt;
  std::string_view reason = text.substr(0, head);
  if (reason.ends_with(' ')) reason.remove_suffix(1);
  return HoldNote{std::string(reason), std::string(inside.substr(0, middle)),
                  std::string(inside.substr(middle + kMiddle.size()))};
}

std::string utc_text(std::int64_t ms) {
  const auto seconds = static_cast<std::time_t>(ms / 1'000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

}  // namespace latchkey::app
