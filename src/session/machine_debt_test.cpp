#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/machine_rig.hpp"

namespace latchkey::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::Err;
using wire::Op;

TEST(MachineDebt, IsSentAtOnceAndPaidWithOk) {
  Rig rig;
  rig.open();

  const Sent debt = rig.owe_delete("/locks/mine");
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kDelete));
  EXPECT_EQ(rig.requests[0].as<wire::PathVersion>().path, "/locks/mine");
  EXPECT_TRUE(rig.machine.is_owed("/locks/mine"));
  rig.answer();

  EXPECT_TRUE(debt.ok());
  EXPECT_FALSE(rig.machine.is_owed("/locks/mine"));
}

TEST(MachineDebt, H21_IsSentAgainAfterEveryReconnectUntilTheServerHasSpoken) {
  Rig rig({.retry = {.count = 0}});
  rig.open();
  const Sent debt = rig.owe_delete("/a");

  for (int i = 0; i < 12; ++i) {
    rig.reconnect();
    ASSERT_THAT(rig.ops(), ElementsAre(Op::kDelete)) << i;
    EXPECT_TRUE(rig.machine.is_owed("/a"));
    EXPECT_EQ(debt.times(), 0);
  }
  rig.answer();

  EXPECT_TRUE(debt.ok());
}

TEST(MachineDebt, H21_NoNodeIsPaidToo) {
  Rig rig;
  rig.open();
  const Sent debt = rig.owe_delete("/a");
  rig.reconnect();

  rig.answer(Err::kNoNode);

  EXPECT_TRUE(debt.ok());
  EXPECT_FALSE(rig.machine.is_owed("/a"));
}

TEST(MachineDebt, H21_OfADisconnectedSessionWaitsForTheNextConnection) {
  Rig rig;
  rig.open();
  rig.down();

  const Sent debt = rig.owe_delete("/a");
  EXPECT_TRUE(rig.machine.is_owed("/a"));
  rig.accept();
  rig.answer();

  EXPECT_TRUE(debt.ok());
}

TEST(MachineDebt, H21_SurvivesAMovedSession) {
  Rig rig;
  rig.open();
  const Sent debt = rig.owe_delete("/a");

  rig.answer(Err::kSessionMoved);
  EXPECT_EQ(debt.times(), 0);
  EXPECT_TRUE(rig.machine.is_owed("/a"));
  rig.accept();
  rig.answer();

  EXPECT_TRUE(debt.ok());
}

class MachineDebtUnsettled : public testing::TestWithParam<Err> {};

TEST_P(MachineDebtUnsettled, H21_IsSentAgainAfterAPauseOnTheSameConnection) {
  Rig rig;
  rig.open();
  const Sent debt = rig.owe_delete("/a");

  rig.answer(GetParam());
  EXPECT_EQ(debt.times(), 0);
  EXPECT_TRUE(rig.machine.is_owed("/a"));
  EXPECT_THAT(rig.requests, IsEmpty()) << "not in a hot loop";
  rig.pass(seconds(2));
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kDelete));
  rig.answer();

  EXPECT_TRUE(debt.ok());
  EXPECT_FALSE(rig.machine.is_owed("/a"));
}

TEST_P(MachineDebtUnsettled, H21_IsSentAgainOnANewConnection) {
  Rig rig({.retry = {.cap = seconds(9)}});
  rig.open();
  const Sent debt = rig.owe_delete("/a");
  rig.answer(GetParam());

  rig.reconnect();
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kDelete));
  rig.answer(Err::kNoNode);
  rig.pass(seconds(3));

  EXPECT_TRUE(debt.ok());
  EXPECT_THAT(rig.requests, IsEmpty()) << "and not a second time";
}

