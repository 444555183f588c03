#include "environment.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace latchkey::app {

Environment environment() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  Environment found;
  found.connect = variable("LATCHKEY_CONNECT");
  found.config = variable("LATCHKEY_CONFIG");
  found.config_home = variable("XDG_CONFIG_HOME");
  found.state_home = variable("XDG_STATE_HOME");
  found.runtime_dir = variable("XDG_RUNTIME_DIR");
  found.service_state = variable("STATE_DIRECTORY");
  found.home = variable("HOME");
  found.user = ::geteuid();
  if (found.home.empty()) {
    const passwd* user = ::getpwuid(found.user);
    if (user != nullptr) found.home = user->pw_dir;
  }
  return found;
}

}  // namespace latchkey::app
