// A client whose life is made hard: four threads that contend for a mutex, a read-write lock, a
// semaphore and leadership, work under what they get, and write down everything.
//
//     fault_worker WHO CONNECT TIMEOUT_MS SEED [NETWORK ADDRESS]
//
// On "work FOLDER" it begins; its history goes to FOLDER/histories/WHO, its writes to the store at
// FOLDER/store. On "settle" it takes every lock once more, patiently, says "settled" and rests,
// with its session open, until there is work again. On "leave", or when its input ends, it closes
// its session and ends. With NETWORK it moves into a network of its own, says "ready" and waits for
// "linked": then there is an interface of that name, which gets ADDRESS.
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/random.hpp"
#include "history.hpp"
#include "latchkey/election.hpp"
#include "latchkey/mutex.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/semaphore.hpp"
#include "pause.hpp"
#include "store.hpp"
#include "terms.hpp"

namespace latchkey::faults {
namespace {

using namespace std::chrono_literals;
using base::Random;

constexpr auto kPatience = 60s;  // Beyond every deadline; a stopped process may need it.

void pause(Random& random, std::chrono::microseconds most) {
  const auto span = random.below(static_cast<std::uint64_t>(most.count()) + 1);
  pause_for(std::chrono::microseconds(span));
}

/// The session everybody shares. When it is over, the next one is begun.
class Sessions {
 public:
  Sessions(std::string connect, std::chrono::milliseconds timeout) : connect_(std::move(connect)) {
    options_.timeout = timeout;
  }

  [[nodiscard]] Session get() {
    const std::lock_guard lock(mutex_);
    if (session_) {
      const SessionState state = session_->state();
      if (state != SessionState::kExpired && state != SessionState::kClosed) return *session_;
    }
    session_.emplace(Session::start(connect_, options_).value());
    return *session_;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    if (session_) static_cast<void>(session_->close(deadline_in(kPatience)));
  }

 private:
  const std::string connect_;
  SessionOptions options_;
  std::mutex mutex_;
  std::optional<Session> session_;
};

struct World {
  std::string who;
  Sessions sessions;
  std::filesystem::path folder = {};
  std::shared_ptr<const HistoryWriter> history = nullptr;  ///< Whoever may be late keeps it.
  std::atomic<bool> settling = false;
};

/// One operation in the history.
class Note {
 public:
  Note(World& world, std::string lock, std::uint64_t number)
      : history_(world.history), who_(world.who), lock_(std::move(lock)), number_(number) {}

  void add(What what, std::int64_t number = 0, std::string text = "-") const {
    add_at(now_ns(), what, number, std::move(text));
  }
  void add_at(std::int64_t at, What what, std::int64_t number, std::string text = "-") const {
    history_->add({at, who_, number_, lock_, what, number, std::move(text)});
  }
  [[nodiscard]] Event event(What what, std::int64_t number) const {
    return {now_ns(), who_, number_, lock_, what, number, "-"};
  }

 private:
  std::shared_ptr<const HistoryWriter> history_;
  const std::string who_;
  const std::string lock_;
  const std::uint64_t number_;
};

/// What an asynchronous request comes to. The handler may outlive the one who waits.
struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Result<Lease>> result;
};

void note_outcome(const Note& note, const Result<Lease>& result) {
  if (result) {
    note.add(What::kGranted, result->token().zxid());
  } else {
    note.add(What::kFailed, 0, std::string(name(result.error().code())));
  }
}

/// How a lock is asked for.
struct Way {
  bool now = false;
  std::string_view purpose = {};  ///< kSettle, kDowngrade, or nothing in particular.
  std::chrono::milliseconds deadline{0};
  std::optional<std::chrono::milliseconds> cancel_after = std::nullopt;
};

Way draw_way(Random& random) {
  Way way;
  way.now = random.below(10) == 0;
  way.deadline = std::chrono::milliseconds(random.below(4) == 0 ? random.below(400)
                                                                : 1'000 + random.below(9'000));
  if (random.below(6) == 0) way.cancel_after = std::chrono::milliseconds(random.below(300));
  return way;
}

