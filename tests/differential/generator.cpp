#include "differential/generator.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/random.hpp"
#include "differential/odd_input.hpp"
#include "latchkey/node.hpp"

namespace latchkey::differential {
namespace {

using wire::CreateMode;
using wire::Op;

constexpr std::size_t kManyNodes = 60;

/// What the generator believes of a node. Belief need not be true: it only makes good guesses.
struct Belief {
  std::int32_t version = 0;
  std::int32_t aversion = 0;
  std::int32_t creates = 0;
  bool ephemeral = false;
  std::size_t owner = kActors;  ///< Of an ephemeral node.
  bool guarded = false;         ///< Not everybody may do everything.
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  Script write(std::size_t length) {
    for (const char* path : {"/a", "/b", "/p"}) add_create(Op::kCreate2, path, {});
    while (script_.size() < length) {
      actor_ = random_.below(kActors);
      add_step();
    }
    return std::move(script_);
  }

 private:
  // Luck.

  bool chance(std::uint64_t percent) { return random_.below(100) < percent; }
  std::int32_t number(std::int32_t below) {
    return static_cast<std::int32_t>(random_.below(static_cast<std::uint64_t>(below)));
  }
  template <class List>
  const auto& any(const List& list) {
    auto it = std::begin(list);
    std::advance(it, random_.below(std::size(list)));
    return *it;
  }

  // What to ask for.

  static bool is_private(const std::string& path) { return path.starts_with("/p"); }

  std::string existing() {
    if (nodes_.empty()) return "/a";
    for (int i = 0; i < 4; ++i) {
      const auto& [path, belief] = any(nodes_);
      if (!belief.guarded || chance(10)) return path;
    }
    return any(nodes_).first;
  }

  std::string parent() {
    for (int i = 0; i < 5; ++i) {
      std::string path = existing();
      const bool deep = std::count(path.begin(), path.end(), '/') > 2;
      if (!deep && !path.starts_with("/zookeeper") && (!nodes_[path].ephemeral || chance(10))) {
        return path;
      }
    }
    return chance(50) ? "/a" : "/p";
  }

  std::string fresh() {
    static const char* const kNames[] = {"a", "b", "c", "d"};
    std::string path = parent() + "/" + any(kNames);
    for (int i = 0; i < 3 && nodes_.contains(path); ++i) path = parent() + "/" + any(kNames);
    return path;
  }

  /// A path to look at.
  std::string target() {
    const std::uint64_t luck = random_.below(100);
    if (luck < 91) return existing();
    if (luck < 95) return fresh();
    if (luck < 99) return any(kSystemPaths);
    return any(kOddPaths);
  }

  wire::Buffer data() {
    switch (random_.below(6)) {
      case 0: return std::nullopt;
      case 1: return "";
      case 2: return std::string(random_.below(300), 'x');
      default: return "data " + std::to_string(random_.below(1000));
    }
  }

  std::int32_t version_of(const std::string& path, std::int32_t Belief::*which) {
    const std::uint64_t luck = random_.below(100);
    const auto node = nodes_.find(path);
    // Those of system nodes depend on scripts that were played before.
    if (luck < 70 || path.size() < 2 || path.starts_with("/zookeeper")) return -1;
    if (luck < 92 && node != nodes_.end()) return node->second.*which;
    return number(4) - 2;
  }

  std::vector<wire::WireAcl> acl(const std::string& path) {
    if (chance(is_private(path) ? 75 : 97)) return any(kOpenAcls);
    if (chance(15)) return any(kBadAcls);
    return is_private(path) ? any(kPrivateAcls) : any(kReadableAcls);
  }

  // Requests.

  void add(Op op, Body body) { script_.push_back({actor_, Request{op, std::move(body)}}); }

