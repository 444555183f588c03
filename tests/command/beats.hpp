#pragma once

#include <fstream>
#include <string>

namespace latchkey::test_support {

/// When a `beat` began and when it was last seen alive, in nanoseconds of one clock; 0: not yet.
struct Beats {
  long long first = 0;
  long long last = 0;
};

[[nodiscard]] inline Beats beats_in(const std::string& file) {
  std::ifstream lines(file);
  Beats beats;
  for (long long at = 0; lines >> at; beats.last = at) {
    if (beats.first == 0) beats.first = at;
  }
  return beats;
}

}  // namespace latchkey::test_support