constexpr Way kSettling{.purpose = kSettle, .deadline = 30s};

std::string to_text(const Way& way) {
  if (!way.purpose.empty()) return std::string(way.purpose);
  std::string text = (way.now ? "now:" : "within:") + std::to_string(way.deadline.count()) + "ms";
  if (way.cancel_after) text += ",cancel:" + std::to_string(way.cancel_after->count()) + "ms";
  return text;
}

/// Sends the request and waits for its answer; every outcome is noted where it arrives, so that one
/// that comes twice is on record.
std::optional<Lease> ask(LockRequest request, const Note& note, const Way& way,
                         std::stop_source stop, Random& random) {
  if (!way.cancel_after && random.below(2) == 0) {
    Result<Lease> result = std::move(request).wait();
    note_outcome(note, result);
    if (!result) return std::nullopt;
    return std::move(*result);
  }
  auto answer = std::make_shared<Answer>();
  std::move(request).then([answer, note](Result<Lease> result) {
    note_outcome(note, result);
    const std::lock_guard lock(answer->mutex);
    answer->result.emplace(std::move(result));
    answer->changed.notify_all();
  });
  std::unique_lock lock(answer->mutex);
  const auto answered = [&] { return answer->result.has_value(); };
  if (way.cancel_after && !answer->changed.wait_for(lock, *way.cancel_after, answered)) {
    lock.unlock();
    stop.request_stop();
    lock.lock();
  }
  if (!answer->changed.wait_for(lock, way.deadline + kPatience, answered)) {
    note.add(What::kSilent);
    return std::nullopt;
  }
  if (!*answer->result) return std::nullopt;
  return std::move(**answer->result);
}

/// One thread's work on one lock.
class Task {
 public:
  Task(World& world, std::string lock, std::uint64_t seed)
      : world_(world), lock_(std::move(lock)), random_(seed), store_(world.folder / "store") {}
  virtual ~Task() = default;

  /// Until it is time to settle; then true if it got the lock once more.
  void run() {
    while (!world_.settling) {
      once(draw_way(random_));
      pause(random_, random_.below(8) == 0 ? 200ms : 20ms);
    }
    const Deadline patience = deadline_in(2 * kPatience);
    while (!once(kSettling) && !patience.has_passed(BootClock::now())) pause(random_, 20ms);
  }

 protected:
  /// Whether it was granted.
  virtual bool once(const Way& way) = 0;

  [[nodiscard]] Note begin(std::int64_t weight, const Way& way) {
    Note note(world_, lock_, ++operations_);
    note.add(What::kWant, weight, to_text(way));
    return note;
  }

  /// The time is read first: who still holds afterwards held then.
  template <class Holds>
  bool prove(const Note& note, std::int64_t token, const Holds& holds) {
    const std::int64_t before = now_ns();
    if (!holds()) {
      note.add(What::kLost, token);
      return false;
    }
    note.add_at(before, What::kHolds, token);
    return true;
  }

  /// Some steps under the lock. False: it was lost on the way.
  template <class Holds>
  bool work(const Note& note, std::int64_t token, Fence fence, const Holds& holds) {
    const std::uint64_t steps = random_.below(40) == 0 ? 300 : random_.below(6);
    for (std::uint64_t step = 0; step < steps && !world_.settling; ++step) {
      if (!prove(note, token, holds)) return false;
      // Without another look at the lease: whoever is stopped here is the fence's to refuse.
      pause(random_, 8ms);
      if (fence == Fence::kNone) continue;
      const bool taken = store_.write(note.event(What::kWrote, token));
      note.add(taken ? What::kWrote : What::kRefused, token);
    }
    return prove(note, token, holds);
  }

  [[nodiscard]] static bool is_held(const Lease& lease) {
    const LeaseState state = lease.state();
    return state == LeaseState::kHeld || state == LeaseState::kSuspect;
  }
  bool work(const Note& note, const Lease& lease, Fence fence) {
    return work(note, lease.token().zxid(), fence, [&] { return is_held(lease); });
  }

