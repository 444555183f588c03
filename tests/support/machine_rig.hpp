#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "queue/messages.hpp"

namespace latchkey::queue {

/// A machine of src/queue in the hands of a test: what it asked for last, and ever. A fixture made
/// from it passes on what its machine's step() returns, and has short words for what it is told.
template <class Action, class Grant = action::Grant>
class MachineRig : public testing::Test {
 protected:
  static constexpr Answer kOk{};
  static constexpr Answer kMaybe{Answer::Kind::kAmbiguous, Code::kConnectionLoss};
  static constexpr Answer kFault{Answer::Kind::kAmbiguous, Code::kServerError};
  static constexpr Answer no(Code code) { return {Answer::Kind::kNo, code}; }

  /// A number as the server writes it at the end of a name.
  static std::string digits(int number) {
    std::string text = std::to_string(number);
    return text.insert(0, 10 - text.size(), '0');
  }

  void note(std::vector<Action> actions) {
    did_ = std::move(actions);
    all_.insert(all_.end(), did_.begin(), did_.end());
  }

  /// How often it asked for that in the last step, and ever.
  template <class What>
  [[nodiscard]] int did() const {
    return static_cast<int>(only<What>(did_).size());
  }
  template <class What>
  [[nodiscard]] int ever() const {
    return static_cast<int>(all<What>().size());
  }
  [[nodiscard]] bool did_nothing() const { return did_.empty(); }

  /// Everything of a kind, in order.
  template <class What>
  [[nodiscard]] std::vector<What> all() const {
    return only<What>(all_);
  }
  /// The last of its kind.
  template <class What>
  [[nodiscard]] What last() const {
    const std::vector<What> found = all<What>();
    if (!found.empty()) return found.back();
    ADD_FAILURE() << "it never asked for that";
    return {};
  }

  [[nodiscard]] bool is_done() const {
    EXPECT_LE(ever<action::Done>(), 1);
    return ever<action::Done>() == 1;
  }
  /// An attempt ended without a grant.
  void expect_failed(Code code) const {
    EXPECT_EQ(ever<Grant>(), 0);
    ASSERT_EQ(ever<action::Fail>(), 1);
    EXPECT_EQ(last<action::Fail>().code, code) << last<action::Fail>().why;
  }

  std::vector<Action> did_;
  std::vector<Action> all_;

 private:
  template <class What>
  [[nodiscard]] static std::vector<What> only(const std::vector<Action>& actions) {
    std::vector<What> found;
    for (const Action& action : actions) {
      if (const What* what = std::get_if<What>(&action)) found.push_back(*what);
    }
    return found;
  }
};

}  // namespace latchkey::queue
