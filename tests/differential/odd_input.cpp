#include "differential/odd_input.hpp"

#include "latchkey/node.hpp"

namespace latchkey::differential {
namespace {

using wire::Op;

wire::WireAcl entry(std::int32_t permissions, std::string scheme, std::string id) {
  wire::WireAcl acl;
  acl.permissions = permissions;
  acl.scheme = std::move(scheme);
  acl.id = std::move(id);
  return acl;
}

const std::string kFirst = "u1:fpT/y03U+EjItKZOSLGvjnJlyng=";
const std::string kSecond = "u2:o9NxcCGDPOlcV7JVhmKHOf5ctVE=";

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

}  // namespace

const std::vector<std::string> kSystemPaths = {
    "/", "", "/zookeeper", "/zookeeper/quota", "/zookeeper/config",
};

const std::vector<std::string> kOddPaths = {
    "a",
    "/a/",
    "//",
    "/a//b",
    "/a/./b",
    "/a/../b",
    "/a/..",
    "/.",
    "/a/...",
    "/a/b c",
    "/a/\xC3\xA9",  // U+00E9, allowed.
    "/a/\x01",
    "/a/\x1F",
    "/a/\x7F",
    "/a/\xC2\x9F",          // U+009F.
    "/a/\xEE\x80\x80",      // U+E000.
    "/a/\xEF\xBF\xB0",      // U+FFF0.
    "/a/\xF0\x9F\x98\x80",  // Outside the basic plane.
    "/a/\xC2\xA0",          // U+00A0, allowed.
    std::string("/a/\0b", 5),
    "/zookeeper/a",
    "/nowhere/a",
};

const AclChoices kOpenAcls = {{entry(31, "world", "anyone")}};

const AclChoices kReadableAcls = {
    {entry(1, "world", "anyone"), entry(31, "digest", kFirst)},
    {entry(15, "world", "anyone")},
    {entry(31, "world", "anyone"), entry(31, "world", "anyone")},
    {entry(1, "world", "anyone"), entry(30, "ip", "127.0.0.1")},
    {entry(31, "world", "anyone"), entry(3, "digest", kSecond)},
};

const AclChoices kPrivateAcls = {
    {entry(31, "digest", kFirst)},
    {entry(31, "digest", kFirst), entry(1, "digest", kSecond)},
    {entry(1, "world", "anyone"), entry(31, "digest", kSecond)},
    {entry(31, "auth", "")},
    {entry(17, "auth", "whatever"), entry(31, "world", "anyone")},
    {entry(31, "ip", "127.0.0.1")},
    {entry(31, "ip", "127.0.0.0/8")},
    {entry(31, "ip", "10.0.0.0/8"), entry(19, "world", "anyone")},
    {entry(2, "world", "anyone"), entry(12, "digest", kFirst)},
    {entry(16, "world", "anyone")},
    {entry(30, "world", "anyone")},
    {entry(27, "world", "anyone")},
    {entry(23, "world", "anyone")},
};

const AclChoices kBadAcls = {
    {},
    {entry(31, "nobody", "knows")},
    {entry(31, "digest", "nocolon")},
    {entry(31, "digest", "a:b:c")},
    {entry(31, "world", "someone")},
    {entry(31, "ip", "here")},
    {entry(31, "ip", "127.0.0.1/99")},
    {entry(31, "world", "anyone"), entry(1, "x", "y")},
    {entry(31, "super", "")},
};

const std::vector<std::string> kQuotaLimits = {
    "count=5,bytes=1000",
    "count=-1,bytes=10",
    "count=100,bytes=-1",
    "count=3,bytes=20=;byteHardLimit=30;countHardLimit=4",
};

const std::vector<wire::AuthPacket> kOddAuths = {
    {0, "nobody", "knows"},
    {0, "world", "anyone"},
};

const std::vector<std::string> kBadFrames = {
    bytes({0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1}),
    bytes({0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1}),
    bytes({0, 0x10, 0, 0, 0, 0, 0, 1}),
    bytes({0, 0, 0, 4, 0, 0, 0, 1}),
    bytes({0, 0, 0, 0}),
};

const std::vector<std::string> kGarbage = {
    "",
    bytes({0, 0}),
    bytes({0, 0, 0, 9, '/', 'a'}),
    bytes({0xFF, 0xFF, 0xFF, 0xFF, 0}),  // No path at all, which is not the empty one.
    bytes({0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}),
    bytes({0x7F, 0xFF, 0xFF, 0xFF, '/', 'a'}),
    bytes({0xFF, 0xFF, 0xFF, 0xFE, '/', 'a'}),
    bytes({0, 0, 0, 2, '/', 'a', 0, 0}),
};

const std::string kReconfig(20, '\0');

const std::vector<Op> kGarbageOps = {
    Op::kCreate,
    Op::kCreate2,
    Op::kCreateContainer,
    Op::kCreateTtl,
    Op::kDelete,
    Op::kExists,
    Op::kGetData,
    Op::kSetData,
    Op::kGetAcl,
    Op::kSetAcl,
    Op::kGetChildren,
    Op::kGetChildren2,
    Op::kSync,
    Op::kMulti,
    Op::kMultiRead,
    Op::kCheckWatches,
    Op::kRemoveWatches,
    Op::kSetWatches,
    Op::kSetWatches2,
    Op::kAddWatch,
    Op::kGetEphemerals,
    Op::kGetAllChildrenNumber,
};

}  // namespace latchkey::differential
