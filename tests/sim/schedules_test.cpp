#include <algorithm>

#include <gtest/gtest.h>

#include "latchkey/multi_lock.hpp"
#include "latchkey/mutex.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/semaphore.hpp"
#include "sim/scene.hpp"

/// Hand-written schedules: the fault strikes at the step that the hazard names. What the lookout
/// has to see shows that the schedule is the one that was meant.
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using testing::Silence;
using testing::Way;
using wire::Op;

// ---- Create and identity ------------------------------------------------------------------------

TEST(Schedule, H01_ACreateIsCarriedOutAndItsAnswerIsLost) {
  Scene scene;
  scene.take_and_leave(scene.ann);
  scene.world.drop_next(scene.ann.process, Way::kReply, Op::kCreate2);

  scene.take(scene.ann);

  EXPECT_EQ(scene.world.leader().tree().nodes().find("/locks/a")->children.size(), 1U);
  scene.ends_having_met({1});
}

TEST(Schedule, H02_ACreateInDoubtIsUnknownWhereItsSessionAttachesAgain) {
  Scene scene({.followers = 2, .servers_of_ann = {1, 2}});
  scene.take_and_leave(scene.ann);
  scene.world.lag(0, 20);
  scene.world.lag(1, 20);
  scene.world.drop_next(scene.ann.process, Way::kReply, Op::kCreate2);

  scene.take(scene.ann);

  EXPECT_EQ(scene.world.leader().tree().nodes().find("/locks/a")->children.size(), 1U);
  scene.ends_having_met({1, 2});
}

TEST(Schedule, H88_ASessionAttachesAgainWhileItsCreateWaitsForTheDisk) {
  Scene scene;
  scene.take_and_leave(scene.ann);
  scene.world.stall_disk(2s);
  scene.ann.wants(Scene::mutex(scene.ann));
  scene.settle();
  scene.world.cut(scene.ann.host());

  scene.until_holds(scene.ann);

  EXPECT_EQ(scene.world.leader().tree().nodes().find("/locks/a")->children.size(), 1U);
  scene.ends_having_met({88});
}

TEST(Schedule, H88_WhatIsHeldUpOnAnOldConnectionIsNotCarriedOut) {
  Scene scene;
  scene.take_and_leave(scene.ann);
  scene.world.hold_next(scene.ann.process, Way::kRequest, Op::kCreate2, scene.plan.timeout);

  scene.take(scene.ann);
  scene.world.run_for(scene.plan.timeout);

  EXPECT_EQ(scene.world.leader().tree().nodes().find("/locks/a")->children.size(), 1U);
  scene.ends_having_met({3});
}

TEST(Schedule, H03_ASilentServerLeavesACreateInDoubt) {
  Scene scene;
  scene.take_and_leave(scene.ann);
  scene.world.partition(scene.ann.process, 0, Silence::kReplies);
  scene.ann.wants(Scene::mutex(scene.ann));
  scene.until([&] { return !scene.ann.host().is_connected(); });
  scene.world.heal(scene.ann.process, 0);

  scene.until_holds(scene.ann);

  scene.ends_having_met({3});
}

TEST(Schedule, H05_AnEntryAndThenTheOneAheadGoWhileItsOwnerIsAway) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();
  scene.lock_out(scene.bob);
  const auto queue = scene.cyd.session.children("/locks/a", deadline_in(5s));
  ASSERT_EQ(queue->names.size(), 2U);
  const std::string ahead = "/locks/a/" + *std::ranges::min_element(queue->names, {}, [](auto& n) {
                              return n.substr(n.size() - 10);
                            });
  for (const std::string& name : queue->names) {
    const std::string path = "/locks/a/" + name;
    if (path == ahead) continue;
    ASSERT_TRUE(scene.cyd.session.remove(path, deadline_in(5s)));
  }
  scene.ann.lets_go();
  scene.settle();

  scene.let_back(scene.bob);
  scene.until([&] { return !scene.bob.waits(); });

  EXPECT_EQ(scene.bob.error(), Code::kLost);
  scene.ends_having_met({91});
}

