#include "queue/name_contender.hpp"

#include <optional>

#include "queue/owner.hpp"
#include "support/machine_rig.hpp"

// All orders of messages and troubles are in tests/scenario/name_exploration_test.cpp.
namespace latchkey::queue {
namespace {

constexpr std::int64_t kOurs = 7;

class NameContenderTest : public MachineRig<NameAction> {
 protected:
  void make(NameContender::Options options) { contender_.emplace(std::move(options)); }
  void tell(const NameEvent& event) {
    if (!contender_) make({.node = "/names/a"});
    note(contender_->step(event));
  }

  void created(Answer answer = kOk) {
    tell(event::Created{last<action::CreateNode>().ask, answer, "", kOurs});
  }
  void read(event::NodeRead what) {
    const bool watched = did<action::ReadAndWatchNode>() > 0 || ever<action::ReadNode>() == 0;
    what.ask = watched ? last<action::ReadAndWatchNode>().ask : last<action::ReadNode>().ask;
    tell(what);
  }
  void read_theirs() { read({0, kOk, false, false, 3}); }
  void read_not(Answer answer) { read({0, answer, false, false, 0}); }
  void removed(Answer answer) { tell(event::Removed{last<action::RemoveNode>().ask, answer}); }
  void synced(Answer answer = kOk) { tell(event::Synced{last<action::Sync>().ask, answer}); }
  void resumed() { tell(event::Resumed{last<action::Pause>().ask}); }
  void hold() {
    tell(event::Start{});
    created();
    tell(event::Proved{last<action::Prove>().ask, kOk});
  }
  void wait() {
    tell(event::Start{});
    created(no(Code::kNodeExists));
    read_theirs();
  }

