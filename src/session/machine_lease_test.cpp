#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/machine_rig.hpp"

namespace latchkey::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using wire::Err;
using wire::Op;

/// A time-out that divides without a rest: a heartbeat is 2 s, a quarter 3 s.
constexpr seconds kTimeout(12);
constexpr milliseconds kLease = kTimeout - kTimeout / 4 - kTimeout / 6 - milliseconds(120);

class MachineLease : public testing::Test {
 protected:
  void SetUp() override { rig.open(kTimeout); }

  /// Proves the session with a write and its answer, without any delay.
  void prove() {
    rig.submit(create_call("/a"));
    rig.answer_all();
  }
  [[nodiscard]] Duration left() const { return rig.machine.lease().deadline() - rig.now; }

  Rig rig{MachineOptions{.timeout = kTimeout}};
  Listener holder;
};

TEST_F(MachineLease, H09_IsLostAtTheDeadlineWithoutTheServersWord) {
  prove();
  rig.machine.join(holder);
  rig.down();
  holder.story.clear();

  rig.leap(kLease - milliseconds(1));
  EXPECT_THAT(holder.story, ElementsAre());
  rig.leap(milliseconds(1));

  EXPECT_THAT(holder.story, ElementsAre("lease over"));
  EXPECT_FALSE(rig.machine.is_over());
}

TEST_F(MachineLease, H09_TheMachineWantsToBeWokenForIt) {
  prove();
  rig.machine.join(holder);
  rig.down();
  const Instant deadline = rig.machine.lease().deadline();

  EXPECT_LE(rig.machine.next_wake(), deadline);
  rig.pass(seconds(10), [&] {
    if (rig.now >= deadline) return;
    EXPECT_THAT(holder.story, Not(Contains("lease over")));
  });

  EXPECT_THAT(holder.story, Contains("lease over"));
}

TEST_F(MachineLease, H09_IsToldOnce) {
  prove();
  rig.machine.join(holder);
  rig.down();

  rig.pass(seconds(20), [] {});

  EXPECT_THAT(holder.story, ElementsAre("lease over"));
}

TEST_F(MachineLease, H09_TheViewShowsTheDeadlineToEveryThread) {
  prove();

  EXPECT_EQ(rig.view->lease_deadline.load(),
            rig.machine.lease().deadline().time_since_epoch().count());
  EXPECT_EQ(rig.view->suspect_at.load(),
            rig.machine.lease().suspect_at().time_since_epoch().count());
}

TEST_F(MachineLease, H10_CountsFromTheSendTimeNotTheReply) {
  rig.submit(create_call("/a"));
  const Instant sent = rig.now;
  rig.now += seconds(3);

  rig.answer();

  EXPECT_EQ(rig.machine.lease().deadline(), sent + kLease - seconds(3));
}

TEST_F(MachineLease, H10_EventsAndReadsProveNothing) {
  rig.submit(get_call("/a"));
  rig.answer();
  rig.event(wire::EventType::kDeleted, "/a");

  EXPECT_EQ(rig.machine.lease().deadline(), Instant::min());
}

TEST_F(MachineLease, H10_AProofThatComesTooLateDoesNotStartANewLease) {
  prove();
  rig.machine.join(holder);
  rig.submit(sync_call());
  rig.leap(kLease);
  ASSERT_THAT(holder.story, Contains("lease over"));
  holder.story.clear();

  rig.now += seconds(1);
  rig.machine.advance(rig.now);
  rig.answer();
  rig.leap(Duration{});

  EXPECT_LE(rig.machine.lease().deadline(), rig.now);
  EXPECT_THAT(holder.story, Not(Contains("lease over"))) << "it was told before";
}

TEST_F(MachineLease, H11_MembersMakeHeartbeatsGoThroughTheLeader) {
  rig.pass(kTimeout / 3);
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kPing));
  rig.answer_all();

  rig.machine.join(holder);
  rig.pass(Duration{});

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kSync)) << "at once, for nothing has been proven yet";
  EXPECT_THAT(holder.story, ElementsAre("heartbeat"));
}

TEST_F(MachineLease, H11_TheLastMemberToLeaveEndsThat) {
  const auto id = rig.machine.join(holder);
  rig.machine.leave(id);

  rig.pass(kTimeout / 3);

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kPing));
  EXPECT_THAT(holder.story, ElementsAre());
}

