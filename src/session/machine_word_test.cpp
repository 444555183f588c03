#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/machine_rig.hpp"

/// A delete with a last word: Machine::owe_delete().
namespace latchkey::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using wire::Err;
using wire::Op;

/// A session that owes the delete of /locks/1, with a word for /locks.
class WordRig : public Rig {
 public:
  explicit WordRig(MachineOptions options = {}) : Rig(std::move(options)) { open(); }

  Sent leave(const std::string& path = "/locks/1") {
    return owe_delete(path, LastWord{"/locks", "left 7", 3});
  }
  void refuse(std::size_t culprit, Err err) {
    const Request request = take();
    ASSERT_EQ(request.op, Op::kMulti);
    feed(refusal_of(request, culprit, err, 777));
  }
  void expect_paid_alone(const Sent& debt) {
    EXPECT_EQ(debt.times(), 0);
    EXPECT_TRUE(machine.is_owed("/locks/1"));
    ASSERT_THAT(ops(), ElementsAre(Op::kDelete));
    EXPECT_EQ(requests[0].as<wire::PathVersion>().path, "/locks/1");
    answer();
    EXPECT_TRUE(debt.ok());
    EXPECT_FALSE(machine.is_owed("/locks/1"));
  }
};

TEST(MachineWord, ADeleteAndItsWordAreOneTransaction) {
  WordRig rig;

  const Sent debt = rig.leave();

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kMulti));
  const auto multi = rig.requests[0].as<wire::Multi>();
  ASSERT_EQ(multi.ops.size(), 2U);
  EXPECT_EQ(multi.ops[0].op, Op::kSetData);
  const auto& set = std::get<wire::SetData>(multi.ops[0].body);
  EXPECT_EQ(set.path, "/locks");
  EXPECT_EQ(set.data, "left 7");
  EXPECT_EQ(set.version, 3);
  EXPECT_EQ(multi.ops[1].op, Op::kDelete);
  EXPECT_EQ(std::get<wire::PathVersion>(multi.ops[1].body).path, "/locks/1");
  EXPECT_TRUE(rig.machine.is_owed("/locks/1"));
  rig.answer();

  EXPECT_TRUE(debt.ok());
  EXPECT_FALSE(rig.machine.is_owed("/locks/1"));
  EXPECT_THAT(rig.requests, IsEmpty());
}

/// There one transaction for both is worth more than what the word would save others.
TEST(MachineWord, InALoopThatComesBackAtOnceNothingIsSaid) {
  WordRig rig;
  const auto enter = [&](const std::string& path) {
    Call call = create_call(path);
    call.joins_delete = true;
    rig.submit(std::move(call));
  };
  rig.owe_delete("/locks/0");
  enter("/locks/1");
  rig.answer_all();

  rig.leave("/locks/1");
  EXPECT_THAT(rig.ops(), IsEmpty()) << "it waits for the next entry";
  enter("/locks/2");

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kMulti));
  EXPECT_EQ(rig.requests[0].as<wire::Multi>().ops[0].op, Op::kDelete);
}

TEST(MachineWord, H21_IfTheWordIsRefusedTheDeleteIsSentAlone) {
  for (const Err err : {Err::kBadVersion, Err::kNoNode, Err::kNoAuth, Err::kQuotaExceeded}) {
    WordRig rig;
    const Sent debt = rig.leave();
    rig.refuse(0, err);
    rig.expect_paid_alone(debt);
  }
}

TEST(MachineWord, H21_IfTheDeleteIsRefusedItIsSentAloneAndTellsWhy) {
  WordRig rig;
  const Sent gone = rig.leave();
  rig.refuse(1, Err::kNoNode);
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kDelete));
  rig.answer(Err::kNoNode);
  EXPECT_TRUE(gone.ok());

  const Sent kept = rig.leave();
  rig.refuse(1, Err::kNoAuth);
  rig.answer(Err::kNoAuth);
  EXPECT_EQ(kept.code(), Code::kNotAuthorized);
  EXPECT_EQ(rig.logs.size(), 1U);
}

TEST(MachineWord, H21_IfAllOfItIsRefusedTheDeleteIsSentAlone) {
  for (const Err err : {Err::kUnimplemented, Err::kThrottled, Err::kSystemError}) {
    WordRig rig;
    const Sent debt = rig.leave();
    rig.answer(err);
    rig.expect_paid_alone(debt);
  }
}

TEST(MachineWord, WhereWordsAreForbiddenTheyAreNotTriedAgain) {
  WordRig rig;
  rig.leave();
  rig.refuse(0, Err::kNoAuth);
  rig.answer_all();

  rig.leave("/locks/2");

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete));
}

