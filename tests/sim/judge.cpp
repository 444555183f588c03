#include "sim/judge.hpp"

#include <algorithm>
#include <utility>

#include "tree/record.hpp"

namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using testing::Way;

/// How late an answer may be by the asker's own clock: the callback still has to be called.
constexpr Duration kLate = 100ms;

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool is_reader(const std::string& path) { return path.find("__READ__") != std::string::npos; }

}  // namespace

std::string_view name(Invariant invariant) {
  switch (invariant) {
    case Invariant::kServerOrder: return "server order";
    case Invariant::kBelief: return "belief";
    case Invariant::kTokens: return "tokens";
    case Invariant::kFence: return "fence";
    case Invariant::kOneOutcome: return "one outcome";
    case Invariant::kNoOrphan: return "no orphan";
    case Invariant::kNoWatch: return "no watch";
    case Invariant::kAwake: return "awake";
    case Invariant::kLiveness: return "liveness";
    case Invariant::kDurable: return "durable";
    case Invariant::kWire: return "wire";
    case Invariant::kReplay: return "replay";
  }
  return "unknown";
}

Judge::Judge(testing::World& world, const Plan& plan) : world_(world), plan_(plan) {
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    const Site& site = plan.sites[i];
    Resource resource;
    resource.sort = site.sort;
    resource.seats = site.sort == Sort::kSemaphore                          ? site.size
                     : site.sort == Sort::kRw || site.sort == Sort::kRwHerd ? kAllSeats
                                                                            : 1;
    resources_.push_back(std::move(resource));
    if (site.sort == Sort::kSemaphore) {
      by_path_.emplace(site.path + "/locks", i);
    } else if (site.sort != Sort::kMulti) {
      by_path_.emplace(site.path, i);
    }
  }
  world_.watch(*this);
}

void Judge::fail(Invariant invariant, std::string what) {
  if (!violation_) violation_ = Violation{invariant, std::move(what), world_.now()};
}

void Judge::hindered(const testing::Process& process, Instant until) {
  Instant& mark = hindered_until_[process.id()];
  mark = std::max(mark, until);
}

// ---- Requests ---------------------------------------------------------------------------------

Judge::AskId Judge::asked(std::size_t client, testing::Process& process, Instant deadline) {
  asks_.emplace(++last_, Ask{client, &process, deadline, world_.timeline().now()});
  return last_;
}

void Judge::answered(AskId id) {
  checked(Invariant::kOneOutcome);
  const auto ask = asks_.find(id);
  if (ask == asks_.end()) return fail(Invariant::kOneOutcome, "a request was answered twice");
  const Ask& one = ask->second;
  const auto hindered = hindered_until_.find(one.process->id());
  const bool was_free = hindered == hindered_until_.end() || hindered->second < one.since;
  if (was_free && one.process->now() > one.deadline + kLate) {
    fail(Invariant::kOneOutcome, one.process->name() + " got an answer after its deadline");
  }
  asks_.erase(ask);
}

// ---- Holds ------------------------------------------------------------------------------------

bool Judge::is_mistrusted(const Announcement& one) const {
  return ended_early_.contains(one.session) ||
         std::ranges::find(mistrusted_, one.process->id()) != mistrusted_.end();
}

bool Judge::believes(const Announcement& one) {
  bool answer = false;
  world_.run_as(*one.process, [&] { answer = one.believes(); });
  return answer;
}

bool Judge::is_believed(std::size_t client) {
  return std::ranges::any_of(holds_, [&](const auto& hold) {
    return hold.second.client == client && believes(hold.second);
  });
}

Judge::HoldId Judge::granted(Announcement announcement) {
  ++grants_;
  const HoldId id = ++last_;
  // An announcement that comes too late to be believed is no belief, and the client knows.
  const bool counts = believes(announcement);
  for (const Share& share : announcement.shares) {
    check_queue(announcement, share);
    if (!counts) continue;
    check_belief(announcement, share);
    check_tokens(announcement, share);
  }
  for (const Share& share : announcement.shares) resources_[share.site].holds.push_back(id);
  holds_.emplace(id, std::move(announcement));
  return id;
}

