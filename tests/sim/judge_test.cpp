#include "sim/judge.hpp"

#include <gtest/gtest.h>

#include "wire/test_bytes.hpp"

/// What the judge says of clients that do wrong on purpose: entries are made by hand and announced
/// as if a lock had granted them.
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

constexpr const char* kFirst = "/locks/a/_c_00000000-0000-0000-0000-00000000000a-lock-";
constexpr const char* kSecond = "/locks/a/_c_00000000-0000-0000-0000-00000000000b-lock-";
constexpr const char* kThird = "/locks/a/_c_00000000-0000-0000-0000-000000000012-lock-";
constexpr const char* kOtherLock = "/locks/b/_c_00000000-0000-0000-0000-00000000000f-lock-";
constexpr const char* kPermit = "/pool/leases/_c_00000000-0000-0000-0000-00000000000e-lease-";
constexpr const char* kAnotherPermit =
    "/pool/leases/_c_00000000-0000-0000-0000-000000000011-lease-";
constexpr const char* kInFront = "/pool/locks/_c_00000000-0000-0000-0000-00000000000d-lock-";
constexpr const char* kCandidate = "/locks/led/_c_00000000-0000-0000-0000-000000000013-latch-";
constexpr const char* kReader = "/locks/rw/_c_00000000-0000-0000-0000-00000000000c-__READ__";

Plan judged_plan() {
  Plan plan;
  plan.world.service.tick = 1s;
  plan.sites = {{Sort::kMutex, "/locks/a"},
                {Sort::kMutex, "/locks/b"},
                {Sort::kRw, "/locks/rw"},
                {Sort::kSemaphore, "/pool", 2},
                {Sort::kElection, "/locks/led"}};
  return plan;
}

class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest() {
    for (const char* const path : {"/locks", "/locks/a", "/locks/b", "/locks/rw", "/locks/led",
                                   "/pool", "/pool/locks", "/pool/leases"}) {
      EXPECT_TRUE(hers.create(path, "", {}, deadline_in(5s)));
    }
    lost.request_stop();
    EXPECT_TRUE(hers.set("/pool", "2", deadline_in(5s)));
  }

  static Created enter(Session& session, const std::string& path) {
    CreateOptions options;
    options.lifetime = Lifetime::kEphemeral;
    options.naming = Naming::kSequential;
    return *session.create(Path(path), "", options, deadline_in(5s));
  }
  Judge::AskId ask(std::size_t site = 0) {
    return judge.asked({0, &ann, world.now() + 1h, {Share{site}}});
  }
  Judge::HoldId announce(const Created& entry, Share share = {}) {
    return judge.granted({.client = 0,
                          .process = &ann,
                          .session = hers.id(),
                          .shares = {share},
                          .token = Token(entry.stat->czxid),
                          .nodes = {entry.path},
                          .believes = [this] { return believes; },
                          .lost = lost.get_token()});
  }
  static session::Call get_call(const std::string& path, bool watches) {
    session::Call call{.op = wire::Op::kGetData, .path = path};
    wire::append_frame(call.frame, wire::RequestHeader{0, call.op}, wire::PathWatch{path, watches});
    return call;
  }
  /// Past everything that keeps a session's own books in order.
  void submit(const Session& session, session::Call call) {
    world.run_until([&] { return session.state() == SessionState::kConnected; }, 5s);
    world.host_of(session).enter(
        [&](session::Machine& machine, Instant now) { machine.submit(std::move(call), now); });
  }
  /// For so long that whoever else has nothing on its way is seen to sleep.
  void keep_busy(Session& session) {
    for (const Instant end = world.now() + plan.timeout / 4; world.now() < end;) {
      ASSERT_TRUE(session.sync("/", deadline_in(5s)));
    }
  }
  [[nodiscard]] std::string said() const {
    const auto& violation = judge.violation();
    return violation ? std::string(name(violation->invariant)) : "nothing";
  }

  const Plan plan = judged_plan();
  testing::World world{plan.world};
  Judge judge{world, plan};
  testing::Process& ann = world.start_process("ann");
  testing::Process& bob = world.start_process("bob");
  Session hers = world.open(ann);
  Session his = world.open(bob);
  bool believes = true;
  std::stop_source lost;  ///< Nobody here keeps a lease up, so everybody has been told.
};

TEST_F(JudgeTest, AWaiterIsNotPassedOverByAnotherOfItsSession) {
  ask();
  const Judge::AskId second = ask();
  enter(hers, kFirst);
  const Created behind = enter(hers, kSecond);

  judge.answered(second, Judge::Got::kHold, hers.id());
  announce(behind);
  world.run_for(5s);

  EXPECT_EQ(said(), "server order");
}

