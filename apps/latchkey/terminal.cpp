#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace latchkey::app {
namespace {

winsize size_of_terminal() {
  winsize size{};
  if (is_terminal()) ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  return size;
}

}  // namespace

bool is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

std::size_t terminal_width() {
  constexpr std::size_t kUsual = 80;
  const std::size_t columns = size_of_terminal().ws_col;
  return is_terminal() && columns == 0 ? kUsual : columns;
}

std::size_t terminal_height() {
  constexpr std::size_t kUsual = 24;
  const std::size_t lines = size_of_terminal().ws_row;
  return is_terminal() && lines == 0 ? kUsual : lines;
}

Colour wanted_colour() {
  const char* no = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  const bool refused = no != nullptr && *no != '\0';
  const bool dumb = kind == nullptr || std::string_view(kind) == "dumb";
  return is_terminal() && !refused && !dumb ? Colour::kYes : Colour::kNo;
}

bool print_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

std::int64_t wall_clock_ms() {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace latchkey::app
