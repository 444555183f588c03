#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "front.hpp"
#include "keeper.hpp"
#include "tenure.hpp"

namespace latchkey::app {

/// What running a command under a tenure needs to know.
struct KeepOptions {
  std::string command;             ///< "run", for messages: "latchkey run: ..."
  std::vector<std::string> words;  ///< What to run.
  keeping::Rules rules;
  /// Where the lock is, for a command that asks for it again (LATCHKEY_SERVICE); see
  /// waits_for_itself(). Empty: it may.
  std::string service;
  std::optional<int> status_fd;  ///< Gets one line of JSON in the end.
  bool verbose = false;
};

/// Runs a command while `make()` is held, and returns the exit code. The session is kept by a
/// process of its own, in which `make` is called; see stand_in_front().
int keep(const KeepOptions& options, const std::function<std::unique_ptr<Tenure>()>& make);

}  // namespace latchkey::app
