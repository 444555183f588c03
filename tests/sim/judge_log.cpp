#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sim/judge.hpp"
#include "tree/record.hpp"

// What the judge makes of the log, the wire and the end of a run.
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using testing::Way;

bool is_reader(const std::string& path) { return path.find("__READ__") != std::string::npos; }

/// A tree without the number of its newest record, which every item begins with: refusals and new
/// epochs raise it.
std::string picture(const tree::Tree& tree) {
  std::string all;
  tree.save([&](std::string_view item) { all += item.substr(8); });
  return all;
}

void carry_out(tree::Tree& tree, const tree::Record& record) {
  static_cast<void>(
      tree.apply(record, [](tree::PeerId) { return std::span<const tree::Identity>(); }));
}

}  // namespace

// ---- The log and the wire ---------------------------------------------------------------------

void Judge::apply_change(std::int64_t zxid, const std::string& path, bool is_create,
                         std::int64_t session) {
  const auto site = by_path_.find(parent_of(path));
  if (site == by_path_.end()) return;
  Resource& resource = resources_[site->second];
  if (site->first.ends_with("/leases")) {
    if (!is_create) {
      resource.leases.erase(path);
    } else if (tree::Owner::is_session(session)) {
      const Permit permit{zxid, session, waited_for(resource, path, session)};
      resource.leases.emplace(path, permit);
      resource.past_leases.insert_or_assign(path, permit);
    }
    return;
  }
  if (is_create) {
    if (tree::Owner::is_session(session)) {
      resource.queue.emplace(zxid, Entry{path, session, is_reader(path)});
      resource.ever.emplace(zxid, Entry{path, session, is_reader(path)});
    }
    return;
  }
  const auto gone = std::ranges::find_if(
      resource.queue, [&](const auto& entry) { return entry.second.path == path; });
  if (gone == resource.queue.end()) return;
  if (gone->second.owner != session) {
    resource.removed.emplace(path, has_turn(resource, gone->first));
    ++resource.robbed[gone->second.owner];
  }
  resource.queue.erase(gone);
}

bool Judge::has_turn(const Resource& resource, std::int64_t zxid) {
  const Entry& own = resource.queue.at(zxid);
  return std::ranges::none_of(resource.queue, [&](const auto& other) {
    const bool excludes = !own.is_shared || !other.second.is_shared;
    return other.first < zxid && excludes && other.second.owner != own.owner;
  });
}

std::string Judge::waited_for(Resource& resource, const std::string& permit, std::int64_t session) {
  if (resource.queue.empty()) return {};
  const Entry& first = resource.queue.begin()->second;
  const std::string name = without_number(permit);
  if (first.owner == session || resource.excused.contains(name)) return {};
  // Who was robbed of its place may not have heard of it yet.
  const auto robbed = resource.robbed.find(session);
  if (robbed == resource.robbed.end()) return first.path;
  if (--robbed->second == 0) resource.robbed.erase(robbed);
  resource.excused.insert(name);
  return {};
}

void Judge::on_applied(const testing::LogEntry& entry) {
  applied_ = entry.zxid;
  const auto record = tree::decode_record(entry.zxid, entry.bytes);
  if (!record) return fail(Invariant::kReplay, "a record in the log cannot be read");
  carry_out(reference_, *record);
  witness_.applied(*record);
  if (record->kind == tree::Record::Kind::kCloseSession) check_session(record->session);
  for (const tree::Change& change : record->changes) {
    resized(entry.zxid, change);
    entered(change);
    if (change.kind == tree::Change::Kind::kCreate) {
      apply_change(entry.zxid, change.path, true, change.owner);
    } else if (change.kind == tree::Change::Kind::kDelete) {
      apply_change(entry.zxid, change.path, false, record->session);
      if (record->kind == tree::Record::Kind::kCloseSession) taken_along(change.path);
    }
  }
}

void Judge::resized(std::int64_t zxid, const tree::Change& change) {
  for (std::size_t i = 0; i < plan_.sites.size(); ++i) {
    if (plan_.sites[i].path != change.path) continue;
    Resource& resource = resources_[i];
    // Whoever removes the directory removes what a holder wrote there.
    if (change.kind == tree::Change::Kind::kDelete) resource.vanished = Instant::min();
    // A name is its own entry.
    if (change.kind == tree::Change::Kind::kCreate) {
      resource.ever.emplace(zxid, Entry{change.path, change.owner, false});
    }
    if (plan_.sites[i].sort == Sort::kDelayed && change.data) marked(resource, *change.data);
    if (plan_.sites[i].sort != Sort::kSemaphore || !change.data) continue;
    resource.sizes.emplace_back(zxid, std::atoi(change.data->c_str()));
  }
}

