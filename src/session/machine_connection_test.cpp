#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/machine_rig.hpp"

namespace latchkey::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using wire::Err;
using wire::Op;

// Greeting.

TEST(MachineConnection, AsksForANewSessionFirst) {
  Rig rig({.timeout = seconds(7)});

  rig.start();
  rig.up();

  EXPECT_EQ(rig.greeting->session_id, 0);
  EXPECT_EQ(rig.greeting->timeout_ms, 7'000);
  EXPECT_EQ(rig.greeting->last_zxid_seen, 0);
  EXPECT_EQ(rig.greeting->password, std::string(16, '\0'));
}

/// Nobody else is told: some servers refuse what they do not know.
TEST(MachineConnection, SaysOnAUnixSocketAndNowhereElseWhatProcessItIs) {
  Rig local({.endpoint_names = {"unix:/run/a.sock"}, .process_mark = -7});
  Rig remote({.endpoint_names = {"unix.example.org:2181"}, .process_mark = -7});
  Rig ordinary({.endpoint_names = {"unix:/run/a.sock"}});
  for (Rig* rig : {&local, &remote, &ordinary}) {
    rig->start();
    rig->up();
  }

  EXPECT_EQ(local.greeting->protocol_version, -7);
  EXPECT_EQ(remote.greeting->protocol_version, 0);
  EXPECT_EQ(ordinary.greeting->protocol_version, 0);
}

TEST(MachineConnection, ComesBackWithItsSessionPasswordAndNewestZxid) {
  Rig rig;
  rig.open();
  rig.submit(sync_call());
  rig.answer(Err::kOk, 500);

  rig.down();
  rig.up();

  EXPECT_EQ(rig.greeting->session_id, Rig::kSession);
  EXPECT_EQ(rig.greeting->password, std::string(16, 'p'));
  EXPECT_EQ(rig.greeting->last_zxid_seen, 500);
}

TEST(MachineConnection, TheZxidOfAPingOrAnEventIsNotOurs) {
  Rig rig;
  rig.open();
  rig.pass(seconds(4));
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kPing));

  rig.answer(Err::kOk, 900);
  rig.send(wire::kNotificationXid, 901, Err::kOk,
           wire::WatcherEvent{wire::EventType::kDeleted, 3, "/a"});
  rig.down();
  rig.up();

  EXPECT_EQ(rig.greeting->last_zxid_seen, 0);
}

TEST(MachineConnection, H65_AFrameThatIsNotAcceptedLeavesNoZxid) {
  Rig rig;
  rig.open();

  rig.send(77, INT64_MAX, Err::kOk);
  rig.up();

  EXPECT_EQ(rig.greeting->last_zxid_seen, 0);
}

