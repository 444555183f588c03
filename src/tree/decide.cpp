#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/last_slash.hpp"
#include "base/path_problem.hpp"
#include "tree/tree.hpp"
#include "tree/work.hpp"

// What may be done, in which order the reasons against it are found, and what it comes to. The
// order is Apache's, so that a request with two faults gets the same answer from both.
namespace latchkey::tree {
namespace {

using wire::Err;

/// Of one multi; a frame cannot bring as many, only many an `auth` becomes so much (H94).
constexpr std::size_t kMostAclBytes = std::size_t{4} << 20U;

constexpr std::string_view kSystemNodes[] = {"/", "/zookeeper", "/zookeeper/quota",
                                             "/zookeeper/config"};

bool is_valid_path(std::string_view path) { return base::path_problem(path).empty(); }

/// As printf's "%010d": ten characters, a sign among them.
void append_number(std::string& path, std::int32_t number) {
  char digits[16];
  const std::int64_t whole = number;
  const char* end = std::to_chars(digits, std::end(digits), whole < 0 ? -whole : whole).ptr;
  const std::size_t width = whole < 0 ? 9 : 10;
  const auto count = static_cast<std::size_t>(end - digits);
  if (whole < 0) path += '-';
  if (count < width) path.append(width - count, '0');
  path.append(digits, count);
}

bool is_sequential(wire::CreateMode mode) {
  return mode == wire::CreateMode::kPersistentSequential ||
         mode == wire::CreateMode::kEphemeralSequential || mode == wire::CreateMode::kTtlSequential;
}

bool is_ephemeral(wire::CreateMode mode) {
  return mode == wire::CreateMode::kEphemeral || mode == wire::CreateMode::kEphemeralSequential;
}

bool is_ttl(wire::CreateMode mode) {
  return mode == wire::CreateMode::kTtl || mode == wire::CreateMode::kTtlSequential;
}

bool is_mode(wire::CreateMode mode) {
  return mode >= wire::CreateMode::kPersistent && mode <= wire::CreateMode::kTtlSequential;
}

/// Inside a multi the mode alone says what is made, whichever create it was asked by.
wire::Op op_in_multi(wire::CreateMode mode) {
  if (is_ttl(mode)) return wire::Op::kCreateTtl;
  return mode == wire::CreateMode::kContainer ? wire::Op::kCreateContainer : wire::Op::kCreate;
}

std::int32_t next(std::int32_t version) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(version) + 1U);
}

bool version_fits(std::int32_t asked, std::int32_t actual) {
  return asked == -1 || asked == actual;
}

/// A node's own key: the root has two names.
std::string_view key_of(std::string_view path) { return path.empty() ? "/" : path; }

std::size_t size_of(const wire::Buffer& data) { return data ? data->size() : 0; }

void put(Draft& draft, std::string_view path, const Shadow& shadow) {
  const auto it = draft.shadows.find(path);
  if (it != draft.shadows.end()) {
    it->second = shadow;
  } else {
    draft.shadows.emplace(path, shadow);
  }
}

std::size_t grown(std::size_t before, std::size_t after) { return after - std::min(before, after); }

}  // namespace

bool Tree::has_room_for(const Growth& more, const Caller& caller, const Draft& draft) const {
  Growth coming = pending_.growth(caller.session);
  coming += draft.growth;
  if (more.nodes > 0 && nodes_.count() + coming.nodes >= limits_.nodes) return false;
  if (more.bytes > 0 && nodes_.bytes_in_all() + coming.bytes + more.bytes > limits_.bytes) {
    return false;
  }
  return more.ephemeral_bytes == 0 ||
         nodes_.ephemeral_bytes(caller.session) + coming.ephemeral_bytes <=
             limits_.ephemeral_bytes_per_session;
}

std::optional<Shadow> Tree::look(const Draft& draft, std::string_view path) const {
  const std::string_view key = key_of(path);
  const auto drafted = draft.shadows.find(key);
  const Shadow* shadow = drafted != draft.shadows.end() ? &drafted->second : pending_.find(key);
  if (shadow != nullptr) return shadow->exists ? std::optional(*shadow) : std::nullopt;
  const Node* node = nodes_.find(key);
  if (node == nullptr) return std::nullopt;
  return Shadow{true,
                node->version,
                node->creates,
                node->aversion,
                node->children.size(),
                size_of(node->data),
                node->owner,
                node->acl,
                0};
}

bool Tree::allows(const AclList& acl, std::int32_t permissions, const Caller& caller) const {
  work_ += kComparisonWork * acl.size() * caller.identities.size();
  return permits(acl, permissions, caller.identities);
}

