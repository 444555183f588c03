#include <sys/resource.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

#include "latchkey/mutex.hpp"
#include "latchkey/rw_lock.hpp"
#include "pairs.hpp"
#include "readers_writers.hpp"

// Latchkey as a contestant of the benchmark, over its public API only.
namespace latchkey::bench {
namespace {

using namespace std::chrono_literals;

Session open(const Options& options) {
  SessionOptions session_options;
  session_options.timeout = std::chrono::milliseconds(options.number("timeout-ms", 30'000));
  auto session = Session::open(options.text("connect"), session_options, deadline_in(60s));
  if (!session) throw std::runtime_error(session.error().message());
  return *session;
}

std::vector<Session> open_all(const Options& options) {
  std::vector<Session> sessions;
  for (int i = 0; i < options.number("sessions", 1); ++i) sessions.push_back(open(options));
  return sessions;
}

/// Or the last entry, whose delete is still on its way, would outlast us by the time-out.
void close(const Session& session) { static_cast<void>(Session(session).close(deadline_in(10s))); }

Lease must(Result<Lease> lease) {
  if (!lease) throw std::runtime_error(lease.error().message());
  return std::move(*lease);
}

/// Grows from hold to hold, also where the node stays the same.
std::int64_t number_of(const Lease& lease) {
  return (lease.token().zxid() << 20U) + lease.token().hold();
}

class LockLocker final : public Locker {
 public:
  explicit LockLocker(Lock lock) : lock_(std::move(lock)) {}

  std::int64_t lock() override {
    lease_.emplace(must(lock_.lock(deadline_in(60s))));
    return number_of(*lease_);
  }
  void unlock() override { lease_.reset(); }

 private:
  Lock lock_;
  std::optional<Lease> lease_;
};

/// Lets everybody in: for the driver, which makes sure that this is found out.
class OpenDoor final : public Locker {
 public:
  std::int64_t lock() override { return 0; }
  void unlock() override { std::this_thread::yield(); }
};

void pairs(const Options& options, Report& report) {
  if (options.text("exclusion", "yes") == "no") {
    const auto open_door = [](int, const std::string&) { return std::make_unique<OpenDoor>(); };
    report.add("violations", run_pairs(options, open_door, report));
    return;
  }
  const std::vector<Session> sessions = open_all(options);
  MutexOptions mutex;
  if (options.text("hand-over", "no") == "yes") mutex.hand_over = {.count = 100'000, .time = 50ms};
  const auto locker = [&](int session, const std::string& path) {
    return std::make_unique<LockLocker>(
        Mutex(sessions.at(static_cast<std::size_t>(session)), path, mutex));
  };
  report.add("violations", run_pairs(options, locker, report));
}

void read_write(const Options& options, Report& report) {
  const std::vector<Session> sessions = open_all(options);
  RwLockOptions lock;
  if (options.text("watch", "targeted") == "directory") lock.watch = WatchPolicy::kDirectory;
  run_readers_writers(
      options,
      [&](int session, const std::string& path) {
        const RwLock both(sessions.at(static_cast<std::size_t>(session)), path, lock);
        return ReaderWriter{std::make_unique<LockLocker>(both.read()),
                            std::make_unique<LockLocker>(both.write())};
      },
      report);
}

/// Counts the waiters that have come and gone.
class Tally {
 public:
  void add() {
    const std::lock_guard guard(mutex_);
    ++count_;
    changed_.notify_one();
  }
  void wait_for(int count) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

/// Everybody queues behind one holder; when the driver has seen them all it says go.
void drain(const Options& options, Report& report) {
  const int waiters = options.number("waiters", 100);
  const std::vector<Session> sessions = open_all(options);
  const Session outside = open(options);
  const std::string path = options.text("path") + "/0";
  std::optional<Lease> holder(must(Mutex(outside, path).lock(deadline_in(60s))));
  Tally tally;
  Judge judge;
  std::atomic<int> failed = 0;
  say_begin();
  const double processor_before = processor_s();
  const std::chrono::microseconds gap(options.number("gap-us", 0));
  std::binary_semaphore nobody(0);
  for (int i = 0; i < waiters; ++i) {
    static_cast<void>(nobody.try_acquire_for(gap));
    const auto& session = sessions.at(static_cast<std::size_t>(i) % sessions.size());
    Mutex(session, path).lock_async(deadline_in(300s)).then([&](Result<Lease> lease) {
      if (lease) {
        judge.enter(number_of(*lease));
        judge.leave();
        lease->release();
      } else {
        ++failed;
      }
      tally.add();
    });
  }
  wait_for_go();
  const auto start = Clock::now();
  holder.reset();
  tally.wait_for(waiters);
  report.add("seconds", seconds_since(start));
  report.add("cpu_s", processor_s() - processor_before);
  report.add("rss_kb", static_cast<double>(resident_kb()));
  report.add("ops", waiters - failed);
  report.add("violations", judge.violations() + failed);
  for (const Session& session : sessions) close(session);
  close(outside);
}

/// Holds `--held` locks until the driver says go, or kills us.
void hold(const Options& options, Report& report) {
  const Session session = open(options);
  std::vector<Lease> leases;
  for (int i = 0; i < options.number("held", 1); ++i) {
    const Mutex mutex(session, options.text("path") + '/' + std::to_string(i));
    leases.push_back(must(mutex.lock(deadline_in(60s))));
  }
  say_begin();
  wait_for_go();
  report.add("ops", static_cast<double>(leases.size()));
  report.add("rss_kb", static_cast<double>(resident_kb()));
  report.add("violations", 0);
  close(session);
}

/// Queues for what somebody else holds, and says when it was granted.
void take_over(const Options& options, Report& report) {
  const Session session = open(options);
  const Mutex mutex(session, options.text("path") + "/0");
  say_begin();
  const Lease lease = must(mutex.lock(deadline_in(120s)));
  report.add("granted_at", std::chrono::duration<double>(Clock::now().time_since_epoch()).count());
  report.add("violations", 0);
  close(session);
}

void run(const Options& options, Report& report) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const std::string workload = options.text("workload");
  if (workload == "pairs") return pairs(options, report);
  if (workload == "rw") return read_write(options, report);
  if (workload == "drain") return drain(options, report);
  if (workload == "hold") return hold(options, report);
  if (workload == "take-over") return take_over(options, report);
  throw std::invalid_argument("no workload " + workload);
}

}  // namespace
}  // namespace latchkey::bench

int main(int argc, char** argv) {
  return latchkey::bench::run_contestant(argc, argv, latchkey::bench::run);
}
