#include "history.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace latchkey::faults {

namespace {

constexpr std::array<std::pair<What, std::string_view>, 12> kNames{{
    {What::kWant, "want"},
    {What::kGranted, "granted"},
    {What::kFailed, "failed"},
    {What::kSilent, "silent"},
    {What::kHolds, "holds"},
    {What::kLost, "lost"},
    {What::kReleased, "released"},
    {What::kWrote, "wrote"},
    {What::kRefused, "refused"},
    {What::kCounted, "counted"},
    {What::kAccepted, "accepted"},
    {What::kEnded, "ended"},
}};

std::string_view take_word(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

template <class Number>
bool parse(std::string_view word, Number& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

}  // namespace

std::string_view name(What what) {
  for (const auto& [known, text] : kNames) {
    if (known == what) return text;
  }
  return "unknown";
}

std::int64_t now_ns() { return BootClock::now().time_since_epoch().count(); }

std::string to_line(const Event& event) {
  std::string line = std::to_string(event.at_ns) + ' ' + event.who + ' ' +
                     std::to_string(event.operation) + ' ' + event.lock + ' ';
  line.append(name(event.what)).append(" ").append(std::to_string(event.number));
  return line + ' ' + event.text + '\n';
}

std::optional<Event> from_line(std::string_view line) {
  Event event;
  if (!parse(take_word(line), event.at_ns)) return std::nullopt;
  event.who = take_word(line);
  if (!parse(take_word(line), event.operation)) return std::nullopt;
  event.lock = take_word(line);
  const std::string_view what = take_word(line);
  const auto* const known = std::find_if(kNames.begin(), kNames.end(),
                                         [&](const auto& entry) { return entry.second == what; });
  if (known == kNames.end()) return std::nullopt;
  event.what = known->first;
  if (!parse(take_word(line), event.number) || line.empty()) return std::nullopt;
  event.text = line;
  return event;
}

HistoryWriter::HistoryWriter(const std::filesystem::path& file)
    : file_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!file_) throw std::system_error(errno, std::generic_category(), "open " + file.string());
}

void HistoryWriter::add(const Event& event) const {
  const std::string line = to_line(event);
  if (::write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::system_error(errno, std::generic_category(), "append to a history");
  }
}

std::vector<Event> read_histories(const std::filesystem::path& folder) {
  std::vector<Event> events;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::string_view rest = text;
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      std::optional<Event> event = from_line(rest.substr(0, end));
      if (!event) {
        throw std::runtime_error(entry.path().string() +
                                 ": not a line of a history: " + std::string(rest.substr(0, end)));
      }
      events.push_back(std::move(*event));
      rest.remove_prefix(end + 1);
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.at_ns < b.at_ns; });
  return events;
}

}  // namespace latchkey::faults
