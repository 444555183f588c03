#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "queue/contender.hpp"
#include "support/machine_rig.hpp"

namespace latchkey::queue {

/// A contender in the hands of a test: what it asked for last, and short words for what it is told.
class ContenderRig : public MachineRig<Action> {
 protected:
  /// What the server calls the node of another client.
  static std::string other(int number, Tag tag = Tag::kLock) {
    return node_prefix(format_guid(77, static_cast<std::uint64_t>(number)), tag) + digits(number);
  }
  void make(Contender::Options options = {}) {
    options.directory = "/locks/a";
    contender_.emplace(std::move(options), [this] { return format_guid(1, ++guids_); });
  }

  void tell(const Event& event) {
    if (!contender_) make();
    note(contender_->step(event));
  }

  [[nodiscard]] Ask watch_of(const std::string& name) const {
    const std::vector<action::Watch> watches = all<action::Watch>();
    for (auto watch = watches.rbegin(); watch != watches.rend(); ++watch) {
      if (watch->name == name) return watch->ask;
    }
    ADD_FAILURE() << "it never watched " << name;
    return 0;
  }
  [[nodiscard]] bool owes(const std::string& name) const {
    int found = 0;
    for (const action::Owe& owe : all<action::Owe>()) found += owe.name == name ? 1 : 0;
    EXPECT_LE(found, 1) << "owed twice";
    return found == 1;
  }
  [[nodiscard]] bool unwatched(const std::string& name) const {
    for (const action::Unwatch& unwatch : all<action::Unwatch>()) {
      if (unwatch.name == name) return true;
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

  /// Number 9, waiting behind others with these numbers; every watch is in place: behind many there
  /// is none on our own node.
  void wait_behind(const std::vector<int>& numbers) {
    tell(event::Start{});
    created(9);
    std::vector<std::string> children{me_};
    for (const int number : numbers) children.push_back(other(number));
    listed(children);
    const bool lists = contender_->options().relist == Relist::kAlways;
    if (numbers.size() <= 3 && !lists) watched(me_);
    watched(other(numbers.back()));
  }
  void hold() {
    tell(event::Start{});
    created(9);
    listed({me_});
    proved();
  }
  std::optional<Contender> contender_;
  std::uint64_t guids_ = 0;
  std::string me_;
};

}  // namespace latchkey::queue
