#include <map>
#include <utility>

#include "base/mutant.hpp"
#include "latchkey/path.hpp"
#include "tree/tree.hpp"
#include "wire/frame.hpp"

// A snapshot is a list of items, each a few nodes and sessions: the state without its history.
namespace latchkey::tree {
namespace {

struct SavedSession {
  SessionId id = 0;
  std::int32_t timeout_ms = 0;
  std::string password;
  template <class Self, class Archive>
  static void fields(Self& self, Archive& archive) {
    archive(self.id, self.timeout_ms, self.password);
  }
};

struct SavedNode {
  std::string path;
  wire::Buffer data;
  AclList acl;
  std::int64_t czxid = 0;
  std::int64_t mzxid = 0;
  std::int64_t pzxid = 0;
  std::int64_t ctime_ms = 0;
  std::int64_t mtime_ms = 0;
  std::int64_t owner = 0;
  std::int32_t version = 0;
  std::int32_t creates = 0;
  std::int32_t aversion = 0;
  template <class Self, class Archive>
  static void fields(Self& self, Archive& archive) {
    archive(self.path, self.data, self.acl, self.czxid, self.mzxid, self.pzxid, self.ctime_ms,
            self.mtime_ms, self.owner, self.version, self.creates, self.aversion);
  }
};

struct Item {
  std::int64_t applied = 0;
  std::vector<SavedSession> sessions;
  std::vector<SavedNode> nodes;
  template <class Self, class Archive>
  static void fields(Self& self, Archive& archive) {
    archive(self.applied, self.sessions, self.nodes);
  }
};

constexpr std::size_t kItemBytes = 64U << 10U;

/// Gathers what is saved into items of a handy size.
class Packer {
 public:
  Packer(std::int64_t applied, base::FunctionRef<void(std::string_view)> sink) : sink_(sink) {
    item_.applied = applied;
  }
  void add(SavedSession session) {
    size_ += session.password.size() + 16;
    item_.sessions.push_back(std::move(session));
    if (size_ >= kItemBytes) flush();
  }
  void add(SavedNode node) {
    size_ += node.path.size() + (node.data ? node.data->size() : 0) + size_in_bytes(node.acl) + 100;
    item_.nodes.push_back(std::move(node));
    if (size_ >= kItemBytes) flush();
  }
  void flush() {
    std::string bytes;
    wire::Writer writer(bytes);
    writer(item_);
    sink_(bytes);
    item_.sessions.clear();
    item_.nodes.clear();
    size_ = 0;
  }

 private:
  base::FunctionRef<void(std::string_view)> sink_;
  Item item_;
  std::size_t size_ = 0;
};

}  // namespace

void Tree::save(base::FunctionRef<void(std::string_view)> sink) const {
  Packer packer(applied_, sink);
  const std::map<SessionId, SessionEntry> sorted(sessions_.begin(), sessions_.end());
  for (const auto& [id, entry] : sorted) packer.add({id, entry.timeout_ms, entry.password});
  nodes_.visit([&](std::string_view path, const Node& node) {
    packer.add({std::string(path), node.data, *node.acl, node.czxid, node.mzxid, node.pzxid,
                node.ctime_ms, node.mtime_ms, node.owner, node.version, node.creates,
                node.aversion});
  });
  packer.flush();
}

Result<void> Tree::load(std::string_view bytes) {
  std::optional<Item> item = wire::decode<Item>(bytes);
  if (!item) return Error(Code::kDamaged, "snapshot: an item does not parse");
  applied_ = last_ = item->applied;
  for (SavedSession& session : item->sessions) {
    sessions_[session.id] = {session.timeout_ms, std::move(session.password), false};
  }
  for (SavedNode& saved : item->nodes) {
    if (!Path(saved.path).is_valid()) {
      return Error(Code::kDamaged, "snapshot: a node has no path");
    }
    if (nodes_.find(parent_of(saved.path)) == nullptr) {
      return Error(Code::kDamaged, "snapshot: " + saved.path + " has no parent");
    }
    Node node;
    node.data = std::move(saved.data);
    node.acl = std::make_shared<const AclList>(std::move(saved.acl));
    node.czxid = saved.czxid;
    node.mzxid = saved.mzxid;
    node.pzxid = saved.pzxid;
    node.ctime_ms = saved.ctime_ms;
    node.mtime_ms = saved.mtime_ms;
    node.owner = saved.owner;
    node.version = saved.version;
    node.creates = saved.creates;
    node.aversion = saved.aversion;
    nodes_.restore(std::move(saved.path), std::move(node));
  }
  return {};
}

Result<void> Tree::replay(std::int64_t zxid, std::string_view bytes) {
  std::optional<Record> record = decode_record(zxid, bytes);
  if (!record) return Error(Code::kDamaged, "journal: a record does not parse");
  if (zxid <= applied_) return Error(Code::kDamaged, "journal: zxids do not grow");
  if (!fits(*record)) return Error(Code::kDamaged, "journal: a record does not fit the tree");
  for (Change& change : record->changes) {
    const bool is_set = change.kind == Change::Kind::kSetData;
    if (is_set && base::mutated(base::Mutant::kStaleReplay)) change.data.reset();
  }
  static_cast<void>(apply(*record, [](PeerId) { return std::span<const Identity>(); }));
  last_ = zxid;
  return {};
}

bool Tree::fits(const Record& record) const {
  Draft draft;
  for (const Change& change : record.changes) {
    const std::optional<Shadow> node = look(draft, change.path);
    if (change.kind == Change::Kind::kCreate) {
      std::optional<Shadow> parent = look(draft, parent_of(change.path));
      if (node || !parent || !Path(change.path).is_valid()) return false;
      ++parent->children;
      draft.shadows.insert_or_assign(std::string(parent_of(change.path)), *parent);
      draft.shadows.insert_or_assign(change.path, Shadow{});
    } else if (!node) {
      return false;
    } else if (change.kind == Change::Kind::kDelete) {
      if (node->children > 0 || change.path == "/") return false;
      draft_delete(change.path, draft);
    }
  }
  return true;
}

}  // namespace latchkey::tree
