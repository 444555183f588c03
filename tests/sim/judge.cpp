#include "sim/judge.hpp"

#include <algorithm>
#include <utility>

namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

/// How late an answer may be by the asker's own clock: the callback still has to be called.
constexpr Duration kLate = 100ms;

void mark(std::map<std::uint32_t, Instant>& marks, const testing::Process& process, Instant until) {
  Instant& mark = marks.try_emplace(process.id(), Instant::min()).first->second;
  mark = std::max(mark, until);
}

}  // namespace

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string without_number(const std::string& path) {
  constexpr std::size_t kDigits = 10;
  return path.substr(0, path.size() - std::min(path.size(), kDigits));
}

std::string_view name(Invariant invariant) {
  switch (invariant) {
    case Invariant::kServerOrder: return "server order";
    case Invariant::kBelief: return "belief";
    case Invariant::kTokens: return "tokens";
    case Invariant::kFence: return "fence";
    case Invariant::kOneOutcome: return "one outcome";
    case Invariant::kNoOrphan: return "no orphan";
    case Invariant::kNoWatch: return "no watch";
    case Invariant::kWatches: return "watches";
    case Invariant::kAwake: return "awake";
    case Invariant::kLiveness: return "liveness";
    case Invariant::kDurable: return "durable";
    case Invariant::kWire: return "wire";
    case Invariant::kReplay: return "replay";
    case Invariant::kPermits: return "permits";
    case Invariant::kDelay: return "delay";
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
      by_path_.emplace(site.path + "/leases", i);
    } else if (site.sort != Sort::kMulti) {
      by_path_.emplace(site.path, i);
    }
  }
  while (copies_.size() < world_.followers()) copies_.emplace_back();
  for (const testing::LogEntry& entry : world_.log().entries) on_applied(entry);
  world_.watch(*this);
}

void Judge::fail(Invariant invariant, std::string what) {
  if (!violation_) violation_ = Violation{invariant, std::move(what), world_.now()};
}

void Judge::mistrust(const testing::Process& process, Instant until) {
  mark(slow_, process, until == Instant::max() ? until : until + longest_lease());
}

void Judge::hurries(const testing::Process& process, Instant until) {
  mark(fast_, process, until == Instant::max() ? until : until + longest_lease());
}

void Judge::hindered(const testing::Process& process, Instant until) {
  mark(hindered_, process, until);
}

void Judge::healed() {
  // What was proven by a wrong clock is over by then.
  const Instant right = world_.now() + longest_lease();
  for (Marks* const marks : {&slow_, &fast_}) {
    for (auto& [process, until] : *marks) until = std::min(until, right);
  }
  for (auto& [process, until] : hindered_) until = std::min(until, world_.now());
}

std::optional<Judge::Entry> Judge::any_entry() {
  std::vector<const Entry*> all;
  for (const Resource& resource : resources_) {
    for (const auto& [zxid, entry] : resource.queue) all.push_back(&entry);
  }
  if (all.empty()) return std::nullopt;
  return *all[world_.random().below(all.size())];
}

// ---- Requests ---------------------------------------------------------------------------------

Judge::AskId Judge::asked(Wish wish) {
  asks_.emplace(++last_, Ask{std::move(wish), world_.timeline().now()});
  return last_;
}

void Judge::answered(AskId id, Got got, std::int64_t session) {
  checked(Invariant::kOneOutcome);
  const auto ask = asks_.find(id);
  if (ask == asks_.end()) return fail(Invariant::kOneOutcome, "a request was answered twice");
  const Wish& wish = ask->second.wish;
  const bool is_free = world_.now() > hindered_until(*wish.process) + kLate;
  if (is_free && wish.process->now() > wish.deadline + kLate) {
    fail(Invariant::kOneOutcome, wish.process->name() + " got an answer after its deadline");
  }
  for (const Share& share : wish.shares) {
    if (got == Got::kHold) continue;
    resources_[share.site].refused[session].push_back({ask->second.since, world_.now(), {}});
  }
  asks_.erase(ask);
}

// ---- Holds ------------------------------------------------------------------------------------

bool Judge::has_slow_clock(const testing::Process& process) const {
  const auto slow = slow_.find(process.id());
  return slow != slow_.end() && world_.now() <= slow->second;
}

bool Judge::has_wrong_clock(const testing::Process& process) const {
  const auto fast = fast_.find(process.id());
  return has_slow_clock(process) || (fast != fast_.end() && world_.now() <= fast->second);
}

Instant Judge::hindered_until(const testing::Process& process) const {
  const auto hindered = hindered_.find(process.id());
  return hindered == hindered_.end() ? Instant() : hindered->second;
}

bool Judge::is_mistrusted(const Announcement& one) const {
  return ended_early_.contains(one.session) || has_slow_clock(*one.process);
}