Extent Tree::extent(std::string_view path) const {
  Extent most;
  if (const Node* node = nodes_.find(path)) {
    most = {size_of(node->data), node->children.size(), node->acl->size()};
  }
  if (const Shadow* shadow = pending_.find(path)) {
    most.data_bytes = std::max(most.data_bytes, shadow->data_bytes);
    most.children = std::max(most.children, shadow->children);
    if (shadow->exists) most.permissions = std::max(most.permissions, shadow->acl->size());
  }
  return most;
}

Err Tree::decide_part(const Caller& caller, wire::Op op, const wire::Create& create,
                      std::optional<std::int64_t> ttl_ms, Draft& draft, Change& change) const {
  if (!is_mode(create.mode) || is_ttl(create.mode) != ttl_ms.has_value()) return Err::kBadArguments;
  if (ttl_ms && (*ttl_ms <= 0 || *ttl_ms > Owner::kMaxTtlMs)) return Err::kBadArguments;
  const std::size_t slash = base::last_slash(create.path);
  if (slash == std::string::npos || create.path.find('\0') != std::string::npos) {
    return Err::kBadArguments;
  }
  std::optional<AclList> acl = settle(create.acl, caller.identities, &work_);
  if (!acl) return Err::kInvalidAcl;
  const std::string_view parent_path = std::string_view(create.path).substr(0, slash);
  std::optional<Shadow> parent = look(draft, parent_path);
  if (!parent) return Err::kNoNode;
  if (!allows(*parent->acl, kCreate, caller)) return Err::kNoAuth;

  constexpr std::size_t kNumberBytes = 10;
  std::string path;
  path.reserve(create.path.size() + kNumberBytes);
  path = create.path;
  if (is_sequential(create.mode)) append_number(path, parent->creates);
  if (!is_valid_path(path)) return Err::kBadArguments;
  if (look(draft, path)) return Err::kNodeExists;
  if (Owner::is_session(parent->owner)) return Err::kNoChildrenForEphemerals;
  const Growth more{1, path.size() + size_of(create.data) + size_in_bytes(*acl),
                    is_ephemeral(create.mode) ? Nodes::ephemeral_bytes_of(path) : 0};
  if (!has_room_for(more, caller, draft)) return Err::kQuotaExceeded;

  std::int64_t owner = 0;
  if (ttl_ms) {
    owner = Owner::ttl(*ttl_ms);
  } else if (op == wire::Op::kCreateContainer) {
    owner = Owner::kContainer;
  } else if (is_ephemeral(create.mode)) {
    owner = caller.session;
  }
  // The counter stops at its end instead of starting over with numbers that were used (H35).
  const std::int32_t creates = parent->creates == std::numeric_limits<std::int32_t>::max()
                                   ? parent->creates
                                   : parent->creates + 1;
  parent->creates = creates;
  ++parent->children;
  put(draft, key_of(parent_path), *parent);
  draft.growth += more;
  Shadow made;
  made.data_bytes = size_of(create.data);
  made.owner = owner;
  made.acl = handed_on(*acl);
  draft.shadows.insert_or_assign(path, made);
  change = {Change::Kind::kCreate, std::move(path), create.data, std::move(*acl), owner, creates};
  return Err::kOk;
}

void Tree::draft_delete(const std::string& path, Draft& draft) const {
  const std::string_view parent_path = parent_of(path);
  std::optional<Shadow> parent = look(draft, parent_path);
  LATCHKEY_ASSERT(parent && parent->children > 0);
  --parent->children;
  put(draft, parent_path, *parent);
  draft.shadows[path].exists = false;
}

Err Tree::decide_part(const Caller& caller, wire::Op op, const wire::PathVersion& request,
                      Draft& draft, Change& change) const {
  if (op == wire::Op::kCheck) {
    if (!is_valid_path(request.path)) return Err::kBadArguments;
    const std::optional<Shadow> node = look(draft, request.path);
    if (!node) return Err::kNoNode;
    if (!allows(*node->acl, kRead, caller)) return Err::kNoAuth;
    if (!version_fits(request.version, node->version)) return Err::kBadVersion;
    change = {Change::Kind::kCheck, request.path, {}, {}, 0, 0};
    return Err::kOk;
  }
  const std::size_t slash = base::last_slash(request.path);
  if (slash == std::string::npos || request.path.find('\0') != std::string::npos ||
      std::ranges::find(kSystemNodes, request.path) != std::end(kSystemNodes)) {
    return Err::kBadArguments;
  }
  const std::optional<Shadow> parent = look(draft, std::string_view(request.path).substr(0, slash));
  if (!parent) return Err::kNoNode;
  if (!allows(*parent->acl, kDelete, caller)) return Err::kNoAuth;
  const std::optional<Shadow> node = look(draft, request.path);
  if (!node) return Err::kNoNode;
  if (!version_fits(request.version, node->version)) return Err::kBadVersion;
  if (node->children > 0) return Err::kNotEmpty;
  work_ += kComparisonWork * node->acl->size();  // To see who may hear of it.
  draft_delete(request.path, draft);
  change = {Change::Kind::kDelete, request.path, {}, {}, 0, 0};
  return Err::kOk;
}

