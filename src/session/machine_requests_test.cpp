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
using testing::IsEmpty;
using wire::Err;
using wire::Op;

Call with_deadline(Call call, Instant deadline) {
  call.deadline = deadline;
  return call;
}

// One outcome for each call.

TEST(MachineRequests, AreSentAtOnceAndAnsweredInOrder) {
  Rig rig;
  rig.open();
  const Sent first = rig.submit(create_call("/a"));
  const Sent second = rig.submit(get_call("/a"));
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kCreate2, Op::kGetData));

  rig.answer();
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(second.times(), 0);
  rig.answer();

  EXPECT_TRUE(second.ok());
  EXPECT_EQ(std::get<wire::Create2Reply>(first.told->outcome.reply).path, "/a");
  EXPECT_EQ(std::get<wire::GetDataReply>(second.told->outcome.reply).data, "data");
}

TEST(MachineRequests, QueueUpUntilThereIsAServer) {
  Rig rig;
  const Sent early = rig.submit(create_call("/a"));
  rig.start();
  const Sent later = rig.submit(create_call("/b"));

  rig.accept();

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kCreate2, Op::kCreate2));
  EXPECT_EQ(rig.requests[0].as<wire::Create>().path, "/a");
  rig.answer_all();
  EXPECT_TRUE(early.ok());
  EXPECT_TRUE(later.ok());
}

TEST(MachineRequests, SayHowLongTheyTookAndHowMuchTheyCarried) {
  Rig rig;
  rig.open();
  Call call = get_call("/a");
  const std::size_t size = call.frame.size();
  const Sent sent = rig.submit(std::move(call));
  rig.reconnect();
  const Instant before = rig.now;

  rig.now += milliseconds(5);
  rig.answer();

  const Outcome& outcome = sent.told->outcome;
  EXPECT_EQ(outcome.finished_at, before + milliseconds(5));
  EXPECT_EQ(outcome.attempts, 2);
  EXPECT_EQ(outcome.bytes_sent, 2 * size);
  EXPECT_GT(outcome.bytes_received, 0U);
}

TEST(MachineRequests, OneThatIsTooLargeIsRefusedHere) {
  Rig rig({.max_request_bytes = 100});
  rig.open();
  Call fits = get_call("/" + std::string(86, 'a'));
  Call large = get_call("/" + std::string(87, 'a'));
  ASSERT_EQ(fits.frame.size(), 4U + 100U);

  const Sent good = rig.submit(std::move(fits));
  const Sent bad = rig.submit(std::move(large));

  EXPECT_EQ(good.times(), 0);
  EXPECT_EQ(bad.code(), Code::kTooLarge);
  EXPECT_EQ(bad.told->outcome.detail, "101 bytes, and the limit is 100");
  EXPECT_EQ(bad.effect(), Effect::kNone);
}

TEST(MachineRequests, ACompletionMaySubmitAnother) {
  Rig rig;
  rig.open();
  Call call = get_call("/a");
  call.done = [&](Outcome&&) { rig.machine.submit(get_call("/b"), rig.now); };
  rig.machine.submit(std::move(call), rig.now);
  rig.settle();

  rig.answer();

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kGetData));
  EXPECT_EQ(rig.requests[0].as<wire::PathWatch>().path, "/b");
}

// Deadlines.

TEST(MachineRequests, ADeadlineThatHasPassedSendsNothing) {
  Rig rig;
  rig.open();

  const Sent sent = rig.submit(with_deadline(create_call("/a"), rig.now));

  EXPECT_EQ(sent.code(), Code::kTimedOut);
  EXPECT_EQ(sent.effect(), Effect::kNone);
  EXPECT_THAT(rig.requests, IsEmpty());
}

TEST(MachineRequests, ADeadlineBeforeTheSendHasNoEffect) {
  Rig rig;
  rig.start();
  const Sent sent = rig.submit(with_deadline(create_call("/a"), rig.now + seconds(1)));

  rig.leap(seconds(1));
  rig.accept();

  EXPECT_EQ(sent.times(), 1);
  EXPECT_EQ(sent.code(), Code::kTimedOut);
  EXPECT_EQ(sent.effect(), Effect::kNone);
  EXPECT_THAT(rig.requests, IsEmpty());
}

