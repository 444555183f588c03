#include "wire/jute.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "wire/test_bytes.hpp"

namespace latchkey::wire {
namespace {

enum class Colour : std::int32_t { kRed = 1, kBlue = -7 };

struct Point {
  std::int32_t x = 0;
  std::int64_t y = 0;
  template <class Self, class Archive>
  static void fields(Self& self, Archive& archive) {
    archive(self.x, self.y);
  }
};

/// The value read from all of `input`, or nothing if the reader objects or leaves bytes over.
template <class T>
std::optional<T> read(std::string_view input) {
  Reader reader(input);
  T value{};
  reader(value);
  if (!reader.done()) return std::nullopt;
  return value;
}

TEST(JuteWriter, WritesIntegersBigEndian) {
  EXPECT_EQ(hex(encoded(std::int32_t{0x01020304})), "01020304");
  EXPECT_EQ(hex(encoded(std::int64_t{0x0102030405060708})), "0102030405060708");
  EXPECT_EQ(hex(encoded(std::int32_t{-1})), "ffffffff");
  EXPECT_EQ(hex(encoded(std::numeric_limits<std::int64_t>::min())), "8000000000000000");
}

TEST(JuteWriter, WritesABooleanAsOneByteAndAnEnumAsFour) {
  EXPECT_EQ(hex(encoded(true, false)), "0100");
  EXPECT_EQ(hex(encoded(Colour::kRed, Colour::kBlue)), "00000001fffffff9");
}

TEST(JuteWriter, PutsLengthsBeforeStringsAndCountsBeforeVectors) {
  EXPECT_EQ(hex(encoded(std::string("abc"))), "00000003616263");
  EXPECT_EQ(hex(encoded(std::vector<std::string>{"a", ""})), "00000002000000016100000000");
  EXPECT_EQ(hex(encoded(std::vector<Point>{{1, 2}})), "00000001000000010000000000000002");
}

TEST(JuteWriter, AppendsToWhatIsThere) {
  std::string out = "kept";

  Writer writer(out);
  writer(std::int32_t{5});

  EXPECT_EQ(out, "kept" + bytes("00000005"));
}

TEST(JuteWriter, TellsNullFromEmpty) {
  EXPECT_EQ(hex(encoded(Buffer{})), "ffffffff");
  EXPECT_EQ(hex(encoded(Buffer{""})), "00000000");
}

TEST(JuteReader, TellsNullFromEmpty) {
  const auto null = read<Buffer>(bytes("ffffffff"));
  const auto empty = read<Buffer>(bytes("00000000"));

  ASSERT_TRUE(null && empty);
  EXPECT_FALSE(null->has_value());
  EXPECT_EQ(*empty, Buffer{""});
}

TEST(JuteReader, TakesANullStringOrVectorForAnEmptyOne) {
  EXPECT_EQ(read<std::string>(bytes("ffffffff")), "");
  EXPECT_EQ(read<std::vector<std::string>>(bytes("ffffffff")), std::vector<std::string>{});
}

TEST(JuteReader, TakesAnyByteButZeroForTrue) {
  EXPECT_EQ(read<bool>(bytes("00")), false);
  EXPECT_EQ(read<bool>(bytes("01")), true);
  EXPECT_EQ(read<bool>(bytes("ff")), true);
}

TEST(JuteReader, KeepsEnumeratorsItHasNoNameFor) {
  EXPECT_EQ(read<Colour>(bytes("80000000")), Colour{std::numeric_limits<std::int32_t>::min()});
}

TEST(JuteReader, KeepsEveryByteOfAString) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every.push_back(static_cast<char>(byte));