TEST(Schedule, H05_AnEntryGoesBeforeItsOwnerHasSeenItInAList) {
  Scene scene;
  scene.take_and_leave(scene.ann);
  scene.world.refuse(scene.ann.process, 0, testing::Refusal::kOn);
  scene.world.drop_next(scene.ann.process, Way::kReply, Op::kGetChildren);
  scene.ann.wants(Scene::mutex(scene.ann));
  scene.settle();
  const auto entry = scene.judge.any_entry();
  ASSERT_TRUE(entry);
  ASSERT_TRUE(scene.cyd.session.remove(Path(entry->path), deadline_in(5s)));

  scene.let_back(scene.ann);
  scene.until([&] { return !scene.ann.waits(); });

  EXPECT_FALSE(scene.ann.holds() && scene.ann.lease().node() == entry->path);
  scene.ends_having_met({5, 93});
}

TEST(Schedule, H06_WhoGivesUpWithItsCreateInDoubtLeavesNothing) {
  Scene scene;
  scene.take_and_leave(scene.ann);
  scene.world.partition(scene.ann.process, 0, Silence::kReplies);

  scene.ann.wants(Scene::mutex(scene.ann), {}, 50ms);
  scene.until([&] { return !scene.ann.waits(); });

  EXPECT_EQ(scene.ann.error(), Code::kTimedOut);
  scene.ends_having_met({6});
}

TEST(Schedule, H07_ACreateInDoubtIsNotMistakenForThatOfAnotherAttemptOfTheSession) {
  Scene scene;
  scene.take(scene.ann);
  Person beside(scene.ann, 0);
  scene.world.drop_next(scene.ann.process, Way::kReply, Op::kCreate2);

  beside.wants(Scene::mutex(beside));
  scene.settle();
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.world.run_for(2s);
  EXPECT_FALSE(beside.holds()) << "the entry that it found is ann's";
  EXPECT_EQ(scene.world.leader().tree().nodes().find("/locks/a")->children.size(), 3U);
  const Token before = scene.ann.lease().token();
  scene.ann.lets_go();
  scene.until_holds(beside);

  EXPECT_GT(beside.lease().token(), before);
  EXPECT_FALSE(scene.bob.holds());
  beside.lets_go();
  scene.until_holds(scene.bob);
  scene.ends_having_met({1, 7});
}

// ---- The lease ----------------------------------------------------------------------------------

TEST(Schedule, H09_H23_ALeaseRunsOutByItsClockAndTheSessionLives) {
  Scene scene;
  scene.take(scene.ann);
  const std::int64_t id = scene.ann.session.id();
  scene.world.partition(scene.ann.process, 0, Silence::kBoth);
  scene.until([&] { return scene.ann.lease().state() == LeaseState::kLost; });

  scene.world.heal(scene.ann.process, 0);
  scene.ann.lets_go();
  scene.take(scene.bob);

  EXPECT_EQ(scene.ann.session.id(), id);
  scene.ends_having_met({9, 23});
}

TEST(Schedule, H10_AnswersThatTakeLongProveLittle) {
  Scene scene;
  scene.take(scene.ann);
  scene.world.slow_down(scene.ann.process, 0, 700ms);
  scene.world.run_for(3s);
  scene.world.partition(scene.ann.process, 0, Silence::kRequests);

  scene.take(scene.bob);

  EXPECT_EQ(scene.ann.lease().state(), LeaseState::kLost);
  scene.ends_having_met({10});
}

