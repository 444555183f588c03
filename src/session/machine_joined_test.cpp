#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/machine_rig.hpp"

/// A delete and the next entry in one transaction: Machine::owe_delete().
namespace latchkey::session {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using wire::Err;
using wire::Op;

/// A session that lets go of an entry and comes back with the next one at once.
class JoinedRig : public Rig {
 public:
  explicit JoinedRig(MachineOptions options = {}) : Rig(std::move(options)) {
    open();
    owe_delete("/locks/0");
    enter("/locks/1");
    answer_all();
  }

  Sent enter(const std::string& path, const std::string& heir_of = {}) {
    Call call = create_call(path);
    call.joins_delete = true;
    call.heir_of = heir_of;
    return submit(std::move(call));
  }

  void answer_multi(std::vector<wire::MultiResult> results, std::int64_t zxid = 777) {
    const Request request = take();
    ASSERT_EQ(request.op, Op::kMulti);
    send(request.xid, zxid, Err::kOk, wire::MultiReply{std::move(results)});
  }
  void refuse(Err debt, Err entry) {
    answer_multi({{Op::kError, wire::ErrorReply{debt}}, {Op::kError, wire::ErrorReply{entry}}});
  }
};

TEST(MachineJoined, ADeleteAndTheNextEntryAreOneTransaction) {
  JoinedRig rig;

  const Sent debt = rig.owe_delete("/locks/1");
  EXPECT_THAT(rig.requests, IsEmpty());
  EXPECT_TRUE(rig.machine.is_owed("/locks/1"));
  const Sent entry = rig.enter("/locks/2");

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kMulti));
  const auto multi = rig.requests[0].as<wire::Multi>();
  ASSERT_EQ(multi.ops.size(), 2U);
  EXPECT_EQ(multi.ops[0].op, Op::kDelete);
  EXPECT_EQ(std::get<wire::PathVersion>(multi.ops[0].body).path, "/locks/1");
  EXPECT_EQ(multi.ops[1].op, Op::kCreate) << "3.8.0 has no create2 inside a multi";
  EXPECT_EQ(std::get<wire::Create>(multi.ops[1].body).path, "/locks/2");
  rig.answer_multi({{Op::kDelete, wire::Empty{}}, {Op::kCreate, wire::CreateReply{"/locks/2"}}});

  EXPECT_TRUE(debt.ok());
  EXPECT_FALSE(rig.machine.is_owed("/locks/1"));
  ASSERT_TRUE(entry.ok());
  const auto& made = std::get<wire::Create2Reply>(entry.told->outcome.reply);
  EXPECT_EQ(made.path, "/locks/2");
  EXPECT_EQ(made.stat.czxid, 777) << "all of a multi shares one zxid";
}

TEST(MachineJoined, AnHeirLeavesWithTheOneItInheritsFromAndTheOthersWaitForTheirs) {
  JoinedRig rig;
  const Sent first = rig.owe_delete("/a/1");
  const Sent second = rig.owe_delete("/b/1");
  EXPECT_TRUE(rig.machine.lingers("/a/1"));

  const Sent heir = rig.enter("/a/2", "/a/1");

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kMulti));
  const auto multi = rig.requests[0].as<wire::Multi>();
  EXPECT_EQ(std::get<wire::PathVersion>(multi.ops[0].body).path, "/a/1");
  EXPECT_FALSE(rig.machine.lingers("/a/1"));
  EXPECT_TRUE(rig.machine.lingers("/b/1"));
  rig.answer_multi({{Op::kDelete, wire::Empty{}}, {Op::kCreate, wire::CreateReply{"/a/2"}}});
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(second.times(), 0);
  EXPECT_TRUE(heir.told->outcome.in_place);

  rig.pass(milliseconds(1));
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete)) << "nobody came for it";
}

