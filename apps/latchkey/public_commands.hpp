#pragma once

#include <vector>

#include <CLI/App.hpp>

namespace latchkey::app {

/// The subcommands that the help shows, in its order.
[[nodiscard]] inline std::vector<const CLI::App*> public_commands(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

}  // namespace latchkey::app
