#include <gtest/gtest.h>

#include "latchkey/mutex.hpp"
#include "sim/scene.hpp"

/// Schedules in which a release and the next entry leave as one transaction (decision 11).
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using testing::Silence;
using testing::Way;
using wire::Op;

/// Ann has let go and come back at once, so her next release is joined to her next entry.
class JoinedScene : public Scene {
 public:
  JoinedScene() : JoinedScene(Setup{}) {}
  explicit JoinedScene(Setup setup) : Scene(std::move(setup)) {
    take(ann);
    come_back();
    until_holds(ann);
    settle();
  }

  void come_back(const std::string& path = "/locks/a", Share share = {}) {
    ann.lets_go();
    ann.wants(mutex(ann, path), share);
  }

  [[nodiscard]] std::uint64_t sightings(int hazard) const { return lookout.sightings().of(hazard); }
};

TEST(JoinedSchedule, H21_TheLookoutCountsADeleteInATransactionWithoutAnswer) {
  for (const Way way : {Way::kRequest, Way::kReply}) {
    JoinedScene scene;
    scene.world.drop_next(scene.ann.process, way, Op::kMulti);

    scene.come_back();
    scene.until([&] { return !scene.ann.host().is_connected(); });

    EXPECT_EQ(scene.sightings(21), 1U);
    scene.ends_having_met({});
  }
}

TEST(JoinedSchedule, H22_TheLookoutCountsADeleteInATransactionOfASessionThatEnds) {
  JoinedScene scene;
  scene.world.partition(scene.ann.process, 0, Silence::kRequests);
  scene.come_back();

  scene.world.expire(scene.ann.session.id());
  scene.take(scene.bob);

  EXPECT_EQ(scene.sightings(22), 1U);
  scene.ends_having_met({});
}

TEST(JoinedSchedule, H39_TheLookoutCountsACreateInATransactionThatHasNoDirectory) {
  JoinedScene scene({.sites = {{Sort::kMutex, "/locks/a"}, {Sort::kMutex, "/locks/b"}}});
  const std::uint64_t before = scene.sightings(39);

  scene.come_back("/locks/b", {.site = 1});
  scene.until_holds(scene.ann);

  EXPECT_EQ(scene.sightings(39) - before, 2U) << "in the transaction, and then alone";
  scene.ends_having_met({});
}

TEST(JoinedSchedule, H71_TheLookoutCountsATransactionThatIsAnsweredAndTheListThatIsNot) {
  std::uint64_t met = 0;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    JoinedScene scene({.seed = seed});
    // Whether the answer in front of it arrives before the end is luck.
    scene.world.drop_next(scene.ann.process, Way::kReply, Op::kGetChildren);

    scene.come_back();
    scene.until_holds(scene.ann);

    scene.ends_having_met({});
    met += scene.sightings(71);
  }
  EXPECT_GT(met, 0U);
}

}  // namespace
}  // namespace latchkey::sim