  std::optional<NameContender> contender_;
};

TEST(NameSignature, ANodeIsKnownByItsLineAndByNothingThatLooksAlike) {
  const std::string data = sign(format_owner({.host = "db1", .reason = "attempt=g-2\n"}), "g-1");
  EXPECT_TRUE(is_signed(data, "g-1"));
  EXPECT_FALSE(is_signed(data, "g-2"));
  EXPECT_FALSE(is_signed(data, "g-"));
  EXPECT_FALSE(is_signed("__REVOKE__", "g-1"));
  EXPECT_TRUE(is_signed(sign("", "g-1"), "g-1"));
  ASSERT_TRUE(parse_owner(data));
  EXPECT_EQ(parse_owner(data)->host, "db1");
}

TEST_F(NameContenderTest, WhoeverCreatesTheNodeHolds) {
  hold();
  EXPECT_EQ(last<action::Grant>().czxid, kOurs);
  EXPECT_EQ(ever<action::ReadNode>() + ever<action::ReadAndWatchNode>(), 0);
}

TEST_F(NameContenderTest, WhoeverIsLateIsWokenAndTriesAgain) {
  wait();
  EXPECT_TRUE(did_.empty());
  tell(event::NodeGone{});
  EXPECT_EQ(did<action::CreateNode>(), 1);
}

TEST_F(NameContenderTest, H26_ANodeThatIsGoneBeforeItIsWatchedIsAWake) {
  tell(event::Start{});
  created(no(Code::kNodeExists));
  read_not(no(Code::kNoNode));
  EXPECT_EQ(did<action::CreateNode>(), 1);
}

TEST_F(NameContenderTest, H34_ATouchedNodeIsWatchedAgain) {
  wait();
  tell(event::NodeTouched{});
  EXPECT_EQ(did<action::ReadAndWatchNode>(), 1);
  tell(event::NodeGone{});
  EXPECT_TRUE(did_.empty()) << "the watch is not in place";
}

TEST_F(NameContenderTest, ANodeThatCannotBeReadIsTriedForAgainAndAgain) {
  tell(event::Start{});
  created(no(Code::kNodeExists));
  read_not(no(Code::kNotAuthorized));
  EXPECT_EQ(did<action::Pause>(), 1);
  resumed();
  EXPECT_EQ(did<action::CreateNode>(), 1);
  created(no(Code::kNodeExists));
  read_not(no(Code::kOverloaded));
  EXPECT_EQ(last<action::Pause>().round, 2);
  resumed();
  EXPECT_EQ(did<action::ReadAndWatchNode>(), 1);
}

TEST_F(NameContenderTest, TryLockIsBusyAtOnce) {
  make({.node = "/names/a", .wait = Wait::kNo});
  tell(event::Start{});
  created(no(Code::kNodeExists));
  expect_failed(Code::kBusy);
  EXPECT_TRUE(is_done());
  EXPECT_EQ(ever<action::ReadAndWatchNode>(), 0);
}

TEST_F(NameContenderTest, H39_MissingLevelsAreMade) {
  tell(event::Start{});
  created(no(Code::kNoNode));
  EXPECT_EQ(last<action::MakeDirectory>().path, "/names");
  tell(event::Made{last<action::MakeDirectory>().ask, kMaybe});
  EXPECT_EQ(did<action::MakeDirectory>(), 1);
  tell(event::Made{last<action::MakeDirectory>().ask, no(Code::kNodeExists)});
  EXPECT_EQ(did<action::CreateNode>(), 1);
  created(no(Code::kNoNode));
  EXPECT_EQ(did<action::Pause>(), 1) << "somebody takes it away as fast as we make it";
  resumed();
  tell(event::Made{last<action::MakeDirectory>().ask, no(Code::kNotAuthorized)});
  expect_failed(Code::kNotAuthorized);
  EXPECT_NE(last<action::Fail>().why.find("/names"), std::string::npos);
  EXPECT_TRUE(is_done());
}

TEST_F(NameContenderTest, ATopLevelNodeHasNoDirectoryToMake) {
  make({.node = "/a"});
  tell(event::Start{});
  created(no(Code::kNoNode));
  expect_failed(Code::kNoNode);
  EXPECT_EQ(ever<action::MakeDirectory>(), 0);
}

TEST_F(NameContenderTest, ARefusedCreateIsReportedWithItsPath) {
  tell(event::Start{});
  created(no(Code::kNotAuthorized));
  expect_failed(Code::kNotAuthorized);
  EXPECT_NE(last<action::Fail>().why.find("/names/a"), std::string::npos);
  EXPECT_TRUE(is_done());
}

TEST_F(NameContenderTest, H01_ACreateInDoubtIsLookedForBehindASync) {
  tell(event::Start{});
  created(kMaybe);
  EXPECT_EQ(did<action::Sync>(), 1);
  synced();
  read({last<action::ReadAndWatchNode>().ask, kOk, true, true, kOurs});
  EXPECT_EQ(did<action::Prove>(), 1);
  EXPECT_EQ(ever<action::CreateNode>(), 1);
}

TEST_F(NameContenderTest, H03_AServersOwnFaultIsNotAskedAgainAtOnce) {
  tell(event::Start{});
  created(kFault);
  EXPECT_EQ(did<action::Pause>(), 1);
  resumed();
  EXPECT_EQ(did<action::Sync>(), 1);
}

TEST_F(NameContenderTest, H04_H07_OwnerAndGuidTogetherMakeItOurs) {
  for (const bool owned : {false, true}) {
    for (const bool is_signed : {false, true}) {
      contender_.reset();
      all_.clear();
      tell(event::Start{});
      created(kMaybe);
      synced();
      tell(event::NodeRead{last<action::ReadAndWatchNode>().ask, kOk, owned, is_signed, 3});
      EXPECT_EQ(ever<action::Prove>(), owned && is_signed ? 1 : 0);
    }
  }
}

TEST_F(NameContenderTest, ASearchThatIsRefusedFailsAndGoesOnBehindTheScenes) {
  tell(event::Start{});
  created(kMaybe);
  synced(no(Code::kNotAuthorized));
  read_not(no(Code::kNotAuthorized));
  expect_failed(Code::kNotAuthorized);
  EXPECT_FALSE(is_done());
  resumed();
  synced();
  tell(event::NodeRead{last<action::ReadNode>().ask, kOk, true, true, kOurs});
  EXPECT_EQ(did<action::RemoveNode>(), 1);
  removed(kOk);
  EXPECT_TRUE(is_done());
}

TEST_F(NameContenderTest, H21_H22_ADeleteInDoubtIsRepeatedOnlyWhereOurNodeIsSeen) {
  hold();
  tell(event::Release{});
  removed(kMaybe);
  EXPECT_EQ(did<action::RemoveNode>(), 0);
  synced();
  tell(event::NodeRead{last<action::ReadNode>().ask, kOk, true, false, kOurs});
  EXPECT_EQ(did<action::RemoveNode>(), 1) << "known by its transaction, whatever its data";
  removed(kMaybe);
  synced();
  tell(event::NodeRead{last<action::ReadNode>().ask, kOk, true, true, kOurs + 1});
  EXPECT_EQ(ever<action::RemoveNode>(), 2);
  EXPECT_EQ(last<action::NodeRemoved>().answer.kind, Answer::Kind::kOk);
  EXPECT_TRUE(is_done());
}

TEST_F(NameContenderTest, ADeleteThatIsRefusedForGoodIsReported) {
  hold();
  tell(event::Release{});
  removed(no(Code::kOverloaded));
  EXPECT_EQ(did<action::Pause>(), 1);
  resumed();
  EXPECT_EQ(did<action::RemoveNode>(), 1);
  removed(no(Code::kNotAuthorized));
  EXPECT_EQ(last<action::NodeRemoved>().answer.code, Code::kNotAuthorized);
  EXPECT_TRUE(is_done());
}

TEST_F(NameContenderTest, AHeartbeatWatchesTheHoldersNode) {
  hold();
  tell(event::Heartbeat{});
  EXPECT_EQ(did<action::ReadAndWatchNode>(), 1);
  tell(event::Heartbeat{});
  EXPECT_TRUE(did_.empty());
  read({0, kOk, true, false, kOurs});
  EXPECT_TRUE(did_.empty()) << "its data may have been changed by another hand";
  tell(event::NodeGone{});
  EXPECT_EQ(last<action::Lose>().code, Code::kLost);
  EXPECT_EQ(ever<action::RemoveNode>(), 0);
  EXPECT_TRUE(is_done());
}

TEST_F(NameContenderTest, AHolderThatSeesAnotherTransactionHasLost) {
  hold();
  tell(event::Heartbeat{});
  read({0, kOk, true, true, kOurs + 1});
  EXPECT_EQ(last<action::Lose>().code, Code::kLost);
  EXPECT_EQ(ever<action::UnwatchNode>(), 1);
  EXPECT_EQ(ever<action::RemoveNode>(), 0);
}

TEST_F(NameContenderTest, AWatchThatIsRefusedIsTriedAgainIfThatMakesSense) {
  hold();
  tell(event::Heartbeat{});
  read_not(kMaybe);
  EXPECT_EQ(did<action::ReadAndWatchNode>(), 1);
  read_not(no(Code::kOverloaded));
  tell(event::Heartbeat{});
  EXPECT_EQ(did<action::ReadAndWatchNode>(), 1);
  read_not(no(Code::kNotAuthorized));
  tell(event::Heartbeat{});
  EXPECT_TRUE(did_.empty());
}

TEST_F(NameContenderTest, H09_ANodeLostByTheClockIsLookedForOnceTheHolderKnows) {
  hold();
  tell(event::LeaseOver{});
  EXPECT_EQ(last<action::Lose>().code, Code::kLost);
  EXPECT_EQ(ever<action::RemoveNode>() + ever<action::Sync>(), 0);
  tell(event::Release{});
  EXPECT_TRUE(did_.empty());
  tell(event::LossTold{});
  synced();
  tell(event::NodeRead{last<action::ReadNode>().ask, kOk, true, true, kOurs});
  EXPECT_EQ(did<action::RemoveNode>(), 1);
  removed(no(Code::kNoNode));
  EXPECT_TRUE(is_done());
}

TEST_F(NameContenderTest, H12_AProofInDoubtIsAskedForAgainAndARefusedOneFails) {
  tell(event::Start{});
  created();
  tell(event::Proved{last<action::Prove>().ask, kMaybe});
  EXPECT_EQ(did<action::Prove>(), 1);
  tell(event::Proved{last<action::Prove>().ask, no(Code::kServerError)});
  expect_failed(Code::kServerError);
  EXPECT_EQ(did<action::RemoveNode>(), 1);
}

TEST_F(NameContenderTest, H22_TheEndOfTheSessionEndsEverything) {
  hold();
  tell(event::SessionOver{Code::kClosed});
  EXPECT_EQ(last<action::Lose>().code, Code::kClosed);
  EXPECT_TRUE(is_done());
  tell(event::LossTold{});
  tell(event::Release{});
  EXPECT_TRUE(did_.empty());
}

TEST_F(NameContenderTest, H50_ACancelAfterTheGrantIsTooLate) {
  hold();
  tell(event::Cancel{Code::kTimedOut});
  EXPECT_TRUE(did_.empty());
}

TEST_F(NameContenderTest, H06_ACancelWithTheCreateOnItsWayRemovesWhatItMakes) {
  tell(event::Start{});
  tell(event::Cancel{Code::kTimedOut});
  expect_failed(Code::kTimedOut);
  EXPECT_EQ(did<action::Withdraw>(), 1);
  created();
  EXPECT_EQ(did<action::RemoveNode>(), 1);
  removed(kOk);
  EXPECT_TRUE(is_done());
}

}  // namespace
}  // namespace latchkey::queue