Err Tree::decide_part(const Caller& caller, const wire::SetData& set, Draft& draft,
                      Change& change) const {
  if (!is_valid_path(set.path)) return Err::kBadArguments;
  std::optional<Shadow> node = look(draft, set.path);
  if (!node) return Err::kNoNode;
  if (!allows(*node->acl, kWrite, caller)) return Err::kNoAuth;
  if (!version_fits(set.version, node->version)) return Err::kBadVersion;
  const Growth more{0, grown(node->data_bytes, size_of(set.data)), 0};
  if (!has_room_for(more, caller, draft)) return Err::kQuotaExceeded;
  draft.growth += more;
  node->version = next(node->version);
  node->data_bytes = size_of(set.data);
  change = {Change::Kind::kSetData, set.path, set.data, {}, 0, node->version};
  draft.shadows.insert_or_assign(set.path, std::move(*node));
  return Err::kOk;
}

Err Tree::decide_part(const Caller& caller, const wire::SetAcl& set, Draft& draft,
                      Change& change) const {
  if (!is_valid_path(set.path)) return Err::kBadArguments;
  std::optional<AclList> acl = settle(set.acl, caller.identities, &work_);
  if (!acl) return Err::kInvalidAcl;
  std::optional<Shadow> node = look(draft, set.path);
  if (!node) return Err::kNoNode;
  if (!allows(*node->acl, kAdmin, caller)) return Err::kNoAuth;
  if (!version_fits(set.version, node->aversion)) return Err::kBadVersion;
  const Growth more{0, grown(size_in_bytes(*node->acl), size_in_bytes(*acl)), 0};
  if (!has_room_for(more, caller, draft)) return Err::kQuotaExceeded;
  draft.growth += more;
  node->aversion = next(node->aversion);
  node->acl = handed_on(*acl);
  change = {Change::Kind::kSetAcl, set.path, {}, std::move(*acl), 0, node->aversion};
  draft.shadows.insert_or_assign(set.path, std::move(*node));
  return Err::kOk;
}

Err Tree::decide_multi(const Caller& caller, const wire::Multi& multi, Draft& draft,
                       std::vector<Change>& changes, std::size_t& culprit) const {
  changes.resize(multi.ops.size());
  std::size_t acl_bytes = 0;
  const std::uint64_t work_before = work_;
  for (std::size_t i = 0; i < multi.ops.size(); ++i) {
    const wire::MultiOp& part = multi.ops[i];
    Err err = Err::kBadArguments;
    if (const auto* create = std::get_if<wire::Create>(&part.body)) {
      // A TTL node without its TTL: Apache stumbles over it, and so answers the whole.
      err = is_ttl(create->mode) ? Err::kMarshallingError
                                 : decide_part(caller, op_in_multi(create->mode), *create,
                                               std::nullopt, draft, changes[i]);
    } else if (const auto* ttl = std::get_if<wire::CreateTtl>(&part.body)) {
      const std::optional<std::int64_t> ttl_ms =
          is_ttl(ttl->mode) ? std::optional(ttl->ttl_ms) : std::nullopt;
      err = decide_part(caller, op_in_multi(ttl->mode), {ttl->path, ttl->data, ttl->acl, ttl->mode},
                        ttl_ms, draft, changes[i]);
    } else if (const auto* set = std::get_if<wire::SetData>(&part.body)) {
      err = decide_part(caller, *set, draft, changes[i]);
    } else if (const auto* request = std::get_if<wire::PathVersion>(&part.body)) {
      err = decide_part(caller, part.op, *request, draft, changes[i]);
    }
    acl_bytes += size_in_bytes(changes[i].acl);
    if (changes[i].kind != Change::Kind::kCheck) {
      work_ += kTellingWork * watches_.hearers(changes[i].path);
    }
    if (err == Err::kOk && acl_bytes > kMostAclBytes) err = Err::kInvalidAcl;
    if (err == Err::kOk && work_ - work_before > kMostWorkAtOnce) err = Err::kQuotaExceeded;
    if (err != Err::kOk) {
      culprit = i;
      return err;
    }
  }
  return Err::kOk;
}

