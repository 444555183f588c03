#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "queue/contender.hpp"

namespace latchkey::queue {

/// A contender in the hands of a test: what it asked for last, and short words for what it is told.
class ContenderRig : public testing::Test {
 protected:
  static constexpr Answer kOk{};
  static constexpr Answer kMaybe{Answer::Kind::kAmbiguous, Code::kConnectionLoss};
  static constexpr Answer no(Code code) { return {Answer::Kind::kNo, code}; }

  /// What the server calls the node of another client.
  static std::string other(int number, Tag tag = Tag::kLock) {
    return node_prefix(format_guid(77, static_cast<std::uint64_t>(number)), tag) + digits(number);
  }
  static std::string digits(int number) {
    std::string text = std::to_string(number);
    return text.insert(0, 10 - text.size(), '0');
  }

  void make(Contender::Options options = {}) {
    options.directory = "/locks/a";
    contender_.emplace(std::move(options), [this] { return format_guid(1, ++guids_); });
  }

  void tell(const Event& event) {
    if (!contender_) make();
    did_ = contender_->step(event);
    for (const Action& action : did_) all_.push_back(action);
  }

  template <class What>
  [[nodiscard]] int count(const std::vector<Action>& actions) const {
    int found = 0;
    for (const Action& action : actions) found += std::holds_alternative<What>(action) ? 1 : 0;
    return found;
  }
  /// How often it asked for that in the last step, and ever.
  template <class What>
  [[nodiscard]] int did() const {
    return count<What>(did_);
  }
  template <class What>
  [[nodiscard]] int ever() const {
    return count<What>(all_);
  }
  [[nodiscard]] bool did_nothing() const { return did_.empty(); }

  /// The last of its kind.
  template <class What>
  [[nodiscard]] What last() const {
    for (auto at = all_.rbegin(); at != all_.rend(); ++at) {
      if (const What* what = std::get_if<What>(&*at)) return *what;
    }
    ADD_FAILURE() << "it never asked for that";
    return {};
  }
  [[nodiscard]] Ask watch_of(const std::string& name) const {
    for (auto at = all_.rbegin(); at != all_.rend(); ++at) {
      const auto* watch = std::get_if<action::Watch>(&*at);
      if (watch && watch->name == name) return watch->ask;
    }
    ADD_FAILURE() << "it never watched " << name;
    return 0;
  }
  [[nodiscard]] bool owes(const std::string& name) const {
    int found = 0;
    for (const Action& action : all_) {
      const auto* owe = std::get_if<action::Owe>(&action);
      found += owe && owe->name == name ? 1 : 0;
    }
    EXPECT_LE(found, 1) << "owed twice";
    return found == 1;
  }
  [[nodiscard]] bool unwatched(const std::string& name) const {
    for (const Action& action : all_) {
      const auto* unwatch = std::get_if<action::Unwatch>(&action);
      if (unwatch && unwatch->name == name) return true;
    }
    return false;
  }

  void created(int number) {
    me_ = last<action::Create>().prefix + digits(number);
    tell(event::Created{last<action::Create>().ask, kOk, me_, 100 + number});
  }
  void created_not(Answer answer) {
    tell(event::Created{last<action::Create>().ask, answer, "", 0});
  }
  void listed(std::vector<std::string> children) {
    tell(event::Listed{last<action::List>().ask, kOk, std::move(children)});
  }
  void listed_not(Answer answer) { tell(event::Listed{last<action::List>().ask, answer, {}}); }
  void watched(const std::string& name, Answer answer = kOk) {
    tell(event::Watched{watch_of(name), answer});
  }
  void proved(Answer answer = kOk) { tell(event::Proved{last<action::Prove>().ask, answer}); }

  /// Number 9, waiting behind others with these numbers; every watch is in place.
  void wait_behind(const std::vector<int>& numbers) {
    tell(event::Start{});
    created(9);
    std::vector<std::string> children{me_};
    for (const int number : numbers) children.push_back(other(number));
    listed(children);
    watched(me_);
    watched(other(numbers.back()));
  }
  void hold() {
    tell(event::Start{});
    created(9);
    listed({me_});
    proved();
  }
  void expect_failed(Code code) const {
    EXPECT_EQ(ever<action::Grant>(), 0);
    ASSERT_EQ(ever<action::Fail>(), 1);
    EXPECT_EQ(last<action::Fail>().code, code);
  }
  [[nodiscard]] bool is_done() const {
    EXPECT_LE(ever<action::Done>(), 1);
    return ever<action::Done>() == 1;
  }

  std::optional<Contender> contender_;
  std::uint64_t guids_ = 0;
  std::string me_;
  std::vector<Action> did_;
  std::vector<Action> all_;
};

}  // namespace latchkey::queue
