#include "server/driver.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <asio/post.hpp>

#include "base/random.hpp"
#include "net/threads.hpp"
#include "server/authentication.hpp"
#include "server/words.hpp"

namespace latchkey::server {
namespace {

using std::chrono::milliseconds;

/// Events of one turn: enough for large batches, few enough that nobody waits long for a write.
constexpr std::size_t kMostEvents = 256;
/// A timer that rings so late was held up, and so was everybody who wanted to be heard (H85).
constexpr milliseconds kStall(100);
constexpr std::chrono::seconds kRestAfterFoldError(60);
/// For clients to take their last answers when the server stops.
constexpr std::chrono::seconds kLastAnswersTime(2);
/// Far below what the journal takes at once, whatever clients send.
constexpr std::size_t kMostBatchBytes = std::size_t{16} << 20U;

}  // namespace

void CommitStatistics::add(std::size_t size, Duration span) {
  ++batches;
  entries += size;
  sync.add(span);
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), size);
  ++classes[static_cast<std::size_t>(bound - kBounds.begin())];
}

Driver::Driver(ServerOptions options, std::shared_ptr<const net::TlsContext> tls)
    : options_(std::move(options)),
      around_(look_around(options_)),
      tls_(std::move(tls)),
      log_(options_.log),
      work_(asio::make_work_guard(context_)),
      timer_(context_),
      service_(service_options()) {}

Driver::~Driver() { static_cast<void>(stop()); }

tree::Moment Driver::now() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return {BootClock::now(), std::chrono::duration_cast<milliseconds>(wall).count()};
}

int Driver::descriptors_for_connections() {
  // Next segment, snapshot and its reading back, folder, epoch; and the program around us.
  constexpr rlim_t kReserve = 32;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t all = std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<int>::max());
  return static_cast<int>(all - std::min(kReserve, all / 4));
}

tree::ServiceOptions Driver::service_options() {
  tree::ServiceOptions service;
  service.tick = options_.tick;
  service.min_session_timeout = options_.min_session_timeout;
  service.max_session_timeout = options_.max_session_timeout;
  service.reap_interval = options_.reap_interval;
  service.handshake_timeout = options_.handshake_timeout;
  service.max_frame = options_.max_frame;
  service.max_sessions = options_.max_sessions;
  service.max_sessions_per_origin = options_.max_sessions_per_address;
  service.limits.nodes = options_.max_nodes;
  service.limits.bytes = options_.max_bytes;
  service.limits.ephemeral_bytes_per_session = options_.max_ephemeral_bytes_per_session;
  service.limits.watches = options_.max_watches;
  service.limits.watch_bytes = options_.max_watch_bytes;
  service.limits.watches_per_peer = options_.max_watches_per_connection;
  service.max_requests_per_peer = options_.max_requests_per_connection;
  service.max_output_per_peer = options_.max_output_per_connection;
  service.max_buffered = options_.max_buffered;
  service.secret = [] { return base::kernel_random(); };
  service.authenticate = [this](std::string_view scheme, std::string_view credentials) {
    return authenticate(scheme, credentials, options_.super_digest);
  };
  service.on_attached = [this](tree::PeerId peer, tree::SessionId session, std::int32_t asked) {
    bind(peer, session, asked);
  };
  service.on_ended = [this](tree::SessionId session) { unbind(session); };
  service.admin_word = [this](std::string_view word) { return answer_word(word, status()); };
  return service;
}

Status Driver::status() const {
  return {.service = service_,
          .options = options_,
          .commits = commits_,
          .around = around_,
          .moment = now(),
          .started = started_,
          .addresses = addresses_,
          .port = port_,
          .turns = turns_,
          .connections = connections_.size(),
          .accepted = accepted_,
          .turned_away = turned_away_,
          .folds = folds_,
          .fold_errors = fold_errors_,
          .journal_damaged = journal_damaged_,
          .stalled_ms = std::chrono::duration_cast<milliseconds>(stalled_).count(),
          .bound_sessions = bonds_.sessions(),
          .watched_processes = watches_.size(),
          .bonds_refused = bonds_refused_,
          .ended_with_process = ended_with_process_};
}

// Beginning and end.