TEST_F(MachineLease, H11_AReadDoesNotPutOffTheNextProof) {
  prove();
  rig.machine.join(holder);
  const Instant proven = rig.now;

  for (int i = 0; i < 10 && holder.story.empty(); ++i) {
    rig.pass(milliseconds(500));
    rig.submit(get_call("/a"));
  }

  EXPECT_THAT(holder.story, Not(ElementsAre()));
  EXPECT_LE(rig.now, proven + kTimeout / 6 + milliseconds(500));
}

TEST_F(MachineLease, H11_ARefusalTheServerCanGiveByItselfProvesNothing) {
  for (const Err err : {Err::kNotReadOnly, Err::kThrottled, Err::kNoAuth, Err::kUnimplemented,
                        Err::kSystemError, Err{-4711}}) {
    rig.submit(create_call("/a"));
    rig.answer(err);
    EXPECT_EQ(rig.machine.lease().deadline(), Instant::min()) << static_cast<int>(err);
  }
  rig.submit(sync_call());
  rig.answer(Err::kNoNode);
  EXPECT_EQ(rig.machine.lease().deadline(), Instant::min());

  rig.submit(create_call("/a"));
  rig.answer(Err::kNodeExists);

  EXPECT_EQ(left(), kLease);
}

TEST_F(MachineLease, H11_SyncsEveryHeartbeatKeepItAliveForEver) {
  prove();
  rig.machine.join(holder);

  rig.pass(seconds(600), [&] {
    rig.now += milliseconds(20);
    rig.machine.advance(rig.now);
    rig.answer_all();
    EXPECT_GT(left(), kTimeout / 3);
  });

  EXPECT_THAT(holder.story, Not(Contains("lease over")));
  EXPECT_NEAR(static_cast<double>(holder.story.size()), 300.0, 10.0);
}

TEST_F(MachineLease, H13_APauseBeforeTheProofIsPartOfTheDoubt) {
  // The leader may not have heard of us since before the pause: a proof right after it must not be
  // worth more than that.
  prove();
  rig.now += seconds(7);
  rig.machine.advance(rig.now);

  prove();

  EXPECT_EQ(left(), kTimeout - kTimeout / 4 - seconds(7) - milliseconds(120));
}

TEST_F(MachineLease, H13_IdlePingsAreSuchAPauseToo) {
  rig.pass(kTimeout / 3);
  rig.answer_all();
  rig.pass(kTimeout / 6);

  prove();
  EXPECT_EQ(left(), kTimeout - kTimeout / 4 - kTimeout / 3 - milliseconds(120))
      << "the pause before the ping counts";
  rig.machine.join(holder);
  rig.pass(kTimeout / 3, [&] { rig.answer_all(); });
  rig.answer_all();

  EXPECT_EQ(left(), kLease) << "by now it is too long ago";
}

TEST_F(MachineLease, H13_APingThatWasHeldUpMayHaveComeAfterTheLastTouch) {
  rig.pass(kTimeout / 3);
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kPing));
  rig.now += milliseconds(3'500);
  rig.machine.advance(rig.now);

  prove();

  EXPECT_EQ(left(),
            kTimeout - kTimeout / 4 - kTimeout / 3 - milliseconds(3'500) - milliseconds(120))
      << "the pause before the ping, and its way";
}

TEST_F(MachineLease, H13_ACredentialIsNoSignOfLife) {
  rig.pass(kTimeout / 3);
  rig.answer_all();
  rig.pass(kTimeout / 6);
  rig.add_credential("u:p");
  rig.answer_all();
  rig.pass(kTimeout / 6);
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kPing)) << "it does not put off the next ping either";
  rig.answer_all();

  prove();

  EXPECT_EQ(left(), kTimeout - kTimeout / 4 - kTimeout / 3 - milliseconds(120))
      << "the leader may not have heard of us between the two pings";
}