  wire::Create new_node(bool& sequential) {
    wire::Create create;
    create.path = chance(98) ? fresh() : std::string(any(kOddPaths));
    create.data = data();
    create.acl = acl(create.path);
    constexpr CreateMode kModes[] = {CreateMode::kPersistent, CreateMode::kPersistent,
                                     CreateMode::kEphemeral, CreateMode::kPersistentSequential,
                                     CreateMode::kEphemeralSequential};
    create.mode = any(kModes);
    sequential = create.mode == CreateMode::kPersistentSequential ||
                 create.mode == CreateMode::kEphemeralSequential;
    if (chance(1)) create.mode = static_cast<CreateMode>(number(12) - 3);
    if (sequential) shorten(create.path);
    // The counters of system nodes depend on scripts that were played before.
    if (create.path.starts_with("/zookeeper")) {
      create.mode = CreateMode::kPersistent;
      sequential = false;
    }
    return create;
  }

  /// A number follows the name, or stands alone.
  void shorten(std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) {
      path = "/a/s-";
    } else if (chance(50)) {
      path.resize(slash + 1);
    }
  }

  static bool is_open(const std::vector<wire::WireAcl>& acl) {
    return acl.size() == 1 && acl[0].scheme == "world" && acl[0].permissions == 31;
  }

  void believe_create(std::string path, CreateMode mode, const std::vector<wire::WireAcl>& acl) {
    if (std::find(kBadAcls.begin(), kBadAcls.end(), acl) != kBadAcls.end()) return;

    const std::size_t slash = path.rfind('/');
    // Apache spells what is outside the basic plane in its own way when it says it back.
    const bool odd = path.find('\xF0') != std::string::npos;
    if (slash == std::string::npos || path.size() > 60 || odd) return;
    const std::string above = path.substr(0, slash);
    const auto known = nodes_.find(above);
    if (slash != 0 && known == nodes_.end()) return;
    Belief& parent = slash == 0 ? root_ : known->second;
    if (mode == CreateMode::kPersistentSequential || mode == CreateMode::kEphemeralSequential ||
        mode == CreateMode::kTtlSequential) {
      char digits[16];
      std::snprintf(digits, sizeof digits, "%010d", parent.creates);
      path += digits;
    }
    if (path.back() == '/' || nodes_.contains(path)) return;
    ++parent.creates;
    ++zxid_;
    Belief& belief = nodes_[path];
    belief.ephemeral = mode == CreateMode::kEphemeral || mode == CreateMode::kEphemeralSequential;
    if (belief.ephemeral) belief.owner = actor_;
    belief.guarded = !is_open(acl);
  }

  void believe_delete(const std::string& path) {
    const auto below = nodes_.upper_bound(path + "/");
    if (below != nodes_.end() && below->first.starts_with(path + "/")) return;
    nodes_.erase(path);
  }

  void add_create(Op op, const std::string& path, const wire::Buffer& content) {
    add(op, wire::Create{path, content, kOpenAcls[0], CreateMode::kPersistent});
    believe_create(path, CreateMode::kPersistent, kOpenAcls[0]);
  }

  void create_some() {
    const wire::MultiOp made = create_part();
    std::visit(
        [&](const auto& create) {
          if constexpr (requires { create.acl; }) add(made.op, create);
        },
        made.body);
  }

  /// A create of any kind.
  wire::MultiOp create_part() {
    bool sequential = false;
    wire::Create create = new_node(sequential);
    const std::uint64_t luck = random_.below(100);
    if (luck < 12) {
      if (chance(95)) create.mode = CreateMode::kContainer;
      believe_create(create.path, create.mode, create.acl);
      return {Op::kCreateContainer, std::move(create)};
    }
    if (luck < 24) {
      wire::CreateTtl ttl = as_ttl(std::move(create), sequential);
      if (ttl.ttl_ms > 1) believe_create(ttl.path, ttl.mode, ttl.acl);
      return {Op::kCreateTtl, std::move(ttl)};
    }
    believe_create(create.path, create.mode, create.acl);
    return {chance(50) ? Op::kCreate : Op::kCreate2, std::move(create)};
  }