void Judge::check_queue(const Announcement& one, const Share& share) {
  const Resource& resource = resources_[share.site];
  if (resource.sort == Sort::kName || resource.sort == Sort::kSemaphore) return;
  checked(Invariant::kServerOrder);
  for (const auto& [zxid, entry] : resource.queue) {
    if (zxid >= one.token.zxid()) break;
    if (share.is_shared && entry.is_shared) continue;
    // The session counts an entry of its own whose hold has ended, if only by its clock, as gone.
    const bool is_held = std::ranges::any_of(holds_, [&, &path = entry.path](const auto& hold) {
      const auto& nodes = hold.second.nodes;
      return std::ranges::find(nodes, path) != nodes.end() && believes(hold.second);
    });
    if (entry.owner == one.session && !is_held) continue;
    // A multi-lock's token is its newest member's; all were made in one transaction.
    if (std::ranges::find(one.nodes, entry.path) != one.nodes.end()) continue;
    return fail(Invariant::kServerOrder, one.process->name() + " announced " +
                                             (one.nodes.empty() ? "" : one.nodes.front()) +
                                             " while " + entry.path + " stood before it");
  }
}

void Judge::check_belief(const Announcement& one, const Share& share) {
  Resource& resource = resources_[share.site];
  checked(Invariant::kBelief);
  if (is_mistrusted(one)) return;
  int seats = share.seats;
  std::string who = one.process->name() + " " + to_string(one.token);
  for (const HoldId id : resource.holds) {
    const Announcement& other = holds_.at(id);
    if (is_mistrusted(other) || !believes(other)) continue;
    for (const Share& taken : other.shares) {
      if (taken.site != share.site) continue;
      seats += taken.seats;
      who += ", " + other.process->name() + " " + to_string(other.token);
    }
  }
  if (seats > resource.seats) {
    fail(Invariant::kBelief, "too many hold " + plan_.sites[share.site].path + ": " + who);
  }
}

void Judge::check_tokens(const Announcement& one, const Share& share) {
  Resource& resource = resources_[share.site];
  if (resource.sort == Sort::kSemaphore || is_mistrusted(one)) return;
  checked(Invariant::kTokens);
  const Token& bar = share.is_shared ? resource.newest_exclusive : resource.newest;
  if (one.goes_on ? one.token < bar : one.token <= bar) {
    fail(Invariant::kTokens, one.process->name() + " holds " + plan_.sites[share.site].path +
                                 " with token " + to_string(one.token) + " after " +
                                 to_string(bar) +
                                 (one.nodes.empty() ? "" : ", node " + one.nodes.front()));
  }
  resource.newest = std::max(resource.newest, one.token);
  if (!share.is_shared) resource.newest_exclusive = one.token;
}

void Judge::writes(HoldId id) {
  const auto hold = holds_.find(id);
  if (hold == holds_.end()) return;
  const Announcement& one = hold->second;
  for (const Share& share : one.shares) {
    Resource& resource = resources_[share.site];
    if (share.is_shared || resource.sort == Sort::kSemaphore) continue;
    checked(Invariant::kFence);
    if (one.token >= resource.fence) {
      resource.fence = one.token;
      continue;
    }
    ++stale_writes_;
    if (!is_mistrusted(one) && believes(one)) {
      fail(Invariant::kFence, one.process->name() + " believes in token " + to_string(one.token) +
                                  " but the store has seen " + to_string(resource.fence));
    }
  }
}

void Judge::ended(HoldId id) {
  const auto hold = holds_.find(id);
  if (hold == holds_.end()) return;
  for (const Share& share : hold->second.shares) std::erase(resources_[share.site].holds, id);
  holds_.erase(hold);
}

void Judge::died(std::size_t client) {
  std::vector<HoldId> gone;
  for (const auto& [id, hold] : holds_) {
    if (hold.client == client) gone.push_back(id);
  }
  for (const HoldId id : gone) ended(id);
  std::erase_if(asks_, [&](const auto& ask) { return ask.second.client == client; });
}

