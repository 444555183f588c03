#include "crash_client.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace latchkey::test_support {
namespace {

using wire::CreateMode;
using wire::Err;
using wire::Op;
using What = History::Seen::What;

constexpr int kTimeoutMs = 60'000;
constexpr std::chrono::seconds kPatience(60);

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// "/c2/mark" is of client 2.
int session_of(const std::string& path) { return std::stoi(path.substr(2)); }

std::string sequence_name(std::int64_t number) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%010d", static_cast<int>(number));
  return std::string("s-") + digits;
}

wire::Create node(const std::string& path, CreateMode mode, const std::string& data) {
  wire::Create request = create_request(path, mode);
  request.data = data;
  return request;
}

bool is_ephemeral(CreateMode mode) {
  return mode == CreateMode::kEphemeral || mode == CreateMode::kEphemeralSequential;
}

}  // namespace

CrashClient::CrashClient(std::string endpoint, int number, int crowd, std::uint64_t seed)
    : endpoint_(std::move(endpoint)),
      number_(number),
      crowd_(crowd),
      random_(seed),
      client_(endpoint_, kPatience),
      history_({{{"mark", {"0", false}}}, 1, 0}) {}

bool CrashClient::set_up() {
  sessions_ = {std::nullopt};
  if (!open_session()) return false;
  const auto made =
      client_.call(Op::kCreate, create_request(folder(number_), CreateMode::kPersistent));
  if (!made || made->header.err != Err::kOk) return false;
  const auto marked = client_.call(Op::kCreate, node(own("mark"), CreateMode::kPersistent, "0"));
  return marked && marked->header.err == Err::kOk;
}

bool CrashClient::open_session() {
  const auto opened = client_.connect(kTimeoutMs, {}, seen_zxid_);
  if (!opened || opened->session_id == 0) return false;
  sessions_.back() = opened;
  return true;
}

bool CrashClient::watch_neighbour() {
  const std::string path = folder((number_ + 1) % crowd_);
  pending_.push_back(
      {Pending::Kind::kOther,
       client_.add(Op::kAddWatch, wire::AddWatch{path, wire::AddWatchMode::kPersistentRecursive})});
  return client_.flush();
}

void CrashClient::run(Fuse& fuse) {
  if (!watch_neighbour() || !receive_all(fuse)) return;
  while (true) {
    const std::uint64_t window = 1 + random_.below(6);
    for (std::uint64_t i = 0; i < window; ++i) {
      if (random_.below(3) == 0) {
        add_read();
      } else {
        add_write();
      }
    }
    if (random_.below(12) == 0) add_close();
    const bool closes = pending_.back().kind == Pending::Kind::kClose;
    fuse.burn();
    if (!client_.flush()) return;
    fuse.burn();
    if (!receive_all(fuse)) return;
    if (!closes) continue;
    sessions_.emplace_back();
    fuse.burn();
    if (!open_session() || !watch_neighbour() || !receive_all(fuse)) return;
  }
}

void CrashClient::add_write() {
  ++request_;
  const std::string text = std::to_string(request_);
  const std::optional<std::string> removable = any_removable();
  const std::uint64_t choice = random_.below(7);
  if (choice == 0) return add_create("n-" + text, CreateMode::kPersistent, "n-" + text);
  if (choice == 1) return add_create("e-" + text, CreateMode::kEphemeral, "e-" + text);
  if (choice == 2) {
    const CreateMode mode = random_.below(2) == 0 ? CreateMode::kPersistentSequential
                                                  : CreateMode::kEphemeralSequential;
    return add_create("s-", mode, sequence_name(history_.newest().creates));
  }
  if (choice == 3) return add_multi();
  History::State next = history_.newest();
  if (choice <= 5 && removable) {
    next.nodes.erase(*removable);
    pending_.push_back(
        {Pending::Kind::kWrite, client_.add(Op::kDelete, wire::PathVersion{own(*removable), -1})});
  } else {
    next.nodes["mark"].data = text;
    pending_.push_back(
        {Pending::Kind::kWrite, client_.add(Op::kSetData, wire::SetData{own("mark"), text, -1})});
  }
  history_.ask(std::move(next));
}

void CrashClient::add_create(const std::string& name, CreateMode mode, const std::string& made) {
  const std::string data = std::to_string(request_);
  History::State next = history_.newest();
  next.nodes[made] = {data, is_ephemeral(mode)};
  ++next.creates;
  history_.ask(std::move(next));
  const Op op = random_.below(2) == 0 ? Op::kCreate : Op::kCreate2;
  pending_.push_back({Pending::Kind::kWrite, client_.add(op, node(own(name), mode, data))});
}

