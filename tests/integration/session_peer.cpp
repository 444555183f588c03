#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "latchkey/mutex.hpp"
#include "latchkey/session.hpp"

/// A program for tests about processes: it forks, execs, is stopped, receives signals and ends with
/// sessions alive. Usage: session_peer DEED CONNECT [PATH [CA_FILE]]; it tells what happens on
/// stdout.
namespace {

using namespace latchkey;
using namespace std::chrono_literals;

struct Arguments {
  std::string connect;
  std::string path;
  SessionOptions options;
};

Deadline soon() { return deadline_in(20s); }

void say(const std::string& line) { std::cout << line << '\n' << std::flush; }

template <class T>
std::string word(const Result<T>& result) {
  return result ? "ok" : std::string(name(result.error().code()));
}

Session open(const Arguments& arguments) {
  auto session = Session::open(arguments.connect, arguments.options, soon());
  if (session) return *session;
  std::cerr << session.error() << '\n';
  std::exit(2);
}

/// In a forked child: everything fails at once and nothing hangs.
int use_as_child(Session& session, Mutex& mutex, Lease& lease, const Arguments& arguments) {
  const Deadline never = Deadline::never();
  std::string told;
  session.async(Get{"/"}, never, [&](const Result<Node>& node) { told = word(node); });
  say("child async " + told);
  say("child get " + word(session.get("/", never)));
  say("child create " + word(session.create(arguments.path + "/child", {}, {}, never)));
  say("child wait " + word(session.wait_connected(never)));
  say("child close " + word(session.close(never)));
  say("child state " + std::string(name(session.state())));
  say("child lease " + std::string(name(lease.state())));
  say("child lock " + word(mutex.lock(never)));
  say("child try_lock " + word(mutex.try_lock(never)));
  static_cast<void>(lease.release());
  {
    const Session copy = session;
    const Mutex other = mutex;
    const Lease moved = std::move(lease);
  }
  Session own = open(arguments);
  say("child own " + word(own.get("/", soon())));
  say("child own close " + word(own.close(soon())));
  return 0;
}

int fork_and_go_on(const Arguments& arguments) {
  Session session = open(arguments);
  Mutex mutex(session, arguments.path);
  auto lease = mutex.lock(soon());
  say("lock " + word(lease));
  if (!lease) return 1;
  const pid_t child = ::fork();
  // exit() and not _exit(): every static destructor has to be harmless too.
  if (child == 0) std::exit(use_as_child(session, mutex, *lease, arguments));
  int status = -1;
  ::waitpid(child, &status, 0);
  say("child ended " + std::to_string(status));
  say("parent get " + word(session.get("/", soon())));
  say("parent lease " + std::string(name(lease->state())));
  say("parent release " + word(lease->release(soon())));
  say("parent close " + word(session.close(soon())));
  return 0;
}

/// Becomes `ls /proc/self/fd` with a session open and others on their way.
int exec_ls(const Arguments& arguments) {
  const Session session = open(arguments);
  const auto dialing = Session::start("127.0.0.1:1", {});
  const auto resolving = Session::start("localhost:1", {});
  ::execlp("ls", "ls", "/proc/self/fd", static_cast<char*>(nullptr));
  return 1;
}

/// While it lives no descriptor can be had, not even again one that is closed meanwhile.
class Shortage {
 public:
  Shortage() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{STDERR_FILENO + 1, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~Shortage() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// Runs out of descriptors before and during a session.
int run_short(const Arguments& arguments) {
  {
    const Shortage shortage;
    const auto refused = Session::open(arguments.connect, arguments.options, soon());
    say("open " + word(refused));
  }
  Session session = open(arguments);
  say("open again " + word(session.get("/", soon())));
  {
    const Shortage shortage;
    say("short");
    std::string line;
    std::getline(std::cin, line);
    say("get " + word(session.get("/", deadline_in(300ms))));
  }
  say("get again " + word(session.get("/", soon())));
  return 0;
}

std::atomic<int> signals_here = 0;
std::atomic<int> signals_elsewhere = 0;
pthread_t main_thread;

extern "C" void count_signal(int) {
  ++(::pthread_equal(::pthread_self(), main_thread) ? signals_here : signals_elsewhere);
}

/// Works under a storm of signals whose handler does not restart system calls.
int work_under_signals(const Arguments& arguments) {
  main_thread = ::pthread_self();
  struct sigaction action = {};
  action.sa_handler = count_signal;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval storm{{0, 500}, {0, 500}};
  ::setitimer(ITIMER_REAL, &storm, nullptr);
  int failed = 0;
  for (int round = 0; round < 10; ++round) {
    Session session = open(arguments);
    for (int i = 0; i < 40; ++i) failed += session.get("/", soon()) ? 0 : 1;
    Mutex mutex(session, arguments.path);
    failed += mutex.lock(soon()) ? 0 : 1;
    failed += session.close(soon()) ? 0 : 1;
  }
  const itimerval calm{};
  ::setitimer(ITIMER_REAL, &calm, nullptr);
  say("failed " + std::to_string(failed));
  say(std::string("signals ") + (signals_here > 0 ? "here" : "none") +
      (signals_elsewhere > 0 ? " and elsewhere" : " only"));
  return 0;
}

/// Holds a lock and answers each line of stdin with the lease's state.
int hold_and_tell(const Arguments& arguments) {
  Session session = open(arguments);
  Mutex mutex(session, arguments.path);
  auto lease = mutex.lock(soon());
  say("lock " + word(lease));
  if (!lease) return 1;
  for (std::string line; std::getline(std::cin, line);) {
    say("lease " + std::string(name(lease->state())));
  }
  return 0;
}

// Destroyed after main, in any order with the library's own statics.
std::optional<Session> static_session;
std::optional<Lease> static_lease;

int leave_statics(const Arguments& arguments) {
  static_session = open(arguments);
  Mutex mutex(*static_session, arguments.path);
  auto lease = mutex.lock(soon());
  if (!lease) return 1;
  static_lease = std::move(*lease);
  say("leaving");
  return 0;
}

std::atomic<int> answers = 0;

void await_answers(int count) {
  const Deadline limit = deadline_in(500ms);
  while (answers < count && !limit.has_passed(BootClock::now())) std::this_thread::yield();
}

/// Ends while answers stream in and handlers run, and lingers on the way out.
int leave_busy(const Arguments& arguments) {
  // Handlers of exit() run last first: this one after those of every library used below.
  std::atexit([] { await_answers(1'500); });
  static_session = open(arguments);
  for (int i = 0; i < 2'000; ++i) {
    static_session->async(Get{"/"}, soon(), [](const Result<Node>&) { ++answers; });
  }
  await_answers(50);
  say("leaving");
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string deed = count > 1 ? words[1] : "";
  Arguments arguments;
  if (count > 2) arguments.connect = words[2];
  if (count > 3) arguments.path = words[3];
  if (count > 4) arguments.options.tls.ca_file = words[4];
  arguments.options.timeout = 20s;
  // Somebody waits for the end of these sessions.
  if (deed == "statics" || deed == "busy") arguments.options.timeout = 6s;
  // Of this one, too, but it is asked first whether it holds, and must not be in doubt by then.
  if (deed == "hold") arguments.options.timeout = 10s;
  if (deed == "fork") return fork_and_go_on(arguments);
  if (deed == "exec") return exec_ls(arguments);
  if (deed == "shortage") return run_short(arguments);
  if (deed == "signals") return work_under_signals(arguments);
  if (deed == "hold") return hold_and_tell(arguments);
  if (deed == "statics") return leave_statics(arguments);
  if (deed == "busy") return leave_busy(arguments);
  std::cerr << "session_peer: what is \"" << deed << "\"?\n";
  return 2;
}
