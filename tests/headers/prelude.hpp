#pragma once

#include <chrono>
#include <coroutine>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

/// What the examples in the public headers take for granted: the names a reader would expect them
/// to have from the lines before. Nothing here is defined, because nothing of it is ever run.
namespace reader {

using namespace latchkey;
using namespace std::chrono_literals;

// Latchkey's own.
extern Session session;
extern Mutex mutex;
extern Semaphore semaphore;
extern Result<Lease> lease;
extern Result<Node> node;
extern Result<NodeAcl> node_acl;
extern Result<void> result;
extern Result<Queue> queue;
extern const QueueEntry* holder;
extern Token token;
extern Deadline deadline;
extern Watcher watcher;
extern std::stop_token stop;
extern std::stop_token shutdown;
extern Session::Handler<Node> handler;

// The program around it.
using Row = std::string;
struct Work {
  void abort();
};
struct Store {
  void write(Token token, const Row& row);
};
struct Scheduler {
  void start(Token token, std::stop_token over);
};
struct Database {
  bool answers();
};
struct Metrics {
  void record(std::string_view operation, Duration latency, bool ok);
};
struct Pool {
  void post(std::function<void()> task);
};
extern Work work;
extern Store store;
extern const Row row;
extern const std::vector<Row> rows;
extern const std::string customer;
extern Token largest_seen;
extern Database database;
extern Metrics metrics;
extern std::shared_ptr<Scheduler> scheduler;
extern std::shared_ptr<Pool> pool;
extern Executor executor;

void write_row(Token token, const Row& row);
void refuse(const Row& row);
void open_again();
void look_first();
void look_for_damage();
void try_again();
void poll_once();
void serve(std::stop_token stop);
template <class T>
void show(const T& what);
template <class T>
void use(const T& what);

/// An example that waits is a coroutine; of what type is its reader's business.
struct Coroutine {
  struct promise_type {
    Coroutine get_return_object();
    std::suspend_never initial_suspend() noexcept;
    std::suspend_never final_suspend() noexcept;
    void return_void();
    void unhandled_exception();
  };
};

}  // namespace reader