void CrashClient::add_multi() {
  const std::string text = std::to_string(request_);
  const std::optional<std::string> removable = any_removable();
  History::State next = history_.newest();
  wire::Multi multi;
  multi.ops.push_back({Op::kSetData, wire::SetData{own("mark"), text, -1}});
  for (const char* half : {"a", "b"}) {
    const std::string name = "n-" + text + half;
    multi.ops.push_back({Op::kCreate, node(own(name), CreateMode::kPersistent, text)});
    next.nodes[name] = {text, false};
  }
  next.creates += 2;
  next.nodes["mark"].data = text;
  if (removable) {
    multi.ops.push_back({Op::kDelete, wire::PathVersion{own(*removable), -1}});
    next.nodes.erase(*removable);
  }
  history_.ask(std::move(next));
  pending_.push_back({Pending::Kind::kMulti, client_.add(Op::kMulti, multi)});
}

void CrashClient::add_close() {
  History::State next = history_.newest();
  // Without a node that goes with the session nobody could tell from the folder that it went.
  if (std::erase_if(next.nodes, [](const auto& node) { return node.second.ephemeral; }) == 0) {
    return;
  }
  ++next.closes;
  history_.ask(std::move(next));
  pending_.push_back({Pending::Kind::kClose, client_.add(Op::kCloseSession, wire::Empty{})});
}

void CrashClient::add_read() {
  const int owner = static_cast<int>(random_.below(static_cast<std::uint64_t>(crowd_)));
  const std::uint64_t choice = random_.below(5);
  if (choice == 0) {
    pending_.push_back(
        {Pending::Kind::kOther, client_.add(Op::kSync, wire::PathOnly{folder(owner)})});
  } else if (choice <= 2) {
    pending_.push_back({Pending::Kind::kList,
                        client_.add(Op::kGetChildren2, wire::PathWatch{folder(owner), false}),
                        owner});
  } else {
    // The folder that is watched as a whole would have each change heard once all the same.
    const wire::PathWatch mark{folder(owner) + "/mark", choice == 3};
    pending_.push_back({Pending::Kind::kMark, client_.add(Op::kGetData, mark), owner});
  }
}

std::optional<std::string> CrashClient::any_removable() {
  const auto& nodes = history_.newest().nodes;
  if (nodes.size() < 2) return std::nullopt;
  auto chosen = nodes.begin();
  std::advance(chosen, random_.below(nodes.size()));
  if (chosen->first == "mark") return std::nullopt;
  return chosen->first;
}

bool CrashClient::receive_all(Fuse& fuse) {
  while (!pending_.empty()) {
    const auto reply = client_.receive();
    if (!reply) return false;
    fuse.burn();
    if (reply->header.xid == wire::kNotificationXid) {
      take_notice(*reply);
      continue;
    }
    const Pending pending = pending_.front();
    pending_.pop_front();
    if (reply->header.xid != pending.xid || reply->header.err != Err::kOk) {
      complain("request " + std::to_string(pending.xid) + " is answered by " +
               std::to_string(reply->header.xid) + " with " +
               std::to_string(static_cast<int>(reply->header.err)));
      return false;
    }
    take_reply(pending, *reply);
  }
  return true;
}

void CrashClient::take_notice(const RawClient::Reply& notice) {
  const auto event = notice.as<wire::WatcherEvent>();
  if (!event || !event->path.starts_with("/c")) return;
  const int owner = session_of(event->path);
  const std::string name = last_name(event->path);
  if (event->type == wire::EventType::kCreated) {
    see(owner, {What::kCreated, {}, name});
  } else if (event->type == wire::EventType::kDeleted) {
    see(owner, {What::kDeleted, {}, name});
  } else if (event->type == wire::EventType::kDataChanged) {
    see(owner, {What::kMarkChanged, {}, {}, ++changes_seen_[owner]});
  }
}

