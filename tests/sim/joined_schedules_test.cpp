#include <gtest/gtest.h>

#include "latchkey/mutex.hpp"
#include "sim/scene.hpp"

/// Schedules in which a release and the next entry leave as one transaction (decision 11).
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using testing::Fault;
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

  void bob_waits() {
    bob.wants(mutex(bob));
    settle();
  }
  /// Whatever happened to her transaction, nobody has to wait for the end of Ann's session.
  void bob_is_next() {
    until([this] { return bob.holds(); }, plan.timeout / 2);
  }
  /// She has come back once.
  void ann_waits_behind_bob() {
    settle();
    EXPECT_TRUE(ann.waits());
    EXPECT_EQ(entries(), 2U);
    bob.lets_go();
    until_holds(ann);
    EXPECT_EQ(entries(), 1U);
  }
  [[nodiscard]] std::size_t entries() {
    return world.leader().tree().nodes().find("/locks/a")->children.size();
  }
  /// How many transactions met what was prepared for one.
  [[nodiscard]] std::uint64_t struck() const {
    return world.count(Fault::kDropRequest) + world.count(Fault::kDropReply) +
           world.count(Fault::kHold);
  }
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
    JoinedScene scene(
        {.sites = {{Sort::kMutex, "/locks/a"}, {Sort::kMutex, "/locks/b"}}, .seed = seed});
    // Who comes back to the same lock would inherit and need no list (decision 16).
    for (int times = 0; times < 2; ++times) {
      scene.come_back("/locks/b", {.site = 1});
      scene.until_holds(scene.ann);
      scene.settle();
    }
    // Whether the answer in front of it arrives before the end is luck.
    scene.world.drop_next(scene.ann.process, Way::kReply, Op::kGetChildren);

    scene.come_back();
    scene.until_holds(scene.ann);

    scene.ends_having_met({});
    met += scene.sightings(71);
  }
  EXPECT_GT(met, 0U);
}

TEST(JoinedSchedule, H01_H21_TheTransactionOrItsAnswerIsLost) {
  for (const Way way : {Way::kRequest, Way::kReply}) {
    JoinedScene scene;
    scene.bob_waits();
    scene.world.drop_next(scene.ann.process, way, Op::kMulti);

    scene.come_back();
    scene.bob_is_next();
    scene.until([&] { return scene.ann.session.state() == SessionState::kConnected; });
    scene.ann_waits_behind_bob();

    EXPECT_EQ(scene.struck(), 1U);
    EXPECT_EQ(scene.sightings(1), way == Way::kReply ? 1U : 0U) << "carried out, or not";
    scene.ends_having_met({21});
  }
}

TEST(JoinedSchedule, H02_ATransactionInDoubtIsUnknownWhereItsSessionAttachesAgain) {
  JoinedScene scene({.followers = 2, .servers_of_ann = {1, 2}});
  scene.bob_waits();
  scene.world.lag(0, 20);
  scene.world.lag(1, 20);
  scene.world.drop_next(scene.ann.process, Way::kReply, Op::kMulti);

  scene.come_back();
  scene.bob_is_next();
  scene.world.run_for(scene.plan.timeout / 2);
  scene.ann_waits_behind_bob();

  EXPECT_EQ(scene.struck(), 1U);
  scene.ends_having_met({1, 2, 21});
}

TEST(JoinedSchedule, H21_H88_TheConnectionIsCutBeforeTheTransactionArrives) {
  JoinedScene scene;
  scene.bob_waits();
  scene.world.hold_next(scene.ann.process, Way::kRequest, Op::kMulti, 1s);

  scene.come_back();
  scene.settle();
  EXPECT_FALSE(scene.bob.holds()) << "nothing has been carried out";
  scene.world.cut(scene.ann.host());
  scene.bob_is_next();
  scene.world.run_for(2s);
  scene.ann_waits_behind_bob();

  EXPECT_EQ(scene.struck(), 1U);
  scene.ends_having_met({21});
}

TEST(JoinedSchedule, H21_H88_TheConnectionIsCutWhileTheTransactionWaitsForTheDisk) {
  JoinedScene scene;
  scene.bob_waits();
  scene.world.stall_disk(1s);

  scene.come_back();
  scene.settle();
  EXPECT_FALSE(scene.bob.holds()) << "nothing has been carried out";
  scene.world.cut(scene.ann.host());
  scene.bob_is_next();
  scene.world.run_for(2s);
  scene.ann_waits_behind_bob();

  scene.ends_having_met({21, 88});
}

