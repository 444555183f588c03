#include "server/option_limits.hpp"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::server {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

std::string complaint(const ServerOptions& options) {
  const Result<void> checked = check_limits(options);
  if (checked) return "none";
  EXPECT_EQ(checked.error(), Code::kInvalidOption);
  return checked.error().message();
}

TEST(OptionLimits, TheDefaultsMakeSense) { EXPECT_EQ(complaint({}), "none"); }

TEST(OptionLimits, ACountThatMakesNoSenseIsNamedWithItsValueAndWhatWouldDo) {
  const ServerOptions usual;
  for (const CountLimit& limit : kCountLimits) {
    const std::string name(limit.name);
    const std::string usual_count = std::to_string(usual.*limit.count);
    for (const std::size_t small : {std::size_t{0}, limit.least - 1}) {
      ServerOptions options;
      options.*limit.count = small;
      EXPECT_EQ(complaint(options),
                name + " (" + std::to_string(small) + ") is too small: choose at least " +
                    std::to_string(limit.least) + "; the default is " + usual_count);
    }
    // What a negative number becomes.
    for (const std::size_t large : {static_cast<std::size_t>(-1), limit.most + 1}) {
      ServerOptions options;
      options.*limit.count = large;
      EXPECT_THAT(complaint(options),
                  AllOf(HasSubstr(name + " (" + std::to_string(large) + ") is too large"),
                        HasSubstr("at most " + std::to_string(limit.most)),
                        HasSubstr("default is " + usual_count)));
    }
  }
}

TEST(OptionLimits, ATimeThatMakesNoSenseIsNamedWithItsValueAndWhatWouldDo) {
  for (const TimeLimit& limit : kTimeLimits) {
    for (const auto time : {-1ms, limit.least - 1ms, limit.most + 1ms,
                            std::chrono::milliseconds::max(), std::chrono::milliseconds::min()}) {
      ServerOptions options;
      options.*limit.time = time;
      EXPECT_THAT(complaint(options), AllOf(HasSubstr(std::string(limit.name) + " (" +
                                                      std::to_string(time.count()) + " ms) is too"),
                                            HasSubstr("default is ")));
    }
  }
}

TEST(OptionLimits, WhatIsAtTheEdgeIsTaken) {
  ServerOptions options;
  options.max_nodes = 5;
  options.max_sessions = kMostOfAnything;
  options.max_frame = 1'024;
  options.tick = 1ms;
  options.idle_stop = 0ms;

  EXPECT_EQ(complaint(options), "none");
}

TEST(OptionLimits, WhatOneMayHaveAllMay) {
  ServerOptions output;
  output.max_buffered = 1'000'000;
  ServerOptions frame;
  frame.max_output_per_connection = 65'536;
  frame.max_buffered = 100'000;
  ServerOptions timeouts;
  timeouts.min_session_timeout = 60s;

  EXPECT_THAT(
      complaint(output),
      HasSubstr("max_buffered (1000000) is less than max_output_per_connection (67108864)"));
  EXPECT_THAT(complaint(frame),
              HasSubstr("max_buffered (100000) is less than max_frame (1048575)"));
  EXPECT_THAT(complaint(timeouts), HasSubstr("max_session_timeout (40000 ms) is less than "
                                             "min_session_timeout (60000 ms): raise the first"));
}

}  // namespace
}  // namespace latchkey::server
