#include "session/operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/machine_rig.hpp"

namespace latchkey::session {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using wire::Err;
using wire::Op;

class OperationsTest : public testing::Test {
 protected:
  /// The request as the server would read it.
  template <class Operation>
  Request sent(const Operation& operation) {
    auto prepared = prepare(operation, machine());
    EXPECT_TRUE(prepared);
    if (!prepared) return {};
    const std::string& frame = prepared->call.frame;
    wire::RequestHeader header;
    wire::Reader reader(std::string_view(frame).substr(4));
    reader(header);
    EXPECT_EQ(header.op, prepared->call.op);
    return {header.xid, header.op, frame.substr(12)};
  }
  template <class Operation>
  Code refusal(const Operation& operation) {
    const auto prepared = prepare(operation, machine());
    EXPECT_FALSE(prepared);
    return prepared ? Code::kServerError : prepared.error().code();
  }
  static Outcome good(Reply reply = {}) {
    Outcome outcome;
    outcome.ok = true;
    outcome.reply = std::move(reply);
    return outcome;
  }
  static Outcome bad(Code code, Effect effect = Effect::kNone) {
    Outcome outcome;
    outcome.code = code;
    outcome.effect = effect;
    return outcome;
  }
  static wire::MultiResult part_ok(Op op) {
    wire::MultiResult result{.op = op};
    switch (op) {
      case Op::kCreate: result.body = wire::CreateReply{"/app/a"}; break;
      case Op::kCreate2: result.body = wire::Create2Reply{"/app/a", {}}; break;
      case Op::kSetData: result.body = wire::StatReply{}; break;
      case Op::kGetData: result.body = wire::GetDataReply{"data", {}}; break;
      case Op::kGetChildren: result.body = wire::ChildrenReply{{"x"}}; break;
      default: result.body = wire::Empty{}; break;
    }
    return result;
  }
  static wire::MultiResult part_failed(Err err) { return {Op::kError, wire::ErrorReply{err}}; }

  [[nodiscard]] const Machine& machine() const { return rig_.machine; }

