#include "recipes/hold.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace latchkey::recipes {
namespace {

/// A machine that another caller is with whenever something is left to be done: that one does it
/// when the test says so.
class BusyHost final : public session::Host {
 public:
  BusyHost() { set_lease_deadline(Instant::max()); }

  void set_lease_deadline(Instant at) { view_->lease_deadline = at.time_since_epoch().count(); }
  void enter(base::FunctionRef<void(session::Machine&, Instant)> task) override {
    for (Task* one : std::exchange(left_, {})) one->run(machine_, {});
    task(machine_, {});
  }
  void leave(Task& task) override { left_.push_back(&task); }
  void post_in_order(std::function<void()> task) override { post(std::move(task)); }
  void post(std::function<void()> task) override { posted_.push_back(std::move(task)); }
  [[nodiscard]] bool is_forked() const noexcept override { return false; }
  [[nodiscard]] bool is_own_thread() const noexcept override { return false; }
  [[nodiscard]] std::shared_ptr<const session::Guard> guard() const override {
    return std::make_shared<session::Guard>(options_,
                                            [](const std::function<void()>& task) { task(); });
  }
  [[nodiscard]] const session::View& view() const noexcept override { return *view_; }
  [[nodiscard]] const SessionOptions& options() const noexcept override { return options_; }

  void do_what_is_left() {
    enter([](session::Machine&, Instant) {});
    for (const auto& task : std::exchange(posted_, {})) task();
  }

 private:
  const std::shared_ptr<session::View> view_ = std::make_shared<session::View>();
  const SessionOptions options_;
  session::Machine machine_{{}, 1, view_};
  std::vector<Task*> left_;
  std::vector<std::function<void()>> posted_;
};

/// Notes what it hears.
class NotingClaim final : public Claim {
 public:
  explicit NotingClaim(std::string& heard) : heard_(heard) {}

  void cancel(Code) override { heard_ += "cancel "; }
  LetGo release(session::Completion) override {
    heard_ += "release ";
    return LetGo::kGivenUp;
  }
  void on_lease_over() override { heard_ += "lease-over "; }
  void listen() override { heard_ += "listen "; }

 private:
  std::string& heard_;
};

class NotingRecipe final : public Recipe {
 public:
  explicit NotingRecipe(std::shared_ptr<session::Host> host) : Recipe(std::move(host), "/a") {}

  [[nodiscard]] Result<void> check() const override { return {}; }
  std::shared_ptr<Claim> start(session::Machine&, queue::Wait,
                               std::shared_ptr<Claimant> claimant) const override {
    hold = std::move(claimant);
    claim = std::make_shared<NotingClaim>(heard);
    return claim;
  }

  mutable std::string heard;
  mutable std::shared_ptr<Claim> claim;
  mutable std::shared_ptr<Claimant> hold;
};

class HoldTest : public testing::Test {
 protected:
  HoldTest() {
    host_->enter([&](session::Machine& machine, Instant) {
      static_cast<void>(Hold::begin(recipe_, machine, queue::Wait::kYes, Deadline::never(),
                                    [&](auto result) { hold_ = *result; }));
      recipe_.hold->granted({.token = Token(1), .nodes = {{"/a/1", 1}}});
    });
  }

  /// As the claim says it, of its own accord.
  void lose() {
    recipe_.hold->lost(Code::kLost, [&] { recipe_.heard += "told "; });
  }

  const std::shared_ptr<BusyHost> host_ = std::make_shared<BusyHost>();
  const NotingRecipe recipe_{host_};
  std::shared_ptr<Hold> hold_;
};

TEST_F(HoldTest, WhatIsLetGoWhileAnotherIsWithTheSessionIsReleasedByThatOne) {
  hold_->let_go();
  EXPECT_EQ(hold_->state(), LeaseState::kReleased) << "at once for whoever held it";
  EXPECT_EQ(recipe_.heard, "");

  host_->do_what_is_left();

  EXPECT_EQ(recipe_.heard, "release ");
}

TEST_F(HoldTest, IsThereUntilItsClaimHasHeard) {
  const std::weak_ptr<Hold> weak = hold_;
  recipe_.hold.reset();
  std::exchange(hold_, {})->let_go();
  EXPECT_FALSE(weak.expired());

  host_->do_what_is_left();

  EXPECT_EQ(recipe_.heard, "release ");
  EXPECT_TRUE(weak.expired());
}

TEST_F(HoldTest, H24_LettingGoTwiceReleasesOnce) {
  hold_->let_go();
  hold_->let_go();
  host_->do_what_is_left();

  EXPECT_EQ(hold_->release(), Released::kAlreadyOver);
  EXPECT_EQ(recipe_.heard, "release ");
}

TEST_F(HoldTest, H23_ALossBetweenLettingGoAndItsClaimsHearingIsNobodys) {
  const std::stop_token lost = hold_->lost();
  hold_->let_go();

  lose();
  host_->do_what_is_left();

  EXPECT_EQ(recipe_.heard, "told ") << "the claim has given up already";
  EXPECT_FALSE(lost.stop_requested());
  EXPECT_EQ(hold_->state(), LeaseState::kReleased);
}

TEST_F(HoldTest, H09_WhatIsLetGoWhenTheLeaseIsOverIsALossAsWithARelease) {
  host_->set_lease_deadline(Instant());
  hold_->let_go();

  EXPECT_EQ(recipe_.heard, "lease-over release ") << "this claim does not take it for one";
}

TEST_F(HoldTest, H23_WhatWasLostBeforeIsNotReleased) {
  const std::stop_token lost = hold_->lost();
  lose();
  hold_->let_go();
  host_->do_what_is_left();

  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(recipe_.heard, "told ");
  EXPECT_EQ(hold_->state(), LeaseState::kLost);
}

}  // namespace
}  // namespace latchkey::recipes