  wire::CreateTtl as_ttl(wire::Create create, bool sequential) {
    static constexpr std::int64_t kOddTtls[] = {0, -1, 1, (std::int64_t{1} << 40) - 1,
                                                std::int64_t{1} << 40};
    CreateMode mode = sequential ? CreateMode::kTtlSequential : CreateMode::kTtl;
    if (chance(4)) mode = create.mode;
    // See known_differences(): a negative TTL beside another mode.
    const bool plain = mode != CreateMode::kTtl && mode != CreateMode::kTtlSequential;
    const bool usual = plain || chance(90);
    const std::int64_t ttl = usual ? 100'000 + number(1'000'000) : any(kOddTtls);
    return {std::move(create.path), std::move(create.data), std::move(create.acl), mode, ttl};
  }

  wire::PathVersion doomed() {
    std::string path = target();
    for (int i = 0; i < 6 && has_children(path) && !chance(5); ++i) path = target();
    const std::int32_t version = version_of(path, &Belief::version);
    believe_delete(path);
    ++zxid_;
    return {std::move(path), version};
  }

  bool has_children(const std::string& path) {
    const auto below = nodes_.upper_bound(path + "/");
    return below != nodes_.end() && below->first.starts_with(path + "/");
  }

  wire::SetData new_data() {
    wire::SetData set;
    set.path = target();
    // The generator looks after quotas elsewhere: a malformed one stops Apache.
    if (set.path.starts_with("/zookeeper/quota")) set.path = "/a";
    set.data = data();
    set.version = version_of(set.path, &Belief::version);
    const auto node = nodes_.find(set.path);
    if (node != nodes_.end()) ++node->second.version;
    ++zxid_;
    return set;
  }

  void set_acl() {
    std::string path = target();
    if (path.size() < 2 || path.starts_with("/zookeeper")) path = "/p/a";
    wire::SetAcl set{path, acl(path), -1};
    set.version = version_of(path, &Belief::aversion);
    const auto node = nodes_.find(path);
    if (node != nodes_.end()) {
      ++node->second.aversion;
      node->second.guarded = !is_open(set.acl);
    }
    ++zxid_;
    add(Op::kSetAcl, std::move(set));
  }

  wire::MultiOp part() {
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3: return create_part();
      case 4:
      case 5:
      case 6: return {Op::kDelete, doomed()};
      case 7:
      case 8:
      case 9: return {Op::kSetData, new_data()};
      default: {
        const std::string path = target();
        return {Op::kCheck, wire::PathVersion{path, version_of(path, &Belief::version)}};
      }
    }
  }

  void multi() {
    wire::Multi multi;
    const std::map<std::string, Belief> before = nodes_;
    for (std::uint64_t count = random_.below(5); count > 0; --count) multi.ops.push_back(part());
    if (chance(20)) {
      // One that fails, with all that comes before it to be undone.
      const std::size_t where = random_.below(multi.ops.size() + 1);
      multi.ops.insert(multi.ops.begin() + static_cast<std::ptrdiff_t>(where),
                       {Op::kCheck, wire::PathVersion{"/a", 1'000'000}});
      nodes_ = before;
    }
    add(Op::kMulti, std::move(multi));
  }

  void multi_read() {
    wire::Multi multi;
    for (std::uint64_t count = random_.below(5); count > 0; --count) {
      multi.ops.push_back(
          {chance(50) ? Op::kGetData : Op::kGetChildren, wire::PathWatch{target(), chance(20)}});
    }
    add(Op::kMultiRead, std::move(multi));
  }

  void read() {
    constexpr Op kReads[] = {Op::kExists, Op::kGetData, Op::kGetChildren, Op::kGetChildren2};
    wire::PathWatch read{target(), false};
    // See known_differences(): a one-shot watch beside a lasting one.
    if (chance(55) && !lasting_[actor_].contains(read.path)) {
      read.watch = true;
      once_[actor_].insert(read.path);
    }
    add(any(kReads), std::move(read));
  }

  // Watches.