 private:
  Rig rig_{MachineOptions{.chroot = "/app"}};
};

TEST_F(OperationsTest, PathsTravelWithTheirChroot) {
  EXPECT_EQ(sent(Get{"/a"}).as<wire::PathWatch>().path, "/app/a");
  EXPECT_EQ(sent(Get{"/"}).as<wire::PathWatch>().path, "/app");
  EXPECT_EQ(sent(Remove{"/a", 3}).as<wire::PathVersion>().version, 3);
  EXPECT_EQ(sent(Set{"/a", "x", 4}).as<wire::SetData>().data, "x");
  EXPECT_EQ(sent(Sync{"/a"}).as<wire::PathOnly>().path, "/app/a");
  EXPECT_EQ(sent(Ephemerals{}).as<wire::PathOnly>().path, "/app");
  EXPECT_EQ(sent(Children{"/a"}).op, Op::kGetChildren2);
  EXPECT_EQ(sent(Exists{"/a"}).op, Op::kExists);
  EXPECT_EQ(sent(GetAcl{"/a"}).op, Op::kGetAcl);
  EXPECT_EQ(sent(ChildrenCount{"/a"}).op, Op::kGetAllChildrenNumber);
  EXPECT_EQ(sent(WhoAmI{}).op, Op::kWhoAmI);
}

TEST_F(OperationsTest, H41_ABadPathIsRefusedByEveryOperation) {
  const Path bad("/a//b");
  EXPECT_EQ(refusal(Create{bad, ""}), Code::kInvalidPath);
  EXPECT_EQ(refusal(Remove{bad}), Code::kInvalidPath);
  EXPECT_EQ(refusal(Exists{bad}), Code::kInvalidPath);
  EXPECT_EQ(refusal(Get{bad}), Code::kInvalidPath);
  EXPECT_EQ(refusal(Set{bad, ""}), Code::kInvalidPath);
  EXPECT_EQ(refusal(Children{bad}), Code::kInvalidPath);
  EXPECT_EQ(refusal(GetAcl{bad}), Code::kInvalidPath);
  EXPECT_EQ(refusal(SetAcl{bad, {}}), Code::kInvalidPath);
  EXPECT_EQ(refusal(Sync{bad}), Code::kInvalidPath);
  EXPECT_EQ(refusal(Check{bad}), Code::kInvalidPath);
  EXPECT_EQ(refusal(Ephemerals{bad}), Code::kInvalidPath);
  EXPECT_EQ(refusal(ChildrenCount{bad}), Code::kInvalidPath);
  EXPECT_EQ(refusal(RemoveWatches{bad}), Code::kInvalidPath);
  EXPECT_EQ(refusal(AddWatch{.path = bad, .watcher = [](const WatchEvent&) {}}),
            Code::kInvalidPath);
  EXPECT_EQ(refusal(Multi{{Remove{"/a"}, Remove{bad}}}), Code::kInvalidPath);
  EXPECT_EQ(refusal(MultiRead{{Get{bad}}}), Code::kInvalidPath);
}

TEST_F(OperationsTest, BadOptionsAreRefusedHere) {
  EXPECT_EQ(refusal(Create{"/a", "", {.lifetime = Lifetime::kTtl}}), Code::kInvalidOption);
  EXPECT_EQ(
      refusal(Create{"/a", "", {.lifetime = Lifetime::kContainer, .naming = Naming::kSequential}}),
      Code::kInvalidOption);
  EXPECT_EQ(refusal(AddWatch{.path = "/a"}), Code::kInvalidOption);
  EXPECT_EQ(refusal(Authenticate{"", "x"}), Code::kInvalidOption);
  EXPECT_EQ(refusal(Authenticate{"digest", "ann"}), Code::kInvalidOption);
  EXPECT_EQ(refusal(MultiRead{{Get{"/a", [](const WatchEvent&) {}}}}), Code::kInvalidOption);
  EXPECT_EQ(refusal(Multi{{Create{"/a", "", {.lifetime = Lifetime::kTtl}}}}), Code::kInvalidOption);
}

TEST_F(OperationsTest, EveryLifetimeHasItsRequestAndMode) {
  const auto mode = [&](Lifetime lifetime, Naming naming) {
    return sent(Create{"/a", "", {.lifetime = lifetime, .naming = naming}}).as<wire::Create>().mode;
  };
  EXPECT_EQ(mode(Lifetime::kPersistent, Naming::kAsGiven), wire::CreateMode::kPersistent);
  EXPECT_EQ(mode(Lifetime::kPersistent, Naming::kSequential),
            wire::CreateMode::kPersistentSequential);
  EXPECT_EQ(mode(Lifetime::kEphemeral, Naming::kAsGiven), wire::CreateMode::kEphemeral);
  EXPECT_EQ(mode(Lifetime::kEphemeral, Naming::kSequential),
            wire::CreateMode::kEphemeralSequential);
  const Request container = sent(Create{"/a", "", {.lifetime = Lifetime::kContainer}});
  EXPECT_EQ(container.op, Op::kCreateContainer);
  EXPECT_EQ(container.as<wire::Create>().mode, wire::CreateMode::kContainer);
  const Request ttl = sent(Create{"/a", "", {.lifetime = Lifetime::kTtl, .ttl = milliseconds(5)}});
  EXPECT_EQ(ttl.op, Op::kCreateTtl);
  EXPECT_EQ(ttl.as<wire::CreateTtl>().ttl_ms, 5);
}

TEST_F(OperationsTest, H41_ASequentialNameIsCheckedWithItsDigits) {
  const CreateOptions sequential{.naming = Naming::kSequential};
  for (const char* path : {"/a/", "/", "/a/.", "/a/.."}) {
    const Request request = sent(Create{path, "", sequential});
    EXPECT_EQ(request.as<wire::Create>().path, machine().absolute(path)) << path;
  }
  EXPECT_EQ(refusal(Create{"/a//", "", sequential}), Code::kInvalidPath);
  EXPECT_EQ(refusal(Create{"a", "", sequential}), Code::kInvalidPath);
  EXPECT_EQ(refusal(Create{"/a/", ""}), Code::kInvalidPath);
}

TEST_F(OperationsTest, ReadsAreSentAgainWritesAreNot) {
  const auto resend = [&](const auto& operation) {
    return prepare(operation, machine())->call.resend;
  };
  EXPECT_EQ(resend(Get{"/a"}), Resend::kWithinPolicy);
  EXPECT_EQ(resend(MultiRead{{Get{"/a"}}}), Resend::kWithinPolicy);
  EXPECT_EQ(resend(Sync{"/a"}), Resend::kWithinPolicy);
  EXPECT_EQ(resend(WhoAmI{}), Resend::kWithinPolicy);
  EXPECT_EQ(resend(Create{"/a", ""}), Resend::kNever);
  EXPECT_EQ(resend(Remove{"/a"}), Resend::kNever);
  EXPECT_EQ(resend(Set{"/a", ""}), Resend::kNever);
  EXPECT_EQ(resend(Multi{{Remove{"/a"}}}), Resend::kNever);
  EXPECT_EQ(resend(Check{"/a"}), Resend::kNever);
  EXPECT_EQ(resend(RemoveWatches{"/a"}), Resend::kNever);
}

TEST_F(OperationsTest, AWatcherAsksForAWatch) {
  EXPECT_FALSE(sent(Get{"/a"}).as<wire::PathWatch>().watch);
  EXPECT_TRUE(sent(Get{"/a", [](const WatchEvent&) {}}).as<wire::PathWatch>().watch);
}

TEST_F(OperationsTest, ErrorsNameOperationPathReasonAndEffect) {
  Outcome outcome = bad(Code::kConnectionLoss, Effect::kUnknown);
  outcome.detail = "zk1:2181: reset";

  const auto result = finish(Create{"/a", ""}, std::move(outcome), machine());

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(),
            "create /a: the connection broke before the answer came (zk1:2181: reset)");
  EXPECT_EQ(result.error().effect(), Effect::kUnknown);
}