TEST(MachineRequests, ADeadlineAfterTheSendLeavesAWriteInDoubt) {
  Rig rig;
  rig.open();
  const Sent write = rig.submit(with_deadline(create_call("/a"), rig.now + seconds(1)));
  const Sent read = rig.submit(with_deadline(get_call("/a"), rig.now + seconds(1)));

  rig.pass(milliseconds(999));
  EXPECT_EQ(write.times(), 0);
  rig.pass(milliseconds(1));
  EXPECT_EQ(write.code(), Code::kTimedOut);
  EXPECT_EQ(write.effect(), Effect::kUnknown);
  EXPECT_EQ(read.code(), Code::kTimedOut);
  EXPECT_EQ(read.effect(), Effect::kNone);
  rig.answer_all();

  EXPECT_EQ(write.times(), 1) << "the late answer is ignored";
  EXPECT_EQ(read.times(), 1);
  EXPECT_EQ(rig.machine.state(), SessionState::kConnected);
}

TEST(MachineRequests, ALateTickReportsWhenItReallyEnded) {
  Rig rig;
  rig.open();
  const Instant begin = rig.now;
  const Sent sent = rig.submit(with_deadline(get_call("/a"), begin + seconds(1)));

  rig.leap(seconds(3));

  EXPECT_EQ(sent.told->outcome.finished_at, begin + seconds(3));
}

TEST(MachineRequests, AnAbandonedCallIsNotSentAgain) {
  Rig rig;
  rig.open();
  const Sent sent = rig.submit(with_deadline(get_call("/a"), rig.now + seconds(1)));
  rig.pass(seconds(1));

  rig.reconnect();

  EXPECT_EQ(sent.times(), 1);
  EXPECT_THAT(rig.requests, IsEmpty());
}

TEST(MachineRequests, TheAnswerToAnAbandonedCallKeepsTheOthersInStep) {
  Rig rig;
  rig.open();
  const Sent gone = rig.submit(get_call("/a"));
  const Sent kept = rig.submit(get_call("/b"));

  rig.machine.abandon(gone.id, Code::kCancelled, rig.now);
  rig.machine.abandon(gone.id, Code::kCancelled, rig.now);
  rig.settle();
  rig.answer_all();
  rig.machine.abandon(kept.id, Code::kCancelled, rig.now);
  rig.settle();

  EXPECT_EQ(gone.times(), 1);
  EXPECT_EQ(gone.code(), Code::kCancelled);
  EXPECT_TRUE(kept.ok());
}

TEST(MachineRequests, WithdrawTakesBackOnlyWhatHasNotLeft) {
  Rig rig;
  rig.open();
  const Sent gone = rig.submit(create_call("/a"));
  rig.machine.withdraw(gone.id, rig.now);
  rig.settle();
  EXPECT_EQ(gone.times(), 0);
  rig.down();
  EXPECT_EQ(gone.code(), Code::kConnectionLoss);
  const Sent queued = rig.submit(create_call("/b"));

  rig.machine.withdraw(queued.id, rig.now);
  rig.machine.withdraw(queued.id, rig.now);
  rig.settle();
  rig.accept();

  EXPECT_EQ(queued.times(), 1);
  EXPECT_EQ(queued.code(), Code::kCancelled);
  EXPECT_EQ(queued.effect(), Effect::kNone);
  EXPECT_THAT(rig.requests, IsEmpty());
}

// A connection that breaks.

TEST(MachineRequests, AWriteIsNeverSentAgain) {
  Rig rig;
  rig.open();
  const Sent sent = rig.submit(create_call("/a"));

  rig.reconnect();

  EXPECT_EQ(sent.times(), 1);
  EXPECT_EQ(sent.code(), Code::kConnectionLoss);
  EXPECT_EQ(sent.effect(), Effect::kUnknown);
  EXPECT_THAT(rig.requests, IsEmpty());
}

TEST(MachineRequests, AReadIsSentAgainAsOftenAsThePolicySays) {
  Rig rig({.retry = {.count = 2}});
  rig.open();
  const Sent sent = rig.submit(get_call("/a"));

  rig.reconnect();
  rig.reconnect();
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kGetData));
  EXPECT_EQ(sent.times(), 0);
  rig.reconnect();

  EXPECT_EQ(sent.times(), 1);
  EXPECT_EQ(sent.code(), Code::kConnectionLoss);
  EXPECT_EQ(sent.told->outcome.attempts, 3);
}

TEST(MachineRequests, OrderIsKeptWhenSentAgain) {
  Rig rig;
  rig.open();
  rig.submit(get_call("/1"));
  rig.submit(create_call("/lost"));
  rig.submit(get_call("/2"));
  rig.owe_delete("/3");
  rig.down();
  rig.submit(get_call("/4"));

  rig.accept();

  std::vector<std::string> paths;
  for (const Request& request : rig.requests) {
    std::string path;
    wire::Reader reader(request.body);
    reader(path);
    paths.push_back(path);
  }
  EXPECT_THAT(paths, ElementsAre("/1", "/2", "/3", "/4"));
}

