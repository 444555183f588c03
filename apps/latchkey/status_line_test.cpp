#include "status_line.hpp"

#include <gtest/gtest.h>

namespace latchkey::app {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart = Instant(100s);

/// A command that held the lock from the second second to the fifth.
Status held() {
  Status status;
  status.lock = "/locks/a";
  status.node = "/locks/a/n";
  status.token = "42";
  status.began = kStart;
  status.granted = kStart + 2s;
  status.ended = kStart + 5s;
  return status;
}

TEST(StatusLine, TellsACommandsOwnCodeFromOurs) {
  Status status = held();
  status.code = 75;
  status.ending = keeping::Ending{75, 0};

  EXPECT_EQ(format_status(status),
            R"({"outcome":"ended","exit":75,"lock":"/locks/a","node":"/locks/a/n","token":"42",)"
            R"("code":75,"waited_ms":2000,"held_ms":3000})");
  status.lost = true;
  EXPECT_TRUE(format_status(status).starts_with(R"({"outcome":"lost","exit":75)"));
}

TEST(StatusLine, NamesTheSignalThatEndedTheCommand) {
  Status status = held();
  status.code = 137;
  status.ending = keeping::Ending{-1, 9};

  EXPECT_NE(format_status(status).find(R"("signal":9)"), std::string::npos);
  EXPECT_EQ(format_status(status).find(R"("code")"), std::string::npos);
}

TEST(StatusLine, WithoutACommandSaysWhyThereWasNone) {
  Status started = held();
  started.code = 127;
  EXPECT_TRUE(format_status(started).starts_with(R"({"outcome":"not_started","exit":127)"));

  Status waited;
  waited.began = kStart;
  waited.ended = kStart + 1s;
  EXPECT_EQ(format_status(waited), R"({"outcome":"done_before","exit":0,"waited_ms":1000})");
  waited.code = 1;
  waited.error = "taken";
  EXPECT_EQ(format_status(waited),
            R"({"outcome":"refused","exit":1,"error":"taken","waited_ms":1000})");
  waited.code = 143;
  waited.signal = 15;
  EXPECT_TRUE(format_status(waited).starts_with(R"({"outcome":"interrupted")"));
}

}  // namespace
}  // namespace latchkey::app