Result<void> Driver::start(std::unique_ptr<storage::Journal> journal, CommitOn where, Doors doors) {
  journal_ = std::move(journal);
  for (Listener& listener : doors.clients)
    open_door(std::move(listener), Connection::Kind::kClient);
  if (doors.metrics) open_door(std::move(*doors.metrics), Connection::Kind::kMetrics);
  started_ = BootClock::now();
  most_descriptors_ = descriptors_for_connections();
  service_.start(now());
  // Nobody may see a zxid of this run before its epoch is durable (H82).
  const Batch first = service_.take_batch();
  const Committed epoch = commit(*journal_, first);
  if (!epoch.result) return epoch.result;
  service_.stored(epoch.zxid, now());

  if (where == CommitOn::kOwnThread) {
    committer_ = std::make_unique<Committer>(
        *journal_, [this](Committed done) { commit_ended(std::move(done)); });
    if (!committer_->start()) return Error(Code::kServerError, "no thread for the journal");
  }
  for (Door& door : doors_) wait_to_accept(door);
  wait_for_timer();
  // Whoever started us has to get here first; and perhaps nobody ever comes.
  if (options_.idle_stop.count() > 0) idle_since_ = started_ + options_.handshake_timeout;
  arm_timer();
  const std::lock_guard lock(join_mutex_);
  thread_ = net::make_thread("latchkey-server", [this] { run(); });
  if (!thread_.joinable()) return Error(Code::kServerError, "no thread for the server");
  return {};
}

Result<void> Driver::stop() {
  if (is_own_thread()) {
    return Error(Code::kWouldDeadlock, "stop() from a thread of the server's own");
  }
  const std::lock_guard join_lock(join_mutex_);
  if (thread_.joinable()) {
    asio::post(context_, in_turn([this] {
                 stopping_ = true;
                 doors_.clear();
               }));
    thread_.join();
  }
  const std::lock_guard lock(mutex_);
  return outcome_;
}

Result<void> Driver::wait() {
  if (is_own_thread()) {
    return Error(Code::kWouldDeadlock, "wait() on a thread of the server's own");
  }
  std::unique_lock lock(mutex_);
  end_.wait(lock, [this] { return ended_; });
  return outcome_;
}

Result<void> Driver::expire(tree::SessionId session) {
  if (is_own_thread()) {
    return Error(Code::kWouldDeadlock, "expire_session() from a thread of the server's own");
  }
  auto promise = std::make_shared<std::promise<Result<void>>>();
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return Error(Code::kClosed, "expire_session: the server is not running");
    asio::post(
        context_, in_turn([this, session, promise] {
          if (finished_ || stopping_) {
            promise->set_value(Error(Code::kClosed, "expire_session: the server is stopping"));
          } else if (service_.expire(session, now())) {
            expiring_.push_back({session, promise});
          } else {
            promise->set_value(Error(Code::kNoNode, "expire_session: there is no such session"));
          }
        }));
  }
  return promise->get_future().get();
}

bool Driver::is_own_thread() const {
  const std::thread::id self = std::this_thread::get_id();
  return self == loop_thread_ || self == commit_thread_;
}

void Driver::fail(const Error& error) {
  failure_ = error;
  finished_ = true;
}

void Driver::end() {
  doors_.clear();
  watches_.clear();
  while (!connections_.empty()) {
    Connection& connection = *connections_.begin()->second;
    if (!failure_) connection.end_output();
    connection.discard_input(buffer_);
    drop(connection);
  }
  folding_.cancel();
  folding_.join();
  Result<void> closed = journal_->close();
  journal_.reset();
  for (const Expiring& expiring : std::exchange(expiring_, {})) {
    expiring.promise->set_value(Error(Code::kClosed, "expire_session: the server has ended"));
  }
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    outcome_ = failure_ ? Result<void>(*failure_) : std::move(closed);
  }
  end_.notify_all();
  context_.poll();  // Nothing can be added any more, and nobody is to wait for ever.
}

// The loop.