TEST(MachineJoined, EachDeleteWaitsForItsOwnHeirAsLongAsTheFirstDid) {
  JoinedRig rig;
  rig.owe_delete("/a/1");
  rig.pass(microseconds(750));
  rig.owe_delete("/b/1");
  rig.enter("/a/2", "/a/1");
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kMulti));
  rig.requests.clear();

  rig.pass(microseconds(500));
  EXPECT_TRUE(rig.machine.lingers("/b/1")) << "and not only for what was left of the first one's";
  rig.pass(microseconds(750));
  EXPECT_FALSE(rig.machine.lingers("/b/1"));
}

TEST(MachineJoined, OneWhoDoesNotComeBackKeepsNobodyElseFromIt) {
  JoinedRig rig;
  rig.owe_delete("/a/1");
  rig.pass(microseconds(750));
  rig.owe_delete("/b/1");
  rig.pass(microseconds(500));
  EXPECT_FALSE(rig.machine.lingers("/a/1"));
  EXPECT_TRUE(rig.machine.lingers("/b/1"));
  EXPECT_TRUE(rig.machine.will_linger());

  rig.pass(microseconds(750));
  EXPECT_FALSE(rig.machine.will_linger()) << "nobody has come";
}

TEST(MachineJoined, ALookOfARecipesOwnLetsADeleteGoOnWaiting) {
  JoinedRig rig;
  const Sent debt = rig.owe_delete("/locks/1");
  Call look = get_call("/locks/1");
  look.lets_linger = true;
  const Sent looked = rig.submit(std::move(look));
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kGetData));

  const Sent entry = rig.enter("/locks/2");
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kGetData, Op::kMulti));
}

TEST(MachineJoined, WhoLeavesWithAStrangerOrAloneIsNoHeir) {
  JoinedRig rig;
  rig.owe_delete("/b/1");
  const Sent with_another = rig.enter("/a/2", "/a/1");
  rig.answer_multi({{Op::kDelete, wire::Empty{}}, {Op::kCreate, wire::CreateReply{"/a/2"}}});
  ASSERT_TRUE(with_another.ok());
  EXPECT_FALSE(with_another.told->outcome.in_place);

  const Sent alone = rig.enter("/a/3", "/a/2");
  rig.answer_all();
  ASSERT_TRUE(alone.ok());
  EXPECT_FALSE(alone.told->outcome.in_place);
}

TEST(MachineJoined, AnHeirWhoseTransactionWasUndoneHasInheritedNothing) {
  JoinedRig rig;
  rig.owe_delete("/locks/1");
  const Sent heir = rig.enter("/locks/2", "/locks/1");
  rig.refuse(Err::kNoNode, Err::kRuntimeInconsistency);
  ASSERT_EQ(heir.times(), 1);
  EXPECT_FALSE(heir.ok());
  EXPECT_FALSE(heir.told->outcome.in_place);
}

TEST(MachineJoined, WhoeverDoesNotComeBackAtOnceIsNotWaitedFor) {
  Rig rig;
  rig.open();
  rig.owe_delete("/locks/0");
  rig.answer_all();
  rig.pass(milliseconds(1));
  Call call = create_call("/locks/1");
  call.joins_delete = true;
  rig.submit(std::move(call));
  rig.answer_all();

  rig.owe_delete("/locks/1");

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete));
}

TEST(MachineJoined, ADeleteWaitsForAMillisecondAndTheNextOneNotAtAll) {
  JoinedRig rig;
  const Sent debt = rig.owe_delete("/locks/1");

  rig.pass(microseconds(1'500));
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kDelete));
  rig.answer();
  rig.owe_delete("/locks/2");

  EXPECT_TRUE(debt.ok());
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete)) << "nobody came back the last time";
}

TEST(MachineJoined, WhoComesBackLateStillJoinsButIsNotWaitedForAgain) {
  JoinedRig rig;
  rig.owe_delete("/locks/1");
  rig.pass(microseconds(500));

  rig.enter("/locks/2");

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kMulti));
  rig.answer_multi({{Op::kDelete, wire::Empty{}}, {Op::kCreate, wire::CreateReply{"/locks/2"}}});
  rig.owe_delete("/locks/2");
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete));
}