TEST(Schedule, H11_AFollowerAnswersForASessionThatItsLeaderHasEnded) {
  Scene scene({.followers = 1, .timeout = 2'000ms, .servers_of_ann = {1}});
  scene.take(scene.ann);
  scene.world.lag(0, 1'000);
  EXPECT_TRUE(scene.world.expire(scene.ann.session.id()));
  scene.judge.mistrust(scene.ann.session.id());
  scene.settle();

  const auto node = scene.ann.session.exists(Path(scene.ann.lease().node()), deadline_in(1s));

  EXPECT_TRUE(node && node->has_value());
  scene.world.run_for(2 * scene.plan.timeout);
  EXPECT_EQ(scene.state_of(scene.ann), LeaseState::kLost) << "only its follower proved anything";
  scene.ends_having_met({11});
}

TEST(Schedule, H12_AWaiterWhoseSessionEndsIsNotGranted) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();

  scene.world.expire(scene.bob.session.id());
  scene.ann.lets_go();
  scene.until([&] { return !scene.bob.waits(); });

  EXPECT_FALSE(scene.bob.holds());
  scene.ends_having_met({12});
}

TEST(Schedule, H13_H73_AHolderIsPausedPastItsTimeOut) {
  Scene scene;
  scene.take(scene.ann);
  scene.world.pause(scene.ann.process, 12s);

  scene.take(scene.bob);

  EXPECT_GT(scene.bob.lease().token(), scene.ann.lease().token());
  scene.ends_having_met({13, 73});
}

TEST(Schedule, H14_AClockOnTheWallChangesNothing) {
  Scene scene;
  scene.take(scene.ann);

  scene.world.jump_wall_clock(scene.ann.process, std::chrono::hours(9'000));
  scene.world.run_for(30s);

  EXPECT_EQ(scene.ann.lease().state(), LeaseState::kHeld);
  scene.ends_having_met({14});
}

TEST(Schedule, H16_H39_H40_TokensGrowOverADirectoryThatIsMadeAnew) {
  Scene scene;
  scene.take(scene.ann);
  const Token before = scene.ann.lease().token();
  scene.ann.lets_go();
  scene.settle();
  ASSERT_TRUE(scene.cyd.session.remove("/locks/a", deadline_in(5s)));

  scene.take(scene.bob);

  EXPECT_GT(scene.bob.lease().token(), before);
  scene.ends_having_met({16, 39, 40});
}

// ---- Release ------------------------------------------------------------------------------------

TEST(Schedule, H21_ALostDeleteLetsTheNextInWithoutExpiry) {
  for (const Way way : {Way::kRequest, Way::kReply}) {
    Scene scene;
    scene.take(scene.ann);
    scene.bob.wants(Scene::mutex(scene.bob));
    scene.world.drop_next(scene.ann.process, way, Op::kDelete);
    scene.ann.lets_go();

    scene.until([&] { return scene.bob.holds(); }, scene.plan.timeout / 2);

    scene.ends_having_met({21});
  }
}

TEST(Schedule, H24_ASecondReleaseDoesNotTouchTheNextHolder) {
  Scene scene;
  scene.take(scene.ann);
  Person beside(scene.ann, 0);
  beside.wants(Scene::mutex(beside));
  scene.settle();
  scene.ann.lets_go();
  scene.until_holds(beside);

  scene.ann.lets_go_again();
  scene.settle();

  EXPECT_EQ(scene.state_of(beside), LeaseState::kHeld);
  EXPECT_EQ(scene.world.leader().tree().nodes().find("/locks/a")->children.size(), 1U);
  beside.lets_go();
  scene.ends_having_met({24});
}

TEST(Schedule, H52_ALeaseDestroyedWithoutAConnectionLetsTheNextInOnceThereIsOne) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();
  scene.lock_out(scene.ann);

  scene.ann.lets_go(Lookout::Ending::kDestruction);
  scene.settle();
  EXPECT_FALSE(scene.bob.holds());
  scene.let_back(scene.ann);
  scene.until([&] { return scene.bob.holds(); }, scene.plan.timeout / 2);

  scene.ends_having_met({52});
}

TEST(Schedule, H22_ADeleteDiesWithItsSession) {
  Scene scene;
  scene.take(scene.ann);
  scene.world.partition(scene.ann.process, 0, Silence::kRequests);
  scene.ann.lets_go();

  scene.world.expire(scene.ann.session.id());
  scene.take(scene.bob);

  scene.ends_having_met({22});
}

TEST(Schedule, H23_AReleaseWithoutAConnectionArrivesWithTheNext) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.lock_out(scene.ann);
  scene.ann.lets_go();
  scene.settle();
  EXPECT_FALSE(scene.bob.holds());

  scene.let_back(scene.ann);
  scene.until([&] { return scene.bob.holds(); }, scene.plan.timeout / 2);

  scene.ends_having_met({23});
}

TEST(Schedule, H25_H59_ASessionLetGoWithoutAConnectionBlocksNobodyForLong) {
  Scene scene;
  scene.take(scene.ann);
  Person impatient(scene.ann, 0);
  impatient.leaves_when_answered();
  scene.lock_out(scene.ann);
  impatient.wants(Scene::mutex(impatient), {}, 500ms);

  scene.until([&] { return !impatient.waits(); });
  EXPECT_EQ(impatient.error(), Code::kTimedOut);
  const Instant before = scene.world.now();
  scene.take(scene.bob);

  EXPECT_LE(scene.world.now() - before, scene.plan.timeout + 1s);
  scene.ends_having_met({25, 59});
}

TEST(Schedule, H58_H59_ASessionLetGoWithRequestsUnansweredAnswersEach) {
  Scene scene;
  scene.take(scene.ann);
  Person impatient(scene.ann, 0);
  Person patient(scene.ann, 0);
  impatient.leaves_when_answered();
  scene.world.partition(scene.ann.process, 0, Silence::kReplies);
  patient.wants(Scene::mutex(patient));
  impatient.wants(Scene::mutex(impatient), {}, 500ms);

  scene.until([&] { return !impatient.waits(); });
  scene.take(scene.bob);

  EXPECT_FALSE(patient.waits());
  EXPECT_EQ(patient.error(), Code::kClosed);
  EXPECT_EQ(scene.judge.open_asks(), 0U);
  scene.ends_having_met({58, 59});
}

// ---- Waiting and watches ------------------------------------------------------------------------

TEST(Schedule, H26_H28_ThePredecessorGoesBeforeItIsWatched) {
  Scene scene;
  scene.take(scene.ann);
  scene.world.hold_next(scene.bob.process, Way::kRequest, Op::kGetData, 200ms);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();

  scene.ann.lets_go();
  scene.until_holds(scene.bob);

  scene.ends_having_met({26, 28});
}

TEST(Schedule, H27_H29_OneInTheMiddleGivesUp) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob), {}, 500ms);
  scene.settle();
  scene.cyd.wants(Scene::mutex(scene.cyd));
  scene.until([&] { return !scene.bob.waits(); });
  scene.settle();
  EXPECT_FALSE(scene.cyd.holds());
  std::size_t watches = 0;
  for (Person* person : {&scene.ann, &scene.cyd}) watches += person->host().machine().watch_count();
  EXPECT_EQ(scene.bob.host().machine().watch_count(), 0U);
  EXPECT_EQ(scene.world.leader().tree().watches().size(), watches);

  scene.ann.lets_go();
  scene.until_holds(scene.cyd);

  scene.ends_having_met({27, 29});
}