  EXPECT_EQ(read<std::string>(encoded(every)), every);
  EXPECT_EQ(read<Buffer>(encoded(Buffer{every})), Buffer{every});
}

TEST(JuteReader, ReadsTheExtremesOfEveryInteger) {
  using Small = std::numeric_limits<std::int32_t>;
  using Large = std::numeric_limits<std::int64_t>;

  for (const std::int32_t value : {Small::min(), -1, 0, 1, Small::max()}) {
    EXPECT_EQ(read<std::int32_t>(encoded(value)), value);
  }
  for (const std::int64_t value : {Large::min(), std::int64_t{-1}, Large::max()}) {
    EXPECT_EQ(read<std::int64_t>(encoded(value)), value);
  }
}

TEST(JuteReader, SaysWhatIsLeft) {
  const std::string input = bytes("00000001 0203");
  Reader reader(input);
  std::int32_t number = 0;

  reader(number);

  EXPECT_TRUE(reader.ok());
  EXPECT_FALSE(reader.done());
  EXPECT_EQ(reader.left(), 2U);
}

TEST(JuteReader, H89_RefusesNegativeLengthsOtherThanNull) {
  for (const char* length : {"fffffffe", "80000000", "ffff0000"}) {
    const std::string input = bytes(length) + std::string(64, 'x');

    EXPECT_EQ(read<std::string>(input), std::nullopt) << length;
    EXPECT_EQ(read<Buffer>(input), std::nullopt) << length;
    EXPECT_EQ(read<std::vector<std::string>>(input), std::nullopt) << length;
  }
}

TEST(JuteReader, H89_RefusesAStringLongerThanTheFrame) {
  EXPECT_EQ(read<std::string>(bytes("00000004 616263")), std::nullopt);
  EXPECT_EQ(read<std::string>(bytes("7fffffff 616263")), std::nullopt);
  EXPECT_EQ(read<Buffer>(bytes("00000001")), std::nullopt);
  EXPECT_EQ(read<Buffer>(bytes("7fffffff")), std::nullopt);
}

TEST(JuteReader, H89_RefusesACountThatTheFrameCannotHoldBeforeMakingRoomForIt) {
  for (const char* count : {"7fffffff", "40000000", "00000003"}) {
    const std::string input = bytes(count) + bytes("00000000 00000000 000000");
    Reader reader(input);
    std::vector<std::string> items;

    reader(items);

    EXPECT_FALSE(reader.ok()) << count;
    EXPECT_EQ(items.capacity(), 0U) << count;
  }
}

TEST(JuteReader, H89_AllocatesNoMoreThanAFixedMultipleOfTheFrame) {
  const std::string input = encoded(std::int32_t{250'000}) + std::string(1'000'000, '\0');
  Reader reader(input);
  std::vector<Point> items;

  reader(items);

  EXPECT_FALSE(reader.ok());
  EXPECT_LE(items.capacity(), input.size() / 4);
}

TEST(JuteReader, H65_StaysFailedAfterTheFirstFault) {
  const std::string input = bytes("fffffffe 00000001 00000001 61");
  Reader reader(input);
  std::string text = "before";
  std::int32_t number = 9;
  bool flag = true;
  std::vector<std::string> items{"before"};

  reader(text, number, flag, items);

  EXPECT_FALSE(reader.ok());
  EXPECT_FALSE(reader.done());
  EXPECT_EQ(reader.left(), 0U);
  EXPECT_EQ(text, "");
  EXPECT_EQ(number, 0);
  EXPECT_FALSE(flag);
  EXPECT_TRUE(items.empty());
}

TEST(JuteReader, H65_RefusesEveryPrefix) {
  const std::string whole =
      encoded(std::vector<Point>{{1, 2}, {3, 4}}, std::string("abc"), Buffer{"de"}, true);

  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string prefix = whole.substr(0, size);  // A copy, so that reading on is caught.
    Reader reader(prefix);
    std::vector<Point> points;
    std::string text;
    Buffer buffer;
    bool flag = false;

    reader(points, text, buffer, flag);

    EXPECT_FALSE(reader.ok()) << size;
  }
}

TEST(JuteReader, AStreamThatWasFailedByHandIsNotDone) {
  Reader reader("");
  ASSERT_TRUE(reader.done());

  reader.fail();

  EXPECT_FALSE(reader.ok());
  EXPECT_FALSE(reader.done());
}

}  // namespace
}  // namespace latchkey::wire