TEST(MachineWord, H21_AfterALostAnswerTheDeleteIsSentAlone) {
  for (const Err found : {Err::kOk, Err::kNoNode}) {
    WordRig rig;
    const Sent debt = rig.leave();

    rig.reconnect();

    ASSERT_THAT(rig.ops(), ElementsAre(Op::kDelete));
    EXPECT_TRUE(rig.machine.is_owed("/locks/1"));
    rig.answer(found);
    EXPECT_TRUE(debt.ok());
    EXPECT_FALSE(rig.machine.is_owed("/locks/1"));
  }
}

TEST(MachineWord, H21_AMovedSessionOwesStill) {
  WordRig rig;
  const Sent debt = rig.leave();

  rig.answer(Err::kSessionMoved);
  rig.accept();

  rig.expect_paid_alone(debt);
}

TEST(MachineWord, H21_WithoutAConnectionNothingIsSaid) {
  WordRig rig;
  rig.down();
  const Sent debt = rig.leave();

  rig.accept();

  rig.expect_paid_alone(debt);
}

TEST(MachineWord, TooMuchForOneRequestIsNotSaid) {
  WordRig rig({.max_request_bytes = 60});
  const Sent debt = rig.leave();
  rig.expect_paid_alone(debt);
}

/// To others that node is still ahead of ours.
TEST(MachineWord, WhileAnotherDeleteThereIsUnansweredNothingIsSaid) {
  WordRig rig;
  rig.owe_delete("/locks/0");
  const Sent debt = rig.leave();
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete, Op::kDelete));
  rig.answer_all();
  EXPECT_TRUE(debt.ok());

  rig.owe_delete("/other/0");
  rig.owe_delete("/locks-too/0");
  rig.leave("/locks/2");
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kDelete, Op::kDelete, Op::kMulti));
  rig.leave("/locks/3");
  EXPECT_EQ(rig.ops().back(), Op::kDelete) << "one that says a word is unanswered, too";
}

TEST(MachineWord, H12_AnAnswerProvesTheLeaseAsAnyWriteDoes) {
  WordRig rig;
  rig.pass(seconds(1));
  Instant deadline = rig.machine.lease().deadline();
  rig.leave();
  rig.answer();
  EXPECT_GT(rig.machine.lease().deadline(), deadline);

  rig.pass(seconds(1));
  deadline = rig.machine.lease().deadline();
  rig.leave();
  rig.refuse(0, Err::kBadVersion);
  EXPECT_GT(rig.machine.lease().deadline(), deadline) << "the leader has seen it";
}

TEST(MachineWord, H12_AnAnswerToASessionThatHasExpiredProvesNothingAndEndsIt) {
  WordRig rig;
  rig.pass(seconds(1));
  const Sent debt = rig.leave();
  const Instant deadline = rig.machine.lease().deadline();

  rig.refuse(0, Err::kSessionExpired);

  EXPECT_EQ(rig.machine.lease().deadline(), deadline);
  EXPECT_TRUE(rig.machine.is_over());
  EXPECT_EQ(debt.times(), 1);
  EXPECT_EQ(debt.code(), Code::kSessionLost);
}

TEST(MachineWord, H22_HasItsOneOutcomeWhenTheSessionEnds) {
  WordRig rig;
  const Sent debt = rig.leave();

  rig.cut();
  rig.up();
  rig.greet(milliseconds(0), 0);

  EXPECT_EQ(debt.times(), 1);
  EXPECT_EQ(debt.code(), Code::kSessionLost);
  EXPECT_FALSE(rig.machine.is_owed("/locks/1"));
}

TEST(MachineWord, H25_AClosedSessionPaysFirst) {
  for (const bool refused : {false, true}) {
    WordRig rig;
    const Sent debt = rig.leave();

    const Sent closed = rig.close();
    ASSERT_THAT(rig.ops(), ElementsAre(Op::kMulti, Op::kCloseSession));
    refused ? rig.refuse(0, Err::kBadVersion) : static_cast<void>(rig.answer());
    rig.answer_all();

    EXPECT_EQ(debt.times(), 1);
    EXPECT_EQ(debt.ok(), !refused);
    EXPECT_TRUE(closed.ok());
  }
}

TEST(MachineWord, OfASessionThatIsClosedNothingIsSaid) {
  WordRig rig;
  rig.close();
  const Sent debt = rig.leave();
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kCloseSession));
  EXPECT_EQ(debt.code(), Code::kClosed);
}

TEST(MachineWord, ItsNodeIsGoneForOthersOfItsSessionAtOnce) {
  WordRig rig;
  Call watch = get_call("/locks/1", rig.watcher());
  watch.watch->kin = WatchTable::Kin::kYes;
  rig.submit(std::move(watch));
  rig.answer();

  rig.leave();

  EXPECT_THAT(rig.events, ElementsAre("deleted /locks/1"));
}

TEST(MachineWord, H65_AnAnswerWithOtherPartsIsNone) {
  WordRig rig;
  const Sent debt = rig.leave();
  const Request request = rig.take();
  rig.send(request.xid, 777, Err::kOk, wire::MultiReply{});
  rig.expect_paid_alone(debt);
}

}  // namespace
}  // namespace latchkey::session
