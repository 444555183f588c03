#include "base/process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace latchkey::base {
namespace {

TEST(StartTicks, AreTheTwentySecondFieldWhateverTheProgramIsCalled) {
  const std::string rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 99 100\n";

  EXPECT_EQ(parse_start_ticks("12 (plain)" + rest), 4'711U);
  EXPECT_EQ(parse_start_ticks("12 (odd) 7 (name))" + rest), 4'711U);
}

TEST(StartTicks, AreNotMadeUp) {
  EXPECT_EQ(parse_start_ticks(""), std::nullopt);
  EXPECT_EQ(parse_start_ticks("12 (cut) S 1 2 3"), std::nullopt);
  EXPECT_EQ(parse_start_ticks("12 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x"),
            std::nullopt);
  EXPECT_EQ(start_ticks("0"), std::nullopt);
}

TEST(StartTicks, OfOneselfAreThoseOfOnesNumber) {
  const auto self = start_ticks();

  ASSERT_TRUE(self);
  EXPECT_EQ(start_ticks(std::to_string(::getpid())), self);
}

TEST(ProcessId, H53_IsTheChildsOwnInAForkedChild) {
  ASSERT_EQ(process_id(), ::getpid());
  ASSERT_EQ(process_id(), ::getpid()) << "remembered";

  const pid_t child = ::fork();
  if (child == 0) {
    const bool right = process_id() == ::getpid();
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::_exit(right && process_id() == ::getpid() ? 0 : 1);
    int status = 0;
    ::waitpid(grandchild, &status, 0);
    ::_exit(right && status == 0 && process_id() == ::getpid() ? 0 : 1);
  }

  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(process_id(), ::getpid());
}

TEST(ProcessMark, IsNeverThatOfAnOrdinaryClient) {
  EXPECT_NE(process_mark(0, 0), 0);
  EXPECT_NE(process_mark(0, 0x8000'0000U), 0);
}

TEST(ProcessMark, TellsApartWhoBeganTogetherAndWhoHadTheSameNumber) {
  EXPECT_NE(process_mark(4'711, 1), process_mark(4'711, 2));
  EXPECT_NE(process_mark(4'711, 1), process_mark(4'712, 1));
  EXPECT_NE(process_mark(4'711, 2), process_mark(4'712, 1));
}

}  // namespace
}  // namespace latchkey::base