void Driver::run() {
  loop_thread_ = std::this_thread::get_id();
  while (true) {
    context_.run_one();
    begin_turn();
    std::size_t handled = 1;
    bool drained = false;
    // What may leave is not to look like what nobody takes.
    const std::size_t enough = service_.buffered_bytes() + options_.max_buffered / 8;
    while (handled + tls_events_ < kMostEvents && !drained && !finished_ &&
           service_.buffered_bytes() <= enough) {
      drained = context_.poll_one() == 0;
      ++handled;
    }
    if (!finished_) finish_turn(handled, drained);
    const bool is_over = finished_;
    turn_of_loop_.unlock();
    if (is_over) break;
    settle_commits(Who::kLoop);
  }
  // Not in a turn: it may be waiting for its own.
  committer_.reset();
  begin_turn();
  end();
  turn_of_loop_.unlock();
  loop_thread_ = std::thread::id();  // The system gives it to others.
}

void Driver::finish_turn(std::size_t handled, bool drained) {
  ++turns_;
  take_commits();
  if (finished_) return;
  tick_if_due(handled, drained);
  service_.begin_round();
  carry_out(Who::kLoop);
  if (finished_) return;
  wake_resting();
  if (!expiring_.empty()) settle_expiring();
  if (options_.idle_stop.count() > 0) stop_if_idle(drained);
  if (stopping_ && !committing_ && service_.in_flight() == 0 && has_said_everything()) {
    finished_ = true;
    return;
  }
  arm_timer();
}

void Driver::carry_out(Who who) {
  if (who == Who::kLoop) left_to_loop_ = false;
  while (!finished_) {
    // The disk first: it works while we write. Who is to sync again leaves that to the loop, once:
    // what may leave is not to pile up behind a loop that gets no processor.
    commit_batch();
    const bool leaves_it =
        who == Who::kCommitter && committing_ && !std::exchange(left_to_loop_, true);
    if (leaves_it || service_.round_is_over()) {
      asio::post(context_, [] {});  // They go on when everybody has been listened to.
      return;
    }
    const std::vector<tree::PeerId> ready = service_.take_ready();
    if (ready.empty()) return;
    for (const tree::PeerId peer : ready) {
      const auto found = peers_.find(peer);
      if (found != peers_.end()) serve(*found->second);
    }
  }
}

void Driver::commit_batch() {
  while (!committing_ && !finished_) {
    Batch batch = service_.take_batch(kMostBatchBytes);
    if (batch.empty()) return;
    committing_ = true;
    if (committer_) return committer_->submit(std::move(batch));
    committed(commit(*journal_, batch));
  }
}

void Driver::commit_ended(Committed done) {
  commit_thread_ = std::this_thread::get_id();
  last_commit_ = std::move(done);
  ended_commits_.put(last_commit_);
  settle_commits(Who::kCommitter);
  commit_thread_ = std::thread::id();
}

void Driver::settle_commits(Who who) {
  while (!ended_commits_.is_empty()) {
    const std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn) return;
    if (!take_commits()) continue;
    if (!finished_) carry_out(who);
    if (!finished_) arm_timer();
    // What else may follow from it is the loop's to see.
    const bool is_empty = service_.tree().sessions().empty();
    if (!is_empty) idle_since_.reset();
    const bool may_idle = is_empty && options_.idle_stop.count() > 0;
    if (finished_ || stopping_ || !expiring_.empty() || may_idle) asio::post(context_, [] {});
  }
}

bool Driver::take_commits() {
  Committed* ended = ended_commits_.take_all();
  if (ended == nullptr) return false;
  committed(*ended);
  return true;
}

void Driver::committed(const Committed& done) {
  committing_ = false;
  if (finished_) return;
  if (!done.result) return fail(done.result.error());
  commits_.add(done.entries, done.span);
  service_.stored(done.zxid, now());
  fold_if_needed();
}

void Driver::fold_if_needed() {
  if (is_folding_ || stopping_ || !journal_->needs_folding()) return;
  if (BootClock::now() < fold_after_) return;
  is_folding_ = folding_.start(*journal_, service_.options().limits, [this](Result<void> result) {
    asio::post(context_, in_turn([this, result = std::move(result)] { folded(result); }));
  });
}

