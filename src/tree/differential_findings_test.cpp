#include <gtest/gtest.h>

#include "tree/service_rig.hpp"

// What the differential test found: each was once answered otherwise than Apache answers it.
namespace latchkey::tree {
namespace {

using wire::CreateMode;
using wire::Err;
using wire::Op;
using Client = test::ServiceRig::Client;
using Message = test::ServiceRig::Message;

AclList unreadable() {
  AclList list = *open_list();
  list[0].permissions = kAllPermissions & ~kRead;
  return list;
}

class DifferentialFindings : public testing::Test, public test::ServiceRig {
 protected:
  Client& client = open();

  Message create(const std::string& path, const AclList& acl = *open_list()) {
    return call(client, Op::kCreate, wire::Create{path, "", acl, CreateMode::kPersistent});
  }
  std::int64_t zxid() { return call(client, Op::kPing, wire::Empty{}).header.zxid; }
};

TEST_F(DifferentialFindings, OnlyAWholeReconfigSpendsAZxid) {
  const std::int64_t before = zxid();

  EXPECT_EQ(call(client, Op::kReconfig, wire::Empty{}).header.err, Err::kMarshallingError);
  EXPECT_EQ(zxid(), before);
  const Message whole = call(client, Op::kReconfig, wire::CreateReply{std::string(16, '\0')});
  EXPECT_EQ(whole.header.err, Err::kMarshallingError);
  std::string body(20, '\0');
  std::string frame;
  wire::Writer{frame}(std::int32_t{28}, wire::RequestHeader{7, Op::kReconfig});
  feed(client, frame + body);
  EXPECT_EQ(take(client).header.err, Err::kReconfigDisabled);
  EXPECT_EQ(zxid(), before + 1);
}

TEST_F(DifferentialFindings, AnUnknownOperationAndAMalformedSyncSpendNoZxid) {
  Client& other = open();
  const std::int64_t before = zxid();

  EXPECT_EQ(call(client, Op::kSync, wire::Empty{}).header.err, Err::kMarshallingError);
  const Message refused = call(other, static_cast<Op>(99), wire::Empty{});

  EXPECT_EQ(refused.header.err, Err::kUnimplemented);
  EXPECT_EQ(refused.header.zxid, -1);
  EXPECT_EQ(zxid(), before);
}

TEST_F(DifferentialFindings, OnlySyncAndGetEphemeralsDoWithoutAPath) {
  const std::int32_t null = -1;
  const auto ask_without_path = [&](Op op) {
    std::string body;
    wire::Writer{body}(null, std::int32_t{0});
    std::string frame;
    wire::Writer{frame}(static_cast<std::int32_t>(8 + body.size()), wire::RequestHeader{7, op});
    feed(client, frame + body);
    sync();
    return take(client).header.err;
  };

  for (const Op op : {Op::kSync, Op::kGetEphemerals}) EXPECT_EQ(ask_without_path(op), Err::kOk);
  for (const Op op : {Op::kGetAcl, Op::kGetAllChildrenNumber, Op::kGetData, Op::kDelete}) {
    EXPECT_EQ(ask_without_path(op), Err::kMarshallingError) << name(op);
  }
}

TEST_F(DifferentialFindings, AWatcherTypeThatIsNoneIsMalformed) {
  const wire::PathWatcherType odd{"/", static_cast<wire::WatcherType>(4)};

  EXPECT_EQ(call(client, Op::kRemoveWatches, odd).header.err, Err::kMarshallingError);
  EXPECT_EQ(call(client, Op::kCheckWatches, odd).header.err, Err::kMarshallingError);
}

TEST_F(DifferentialFindings, NoPathAtAllIsMalformedAndNotTheRoot) {
  std::string frame;
  wire::Writer{frame}(std::int32_t{13}, wire::RequestHeader{7, Op::kGetData}, wire::Buffer{},
                      false);
  feed(client, frame);
  EXPECT_EQ(take(client).header.err, Err::kMarshallingError);
}

TEST_F(DifferentialFindings, H92_NobodyHearsOfANodeThatItMayNotRead) {
  call(client, Op::kExists, wire::PathWatch{"/secret", true});
  call(client, Op::kAddWatch, wire::AddWatch{"/secret", wire::AddWatchMode::kPersistent});
  call(client, Op::kAddWatch, wire::AddWatch{"/", wire::AddWatchMode::kPersistentRecursive});

  EXPECT_FALSE(create("/secret", unreadable()).is_notice());
  EXPECT_EQ(create("/secret/open").as<wire::WatcherEvent>().path, "/secret/open");
}

TEST_F(DifferentialFindings, AOneShotWatchIsSpentByWhatItsOwnerMayNotHear) {
  call(client, Op::kExists, wire::PathWatch{"/a", true});
  create("/a", unreadable());
  call(client, Op::kDelete, wire::PathVersion{"/a", -1});

  EXPECT_FALSE(create("/a").is_notice());
}

TEST_F(DifferentialFindings, TheEmptyPathCountsTheRootToo) {
  const auto count = [&](const std::string& path) {
    return call(client, Op::kGetAllChildrenNumber, wire::PathOnly{path})
        .as<wire::ChildrenNumberReply>()
        .count;
  };

  EXPECT_EQ(count("/"), 3);
  EXPECT_EQ(count(""), 4);
}

TEST_F(DifferentialFindings, InAMultiTheModeSaysWhatACreateMakes) {
  const wire::CreateTtl plain{"/a", "", *open_list(), CreateMode::kPersistent, 1'000};
  const wire::Create ttl{"/b", "", *open_list(), CreateMode::kTtl};
  const wire::PathVersion missing{"/missing", -1};

  EXPECT_EQ(call(client, Op::kCreateTtl, plain).header.err, Err::kBadArguments);
  const auto made = call(client, Op::kMulti, wire::Multi{{{Op::kCreateTtl, plain}}});
  EXPECT_EQ(made.as<wire::MultiReply>().results.at(0).op, Op::kCreate);

  const wire::Multi stumbles{{{Op::kCreate, ttl}, {Op::kDelete, missing}}};
  EXPECT_EQ(call(client, Op::kMulti, stumbles).header.err, Err::kMarshallingError);
  const wire::Multi fails_first{{{Op::kDelete, missing}, {Op::kCreate, ttl}}};
  EXPECT_EQ(call(client, Op::kMulti, fails_first).header.err, Err::kOk);
}

}  // namespace
}  // namespace latchkey::tree