TEST(MachineConnection, H15_TakesTheTimeOutTheServerGrants) {
  Rig rig({.timeout = seconds(10)});

  rig.open(seconds(4));

  EXPECT_EQ(rig.view->timeout_ms.load(), 4'000);
  rig.pass(milliseconds(1'334));
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kPing));
}

TEST(MachineConnection, H15_AsksAgainForWhatItWantedNotForWhatItLastGot) {
  Rig rig({.timeout = seconds(10)});
  rig.open(seconds(4));

  rig.down();
  rig.up();

  EXPECT_EQ(rig.greeting->timeout_ms, 10'000);
}

TEST(MachineConnection, AMalformedGreetingEndsTheConnection) {
  for (const std::string& body : {std::string(), std::string("x"), std::string(37, '\xFF')}) {
    Rig rig;
    rig.start();
    rig.up();
    std::string bytes;
    wire::append_frame(bytes);
    bytes[3] = static_cast<char>(body.size());

    rig.feed(bytes + body);

    EXPECT_EQ(rig.hang_ups, 1);
    EXPECT_EQ(rig.machine.state(), SessionState::kConnecting);
    EXPECT_TRUE(rig.dialed);
  }
}

TEST(MachineConnection, ARefusedFirstGreetingIsTriedElsewhere) {
  Rig rig({.endpoints = 2});
  rig.start();
  rig.up();

  rig.greet(milliseconds(0), 0);

  EXPECT_FALSE(rig.machine.is_over());
  EXPECT_THAT(rig.machine.last_trouble(), HasSubstr("refused"));
  ASSERT_EQ(rig.dials.size(), 2U);
  EXPECT_NE(rig.dials[0], rig.dials[1]);
}

TEST(MachineConnection, AGreetingInOneByteAtATimeIsOne) {
  Rig rig;
  rig.start();
  rig.up();
  std::string bytes;
  wire::append_connect_response(bytes, {0, 10'000, 5, std::string(16, 'x')}, wire::Handshake::kOld);

  for (const char byte : bytes) rig.feed({&byte, 1});

  EXPECT_EQ(rig.machine.state(), SessionState::kConnected);
  EXPECT_EQ(rig.machine.session_id(), 5);
}

// States.

TEST(MachineConnection, StatesComeInOrder) {
  Rig rig;

  rig.open();
  rig.reconnect();
  rig.cut();
  rig.up();
  rig.greet(milliseconds(0), 0);

  EXPECT_THAT(rig.states, ElementsAre(SessionState::kConnected, SessionState::kSuspended,
                                      SessionState::kConnected, SessionState::kSuspended,
                                      SessionState::kExpired));
  EXPECT_EQ(rig.view->state.load(), SessionState::kExpired);
}

TEST(MachineConnection, AFailedFirstTryIsNotSuspended) {
  Rig rig;
  rig.start();

  rig.down();
  rig.up();
  rig.down();

  EXPECT_THAT(rig.states, ElementsAre());
}

TEST(MachineConnection, H66_ExpiryReachesMembersBeforeAnybodyElse) {
  Rig rig;
  rig.open();
  struct Loser : Listener {
    explicit Loser(Rig& owner) : rig(owner) {}
    void on_session_over(Code) override { rig.story.emplace_back("member"); }
    Rig& rig;
  } loser(rig);
  rig.machine.join(loser);
  rig.story.clear();
  Call call = create_call("/a");
  call.done = [&](Outcome&&) { rig.story.emplace_back("caller"); };
  rig.machine.submit(std::move(call), rig.now);
  rig.settle();

  rig.answer(Err::kSessionExpired);

  EXPECT_THAT(rig.story, ElementsAre("member", "caller", "expired"));
}

TEST(MachineConnection, H66_AFreshIdIsTheEndOfTheOldSession) {
  Rig rig;
  rig.open();
  Listener holder;
  rig.machine.join(holder);
  rig.submit(get_call("/a", rig.watcher()));
  rig.answer();
  rig.down();
  rig.up();

  rig.greet(seconds(10), 99);

  EXPECT_EQ(rig.machine.state(), SessionState::kExpired);
  EXPECT_EQ(rig.machine.over_code(), Code::kSessionLost);
  EXPECT_EQ(holder.story.back(), "session over: SessionLost");
  EXPECT_THAT(rig.events, ElementsAre("session over "));
  EXPECT_FALSE(rig.is_up());
}

TEST(MachineConnection, AfterTheEndNothingIsWantedAnyMore) {
  Rig rig;
  rig.open();
  rig.submit(get_call("/a"));
  rig.down();
  rig.up();
  rig.greet(milliseconds(0), 0);

  rig.machine.received("garbage", rig.now);
  rig.machine.transport_down("late", Code::kUnreachable, rig.now);
  rig.machine.transport_up(rig.now);
  rig.machine.tick(rig.now + seconds(100));

  EXPECT_FALSE(rig.machine.has_news());
  EXPECT_EQ(rig.machine.next_wake(), Instant::max());
}

TEST(MachineConnection, BytesOfAConnectionThatIsGoneAreForgotten) {
  Rig rig;
  rig.open();
  rig.down();

  rig.machine.received(std::string("\0\0\0\x7f", 4), rig.now);
  rig.accept();

  EXPECT_EQ(rig.machine.state(), SessionState::kConnected);
}

// Finding a server.

TEST(MachineConnection, TriesEveryServerInAShuffledOrder) {
  std::set<std::vector<std::size_t>> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rig rig({.endpoints = 3}, seed);
    rig.start();
    for (int i = 0; i < 5; ++i) rig.cut();
    std::vector<std::size_t> first(rig.dials.begin(), rig.dials.begin() + 3);
    orders.insert(first);
    std::ranges::sort(first);
    EXPECT_THAT(first, ElementsAre(0, 1, 2)) << "seed " << seed;
  }
  EXPECT_EQ(orders.size(), 6U);
}

TEST(MachineConnection, TheFirstRetryAfterAGoodConnectionIsImmediate) {
  Rig rig;
  rig.open();
  rig.submit(sync_call());
  rig.answer();

  rig.down();

  EXPECT_TRUE(rig.dialed);
}

TEST(MachineConnection, BackOffGrowsToTheCapWithJitter) {
  const RetryPolicy retry{.base = milliseconds(100), .factor = 2.0, .cap = milliseconds(1'000)};
  std::set<Duration> capped;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rig rig({.retry = retry}, seed);
    rig.start();
    milliseconds full(100);
    rig.down();
    ASSERT_TRUE(rig.dialed);
    for (int i = 0; i < 12; ++i) {
      rig.machine.transport_down("refused", Code::kUnreachable, rig.now);
      rig.settle();
      const Duration pause = rig.machine.next_wake() - rig.now;
      EXPECT_LE(pause, full) << "seed " << seed << " try " << i;
      EXPECT_GE(pause, full / 2) << "seed " << seed << " try " << i;
      if (full == retry.cap) capped.insert(pause);
      full = std::min(retry.cap, full * 2);
      rig.leap(pause);
      ASSERT_TRUE(rig.dialed);
    }
  }
  EXPECT_GT(capped.size(), 100U) << "no two clients march in step";
}

TEST(MachineConnection, AConnectionThatAnswersNothingDoesNotResetTheBackOff) {
  Rig rig;
  rig.open();
  rig.down();
  rig.accept();

  rig.down();

  EXPECT_FALSE(rig.dialed);
  EXPECT_GT(rig.machine.next_wake(), rig.now);
}

TEST(MachineConnection, AnAttemptThatHangsIsGivenUpAndTheNextServerDialedInOneTick) {
  Rig rig({.timeout = seconds(9), .endpoints = 3});
  rig.start();

  rig.leap(milliseconds(2'999));
  EXPECT_EQ(rig.hang_ups, 0);
  rig.leap(milliseconds(1));

  EXPECT_EQ(rig.hang_ups, 1);
  EXPECT_TRUE(rig.dialed);
  EXPECT_EQ(rig.dials.size(), 2U);
}

TEST(MachineConnection, TheHandshakeIsPartOfTheAttempt) {
  Rig rig({.timeout = seconds(9)});
  rig.start();
  rig.leap(seconds(2));
  rig.up();

  rig.leap(seconds(1));

  EXPECT_EQ(rig.hang_ups, 1);
  EXPECT_THAT(rig.machine.last_trouble(), HasSubstr("no answer in time"));
}

TEST(MachineConnection, AServerThatNeverGreetsIsLeftSoonHoweverLongTheTimeOut) {
  Rig rig({.timeout = seconds(600)});
  rig.start();
  rig.up();

  rig.leap(seconds(5));

  EXPECT_EQ(rig.hang_ups, 1);
}

TEST(MachineConnection, ASilentServerIsLeftAfterTwoThirdsOfTheTimeOut) {
  Rig rig;
  rig.open(seconds(9));

  rig.pass(milliseconds(5'999));
  EXPECT_EQ(rig.hang_ups, 0);
  rig.pass(milliseconds(1));

  EXPECT_EQ(rig.hang_ups, 1);
  EXPECT_EQ(rig.machine.state(), SessionState::kSuspended);
}

TEST(MachineConnection, WaitersForAConnectionHearOfItOrOfTheTrouble) {
  Rig rig;
  rig.start();
  const Sent impatient = rig.await_connection(seconds(1));
  const Sent patient = rig.await_connection(seconds(100));
  rig.down("zk1:2181: connection refused");
  ASSERT_TRUE(rig.dialed);

  rig.leap(seconds(1));
  EXPECT_EQ(impatient.times(), 1);
  EXPECT_EQ(impatient.code(), Code::kUnreachable);
  EXPECT_THAT(impatient.told->outcome.detail, HasSubstr("connection refused"));
  rig.accept();

  EXPECT_TRUE(patient.ok());
  EXPECT_EQ(impatient.times(), 1);
  EXPECT_TRUE(rig.await_connection(seconds(1)).ok());
}

TEST(MachineConnection, TroubleWithCertificatesIsCalledThat) {
  Rig rig;
  rig.start();
  const Sent waiter = rig.await_connection(seconds(1));
  rig.down("certificate has expired", Code::kTls);

  rig.leap(seconds(1));

  EXPECT_EQ(waiter.code(), Code::kTls);
}

// Giving up.

/// Turns every connection attempt away until the session is over or `limit` has passed.
Duration refuse_until_over(Rig& rig, Duration limit, bool let_in) {
  const Instant from = rig.now;
  while (!rig.machine.is_over() && rig.now - from < limit) {
    if (rig.dialed) {
      rig.up();
      if (let_in) rig.greet();
      rig.down("dropped");
    }
    if (!rig.dialed) rig.leap(std::max(Duration{}, rig.machine.next_wake() - rig.now));
  }
  return rig.now - from;
}

TEST(MachineConnection, H20_AServerThatLostItsDataIsGivenUpAfterThreeTimeOuts) {
  Rig rig;
  rig.open();
  Listener holder;
  rig.machine.join(holder);
  const Sent debt = rig.owe_delete("/locks/mine");
  rig.down();

  const Duration took = refuse_until_over(rig, seconds(100), false);

  EXPECT_EQ(took, seconds(30));
  EXPECT_EQ(rig.machine.state(), SessionState::kExpired);
  EXPECT_EQ(debt.times(), 1);
  EXPECT_EQ(debt.code(), Code::kSessionLost);
  EXPECT_EQ(debt.effect(), Effect::kUnknown);
  EXPECT_EQ(holder.story.back(), "session over: SessionLost");
  // Its nodes may still be there, and to close it again and again would not change that.
  EXPECT_EQ(rig.close().code(), Code::kSessionLost);
}

TEST(MachineConnection, H20_TheOptionMayOnlyLengthenIt) {
  for (const auto& [option, expected] :
       {std::pair(seconds(5), seconds(30)), std::pair(seconds(70), seconds(70))}) {
    Rig rig({.give_up_after = option});
    rig.open();
    rig.down();

    EXPECT_EQ(refuse_until_over(rig, seconds(200), false), expected);
  }
}

TEST(MachineConnection, H63_AServerThatTakesTheSessionAndDropsItForEverIsGivenUpToo) {
  Rig rig;
  rig.open();
  rig.down();

  const Duration took = refuse_until_over(rig, seconds(200), true);

  EXPECT_GE(took, seconds(30));
  EXPECT_LT(took, seconds(33));
  EXPECT_EQ(rig.machine.state(), SessionState::kExpired);
}

TEST(MachineConnection, AnAnswerOnTheNewConnectionStartsTheCountAgain) {
  Rig rig;
  rig.open();
  rig.down();
  refuse_until_over(rig, seconds(25), false);
  if (!rig.dialed) rig.leap(rig.machine.next_wake() - rig.now);
  rig.accept();

  rig.pass(seconds(5), [&] { rig.answer_all(); });
  rig.answer_all();
  ASSERT_EQ(rig.machine.state(), SessionState::kConnected);
  rig.down();

  EXPECT_GE(refuse_until_over(rig, seconds(100), false), seconds(30));
}

TEST(MachineConnection, WithoutASessionItTriesForEver) {
  Rig rig;
  rig.start();

  refuse_until_over(rig, seconds(1'000), false);

  EXPECT_FALSE(rig.machine.is_over());
}

// Credentials.

TEST(MachineConnection, CredentialsAreSentOnEveryConnectionBeforeAnythingElse) {
  Rig rig({.credentials = {{"digest", "a:b"}}});
  rig.start();
  rig.submit(get_call("/a"));

  rig.accept();
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kAuth, Op::kGetData));
  EXPECT_EQ(rig.requests[0].as<wire::AuthPacket>().auth, "a:b");
  rig.reconnect();

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kAuth, Op::kGetData));
}

TEST(MachineConnection, ACredentialAddedLaterIsAnsweredOverAReconnect) {
  Rig rig;
  rig.open();
  const Sent added = rig.add_credential("u:p");
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kAuth));

  rig.reconnect();
  EXPECT_EQ(added.times(), 0);
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kAuth));
  rig.answer();

  EXPECT_TRUE(added.ok());
}

TEST(MachineConnection, TheSameCredentialTwiceIsKeptOnceAndAnsweredTwice) {
  Rig rig;
  rig.open();

  const Sent first = rig.add_credential("u:p");
  const Sent second = rig.add_credential("u:p");
  rig.answer_all();
  rig.reconnect();

  EXPECT_TRUE(first.ok());
  EXPECT_TRUE(second.ok());
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kAuth));
}

