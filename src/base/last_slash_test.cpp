#include "base/last_slash.hpp"

#include <gtest/gtest.h>

namespace latchkey::base {
namespace {

TEST(LastSlash, IsWhereRfindFindsIt) {
  for (const std::string_view path :
       {"", "/", "a", "/a", "a/", "/a/b", "//", "/locks/_c_1-lock-0000000001"}) {
    EXPECT_EQ(last_slash(path), path.rfind('/')) << path;
  }
}

TEST(LastSlash, LooksNoFurtherThanTheText) {
  const std::string_view whole = "/a/b/c";

  EXPECT_EQ(last_slash(whole.substr(0, 4)), 2U);
  EXPECT_EQ(last_slash(whole.substr(1, 1)), std::string_view::npos);
}

}  // namespace
}  // namespace latchkey::base
