#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "latchkey/node.hpp"
#include "wire/jute.hpp"

/// ZooKeeper 3.8's client protocol as plain structs, used by the client and by the server. Each
/// struct lists its fields in wire order; see jute.hpp for how the list becomes bytes.
namespace latchkey::wire {

/// Request types, RequestHeader::op.
enum class Op : std::int32_t {
  kNotification = 0,
  kCreate = 1,
  kDelete = 2,
  kExists = 3,
  kGetData = 4,
  kSetData = 5,
  kGetAcl = 6,
  kSetAcl = 7,
  kGetChildren = 8,
  kSync = 9,
  kPing = 11,
  kGetChildren2 = 12,
  kCheck = 13,
  kMulti = 14,
  kCreate2 = 15,
  kReconfig = 16,
  kCheckWatches = 17,
  kRemoveWatches = 18,
  kCreateContainer = 19,
  kDeleteContainer = 20,
  kCreateTtl = 21,
  kMultiRead = 22,
  kAuth = 100,
  kSetWatches = 101,
  kSasl = 102,
  kGetEphemerals = 103,
  kGetAllChildrenNumber = 104,
  kSetWatches2 = 105,
  kAddWatch = 106,
  kWhoAmI = 107,
  kCreateSession = -10,
  kCloseSession = -11,
  kError = -1,
};

/// "getData", for messages and metrics; "unknown" for a number that is not listed here.
[[nodiscard]] std::string_view name(Op op) noexcept;

/// xids with a meaning of their own; ordinary requests count upwards from 1.
inline constexpr std::int32_t kNotificationXid = -1;
inline constexpr std::int32_t kPingXid = -2;
inline constexpr std::int32_t kAuthXid = -4;
inline constexpr std::int32_t kSetWatchesXid = -8;

/// ReplyHeader::err as the server sends it. A number that is not listed here is still a valid
/// value of the type.
enum class Err : std::int32_t {
  kOk = 0,
  kSystemError = -1,
  kRuntimeInconsistency = -2,
  kDataInconsistency = -3,
  kConnectionLoss = -4,
  kMarshallingError = -5,
  kUnimplemented = -6,
  kOperationTimeout = -7,
  kBadArguments = -8,
  kNewConfigNoQuorum = -13,
  kReconfigInProgress = -14,
  kApiError = -100,
  kNoNode = -101,
  kNoAuth = -102,
  kBadVersion = -103,
  kNoChildrenForEphemerals = -108,
  kNodeExists = -110,
  kNotEmpty = -111,
  kSessionExpired = -112,
  kInvalidCallback = -113,
  kInvalidAcl = -114,
  kAuthFailed = -115,
  kSessionMoved = -118,
  kNotReadOnly = -119,
  kEphemeralOnLocalSession = -120,
  kNoWatcher = -121,
  kRequestTimeout = -122,
  kReconfigDisabled = -123,
  kSessionClosedRequireSasl = -124,
  kQuotaExceeded = -125,
  kThrottled = -127,
};

/// Create::flags.
enum class CreateMode : std::int32_t {
  kPersistent = 0,
  kEphemeral = 1,
  kPersistentSequential = 2,
  kEphemeralSequential = 3,
  kContainer = 4,
  kTtl = 5,
  kTtlSequential = 6,
};

/// WatcherEvent::type.
enum class EventType : std::int32_t {
  kNone = -1,
  kCreated = 1,
  kDeleted = 2,
  kDataChanged = 3,
  kChildrenChanged = 4,
  kDataWatchRemoved = 5,
  kChildWatchRemoved = 6,
  kPersistentWatchRemoved = 7,
};

/// AddWatch::mode.
enum class AddWatchMode : std::int32_t { kPersistent = 0, kPersistentRecursive = 1 };

/// CheckWatches::type and RemoveWatches::type.
enum class WatcherType : std::int32_t { kChildren = 1, kData = 2, kAny = 3 };

#define LATCHKEY_WIRE_FIELDS(...)                    \
  template <class Self, class Archive>               \
  static void fields(Self& self, Archive& archive) { \
    static_cast<void>(self);                         \
    static_cast<void>(archive);                      \
    __VA_ARGS__;                                     \
  }

// Headers and session set-up.

struct RequestHeader {
  std::int32_t xid = 0;
  Op op = Op::kNotification;
  LATCHKEY_WIRE_FIELDS(archive(self.xid, self.op))
};

struct ReplyHeader {
  std::int32_t xid = 0;
  std::int64_t zxid = 0;
  Err err = Err::kOk;
  LATCHKEY_WIRE_FIELDS(archive(self.xid, self.zxid, self.err))
};

/// The read-only byte that newer peers append is handled by the handshake functions of frame.hpp.
struct ConnectRequest {
  std::int32_t protocol_version = 0;
  std::int64_t last_zxid_seen = 0;
  std::int32_t timeout_ms = 0;
  std::int64_t session_id = 0;
  Buffer password;
  LATCHKEY_WIRE_FIELDS(archive(self.protocol_version, self.last_zxid_seen, self.timeout_ms,
                               self.session_id, self.password))
};

struct ConnectResponse {
  std::int32_t protocol_version = 0;
  std::int32_t timeout_ms = 0;
  std::int64_t session_id = 0;
  Buffer password;
  LATCHKEY_WIRE_FIELDS(archive(self.protocol_version, self.timeout_ms, self.session_id,
                               self.password))
};

struct AuthPacket {
  std::int32_t type = 0;
  std::string scheme;
  Buffer auth;
  LATCHKEY_WIRE_FIELDS(archive(self.type, self.scheme, self.auth))
};

struct WatcherEvent {
  EventType type = EventType::kNone;
  std::int32_t state = 0;
  std::string path;
  LATCHKEY_WIRE_FIELDS(archive(self.type, self.state, self.path))
};

// Values inside messages.

struct WireStat : Stat {
  LATCHKEY_WIRE_FIELDS(archive(self.czxid, self.mzxid, self.ctime_ms, self.mtime_ms, self.version,
                               self.cversion, self.aversion, self.ephemeral_owner, self.data_length,
                               self.num_children, self.pzxid))
};

struct WireAcl : Acl {
  LATCHKEY_WIRE_FIELDS(archive(self.permissions, self.scheme, self.id))
};

struct ClientInfo {
  std::string scheme;
  std::string user;
  LATCHKEY_WIRE_FIELDS(archive(self.scheme, self.user))
};

// Requests. Several ops share one shape: Create serves create, create2 and createContainer,
// PathWatch serves exists, getData, getChildren and getChildren2, PathOnly serves getACL, sync,
// getEphemerals and getAllChildrenNumber, PathVersion serves delete and check.

struct Empty {
  LATCHKEY_WIRE_FIELDS()
};

struct Create {
  std::string path;
  Buffer data;
  std::vector<WireAcl> acl;
  CreateMode mode = CreateMode::kPersistent;
  LATCHKEY_WIRE_FIELDS(archive(self.path, self.data, self.acl, self.mode))
};

/// As Create, for writing only, of parts that stay where they are.
struct CreateOf {
  const std::string& path;
  const std::string& data;
  const std::vector<Acl>& acl;
  CreateMode mode;
  static void fields(const CreateOf& self, Writer& writer) {
    writer(self.path, self.data, static_cast<std::int32_t>(self.acl.size()));
    for (const Acl& one : self.acl) writer(one.permissions, one.scheme, one.id);
    writer(self.mode);
  }
};

struct CreateTtl {
  std::string path;
  Buffer data;
  std::vector<WireAcl> acl;
  CreateMode mode = CreateMode::kTtl;
  std::int64_t ttl_ms = 0;
  LATCHKEY_WIRE_FIELDS(archive(self.path, self.data, self.acl, self.mode, self.ttl_ms))
};

struct PathVersion {
  std::string path;
  std::int32_t version = -1;
  LATCHKEY_WIRE_FIELDS(archive(self.path, self.version))
};

struct PathWatch {
  std::string path;
  bool watch = false;
  LATCHKEY_WIRE_FIELDS(archive(self.path, self.watch))
};

struct PathOnly {
  std::string path;
  LATCHKEY_WIRE_FIELDS(archive(self.path))
};

struct SetData {
  std::string path;
  Buffer data;
  std::int32_t version = -1;
  LATCHKEY_WIRE_FIELDS(archive(self.path, self.data, self.version))
};

struct SetAcl {
  std::string path;
  std::vector<WireAcl> acl;
  std::int32_t version = -1;
  LATCHKEY_WIRE_FIELDS(archive(self.path, self.acl, self.version))
};

struct AddWatch {
  std::string path;
  AddWatchMode mode = AddWatchMode::kPersistent;
  LATCHKEY_WIRE_FIELDS(archive(self.path, self.mode))
};

/// checkWatches and removeWatches.
struct PathWatcherType {
  std::string path;
  WatcherType type = WatcherType::kAny;
  LATCHKEY_WIRE_FIELDS(archive(self.path, self.type))
};

struct SetWatches {
  std::int64_t relative_zxid = 0;
  std::vector<std::string> data;
  std::vector<std::string> exists;
  std::vector<std::string> children;
  LATCHKEY_WIRE_FIELDS(archive(self.relative_zxid, self.data, self.exists, self.children))
};

struct SetWatches2 {
  std::int64_t relative_zxid = 0;
  std::vector<std::string> data;
  std::vector<std::string> exists;
  std::vector<std::string> children;
  std::vector<std::string> persistent;
  std::vector<std::string> persistent_recursive;
  LATCHKEY_WIRE_FIELDS(archive(self.relative_zxid, self.data, self.exists, self.children,
                               self.persistent, self.persistent_recursive))
};

/// One operation inside a multi or multi-read.
struct MultiOp {
  Op op = Op::kCheck;
  std::variant<PathVersion, Create, CreateTtl, SetData, PathWatch> body;
};

/// The body of multi and multiRead. Ends with a header whose `done` is set.
struct Multi {
  std::vector<MultiOp> ops;
  static void fields(const Multi& self, Writer& writer);
  static void fields(Multi& self, Reader& reader);
};

// Replies.

struct CreateReply {
  std::string path;
  LATCHKEY_WIRE_FIELDS(archive(self.path))
};

/// create2, createContainer and createTTL.
struct Create2Reply {
  std::string path;
  WireStat stat;
  LATCHKEY_WIRE_FIELDS(archive(self.path, self.stat))
};

/// exists, setData and setACL.
struct StatReply {
  WireStat stat;
  LATCHKEY_WIRE_FIELDS(archive(self.stat))
};

struct GetDataReply {
  Buffer data;
  WireStat stat;
  LATCHKEY_WIRE_FIELDS(archive(self.data, self.stat))
};

struct GetAclReply {
  std::vector<WireAcl> acl;
  WireStat stat;
  LATCHKEY_WIRE_FIELDS(archive(self.acl, self.stat))
};

/// getChildren.
struct ChildrenReply {
  std::vector<std::string> children;
  LATCHKEY_WIRE_FIELDS(archive(self.children))
};

struct Children2Reply {
  std::vector<std::string> children;
  WireStat stat;
  LATCHKEY_WIRE_FIELDS(archive(self.children, self.stat))
};

/// sync answers with the path it was asked for.
struct SyncReply {
  std::string path;
  LATCHKEY_WIRE_FIELDS(archive(self.path))
};

struct EphemeralsReply {
  std::vector<std::string> paths;
  LATCHKEY_WIRE_FIELDS(archive(self.paths))
};

struct ChildrenNumberReply {
  std::int32_t count = 0;
  LATCHKEY_WIRE_FIELDS(archive(self.count))
};

struct WhoAmIReply {
  std::vector<ClientInfo> clients;
  LATCHKEY_WIRE_FIELDS(archive(self.clients))
};

/// A failed part of a multi, and the whole answer to addWatch, which is 0 whenever it comes.
struct ErrorReply {
  Err err = Err::kOk;
  LATCHKEY_WIRE_FIELDS(archive(self.err))
};

/// One result of a multi or multi-read. A failure is Op::kError with an ErrorReply: in a failed
/// multi 0 before the culprit, its own code, -2 after it. A success carries the op of its request,
/// but a Create2Reply always travels as Op::kCreate2, for containers and TTL nodes too. Look at
/// `body`, not at what was asked: Apache 3.8.0 answers a create2 inside a multi as a plain create.
struct MultiResult {
  Op op = Op::kError;
  std::variant<ErrorReply, Empty, CreateReply, Create2Reply, StatReply, GetDataReply, ChildrenReply>
      body;
};

struct MultiReply {
  std::vector<MultiResult> results;
  static void fields(const MultiReply& self, Writer& writer);
  static void fields(MultiReply& self, Reader& reader);
};

#undef LATCHKEY_WIRE_FIELDS

}  // namespace latchkey::wire