void Driver::folded(const Result<void>& result) {
  is_folding_ = false;
  if (result) {
    ++folds_;
    return;
  }
  if (result.error() == Code::kClosed) return;
  ++fold_errors_;
  fold_after_ = BootClock::now() + kRestAfterFoldError;
  if (result.error() != Code::kDamaged) {
    return log_(LogLevel::kWarning, "no new snapshot: " + result.error().message());
  }
  // We go on: what clients see is in our memory and whole, and it may be the only whole copy left.
  journal_damaged_ = true;
  log_(LogLevel::kError,
       "THE JOURNAL IS DAMAGED, and the server would not start again. It goes on serving from "
       "memory: copy what you need through a client before you stop it. " +
           result.error().message());
}

void Driver::settle_expiring() {
  std::erase_if(expiring_, [this](const Expiring& expiring) {
    if (service_.tree().sessions().contains(expiring.session)) return false;
    expiring.promise->set_value({});
    return true;
  });
}

// Time.

void Driver::wait_for_timer() {
  timer_.async_wait(in_turn([this](const asio::error_code& error) {
    if (error || finished_) return;
    timer_.clear();
    const Instant rung = BootClock::now();
    if (rung > asked_) late_ = std::max(late_, rung - asked_);
    asked_ = Instant::max();
    tick_due_ = true;
    handled_since_due_ = 0;
    wait_for_timer();
  }));
}

void Driver::arm_timer() {
  if (tick_due_) return;  // It has rung, and is armed again after the tick.
  if (stopping_) {
    // A write under way is waited for in any case, and its end is a turn of its own.
    if (end_by_ && !committing_) timer_.arm(*end_by_);
    return;
  }
  Instant wake = service_.next_wake();
  for (const Door& door : doors_) wake = std::min(wake, door.rests_until.value_or(wake));
  if (!brief_.empty()) wake = std::min(wake, BootClock::now() + kSweep);
  if (idle_since_ && connections_.empty()) wake = std::min(wake, *idle_since_ + options_.idle_stop);
  asked_ = std::min(asked_, wake);
  timer_.arm(wake);
}

void Driver::tick_if_due(std::size_t handled, bool drained) {
  if (!tick_due_) return;
  if (stopping_) {
    // Nobody is heard any more, so nobody runs out.
    tick_due_ = false;
    return;
  }
  // Whoever has sent something is heard before anybody runs out (H85): until nothing more can be
  // read, or, where there is always more, until everybody has had a turn.
  handled_since_due_ += handled;
  if (!drained && handled_since_due_ < 2 * connections_.size() + kMostEvents) {
    asio::post(context_, [] {});  // Comes back even if there happens to be no more.
    return;
  }
  tick_due_ = false;
  const Duration late = std::exchange(late_, {});
  if (late > kStall) {
    stalled_ += late;
    service_.stalled(late, BootClock::now());
    const auto span = std::chrono::duration_cast<milliseconds>(late).count();
    log_(LogLevel::kWarning,
         "held up for " + std::to_string(span) + " ms; no session runs out because of it");
  }
  service_.tick(now());
  sweep();
}

void Driver::sweep() {
  const Instant moment = BootClock::now();
  std::vector<std::uint64_t> over;
  for (const auto& [id, deadline] : brief_) {
    if (moment >= deadline) over.push_back(id);
  }
  for (const std::uint64_t id : over) drop(*find(id));
  for (Door& door : doors_) {
    if (!door.rests_until || moment < *door.rests_until) continue;
    door.rests_until.reset();
    wait_to_accept(door);
  }
}

void Driver::stop_if_idle(bool drained) {
  if (!service_.tree().sessions().empty()) {
    idle_since_.reset();
    return;
  }
  const Instant moment = BootClock::now();
  if (!idle_since_) idle_since_ = moment;
  // Whoever stands at the door has been let in by now, and is a connection: perhaps one that wants
  // a session, perhaps one that only looks, and does not make the server wait any longer.
  if (!drained || !connections_.empty() || service_.in_flight() > 0) return;
  if (moment < *idle_since_ + options_.idle_stop) return;
  log_(LogLevel::kInfo, "nobody was here for a while, so the server ends");
  stopping_ = true;
  doors_.clear();
}

bool Driver::has_said_everything() {
  const Instant moment = BootClock::now();
  if (!end_by_) end_by_ = moment + kLastAnswersTime;
  if (moment >= *end_by_) return true;
  return std::ranges::none_of(connections_, [this](const auto& entry) {
    return entry.second->has_unsent() || !is_idle(*entry.second);
  });
}

}  // namespace latchkey::server
