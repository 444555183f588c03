#include "queue/delay_note.hpp"

#include "queue/lock_delay.hpp"

namespace latchkey::queue {
namespace {

constexpr std::string_view kNote = "\nlock_delay=";

/// Where the note begins, or the end.
std::size_t find_note(std::string_view data) {
  const std::size_t at = data.rfind(kNote);
  if (at == std::string_view::npos) return data.size();
  const std::string_view number = data.substr(at + kNote.size());
  const bool sound = !number.empty() && number.find_first_not_of("0123456789") == number.npos;
  return sound ? at : data.size();
}

}  // namespace

std::string with_delay_note(std::string data, std::chrono::milliseconds delay) {
  if (delay.count() > 0) data.append(kNote).append(std::to_string(delay.count()));
  return data;
}

bool has_delay_note(std::string_view data) { return find_note(data) < data.size(); }

std::string_view without_delay_note(std::string_view data) {
  return data.substr(0, find_note(data));
}

bool holds_if_first(std::string_view data, std::int64_t czxid, std::string_view mark) {
  return !has_delay_note(data) || mark == format_holder(czxid);
}

}  // namespace latchkey::queue