bool Judge::is_robbed(const Announcement& one, std::size_t site) const {
  const Resource& resource = resources_[site];
  const auto is_removed = [&](const std::string& node) { return resource.removed.contains(node); };
  if (!one.nodes.empty()) return std::ranges::any_of(one.nodes, is_removed);
  const auto entry = resource.ever.find(one.token.zxid());
  return entry != resource.ever.end() && is_removed(entry->second.path);
}

bool Judge::believes(Announcement& one) {
  bool answer = false;
  world_.run_as(*one.process, [&] { answer = one.believes(); });
  if (answer && one.is_lost) {
    fail(Invariant::kBelief,
         one.process->name() + " believes again in token " + to_string(one.token));
  }
  one.is_lost |= !answer;
  return answer;
}

void Judge::told_lost(HoldId id) {
  const auto hold = holds_.find(id);
  if (hold == holds_.end()) return;
  checked(Invariant::kBelief);
  if (!believes(hold->second)) return;
  fail(Invariant::kBelief, hold->second.process->name() + " was told that token " +
                               to_string(hold->second.token) + " is lost, and believes");
}

void Judge::check_time(const Announcement& one) {
  if (!one.is_lost || has_slow_clock(*one.process)) return;
  if (hindered_until(*one.process) + kLate > world_.now()) return;
  checked(Invariant::kBelief);
  for (const auto& host : world_.hosts()) {
    if (host->machine().session_id() != one.session) continue;
    const Instant deadline = host->machine().lease().deadline();
    if (deadline + plan_.world.callback.most + 1ms >= one.process->now()) continue;
    fail(Invariant::kBelief, one.process->name() + " was granted token " + to_string(one.token) +
                                 " when its lease was over");
  }
}

bool Judge::is_over(Announcement& one) {
  for (const auto& host : world_.hosts()) {
    if (host->machine().session_id() != one.session) continue;
    if (host->machine().lease().deadline() + 1ms < one.process->now()) return true;
  }
  return !believes(one);
}

void Judge::check_told(Announcement& one) {
  const Instant now = world_.now();
  const testing::Process& process = *one.process;
  if (one.lost.stop_requested() || !process.is_alive() || process.paused_until > now) return;
  if (!one.over_since) {
    if (is_over(one)) one.over_since = now;
    return;
  }
  checked(Invariant::kBelief);
  const Instant since = std::max(*one.over_since, process.paused_until);
  if (now - since <= plan_.world.callback.most + kLate) return;
  fail(Invariant::kBelief,
       process.name() + " has lost token " + to_string(one.token) + " and was not told");
}

void Judge::check_session(std::int64_t session) {
  over_.insert(session);
  for (auto& [id, hold] : holds_) {
    if (hold.session != session || is_mistrusted(hold)) continue;
    checked(Invariant::kBelief);
    if (!believes(hold)) continue;
    fail(Invariant::kBelief, hold.process->name() + " believes in token " + to_string(hold.token) +
                                 ", and its session has ended");
  }
}

Judge::HoldId Judge::granted(Announcement announcement) {
  ++grants_;
  const HoldId id = ++last_;
  // An announcement that comes too late to be believed is no belief, and the client knows.
  const bool counts = believes(announcement);
  check_time(announcement);
  if (counts && over_.contains(announcement.session) && !is_mistrusted(announcement)) {
    fail(Invariant::kBelief, announcement.process->name() + " holds token " +
                                 to_string(announcement.token) + " on a session that has ended");
  }
  for (const Share& share : announcement.shares) {
    check_entry(announcement, share);
    check_queue(announcement, share);
    check_permits(announcement, share);
    if (!counts) continue;
    check_delay(announcement, share);
    check_belief(announcement, share);
    check_tokens(announcement, share);
  }
  for (const Share& share : announcement.shares) resources_[share.site].holds.push_back(id);
  unreleased_.insert(announcement.nodes.begin(), announcement.nodes.end());
  announced_.insert(announcement.nodes.begin(), announcement.nodes.end());
  holds_.emplace(id, std::move(announcement));
  return id;
}

bool Judge::is_given_up(const std::string& path, std::int64_t owner, std::int64_t session) {
  if (owner != session) return false;
  return std::ranges::none_of(holds_, [&](auto& hold) {
    const auto& nodes = hold.second.nodes;
    return std::ranges::find(nodes, path) != nodes.end() && believes(hold.second);
  });
}