TEST(JoinedSchedule, H01_H03_H21_ASilentConnectionIsGivenUpAfterTheTransactionWasCarriedOut) {
  JoinedScene scene;
  scene.bob_waits();
  scene.world.partition(scene.ann.process, 0, Silence::kReplies);

  scene.come_back();
  scene.bob_is_next();
  scene.until([&] { return !scene.ann.host().is_connected(); });
  scene.world.heal(scene.ann.process, 0);
  scene.world.run_for(1s);
  scene.ann_waits_behind_bob();

  scene.ends_having_met({1, 3, 21});
}

TEST(JoinedSchedule, H80_H82_TheServerCrashesWithTheTransactionUnanswered) {
  for (const testing::Crash how : {testing::Crash::kProcess, testing::Crash::kPower}) {
    JoinedScene scene({.store = testing::Store::kDisk});
    scene.bob_waits();
    scene.world.stall_disk(1s);

    scene.come_back();
    scene.settle();
    scene.world.crash(0, how);
    scene.world.restart(0);
    scene.bob_is_next();
    scene.world.run_for(scene.plan.timeout / 4);
    scene.ann_waits_behind_bob();

    scene.ends_having_met({21});
  }
}

TEST(JoinedSchedule, H22_TheSessionEndsBeforeTheTransactionArrives) {
  JoinedScene scene;
  scene.bob_waits();
  scene.world.hold_next(scene.ann.process, Way::kRequest, Op::kMulti, 500ms);

  scene.come_back();
  scene.world.expire(scene.ann.session.id());
  scene.bob_is_next();
  scene.until([&] { return !scene.ann.waits(); });

  EXPECT_EQ(scene.ann.error(), Code::kSessionLost);
  scene.world.run_for(1s);
  EXPECT_EQ(scene.entries(), 1U) << "what arrives too late is not carried out";
  EXPECT_EQ(scene.struck(), 1U);
  scene.ends_having_met({22});
}

TEST(JoinedSchedule, H12_H22_TheSessionEndsAfterTheTransactionWasCarriedOut) {
  JoinedScene scene;
  scene.bob_waits();
  scene.world.refuse(scene.ann.process, 0, testing::Refusal::kOn);
  scene.world.drop_next(scene.ann.process, Way::kReply, Op::kMulti);

  scene.come_back();
  scene.bob_is_next();
  scene.cyd.wants(Scene::mutex(scene.cyd));
  scene.settle();
  EXPECT_EQ(scene.entries(), 3U);
  scene.world.expire(scene.ann.session.id());
  scene.settle();
  EXPECT_EQ(scene.entries(), 2U) << "the new entry goes with the session";
  scene.bob.lets_go();
  scene.until([&] { return scene.cyd.holds(); }, scene.plan.timeout / 2);
  scene.let_back(scene.ann);
  scene.until([&] { return !scene.ann.waits(); });

  EXPECT_EQ(scene.ann.error(), Code::kSessionLost);
  EXPECT_EQ(scene.struck(), 1U);
  scene.ends_having_met({1, 12, 21, 22});
}

TEST(JoinedSchedule, H06_H51_WhoGivesUpWithTheTransactionInDoubtLeavesNothing) {
  for (const Way way : {Way::kRequest, Way::kReply}) {
    JoinedScene scene;
    scene.bob_waits();
    scene.world.refuse(scene.ann.process, 0, testing::Refusal::kOn);
    scene.world.drop_next(scene.ann.process, way, Op::kMulti);

    scene.come_back();
    scene.settle();
    scene.ann.cancels();
    scene.until([&] { return !scene.ann.waits(); });
    EXPECT_EQ(scene.ann.error(), Code::kCancelled);
    scene.let_back(scene.ann);
    scene.bob_is_next();
    scene.world.run_for(1s);

    EXPECT_EQ(scene.entries(), 1U);
    EXPECT_EQ(scene.struck(), 1U);
    scene.ends_having_met({6, 21, 51});
  }
}

TEST(JoinedSchedule, H93_AnotherHandHasRemovedTheOldEntryAndTheNewOneIsAskedForAlone) {
  JoinedScene scene;
  const std::string old = scene.ann.lease().node();
  scene.world.hold_next(scene.ann.process, Way::kRequest, Op::kMulti, 100ms);

  scene.come_back();
  ASSERT_TRUE(scene.cyd.session.remove(Path(old), deadline_in(5s)));
  scene.until_holds(scene.ann);

  EXPECT_EQ(scene.entries(), 1U);
  EXPECT_EQ(scene.struck(), 1U);
  scene.ends_having_met({93});
}

}  // namespace
}  // namespace latchkey::sim
