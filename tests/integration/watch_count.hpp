#pragma once

#include <sstream>
#include <string>

#include "integration/session_fixture.hpp"

namespace latchkey::test_support {

/// How many watches of whatever kind the servers keep, for whichever session. wchc and wchp tell of
/// those on data only.
inline int watches_of_all(Service& service) {
  std::istringstream answer(service.word("mntr"));
  int count = 0;
  for (std::string line; std::getline(answer, line);) {
    constexpr std::string_view kKey = "zk_watch_count\t";
    if (line.starts_with(kKey)) count += std::stoi(line.substr(kKey.size()));
  }
  return count;
}

}  // namespace latchkey::test_support
