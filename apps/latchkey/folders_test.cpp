#include "folders.hpp"

#include <gtest/gtest.h>

#include "storage/temp_folder.hpp"

namespace latchkey::app {
namespace {

TEST(Folders, WhatIsMissingIsMadeAndWhatIsThereStays) {
  const storage::TempFolder temp;
  const std::filesystem::path deep = temp.path() / "a" / "b" / "c";

  make_folders(deep);
  make_folders(deep / "");

  EXPECT_TRUE(std::filesystem::is_directory(deep));
  EXPECT_TRUE(std::filesystem::is_empty(deep));
}

TEST(Folders, WhatCannotBeMadeIsLeftToWhoeverGoesOnThere) {
  make_folders("/proc/latchkey/a");
  make_folders("");

  EXPECT_FALSE(std::filesystem::exists("/proc/latchkey"));
}

}  // namespace
}  // namespace latchkey::app