void Judge::entered(const tree::Change& change) {
  const bool is_write = change.kind == tree::Change::Kind::kSetData && change.data;
  if (!is_write || !change.path.starts_with(kLedger)) return;
  checked(Invariant::kFence);
  const std::int64_t token = std::atoll(change.data->c_str());
  std::int64_t& newest = ledgers_[change.path];
  if (token < newest) {
    fail(Invariant::kFence, "token " + std::to_string(token) + " wrote to " + change.path +
                                " under guard after " + std::to_string(newest));
  }
  newest = std::max(newest, token);
}

void Judge::marked(Resource& resource, const std::string& mark) {
  constexpr std::string_view kHeld = "held ";
  if (!mark.starts_with(kHeld)) return;
  const auto entry = resource.ever.find(std::atoll(mark.c_str() + kHeld.size()));
  if (entry == resource.ever.end()) return;
  const bool is_early = std::ranges::any_of(world_.hosts(), [&](const auto& host) {
    return host->machine().session_id() == entry->second.owner && has_wrong_clock(host->process());
  });
  // By its clock the delay is over, and once it lets go nobody else waits either.
  if (is_early) resource.vanished = Instant::min();
}

void Judge::taken_along(const std::string& path) {
  if (unreleased_.erase(path) == 0) return;
  const auto site = by_path_.find(parent_of(path));
  if (site != by_path_.end()) resources_[site->second].vanished = world_.now();
}

void Judge::on_fault(testing::Fault fault, const testing::Process* process) {
  const bool is_leader = process == &world_.leader().process();
  if (!is_leader || fault != testing::Fault::kWallJump) return;
  wall_clock_is_ahead_ = wall_clock_is_ahead_ || process->wall_ahead() > 0ms;
}

void Judge::on_over(std::uint64_t link, testing::Over) {
  witness_.over(link);
  steadiness_.over(link);
}

void Judge::on_lost(const testing::Message& message) {
  // Its client takes it for sent. An answer that is lost is one that never arrives.
  if (message.way != Way::kRequest) return;
  steadiness_.sent(message, world_.now());
  note_create(message);
}

void Judge::note_create(const testing::Message& message) {
  wire::Reader reader(message.body);
  if (message.op == wire::Op::kCreate || message.op == wire::Op::kCreate2) {
    std::string path;
    reader(path);
    wanted_.emplace(std::move(path), world_.now());
  } else if (message.op == wire::Op::kMulti) {
    wire::Multi multi;
    reader(multi);
    for (const wire::MultiOp& op : multi.ops) {
      const auto* const create = std::get_if<wire::Create>(&op.body);
      if (create != nullptr) wanted_.emplace(create->path, world_.now());
    }
  }
}

void Judge::on_arrived(std::uint64_t link, Way way, std::size_t messages) {
  steadiness_.arrived(link, way, messages, world_.now());
}

void Judge::on_sent(const testing::Message& message) {
  steadiness_.sent(message, world_.now());
  const std::uint64_t looked_at = witness_.looked_at();
  if (const auto wrong = witness_.sent(message)) {
    fail(wrong->is_undurable ? Invariant::kDurable : Invariant::kWire, wrong->what);
  }
  if (witness_.looked_at() != looked_at) checked(Invariant::kDurable);
  Conversation& talk = conversations_[message.link];
  if (message.op == wire::Op::kCreateSession) {
    talk.server = message.server;
    talk.is_greeted = message.way == Way::kReply;
    return;
  }
  if (message.xid == wire::kNotificationXid) return;
  if (message.way == Way::kRequest) {
    note_create(message);
    return talk.unanswered.push_back(message.xid);
  }
  checked(Invariant::kWire);
  if (talk.unanswered.empty() || talk.unanswered.front() != message.xid) {
    return fail(Invariant::kWire, "an answer to request " + std::to_string(message.xid) +
                                      " that is not the oldest unanswered one");
  }
  talk.unanswered.pop_front();
  // A simulated follower may get to know of a write, and answer a read from it, before it passes on
  // the write's own answer.
  const bool is_real = message.server == 0;
  if (is_real && message.zxid > 0 && message.zxid < talk.zxid) {
    fail(Invariant::kWire, "the answer to " + std::string(wire::name(message.op)) +
                               " from server " + std::to_string(message.server) + " has zxid " +
                               std::to_string(message.zxid) + " after " +
                               std::to_string(talk.zxid));
  }
  talk.zxid = std::max(talk.zxid, message.zxid);
}