TEST(MachineConnection, ARefusedCredentialEndsTheSessionWithoutItsSecretInAnyWord) {
  Rig rig;
  rig.open();
  const Sent added = rig.add_credential("user:hunter2");
  const Sent pending = rig.submit(create_call("/a"));

  rig.send(wire::kAuthXid, 0, Err::kAuthFailed);

  EXPECT_EQ(rig.machine.state(), SessionState::kAuthFailed);
  EXPECT_EQ(added.code(), Code::kAuthFailed);
  EXPECT_EQ(pending.code(), Code::kAuthFailed);
  EXPECT_EQ(pending.effect(), Effect::kUnknown);
  EXPECT_EQ(added.told->outcome.detail.find("hunter2"), std::string::npos);
  EXPECT_EQ(rig.machine.last_trouble().find("hunter2"), std::string::npos);
  for (const std::string& line : rig.logs) EXPECT_EQ(line.find("hunter2"), std::string::npos);
}

TEST(MachineConnection, ACredentialHasADeadlineToo) {
  Rig rig;
  rig.start();
  const Sent added = rig.add_credential("u:p", seconds(1));

  rig.leap(seconds(1));
  rig.accept();
  rig.answer_all();

  EXPECT_EQ(added.times(), 1);
  EXPECT_EQ(added.code(), Code::kTimedOut);
}

TEST(MachineConnection, H65_AnAuthAnswerNobodyAskedForEndsTheConnectionNotTheSession) {
  for (const Err err : {Err::kOk, Err::kAuthFailed}) {
    Rig rig;
    rig.open();

    rig.send(wire::kAuthXid, 0, err);

    EXPECT_EQ(rig.machine.state(), SessionState::kSuspended);
  }
}

}  // namespace
}  // namespace latchkey::session