TEST(Schedule, H30_H62_AWatchFiresWhileItIsBeingRemoved) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();
  scene.world.hold_next(scene.bob.process, Way::kRequest, Op::kRemoveWatches, 200ms);
  scene.bob.cancels();
  scene.settle();

  scene.ann.lets_go();
  scene.until([&] { return !scene.bob.waits(); });

  scene.ends_having_met({30, 62});
}

TEST(Schedule, H31_AnEventFollowsTheAnswerThatArmedIt) {
  Scene scene;
  scene.take(scene.ann);
  scene.world.hold_next(scene.bob.process, Way::kReply, Op::kGetData, 200ms);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();

  scene.ann.lets_go();
  scene.until_holds(scene.bob);

  scene.ends_having_met({31});
}

TEST(Schedule, H32_WatchesAreSetAgainAtAServerThatLags) {
  Scene scene({.followers = 2, .servers_of_ann = {1, 2}});
  scene.take(scene.bob);
  scene.ann.wants(Scene::mutex(scene.ann));
  scene.settle();
  scene.world.lag(0, 20);
  scene.world.lag(1, 20);
  scene.bob.lets_go();
  scene.settle();

  scene.world.cut(scene.ann.host());
  scene.world.run_for(1s);
  scene.world.lag(0, 0);
  scene.world.lag(1, 0);
  scene.until_holds(scene.ann);

  scene.ends_having_met({32});
}

TEST(Schedule, H33_OneReleaseWakesAllReadersBehindIt) {
  Scene scene({.sites = {{Sort::kRw, "/locks/rw"}}});
  const Share reads{0, 1, true};
  scene.ann.wants(RwLock(scene.ann.session, "/locks/rw").write(), {0, kAllSeats, false});
  scene.until_holds(scene.ann);
  for (Person* reader : {&scene.bob, &scene.cyd, &scene.dan}) {
    reader->wants(RwLock(reader->session, "/locks/rw").read(), reads);
  }
  scene.settle();

  scene.ann.lets_go();
  for (Person* reader : {&scene.bob, &scene.cyd, &scene.dan}) scene.until_holds(*reader);

  scene.ends_having_met({18, 33});
}