void Judge::suspect(std::size_t site, const Entry& entry, const Announcement& granted) {
  const Sort sort = resources_[site].sort;
  const bool is_plain = sort == Sort::kMutex || sort == Sort::kRw || sort == Sort::kRwHerd;
  // Otherwise one entry serves several, or has no name here.
  if (!is_plain || granted.nodes.empty()) return;
  const std::string name = without_number(entry.path);
  // One request may have two entries. When one of them is announced, or was, the other one is given
  // up, and its delete may still be on its way.
  const auto announced = announced_.lower_bound(name);
  if (announced != announced_.end() && announced->starts_with(name)) return;
  const auto is_twin = [&](const std::string& node) { return without_number(node) == name; };
  if (std::ranges::any_of(granted.nodes, is_twin)) return;
  const auto wanted = wanted_.find(name);
  if (wanted == wanted_.end()) return;
  checked(Invariant::kServerOrder);
  suspects_.push_back({site, entry.owner, granted.process, wanted->first, wanted->second,
                       world_.now() + plan_.world.callback.most + kLate,
                       granted.process->name() + " announced " + granted.nodes.front() +
                           " before " + entry.path + ", which waited on the same session"});
}

bool Judge::is_refused(const Suspect& one) {
  auto& refusals = resources_[one.site].refused[one.session];
  const auto it_is = std::ranges::find(refusals, one.entry, &Refusal::entry);
  if (it_is != refusals.end()) return true;
  const auto may_be = std::ranges::find_if(refusals, [&](const Refusal& refusal) {
    return refusal.entry.empty() && refusal.asked <= one.wanted && one.wanted <= refusal.answered;
  });
  if (may_be == refusals.end()) return false;
  may_be->entry = one.entry;
  return true;
}

void Judge::check_suspects() {
  std::erase_if(suspects_, [&](const Suspect& one) {
    if (is_refused(one) || !one.process->is_alive()) return true;
    const Instant free = hindered_until(*one.process) + plan_.world.callback.most + kLate;
    if (std::max(one.due, free) > world_.now()) return false;
    fail(Invariant::kServerOrder, one.what);
    return true;
  });
}

void Judge::check_entry(const Announcement& one, const Share& share) {
  const Resource& resource = resources_[share.site];
  if (resource.sort == Sort::kSemaphore) return;
  checked(Invariant::kServerOrder);
  const auto is_own = [&](const auto& entry) {
    const auto& [path, owner, is_shared] = entry.second;
    // An election does not name its node.
    const bool is_named =
        one.nodes.empty() || std::ranges::find(one.nodes, path) != one.nodes.end();
    return owner == one.session && is_named;
  };
  const auto entry = resource.ever.find(one.token.zxid());
  // Whoever reads on has a node of its own and the token of before.
  const bool is_there = one.goes_on ? std::ranges::any_of(resource.ever, is_own)
                                    : entry != resource.ever.end() && is_own(*entry);
  if (is_there) {
    const auto removed =
        one.goes_on ? resource.removed.end() : resource.removed.find(entry->second.path);
    const bool was_first = removed == resource.removed.end() || removed->second;
    if (was_first || announced_.contains(entry->second.path)) return;
    return fail(Invariant::kServerOrder, one.process->name() + " announced " + entry->second.path +
                                             ", which was removed before its turn came");
  }
  fail(Invariant::kServerOrder, one.process->name() + " announced a hold of " +
                                    plan_.sites[share.site].path + " with token " +
                                    to_string(one.token) + ", but the log has no such entry of it" +
                                    (one.nodes.empty() ? "" : ": " + one.nodes.front()));
}

void Judge::check_queue(const Announcement& one, const Share& share) {
  const Resource& resource = resources_[share.site];
  if (resource.sort == Sort::kName || resource.sort == Sort::kSemaphore) return;
  checked(Invariant::kServerOrder);
  for (const auto& [zxid, entry] : resource.queue) {
    if (zxid >= one.token.zxid()) break;
    if (share.is_shared && entry.is_shared) continue;
    if (is_given_up(entry.path, entry.owner, one.session)) {
      suspect(share.site, entry, one);
      continue;
    }
    // A multi-lock's token is its newest member's; all were made in one transaction.
    if (std::ranges::find(one.nodes, entry.path) != one.nodes.end()) continue;
    return fail(Invariant::kServerOrder, one.process->name() + " announced " +
                                             (one.nodes.empty() ? "" : one.nodes.front()) +
                                             " while " + entry.path + " stood before it");
  }
}

