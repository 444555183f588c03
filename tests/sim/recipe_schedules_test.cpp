#include <gtest/gtest.h>

#include "latchkey/election.hpp"
#include "latchkey/mutex.hpp"
#include "latchkey/rw_lock.hpp"
#include "sim/scene.hpp"

/// Hand-written schedules of the recipes that do more than stand in a queue; see
/// schedules_test.cpp.
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

TEST(Schedule, H44_AWriterBecomesAReaderWithAWriterBehindIt) {
  Scene scene({.sites = {{Sort::kRw, "/locks/a"}}});
  const auto lock_of = [](const Person& person) { return RwLock(person.session, "/locks/a"); };
  const Share all{0, kAllSeats, false};
  scene.ann.wants(lock_of(scene.ann).write(), all);
  scene.until_holds(scene.ann);
  scene.bob.wants(lock_of(scene.bob).write(), all);
  scene.settle();
  scene.cyd.wants(lock_of(scene.cyd).read(), {0, 1, true});
  scene.settle();

  scene.ann.reads_on(lock_of(scene.ann));
  scene.until_holds(scene.ann);
  scene.settle();
  EXPECT_FALSE(scene.bob.holds()) << "somebody reads";
  EXPECT_FALSE(scene.cyd.holds()) << "a writer came first";

  scene.ann.lets_go();
  scene.until_holds(scene.bob);
  scene.bob.lets_go();
  scene.until_holds(scene.cyd);
  scene.ends_having_met({44});
}

/// A scene in which every answer to ann takes so much of the time-out.
struct SlowWay : Scene {
  explicit SlowWay(int permille) {
    take_and_leave(ann);
    world.slow_down(ann.process, 0, plan.timeout * permille / 2'000);
    world.run_for(plan.timeout);  // Quick proofs are forgotten.
  }
};

TEST(Schedule, H12_AWayOfAQuarterOfTheTimeOutIsSlowAndShortEnough) {
  SlowWay scene(260);

  scene.ann.wants(Scene::mutex(scene.ann));
  scene.until_holds(scene.ann);

  scene.bob.wants(Scene::mutex(scene.bob));
  for (int i = 0; i < 400; ++i) {
    scene.world.run_for(scene.plan.timeout / 100);
    ASSERT_NE(scene.state_of(scene.ann), LeaseState::kLost) << i;
  }
  scene.ann.lets_go();
  scene.until_holds(scene.bob);
  scene.ends_having_met({10});
}

TEST(Schedule, H12_AWayThatLeavesNothingOfALeaseGrantsNothing) {
  SlowWay scene(300);

  scene.ann.wants(Scene::mutex(scene.ann), {}, 60s);
  scene.world.run_for(90s);

  EXPECT_EQ(scene.ann.error(), Code::kTimedOut);
  EXPECT_EQ(scene.judge.holds(), 1U) << "a grant whose time has passed";
  scene.ends_having_met({});
}

TEST(Schedule, H70_ALockIsPassedOnInsideASessionThatThenEnds) {
  Scene scene({.sites = {{Sort::kHandOver, "/locks/a"}}});
  const Mutex passed_on(scene.ann.session, "/locks/a", {.hand_over = {.count = 3, .time = 60s}});
  scene.ann.wants(passed_on);
  scene.until_holds(scene.ann);
  Person second(scene.ann, 0);
  Person third(scene.ann, 0);
  second.wants(passed_on);
  third.wants(passed_on);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();
  const Token first = scene.ann.lease().token();

  scene.ann.lets_go();
  scene.until_holds(second);
  EXPECT_GT(second.lease().token(), first);
  EXPECT_FALSE(scene.bob.holds());
  EXPECT_TRUE(scene.world.expire(scene.ann.session.id()));
  scene.judge.mistrust(scene.ann.session.id());
  scene.until([&] { return !third.waits(); });

  EXPECT_FALSE(third.holds()) << "what it would be handed is dead";
  EXPECT_EQ(second.lease().state(), LeaseState::kLost);
  scene.until_holds(scene.bob);
  second.lets_go();
  scene.ends_having_met({70});
}

/// Ann's session has four who want one lock. The second has just let go, and the lock is kept from
/// the third and the fourth, because the fourth had come as soon as Ann was gone.
struct KeptLock : Scene {
  KeptLock() : Scene({.sites = {{Sort::kHandOver, "/locks/a"}}}) {
    ann.wants(shared);
    until_holds(ann);
    second.wants(shared);
    third.wants(shared);
    bob.wants(mutex(bob));
    settle();
    ann.lets_go();
    fourth.wants(shared);
    until_holds(second);
    second.lets_go();
  }

