#include "latchkey/error.hpp"

#include <set>
#include <sstream>
#include <system_error>

#include <gtest/gtest.h>

#include "latchkey/result.hpp"

namespace latchkey {
namespace {

std::vector<Code> all_codes() {
  std::vector<Code> codes;
  for (int number = 0; number < 1'000; ++number) {
    if (name(Code{number}) != "Unknown") codes.push_back(Code{number});
  }
  return codes;
}

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Code code : all_codes()) names.insert(name(code));

  EXPECT_EQ(names.size(), 39U);
  EXPECT_EQ(names.size(), all_codes().size());
}

TEST(Error, TheGroupsDoNotOverlap) {
  for (const Code code : all_codes()) {
    EXPECT_FALSE(is_retryable(code) && is_session_over(code)) << code;
  }
  EXPECT_TRUE(is_retryable(Code::kConnectionLoss));
  EXPECT_FALSE(is_retryable(Code::kNoNode));
  EXPECT_TRUE(is_session_over(Code::kSessionLost));
  EXPECT_TRUE(is_session_over(Code::kAuthFailed));
  EXPECT_TRUE(is_session_over(Code::kClosed));
  EXPECT_FALSE(is_session_over(Code::kTimedOut));
}

TEST(Error, EveryCodeIsExplainedInWords) {
  std::set<std::string> sentences;
  for (const Code code : all_codes()) {
    const std::string sentence = make_error_code(code).message();
    EXPECT_GT(sentence.size(), 5U) << code;
    EXPECT_NE(sentence, name(code)) << code;
    EXPECT_NE(sentence, make_error_code(Code{0}).message()) << code;
    sentences.insert(sentence);
  }
  EXPECT_EQ(sentences.size(), all_codes().size());
}

TEST(Error, TravelsAsAStandardErrorCode) {
  const std::error_code code = Error(Code::kNoNode, "get /a");

  EXPECT_EQ(code, Code::kNoNode);
  EXPECT_EQ(code.message(), "no such node");
  EXPECT_STREQ(code.category().name(), "latchkey");
}

TEST(Error, PrintsItsCodeMessageAndDoubt) {
  std::ostringstream out;

  out << Error(Code::kNoNode) << '|' << Error(Code::kTimedOut, "set /a", Effect::kUnknown);

  EXPECT_EQ(out.str(), "NoNode|TimedOut: set /a (it may have been carried out)");
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = 7;
  const Result<int> bad = Error(Code::kBusy);

  EXPECT_EQ(*good, 7);
  EXPECT_EQ(bad.error(), Code::kBusy);
  EXPECT_EQ(bad.value_or(3), 3);
  EXPECT_TRUE(Result<void>());
  EXPECT_FALSE(Result<void>(Error(Code::kBusy)));
}

TEST(ResultDeathTest, AskingForWhatIsNotThereEndsTheProcess) {
  EXPECT_DEATH(static_cast<void>(Result<int>(Error(Code::kBusy, "it is held")).value()),
               "failed with Busy: it is held");
  EXPECT_DEATH(static_cast<void>(Result<int>(1).error()), "it has none");
  EXPECT_DEATH(static_cast<void>(Result<void>().error()), "");
}

}  // namespace
}  // namespace latchkey
