#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>

#include "latchkey/election.hpp"
#include "latchkey/inspect.hpp"
#include "latchkey/lockable.hpp"
#include "latchkey/multi_lock.hpp"
#include "latchkey/name_lock.hpp"
#include "latchkey/recursive_mutex.hpp"
#include "latchkey/run_while_held.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/semaphore.hpp"
#include "support/eventually.hpp"

/// A program that forks while it holds every kind of lock, leads, waits and watches. Usage:
/// fork_peer CONNECT PATH; parent and child tell on stdout what they can still do.
namespace {

using namespace latchkey;
using namespace std::chrono_literals;
using test_support::eventually;

/// Also how long somebody waits for a lock while a child goes through everything.
Deadline soon() { return deadline_in(120s); }

void say(const std::string& line) { std::cout << line << '\n' << std::flush; }

template <class T>
std::string word(const Result<T>& result) {
  return result ? "ok" : std::string(name(result.error().code()));
}

/// One of each.
struct Everything {
  Everything(const Session& opened, const std::string& path)
      : session(opened),
        rw(session, path + "/rw"),
        semaphore(session, path + "/semaphore", {.size = 2}),
        lockable(Mutex(session, path + "/lockable")),
        locks{{"delayed", Mutex(session, path + "/delayed", {.lock_delay = 1h})},
              {"multi", MultiLock(session, {path + "/a", path + "/b"})},
              {"mutex", Mutex(session, path + "/mutex")},
              {"name", NameLock(session, path + "/name")},
              {"passed on", Mutex(session, path + "/passed", {.hand_over = {.count = 4}})},
              {"permits", semaphore.permits(2)},
              {"recursive", RecursiveMutex(session, path + "/recursive").of(Owner())},
              {"write", rw.write()}},
        election(session, path + "/election", {.id = "parent"}),
        leader_watch(session, path + "/election", [this](const auto&) { ++leaders; }),
        queue_watch(session, path + "/mutex", [this](const auto&) { ++queues; }) {
    for (const auto& [kind, lock] : locks) leases.emplace(kind, lock.lock(soon()));
    // This one waits when the process forks.
    waiting = locks.at("mutex").lock_async(soon()).future();
  }

  [[nodiscard]] bool is_settled() {
    return eventually([&] {
      const auto queue = inspect(session, locks.at("mutex").path(), soon());
      return election.state() == ElectionState::kLeading && leaders > 0 && queues > 0 && queue &&
             queue->entries.size() == 2;
    });
  }

  Session session;
  std::atomic<int> leaders = 0;
  std::atomic<int> queues = 0;
  RwLock rw;
  Semaphore semaphore;
  Lockable lockable;
  std::map<std::string, Lock> locks;
  std::map<std::string, Result<Lease>> leases;
  std::future<Result<Lease>> waiting;
  Election election;
  LeaderWatch leader_watch;
  QueueWatch queue_watch;
};

/// What comes of each lock and of its lease. Nothing may wait: there is nobody to wait for.
void use_locks(Everything& all) {
  const Deadline never = Deadline::never();
  for (auto& [kind, lock] : all.locks) {
    std::string told = "silence";
    lock.lock_async(never).then([&](const Result<Lease>& lease) { told = word(lease); });
    const auto future = lock.try_lock_async(never).future().get();
    Lease& lease = *all.leases.at(kind);
    say("child " + kind + ": lock " + word(lock.lock(never)) + ", then " + told + ", future " +
        word(future) + ", lease " + std::string(name(lease.state())) + ", check " +
        word(lease.check(never)) + ", release " + word(lease.release(never)));
  }
}

void use_the_rest(Everything& all, const std::string& path) {
  const Deadline never = Deadline::never();
  Session& session = all.session;
  say("child downgrade " + word(all.rw.downgrade(std::move(*all.leases.at("write")), never)));
  say("child resize " + word(all.semaphore.resize(3, never)));
  say("child size " + word(all.semaphore.size(never)));
  say("child leader " + word(leader(session, path + "/election", never)));
  say("child inspect " + word(inspect(session, path + "/mutex", never)));
  say("child revoke " + word(revoke(session, path + "/mutex/x", never)));
  say("child run " + word(run_while_held(all.locks.at("mutex"), [](std::stop_token) {})));
  try {
    all.lockable.lock();
  } catch (const std::system_error& error) {
    say(std::string("child lockable ") +
        (error.code() == make_error_code(Code::kForked) ? "Forked" : error.what()));
  }
}

void use_standing_ones(Everything& all, const std::string& path) {
  all.election.resign();
  all.election.close();
  say("child election " + std::string(name(all.election.state())) +
      (all.election.token() ? " with a token" : ""));
  const Election election(
      all.session, path + "/election", {.on_change = [](const ElectionNews& news) {
        say("child candidate " + std::string(name(news.state)) + " " +
            std::string(name(news.error.value_or(Error(Code::kClosed)).code())));
      }});
  const LeaderWatch leaders(all.session, path + "/election",
                            [](const auto& seen) { say("child leader watch " + word(seen)); });
  const QueueWatch queues(all.session, path + "/mutex",
                          [](const auto& seen) { say("child queue watch " + word(seen)); });
}

void go_on_as_parent(Everything& all) {
  for (const auto& [kind, lease] : all.leases) {
    say("parent " + kind + ": " + std::string(name(lease->state())) + ", check " +
        word(lease->check(soon())));
  }
  say("parent election " + std::string(name(all.election.state())));
  const int seen = all.queues;
  all.leases.at("mutex")->release();
  say("parent waiter " + word(all.waiting.get()));
  say(std::string("parent queue watch ") +
      (eventually([&] { return all.queues > seen; }) ? "ok" : "silent"));
  const int changes = all.leaders;
  all.election.resign();
  say(std::string("parent leader watch ") +
      (eventually([&] { return all.leaders > changes; }) ? "ok" : "silent"));
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::string path = words[2];
  auto session = Session::open(words[1], {.timeout = 60s}, soon());
  if (!session) {
    std::cerr << session.error() << '\n';
    return 2;
  }
  std::optional<Everything> all(std::in_place, *session, path);
  say(all->is_settled() ? "settled" : "not settled");
  const pid_t child = ::fork();
  if (child == 0) {
    use_locks(*all);
    use_the_rest(*all, path);
    use_standing_ones(*all, path);
    all.reset();
    say("child has destroyed everything");
    std::exit(0);  // Not _exit(): every static destructor has to be harmless too.
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  say("child ended " + std::to_string(status));
  go_on_as_parent(*all);
  all.reset();
  say("parent close " + word(session->close(soon())));
  return 0;
}