  void add_watch() {
    wire::AddWatch watch;
    watch.path = chance(70) ? existing() : fresh();
    if (chance(5)) watch.path = "/";
    watch.mode = static_cast<wire::AddWatchMode>(number(2));
    if (once_[actor_].contains(watch.path)) watch.mode = wire::AddWatchMode::kPersistent;
    const auto [entry, fresh_one] = lasting_[actor_].emplace(watch.path, watch.mode);
    if (!fresh_one) watch.mode = entry->second;
    if (chance(2)) watch.mode = static_cast<wire::AddWatchMode>(number(7) - 3);
    if (watch.mode != entry->second && watch.mode >= wire::AddWatchMode::kPersistent &&
        watch.mode <= wire::AddWatchMode::kPersistentRecursive) {
      watch.mode = entry->second;
    }
    add(Op::kAddWatch, std::move(watch));
  }

  std::string watched() {
    std::string path = target();
    if (chance(60) && !lasting_[actor_].empty()) {
      path = any(lasting_[actor_]).first;
    } else if (chance(80) && !once_[actor_].empty()) {
      path = any(once_[actor_]);
    }
    // Where a path does not begin with a slash, Apache finds nobody, or stumbles.
    return path.starts_with('/') ? path : "/";
  }

  void watch_type(Op op) {
    wire::PathWatcherType request{watched(), static_cast<wire::WatcherType>(1 + number(3))};
    if (chance(2)) request.type = static_cast<wire::WatcherType>(number(9) - 2);
    if (op == Op::kRemoveWatches && request.type == wire::WatcherType::kAny) {
      lasting_[actor_].erase(request.path);
      once_[actor_].erase(request.path);
    }
    add(op, std::move(request));
  }

  void set_watches() {
    wire::SetWatches2 set;
    set.relative_zxid = chance(30) ? 0 : static_cast<std::int64_t>(random_.below(zxid_ + 1));
    const auto some = [&](std::vector<std::string>& list) {
      for (std::uint64_t count = random_.below(4); count > 0; --count) {
        const std::string path = chance(70) ? existing() : fresh();
        if (lasting_[actor_].contains(path)) continue;
        list.push_back(path);
        once_[actor_].insert(path);
      }
    };
    const bool second = chance(50);
    some(set.data);
    some(set.exists);
    some(set.children);
    if (second) {
      const auto lasting = [&](std::vector<std::string>& list, wire::AddWatchMode mode) {
        for (std::uint64_t count = random_.below(3); count > 0; --count) {
          const std::string path = existing();
          // One that is in the other lists would be a one-shot watch beside a lasting one.
          const auto listed = [&](const std::vector<std::string>& other) {
            return std::find(other.begin(), other.end(), path) != other.end();
          };
          if (once_[actor_].contains(path) || listed(set.data) || listed(set.exists) ||
              listed(set.children))
            continue;
          if (lasting_[actor_].emplace(path, mode).first->second == mode) list.push_back(path);
        }
      };
      lasting(set.persistent, wire::AddWatchMode::kPersistent);
      lasting(set.persistent_recursive, wire::AddWatchMode::kPersistentRecursive);
    }
    add(second ? Op::kSetWatches2 : Op::kSetWatches, std::move(set));
  }

  // Sessions.

  void forget_watches() {
    lasting_[actor_].clear();
    once_[actor_].clear();
  }

  void come_back() {
    constexpr Return kWays[] = {Return::kAfterDrop,      Return::kAfterDrop,
                                Return::kOldForm,        Return::kOverLive,
                                Return::kWrongPassword,  Return::kAheadOfServer,
                                Return::kUnknownSession, Return::kNewSession};
    script_.push_back({actor_, any(kWays)});
    forget_watches();
    if (chance(60)) set_watches();
  }

  void close() {
    add(Op::kCloseSession, wire::Empty{});
    std::erase_if(nodes_, [&](const auto& entry) { return entry.second.owner == actor_; });
    forget_watches();
    ++zxid_;
  }

  void authenticate() {
    constexpr const char* kCredentials[] = {"u1:p1", "u1:p1", "u1:p1", "u2:p2", "nocolon", ":"};
    if (chance(90)) {
      return add(Op::kAuth, wire::AuthPacket{0, "digest", any(kCredentials)});
    }
    if (chance(50)) return add(Op::kAuth, wire::AuthPacket{0, "ip", ""});
    add(Op::kAuth, any(kOddAuths));
    forget_watches();
  }

