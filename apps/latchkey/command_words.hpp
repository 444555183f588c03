#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace latchkey::app {

/// Cuts the command to run from the words of `latchkey run`, as flock has it: ours end at `--`, or
/// with the first word behind NAME that is no option. What follows is the command's own and never
/// taken for an option of ours.
///
///     words = {"backup", "-n", "rsync", "-a", "x", "y"};
///     take_command(run, words);  // {"rsync", "-a", "x", "y"}; words is {"backup", "-n"}
[[nodiscard]] std::vector<std::string> take_command(const CLI::App& app,
                                                    std::vector<std::string>& words);

}  // namespace latchkey::app