TEST_F(JudgeTest, WhoHasGivenUpIsPassedOverByAnotherOfItsSession) {
  const Judge::AskId first = ask();
  const Judge::AskId second = ask();
  enter(hers, kFirst);
  const Created behind = enter(hers, kSecond);

  judge.answered(second, Judge::Got::kHold, hers.id());
  announce(behind);
  world.run_for(10ms);
  judge.answered(first, Judge::Got::kNothing, hers.id());
  world.run_for(5s);

  EXPECT_EQ(said(), "nothing");
}

TEST_F(JudgeTest, TheTwinOfAnAnnouncedEntryIsPassedOverByAnotherOfItsSession) {
  const Judge::AskId first = ask();
  const Judge::AskId second = ask();
  const Created entry = enter(hers, kFirst);
  enter(hers, kFirst);  // Its delete is late.
  const Created behind = enter(hers, kSecond);

  judge.answered(first, Judge::Got::kHold, hers.id());
  judge.ended(announce(entry));
  ASSERT_TRUE(hers.remove(entry.path, deadline_in(5s)));
  judge.answered(second, Judge::Got::kHold, hers.id());
  announce(behind);
  world.run_for(5s);

  EXPECT_EQ(said(), "nothing");
}

TEST_F(JudgeTest, OneRefusalIsTheAnswerForOneEntry) {
  const Judge::AskId first = ask();
  ask();
  const Judge::AskId last = ask();
  enter(hers, kFirst);
  enter(hers, kThird);
  const Created behind = enter(hers, kSecond);

  judge.answered(first, Judge::Got::kNothing, hers.id());
  judge.answered(last, Judge::Got::kHold, hers.id());
  announce(behind);
  world.run_for(5s);

  EXPECT_EQ(said(), "server order");
}

TEST_F(JudgeTest, ARefusalOfAnEarlierRequestExcusesNobody) {
  judge.answered(ask(), Judge::Got::kNothing, hers.id());
  world.run_for(1s);
  ask();
  const Judge::AskId last = ask();
  enter(hers, kFirst);
  const Created behind = enter(hers, kSecond);

  judge.answered(last, Judge::Got::kHold, hers.id());
  announce(behind);
  world.run_for(5s);

  EXPECT_EQ(said(), "server order");
}

TEST_F(JudgeTest, APauseDelaysADeadlineAndDoesNotLiftIt) {
  const Judge::AskId soon = judge.asked({0, &ann, world.now() + 1s, {Share{}}});
  const Judge::AskId late = judge.asked({0, &ann, world.now() + 1s, {Share{}}});
  judge.hindered(ann, world.now() + 2s);
  world.run_for(2s + 50ms);
  judge.answered(soon, Judge::Got::kNothing, hers.id());
  ASSERT_EQ(said(), "nothing");

  world.run_for(100ms);
  judge.answered(late, Judge::Got::kNothing, hers.id());

  EXPECT_EQ(said(), "one outcome");
}

TEST_F(JudgeTest, NoHindranceOutlivesHealing) {
  const Judge::AskId ask = judge.asked({0, &ann, world.now() + 1s, {Share{}}});
  judge.hindered(ann, world.now() + 1h);
  judge.healed();
  world.run_for(2s);

  judge.answered(ask, Judge::Got::kNothing, hers.id());

  EXPECT_EQ(said(), "one outcome");
}

TEST_F(JudgeTest, AClockThatIsRightAgainExcusesNobodyForLong) {
  judge.mistrust(ann);
  judge.healed();
  announce(enter(hers, kFirst));
  world.run_for(plan.timeout + plan.timeout / 10);
  ASSERT_EQ(said(), "nothing");

  world.expire(hers.id());
  world.run_for(1s);

  EXPECT_EQ(said(), "belief");
}

TEST_F(JudgeTest, BeliefDoesNotComeBack) {
  const Judge::HoldId hold = announce(enter(hers, kFirst));
  believes = false;
  judge.told_lost(hold);
  ASSERT_EQ(said(), "nothing");

  believes = true;
  judge.told_lost(hold);

  EXPECT_EQ(said(), "belief");
}

TEST_F(JudgeTest, WhoIsToldOfALossDoesNotBelieve) {
  const Judge::HoldId hold = announce(enter(hers, kFirst));

  judge.told_lost(hold);

  EXPECT_EQ(said(), "belief");
}

TEST_F(JudgeTest, WhoHasLostIsTold) {
  lost = {};
  announce(enter(hers, kFirst));
  believes = false;

  world.run_for(plan.timeout);

  EXPECT_EQ(said(), "belief");
}

TEST_F(JudgeTest, WhoHasBeenToldIsNotToldAgain) {
  announce(enter(hers, kFirst));
  believes = false;

  world.run_for(plan.timeout);

  EXPECT_EQ(said(), "nothing");
}