  const Mutex shared{ann.session, "/locks/a", {.hand_over = {.count = 10, .time = 60s}}};
  Person second{ann, 0};
  Person third{ann, 0};
  Person fourth{ann, 0};
};

TEST(Schedule, H70_WhoComesBackAtOnceHasTheLockBeforeThoseWhoWait) {
  KeptLock scene;

  scene.second.wants(scene.shared);
  scene.until_holds(scene.second);
  EXPECT_EQ(scene.second.lease().token().hold(), 2U);
  EXPECT_TRUE(scene.third.waits());
  scene.second.lets_go();

  scene.until([&] { return scene.third.holds(); }, 1ms);
  EXPECT_EQ(scene.third.lease().token().hold(), 3U) << "nobody else came";
  scene.third.lets_go();
  scene.until_holds(scene.fourth);
  EXPECT_FALSE(scene.bob.holds());
  scene.fourth.lets_go();
  scene.until_holds(scene.bob);
  scene.ends_having_met({70});
}

TEST(Schedule, H70_AKeptLockThatNobodyComesForIsPassedOnAtOnce) {
  KeptLock scene;

  scene.until([&] { return scene.third.holds(); }, 1ms);
  EXPECT_EQ(scene.third.lease().token().hold(), 2U);
  scene.third.lets_go();
  scene.until([&] { return scene.fourth.holds(); }, 1ms);
  scene.fourth.lets_go();
  scene.until_holds(scene.bob);
  scene.ends_having_met({70});
}

TEST(Schedule, H70_AKeptLockIsNobodysOnceThoseWhoWaitHaveGivenUp) {
  KeptLock scene;

  scene.third.cancels();
  scene.fourth.cancels();

  scene.until_holds(scene.bob);
  EXPECT_EQ(scene.third.error(), Code::kCancelled);
  EXPECT_EQ(scene.fourth.error(), Code::kCancelled);
  scene.ends_having_met({});
}

TEST(Schedule, H70_AProcessThatIsStoppedWhileItKeepsALockPassesNothingOnThatIsDead) {
  KeptLock scene;

  scene.world.pause(scene.ann.process, 20s);
  scene.until_holds(scene.bob);
  scene.until([&] { return !scene.third.waits() && !scene.fourth.waits(); });

  EXPECT_FALSE(scene.third.holds());
  EXPECT_FALSE(scene.fourth.holds());
  scene.ends_having_met({});
}

TEST(Schedule, H72_TheNeighbourGoesAndTheHolderDoesNot) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();
  scene.cyd.wants(Scene::mutex(scene.cyd));
  scene.settle();

  scene.bob.cancels();
  scene.settle();
  EXPECT_FALSE(scene.cyd.holds());

  scene.ann.lets_go();
  scene.until_holds(scene.cyd);
  scene.ends_having_met({72});
}

TEST(Schedule, H10_WhoIsFirstHoldsAsSoonAsAnyAnswerProvesItsLease) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();
  scene.world.hold_next(scene.bob.process, testing::Way::kRequest, wire::Op::kSync, 2300ms);
  scene.until([&] { return scene.world.count(testing::Fault::kHold) > 0; });
  scene.world.run_for(2s);
  scene.ann.lets_go();
  scene.world.run_for(400ms);
  EXPECT_FALSE(scene.bob.holds()) << "its answers came too late to prove anything";

  // On a new connection nothing was slow yet.
  scene.world.cut(scene.bob.host());
  ASSERT_TRUE(scene.bob.session.sync(Path("/locks"), deadline_in(5s)));
  scene.settle();

  EXPECT_TRUE(scene.bob.holds());
  scene.ends_having_met({10});
}

