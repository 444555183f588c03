#include <string>

#include <gtest/gtest.h>

#include "queue/counter.hpp"
#include "sim/scene.hpp"

/// A directory whose sequence counter nears its end (H35).
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

TEST(Schedule, H35_ACounterNearItsEndIsStartedAgain) {
  Scene scene;
  scene.take_and_leave(scene.ann);
  scene.world.age("/locks/a", queue::kSpentFrom + 5);
  scene.restart_server(10ms);

  scene.take(scene.ann);

  EXPECT_TRUE(scene.ann.lease().node().ends_with("0000000000")) << scene.ann.lease().node();
  scene.ends_having_met({35});
}

/// The other client makes its next entry before it removes the last one, so the directory is never
/// empty.
TEST(Schedule, H35_ACounterNearItsEndBesideABusyClientIsAnErrorSoon) {
  Scene scene;
  scene.take_and_leave(scene.ann);
  scene.world.age("/locks/a", queue::kSpentFrom + 5);
  scene.restart_server(10ms);
  Session& other = scene.cyd.session;
  std::string last;
  const auto take_turns = [&] {
    const auto made = other.create(
        "/locks/a/_c_other-lock-", "",
        {.lifetime = Lifetime::kEphemeral, .naming = Naming::kSequential}, deadline_in(5s));
    ASSERT_TRUE(made);
    if (!last.empty()) {
      ASSERT_TRUE(other.remove(last, deadline_in(5s)));
    }
    last = made->path;
  };
  take_turns();
  scene.ann.wants(Scene::mutex(scene.ann));

  for (int turn = 0; turn < 600 && scene.ann.waits(); ++turn) {
    take_turns();
    scene.world.run_for(100ms);
  }

  EXPECT_EQ(scene.ann.error(), Code::kCounterExhausted);
  ASSERT_TRUE(other.remove(last, deadline_in(5s)));
  scene.ends_having_met({35});
}

}  // namespace
}  // namespace latchkey::sim
