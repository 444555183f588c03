#include "session/guard.hpp"

#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::session {
namespace {

using testing::ElementsAre;

class GuardTest : public testing::Test {
 protected:
  [[nodiscard]] std::shared_ptr<const Guard> guard() const {
    return std::make_shared<Guard>(options, [](const std::function<void()>& task) { task(); });
  }

  std::vector<std::string> told;
  SessionOptions options;
};

TEST_F(GuardTest, WhatIsThrownIsLoggedWithTheNameOfTheCallback) {
  options.log = [this](LogLevel level, std::string_view text) {
    EXPECT_EQ(level, LogLevel::kError);
    told.emplace_back(text);
  };

  EXPECT_TRUE(guard()->run("on_state", [] {}));
  EXPECT_FALSE(guard()->run("on_state", [] { throw std::runtime_error("too late"); }));
  EXPECT_FALSE(guard()->run("watcher", [] { throw 7; }));

  EXPECT_THAT(told, ElementsAre("a callback has thrown (on_state): too late",
                                "a callback has thrown (watcher): not a std::exception"));
}

TEST_F(GuardTest, TheHookGetsTheExceptionItself) {
  options.on_exception = [this](std::string_view callback, const std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::out_of_range& error) {
      told.push_back(std::string(callback) + ": " + error.what());
    }
  };

  EXPECT_FALSE(guard()->run("async", [] { throw std::out_of_range("nine"); }));

  EXPECT_THAT(told, ElementsAre("async: nine"));
}

TEST_F(GuardTest, WithoutHooksItIsPrinted) {
  testing::internal::CaptureStderr();
  guard()->run("async", [] { throw std::runtime_error("nine"); });

  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "latchkey: a callback has thrown (async): nine\n");
}

TEST_F(GuardTest, AHookThatThrowsInTurnEndsNothing) {
  options.log = [](LogLevel, std::string_view) { throw std::runtime_error("full"); };
  options.on_exception = [this](std::string_view callback, const std::exception_ptr&) {
    told.emplace_back(callback);
  };
  testing::internal::CaptureStderr();

  EXPECT_FALSE(guard()->run("async", [] { throw std::runtime_error("nine"); }));

  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "latchkey: a callback has thrown (async): nine\n"
            "latchkey: a callback has thrown (log): full\n");
  EXPECT_THAT(told, ElementsAre("async"));
}

}  // namespace
}  // namespace latchkey::session