TEST_F(MachineLease, H13_ARestoreThatWasHeldUpMayHaveComeAfterTheLastTouch) {
  rig.submit(get_call("/a", rig.watcher()));
  rig.answer_all();
  rig.cut();
  rig.accept(kTimeout);
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kSetWatches));
  rig.now += milliseconds(3'300);
  rig.machine.advance(rig.now);

  prove();

  EXPECT_EQ(left(), kTimeout - kTimeout / 4 - 2 * milliseconds(3'300) - milliseconds(120))
      << "the pause before the proof, and the way of the restore";
}

TEST_F(MachineLease, H13_ALateTickFindsTheLeaseOver) {
  prove();
  rig.machine.join(holder);

  rig.leap(2 * kTimeout);

  EXPECT_THAT(holder.story, Contains("lease over"));
}

TEST_F(MachineLease, H13_ALateTickGivesTheServersBytesAChance) {
  prove();
  rig.machine.join(holder);

  rig.leap(2 * kTimeout);
  EXPECT_EQ(rig.machine.state(), SessionState::kConnected);
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kSync));
  rig.answer_all();
  EXPECT_EQ(rig.machine.state(), SessionState::kConnected);
  rig.pass(kTimeout);

  EXPECT_EQ(rig.machine.state(), SessionState::kSuspended) << "but not for ever";
}

TEST_F(MachineLease, H15_AShorterTimeOutEndsTheLeaseSooner) {
  prove();
  rig.machine.join(holder);

  rig.down();
  rig.accept(seconds(3));

  EXPECT_EQ(rig.machine.lease().deadline(), rig.now + seconds(3) - milliseconds(30));
}

TEST_F(MachineLease, H15_ALongerOneNeverCounts) {
  prove();
  const Instant before = rig.machine.lease().deadline();

  rig.now += milliseconds(1);
  rig.down();
  rig.accept(seconds(24));
  EXPECT_EQ(rig.machine.lease().deadline(), before);
  rig.now += milliseconds(1);
  prove();

  EXPECT_EQ(left(), kLease);
}