TEST(MachineRequests, ASessionThatMovedIsFollowed) {
  Rig rig;
  rig.open();
  const Sent write = rig.submit(create_call("/a"));
  const Sent read = rig.submit(get_call("/b"));
  rig.answer(Err::kSessionMoved);

  EXPECT_EQ(write.code(), Code::kSessionMoved);
  EXPECT_EQ(write.effect(), Effect::kNone);
  EXPECT_EQ(rig.machine.state(), SessionState::kSuspended);
  rig.accept();
  rig.answer_all();

  EXPECT_TRUE(read.ok());
}

TEST(MachineRequests, AReadThatMeetsAMovedSessionIsSentAgain) {
  Rig rig;
  rig.open();
  Call call = sync_call();
  call.resend = Resend::kWithinPolicy;
  const Sent sync = rig.submit(std::move(call));
  rig.answer(Err::kSessionMoved);
  EXPECT_EQ(sync.times(), 0);

  rig.accept();
  rig.answer_all();

  EXPECT_TRUE(sync.ok());
}

TEST(MachineRequests, OneDetachIsOneHangUp) {
  Rig rig;
  rig.open();
  rig.submit(get_call("/a"));

  rig.feed(std::string(4, '\0') + std::string("\x7f\xff\xff\xff") + std::string(64, 'x'));

  EXPECT_EQ(rig.hang_ups, 1);
  EXPECT_TRUE(rig.dialed);
}

// Numbers.

TEST(MachineRequests, H03_EveryCodeIsDefiniteOrAmbiguousForAWrite) {
  const std::set<std::int32_t> definite = {-5,   -6,   -8,   -101, -102, -103, -108,
                                           -110, -111, -112, -114, -115, -118, -119,
                                           -120, -121, -123, -124, -125, -127};
  for (std::int32_t number = -300; number <= 20; ++number) {
    if (number == 0) continue;
    Rig rig;
    rig.open();
    const Sent write = rig.submit(create_call("/a"));
    const Sent read = rig.submit(get_call("/a"));

    rig.answer(Err{number});
    if (rig.is_up()) rig.answer(Err{number});

    EXPECT_EQ(write.times(), 1) << number;
    EXPECT_FALSE(write.ok()) << number;
    EXPECT_EQ(write.effect() == Effect::kNone, definite.contains(number)) << number;
    EXPECT_EQ(read.effect(), Effect::kNone) << number;
  }
}

TEST(MachineRequests, AFaultOfTheServerIsNamedByItsNumber) {
  Rig rig;
  rig.open();
  const Sent sent = rig.submit(create_call("/a"));

  rig.answer(Err{-4711});

  EXPECT_EQ(sent.code(), Code::kServerError);
  EXPECT_EQ(sent.told->outcome.detail, "error -4711");
}

TEST(MachineRequests, H56_ClosuresAreHandedOutToBeDestroyedWithoutTheMachine) {
  Rig rig;
  rig.open();
  auto token = std::make_shared<int>(7);
  const std::weak_ptr<int> watched = token;
  Call call = get_call("/missing", [token](const WatchEvent&) {});
  call.done = [token](Outcome&&) {};
  token.reset();
  rig.machine.submit(std::move(call), rig.now);
  rig.settle();

  rig.answer(wire::Err::kNoNode);
  EXPECT_FALSE(watched.expired());
  static_cast<void>(rig.machine.take_spent());

  EXPECT_TRUE(watched.expired());
}

TEST(MachineRequests, ThereIsNoRoomBeyondTheLimitInBytes) {
  Rig rig({.max_queued_bytes = 100});
  rig.open();
  const Sent first = rig.submit(create_call("/" + std::string(120, 'a')));
  EXPECT_FALSE(rig.machine.has_room());

  rig.answer();

  EXPECT_TRUE(first.ok());
  EXPECT_TRUE(rig.machine.has_room());
}

TEST(MachineRequests, H64_XidsStayClearOfTheReservedNumbers) {
  Rig rig({.first_xid = INT32_MAX - 1});
  rig.open();
  std::vector<Sent> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(rig.submit(get_call("/a")));

  std::vector<std::int32_t> xids;
  for (const Request& request : rig.requests) xids.push_back(request.xid);
  EXPECT_THAT(xids, ElementsAre(INT32_MAX - 1, INT32_MAX, 1, 2));
  rig.answer_all();

  for (const Sent& call : calls) EXPECT_TRUE(call.ok());
}