void Judge::on_recovered(const testing::Recovery& recovery) {
  checked(Invariant::kDurable);
  if (recovery.lost)
    fail(Invariant::kDurable, "a record that had been applied is gone after a restart");
  is_recovered_ = true;
}

void Judge::after_event() {
  constexpr std::uint64_t kSometimes = 16;
  // In a small world little happens, and somebody may sleep all the same.
  const bool is_time = world_.now() - looked_at_ > plan_.timeout / 48;
  if (++events_ % kSometimes == 0 || is_time) {
    looked_at_ = world_.now();
    check_sleepers();
    check_watches();
    check_suspects();
  }
  if (world_.now() - listened_at_ > plan_.timeout / 48) {
    listened_at_ = world_.now();
    for (auto& [id, hold] : holds_) check_told(hold);
  }
  if (!is_recovered_ || !world_.leader().is_up()) return;
  is_recovered_ = false;
  check_tree(world_.leader().tree(), "the recovered leader");
}

void Judge::check_tree(const tree::Tree& tree, const std::string& whose) {
  checked(Invariant::kReplay);
  if (picture(tree) == picture(reference_)) return;
  fail(Invariant::kReplay, "the tree of " + whose + " is not what the log makes of it");
}

void Judge::check_followers() {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const testing::Follower& follower = world_.follower(i);
    Copy& copy = copies_[i];
    for (; copy.position < follower.position(); ++copy.position) {
      const testing::LogEntry& entry = world_.log()[copy.position];
      carry_out(copy.tree, *tree::decode_record(entry.zxid, entry.bytes));
    }
    checked(Invariant::kReplay);
    if (picture(copy.tree) == picture(follower.tree())) continue;
    fail(Invariant::kReplay,
         "the tree of follower " + std::to_string(i) + " is not what the log makes of it so far");
  }
}

// ---- The end ----------------------------------------------------------------------------------

void Judge::check_liveness(const std::string& waits) {
  checked(Invariant::kLiveness);
  const std::optional<Error>& trouble = world_.leader().trouble();
  if (!waits.empty() && !world_.leader().is_up() && trouble) {
    return fail(Invariant::kReplay, "the leader does not start again: " + trouble->message());
  }
  if (!waits.empty()) fail(Invariant::kLiveness, "without faults, and still waiting:" + waits);
}

void Judge::check_quiet() {
  if (!world_.leader().is_up()) {
    const std::optional<Error>& trouble = world_.leader().trouble();
    return fail(Invariant::kLiveness,
                "the leader is down: " + (trouble ? trouble->message() : std::string("no reason")));
  }
  checked(Invariant::kNoOrphan);
  world_.leader().tree().nodes().visit([&](std::string_view path, const tree::Node& node) {
    if (tree::Owner::is_session(node.owner)) {
      fail(Invariant::kNoOrphan, std::string(path) + " is left");
    }
  });
  checked(Invariant::kNoWatch);
  for (const auto& host : world_.hosts()) {
    if (host->process().is_alive() && host->machine().watch_count() != 0) {
      fail(Invariant::kNoWatch, host->process().name() + " still has a watch");
    }
  }
  if (world_.leader().tree().watches().size() != 0) {
    fail(Invariant::kNoWatch, "the leader still has a watch");
  }
  for (std::size_t i = 0; i < world_.followers(); ++i) {
    if (world_.follower(i).tree().watches().size() == 0) continue;
    fail(Invariant::kNoWatch, "follower " + std::to_string(i) + " still has a watch");
  }
}

void Judge::check_replay() {
  if (violation_) return;
  const auto is_idle = [&] { return world_.leader().service().in_flight() == 0; };
  if (!world_.run_until(is_idle, 10s)) return fail(Invariant::kReplay, "the leader is never idle");
  check_tree(world_.leader().tree(), "the leader");
  world_.crash(0, testing::Crash::kProcess);
  world_.restart(0);
  if (!world_.leader().is_up()) return fail(Invariant::kReplay, "the leader does not start again");
  check_tree(world_.leader().tree(), "the recovered leader");
  check_followers();
}

}  // namespace latchkey::sim