// ---- The log and the wire ---------------------------------------------------------------------

void Judge::apply_change(std::int64_t zxid, const std::string& path, bool is_create,
                         std::int64_t owner) {
  const auto site = by_path_.find(parent_of(path));
  if (site == by_path_.end()) return;
  Resource& resource = resources_[site->second];
  if (is_create) {
    if (tree::Owner::is_session(owner)) {
      resource.queue.emplace(zxid, Entry{path, owner, is_reader(path)});
    }
    return;
  }
  std::erase_if(resource.queue, [&](const auto& entry) { return entry.second.path == path; });
}

void Judge::on_applied(const testing::LogEntry& entry) {
  applied_ = entry.zxid;
  const auto record = tree::decode_record(entry.zxid, entry.bytes);
  if (!record) return fail(Invariant::kReplay, "a record in the log cannot be read");
  for (const tree::Change& change : record->changes) {
    if (change.kind == tree::Change::Kind::kCreate) {
      apply_change(entry.zxid, change.path, true, change.owner);
    } else if (change.kind == tree::Change::Kind::kDelete) {
      apply_change(entry.zxid, change.path, false, 0);
    }
  }
}

void Judge::on_sent(const testing::Message& message) {
  if (message.op == wire::Op::kCreateSession || message.xid == wire::kNotificationXid) return;
  Conversation& talk = conversations_[message.link];
  if (message.way == Way::kRequest) return talk.unanswered.push_back(message.xid);
  checked(Invariant::kWire);
  if (talk.unanswered.empty() || talk.unanswered.front() != message.xid) {
    return fail(Invariant::kWire, "an answer to request " + std::to_string(message.xid) +
                                      " that is not the oldest unanswered one");
  }
  talk.unanswered.pop_front();
  const bool is_write = message.op == wire::Op::kCreate2 || message.op == wire::Op::kDelete ||
                        message.op == wire::Op::kSetData;
  if (is_write && message.err == wire::Err::kOk && message.zxid > applied_) {
    checked(Invariant::kDurable);
    fail(Invariant::kDurable,
         "an answer to " + std::string(wire::name(message.op)) + " left before it was durable");
  }
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

void Judge::on_recovered(bool lost) {
  checked(Invariant::kDurable);
  if (lost) fail(Invariant::kDurable, "a record that had been applied is gone after a restart");
}

// ---- The end ----------------------------------------------------------------------------------

void Judge::check_heads() {
  // Time for a dead process to run out.
  const Duration bound = 2 * plan_.timeout + 5s;
  for (Resource& resource : resources_) {
    checked(Invariant::kAwake);
    const std::int64_t head = resource.queue.empty() ? 0 : resource.queue.begin()->first;
    // Who waits for several locks may be first in one queue because of another.
    const bool is_held = !holds_.empty();
    if (head != resource.head || is_held) {
      resource.head = head;
      resource.head_since = world_.now();
    } else if (head != 0 && world_.now() - resource.head_since > bound) {
      return fail(Invariant::kAwake,
                  resource.queue.begin()->second.path + " is first and sleeps, without any fault");
    }
  }
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
}

void Judge::check_replay() {
  if (violation_) return;
  checked(Invariant::kReplay);
  const auto is_idle = [&] { return world_.leader().service().in_flight() == 0; };
  if (!world_.run_until(is_idle, 10s)) return fail(Invariant::kReplay, "the leader is never idle");
  const std::string before = picture();
  world_.crash(0, testing::Crash::kProcess);
  world_.restart(0);
  if (!world_.leader().is_up()) return fail(Invariant::kReplay, "the leader does not start again");
  if (picture() != before) fail(Invariant::kReplay, "the tree differs after a restart");
}

std::string Judge::picture() {
  std::string all;
  // An item begins with the zxid, which a new epoch raises.
  world_.leader().tree().save([&](std::string_view item) { all += item.substr(8); });
  return all;
}

}  // namespace latchkey::sim