TEST(MachineJoined, WhateverElseLeavesTakesItAlong) {
  JoinedRig rig;

  rig.owe_delete("/locks/1");
  rig.submit(sync_call());

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete, Op::kSync));
}

TEST(MachineJoined, OfSeveralDeletesTheLastJoinsAndTheOthersLeaveBeforeIt) {
  JoinedRig rig;

  rig.owe_delete("/locks/1");
  rig.owe_delete("/locks/2");
  rig.enter("/locks/3");

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete, Op::kMulti));
}

TEST(MachineJoined, TooMuchForOneRequestIsTwo) {
  JoinedRig rig({.max_request_bytes = 72});

  rig.owe_delete("/locks/1");
  rig.enter("/locks/2");

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete, Op::kCreate2));
}

TEST(MachineJoined, H21_AnEntryThatIsGoneAlreadyIsPaidAndTheNewOneIsAskedForAgain) {
  JoinedRig rig;
  const Sent debt = rig.owe_delete("/locks/1");
  const Sent entry = rig.enter("/locks/2");

  rig.refuse(Err::kNoNode, Err::kRuntimeInconsistency);

  EXPECT_TRUE(debt.ok());
  ASSERT_EQ(entry.times(), 1);
  EXPECT_EQ(entry.code(), Code::kRolledBack);
  EXPECT_EQ(entry.effect(), Effect::kNone);
}

TEST(MachineJoined, H21_AnEntryThatIsRefusedLeavesTheDebtWhichIsPaidAlone) {
  JoinedRig rig;
  const Sent debt = rig.owe_delete("/locks/1");
  const Sent entry = rig.enter("/locks/2");

  rig.refuse(Err::kOk, Err::kNoAuth);

  EXPECT_EQ(entry.code(), Code::kRolledBack) << "whoever asks again alone hears why";
  EXPECT_EQ(entry.effect(), Effect::kNone);
  EXPECT_EQ(debt.times(), 0);
  EXPECT_TRUE(rig.machine.is_owed("/locks/1"));
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kDelete));
  rig.answer();
  EXPECT_TRUE(debt.ok());
}

TEST(MachineJoined, H12_ATransactionOfASessionThatHasExpiredProvesNothingAndEndsIt) {
  JoinedRig rig;
  rig.pass(seconds(1));
  const Sent debt = rig.owe_delete("/locks/1");
  const Sent entry = rig.enter("/locks/2");
  const Instant deadline = rig.machine.lease().deadline();

  rig.refuse(Err::kSessionExpired, Err::kRuntimeInconsistency);

  EXPECT_EQ(rig.machine.lease().deadline(), deadline);
  EXPECT_TRUE(rig.machine.is_over());
  EXPECT_EQ(rig.machine.over_code(), Code::kSessionLost);
  EXPECT_EQ(entry.times(), 1);
  EXPECT_EQ(debt.times(), 1);
}

TEST(MachineJoined, WhoeverWaitsForADeleteIsNotKeptWaiting) {
  JoinedRig rig;

  rig.machine.owe_delete("/locks/1", {}, rig.now, Linger::kNo);
  rig.settle();

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete));
}

TEST(MachineJoined, WhereNobodyBringsTheTimeNothingLingers) {
  JoinedRig rig({.linger = Linger::kNo});

  rig.owe_delete("/locks/1");

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete));
}

TEST(MachineJoined, AnEntryThatIsGivenUpInFlightIsAnsweredOnceAndTheDebtIsPaid) {
  JoinedRig rig;
  const Sent debt = rig.owe_delete("/locks/1");
  const Sent entry = rig.enter("/locks/2");
  rig.machine.abandon(entry.id, Code::kTimedOut, rig.now);
  rig.settle();

  rig.answer_multi({{Op::kDelete, wire::Empty{}}, {Op::kCreate, wire::CreateReply{"/locks/2"}}});

  EXPECT_EQ(entry.times(), 1);
  EXPECT_EQ(entry.effect(), Effect::kUnknown);
  EXPECT_TRUE(debt.ok());
}

