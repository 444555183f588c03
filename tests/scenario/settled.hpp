#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "scenario/walk.hpp"

namespace latchkey::walk {

/// Where one contender of a settled world stands.
enum class Stands { kAbsent, kWaits, kHolds, kGone };

/// Are the contenders alike? Then whoever comes first may be called the first, and only that order
/// of arrival is gone through: it stands for all.
enum class Alike { kNo, kYes };

/// A little world in which every message arrives before anybody does anything else. What is left is
/// what the callers do: arrive, let go, give up while waiting, crash, in every order, each of them
/// once. A Model is a value with
///
///     int count() const;                     // How many contenders there are.
///     Stands stands(int who) const;
///     void start(int), release(int), cancel(int), crash(int);
///     void settle();                         // Everything arrives.
///     std::size_t key() const;
///     std::string violation();               // Of a world at rest.
///
/// and, if its holders may become less than they are,
///
///     bool may_downgrade(int who) const;
///     void downgrade(int), downgrade_and_give_up(int), downgrade_and_crash(int);
template <class Model>
class Settled {
 public:
  Settled(Model model, Alike alike) : model_(std::move(model)), alike_(alike) { look(); }

  [[nodiscard]] std::vector<Step<Settled>> steps() const {
    Steps<Settled> steps(*this);
    bool first = true;
    for (int who = 0; who < model_.count(); ++who) {
      const Stands stands = model_.stands(who);
      if (stands == Stands::kAbsent) {
        if (first || alike_ == Alike::kNo) add(steps, "start", who, &Model::start);
        first = false;
      }
      if (stands == Stands::kHolds) add(steps, "release", who, &Model::release);
      if (stands == Stands::kWaits) add(steps, "cancel", who, &Model::cancel);
      if (stands == Stands::kWaits || stands == Stands::kHolds) {
        add(steps, "crash", who, &Model::crash);
      }
      if constexpr (requires { model_.may_downgrade(who); }) {
        if (!model_.may_downgrade(who)) continue;
        add(steps, "downgrade", who, &Model::downgrade);
        add(steps, "downgrade and give up", who, &Model::downgrade_and_give_up);
        add(steps, "downgrade and crash", who, &Model::downgrade_and_crash);
      }
    }
    return steps.take();
  }
  [[nodiscard]] std::size_t key() const { return model_.key(); }
  [[nodiscard]] const std::string& violation() const { return violation_; }

 private:
  void add(Steps<Settled>& steps, const char* what, int who, void (Model::*deed)(int)) const {
    steps.may(what + (" " + std::to_string(who)), [who, deed](Settled& world) {
      (world.model_.*deed)(who);
      world.look();
    });
  }
  void look() {
    model_.settle();
    violation_ = model_.violation();
  }

  Model model_;
  Alike alike_;
  std::string violation_;
};

/// Five (or however many there are) come and go in every order, and no promise is broken.
template <class Model>
void expect_all_is_well_when_settled(Model model, Alike alike = Alike::kNo) {
  expect_all_is_well(Settled<Model>(std::move(model), alike));
}

}  // namespace latchkey::walk
