#pragma once

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

/// Goes through all that can happen to a little world, depth first, each state once.
///
/// A world is a value with
///
///     std::vector<walk::Step<World>> steps() const;      // What may happen next.
///     std::size_t key() const;                           // Equal for equal futures.
///     const std::string& violation() const;              // The first broken promise, or empty.
///     void check_at_rest();                              // No step is left that comes by itself.
///
/// (the last one if it likes) and checks its promises whenever something happens to it.
namespace latchkey::walk {

template <class World>
struct Step {
  std::string name;
  std::function<void(World&)> happen;
  /// It comes sooner or later; a world with none of these left is at rest.
  bool by_itself = false;
};

/// What may happen next, being collected. A world with troubles that may strike only so often has a
/// left() that says how often each still may.
template <class World>
class Steps {
 public:
  explicit Steps(const World& world) : world_(world) {}

  template <class Happen>
  void may(std::string name, Happen happen) {
    steps_.push_back({std::move(name), happen});
  }
  template <class Happen>
  void soon(std::string name, Happen happen) {
    steps_.push_back({std::move(name), happen, true});
  }
  template <class Troubles, class Happen>
  void trouble(std::string name, int Troubles::*price, Happen happen) {
    if (world_.left().*price == 0) return;
    may(std::move(name), [price, happen](World& world) {
      --(world.left().*price);
      happen(world);
    });
  }
  [[nodiscard]] std::vector<Step<World>> take() { return std::move(steps_); }

 private:
  const World& world_;
  std::vector<Step<World>> steps_;
};

template <class World>
class Walk {
 public:
  /// Empty, or the first broken promise and the road to it.
  std::string run(const World& world) {
    visit(world);
    return failure_;
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

 private:
  void visit(World world) {
    if (world.violation().empty() && !seen_.insert(world.key()).second) return;
    const std::vector<Step<World>> steps = world.steps();
    bool at_rest = true;
    for (const Step<World>& step : steps) at_rest = at_rest && !step.by_itself;
    if constexpr (requires { world.check_at_rest(); }) {
      if (at_rest) world.check_at_rest();
    }
    if (!world.violation().empty()) {
      for (const std::string& name : road_) failure_ += name + "\n";
      failure_ += "=> " + world.violation();
      return;
    }
    for (const Step<World>& step : steps) {
      World next = world;
      step.happen(next);
      road_.push_back(step.name);
      visit(std::move(next));
      road_.pop_back();
      if (!failure_.empty()) return;
    }
  }

  std::unordered_set<std::size_t> seen_;
  std::vector<std::string> road_;
  std::string failure_;
};

template <class World>
void expect_all_is_well(const World& world) {
  Walk<World> walk;
  EXPECT_EQ(walk.run(world), "");
  EXPECT_GT(walk.states(), 50U);
  if (std::getenv("LATCHKEY_VERBOSE")) std::cout << walk.states() << " states\n";
}

template <class World>
void expect_found(const World& world, const std::string& what) {
  Walk<World> walk;
  const std::string failure = walk.run(world);
  EXPECT_NE(failure.find("=> " + what), std::string::npos) << "found: " << failure;
}

}  // namespace latchkey::walk
