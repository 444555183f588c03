#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "table.hpp"

/// What standard output is.
namespace latchkey::app {

[[nodiscard]] bool is_terminal();

/// In columns; 0 if it is no terminal, and lines may be as long as they like.
[[nodiscard]] std::size_t terminal_width();
/// In lines; 0 if it is no terminal.
[[nodiscard]] std::size_t terminal_height();

/// Only on a terminal that can, and not with NO_COLOR.
[[nodiscard]] Colour wanted_colour();

/// Writes lines and their ends, at once. False: nobody reads any more.
bool print_lines(const std::vector<std::string>& lines);

/// Milliseconds since 1970.
[[nodiscard]] std::int64_t wall_clock_ms();

}  // namespace latchkey::app