TEST(Schedule, H34_AChangeOfThePredecessorsDataIsNoDeletion) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();

  ASSERT_TRUE(scene.cyd.session.set(Path(scene.ann.lease().node()), "x", deadline_in(5s)));
  scene.settle();
  EXPECT_FALSE(scene.bob.holds());
  scene.ann.lets_go();
  scene.until_holds(scene.bob);

  scene.ends_having_met({34});
}

TEST(Schedule, H91_WhatWentMeanwhileFiresWhenItsWatchIsSetAgain) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();
  scene.lock_out(scene.bob);
  scene.ann.lets_go();
  scene.settle();

  scene.let_back(scene.bob);
  scene.until_holds(scene.bob);

  scene.ends_having_met({91});
}

// ---- Directories --------------------------------------------------------------------------------

TEST(Schedule, H36_H37_ForeignChildrenAndNamesDoNotMatter) {
  Scene scene;
  scene.take_and_leave(scene.ann);
  const Path note("/locks/a/x-lock-000000001");
  ASSERT_TRUE(scene.cyd.session.create(note, "", {}, deadline_in(5s)));

  for (int i = 0; i < 5; ++i) {
    scene.take(scene.ann);
    scene.bob.wants(Scene::mutex(scene.bob));
    scene.settle();
    EXPECT_FALSE(scene.bob.holds());
    scene.ann.lets_go();
    scene.until_holds(scene.bob);
    scene.bob.lets_go();
  }

  EXPECT_TRUE(scene.cyd.session.remove(note, deadline_in(5s)));
  scene.ends_having_met({36, 37});
}

TEST(Schedule, H93_AnotherHandRemovesAHoldersEntry) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob));
  scene.settle();

  ASSERT_TRUE(scene.cyd.session.remove(Path(scene.ann.lease().node()), deadline_in(5s)));
  scene.until_holds(scene.bob);
  scene.world.run_for(scene.plan.timeout);

  EXPECT_EQ(scene.ann.lease().state(), LeaseState::kLost);
  scene.ends_having_met({93});
}

// ---- Other locks --------------------------------------------------------------------------------

TEST(Schedule, H42_H43_H45_ReadersAndWritersInOrder) {
  Scene scene({.sites = {{Sort::kRw, "/locks/rw"}}});
  const Share reads{0, 1, true};
  const Share writes{0, kAllSeats, false};
  const auto lock = [](const Person& person) { return RwLock(person.session, "/locks/rw"); };
  scene.ann.wants(lock(scene.ann).write(), writes);
  scene.until_holds(scene.ann);
  scene.bob.wants(lock(scene.bob).read(), reads);
  scene.settle();
  scene.cyd.wants(lock(scene.cyd).write(), writes);
  scene.settle();
  scene.ann.lets_go();
  scene.until_holds(scene.bob);
  EXPECT_FALSE(scene.cyd.holds());

  scene.dan.wants(lock(scene.dan).read(), reads);
  scene.settle();
  EXPECT_FALSE(scene.dan.holds());
  scene.bob.lets_go();
  scene.until_holds(scene.cyd);
  scene.cyd.lets_go();
  scene.until_holds(scene.dan);

  scene.ann.wants(lock(scene.ann).read(), reads);
  scene.until_holds(scene.ann);
  scene.bob.wants(lock(scene.bob).write(), writes);
  scene.settle();
  scene.ann.lets_go();
  scene.settle();
  EXPECT_FALSE(scene.bob.holds());
  scene.dan.lets_go();
  scene.until_holds(scene.bob);
  scene.ends_having_met({42, 43, 45});
}

