#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "scenario/script.hpp"

// Each .txt beside this file is one scenario. With LATCHKEY_REWRITE=1 in the environment the
// expected transcripts are replaced by what happens now: read the difference before you keep it.

namespace latchkey::mini {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> all_scenarios() {
  std::vector<fs::path> paths;
  for (const auto& file : fs::directory_iterator(LATCHKEY_SCENARIO_DIR)) {
    if (file.path().extension() == ".txt" && file.path().filename() != "CMakeLists.txt") {
      paths.push_back(file.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class Scenario : public testing::TestWithParam<fs::path> {};

TEST_P(Scenario, GoesAsWritten) {
  const std::string before = read_file(GetParam());
  std::vector<Block> blocks = parse_blocks(before);
  Script script;

  for (Block& block : blocks) {
    block.expected.clear();
    for (const std::string& command : block.commands) {
      for (std::string& line : script.run(command)) block.expected.push_back(std::move(line));
    }
  }

  const std::string after = format_blocks(blocks);
  if (std::getenv("LATCHKEY_REWRITE")) {
    std::ofstream(GetParam()) << after;
  } else {
    EXPECT_EQ(after, before);
  }
  EXPECT_EQ(after.find("BROKEN"), std::string::npos);
  EXPECT_EQ(after.find("what is \""), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Files, Scenario, testing::ValuesIn(all_scenarios()), [](const auto& one) {
  std::string name = one.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace latchkey::mini
