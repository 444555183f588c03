#include "latchkey/path.hpp"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace latchkey {
namespace {

/// `point` in UTF-8, whether or not it is a legal one.
std::string utf8(std::uint32_t point) {
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80U | ((point >> shift) & 0x3FU));
  };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0U | point >> 6U), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0U | point >> 12U), tail(6), tail(0)};
  return {static_cast<char>(0xF0U | point >> 18U), tail(12), tail(6), tail(0)};
}

TEST(Path, H41_WhatTheServerTakes) {
  for (const char* text : {"/", "/a", "/a/b", "/a b", "/.a", "/...", "/a.", "/a..b", "/..a", "/-",
                           "/zookeeper/quota", "/a\\b", "/\"", "/%20", "/\xC3\xA4"}) {
    EXPECT_TRUE(Path(text).is_valid()) << text;
    EXPECT_TRUE(Path(text).check()) << text;
  }
}

TEST(Path, H41_WhatTheServerRefuses) {
  for (const char* text :
       {"", "a", "a/b", "//", "/a/", "//a", "/a//b", "/.", "/..", "/./a", "/../a", "/a/.", "/a/..",
        "/a/./b", "/a/../b", " /a", "/a\n", "/\x7f", "/\x01"}) {
    const Path path(text);
    EXPECT_FALSE(path.is_valid()) << text;
    EXPECT_NE(path.problem(), "") << text;
    const auto checked = path.check();
    ASSERT_FALSE(checked) << text;
    EXPECT_EQ(checked.error().code(), Code::kInvalidPath) << text;
  }
  EXPECT_FALSE(Path(std::string("/a\0b", 4)).is_valid());
}

TEST(Path, H41_TheRangesOfApachesPathUtils) {
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point == '/' || point == '.') continue;
    const bool refused = point <= 0x1F || (point >= 0x7F && point <= 0x9F) ||
                         (point >= 0xD800 && point <= 0xF8FF) || point >= 0xFFF0;
    // A long walk: every edge and its neighbours, and a sample of the rest.
    const bool edge = point < 0x100 || (point >= 0xD7F0 && point <= 0xD810) ||
                      (point >= 0xF8F0 && point <= 0xF910) || (point >= 0xFFE0 && point <= 0x10010);
    if (!edge && point % 97 != 0) continue;
    EXPECT_EQ(Path("/a" + utf8(point) + "b").is_valid(), !refused) << std::hex << point;
  }
}

TEST(Path, H41_BytesThatAreNotUtf8AreRefused) {
  for (const char* text :
       {"/\x80", "/\xBF", "/\xC0\x80", "/\xC1\xBF", "/\xC3", "/\xC3(", "/\xE2\x82", "/\xE2(\xA1",
        "/\xE0\x80\x80", "/\xE0\x9F\xBF", "/\xF0\x80\x80\x80", "/\xF5\x80\x80\x80", "/\xFE",
        "/\xFF", "/\xF4\x90\x80\x80"}) {
    EXPECT_FALSE(Path(text).is_valid()) << testing::PrintToString(text);
  }
}

TEST(Path, KeepsItsTextAndComparesByIt) {
  EXPECT_EQ(Path("/a").text(), "/a");
  EXPECT_EQ(Path("bad").text(), "bad");
  EXPECT_EQ(Path("/a"), Path(std::string("/a")));
}

TEST(Path, ALongOneIsAPath) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "/part";

  EXPECT_TRUE(Path(text).is_valid());
}

}  // namespace
}  // namespace latchkey