TEST(Schedule, H46_H47_APermitComesBackFromOneThatIsNotWatched) {
  Scene scene({.sites = {{Sort::kSemaphore, "/locks/pool", 2}}});
  const auto permit = [](const Person& person) {
    return Semaphore(person.session, "/locks/pool", {.size = 2}).permits(1);
  };
  scene.ann.wants(permit(scene.ann));
  scene.until_holds(scene.ann);
  scene.bob.wants(permit(scene.bob));
  scene.until_holds(scene.bob);
  scene.cyd.wants(permit(scene.cyd));
  scene.settle();
  EXPECT_FALSE(scene.cyd.holds());

  scene.ann.lets_go();
  scene.until_holds(scene.cyd);

  scene.ends_having_met({46, 47});
}

TEST(Schedule, H48_ASemaphoreThatGrowsLetsTheNextIn) {
  Scene scene({.sites = {{Sort::kSemaphore, "/pool", 2}}});
  ASSERT_TRUE(scene.dan.session.create("/pool", "1", {}, deadline_in(5s)));
  const auto permit = [](const Person& person) {
    return Semaphore(person.session, "/pool").permits(1);
  };
  scene.ann.wants(permit(scene.ann));
  scene.until_holds(scene.ann);
  scene.bob.wants(permit(scene.bob));
  scene.settle();
  EXPECT_FALSE(scene.bob.holds());

  ASSERT_TRUE(scene.dan.session.set("/pool", "2", deadline_in(5s)));
  scene.until_holds(scene.bob);

  scene.ends_having_met({48});
}

TEST(Schedule, H49_AMultiLockIsFirstInOneQueueAndWaitsInAnother) {
  Scene scene({.sites = {{Sort::kMutex, "/locks/a"}, {Sort::kMutex, "/locks/b"}}});
  scene.take_and_leave(scene.ann);
  scene.ann.wants(Scene::mutex(scene.ann, "/locks/b"), {1, 1, false});
  scene.until_holds(scene.ann);
  scene.bob.wants(MultiLock(scene.bob.session, {Path("/locks/a"), Path("/locks/b")}));
  scene.settle();
  scene.cyd.wants(Scene::mutex(scene.cyd));
  scene.settle();
  EXPECT_FALSE(scene.bob.holds() || scene.cyd.holds());

  scene.world.expire(scene.bob.session.id());
  scene.until_holds(scene.cyd);

  EXPECT_FALSE(scene.bob.holds());
  scene.ends_having_met({49});
}

TEST(Schedule, H50_ADeadlinePassesWhileTheGrantIsOnItsWay) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob), {}, 300ms);
  scene.settle();
  scene.cyd.wants(Scene::mutex(scene.cyd));
  scene.settle();
  scene.world.hold_next(scene.bob.process, Way::kReply, Op::kNotification, 1s);

  scene.ann.lets_go();
  scene.until([&] { return !scene.bob.waits(); });
  EXPECT_EQ(scene.bob.error(), Code::kTimedOut);
  scene.until_holds(scene.cyd);

  scene.ends_having_met({50});
}

TEST(Schedule, H51_WhoHasNoConnectionIsAnsweredAtItsDeadline) {
  Scene scene;
  scene.lock_out(scene.ann);

  scene.ann.wants(Scene::mutex(scene.ann), {}, 500ms);
  scene.until([&] { return !scene.ann.waits(); }, 600ms);

  EXPECT_EQ(scene.ann.error(), Code::kTimedOut);
  scene.ends_having_met({51});
}

TEST(Schedule, H66_ASessionThatIsOverIsToldSoAndStaysOver) {
  Scene scene;
  scene.take(scene.ann);
  scene.lock_out(scene.ann);
  scene.world.run_for(scene.plan.timeout + 1s);
  scene.let_back(scene.ann);

  scene.until([&] { return scene.ann.session.state() == SessionState::kExpired; });

  EXPECT_EQ(scene.ann.lease().state(), LeaseState::kLost);
  scene.ends_having_met({66});
}

TEST(Schedule, H71_TheCreateIsAnsweredAndTheListIsNot) {
  std::uint64_t met = 0;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    Scene scene({.seed = seed});
    scene.take_and_leave(scene.ann);
    // Whether the answer in front of it arrives before the end is luck.
    scene.world.drop_next(scene.ann.process, Way::kReply, Op::kGetChildren);

    scene.take(scene.ann);

    scene.ends_having_met({});
    met += scene.lookout.sightings().of(71);
  }
  EXPECT_GT(met, 0U);
}