TEST_F(OperationsTest, ResultsSpeakTheUsersPaths) {
  const auto created =
      finish(Create{"/a", ""}, good(wire::Create2Reply{"/app/a0000000001", {}}), machine());
  ASSERT_TRUE(created);
  EXPECT_EQ(created->path, "/a0000000001");

  const auto ephemerals =
      finish(Ephemerals{}, good(wire::EphemeralsReply{{"/app/a", "/app"}}), machine());
  ASSERT_TRUE(ephemerals);
  EXPECT_THAT(*ephemerals, ElementsAre("/a", "/"));
}

TEST_F(OperationsTest, ExistsTakesNoNodeForAnAnswer) {
  const auto absent = finish(Exists{"/a"}, bad(Code::kNoNode), machine());
  ASSERT_TRUE(absent);
  EXPECT_FALSE(*absent);
  EXPECT_TRUE(*finish(Exists{"/a"}, good(wire::StatReply{}), machine()));
  EXPECT_FALSE(finish(Exists{"/a"}, bad(Code::kNotAuthorized), machine()));
}

TEST_F(OperationsTest, NullDataIsEmptyData) {
  const auto node = finish(Get{"/a"}, good(wire::GetDataReply{std::nullopt, {}}), machine());
  ASSERT_TRUE(node);
  EXPECT_EQ(node->data, "");
}

// Multi.

TEST_F(OperationsTest, AMultiThatWasCarriedOut) {
  const Multi multi{{Create{"/a", ""}, Create{"/a", ""}, Set{"/a", ""}, Remove{"/a"}, Check{"/a"}}};

  const auto result = finish(
      multi,
      good(wire::MultiReply{{part_ok(Op::kCreate), part_ok(Op::kCreate2), part_ok(Op::kSetData),
                             part_ok(Op::kDelete), part_ok(Op::kCheck)}}),
      machine());

  ASSERT_TRUE(result);
  EXPECT_TRUE(result->committed);
  ASSERT_THAT(result->parts, SizeIs(5));
  EXPECT_EQ(std::get<Created>(*result->parts[0]).path, "/a");
  EXPECT_FALSE(std::get<Created>(*result->parts[0]).stat);
  EXPECT_TRUE(std::get<Created>(*result->parts[1]).stat);
  EXPECT_TRUE(std::holds_alternative<Stat>(*result->parts[2]));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*result->parts[3]));
}

