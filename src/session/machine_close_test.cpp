#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/machine_rig.hpp"

namespace latchkey::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using wire::Err;
using wire::Op;

/// Everything somebody can be waiting for at once.
struct Crowd {
  explicit Crowd(Rig& rig) {
    for (int i = 0; i < 20; ++i) all.push_back(rig.submit(get_call("/a", rig.watcher())));
    for (int i = 0; i < 20; ++i) all.push_back(rig.submit(create_call("/b")));
    all.push_back(rig.owe_delete("/c"));
    all.push_back(rig.add_credential("u:p"));
    all.push_back(rig.await_connection(seconds(500)));
    all.push_back(rig.await_room(seconds(500)));
  }
  std::vector<Sent> all;
};

MachineOptions tight() { return {.max_requests = 10}; }

/// Brings a machine into one of the states a close can meet.
enum class When {
  kBeforeStart,
  kDialing,
  kGreeting,
  kAttached,
  kWaiting,
  kDialingAgain,
  kGreetingAgain
};

void reach(Rig& rig, When when) {
  if (when == When::kBeforeStart) return;
  rig.start();
  if (when == When::kDialing) return;
  rig.up();
  if (when == When::kGreeting) return;
  rig.greet();
  if (when == When::kAttached) return;
  rig.down();
  rig.accept();
  rig.down();  // Nothing was answered in between, so there is a pause before the next try.
  if (when == When::kWaiting) return;
  rig.pass(rig.machine.next_wake() - rig.now);
  if (when == When::kDialingAgain) return;
  rig.up();
}

class MachineCloseInEveryState : public testing::TestWithParam<When> {};

TEST_P(MachineCloseInEveryState, H58_EveryPendingCallHasExactlyOneOutcome) {
  Rig rig(tight());
  reach(rig, GetParam());
  const Crowd crowd(rig);

  const Sent closed = rig.close(seconds(2));
  const Sent again = rig.close(seconds(5));
  const bool confirmed = rig.machine.is_over();
  if (confirmed) {
    EXPECT_TRUE(closed.ok());
  } else {
    rig.leap(seconds(2));
    EXPECT_EQ(closed.code(), Code::kTimedOut);
  }

  for (const Sent& sent : crowd.all) EXPECT_EQ(sent.times(), 1);
  EXPECT_EQ(closed.times(), 1);
  EXPECT_EQ(again.times(), 1);
  EXPECT_EQ(rig.machine.state(), SessionState::kClosed);
  EXPECT_EQ(rig.machine.over_code(), Code::kClosed);
  EXPECT_FALSE(rig.is_up());
  EXPECT_EQ(rig.machine.next_wake(), Instant::max());
  // Whoever asks later hears the same: without the server's word the nodes may still be there.
  const Sent later = rig.close();
  EXPECT_EQ(later.ok(), confirmed);
  EXPECT_TRUE(confirmed || !is_retryable(later.code())) << later.code();
}

TEST_P(MachineCloseInEveryState, H25_TheServerIsToldIfItCanBeReachedInTime) {
  Rig rig(tight());
  reach(rig, GetParam());
  const Crowd crowd(rig);

  const Sent closed = rig.close(seconds(2));
  if (!rig.machine.is_over()) {
    rig.leap(Duration{});
    if (rig.dialed) rig.up();
    if (rig.machine.state() != SessionState::kConnected) rig.greet();
    EXPECT_EQ(rig.requests.back().op, Op::kCloseSession);
    rig.answer_all();
  }

  EXPECT_TRUE(closed.ok());
  for (const Sent& sent : crowd.all) EXPECT_EQ(sent.times(), 1);
  EXPECT_EQ(rig.machine.state(), SessionState::kClosed);
}

TEST_P(MachineCloseInEveryState, WhoComesLaterIsTurnedAway) {
  Rig rig(tight());
  reach(rig, GetParam());
  rig.close();

  const Crowd crowd(rig);
  Listener member;
  rig.machine.join(member);
  rig.settle();
  rig.leap(seconds(2));

  for (const Sent& sent : crowd.all) EXPECT_EQ(sent.times(), 1);
  EXPECT_THAT(member.story, ElementsAre("session over: Closed"));
  EXPECT_FALSE(rig.machine.is_owed("/c"));
}

INSTANTIATE_TEST_SUITE_P(States, MachineCloseInEveryState,
                         testing::Values(When::kBeforeStart, When::kDialing, When::kGreeting,
                                         When::kAttached, When::kWaiting, When::kDialingAgain,
                                         When::kGreetingAgain));

TEST(MachineClose, FailsWhatIsNotSentAndWaitsForWhatIs) {
  Rig rig;
  rig.open();
  const Sent sent = rig.submit(create_call("/a"));

  const Sent closed = rig.close();
  EXPECT_EQ(sent.times(), 0);
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kCreate2, Op::kCloseSession));
  rig.answer();
  EXPECT_TRUE(sent.ok());
  EXPECT_EQ(closed.times(), 0);
  rig.answer();

  EXPECT_TRUE(closed.ok());
  EXPECT_THAT(rig.states, ElementsAre(SessionState::kConnected, SessionState::kClosed));
}

TEST(MachineClose, WhileDisconnectedNobodyWaitsForTheServer) {
  Rig rig;
  rig.open();
  rig.down();
  const Sent unsent = rig.submit(create_call("/a"));

  rig.close();

  EXPECT_EQ(unsent.code(), Code::kClosed);
  EXPECT_EQ(unsent.effect(), Effect::kNone);
}