TEST(Schedule, H73_AfterAHolderThatVanishedTheDelayIsWaitedOut) {
  Scene scene({.sites = {{Sort::kDelayed, "/locks/a"}}});
  const auto careful = [](const Person& person) {
    return Lock(Mutex(person.session, Path("/locks/a"), {.lock_delay = kLockDelay}));
  };
  scene.ann.wants(careful(scene.ann));
  scene.until_holds(scene.ann);
  scene.bob.wants(careful(scene.bob));
  scene.settle();

  scene.lock_out(scene.ann);
  scene.until_holds(scene.bob);

  scene.ends_having_met({73});
}

// ---- The server ---------------------------------------------------------------------------------

TEST(Schedule, H79_RestartsFromSnapshotsAndWhatFollowsThemGiveTheSameTree) {
  Scene scene({.store = testing::Store::kDisk, .fold_bytes = 2'048});

  // The judge compares after each.
  for (int i = 0; i < 20; ++i) {
    scene.take(scene.ann);
    scene.restart_server(10ms);
    scene.ann.lets_go();
    scene.settle();
  }

  scene.ends_having_met({79});
}

TEST(Schedule, H77_H80_H82_CrashesInTheMiddleOfACommit) {
  Scene scene({.store = testing::Store::kDisk});
  for (int round = 0; round < 30; ++round) {
    scene.ann.wants(Scene::mutex(scene.ann));
    // More than a sector, so that there is something to be torn.
    scene.cyd.session.async(Create{Path("/large" + std::to_string(round)), std::string(3'000, 'x')},
                            deadline_in(60s), [](const Result<Created>&) {});
    const auto is_committing = [&] { return scene.world.leader().service().in_flight() > 0; };
    scene.until(is_committing);
    scene.world.crash(0, testing::Crash::kPower);
    scene.world.run_for(10ms);
    scene.world.restart(0);
    scene.until_holds(scene.ann);
    scene.ann.lets_go();
    scene.settle();
  }

  scene.ends_having_met({77, 80, 82});
}

TEST(Schedule, H81_AServerThatWasDownForLongForgetsNobody) {
  Scene scene({.sites = {{Sort::kMutex, "/locks/a"}, {Sort::kMutex, "/locks/b"}}});
  scene.take(scene.ann);
  const std::int64_t id = scene.ann.session.id();
  scene.dan.wants(Scene::mutex(scene.dan, "/locks/b"), {1, 1, false});
  scene.until_holds(scene.dan);
  scene.lock_out(scene.dan);
  scene.restart_server(10s);

  scene.until([&] { return scene.ann.session.state() == SessionState::kConnected; });
  scene.cyd.wants(Scene::mutex(scene.cyd, "/locks/b"), {1, 1, false});
  scene.until([&] { return scene.cyd.holds(); }, 2 * scene.plan.timeout);

  EXPECT_EQ(scene.ann.session.id(), id);
  scene.ends_having_met({81});
}

TEST(Schedule, H86_TheServersWallClockChangesNothing) {
  Scene scene;
  scene.take(scene.ann);
  scene.bob.wants(Scene::mutex(scene.bob));
  for (const int hours : {9'000, -18'000}) {
    scene.world.jump_wall_clock(scene.world.leader().process(), std::chrono::hours(hours));
    scene.world.run_for(10s);
  }
  EXPECT_EQ(scene.ann.lease().state(), LeaseState::kHeld);

  scene.ann.lets_go();
  scene.until_holds(scene.bob);

  scene.ends_having_met({86});
}

TEST(Schedule, H11_ADeposedLeaderKeepsNoLeaseAliveForTooLong) {
  Scene scene({.followers = 2, .servers_of_ann = {1}});
  scene.take(scene.ann);
  scene.world.run_for(1s);
  scene.world.depose(0, scene.plan.timeout / 4);
  scene.world.refuse(scene.ann.process, 1, testing::Refusal::kOn);

  scene.take(scene.bob);

  EXPECT_EQ(scene.ann.lease().state(), LeaseState::kLost);
  EXPECT_GT(scene.bob.lease().token(), scene.ann.lease().token());
  scene.ends_having_met({73});
}

}  // namespace
}  // namespace latchkey::sim