TEST(Schedule, H76_AnObserverAtAServerThatLagsIsShownNobodyOld) {
  Scene scene({.sites = {{Sort::kElection, "/locks/a"}}, .followers = 1, .servers_of_ann = {1}});
  Candidate bobs(scene.stage, scene.bob, 0);
  scene.until([&] { return bobs.leads(); });
  Candidate cyds(scene.stage, scene.cyd, 0);
  scene.settle();
  std::vector<std::string> seen;
  Token shown{0};
  const auto see = [&](const Result<std::optional<latchkey::Leader>>& leader) {
    if (!leader || !*leader) return;
    scene.lookout.shown_leader(scene.ann.host());
    scene.judge.shown(0, shown, (*leader)->token);
    shown = (*leader)->token;
    seen.push_back((*leader)->id);
  };
  scene.world.lag(0, 1'000);
  bobs.closes();
  scene.until([&] { return cyds.leads(); });

  // What the follower has still shows bob. Others write all the time, so it never catches up.
  for (int i = 0; i < 2'000; ++i) {
    scene.world.post(scene.dan.process, i * 100us, [&scene] {
      Scene::mutex(scene.dan, "/others").lock_async(deadline_in(10s)).then([](Result<Lease>) {});
    });
  }
  std::optional<LeaderWatch> watch(std::in_place, scene.ann.session, "/locks/a", see);
  scene.until([&] { return !seen.empty(); });
  // And so does any other, after a new connection.
  scene.world.cut(scene.ann.host());
  scene.world.run_for(3s);

  EXPECT_EQ(seen, std::vector<std::string>{"cyd"});
  watch.reset();
  cyds.closes();
  scene.ends_having_met({76});
}

TEST(Schedule, H74_ALeaderThatIsWellConnectedAndSickMakesWay) {
  Scene scene({.sites = {{Sort::kElection, "/locks/a"}}});
  bool is_well = true;
  const auto is_healthy = [&] {
    if (!is_well) scene.lookout.found_sick();
    return is_well;
  };
  Candidate anns(scene.stage, scene.ann, 0, {.is_healthy = is_healthy, .health_period = 100ms});
  scene.until([&] { return anns.leads(); });
  Candidate bobs(scene.stage, scene.bob, 0);
  scene.world.run_for(10s);
  ASSERT_TRUE(anns.leads()) << "it was well all the time";

  is_well = false;
  scene.until([&] { return bobs.leads(); }, 1s);

  EXPECT_FALSE(anns.leads());
  EXPECT_EQ(scene.ann.session.state(), SessionState::kConnected);
  bobs.closes();
  anns.closes();
  scene.ends_having_met({74});
}

/// How many entries there have been.
std::int32_t entries(Scene& scene) {
  return scene.world.leader().tree().nodes().find("/locks/a")->creates;
}

TEST(Schedule, H75_WhoResignsQueuesAgainBehindTheOthersAndOnlyOnce) {
  Scene scene({.sites = {{Sort::kElection, "/locks/a"}}});
  Candidate anns(scene.stage, scene.ann, 0);
  scene.until([&] { return anns.leads(); });
  Candidate bobs(scene.stage, scene.bob, 0);
  scene.settle();
  Candidate cyds(scene.stage, scene.cyd, 0);
  scene.settle();

  anns.resigns();
  anns.resigns();
  scene.until([&] { return bobs.leads(); });
  anns.resigns();
  scene.world.run_for(30s);
  EXPECT_EQ(entries(scene), 4);
  bobs.closes();
  scene.until([&] { return cyds.leads(); });
  cyds.closes();
  scene.until([&] { return anns.leads(); });

  EXPECT_EQ(anns.terms(), 2);
  anns.closes();
  scene.ends_having_met({75});
}

TEST(Schedule, H75_ConnectionsThatComeAndGoForTenMinutesMakeFewEntries) {
  Scene scene({.sites = {{Sort::kElection, "/locks/a"}}});
  Candidate anns(scene.stage, scene.ann, 0);
  scene.until([&] { return anns.leads(); });
  Candidate bobs(scene.stage, scene.bob, 0);
  scene.settle();

  for (const Instant end = scene.world.now() + 10min; scene.world.now() < end;) {
    scene.world.cut(scene.ann.host());
    scene.world.cut(scene.bob.host());
    scene.settle();
  }

  EXPECT_LE(entries(scene), 10) << "of 6,000 connections";
  scene.until([&] { return anns.leads() || bobs.leads(); });
  EXPECT_NE(anns.leads(), bobs.leads());
  anns.closes();
  scene.until([&] { return bobs.leads(); });
  bobs.closes();
  scene.ends_having_met({});
}

TEST(Schedule, H18_ReadersDoNotFenceEachOtherAndALaterWriterFencesBoth) {
  Scene scene({.sites = {{Sort::kRw, "/locks/a"}}});
  const auto lock_of = [](const Person& person) { return RwLock(person.session, "/locks/a"); };
  const Share one{0, 1, true};
  scene.ann.wants(lock_of(scene.ann).read(), one);
  scene.until_holds(scene.ann);
  scene.bob.wants(lock_of(scene.bob).read(), one);
  scene.until_holds(scene.bob);
  const Token anns = scene.ann.lease().token();
  const Token bobs = scene.bob.lease().token();
  // As docs/guarantees.md wants it: only a writer's token raises the maximum.
  Token largest{0};
  const auto is_taken = [&](const Token& token, bool writes) {
    if (token < largest) return false;
    if (writes) largest = token;
    return true;
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(is_taken(anns, false));
    EXPECT_TRUE(is_taken(bobs, false));
  }

  // Both are paused in the middle of their work, and what they send is still under way.
  scene.world.pause(scene.ann.process, 3 * scene.plan.timeout);
  scene.world.pause(scene.bob.process, 3 * scene.plan.timeout);
  scene.cyd.wants(lock_of(scene.cyd).write(), {0, kAllSeats, false});
  scene.until_holds(scene.cyd);

  EXPECT_TRUE(is_taken(scene.cyd.lease().token(), true));
  EXPECT_FALSE(is_taken(anns, false));
  EXPECT_FALSE(is_taken(bobs, false));
  scene.ends_having_met({13, 18, 73});
}

}  // namespace
}  // namespace latchkey::sim