TEST(MachineClose, H25_DoesNotSitOutALongBackOff) {
  Rig rig({.retry = {.base = seconds(60), .cap = seconds(60)}});
  rig.open();
  rig.down();
  rig.accept();
  rig.down();
  ASSERT_FALSE(rig.dialed);

  rig.close(seconds(2));
  rig.pass(milliseconds(1));

  EXPECT_TRUE(rig.dialed);
}

TEST(MachineClose, ASessionThatIsGoneAtTheServerIsClosedNotExpired) {
  Rig rig;
  rig.open();
  const Sent closed = rig.close();
  rig.down();  // The close was carried out, its answer lost.
  rig.up();

  rig.greet(milliseconds(0), 0);

  EXPECT_TRUE(closed.ok());
  EXPECT_EQ(rig.machine.over_code(), Code::kClosed);
  EXPECT_THAT(rig.states, ElementsAre(SessionState::kConnected, SessionState::kSuspended,
                                      SessionState::kClosed));
}

TEST(MachineClose, IsSentAgainAfterALostConnection) {
  Rig rig;
  rig.open();
  const Sent debt = rig.owe_delete("/a");
  const Sent closed = rig.close();

  rig.down();
  rig.accept();
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete, Op::kCloseSession));
  rig.answer_all();

  EXPECT_TRUE(closed.ok());
  EXPECT_TRUE(debt.ok());
}

TEST(MachineClose, TheSoonestDeadlineCounts) {
  Rig rig;
  rig.open();
  const Sent slow = rig.close(seconds(5));
  const Sent quick = rig.close(seconds(1));

  rig.leap(seconds(1));

  EXPECT_EQ(slow.code(), Code::kTimedOut);
  EXPECT_EQ(quick.code(), Code::kTimedOut);
  EXPECT_TRUE(rig.machine.is_over());
}

TEST(MachineClose, MembersHearOfItAtOnceAndOnce) {
  Rig rig;
  rig.open();
  Listener member;
  rig.machine.join(member);

  rig.close();
  EXPECT_THAT(member.story, ElementsAre("session over: Closed"));
  rig.answer_all();

  EXPECT_EQ(member.story.size(), 1U);
}

TEST(MachineClose, ACompletionMaySubmitWhileTheSessionCloses) {
  Rig rig;
  rig.open();
  rig.down();
  const auto late = std::make_shared<Told>();
  Call call = create_call("/a");
  call.done = [&](Outcome&&) {
    Call next = create_call("/b");
    next.done = Rig::completion({.told = late});
    rig.machine.submit(std::move(next), rig.now);
  };
  rig.machine.submit(std::move(call), rig.now);

  rig.close();

  EXPECT_EQ(late->times, 1);
  EXPECT_EQ(late->outcome.code, Code::kClosed);
}

TEST(MachineClose, ACredentialRefusedMeanwhileDoesNotConfirmIt) {
  Rig rig;
  rig.open();
  rig.add_credential("u:p");
  const Sent closed = rig.close();

  rig.send(wire::kAuthXid, 0, Err::kAuthFailed);

  EXPECT_EQ(closed.times(), 1);
  EXPECT_FALSE(closed.ok()) << "the server ends the connection, not the session";
}

TEST(MachineClose, LeavesNoBytesForAConnectionThatIsToBeClosed) {
  Rig rig;
  rig.start();
  rig.machine.transport_up(rig.now);  // The greeting is still with the machine.

  rig.machine.close(rig.now, {}, rig.now);

  EXPECT_EQ(rig.machine.take_output(), "");
  EXPECT_TRUE(rig.machine.take_hang_up());
}

TEST(MachineClose, FramesBehindTheLastAnswerAreNotRead) {
  Rig rig;
  rig.open();
  const Sent closed = rig.close();
  std::string bytes = Rig::reply_to(rig.take(), Err::kOk, 7);
  wire::append_frame(bytes, wire::ReplyHeader{wire::kPingXid, 0, Err::kOk});
  bytes += "\x7f\xff\xff\xff";

  rig.feed(bytes);

  EXPECT_TRUE(closed.ok());
  EXPECT_EQ(rig.hang_ups, 1);
}

TEST(MachineClose, H09_TheServerHearsOfItWhenEveryLossHasBeenTold) {
  Rig rig;
  rig.open();
  rig.machine.begin_telling();
  rig.machine.begin_telling();

  const Sent closed = rig.close(seconds(5));
  EXPECT_THAT(rig.ops(), ElementsAre());
  rig.machine.end_telling();
  rig.settle();
  EXPECT_THAT(rig.ops(), ElementsAre());
  rig.machine.end_telling();
  rig.settle();

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kCloseSession));
  rig.answer();
  EXPECT_TRUE(closed.ok());
}

TEST(MachineClose, H09_ACloseOutOfALossCallbackDoesNotWaitForThatCallback) {
  Rig rig;
  rig.open();
  rig.machine.begin_telling();

  rig.machine.begin_telling();  // A lock may need several.
  rig.machine.close(rig.now + seconds(5), {}, rig.now, Machine::Losses::kAsTheyAre);
  rig.settle();

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kCloseSession));
}

TEST(MachineClose, H09_ALossThatIsNotToldInTimeLeavesTheNodesToTheTimeOut) {
  Rig rig;
  rig.open();
  rig.machine.begin_telling();

  const Sent closed = rig.close(seconds(2));
  rig.leap(seconds(2));

  EXPECT_EQ(closed.code(), Code::kTimedOut);
  EXPECT_THAT(rig.ops(), ElementsAre());
  rig.machine.end_telling();
}

}  // namespace
}  // namespace latchkey::session
