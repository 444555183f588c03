#include "sim/witness.hpp"

#include <algorithm>
#include <utility>

#include "testing/sim_host.hpp"

namespace latchkey::sim {
namespace {

using testing::Way;
using wire::Err;
using wire::Op;

std::string owner_of_child(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

template <class Body>
Body read(std::string_view bytes) {
  Body body;
  wire::Reader reader(bytes);
  reader(body);
  return body;
}

}  // namespace

// ---- The log ------------------------------------------------------------------------------------

void Witness::applied(const tree::Record& record) {
  applied_ = record.zxid;
  for (const tree::Change& change : record.changes) {
    if (change.kind == tree::Change::Kind::kSetData) {
      marks_[change.path].changed = record.zxid;
      fire(change.path, On::kNode, record.zxid);
      continue;
    }
    const bool is_create = change.kind == tree::Change::Kind::kCreate;
    if (!is_create && change.kind != tree::Change::Kind::kDelete) continue;
    Marks& marks = marks_[change.path];
    (is_create ? marks.created : marks.deleted) = record.zxid;
    const std::string parent = owner_of_child(change.path);
    marks_[parent].children = record.zxid;
    fire(change.path, On::kNode, record.zxid);
    if (!is_create) fire(change.path, On::kChildren, record.zxid);
    fire(parent, On::kChildren, record.zxid);
  }
}

void Witness::fire(const std::string& path, On on, std::int64_t zxid) {
  const auto armed = armed_.find({path, on});
  if (armed == armed_.end()) return;
  for (const std::uint64_t link : armed->second) {
    const auto talk = talks_.find(link);
    if (talk == talks_.end()) continue;
    talk->second.due.emplace(armed->first, zxid);
    talk->second.set.erase(armed->first);
  }
  armed_.erase(armed);
}

bool Witness::arm(std::uint64_t link, Talk& talk, const Watch& watch, std::int64_t zxid) {
  // What the server that answered had not seen yet fires it as well.
  std::int64_t cause = 0;
  if (const auto found = marks_.find(watch.first); found != marks_.end()) {
    const Marks& marks = found->second;
    const auto consider = [&](std::int64_t mark) {
      if (mark > zxid && (cause == 0 || mark < cause)) cause = mark;
    };
    consider(marks.deleted);
    if (watch.second == On::kNode) consider(marks.created);
    consider(watch.second == On::kNode ? marks.changed : marks.children);
  }
  if (cause != 0) {
    talk.due.emplace(watch, cause);
    return false;
  }
  armed_[watch].insert(link);
  return true;
}

void Witness::set(std::uint64_t link, Talk& talk, const Request& request, std::int64_t zxid) {
  constexpr std::size_t kAnyNumber = 1'000;
  const Watches& before = before_[talk.client];
  for (const Watch& watch : request.watches) {
    if (!arm(link, talk, watch, zxid)) continue;
    if (!request.restores()) {
      ++talk.set[watch];
      continue;
    }
    const auto known = before.find(watch);
    talk.set[watch] = known == before.end() ? kAnyNumber : known->second;
  }
}

void Witness::disarm(std::uint64_t link, Talk& talk, const Watch& watch, std::int64_t zxid) {
  if (const auto armed = armed_.find(watch); armed != armed_.end()) {
    armed->second.erase(link);
    if (armed->second.empty()) armed_.erase(armed);
  }
  talk.set.erase(watch);
  // It was taken away from a server that had not come to the cause yet.
  const auto due = talk.due.find(watch);
  if (due != talk.due.end() && due->second > zxid) talk.due.erase(due);
}

void Witness::over(std::uint64_t link) {
  const auto talk = talks_.find(link);
  if (talk == talks_.end()) return;
  if (!talk->second.set.empty()) before_[talk->second.client] = std::move(talk->second.set);
  talks_.erase(talk);
}

// ---- The wire -----------------------------------------------------------------------------------

std::optional<Witness::Wrong> Witness::sent(const testing::Message& message) {
  const bool is_out_of_turn = message.xid == wire::kPingXid || message.xid == wire::kAuthXid;
  if (message.op == Op::kCreateSession) {
    if (message.way == Way::kRequest) {
      talks_[message.link].client = message.host == nullptr ? 0 : message.host->number;
    }
    return std::nullopt;
  }
  if (message.way == Way::kRequest) {
    if (!is_out_of_turn) ask(message);
    return std::nullopt;
  }
  const auto talk = talks_.find(message.link);
  if (talk == talks_.end()) return std::nullopt;
  ++looked_at_;
  if (message.xid == wire::kNotificationXid) return event(talk->second, message);
  for (const auto& [watch, cause] : talk->second.due) {
    if (cause > message.zxid) continue;
    return Wrong{false, "an answer to " + std::string(wire::name(message.op)) + " with zxid " +
                            std::to_string(message.zxid) + " left before the event on " +
                            watch.first + ", whose cause is " + std::to_string(cause)};
  }
  return is_out_of_turn ? std::nullopt : answer(talk->second, message);
}

void Witness::ask(const testing::Message& message) {
  const auto talk = talks_.find(message.link);
  if (talk == talks_.end()) return;
  Request request{message.xid, message.op, {}, {}};
  switch (message.op) {
    case Op::kExists:
    case Op::kGetData:
    case Op::kGetChildren:
    case Op::kGetChildren2: {
      const auto body = read<wire::PathWatch>(message.body);
      const bool is_list = message.op == Op::kGetChildren || message.op == Op::kGetChildren2;
      request.path = body.path;
      if (body.watch) {
        request.watches.emplace_back(body.path, is_list ? On::kChildren : On::kNode);
      }
      break;
    }
    case Op::kSetWatches:
    case Op::kSetWatches2: {
      const auto body = read<wire::SetWatches>(message.body);
      for (const auto& path : body.data) request.watches.emplace_back(path, On::kNode);
      for (const auto& path : body.exists) request.watches.emplace_back(path, On::kNode);
      for (const auto& path : body.children) request.watches.emplace_back(path, On::kChildren);
      break;
    }
    case Op::kRemoveWatches: {
      const auto body = read<wire::PathWatcherType>(message.body);
      if (body.type != wire::WatcherType::kData) {
        request.watches.emplace_back(body.path, On::kChildren);
      }
      if (body.type != wire::WatcherType::kChildren) {
        request.watches.emplace_back(body.path, On::kNode);
      }
      break;
    }
    default: break;
  }
  talk->second.requests.push_back(std::move(request));
}

std::optional<Witness::Wrong> Witness::event(Talk& talk, const testing::Message& message) {
  const auto body = read<wire::WatcherEvent>(message.body);
  const auto found = marks_.find(body.path);
  const Marks marks = found == marks_.end() ? Marks{} : found->second;
  std::int64_t cause = 1;
  switch (body.type) {
    case wire::EventType::kCreated: cause = marks.created; break;
    case wire::EventType::kDeleted: cause = marks.deleted; break;
    // A watch that is restored finds a node that was made anew.
    case wire::EventType::kDataChanged: cause = std::max(marks.changed, marks.created); break;
    case wire::EventType::kChildrenChanged: cause = marks.children; break;
    default: return std::nullopt;
  }
  const bool is_of_children = body.type == wire::EventType::kChildrenChanged;
  const bool is_end = body.type == wire::EventType::kDeleted;
  std::vector<Watch> told;
  if (!is_of_children) told.emplace_back(body.path, On::kNode);
  if (is_of_children || is_end) told.emplace_back(body.path, On::kChildren);
  for (const Watch& watch : told) {
    talk.due.erase(watch);
    for (Request& request : talk.requests) {
      if (request.restores()) std::erase(request.watches, watch);
    }
  }
  if (cause != 0) return std::nullopt;
  return Wrong{true, "an event on " + body.path + " left before its cause was durable"};
}

std::optional<Witness::Wrong> Witness::answer(Talk& talk, const testing::Message& message) {
  if (talk.requests.empty() || talk.requests.front().xid != message.xid) return std::nullopt;
  const Request request = std::move(talk.requests.front());
  talk.requests.pop_front();
  const bool is_ok = message.err == Err::kOk;
  const bool is_set = is_ok || (request.op == Op::kExists && message.err == Err::kNoNode);
  if (request.op != Op::kRemoveWatches) {
    if (is_set) set(message.link, talk, request, message.zxid);
  } else if (is_ok) {
    for (const Watch& watch : request.watches) disarm(message.link, talk, watch, message.zxid);
  }
  if (is_false(request, message)) {
    return Wrong{true, "an answer to " + std::string(wire::name(message.op)) + " " + request.path +
                           " does not show what is there"};
  }
  if (!is_ok || !is_dirty(request, message)) return std::nullopt;
  return Wrong{true, "an answer to " + std::string(wire::name(message.op)) + " " + request.path +
                         " left before what it shows was durable"};
}

bool Witness::has_been(const std::string& path) const {
  const auto marks = marks_.find(path);
  return marks != marks_.end() && marks->second.created != 0;
}

bool Witness::is_false(const Request& request, const testing::Message& message) const {
  const bool is_list = request.op == Op::kGetChildren || request.op == Op::kGetChildren2;
  const bool is_read = is_list || request.op == Op::kGetData || request.op == Op::kExists;
  // A read is answered from what was there at its zxid, and the reference knows the newest only.
  if (!is_read || message.server != 0 || message.zxid < applied_) return false;
  const tree::Node* const node = reference_.nodes().find(request.path);
  if (message.err == Err::kNoNode) return node != nullptr;
  if (message.err != Err::kOk) return false;
  if (node == nullptr) return true;
  const auto differs = [stat = node->stat()](const wire::WireStat& shown) {
    return shown.czxid != stat.czxid || shown.mzxid != stat.mzxid || shown.pzxid != stat.pzxid ||
           shown.version != stat.version || shown.ephemeral_owner != stat.ephemeral_owner;
  };
  if (request.op == Op::kExists) return differs(read<wire::StatReply>(message.body).stat);
  if (request.op == Op::kGetData) {
    const auto body = read<wire::GetDataReply>(message.body);
    return body.data != node->data || differs(body.stat);
  }
  const std::vector<std::string> children = request.op == Op::kGetChildren
                                                ? read<wire::ChildrenReply>(message.body).children
                                                : read<wire::Children2Reply>(message.body).children;
  return std::set<std::string_view>(children.begin(), children.end()) !=
         std::set<std::string_view>(node->children.begin(), node->children.end());
}

bool Witness::is_dirty(const Request& request, const testing::Message& message) const {
  const auto is_late = [this](const wire::WireStat& stat) {
    return std::max({stat.czxid, stat.mzxid, stat.pzxid}) > applied_;
  };
  const auto is_unheard_of = [&](const std::vector<std::string>& children) {
    return request.path != "/" && std::ranges::any_of(children, [&](const std::string& child) {
             return !has_been(request.path + "/" + child);
           });
  };
  switch (request.op) {
    case Op::kExists:
    case Op::kSetData: return is_late(read<wire::StatReply>(message.body).stat);
    case Op::kGetData: return is_late(read<wire::GetDataReply>(message.body).stat);
    case Op::kCreate2:
    case Op::kCreateContainer: return is_late(read<wire::Create2Reply>(message.body).stat);
    case Op::kGetChildren2: {
      const auto body = read<wire::Children2Reply>(message.body);
      return is_late(body.stat) || is_unheard_of(body.children);
    }
    case Op::kGetChildren: return is_unheard_of(read<wire::ChildrenReply>(message.body).children);
    case Op::kMulti: {
      const auto body = read<wire::MultiReply>(message.body);
      const bool is_refused = body.results.empty() || body.results.front().op == Op::kError;
      return !is_refused && message.zxid > applied_;
    }
    case Op::kCreate:
    case Op::kDelete: return message.zxid > applied_;
    default: return false;
  }
}

}  // namespace latchkey::sim