/// A server may have carried out the handshake, with the time-out that it grants.
TEST(MachineLeaseDoubt, H15_AHandshakeWithoutAnAnswerEndsTheLeaseSooner) {
  Rig rig{MachineOptions{.timeout = kTimeout, .least_timeout = seconds(3)}};
  Listener holder;
  rig.open(kTimeout);
  rig.submit(create_call("/a"));
  rig.answer_all();
  rig.machine.join(holder);
  rig.down();
  EXPECT_EQ(rig.machine.lease().deadline() - rig.now, kLease);

  rig.up();
  const Instant asked = rig.now;
  rig.down();

  EXPECT_EQ(rig.machine.lease().deadline(), asked + milliseconds(2'970));
  EXPECT_EQ(rig.view->lease_deadline.load(),
            rig.machine.lease().deadline().time_since_epoch().count());
  rig.leap(milliseconds(2'970));
  EXPECT_THAT(holder.story, Contains("lease over"));
}

TEST(MachineLeaseDoubt, H09_TheEndOfTheLeaseBehindADoubtThatIsAnsweredIsToldAsWell) {
  Rig rig{MachineOptions{.timeout = kTimeout, .least_timeout = seconds(1)}};
  Listener holder;
  rig.open(kTimeout);
  rig.submit(create_call("/a"));
  rig.answer_all();
  const Instant end = rig.machine.lease().deadline();
  rig.machine.join(holder);
  rig.down();
  rig.up();
  rig.leap(milliseconds(990));
  ASSERT_THAT(holder.story, Contains("lease over"));
  holder.story.clear();

  rig.greet(kTimeout);
  EXPECT_EQ(rig.machine.lease().deadline(), end);
  rig.leap(end - rig.now);

  EXPECT_THAT(holder.story, Contains("lease over"));
}

/// Servers that accept, take the handshake and hang up, as during an election of a leader.
TEST(MachineLeaseDoubt, H15_AnElectionOfALeaderCostsNoHold) {
  constexpr seconds kLong(30);
  const std::optional<milliseconds> leasts[] = {std::nullopt,
                                                seconds(12)};  // An election and a pause.
  for (const std::optional<milliseconds>& least : leasts) {
    SCOPED_TRACE(least ? "least_timeout 12 s" : "no least_timeout");
    Rig rig{MachineOptions{.timeout = kLong, .least_timeout = least}};
    Listener holder;
    rig.open(kLong);
    rig.submit(create_call("/a"));
    rig.answer_all();
    rig.machine.join(holder);
    rig.down();
    holder.story.clear();

    for (const Instant end = rig.now + seconds(8); rig.now < end;) {
      rig.up();
      rig.down();
    }
    rig.accept(kLong);
    rig.answer_all();
    rig.pass(seconds(60), [&] { rig.answer_all(); });

    EXPECT_THAT(holder.story, Not(Contains("lease over")));
  }
}

TEST_F(MachineLease, ALeaseThatRanOutBeforeIsNoNewsToANewMember) {
  prove();
  rig.down();
  rig.leap(seconds(11));

  rig.machine.join(holder);
  rig.leap(milliseconds(1));

  EXPECT_THAT(holder.story, Not(Contains("lease over")));
}

TEST_F(MachineLease, ANewLeaseCanBeLostAgain) {
  prove();
  rig.machine.join(holder);
  rig.down();
  rig.leap(kLease);
  EXPECT_THAT(holder.story, ElementsAre("lease over"));
  rig.pass(milliseconds(100));  // The attempt under way was given up too; the next one succeeds.
  rig.accept(kTimeout);
  prove();
  holder.story.clear();

  rig.down();
  rig.leap(seconds(11));

  EXPECT_THAT(holder.story, Contains("lease over"));
}

TEST_F(MachineLease, H12_MembersHearThatALeaseThatWasOverIsProvenForAWhile) {
  struct : Listener {
    int proven = 0;
    void on_lease_proven() override { ++proven; }
  } waiter;
  prove();
  rig.machine.join(waiter);
  rig.leap(kLease + milliseconds(1'500));

  rig.answer_all();
  ASSERT_GT(left(), Duration{});
  EXPECT_EQ(waiter.proven, 0) << "after such a silence the next answer may be as late";
  rig.pass(kTimeout / 2, [&] { rig.answer_all(); });
  const int told = waiter.proven;
  EXPECT_GE(told, 1);
  prove();
  prove();
  EXPECT_EQ(waiter.proven, told) << "a lease that lasts is no news";
}

TEST_F(MachineLease, H09_WhatASilenceLeftOfTheLeaseIsProvenBeforeItEnds) {
  prove();
  rig.machine.join(holder);
  // A heartbeat is answered so late that less than a heartbeat is left.
  rig.pass(kTimeout / 6);
  rig.leap(kLease - kTimeout / 4);
  rig.answer_all();
  ASSERT_GT(left(), Duration{});
  ASSERT_LT(left(), kTimeout / 6);

  rig.pass(kTimeout, [&] { rig.answer_all(); });

  EXPECT_THAT(holder.story, Not(Contains("lease over")));
  EXPECT_GT(left(), kTimeout / 3);
}

TEST_F(MachineLease, AServerThatIsSilentIsAskedABoundedNumberOfTimes) {
  prove();
  rig.machine.join(holder);

  rig.pass(kTimeout / 2);

  EXPECT_LE(rig.ops().size(), 8U);
}

TEST_F(MachineLease, AfterAReconnectTheFirstProofIsAskedForAtOnce) {
  prove();
  rig.machine.join(holder);
  rig.down();
  rig.leap(seconds(2));

  rig.accept(kTimeout);

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kSync));
}

TEST_F(MachineLease, AMemberMayLeaveFromItsOwnCallback) {
  struct Leaver : Listener {
    void on_heartbeat() override {
      ++heard;
      rig->machine.leave(id);
    }
    Rig* rig = nullptr;
    Machine::MemberId id = 0;
    int heard = 0;
  } leaver;
  leaver.rig = &rig;
  leaver.id = rig.machine.join(leaver);

  rig.pass(seconds(4));

  EXPECT_EQ(leaver.heard, 1);
}

TEST_F(MachineLease, TheCadenceIsASixthWithMembersAndAThirdWithout) {
  std::vector<Duration> pings;
  Instant last = rig.now;
  rig.pass(kTimeout, [&] {
    if (rig.requests.empty()) return;
    pings.push_back(rig.now - last);
    last = rig.now;
    rig.answer_all();
  });
  EXPECT_THAT(pings, ElementsAre(kTimeout / 3, kTimeout / 3, kTimeout / 3));
  prove();
  rig.machine.join(holder);
  std::vector<Duration> syncs;
  last = rig.now;
  rig.pass(kTimeout / 2, [&] {
    if (rig.requests.empty()) return;
    syncs.push_back(rig.now - last);
    last = rig.now;
    rig.answer_all();
  });

  EXPECT_THAT(syncs, ElementsAre(kTimeout / 6, kTimeout / 6, kTimeout / 6));
}

}  // namespace
}  // namespace latchkey::session