  // Quotas.

  void quota() {
    const std::string top = chance(50) ? "a" : "b";
    const std::string base = "/zookeeper/quota/" + top;
    const std::string limits = base + "/zookeeper_limits";
    const std::string stats = base + "/zookeeper_stats";
    switch (random_.below(7)) {
      case 0:
        add_create(Op::kCreate, base, "");
        add_create(Op::kCreate, limits, std::string(any(kQuotaLimits)));
        return add_create(Op::kCreate, stats, std::string("count=0,bytes=0"));
      case 1: return add(Op::kSetData, wire::SetData{limits, std::string(any(kQuotaLimits)), -1});
      case 2: {
        const std::string& gone = chance(50) ? limits : stats;
        believe_delete(gone);
        return add(Op::kDelete, wire::PathVersion{gone, -1});
      }
      case 3: return add(Op::kGetData, wire::PathWatch{limits, false});
      default: return add(Op::kGetData, wire::PathWatch{stats, false});
    }
  }

  void odd() {
    switch (random_.below(4)) {
      case 0: script_.push_back({actor_, BadFrame{any(kBadFrames)}}); return forget_watches();
      case 1: {
        constexpr Op kUnknown[] = {static_cast<Op>(10), static_cast<Op>(99), static_cast<Op>(200),
                                   static_cast<Op>(-5)};
        add(any(kUnknown), wire::PathOnly{"/a"});
        return forget_watches();
      }
      case 2: return add(Op::kReconfig, Garbage{chance(50) ? kReconfig : any(kGarbage)});
      default: break;
    }
    const Op op = any(kGarbageOps);
    std::string garbage = any(kGarbage);
    // See known_differences(): addWatch without a path.
    if (op == Op::kAddWatch && garbage.starts_with("\xFF\xFF\xFF\xFF")) garbage.clear();
    add(op, Garbage{std::move(garbage)});
  }

  void look_around() {
    switch (random_.below(5)) {
      case 0: return add(Op::kWhoAmI, wire::Empty{});
      case 1: return add(Op::kSync, wire::PathOnly{chance(90) ? existing() : "/zookeeper"});
      case 2: return add(Op::kGetAllChildrenNumber, wire::PathOnly{target()});
      case 3: return add(Op::kGetAcl, wire::PathOnly{target()});
      default: {
        constexpr const char* kPrefixes[] = {"/", "", "/a", "/b", "/p/a", "/nothing"};
        return add(Op::kGetEphemerals, wire::PathOnly{any(kPrefixes)});
      }
    }
  }

  void add_step() {
    const std::uint64_t luck = random_.below(1000);
    if (nodes_.size() > kManyNodes && luck < 300) return add(Op::kDelete, doomed());
    if (luck < 230) return create_some();
    if (luck < 330) return add(Op::kDelete, doomed());
    if (luck < 420) return add(Op::kSetData, new_data());
    if (luck < 620) return read();
    if (luck < 690) return multi();
    if (luck < 715) return multi_read();
    if (luck < 745) return add_watch();
    if (luck < 770) return watch_type(Op::kRemoveWatches);
    if (luck < 790) return watch_type(Op::kCheckWatches);
    if (luck < 810) return set_watches();
    if (luck < 840) return set_acl();
    if (luck < 875) return authenticate();
    if (luck < 945) return look_around();
    if (luck < 965) return quota();
    if (luck < 980) return come_back();
    if (luck < 988) return close();
    odd();
  }

  base::Random random_;
  Script script_;
  std::size_t actor_ = 0;
  std::map<std::string, Belief> nodes_;
  Belief root_;
  std::uint64_t zxid_ = 0;
  std::array<std::map<std::string, wire::AddWatchMode>, kActors> lasting_;
  std::array<std::set<std::string>, kActors> once_;
};

}  // namespace

Script make_script(std::uint64_t seed, std::size_t length) { return Generator(seed).write(length); }

}  // namespace latchkey::differential