// Bytes that do not fit.

struct Bad {
  const char* name;
  std::string bytes;
};

std::vector<Bad> bad_frames() {
  const auto frame = [](const auto&... parts) {
    std::string bytes;
    wire::append_frame(bytes, parts...);
    return bytes;
  };
  using wire::ReplyHeader;
  return {
      {"NoHeader", frame()},
      {"HalfAHeader", frame(std::int64_t{1}, std::int32_t{0})},
      {"NegativeLength", std::string("\xff\xff\xff\xff")},
      {"HugeLength", std::string("\x7f\xff\xff\xff")},
      {"OverTheLimit", std::string("\x01\x00\x00\x01", 4)},
      {"OutOfTurn", frame(ReplyHeader{2, 5, Err::kOk}, wire::GetDataReply{})},
      {"UnknownXid", frame(ReplyHeader{12'345, 5, Err::kOk})},
      {"NegativeXid", frame(ReplyHeader{-77, 5, Err::kOk})},
      {"NoBody", frame(ReplyHeader{1, 5, Err::kOk})},
      {"ShortBody", frame(ReplyHeader{1, 5, Err::kOk}, std::int32_t{4})},
      {"LongBody", frame(ReplyHeader{1, 5, Err::kOk}, wire::GetDataReply{}, std::int32_t{0})},
      {"UnaskedPing", frame(ReplyHeader{wire::kPingXid, 5, Err::kOk})},
      {"UnaskedAuth", frame(ReplyHeader{wire::kAuthXid, 5, Err::kOk})},
      {"UnaskedRestore", frame(ReplyHeader{wire::kSetWatchesXid, 5, Err::kOk})},
      {"EmptyEvent", frame(ReplyHeader{wire::kNotificationXid, -1, Err::kOk})},
      {"ShortEvent", frame(ReplyHeader{wire::kNotificationXid, -1, Err::kOk}, std::int32_t{1})},
      {"LongEvent", frame(ReplyHeader{wire::kNotificationXid, -1, Err::kOk},
                          wire::WatcherEvent{wire::EventType::kDeleted, 3, "/a"}, false)},
  };
}

class MachineBadFrames : public testing::TestWithParam<Bad> {};

TEST_P(MachineBadFrames, H65_EndTheConnectionNeverTheProcess) {
  Rig rig;
  rig.open();
  const Sent read = rig.submit(get_call("/a"));
  const Sent write = rig.submit(create_call("/b"));

  rig.feed(GetParam().bytes);

  EXPECT_EQ(rig.hang_ups, 1);
  EXPECT_EQ(rig.machine.state(), SessionState::kSuspended);
  EXPECT_EQ(write.code(), Code::kConnectionLoss);
  EXPECT_EQ(write.effect(), Effect::kUnknown);
  rig.accept();
  rig.answer_all();
  EXPECT_TRUE(read.ok());
  EXPECT_EQ(write.times(), 1);
}

INSTANTIATE_TEST_SUITE_P(Frames, MachineBadFrames, testing::ValuesIn(bad_frames()),
                         [](const auto& bad) { return std::string(bad.param.name); });

TEST(MachineRequests, H65_AnAnswerWithoutAnyQuestionEndsTheConnection) {
  Rig rig;
  rig.open();

  rig.send(1, 5, Err::kOk);

  EXPECT_EQ(rig.hang_ups, 1);
}

TEST(MachineRequests, AnswersMayComeInPiecesOfAnySize) {
  Rig rig;
  rig.open();
  const Sent first = rig.submit(create_call("/a"));
  const Sent second = rig.submit(get_call("/a"));
  const Request create = rig.take();
  const std::string bytes =
      Rig::reply_to(create, Err::kOk, 5) + Rig::reply_to(rig.take(), Err::kOk, 5);

  for (const char byte : bytes) rig.feed({&byte, 1});

  EXPECT_TRUE(first.ok());
  EXPECT_TRUE(second.ok());
}

// Room.

TEST(MachineRequests, ThereIsRoomForSoManyAndNoMore) {
  Rig rig({.max_requests = 2});
  rig.open();

  rig.submit(get_call("/a"));
  EXPECT_TRUE(rig.machine.has_room());
  rig.submit(get_call("/b"));
  EXPECT_FALSE(rig.machine.has_room());
  rig.answer();

  EXPECT_TRUE(rig.machine.has_room());
  EXPECT_TRUE(rig.await_room(seconds(1)).ok());
}

TEST(MachineRequests, OneFreePlaceWakesOneWaiterTheFirst) {
  Rig rig({.max_requests = 1});
  rig.open();
  rig.submit(get_call("/a"));
  const Sent first = rig.await_room(seconds(100));
  const Sent second = rig.await_room(seconds(100));
  const Sent third = rig.await_room(seconds(100));
  EXPECT_FALSE(rig.machine.has_room()) << "those who wait take no room";

  rig.answer();
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(second.times(), 0);
  rig.submit(get_call("/b"));
  rig.answer();

  EXPECT_TRUE(second.ok());
  EXPECT_EQ(third.times(), 0);
}

TEST(MachineRequests, AWaiterForRoomGivesUpAtItsDeadlineAndTheNextIsServed) {
  Rig rig({.max_requests = 1});
  rig.open();
  rig.submit(get_call("/a"));
  const Sent impatient = rig.await_room(seconds(1));
  const Sent patient = rig.await_room(seconds(100));

  rig.pass(seconds(1));
  EXPECT_EQ(impatient.times(), 1);
  EXPECT_EQ(impatient.code(), Code::kTimedOut);
  EXPECT_FALSE(rig.machine.has_room());
  rig.answer_all();

  EXPECT_TRUE(patient.ok());
  EXPECT_EQ(impatient.times(), 1);
}

TEST(MachineRequests, AWokenWaiterThatSubmitsTooLatePassesTheTurnOn) {
  Rig rig({.max_requests = 1});
  rig.open();
  rig.submit(get_call("/a"));
  const Sent first = rig.await_room(seconds(100));
  const Sent second = rig.await_room(seconds(100));
  rig.answer();
  ASSERT_TRUE(first.ok());

  rig.submit(with_deadline(get_call("/b"), rig.now));

  EXPECT_TRUE(second.ok());
}

TEST(MachineRequests, RoomComesBackWithALostConnection) {
  Rig rig({.max_requests = 1});
  rig.open();
  rig.submit(create_call("/a"));
  const Sent waiter = rig.await_room(seconds(100));

  rig.down();

  EXPECT_TRUE(waiter.ok());
}

TEST(MachineRequests, AnAbandonedCallKeepsItsPlaceUntilTheServerIsDoneWithIt) {
  Rig rig({.max_requests = 1});
  rig.open();
  const Sent sent = rig.submit(get_call("/a"));

  rig.machine.abandon(sent.id, Code::kCancelled, rig.now);
  rig.settle();
  EXPECT_FALSE(rig.machine.has_room());
  rig.answer();

  EXPECT_TRUE(rig.machine.has_room());
}

// Paths.

TEST(MachinePaths, ChrootIsPutBeforeAndTakenOffAgain) {
  const Rig rig({.chroot = "/app"});

  EXPECT_EQ(rig.machine.absolute("/a/b"), "/app/a/b");
  EXPECT_EQ(rig.machine.absolute("/"), "/app");
  EXPECT_EQ(rig.machine.relative("/app/a/b"), "/a/b");
  EXPECT_EQ(rig.machine.relative("/app"), "/");
  EXPECT_EQ(rig.machine.relative("/apples"), "/apples") << "not below the chroot";
  EXPECT_EQ(rig.machine.relative("/app/app"), "/app") << "taken off once";
  EXPECT_EQ(rig.machine.relative("/other"), "/other");
  EXPECT_EQ(rig.machine.relative(""), "");
}

TEST(MachinePaths, WhoFindsNoNodeIsRemindedOfTheChroot) {
  Rig rig({.chroot = "/app"});
  rig.open();
  const Sent sent = rig.submit(get_call("/app/a"));

  rig.answer(Err::kNoNode);

  EXPECT_EQ(sent.code(), Code::kNoNode);
  EXPECT_EQ(sent.told->outcome.detail, "below the session's chroot /app, which has to exist");
}

TEST(MachinePaths, WithoutAChrootNothingChanges) {
  const Rig rig;

  EXPECT_EQ(rig.machine.absolute("/a"), "/a");
  EXPECT_EQ(rig.machine.absolute("/"), "/");
  EXPECT_EQ(rig.machine.relative("/a"), "/a");
  EXPECT_EQ(rig.machine.relative("/"), "/");
}

}  // namespace
}  // namespace latchkey::session