TEST_P(MachineDebtUnsettled, H22_HasItsOneOutcomeIfTheSessionEndsMeanwhile) {
  for (const bool closes : {false, true}) {
    Rig rig;
    rig.open();
    const Sent debt = rig.owe_delete("/a");
    rig.answer(GetParam());

    if (closes) {
      rig.close();
      rig.answer_all();
    } else {
      rig.cut();
      rig.up();
      rig.greet(milliseconds(0), 0);
    }

    EXPECT_TRUE(rig.machine.is_over());
    EXPECT_EQ(debt.times(), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Codes, MachineDebtUnsettled,
                         testing::Values(Err::kThrottled, Err::kSystemError, Err::kConnectionLoss,
                                         Err::kOperationTimeout, Err::kNotReadOnly, Err{-4711},
                                         Err{12}));

TEST(MachineDebt, ARefusalForGoodIsToldAndLogged) {
  Rig rig;
  rig.open();
  const Sent debt = rig.owe_delete("/a");

  rig.answer(Err::kNoAuth);

  EXPECT_EQ(debt.code(), Code::kNotAuthorized);
  EXPECT_FALSE(rig.machine.is_owed("/a"));
  ASSERT_EQ(rig.logs.size(), 1U);
  EXPECT_THAT(rig.logs[0], HasSubstr("cannot delete /a"));
}

TEST(MachineDebt, H22_DiesWithItsSession) {
  Rig rig;
  rig.open();
  const Sent debt = rig.owe_delete("/a");
  rig.cut();
  rig.up();

  rig.greet(seconds(10), 99);

  EXPECT_EQ(debt.times(), 1);
  EXPECT_EQ(debt.code(), Code::kSessionLost);
  EXPECT_EQ(debt.effect(), Effect::kUnknown) << "it had been sent";
  EXPECT_FALSE(rig.machine.is_owed("/a"));
  EXPECT_THAT(rig.requests, IsEmpty());
  EXPECT_THAT(rig.logs, testing::Each(testing::Not(HasSubstr("cannot delete"))));
}

TEST(MachineDebt, H22_NoneIsTakenOnAfterTheEnd) {
  Rig rig;
  rig.open();
  rig.close();
  const Sent closing = rig.owe_delete("/a");
  rig.answer_all();

  const Sent closed = rig.owe_delete("/b");

  EXPECT_EQ(closing.code(), Code::kClosed);
  EXPECT_EQ(closed.code(), Code::kClosed);
  EXPECT_FALSE(rig.machine.is_owed("/a"));
  EXPECT_THAT(rig.logs, IsEmpty()) << "a node of a session that ends needs no delete";
}

TEST(MachineDebt, DoesNotAskForRoom) {
  Rig rig({.max_requests = 1});
  rig.open();
  rig.submit(get_call("/a"));

  rig.owe_delete("/b");

  EXPECT_THAT(rig.ops(), ElementsAre(Op::kGetData, Op::kDelete));
  EXPECT_FALSE(rig.machine.has_room());
}

TEST(MachineDebt, WatchesOfItsOwnSessionFireAtOnce) {
  Rig rig({.chroot = "/app"});
  rig.open();
  Call kin = get_call("/app/a", rig.watcher("kin: "));
  kin.watch->kin = WatchTable::Kin::kYes;
  rig.submit(std::move(kin));
  rig.submit(get_call("/app/a", rig.watcher("other: ")));
  rig.answer_all();

  rig.owe_delete("/app/a");
  EXPECT_THAT(rig.events, ElementsAre("kin: deleted /a"));
  rig.event(wire::EventType::kDeleted, "/app/a");

  EXPECT_THAT(rig.events, ElementsAre("kin: deleted /a", "other: deleted /a"));
}

TEST(MachineDebt, WithoutAnybodyToTellIsPaidAllTheSame) {
  Rig rig;
  rig.open();

  rig.machine.owe_delete("/a", {}, rig.now);
  rig.settle();
  rig.reconnect();
  rig.answer();

  EXPECT_FALSE(rig.machine.is_owed("/a"));
}

}  // namespace
}  // namespace latchkey::session