TEST_F(JudgeTest, WhoIsPausedIsToldAfterwards) {
  lost = {};
  announce(enter(hers, kFirst));
  believes = false;
  world.pause(ann, plan.timeout);
  world.run_for(plan.timeout - 1ms);
  ASSERT_EQ(said(), "nothing");

  world.run_for(plan.timeout);

  EXPECT_EQ(said(), "belief");
}

TEST_F(JudgeTest, ARequestIsAnsweredOnce) {
  const Judge::AskId first = ask();
  judge.answered(first, Judge::Got::kNothing, hers.id());
  ASSERT_EQ(said(), "nothing");

  judge.answered(first, Judge::Got::kNothing, hers.id());

  EXPECT_EQ(said(), "one outcome");
}

TEST_F(JudgeTest, NobodyBelievesWhenItsSessionEnds) {
  announce(enter(hers, kFirst));

  world.expire(hers.id());
  world.run_for(1s);

  EXPECT_EQ(said(), "belief");
}

TEST_F(JudgeTest, AReaderBehindAReaderThatHoldsDoesNotSleep) {
  announce(enter(hers, kReader), {2, 1, true});
  enter(his, kReader);

  keep_busy(hers);

  EXPECT_EQ(said(), "awake");
}

TEST_F(JudgeTest, ACandidateThatIsFirstAndDoesNotLeadSleeps) {
  enter(his, kCandidate);

  keep_busy(hers);

  EXPECT_EQ(said(), "awake");
}

TEST_F(JudgeTest, WhoLeadsDoesNotSleepThoughItsTermNamesNoNode) {
  const Created entry = enter(hers, kCandidate);
  judge.granted({.client = 0,
                 .process = &ann,
                 .session = hers.id(),
                 .shares = {{4, 1, false}},
                 .token = Token(entry.stat->czxid),
                 .believes = [] { return true; }});
  enter(his, kCandidate);

  keep_busy(his);

  EXPECT_EQ(said(), "nothing");
}

TEST_F(JudgeTest, WhoIsFirstInFrontOfPermitsThatAreAllFreeSleeps) {
  enter(his, kInFront);

  keep_busy(hers);

  EXPECT_EQ(said(), "awake");
}

TEST_F(JudgeTest, WhoIsFirstInFrontOfPermitsMayWaitForOneThatIsOutOrForMoreThanThereAre) {
  const Created permit = enter(hers, kPermit);
  enter(his, kInFront);
  keep_busy(hers);
  ASSERT_EQ(said(), "nothing") << "it may want both";
  ASSERT_TRUE(hers.set("/pool", "1", deadline_in(5s)));
  ASSERT_TRUE(hers.remove(Path(permit.path), deadline_in(5s)));
  keep_busy(hers);
  ASSERT_EQ(said(), "nothing") << "it may want two";

  ASSERT_TRUE(hers.set("/pool", "2", deadline_in(5s)));
  ASSERT_TRUE(his.sync("/", deadline_in(5s))) << "which proves his lease";
  keep_busy(hers);

  EXPECT_EQ(said(), "awake");
}

TEST_F(JudgeTest, NobodySleepsBecauseAnotherLockIsHeld) {
  enter(his, kOtherLock);
  announce(enter(hers, kFirst));
  // Who is busy all the time seems to be about to wake up.
  const auto watch_for = [&](Duration span) {
    for (const Instant end = world.now() + span; world.now() < end && !judge.violation();) {
      static_cast<void>(his.sync("/", deadline_in(5s)));
      judge.check_heads();
    }
  };

  watch_for(2 * plan.timeout);
  ASSERT_EQ(said(), "nothing") << "a dead process would not have run out yet";
  watch_for(10s);

  EXPECT_EQ(said(), "awake");
}

TEST_F(JudgeTest, WatchesThatBothSidesHaveAreWell) {
  const Watcher hear = [](const WatchEvent&) {};
  ASSERT_TRUE(hers.get("/locks/a", deadline_in(5s), hear));
  ASSERT_TRUE(hers.get("/locks/a", deadline_in(5s), hear));
  ASSERT_TRUE(hers.children("/locks/a", deadline_in(5s), hear));
  world.run_for(1s);
  world.cut(world.host_of(hers));
  world.run_for(5s);
  ASSERT_TRUE(his.set("/locks/a", "new", deadline_in(5s)));
  world.run_for(1s);

  EXPECT_EQ(said(), "nothing");
  EXPECT_GT(judge.checks().at(static_cast<std::size_t>(Invariant::kWatches)), 0U);
}

TEST_F(JudgeTest, AWatchOfTheServersThatNobodyWaitsForIsNoticed) {
  submit(hers, get_call("/locks/a", true));
  world.run_for(5s);

  EXPECT_EQ(said(), "watches");
}

