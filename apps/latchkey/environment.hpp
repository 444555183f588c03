#pragma once

#include <sys/types.h>

#include <string>

namespace latchkey::app {

/// What the surroundings say; an empty text is one that is not set.
struct Environment {
  std::string connect;        ///< LATCHKEY_CONNECT
  std::string config;         ///< LATCHKEY_CONFIG
  std::string config_home;    ///< XDG_CONFIG_HOME
  std::string state_home;     ///< XDG_STATE_HOME
  std::string runtime_dir;    ///< XDG_RUNTIME_DIR
  std::string service_state;  ///< STATE_DIRECTORY, which systemd gives a service of its own.
  std::string home;
  uid_t user = 0;
};

/// What they say to this process.
[[nodiscard]] Environment environment();

}  // namespace latchkey::app
