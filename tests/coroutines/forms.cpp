// The forms in which users write a lock inside a co_await expression, each with temporaries. g++ 12
// copies some temporaries of such an expression byte by byte; the address sanitizer sees that.
#include <coroutine>
#include <cstdlib>
#include <future>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include "latchkey/asio.hpp"
#include "latchkey/multi_lock.hpp"
#include "latchkey/mutex.hpp"
#include "latchkey/name_lock.hpp"
#include "latchkey/recursive_mutex.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/semaphore.hpp"
#include "latchkey/server.hpp"

namespace {

using namespace latchkey;
using namespace std::chrono_literals;

/// A coroutine that can be waited for.
struct Task {
  struct promise_type {
    std::promise<void> done;
    Task get_return_object() { return {done.get_future()}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() { done.set_value(); }
    void unhandled_exception() { std::abort(); }
  };
  std::future<void> done;
};

/// Longer than what fits into a std::string itself.
const std::string kPath = "/a/path/that/is/long/enough/for/the/heap/";

int forms = 0;

void expect_held(const Result<Lease>& lease, const char* form) {
  ++forms;
  if (lease) return;
  std::cerr << form << ": " << lease.error() << '\n';
  std::exit(1);
}

Deadline soon() { return deadline_in(60s); }

Task await_requests(Session session) {
  expect_held(co_await Mutex(session, "/short").lock_async(soon()), "Mutex, literal");
  expect_held(co_await Mutex(session, kPath + "mutex").lock_async(soon()), "Mutex");
  expect_held(co_await Mutex(session, kPath + "mutex").try_lock_async(soon()), "Mutex, try");
  expect_held(co_await RwLock(session, kPath + "rw").read().lock_async(soon()), "RwLock::read");
  expect_held(co_await RwLock(session, kPath + "rw").write().lock_async(soon()), "RwLock::write");
  expect_held(co_await NameLock(session, kPath + "name").lock_async(soon()), "NameLock");
  const Owner owner;
  expect_held(co_await RecursiveMutex(session, kPath + "own").of(owner).lock_async(soon()),
              "RecursiveMutex");
  std::stop_source stop;
  expect_held(co_await Mutex(session, kPath + "stop").lock_async(soon(), stop.get_token()),
              "Mutex, stop token");
  expect_held(
      co_await Mutex(session, kPath + "stop").lock_async(soon()).stopped_by(stop.get_token()),
      "Mutex, stopped_by");

  // By name: what stands in braces.
  const MutexOptions options{.reason = "a reason that is long enough for the heap as well"};
  expect_held(co_await Mutex(session, kPath + "why").lock_async(soon()), "Mutex, plain");
  expect_held(co_await Mutex(session, kPath + "why", options).lock_async(soon()),
              "Mutex, named options");
  const SemaphoreOptions size{.size = 2};
  expect_held(co_await Semaphore(session, kPath + "gpus", size).permits(2).lock_async(soon()),
              "Semaphore");
  const std::vector<Path> both{kPath + "left", kPath + "right"};
  expect_held(co_await MultiLock(session, both).lock_async(soon()), "MultiLock");
  // By name: a lambda with captures.
  const Executor executor = [path = kPath](std::function<void()> task) {
    std::thread(std::move(task)).detach();
  };
  expect_held(co_await Mutex(session, kPath + "on").lock_async(soon()).on(executor), "on()");
}

// Asio 1.22 has coroutines with g++ only.
#if defined(ASIO_HAS_CO_AWAIT)
constexpr int kForms = 16;

asio::awaitable<void> await_with_asio(Session session) {
  using asio::use_awaitable;
  expect_held(co_await async_wait(Mutex(session, kPath + "asio").lock_async(soon()), use_awaitable),
              "Asio, Mutex");
  expect_held(co_await async_wait(RwLock(session, kPath + "asio-rw").read().lock_async(soon()),
                                  use_awaitable),
              "Asio, RwLock");
}

void run_asio_forms(const Session& session) {
  asio::io_context context;
  auto done = asio::co_spawn(context, await_with_asio(session), asio::use_future);
  context.run();
  done.get();
}
#else
constexpr int kForms = 14;

void run_asio_forms(const Session&) {}
#endif

}  // namespace

int main() {
  auto server = Server::start_in_temp_folder();
  if (!server) {
    std::cerr << server.error() << '\n';
    return 1;
  }
  auto session = Session::open(server->connect_string(), SessionOptions(), soon());
  if (!session) {
    std::cerr << session.error() << '\n';
    return 1;
  }
  await_requests(*session).done.get();
  run_asio_forms(*session);
  std::cout << forms << " forms\n";
  return forms == kForms ? 0 : 1;
}