Verdict Tree::decide(const Caller& caller, const Write& write, std::int64_t time_ms) {
  Verdict verdict;
  verdict.zxid = next_zxid();
  Record record;
  record.zxid = verdict.zxid;
  record.time_ms = time_ms;
  record.session = caller.session;
  Draft draft;
  if (!knows(caller.session)) {
    verdict.err = Err::kSessionExpired;
  } else if (const auto* multi = std::get_if<wire::Multi>(&write.body)) {
    verdict.err = decide_multi(caller, *multi, draft, record.changes, verdict.refused_part);
  } else {
    Change& change = record.changes.emplace_back();
    if (const auto* create = std::get_if<wire::Create>(&write.body)) {
      verdict.err = decide_part(caller, write.op, *create, std::nullopt, draft, change);
    } else if (const auto* ttl = std::get_if<wire::CreateTtl>(&write.body)) {
      verdict.err = decide_part(caller, write.op, {ttl->path, ttl->data, ttl->acl, ttl->mode},
                                ttl->ttl_ms, draft, change);
    } else if (const auto* set = std::get_if<wire::SetData>(&write.body)) {
      verdict.err = decide_part(caller, *set, draft, change);
    } else if (const auto* acl = std::get_if<wire::SetAcl>(&write.body)) {
      verdict.err = decide_part(caller, *acl, draft, change);
    } else {
      verdict.err =
          decide_part(caller, write.op, std::get<wire::PathVersion>(write.body), draft, change);
    }
  }
  if (verdict.err == Err::kOk) verdict.record = conclude(std::move(record), std::move(draft));
  return verdict;
}

Record Tree::conclude(Record record, Draft draft) {
  pending_.add(record.zxid, record.session, std::move(draft));
  return record;
}

Record Tree::open_session(SessionId session, std::int32_t timeout_ms, std::string password,
                          std::int64_t time_ms) {
  Record record;
  record.zxid = next_zxid();
  record.kind = Record::Kind::kOpenSession;
  record.time_ms = time_ms;
  record.session = session;
  record.timeout_ms = timeout_ms;
  record.password = std::move(password);
  return conclude(std::move(record), {});
}

std::optional<Record> Tree::close_session(SessionId session, std::int64_t time_ms) {
  const auto it = sessions_.find(session);
  if (it == sessions_.end() || it->second.closing) return std::nullopt;
  it->second.closing = true;
  Record record;
  record.zxid = next_zxid();
  record.kind = Record::Kind::kCloseSession;
  record.time_ms = time_ms;
  record.session = session;

  Draft draft;
  const auto take = [&](std::string_view path) {
    const std::optional<Shadow> node = look(draft, path);
    if (!node || node->owner != session) return;
    draft_delete(std::string(path), draft);
    record.changes.push_back({Change::Kind::kDelete, std::string(path), {}, {}, 0, 0});
  };
  for (const std::string_view path : nodes_.ephemerals(session)) take(path);
  for (const auto& [path, zxid] : pending_.owned(session)) take(path);
  return conclude(std::move(record), std::move(draft));
}

std::optional<Record> Tree::reap(const std::string& path, std::int64_t time_ms) {
  Draft draft;
  const std::optional<Shadow> node = look(draft, path);
  if (!node || node->children > 0) return std::nullopt;
  // What looked unused may be gone by now, and another one in its place (H93): a container that
  // still waits for its first child, or a TTL node that has just been made, or set.
  const bool is_unused_container = Owner::is_container(node->owner) && node->creates > 0;
  const bool is_old_ttl = Owner::is_ttl(node->owner) && pending_.find(path) == nullptr;
  if (!is_unused_container && !is_old_ttl) return std::nullopt;
  draft_delete(path, draft);
  Record record;
  record.zxid = next_zxid();
  record.time_ms = time_ms;
  record.changes.push_back({Change::Kind::kDelete, path, {}, {}, 0, 0});
  return conclude(std::move(record), std::move(draft));
}

Record Tree::begin_epoch(std::int64_t time_ms) {
  last_ = ((last_ >> 32) + 1) << 32;
  Record record;
  record.zxid = last_;
  record.kind = Record::Kind::kNewEpoch;
  record.time_ms = time_ms;
  return conclude(std::move(record), {});
}

}  // namespace latchkey::tree
