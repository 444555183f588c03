#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "session/host.hpp"
#include "session/operations.hpp"

namespace latchkey::session {

template <class T>
using Sink = std::function<void(Result<T>)>;

template <class Operation>
WatchOn watch_on(const Operation& operation) {
  if constexpr (std::is_same_v<Operation, Children>) {
    return WatchOn::kChildren;
  } else if constexpr (std::is_same_v<Operation, AddWatch>) {
    return operation.mode == WatchMode::kPersistent ? WatchOn::kPersistent : WatchOn::kRecursive;
  } else {
    return WatchOn::kData;
  }
}

/// Submits an operation; `sink` gets its one result, with the machine held.
template <class Operation>
void submit(Host& host, Machine& machine, Operation operation, Deadline deadline, Instant now,
            Sink<typename Operation::Value> sink) {
  auto prepared = prepare(operation, machine);
  if (!prepared) return sink(prepared.error());
  Call& call = prepared->call;
  const wire::Op op = call.op;
  call.deadline = deadline.at();
  if (prepared->watcher) {
    // The user's watcher runs on the user's executor, in order with everything else of the session.
    call.watch = WatchWish{
        .on = watch_on(operation),
        .watcher = [&host, watcher = std::move(prepared->watcher)](const WatchEvent& event) {
          host.post_in_order([guard = host.guard(), watcher, event] {
            guard->run("watcher", [&] { watcher(event); });
          });
        }};
  }
  if constexpr (std::is_same_v<Operation, Authenticate>) {
    machine.add_credential(
        {operation.scheme, operation.secret},
        [&host, &machine, op, operation, sink](Outcome&& outcome) {
          report(host, op, {}, outcome);
          sink(finish(operation, std::move(outcome), machine));
        },
        deadline.at(), now);
  } else {
    call.done = [&host, &machine, op, operation = std::move(operation),
                 sink = std::move(sink)](Outcome&& outcome) {
      if (is_reporting(host)) report(host, op, path_text(operation), outcome);
      sink(finish(operation, std::move(outcome), machine));
    };
    machine.submit(std::move(call), now);
  }
}

}  // namespace latchkey::session