void Judge::check_belief(const Announcement& one, const Share& share) {
  Resource& resource = resources_[share.site];
  if (is_mistrusted(one) || is_robbed(one, share.site)) return;
  checked(Invariant::kBelief);
  int seats = share.seats;
  std::string who = one.process->name() + " " + to_string(one.token);
  for (const HoldId id : resource.holds) {
    Announcement& other = holds_.at(id);
    if (is_mistrusted(other) || is_robbed(other, share.site) || !believes(other)) continue;
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
  if (is_robbed(one, share.site)) return;
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

void Judge::check_permits(const Announcement& one, const Share& share) {
  const Resource& resource = resources_[share.site];
  if (resource.sort != Sort::kSemaphore) return;
  checked(Invariant::kPermits);
  const std::int64_t own = one.token.zxid();
  const auto is_own = [&](const std::string& node) {
    const auto lease = resource.past_leases.find(node);
    return lease != resource.past_leases.end() && lease->second.owner == one.session &&
           lease->second.zxid == own;
  };
  const bool is_whole = one.nodes.size() == static_cast<std::size_t>(share.seats);
  if (!is_whole || !std::ranges::all_of(one.nodes, is_own)) {
    return fail(Invariant::kServerOrder, one.process->name() + " announced " +
                                             std::to_string(share.seats) + " permits with token " +
                                             to_string(one.token) +
                                             ", but the log does not have them as its own");
  }
  for (const std::string& node : one.nodes) {
    const std::string& first = resource.past_leases.at(node).waited_for;
    if (first.empty()) continue;
    fail(Invariant::kServerOrder, one.process->name() + " took the permit " + node + " while " +
                                      first + " was first in the queue");
  }
  // Gone already, and the holder will hear of it.
  const auto is_there = [&](const std::string& node) { return resource.leases.contains(node); };
  if (!std::ranges::all_of(one.nodes, is_there)) return;
  const auto counts = [&](const auto& lease) {
    const auto& [path, permit] = lease;
    if (std::ranges::find(one.nodes, path) != one.nodes.end()) return true;
    return permit.zxid <= own && !is_given_up(path, permit.owner, one.session);
  };
  const auto up_to_own = std::ranges::count_if(resource.leases, counts);
  // Those before it only become fewer, so any size that it has had meanwhile will do.
  int size = 0;
  for (const auto& [zxid, value] : resource.sizes)
    size = zxid <= own ? value : std::max(size, value);
  if (up_to_own > size) {
    fail(Invariant::kPermits, one.process->name() + " announced " + one.nodes.front() + ", with " +
                                  std::to_string(up_to_own) + " permits up to its own of " +
                                  std::to_string(size));
  }
}

void Judge::check_delay(const Announcement& one, const Share& share) {
  const Resource& resource = resources_[share.site];
  if (resource.sort != Sort::kDelayed || resource.vanished == Instant::min()) return;
  // A wait is measured by the waiter's clock, or by the server's that dates what was written: one
  // that is put forward makes it seem long ago.
  if (wall_clock_is_ahead_ || has_wrong_clock(*one.process)) return;
  checked(Invariant::kDelay);
  constexpr Duration kRounding = 2ms;
  if (world_.now() - resource.vanished >= kLockDelay - kRounding) return;
  fail(Invariant::kDelay, one.process->name() + " holds " + plan_.sites[share.site].path + " " +
                              std::to_string((world_.now() - resource.vanished) / 1us) +
                              " us after a holder vanished");
}

void Judge::writes(HoldId id) {
  const auto hold = holds_.find(id);
  if (hold == holds_.end()) return;
  Announcement& one = hold->second;
  for (const Share& share : one.shares) {
    Resource& resource = resources_[share.site];
    if (share.is_shared || resource.sort == Sort::kSemaphore) continue;
    checked(Invariant::kFence);
    if (one.token >= resource.fence) {
      resource.fence = one.token;
      continue;
    }
    ++stale_writes_;
    if (!is_mistrusted(one) && !is_robbed(one, share.site) && believes(one)) {
      fail(Invariant::kFence, one.process->name() + " believes in token " + to_string(one.token) +
                                  " but the store has seen " + to_string(resource.fence));
    }
  }
}

void Judge::shown(std::size_t site, const Token& last, const Token& token) {
  checked(Invariant::kTokens);
  if (token < last) {
    fail(Invariant::kTokens, "an observer of " + plan_.sites[site].path + " was shown " +
                                 to_string(token) + " after " + to_string(last));
  }
}

void Judge::ended(HoldId id) {
  const auto hold = holds_.find(id);
  if (hold == holds_.end()) return;
  check_told(hold->second);
  for (const std::string& node : hold->second.nodes) unreleased_.erase(node);
  forget(id);
}

void Judge::forget(HoldId id) {
  const auto hold = holds_.find(id);
  for (const Share& share : hold->second.shares) std::erase(resources_[share.site].holds, id);
  holds_.erase(hold);
}

void Judge::died(std::size_t client) {
  std::vector<HoldId> gone;
  for (const auto& [id, hold] : holds_) {
    if (hold.client == client) gone.push_back(id);
  }
  for (const HoldId id : gone) forget(id);
  std::erase_if(asks_, [&](const auto& ask) { return ask.second.wish.client == client; });
}

}  // namespace latchkey::sim