  /// In one of the ways there are.
  void let_go(const Note& note, Lease lease) {
    const std::uint64_t how = random_.below(4);
    if (how == 0) static_cast<void>(lease.release(deadline_in(2s)));
    if (how == 1) {
      const Lease dropped = std::move(lease);
    } else {
      lease.release();
    }
    note.add(What::kReleased);
  }

  std::optional<Lease> take(const Lock& lock, const Note& note, const Way& way) {
    const std::stop_source stop;
    const Deadline deadline = deadline_in(way.deadline);
    return ask(way.now ? lock.try_lock_async(deadline, stop.get_token())
                       : lock.lock_async(deadline, stop.get_token()),
               note, way, stop, random_);
  }

  World& world_;
  const std::string lock_;
  Random random_;

 private:
  StoreClient store_;
  std::uint64_t operations_ = 0;
};

/// Counts in a node of the service, guarded by the lock's own.
class MutexTask : public Task {
 public:
  MutexTask(World& world, std::uint64_t seed) : Task(world, kMutex.name, seed) {}

 private:
  bool once(const Way& way) override {
    Session session = world_.sessions.get();
    const Note note = begin(kMutex.capacity, way);
    std::optional<Lease> lease = take(Mutex(session, kMutex.path), note, way);
    if (!lease) return false;
    if (work(note, *lease, Fence::kTokens)) count(session, *lease, note);
    let_go(note, std::move(*lease));
    return true;
  }

  void count(Session& session, const Lease& lease, const Note& note) {
    const Deadline deadline = deadline_in(1s);
    const Result<Node> ledger = session.get(kLedger, deadline);
    if (!ledger) return;
    const std::int64_t next = std::stoll(ledger->data) + 1;
    Multi write{{Set{kLedger, std::to_string(next), ledger->stat.version}}};
    if (!lease.guard(write)) return;
    const auto outcome = session.call(write, deadline);
    if (outcome && outcome->committed) note.add(What::kCounted, next);
  }
};

class RwTask : public Task {
 public:
  RwTask(World& world, std::uint64_t seed) : Task(world, kRw.name, seed) {}

 private:
  bool once(const Way& way) override {
    const RwLock lock(world_.sessions.get(), kRw.path);
    const bool writes = way.purpose == kSettle || random_.below(3) == 0;
    const Note note = begin(writes ? kRw.capacity : 1, way);
    std::optional<Lease> lease = take(writes ? lock.write() : lock.read(), note, way);
    if (!lease) return false;
    const bool held = work(note, *lease, writes ? Fence::kTokens : Fence::kNone);
    if (held && writes && random_.below(4) == 0) return downgrade(lock, std::move(*lease), note);
    let_go(note, std::move(*lease));
    return true;
  }

  bool downgrade(const RwLock& lock, Lease writing, const Note& before) {
    constexpr Way kWay{.purpose = kDowngrade, .deadline = 2s};
    const Note note = begin(1, kWay);
    std::optional<Lease> lease =
        ask(lock.downgrade_async(std::move(writing), deadline_in(kWay.deadline)), note, kWay, {},
            random_);
    before.add(What::kReleased, 0, "downgraded");
    if (!lease) return true;
    work(note, *lease, Fence::kNone);
    let_go(note, std::move(*lease));
    return true;
  }
};

class SemaphoreTask : public Task {
 public:
  SemaphoreTask(World& world, std::uint64_t seed) : Task(world, kSemaphore.name, seed) {}

 private:
  bool once(const Way& way) override {
    const Semaphore semaphore(world_.sessions.get(), kSemaphore.path,
                              {.size = static_cast<int>(kSemaphore.capacity)});
    const int permits = 1 + static_cast<int>(random_.below(2));
    const Note note = begin(permits, way);
    std::optional<Lease> lease = take(semaphore.permits(permits), note, way);
    if (!lease) return false;
    work(note, *lease, Fence::kNone);
    let_go(note, std::move(*lease));
    return true;
  }
};

/// A candidate, for one term.
class ElectionTask : public Task {
 public:
  ElectionTask(World& world, std::uint64_t seed) : Task(world, kElection.name, seed) {}

 private:
  /// What the candidate's news say; they may outlive it.
  struct Term {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<std::int64_t> token;
    std::stop_token over;
    bool final = false;
  };