void CrashClient::take_reply(const Pending& pending, const RawClient::Reply& reply) {
  seen_zxid_ = std::max(seen_zxid_, reply.header.zxid);
  if (pending.kind == Pending::Kind::kMulti) {
    const auto multi = reply.as<wire::MultiReply>();
    if (!multi || multi->results.front().op == Op::kError) {
      return complain("a multi is refused");
    }
    history_.answer();
  } else if (pending.kind == Pending::Kind::kWrite || pending.kind == Pending::Kind::kClose) {
    history_.answer();
  } else if (pending.kind == Pending::Kind::kList) {
    const auto list = reply.as<wire::Children2Reply>();
    if (!list) return complain("an unreadable list");
    see(pending.owner,
        {What::kList, {list->children.begin(), list->children.end()}, {}, 0, list->stat.cversion});
  } else if (pending.kind == Pending::Kind::kMark) {
    const auto mark = reply.as<wire::GetDataReply>();
    if (!mark) return complain("an unreadable answer");
    see(pending.owner, {What::kMark, {}, mark->data.value_or("")});
  }
}

std::multimap<int, History::Seen> CrashClient::take_seen() {
  changes_seen_.clear();
  return std::exchange(seen_, {});
}

std::optional<std::map<std::string, History::Node>> CrashClient::look(
    RawClient& reader, std::map<std::string, wire::WireStat>& stats) const {
  const auto list = reader.call(Op::kGetChildren2, wire::PathWatch{folder(number_), false});
  const auto children = list ? list->as<wire::Children2Reply>() : std::nullopt;
  if (!children) return std::nullopt;
  stats[""] = children->stat;
  std::map<std::string, History::Node> nodes;
  for (const std::string& name : children->children) {
    const auto answer = reader.call(Op::kGetData, wire::PathWatch{own(name), false});
    const auto data = answer ? answer->as<wire::GetDataReply>() : std::nullopt;
    if (!data) return std::nullopt;
    nodes[name] = {data->data.value_or(""), data->stat.ephemeral_owner != 0};
    stats[name] = data->stat;
  }
  return nodes;
}

std::string CrashClient::come_back(const std::vector<History::Seen>& seen,
                                   std::int64_t seen_by_anybody) {
  RawClient reader(endpoint_, kPatience);
  if (!reader.connect(kTimeoutMs, {}, seen_by_anybody))
    return "who saw the newest zxid is turned away";
  const auto now = reader.call(Op::kSync, wire::PathOnly{"/"});
  if (!now || now->header.zxid <= seen_by_anybody) return "H82: the zxid did not grow";
  std::map<std::string, wire::WireStat> stats;
  const auto nodes = look(reader, stats);
  if (!nodes) return "the folder cannot be read";
  const std::optional<std::size_t> index = history_.find(*nodes, stats[""].cversion);
  if (!index) return "the folder is in a state that never was: something is half done";
  if (*index < history_.answered()) return "an acknowledged write is lost";
  for (const History::Seen& one : seen) {
    const std::optional<std::size_t> first = history_.first(one);
    if (!first) return "somebody saw what never was: " + one.text;
    if (*first > *index) return "H78: somebody saw what is lost: " + one.text;
  }
  if (std::string wrong = check_sessions(history_.at(*index)); !wrong.empty()) return wrong;
  for (const auto& [name, stat] : stats) {
    const auto known = czxids_.find(name);
    if (known != czxids_.end() && known->second != stat.czxid) return "H79: another czxid: " + name;
    if (stat.ephemeral_owner != 0 && stat.ephemeral_owner != sessions_.back()->session_id) {
      return "H80: the owner is another: " + name;
    }
  }
  czxids_.clear();
  for (const auto& [name, stat] : stats) czxids_[name] = stat.czxid;
  history_.settle(*index);
  pending_.clear();
  return {};
}

std::string CrashClient::check_sessions(const History::State& state) {
  const std::size_t live = state.closes - closed_before_;
  for (std::size_t i = 0; i < live && i < sessions_.size(); ++i) {
    if (!sessions_[i]) continue;
    const auto refused = RawClient(endpoint_, kPatience).connect(kTimeoutMs, *sessions_[i]);
    if (!refused || refused->session_id != 0) return "H80: a closed session lives again";
  }
  std::optional<wire::ConnectResponse> session;
  if (live < sessions_.size()) session = sessions_[live];
  const auto attached =
      client_.connect(kTimeoutMs, session.value_or(wire::ConnectResponse{}), seen_zxid_);
  if (!attached || attached->session_id == 0) return "H80: the session is lost";
  if (session && session->session_id != attached->session_id) return "H80: another session";
  sessions_ = {attached};
  closed_before_ = state.closes;
  return {};
}

}  // namespace latchkey::test_support
