#include <gtest/gtest.h>

#include "sim/scene.hpp"

/// Servers that grant different time-outs (H15): what a session is worth while the client does not
/// know of it.
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using testing::Silence;
using testing::Way;
using wire::Op;

TEST(Schedule, H15_AServerThatGrantsLessIsBelieved) {
  Scene scene;
  scene.take(scene.ann);
  scene.world.limit_timeouts(0, 2s);
  scene.restart_server(10ms);
  scene.until([&] { return scene.ann.session.state() == SessionState::kConnected; });
  scene.world.run_for(10s);
  EXPECT_EQ(scene.ann.lease().state(), LeaseState::kHeld);

  scene.world.partition(scene.ann.process, 0, Silence::kBoth);
  scene.take(scene.bob);

  EXPECT_EQ(scene.ann.lease().state(), LeaseState::kLost);
  scene.ends_having_met({15});
}

TEST(Schedule, H15_ALostGreetingMayHaveShortenedTheSession) {
  Scene scene({.timeout = 10s, .regrants = true});
  scene.take(scene.ann);
  scene.world.limit_timeouts(0, 1s);
  scene.world.drop_next(scene.ann.process, Way::kReply, Op::kCreateSession);
  scene.restart_server(10ms);
  scene.until([&] { return scene.world.count(testing::Fault::kDropReply) == 1; });
  scene.world.partition(scene.ann.process, 0, Silence::kBoth);

  scene.take(scene.bob);

  EXPECT_EQ(scene.ann.lease().state(), LeaseState::kLost);
  scene.ends_having_met({15});
}

TEST(Schedule, H15_ALateTouchShortensASessionThatHasMovedOn) {
  Scene scene({.followers = 1, .timeout = 10s, .servers_of_ann = {0, 1}, .regrants = true});
  const auto move_to = [&](std::size_t server) {
    scene.world.refuse(scene.ann.process, server, testing::Refusal::kOff);
    scene.world.refuse(scene.ann.process, 1 - server, testing::Refusal::kOn);
    scene.world.cut(scene.ann.host());
    scene.until([&] { return scene.ann.session.state() != SessionState::kConnected; });
    scene.until([&] { return scene.ann.session.state() == SessionState::kConnected; });
  };
  scene.world.limit_timeouts(1, 1s);
  move_to(0);
  scene.take(scene.ann);
  move_to(1);
  EXPECT_EQ(scene.ann.session.timeout(), 1s);
  move_to(0);
  EXPECT_EQ(scene.ann.session.timeout(), 10s);
  scene.settle();  // The follower has told the leader now.
  scene.world.partition(scene.ann.process, 0, Silence::kBoth);

  scene.take(scene.bob);

  EXPECT_EQ(scene.ann.lease().state(), LeaseState::kLost);
  scene.ends_having_met({15});
}

}  // namespace
}  // namespace latchkey::sim