TEST(MachineJoined, H21_ATransactionThatIsRefusedAsAWholeLeavesTheDebt) {
  for (const Err err : {Err::kUnimplemented, Err::kThrottled}) {
    JoinedRig rig;
    const Sent debt = rig.owe_delete("/locks/1");
    const Sent entry = rig.enter("/locks/2");

    rig.answer(err);
    EXPECT_EQ(entry.times(), 1);
    EXPECT_EQ(debt.times(), 0);
    rig.pass(seconds(3));
    ASSERT_EQ(rig.ops().front(), Op::kDelete);
    rig.answer();

    EXPECT_TRUE(debt.ok());
  }
}

TEST(MachineJoined, H01_H21_AfterALostAnswerTheDebtIsSentAloneAndTheEntryIsInDoubt) {
  JoinedRig rig;
  const Sent debt = rig.owe_delete("/locks/1");
  const Sent entry = rig.enter("/locks/2");

  rig.reconnect();

  EXPECT_EQ(entry.code(), Code::kConnectionLoss);
  EXPECT_EQ(entry.effect(), Effect::kUnknown);
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kDelete));
  rig.answer(Err::kNoNode);
  EXPECT_TRUE(debt.ok());
}

TEST(MachineJoined, H21_AMovedSessionOwesStill) {
  JoinedRig rig;
  const Sent debt = rig.owe_delete("/locks/1");
  const Sent entry = rig.enter("/locks/2");

  rig.answer(Err::kSessionMoved);
  rig.accept();

  EXPECT_EQ(entry.code(), Code::kSessionMoved);
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kDelete));
  rig.answer();
  EXPECT_TRUE(debt.ok());
}

TEST(MachineJoined, H21_AConnectionThatBreaksWhileItWaitsCostsNothing) {
  JoinedRig rig;
  const Sent debt = rig.owe_delete("/locks/1");

  rig.reconnect();

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kDelete));
  rig.answer();
  EXPECT_TRUE(debt.ok());
}

TEST(MachineJoined, H25_AClosedSessionPaysFirst) {
  JoinedRig rig;
  const Sent debt = rig.owe_delete("/locks/1");

  rig.close();

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete, Op::kCloseSession));
  rig.answer_all();
  EXPECT_EQ(debt.times(), 1);
}

TEST(MachineJoined, H22_BothHaveTheirOneOutcomeWhenTheSessionEnds) {
  for (const bool leaves : {false, true}) {
    JoinedRig rig;
    const Sent debt = rig.owe_delete("/locks/1");
    const Sent entry = leaves ? rig.enter("/locks/2") : rig.submit(sync_call());

    rig.cut();
    rig.up();
    rig.greet(milliseconds(0), 0);

    EXPECT_EQ(debt.times(), 1);
    EXPECT_EQ(entry.times(), 1);
  }
}

TEST(MachineJoined, H65_AnAnswerWithOtherPartsEndsTheConnection) {
  const std::vector<std::vector<wire::MultiResult>> wrong = {
      {},
      {{Op::kDelete, wire::Empty{}}},
      {{Op::kDelete, wire::Empty{}}, {Op::kDelete, wire::Empty{}}},
      {{Op::kCreate, wire::CreateReply{"/locks/2"}}, {Op::kDelete, wire::Empty{}}},
      {{Op::kDelete, wire::Empty{}}, {Op::kError, wire::ErrorReply{Err::kNoNode}}},
      {{Op::kError, wire::ErrorReply{Err::kOk}}, {Op::kCreate, wire::CreateReply{"/locks/2"}}},
  };
  for (const auto& results : wrong) {
    JoinedRig rig;
    const Sent debt = rig.owe_delete("/locks/1");
    const Sent entry = rig.enter("/locks/2");

    rig.answer_multi(results);

    EXPECT_EQ(rig.hang_ups, 1);
    EXPECT_EQ(entry.effect(), Effect::kUnknown);
    EXPECT_EQ(debt.times(), 0);
  }
}

}  // namespace
}  // namespace latchkey::session
