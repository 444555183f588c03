#include "wire/messages.hpp"

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "wire/frame.hpp"
#include "wire/test_bytes.hpp"

namespace latchkey::wire {
namespace {

const std::string kPath = "/locks/k\xc3\xa4se";

Buffer password() { return bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"); }

WireStat stat() {
  return {{0x100000001, 0x100000002, 1700000000123, 1700000000456, 3, 4, 5, 0x7766554433221100, 6,
           7, 0x100000003}};
}

WireAcl anyone() { return {{kAllPermissions, "world", "anyone"}}; }
WireAcl bob() { return {{kRead | kCreate, "digest", "bob:xyz="}}; }

Multi multi() {
  return {{
      {Op::kCheck, PathVersion{"/a", 4}},
      {Op::kCreate, Create{"/b", "v", {anyone()}, CreateMode::kPersistentSequential}},
      {Op::kCreateTtl, CreateTtl{"/t", std::nullopt, {anyone()}, CreateMode::kTtl, 5000}},
      {Op::kCreateContainer, Create{"/k", "", {anyone()}, CreateMode::kContainer}},
      {Op::kSetData, SetData{"/a", "w", -1}},
      {Op::kDelete, PathVersion{"/c", -1}},
  }};
}

Multi multi_read() {
  return {{
      {Op::kGetData, PathWatch{"/a", false}},
      {Op::kGetChildren, PathWatch{"/b", false}},
  }};
}

MultiReply multi_reply() {
  return {{
      {Op::kCheck, Empty{}},
      {Op::kCreate, CreateReply{"/b0000000002"}},
      {Op::kCreate2, Create2Reply{"/t", stat()}},
      {Op::kSetData, StatReply{stat()}},
      {Op::kDelete, Empty{}},
  }};
}

MultiReply failed_multi_reply() {
  return {{
      {Op::kError, ErrorReply{Err::kOk}},
      {Op::kError, ErrorReply{Err::kNodeExists}},
      {Op::kError, ErrorReply{Err::kRuntimeInconsistency}},
  }};
}

MultiReply multi_read_reply() {
  return {{
      {Op::kGetData, GetDataReply{"d", stat()}},
      {Op::kGetChildren, ChildrenReply{{"x"}}},
      {Op::kError, ErrorReply{Err::kNoNode}},
  }};
}

/// A message with its type forgotten: what we write for it, what Apache's classes write for the
/// same values, and a function that decodes bytes as this type and encodes the result again.
struct Specimen {
  std::string name;
  std::string ours;
  std::string golden;
  std::function<std::optional<std::string>(std::string_view)> recode;

  friend std::ostream& operator<<(std::ostream& out, const Specimen& self) {
    return out << self.name;
  }
};

template <class Message>
Specimen specimen(std::string name, const Message& message, std::string_view golden) {
  return {std::move(name), encoded(message), bytes(golden),
          [](std::string_view input) -> std::optional<std::string> {
            const std::optional<Message> read = decode<Message>(input);
            if (!read) return std::nullopt;
            return encoded(*read);
          }};
}

const std::string kStatHex =
    "000000010000000100000001000000020000018bcfe5687b0000018bcfe569c80000000300000004"
    "00000005776655443322110000000006000000070000000100000003";

/// Headers and shared values count as requests here.
std::vector<Specimen> requests() {
  return {
      specimen("RequestHeader", RequestHeader{7, Op::kMulti}, "000000070000000e"),
      specimen("ReplyHeader", ReplyHeader{9, 0x1122334455667788, Err::kOk},
               "00000009112233445566778800000000"),
      specimen("ReplyHeaderWithError", ReplyHeader{-1, -1, Err::kNoNode},
               "ffffffffffffffffffffffffffffff9b"),
      specimen("ConnectRequest",
               ConnectRequest{0, 0x100000009, 30000, 0x1020304050607080, password()},
               "00000000000000010000000900007530102030405060708000000010f0f1f2f3f4f5f6f7f8f9fafb"
               "fcfdfeff"),
      specimen("ConnectRequestWithoutPassword", ConnectRequest{},
               "000000000000000000000000000000000000000000000000ffffffff"),
      specimen("ConnectResponse", ConnectResponse{0, 4000, 0x1020304050607080, password()},
               "0000000000000fa0102030405060708000000010f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"),
      specimen("AuthPacket", AuthPacket{0, "digest", "bob:secret"},
               "00000000000000066469676573740000000a626f623a736563726574"),
      specimen("WatcherEvent", WatcherEvent{EventType::kDeleted, 3, kPath},
               "00000002000000030000000c2f6c6f636b732f6bc3a47365"),
      specimen("Stat", stat(), kStatHex),
      specimen("Acl", bob(), "000000050000000664696765737400000008626f623a78797a3d"),
      specimen("ClientInfo", ClientInfo{"ip", "127.0.0.1"},
               "000000026970000000093132372e302e302e31"),
      specimen("Create",
               Create{kPath, "value", {anyone(), bob()}, CreateMode::kEphemeralSequential},
               "0000000c2f6c6f636b732f6bc3a473650000000576616c7565000000020000001f00000005776f72"
               "6c6400000006616e796f6e65000000050000000664696765737400000008626f623a78797a3d0000"
               "0003"),
      specimen("CreateWithEmptyData", Create{"/a", "", {}, CreateMode::kPersistent},
               "000000022f61000000000000000000000000"),
      specimen("CreateTtl", CreateTtl{kPath, "v", {anyone()}, CreateMode::kTtlSequential, 86400000},
               "0000000c2f6c6f636b732f6bc3a473650000000176000000010000001f00000005776f726c640000"
               "0006616e796f6e65000000060000000005265c00"),
      specimen("PathVersion", PathVersion{kPath, -1}, "0000000c2f6c6f636b732f6bc3a47365ffffffff"),
      specimen("PathWatch", PathWatch{kPath, true}, "0000000c2f6c6f636b732f6bc3a4736501"),
      specimen("PathOnly", PathOnly{kPath}, "0000000c2f6c6f636b732f6bc3a47365"),
      specimen("SetData", SetData{kPath, "value", 17},
               "0000000c2f6c6f636b732f6bc3a473650000000576616c756500000011"),
      specimen("SetAcl", SetAcl{kPath, {anyone(), bob()}, 2},
               "0000000c2f6c6f636b732f6bc3a47365000000020000001f00000005776f726c6400000006616e79"
               "6f6e65000000050000000664696765737400000008626f623a78797a3d00000002"),
      specimen("AddWatch", AddWatch{kPath, AddWatchMode::kPersistentRecursive},
               "0000000c2f6c6f636b732f6bc3a4736500000001"),
      specimen("PathWatcherType", PathWatcherType{kPath, WatcherType::kData},
               "0000000c2f6c6f636b732f6bc3a4736500000002"),
      specimen("SetWatches", SetWatches{0x100000009, {"/a", "/b"}, {"/c"}, {}},
               "000000010000000900000002000000022f61000000022f6200000001000000022f6300000000"),
      specimen("SetWatches2",
               SetWatches2{0x100000009, {"/a", "/b"}, {"/c"}, {}, {"/d"}, {"/e", "/f"}},
               "000000010000000900000002000000022f61000000022f6200000001000000022f63000000000000"
               "0001000000022f6400000002000000022f65000000022f66"),
      specimen("Multi", multi(),
               "0000000d00ffffffff000000022f61000000040000000100ffffffff000000022f62000000017600"
               "0000010000001f00000005776f726c6400000006616e796f6e65000000020000001500ffffffff00"
               "0000022f74ffffffff000000010000001f00000005776f726c6400000006616e796f6e6500000005"
               "00000000000013880000001300ffffffff000000022f6b00000000000000010000001f0000000577"
               "6f726c6400000006616e796f6e65000000040000000500ffffffff000000022f610000000177ffff"
               "ffff0000000200ffffffff000000022f63ffffffffffffffff01ffffffff"),
      specimen("MultiWithNoOps", Multi{}, "ffffffff01ffffffff"),
      specimen("MultiRead", multi_read(),
               "0000000400ffffffff000000022f61000000000800ffffffff000000022f6200ffffffff01ffffff"
               "ff"),
  };
}

std::vector<Specimen> replies() {
  return {
      specimen("CreateReply", CreateReply{"/b0000000001"}, "0000000c2f6230303030303030303031"),
      specimen("Create2Reply", Create2Reply{"/b0000000001", stat()},
               "0000000c2f6230303030303030303031" + kStatHex),
      specimen("StatReply", StatReply{stat()}, kStatHex),
      specimen("GetDataReply", GetDataReply{"value", stat()}, "0000000576616c7565" + kStatHex),
      specimen("GetDataReplyWithNull", GetDataReply{std::nullopt, stat()}, "ffffffff" + kStatHex),
      specimen("GetDataReplyWithEmpty", GetDataReply{"", stat()}, "00000000" + kStatHex),
      specimen("GetAclReply", GetAclReply{{anyone(), bob()}, stat()},
               "000000020000001f00000005776f726c6400000006616e796f6e6500000005000000066469676573"
               "7400000008626f623a78797a3d" +
                   kStatHex),
      specimen("ChildrenReply", ChildrenReply{{"x", "yy", ""}},
               "00000003000000017800000002797900000000"),
      specimen("Children2Reply", Children2Reply{{"x", "yy", ""}, stat()},
               "00000003000000017800000002797900000000" + kStatHex),
      specimen("SyncReply", SyncReply{kPath}, "0000000c2f6c6f636b732f6bc3a47365"),
      specimen("EphemeralsReply", EphemeralsReply{{"/a/x", "/a/y"}},
               "00000002000000042f612f78000000042f612f79"),
      specimen("ChildrenNumberReply", ChildrenNumberReply{258}, "00000102"),
      specimen("WhoAmIReply", WhoAmIReply{{{"ip", "127.0.0.1"}, {"digest", "bob"}}},
               "00000002000000026970000000093132372e302e302e310000000664696765737400000003626f62"),
      specimen("ErrorReply", ErrorReply{Err::kNodeExists}, "ffffff92"),
      specimen("MultiReply", multi_reply(),
               "0000000d00000000000000000100000000000000000c2f62303030303030303030320000000f0000"
               "000000000000022f74" +
                   kStatHex + "000000050000000000" + kStatHex +
                   "000000020000000000ffffffff01ffffffff"),
      specimen("MultiReplyOfAFailure", failed_multi_reply(),
               "ffffffff000000000000000000ffffffff00ffffff92ffffff92ffffffff00fffffffefffffffeff"
               "ffffff01ffffffff"),
      specimen(
          "MultiReadReply", multi_read_reply(),
          "0000000400000000000000000164" + kStatHex +
              "000000080000000000000000010000000178ffffffff00ffffff9bffffff9bffffffff01ffffffff"),
  };
}

std::vector<Specimen> specimens() {
  std::vector<Specimen> all = requests();
  for (Specimen& reply : replies()) all.push_back(std::move(reply));
  return all;
}

class EveryMessage : public testing::TestWithParam<Specimen> {};

INSTANTIATE_TEST_SUITE_P(Wire, EveryMessage, testing::ValuesIn(specimens()),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(EveryMessage, IsWrittenAsApacheWritesIt) {
  EXPECT_EQ(hex(GetParam().ours), hex(GetParam().golden));
}

TEST_P(EveryMessage, ComesBackAsItWas) {
  const auto again = GetParam().recode(GetParam().golden);

  ASSERT_TRUE(again);
  EXPECT_EQ(hex(*again), hex(GetParam().golden));
}

TEST_P(EveryMessage, H65_IsRefusedWhenItIsCutShortAnywhere) {
  const std::string& whole = GetParam().golden;

  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A copy of its own, so that a sanitizer sees a read past the end.
    const std::string prefix = whole.substr(0, size);
    EXPECT_FALSE(GetParam().recode(prefix)) << size << " of " << whole.size();
  }
}

TEST_P(EveryMessage, H65_IsRefusedWithBytesLeftOver) {
  EXPECT_FALSE(GetParam().recode(GetParam().golden + '\0'));
  EXPECT_FALSE(GetParam().recode(GetParam().golden + GetParam().golden));
}

// Whatever stands in the place of a length, a count or a number, the message is either refused or
// understood so well that writing it again settles on one form of the same size.
TEST_P(EveryMessage, H89_SurvivesAnyFourBytesBeingReplaced) {
  for (const char* word :
       {"ffffffff", "fffffffe", "80000000", "7fffffff", "00000000", "00000100"}) {
    for (std::size_t at = 0; at + 4 <= GetParam().golden.size(); ++at) {
      std::string damaged = GetParam().golden;
      damaged.replace(at, 4, bytes(word));

      const auto once = GetParam().recode(damaged);

      if (!once) continue;
      EXPECT_EQ(once->size(), damaged.size()) << word << " at " << at;
      EXPECT_EQ(GetParam().recode(*once), once) << word << " at " << at;
    }
  }
}

TEST(EmptyMessage, TakesNoBytes) {
  EXPECT_EQ(encoded(Empty{}), "");
  EXPECT_TRUE(decode<Empty>(""));
  EXPECT_FALSE(decode<Empty>("x"));
}

TEST(Create, KeepsNullDataApartFromEmptyData) {
  const auto null = decode<Create>(encoded(Create{"/a", std::nullopt, {anyone()}, {}}));
  const auto empty = decode<Create>(encoded(Create{"/a", "", {anyone()}, {}}));

  ASSERT_TRUE(null && empty);
  EXPECT_EQ(null->data, std::nullopt);
  EXPECT_EQ(empty->data, "");
}

// Java writes a null list for ACLs that were never given; we read it as none.
TEST(Create, ReadsANullAclAsNone) {
  const auto create = decode<Create>(bytes("00000002 2f61 ffffffff ffffffff 00000000"));

  ASSERT_TRUE(create);
  EXPECT_EQ(create->path, "/a");
  EXPECT_EQ(create->data, std::nullopt);
  EXPECT_TRUE(create->acl.empty());
}

TEST(Create, H89_RefusesMoreAclsThanTheFrameCanHold) {
  for (const char* count : {"7fffffff", "00000002", "fffffffe", "80000000"}) {
    EXPECT_FALSE(decode<Create>(bytes("00000002 2f61 ffffffff") + bytes(count) + encoded(anyone()) +
                                bytes("00000000")))
        << count;
  }
}

TEST(SetWatches, H89_RefusesMorePathsThanTheFrameCanHold) {
  for (const char* count : {"7fffffff", "00000004", "fffffffe"}) {
    EXPECT_FALSE(decode<SetWatches>(bytes("0000000100000009") + bytes(count) +
                                    bytes("00000000 00000000 00000000")))
        << count;
  }
}

TEST(ReplyHeader, H65_KeepsAnErrorItHasNoNameFor) {
  const auto header = decode<ReplyHeader>(bytes("00000001 0000000000000002 fffffc18"));

  ASSERT_TRUE(header);
  EXPECT_EQ(header->err, Err{-1000});
}

TEST(WatcherEvent, H65_KeepsATypeItHasNoNameFor) {
  const auto event = decode<WatcherEvent>(bytes("0000002a 00000003 00000002 2f61"));

  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, EventType{42});
  EXPECT_EQ(event->path, "/a");
}

// Recorded from Apache 3.8.0: unlike the other watch operations, addWatch is answered with a body.
TEST(ErrorReply, IsTheAnswerToAddWatch) {
  const auto reply = decode<ErrorReply>(bytes("00000000"));

  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->err, Err::kOk);
}

TEST(Multi, KeepsOpsAndBodiesTogether) {
  const auto read = decode<Multi>(encoded(multi()));

  ASSERT_TRUE(read);
  ASSERT_EQ(read->ops.size(), 6U);
  EXPECT_EQ(read->ops[0].op, Op::kCheck);
  EXPECT_EQ(std::get<PathVersion>(read->ops[0].body).version, 4);
  EXPECT_EQ(read->ops[1].op, Op::kCreate);
  EXPECT_EQ(std::get<Create>(read->ops[1].body).mode, CreateMode::kPersistentSequential);
  EXPECT_EQ(read->ops[2].op, Op::kCreateTtl);
  EXPECT_EQ(std::get<CreateTtl>(read->ops[2].body).ttl_ms, 5000);
  EXPECT_EQ(std::get<CreateTtl>(read->ops[2].body).data, std::nullopt);
  EXPECT_EQ(read->ops[3].op, Op::kCreateContainer);
  EXPECT_EQ(std::get<Create>(read->ops[3].body).data, "");
  EXPECT_EQ(std::get<SetData>(read->ops[4].body).data, "w");
  EXPECT_EQ(read->ops[5].op, Op::kDelete);
}

TEST(Multi, ReadsCreate2AsACreate) {
  const Multi sent{{{Op::kCreate2, Create{"/a", "v", {anyone()}, CreateMode::kEphemeral}}}};

  const auto read = decode<Multi>(encoded(sent));

  ASSERT_TRUE(read);
  ASSERT_EQ(read->ops.size(), 1U);
  EXPECT_EQ(read->ops[0].op, Op::kCreate2);
  EXPECT_EQ(std::get<Create>(read->ops[0].body).mode, CreateMode::kEphemeral);
}

const std::string kDone = bytes("ffffffff 01 ffffffff");
const std::string kCheckRoot = bytes("0000000d 00 ffffffff 00000001 2f ffffffff");

TEST(Multi, H89_RefusesAnOpThatHasNoPlaceInOne) {
  ASSERT_TRUE(decode<Multi>(kCheckRoot + kDone));

  for (const Op op :
       {Op::kNotification, Op::kExists, Op::kGetAcl, Op::kSetAcl, Op::kSync, Op::kPing,
        Op::kGetChildren2, Op::kMulti, Op::kMultiRead, Op::kReconfig, Op::kAuth, Op::kSetWatches,
        Op::kDeleteContainer, Op::kCloseSession, Op::kCreateSession, Op::kError, Op{77}, Op{-77}}) {
    const std::string part = encoded(op, false, std::int32_t{-1}, PathVersion{"/", -1});
    EXPECT_FALSE(decode<Multi>(part + kDone)) << static_cast<std::int32_t>(op);
    EXPECT_FALSE(decode<Multi>(kCheckRoot + part + kDone)) << static_cast<std::int32_t>(op);
  }
}

TEST(Multi, H89_RefusesWhatFollowsTheDoneMarker) {
  EXPECT_FALSE(decode<Multi>(kDone + kDone));
  EXPECT_FALSE(decode<Multi>(kDone + kCheckRoot + kDone));
  EXPECT_FALSE(decode<Multi>(kCheckRoot + kDone + kDone));
}

TEST(Multi, H89_RefusesToEndWithoutTheDoneMarker) {
  EXPECT_FALSE(decode<Multi>(""));
  EXPECT_FALSE(decode<Multi>(kCheckRoot));
}

// Apache looks at nothing else either: the marker counts although its header names an op.
TEST(Multi, EndsAtTheFirstDoneMarkerWhateverItsOpAndError) {
  const auto read = decode<Multi>(kCheckRoot + bytes("0000000d 01 00000005"));

  ASSERT_TRUE(read);
  EXPECT_EQ(read->ops.size(), 1U);
}

TEST(MultiReply, H65_RefusesAResultOfAnOpThatHasNone) {
  for (const Op op : {Op::kNotification, Op::kExists, Op::kCreateContainer, Op::kCreateTtl,
                      Op::kMulti, Op::kCloseSession, Op{77}}) {
    const std::string part = encoded(op, false, std::int32_t{0}, Create2Reply{"/a", stat()});
    EXPECT_FALSE(decode<MultiReply>(part + kDone)) << static_cast<std::int32_t>(op);
  }
}

TEST(MultiReply, H65_RefusesWhatFollowsTheDoneMarker) {
  EXPECT_TRUE(decode<MultiReply>(kDone));
  EXPECT_FALSE(decode<MultiReply>(kDone + kDone));
  EXPECT_FALSE(decode<MultiReply>(""));
}

TEST(MultiReply, AnswersContainersAndTtlNodesAsCreate2LikeApache) {
  const std::string expected = encoded(MultiReply{{{Op::kCreate2, Create2Reply{"/a", stat()}}}});

  for (const Op op : {Op::kCreateContainer, Op::kCreateTtl}) {
    EXPECT_EQ(encoded(MultiReply{{{op, Create2Reply{"/a", stat()}}}}), expected);
  }
}

TEST(CreateOf, IsWrittenAsTheCreateItStandsFor) {
  const std::string path = "/locks/_c_1-lock-";
  const std::string data = "host 4711";
  const std::vector<Acl> acl{{kAllPermissions, "world", "anyone"}, {1, "digest", "who:what"}};
  Create whole{path, data, {}, CreateMode::kEphemeralSequential};
  for (const Acl& one : acl) whole.acl.push_back({one.permissions, one.scheme, one.id});

  std::string bytes;
  Writer writer(bytes);
  writer(CreateOf{path, data, acl, CreateMode::kEphemeralSequential});

  EXPECT_EQ(bytes, encoded(whole));
}

// Recorded from Apache 3.8.0: one create2, asked for inside a multi.
TEST(MultiReply, ReadsApachesAnswerToCreate2WithoutAStat) {
  const auto reply =
      decode<MultiReply>(bytes("00000001 00 00000000 00000005 2f6d6d3135 ffffffff01ffffffff"));

  ASSERT_TRUE(reply);
  ASSERT_EQ(reply->results.size(), 1U);
  EXPECT_EQ(reply->results[0].op, Op::kCreate);
  EXPECT_EQ(std::get<CreateReply>(reply->results[0].body).path, "/mm15");
}

TEST(MultiReply, KeepsEveryErrorOfAFailure) {
  const auto reply = decode<MultiReply>(encoded(failed_multi_reply()));

  ASSERT_TRUE(reply);
  ASSERT_EQ(reply->results.size(), 3U);
  EXPECT_EQ(std::get<ErrorReply>(reply->results[0].body).err, Err::kOk);
  EXPECT_EQ(std::get<ErrorReply>(reply->results[1].body).err, Err::kNodeExists);
  EXPECT_EQ(std::get<ErrorReply>(reply->results[2].body).err, Err::kRuntimeInconsistency);
}

}  // namespace
}  // namespace latchkey::wire