TEST_F(OperationsTest, AMultiThatFailedNamesItsCulprit) {
  const Multi multi{{Remove{"/a"}, Check{"/b", 3}, Set{"/c", ""}}};

  const auto result =
      finish(multi,
             good(wire::MultiReply{{part_failed(Err::kOk), part_failed(Err::kBadVersion),
                                    part_failed(Err::kRuntimeInconsistency)}}),
             machine());

  ASSERT_TRUE(result);
  EXPECT_FALSE(result->committed);
  EXPECT_EQ(result->parts[0].error().code(), Code::kRolledBack);
  EXPECT_EQ(result->parts[1].error().code(), Code::kBadVersion);
  EXPECT_THAT(result->parts[1].error().message(), HasSubstr("check /b"));
  EXPECT_EQ(result->parts[2].error().code(), Code::kRolledBack);
}

TEST_F(OperationsTest, H65_AMultiAnswerOfTheWrongShapeIsAnErrorNotATrap) {
  const auto finished = [&](std::vector<wire::MultiResult> parts) {
    return finish(Multi{{Set{"/a", ""}, Remove{"/b"}}}, good(wire::MultiReply{std::move(parts)}),
                  machine());
  };
  EXPECT_FALSE(finished({}));
  EXPECT_FALSE(finished({part_ok(Op::kSetData)}));
  for (const Op op : {Op::kCreate, Op::kCreate2, Op::kGetData, Op::kGetChildren, Op::kDelete}) {
    const auto result = finished({part_ok(op), part_ok(Op::kDelete)});
    ASSERT_TRUE(result);
    EXPECT_FALSE(result->committed) << name(op);
    ASSERT_FALSE(result->parts[0]) << name(op);
    EXPECT_EQ(result->parts[0].error().effect(), Effect::kUnknown) << name(op);
  }
}

TEST_F(OperationsTest, ACheckOnItsOwnIsAMultiOfOne) {
  EXPECT_EQ(sent(Check{"/a", 2}).op, Op::kMulti);
  EXPECT_TRUE(finish(Check{"/a"}, good(wire::MultiReply{{part_ok(Op::kCheck)}}), machine()));
  const auto failed =
      finish(Check{"/a"}, good(wire::MultiReply{{part_failed(Err::kNoNode)}}), machine());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kNoNode);
  EXPECT_FALSE(finish(Check{"/a"}, good(wire::MultiReply{}), machine()));
}

TEST_F(OperationsTest, AMultiReadHasAResultForEachPart) {
  const MultiRead read{{Get{"/a"}, Children{"/b"}, Get{"/c"}, Get{"/d"}, Children{"/e"}}};

  const auto result =
      finish(read,
             good(wire::MultiReply{{part_ok(Op::kGetData), part_ok(Op::kGetChildren),
                                    part_failed(Err::kNoNode), part_ok(Op::kGetChildren),
                                    part_ok(Op::kGetData)}}),
             machine());

  ASSERT_TRUE(result);
  EXPECT_EQ(std::get<Node>(*(*result)[0]).data, "data");
  EXPECT_THAT(std::get<1>(*(*result)[1]), ElementsAre("x"));
  EXPECT_EQ((*result)[2].error().code(), Code::kNoNode);
  EXPECT_EQ((*result)[3].error().code(), Code::kServerError) << "a list for data";
  EXPECT_EQ((*result)[4].error().code(), Code::kServerError) << "data for a list";
}

TEST_F(OperationsTest, ASecretIsInNoMessage) {
  const auto result =
      finish(Authenticate{"digest", "user:hunter2"}, bad(Code::kAuthFailed), machine());

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message().find("hunter2"), std::string::npos);
  EXPECT_EQ(prepare(Authenticate{"digest", "user:hunter2"}, machine())->call.frame, "");
}

}  // namespace
}  // namespace latchkey::session
