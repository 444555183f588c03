#include "signals.hpp"

#include <csignal>

namespace latchkey::app {

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace latchkey::app
