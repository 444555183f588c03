#include "testing/leader.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "storage/memory_journal.hpp"
#include "testing/follower.hpp"
#include "tree/record.hpp"

namespace latchkey::testing {
namespace {

/// As server::Driver: a timer that rings so late was held up, and so was everybody (H85).
constexpr std::chrono::milliseconds kStall(100);

/// A tree as storage sees it, which remembers what was replayed into it.
class RecoveredTree final : public storage::State {
 public:
  RecoveredTree(tree::Tree& tree, std::vector<tree::Service::Stored>& replayed)
      : tree_(tree), replayed_(replayed) {}

  Result<void> load(std::string_view item) override { return tree_.load(item); }
  Result<void> replay(const storage::Entry& entry) override {
    replayed_.push_back({entry.zxid, std::string(entry.bytes)});
    return tree_.replay(entry.zxid, entry.bytes);
  }
  void save(base::FunctionRef<void(std::string_view)> sink) const override { tree_.save(sink); }

 private:
  tree::Tree& tree_;
  std::vector<tree::Service::Stored>& replayed_;
};

/// Whoever names themselves is believed.
std::optional<std::vector<tree::Identity>> believe(std::string_view scheme,
                                                   std::string_view credentials) {
  if (scheme != "digest") return std::nullopt;
  return std::vector<tree::Identity>{{std::string(scheme), std::string(credentials)}};
}

}  // namespace

Leader::Leader(Process& process, Timeline& timeline, Network& network, const WorldOptions& options,
               const std::vector<Observer*>& observers)
    : Server(0, process),
      timeline_(timeline),
      network_(network),
      options_(options),
      observers_(observers),
      disk_(timeline.random()) {}

Leader::~Leader() = default;

tree::Moment Leader::moment() { return {process().now(), process().wall_ms()}; }

tree::ServiceOptions Leader::service_options() {
  tree::ServiceOptions service = options_.service;
  service.secret = [this] { return timeline_.random(); };
  service.authenticate = believe;
  service.max_session_timeout = std::min(service.max_session_timeout, longest_timeout_);
  return service;
}

// Connections.

tree::PeerId Leader::introduce(LinkId link, Follower* follower) {
  const tree::PeerId peer =
      service_->connect({"client" + std::to_string(link), {{"ip", "10.0.0.1"}}}, moment());
  peers_[link] = peer;
  targets_[peer] = {link, follower};
  return peer;
}

void Leader::accepted(LinkId link) {
  if (is_up()) introduce(link, nullptr);
}

void Leader::received(LinkId link, std::string_view bytes) {
  hear(link, bytes, tree::Service::Heard::kHere);
}

void Leader::hear(LinkId link, std::string_view bytes, tree::Service::Heard heard) {
  const auto peer = peers_.find(link);
  if (peer == peers_.end()) return;
  service_->receive(peer->second, bytes, moment(), heard);
  carry_out();
}

void Leader::disconnect(LinkId link) {
  const auto peer = peers_.find(link);
  if (peer == peers_.end()) return;
  service_->disconnect(peer->second, moment());
  targets_.erase(peer->second);
  peers_.erase(peer);
}

void Leader::hung_up(LinkId link) {
  disconnect(link);
  if (is_up()) carry_out();
}

void Leader::carry_out() {
  while (is_up()) {
    commit_batch();
    const std::vector<tree::PeerId> ready = service_->take_ready();
    if (ready.empty()) break;
    for (const tree::PeerId peer : ready) serve(peer);
  }
  if (is_up()) arm();
}

void Leader::serve(tree::PeerId peer) {
  const auto found = targets_.find(peer);
  if (found == targets_.end()) return;
  const Target target = found->second;
  std::string output = service_->take_output(peer, moment());
  if (!output.empty()) {
    if (target.follower != nullptr) {
      target.follower->leader_sends(target.link, std::move(output));
    } else {
      network_.send(target.link, Way::kReply, std::move(output));
    }
  }
  const tree::Service::Closing closing = service_->closing(peer);
  if (closing == tree::Service::Closing::kNo) return;
  if (target.follower != nullptr) {
    const auto& peers = service_->peers();
    const tree::SessionId session = peers.at(peer)->session;
    const bool moved =
        closing == tree::Service::Closing::kNow && service_->tree().sessions().contains(session);
    target.follower->leader_closes(target.link, moved);
  } else {
    network_.hang_up(target.link, Way::kReply);
  }
  disconnect(target.link);
}

// Followers.

void Leader::take_from(Follower& follower, LinkId link, std::string_view bytes) {
  if (!is_up()) return;
  if (!peers_.contains(link)) introduce(link, &follower);
  hear(link, bytes, tree::Service::Heard::kElsewhere);
}

void Leader::take_touch(LinkId link) {
  if (is_up()) received(link, {});
}

void Leader::take_late_touch(tree::SessionId session, std::chrono::milliseconds timeout) {
  if (!is_up()) return;
  service_->touch(session, timeout, moment());
  carry_out();
}

void Leader::take_hang_up(LinkId link) {
  if (is_up()) hung_up(link);
}

std::vector<tree::Identity> Leader::identities_of(LinkId link) const {
  const auto peer = peers_.find(link);
  if (peer == peers_.end()) return {};
  return service_->peers().at(peer->second)->identities;
}

void Leader::forget(const Follower& follower) {
  if (!is_up()) return;
  std::vector<LinkId> links;
  for (const auto& [peer, target] : targets_) {
    if (target.follower == &follower) links.push_back(target.link);
  }
  std::ranges::sort(links);
  for (const LinkId link : links) disconnect(link);
  carry_out();
}

// Storage.

void Leader::commit_batch() {
  if (!committing_.empty()) return;
  committing_ = service_->take_batch();
  if (committing_.empty()) return;
  const Duration stall = std::exchange(stall_, {});
  if (stall > Duration::zero() && struck) struck(Fault::kDiskStall);
  const Duration span = timeline_.draw(options_.commit.least, options_.commit.most) + stall;
  timeline_.in(span, &process(), Happens::kCommit, [this] { committed(); });
}

void Leader::committed() {
  const Batch batch = std::exchange(committing_, {});
  const bool fails = std::exchange(fail_sync_, false);
  if (fails) disk_.fail_at(1, storage::Fault::kDropDirty);
  if (Result<void> stored = append(batch); !stored) {
    if (struck) struck(fails ? Fault::kSyncError : Fault::kDiskFull);
    return fail(stored.error());
  }
  publish(batch);
  service_->stored(batch.back().zxid, moment());
  fold_if_needed();
  carry_out();
}

Result<void> Leader::append(const Batch& batch) {
  std::vector<storage::Entry> entries;
  entries.reserve(batch.size());
  for (const tree::Service::Stored& stored : batch) entries.push_back({stored.zxid, stored.bytes});
  return journal_->append(entries);
}

void Leader::publish(const Batch& batch) {
  for (const tree::Service::Stored& stored : batch) {
    log_.entries.push_back({stored.zxid, stored.bytes, timeline_.now()});
    last_zxid_ = stored.zxid;
    timeline_.note(static_cast<std::uint64_t>(stored.zxid));
    for (Observer* observer : observers_) observer->on_applied(log_.entries.back());
  }
  for (Follower* follower : followers_) follower->leader_ships(log_.end());
  trim();
}

void Leader::trim() {
  std::uint64_t needed = log_.end();
  for (const Follower* follower : followers_) needed = std::min(needed, follower->position());
  while (log_.entries.size() > options_.keep_records && log_.first < needed) {
    log_.entries.pop_front();
    ++log_.first;
  }
}

void Leader::fold_if_needed() {
  if (folding_ || !journal_->needs_folding()) return;
  folding_ = true;
  timeline_.in(timeline_.draw(options_.commit.least, options_.commit.most * 10), &process(),
               Happens::kCommit, [this] {
                 folding_ = false;
                 tree::Tree empty(options_.service.limits);
                 Batch replayed;
                 RecoveredTree state(empty, replayed);
                 if (journal_->fold(state)) ++folds_;
               });
}

// Beginning and end.

void Leader::fail(const Error& error) {
  trouble_ = error;
  for (Observer* observer : observers_) observer->on_failed(error);
  end(Tell::kYes);
  disk_.kill_process();
}

void Leader::end(Tell clients_hear) {
  if (options_.store == Store::kMemory) {
    saved_.clear();
    service_->tree().save([this](std::string_view item) { saved_.emplace_back(item); });
  }
  ended_ = timeline_.now();
  forgotten_ = committing_.size() + service_->take_batch().size();
  journal_.reset();
  service_.reset();
  peers_.clear();
  targets_.clear();
  committing_.clear();
  folding_ = false;
  stall_ = {};
  fail_sync_ = false;
  armed_ = Instant::max();
  late_ = {};
  process().die();
  network_.server_ended(*this, clients_hear);
  for (Follower* follower : followers_) follower->leader_ended(clients_hear);
}

void Leader::settle_commit_in_flight(Crash how) {
  if (committing_.empty()) return;
  // How far did it get? Not at all, all the way, or to some point in between.
  const std::uint64_t fate = timeline_.luck().below(3);
  if (fate == 0) return;
  if (options_.store == Store::kMemory) {
    saved_batch_ = committing_;
    return;
  }
  if (fate == 2) {
    const bool power = how == Crash::kPower;
    disk_.fail_at(timeline_.luck().below(3),
                  power ? storage::Fault::kLosePower : storage::Fault::kFailPartly);
  }
  static_cast<void>(append(committing_));
}

void Leader::crash(Crash how) {
  if (!is_up()) return;
  settle_commit_in_flight(how);
  const bool told = how == Crash::kProcess || timeline_.chance(500);
  end(told ? Tell::kYes : Tell::kNo);
  if (how == Crash::kPower) {
    disk_.lose_power();
  } else {
    disk_.kill_process();
  }
}

void Leader::wipe() {
  LATCHKEY_ASSERT(!is_up());
  disk_ = storage::SimDisk(timeline_.random());
  saved_.clear();
  saved_batch_.clear();
  log_.first = log_.end();
  log_.entries.clear();
  last_zxid_ = 0;
  for (Follower* follower : followers_) follower->wipe();
}

void Leader::restore(const std::map<std::string, std::string>& files) {
  LATCHKEY_ASSERT(!is_up() && options_.store == Store::kDisk && followers_.empty());
  disk_ = storage::SimDisk(files);
  log_.first = log_.end();
  log_.entries.clear();
  last_zxid_ = 0;
}

Result<void> Leader::grow_old(Batch& records) {
  if (!aged_) return {};
  const auto [directory, creates] = *std::exchange(aged_, std::nullopt);
  tree::Tree& tree = service_->tree();
  if (tree.nodes().find(directory) == nullptr) return {};
  if (struck) struck(Fault::kAge);
  const std::string child = directory + "/aged";
  // Above what refusals were dated with, which are not stored.
  constexpr std::int64_t kGap = 1'000'000;
  tree::Record record{.zxid = tree.applied_zxid() + kGap};
  record.changes.push_back(
      {.kind = tree::Change::Kind::kCreate, .path = child, .acl = {{}}, .version = creates});
  record.changes.push_back({.kind = tree::Change::Kind::kDelete, .path = child});
  records.push_back({record.zxid, tree::encode(record)});
  return tree.replay(record.zxid, records.back().bytes);
}

Result<void> Leader::recover(Batch& replayed, Recovery& recovery) {
  tree::Tree& tree = service_->tree();
  RecoveredTree state(tree, replayed);
  if (options_.store == Store::kDisk) {
    const storage::FileJournalOptions journal{.segment_bytes = options_.segment_bytes,
                                              .fold_bytes = options_.fold_bytes,
                                              .spare = storage::Spare::kInAppend};
    auto opened = storage::FileJournal::open(disk_.files(), journal, state);
    if (!opened) return opened.error();
    tree.raise_epoch((*opened)->recovered().epoch);
    recovery.torn = (*opened)->recovered().bytes_cut > 0;
    recovery.from_snapshot = (*opened)->recovered().items > 0;
    journal_ = std::move(*opened);
    return {};
  }
  journal_ = std::make_unique<storage::MemoryJournal>();
  for (const std::string& item : saved_) {
    if (Result<void> loaded = state.load(item); !loaded) return loaded;
  }
  for (const tree::Service::Stored& stored : std::exchange(saved_batch_, {})) {
    if (stored.zxid <= tree.applied_zxid()) continue;
    if (Result<void> done = state.replay({stored.zxid, stored.bytes}); !done) return done;
  }
  return {};
}

void Leader::start() {
  LATCHKEY_ASSERT(!is_up());
  process().rise();
  const base::SurroundingsScope scope(&process());
  service_ = std::make_unique<tree::Service>(service_options());
  Batch found;
  Recovery recovery{.forgotten = forgotten_, .down = timeline_.now() - ended_};
  Result<void> recovered = recover(found, recovery);
  recovery.lost = recovered && service_->tree().applied_zxid() < last_zxid_;
  Batch begun;
  if (recovered) recovered = grow_old(begun);
  if (recovered) {
    service_->start(moment());
    for (tree::Service::Stored& stored : service_->take_batch()) begun.push_back(std::move(stored));
    recovered = append(begun);
  }
  if (!recovered) {
    trouble_ = recovered.error();
    journal_.reset();
    service_.reset();
    disk_.kill_process();
    process().die();
    return;
  }
  trouble_.reset();
  ++restarts_;
  // What was stored and never acknowledged is as good as any from now on.
  std::erase_if(found, [this](const auto& stored) { return stored.zxid <= last_zxid_; });
  recovery.unanswered = found.size();
  recovery.forgotten -= std::min(recovery.forgotten, recovery.unanswered);
  for (Observer* observer : observers_) observer->on_recovered(recovery);
  publish(found);
  publish(begun);
  service_->stored(begun.back().zxid, moment());
  for (Follower* follower : followers_) follower->leader_started();
  carry_out();
}

bool Leader::expire(tree::SessionId session) {
  if (!is_up()) return false;
  const base::SurroundingsScope scope(&process());
  const bool known = service_->expire(session, moment());
  carry_out();
  return known;
}

// Time.

void Leader::arm() {
  if (late_ > Duration::zero()) return;  // It has rung, and is armed again after the tick.
  const Instant local = service_->next_wake();
  const Instant wake = process().true_time_of(local);
  if (wake >= armed_ || wake == Instant::max()) return;
  armed_ = wake;
  asked_ = local;
  timeline_.at(wake, &process(), Happens::kWake, [this, wake] {
    if (armed_ == wake) this->wake();
  });
}

void Leader::wake() {
  armed_ = Instant::max();
  const Duration late = process().now() - asked_;
  if (late <= kStall) return tick();
  // Whoever has sent something meanwhile is heard first.
  late_ = late;
  timeline_.in({}, &process(), Happens::kWake, [this] { tick(); });
}

void Leader::tick() {
  if (const Duration late = std::exchange(late_, {}); late > kStall) {
    service_->stalled(late, process().now());
  }
  service_->tick(moment());
  carry_out();
}

void Leader::clock_changed() {
  armed_ = Instant::max();
  if (is_up()) arm();
}

}  // namespace latchkey::testing