TEST_F(JudgeTest, WhoeverWaitsForAnEventThatNoServerWillSendIsNoticed) {
  session::Call call = get_call("/locks/a", false);
  // What asks for such a watch is another request.
  call.watch = session::WatchWish{.on = session::WatchOn::kPersistent, .watcher = [](auto&) {}};
  submit(hers, std::move(call));
  world.run_for(5s);

  EXPECT_EQ(said(), "watches");
}

TEST_F(JudgeTest, PermitsAreTakenInTheOrderOfTheQueueInFront) {
  enter(his, kInFront);
  announce(enter(hers, kPermit), {3, 1, false});

  EXPECT_EQ(said(), "server order");
}

TEST_F(JudgeTest, WhoWasRobbedOfItsPlaceTakesPermitsOnce) {
  const Created place = enter(hers, "/pool/locks/_c_00000000-0000-0000-0000-000000000010-lock-");
  enter(his, kInFront);
  ASSERT_TRUE(his.remove(Path(place.path), deadline_in(5s)));

  announce(enter(hers, kPermit), {3, 1, false});
  EXPECT_EQ(said(), "nothing") << "it may not have heard of it";
  announce(enter(hers, kAnotherPermit), {3, 1, false});
  EXPECT_EQ(said(), "server order");
}

TEST_F(JudgeTest, PermitsAreTheHoldersOwn) {
  announce(enter(his, kPermit), {3, 1, false});

  EXPECT_EQ(said(), "server order");
}

TEST_F(JudgeTest, PermitsHaveBeenThere) {
  Created permit = enter(hers, kPermit);
  permit.path.back() = '7';

  announce(permit, {3, 1, false});

  EXPECT_EQ(said(), "server order");
}

TEST_F(JudgeTest, TwoPermitsAreTwoNodes) {
  announce(enter(hers, kPermit), {3, 2, false});

  EXPECT_EQ(said(), "server order");
}

TEST_F(JudgeTest, NobodyHoldsWithAnEntryThatWasRemovedBeforeItsTurn) {
  const Created first = enter(his, kFirst);
  const Created behind = enter(hers, kSecond);
  ASSERT_TRUE(his.remove(Path(behind.path), deadline_in(5s)));
  ASSERT_TRUE(his.remove(Path(first.path), deadline_in(5s)));

  announce(behind);

  EXPECT_EQ(said(), "server order");
}

TEST_F(JudgeTest, WhoWasRobbedIsExcusedThereAndNowhereElse) {
  const Created robbed = enter(hers, kFirst);
  ASSERT_TRUE(his.remove(Path(robbed.path), deadline_in(5s)));
  announce(robbed);
  announce(enter(hers, kSecond));
  ASSERT_EQ(said(), "nothing") << "another may hold before it hears of it";

  const Created left = enter(hers, kOtherLock);
  announce(left, {1, 1, false});
  ASSERT_TRUE(hers.remove(Path(left.path), deadline_in(5s)));
  announce(enter(hers, kOtherLock), {1, 1, false});

  EXPECT_EQ(said(), "belief");
}

TEST_F(JudgeTest, AFastClockIsNoExcuseForBelief) {
  judge.hurries(ann);
  announce(enter(hers, kFirst));

  world.expire(hers.id());
  world.run_for(1s);

  EXPECT_EQ(said(), "belief");
}

TEST_F(JudgeTest, NothingIsWrittenUnderGuardWithAnOlderToken) {
  const std::string ledger = std::string(kLedger) + "0";
  ASSERT_TRUE(hers.create(Path(ledger), "0", {}, deadline_in(5s)));
  ASSERT_TRUE(hers.set(Path(ledger), "7", deadline_in(5s)));
  ASSERT_EQ(said(), "nothing");

  ASSERT_TRUE(hers.set(Path(ledger), "6", deadline_in(5s)));

  EXPECT_EQ(said(), "fence");
}

TEST(WitnessTest, ALeaderReadsWhatIsThere) {
  const tree::Tree reference;
  Witness witness(reference);
  const auto show = [&](testing::Way way, const std::string& body, wire::Op op, std::int32_t xid) {
    testing::Message message;
    message.way = way;
    message.link = 1;
    message.op = op;
    message.xid = xid;
    message.body = body;
    return witness.sent(message);
  };
  static_cast<void>(show(testing::Way::kRequest, "", wire::Op::kCreateSession, 0));
  const std::string asked = wire::encoded(wire::PathWatch{"/", false});
  const auto answer = [&](std::vector<std::string> children, std::int32_t xid) {
    static_cast<void>(show(testing::Way::kRequest, asked, wire::Op::kGetChildren, xid));
    return show(testing::Way::kReply, wire::encoded(wire::ChildrenReply{std::move(children)}),
                wire::Op::kGetChildren, xid);
  };

  EXPECT_FALSE(answer({"zookeeper"}, 1));
  EXPECT_TRUE(answer({}, 2)) << "one is left out";
}

}  // namespace
}  // namespace latchkey::sim