  bool once(const Way& way) override {
    const auto term = std::make_shared<Term>();
    Session session = world_.sessions.get();
    const Note note = begin(kElection.capacity, way);
    ElectionOptions options;
    options.min_pause = 0ms;
    options.on_change = [term, note](const ElectionNews& news) { hear(*term, note, news); };
    Election election(session, kElection.path, std::move(options));
    std::unique_lock lock(term->mutex);
    const bool leads = term->changed.wait_for(lock, way.cancel_after.value_or(way.deadline), [&] {
      return term->token || term->final;
    }) && term->token;
    if (leads) {
      const std::int64_t token = *term->token;
      const std::stop_token over = term->over;
      lock.unlock();
      work(note, token, Fence::kTokens, [&] {
        const auto current = election.token();
        return current && current->zxid() == token && !over.stop_requested();
      });
      lock.lock();
    }
    lock.unlock();
    random_.below(2) == 0 ? election.close() : election.resign();
    election.close();
    lock.lock();
    if (!term->changed.wait_for(lock, kPatience, [&] { return term->final; })) {
      note.add(What::kSilent);
    } else if (term->token) {
      note.add(What::kReleased);
    }
    return term->token.has_value();
  }

  static void hear(Term& term, const Note& note, const ElectionNews& news) {
    const std::lock_guard lock(term.mutex);
    if (news.state == ElectionState::kLeading && !term.token) {
      term.token = news.token->zxid();
      term.over = news.over;
      note.add(What::kGranted, *term.token);
    }
    if (news.state == ElectionState::kClosed || news.state == ElectionState::kFailed) {
      if (!term.token || term.final) note.add(What::kFailed, 0, std::string(name(news.state)));
      term.final = true;
    }
    term.changed.notify_all();
  }
};

/// False: the system does not let us.
bool move_to_network(const std::string& interface, const std::string& address) {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  std::cout << "ready" << std::endl;
  std::string line;
  if (!std::getline(std::cin, line)) return false;
  const std::string commands =
      "ip addr add " + address + "/24 dev " + interface + " && ip link set " + interface + " up";
  return std::system(commands.c_str()) == 0;
}

/// Until the next line of input; then everybody settles.
void work(World& world, Random& random) {
  world.settling = false;
  std::vector<std::unique_ptr<Task>> tasks;
  tasks.push_back(std::make_unique<MutexTask>(world, random.next()));
  tasks.push_back(std::make_unique<RwTask>(world, random.next()));
  tasks.push_back(std::make_unique<SemaphoreTask>(world, random.next()));
  tasks.push_back(std::make_unique<ElectionTask>(world, random.next()));
  std::vector<std::jthread> threads;
  for (const auto& task : tasks) threads.emplace_back([&task] { task->run(); });
  std::string line;
  static_cast<void>(!std::getline(std::cin, line));
  world.settling = true;
}

int run(World& world, std::uint64_t seed) {
  const std::string_view kWork = "work ";
  Random random(seed);
  for (std::string line; std::getline(std::cin, line) && line.starts_with(kWork);) {
    world.folder = line.substr(kWork.size());
    world.history = std::make_shared<HistoryWriter>(world.folder / "histories" / world.who);
    work(world, random);
    world.history->add({now_ns(), world.who, 0, "-", What::kEnded, 0, "-"});
    world.history.reset();
    std::cout << "settled" << std::endl;
  }
  world.sessions.close();
  return 0;
}

}  // namespace
}  // namespace latchkey::faults

int main(int argc, char** argv) {
  using namespace latchkey::faults;
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 4 && words.size() != 6) {
    std::cerr << "usage: fault_worker WHO CONNECT TIMEOUT_MS SEED [INTERFACE ADDRESS]\n";
    return 2;
  }
  if (words.size() == 6 && !move_to_network(words[4], words[5])) {
    std::cerr << "no network of its own for " << words[0] << '\n';
    return 1;
  }
  World world{words[0], Sessions(words[1], std::chrono::milliseconds(std::stoi(words[2])))};
  return run(world, std::stoull(words[3]));
}
