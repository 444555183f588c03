#include "latchkey/session.hpp"

#include "base/process.hpp"
#include "session/host.hpp"
#include "session/operations.hpp"
#include "session/submit.hpp"

namespace latchkey::session {

MachineOptions machine_options(const ConnectString& connect, const SessionOptions& options,
                               Linger linger) {
  std::vector<std::string> names;
  for (const Endpoint& endpoint : connect.endpoints) names.push_back(to_string(endpoint));
  std::int32_t mark = 0;
  if (options.after_death == AfterDeath::kEndsAtOnce) {
    if (const auto ticks = base::start_ticks()) {
      mark = base::process_mark(base::process_id(), *ticks);
    }
  }
  return {.timeout = options.timeout,
          .least_timeout = options.least_timeout,
          .credentials = options.credentials,
          .endpoints = connect.endpoints.size(),
          .endpoint_names = std::move(names),
          .retry = options.retry,
          .give_up_after = options.give_up_after,
          .max_requests = options.max_requests,
          .max_queued_bytes = options.max_queued_bytes,
          .max_request_bytes = options.max_request_bytes,
          .max_reply_bytes = options.max_reply_bytes,
          .chroot = connect.chroot,
          .process_mark = mark,
          .linger = linger};
}

Machine::Hooks user_hooks(Host& host) {
  Machine::Hooks hooks;
  if (host.options().on_state) {
    hooks.on_state = [&host](SessionState state) {
      host.post_in_order([guard = host.guard(), hook = host.options().on_state, state] {
        guard->run("on_state", [&] { hook(state); });
      });
    };
  }
  if (host.options().log) {
    hooks.log = [&host](LogLevel level, std::string text) {
      host.post_in_order(
          [guard = host.guard(), hook = host.options().log, level, text = std::move(text)] {
            guard->run("log", [&] { hook(level, text); });
          });
    };
  }
  return hooks;
}

Result<void> check_blocking(const Host& host, std::string_view what) {
  Outcome outcome;
  if (host.is_forked()) {
    outcome.code = Code::kForked;
  } else if (host.is_own_thread()) {
    outcome.code = Code::kWouldDeadlock;
    outcome.detail = "a blocking call from the thread that would complete it";
  } else {
    return {};
  }
  return make_error(what, {}, outcome);
}

void report(Host& host, wire::Op op, const std::string& path, const Outcome& outcome) {
  if (!is_reporting(host)) return;
  host.post_in_order([guard = host.guard(), hook = host.options().on_operation,
                      told = OperationReport{.operation = name(op),
                                             .path = path,
                                             .latency = outcome.finished_at - outcome.submitted_at,
                                             .bytes_sent = outcome.bytes_sent,
                                             .bytes_received = outcome.bytes_received,
                                             .attempts = outcome.attempts,
                                             .ok = outcome.ok,
                                             .code = outcome.code}] {
    guard->run("on_operation", [&] { hook(told); });
  });
}

namespace {

/// Whether a full machine is waited for or refuses.
enum class IfFull { kWait, kFail };

template <class Operation>
Error error_of(const Operation& operation, Code code) {
  Outcome outcome;
  outcome.code = code;
  return make_error(operation, outcome);
}

}  // namespace
}  // namespace latchkey::session

namespace latchkey::inline v0 {

using session::Host;
using session::Machine;

Session::Session(std::shared_ptr<Host> host) noexcept : host_(std::move(host)) {}
Session::Session(const Session&) noexcept = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(const Session&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

template <class Operation>
Result<typename Operation::Value> Session::call(Operation operation, Deadline deadline) {
  using Value = typename Operation::Value;
  if (auto allowed = session::check_blocking(*host_, session::kVerb<Operation>); !allowed) {
    return session::error_of(operation, allowed.error().code());
  }
  while (true) {
    base::Slot<Result<Value>> slot;
    base::Slot<session::Outcome> room;
    bool submitted = false;
    host_->enter([&](Machine& machine, Instant now) {
      // One that cannot be sent at all must not take another's turn: submit() refuses it at once.
      submitted = machine.has_room() || !session::prepare(operation, machine);
      if (submitted) {
        session::submit<Operation>(*host_, machine, std::move(operation), deadline, now,
                                   [&](Result<Value> result) { slot.set(std::move(result)); });
      } else {
        machine.await_room(
            deadline.at(), [&](session::Outcome&& outcome) { room.set(std::move(outcome)); }, now);
      }
    });
    if (submitted) return session::wait_for(*host_, slot, deadline);
    const session::Outcome outcome = session::wait_for(*host_, room, deadline);
    if (!outcome.ok) return session::make_error(operation, outcome);
  }
}

template <class Operation>
void Session::async(Operation operation, Deadline deadline,
                    Handler<typename Operation::Value> handler) {
  using Value = typename Operation::Value;
  if (host_->is_forked()) return handler(session::error_of(operation, Code::kForked));
  host_->enter([&](Machine& machine, Instant now) {
    auto sink = [host = host_.get(), handler = std::move(handler)](Result<Value> result) {
      host->post_in_order([guard = host->guard(), handler, result = std::move(result)]() mutable {
        guard->run("async", [&] { handler(std::move(result)); });
      });
    };
    if (!machine.has_room()) return sink(session::error_of(operation, Code::kOverloaded));
    session::submit<Operation>(*host_, machine, std::move(operation), deadline, now,
                               std::move(sink));
  });
}

#define LATCHKEY_OPERATION(Operation)                                                   \
  template LATCHKEY_EXPORT Result<Operation::Value> Session::call(Operation, Deadline); \
  template LATCHKEY_EXPORT void Session::async(Operation, Deadline, Handler<Operation::Value>);
LATCHKEY_OPERATION(Create)
LATCHKEY_OPERATION(Remove)
LATCHKEY_OPERATION(Exists)
LATCHKEY_OPERATION(Get)
LATCHKEY_OPERATION(Set)
LATCHKEY_OPERATION(Children)
LATCHKEY_OPERATION(GetAcl)
LATCHKEY_OPERATION(SetAcl)
LATCHKEY_OPERATION(Sync)
LATCHKEY_OPERATION(Check)
LATCHKEY_OPERATION(Multi)
LATCHKEY_OPERATION(MultiRead)
LATCHKEY_OPERATION(Ephemerals)
LATCHKEY_OPERATION(ChildrenCount)
LATCHKEY_OPERATION(WhoAmI)
LATCHKEY_OPERATION(AddWatch)
LATCHKEY_OPERATION(RemoveWatches)
LATCHKEY_OPERATION(Authenticate)
#undef LATCHKEY_OPERATION

Result<Created> Session::create(Path path, std::string data, CreateOptions options,
                                Deadline deadline) {
  return call(Create{std::move(path), std::move(data), std::move(options)}, deadline);
}

Result<void> Session::remove(Path path, Deadline deadline, std::int32_t version) {
  return call(Remove{std::move(path), version}, deadline);
}

Result<std::optional<Stat>> Session::exists(Path path, Deadline deadline, Watcher watcher) {
  return call(Exists{std::move(path), std::move(watcher)}, deadline);
}

Result<Node> Session::get(Path path, Deadline deadline, Watcher watcher) {
  return call(Get{std::move(path), std::move(watcher)}, deadline);
}

Result<Stat> Session::set(Path path, std::string data, Deadline deadline, std::int32_t version) {
  return call(Set{std::move(path), std::move(data), version}, deadline);
}

Result<ChildList> Session::children(Path path, Deadline deadline, Watcher watcher) {
  return call(Children{std::move(path), std::move(watcher)}, deadline);
}

Result<void> Session::sync(Path path, Deadline deadline) {
  return call(Sync{std::move(path)}, deadline);
}

Result<Multi::Outcome> Session::multi(std::vector<Multi::Part> parts, Deadline deadline) {
  return call(Multi{std::move(parts)}, deadline);
}

Result<void> Session::wait_connected(Deadline deadline) {
  if (auto allowed = session::check_blocking(*host_, "connect"); !allowed) return allowed;
  base::Slot<session::Outcome> slot;
  host_->enter([&](Machine& machine, Instant now) {
    machine.await_connection(
        deadline.at(), [&](session::Outcome&& outcome) { slot.set(std::move(outcome)); }, now);
  });
  const session::Outcome outcome = session::wait_for(*host_, slot, deadline);
  if (outcome.ok) return {};
  return session::make_error("connect", {}, outcome);
}

Result<void> Session::close(Deadline deadline) {
  if (auto allowed = session::check_blocking(*host_, "close"); !allowed) return allowed;
  base::Slot<session::Outcome> slot;
  host_->enter([&](Machine& machine, Instant now) {
    machine.close(
        deadline.at(), [&](session::Outcome&& outcome) { slot.set(std::move(outcome)); }, now,
        session::TellingLoss::is_here(*host_) ? Machine::Losses::kAsTheyAre
                                              : Machine::Losses::kToldFirst);
  });
  const session::Outcome outcome = session::wait_for(*host_, slot, deadline);
  if (outcome.ok) return {};
  return session::make_error("close", {}, outcome);
}

SessionState Session::state() const noexcept {
  if (host_->is_forked()) return SessionState::kClosed;
  return host_->view().state.load(std::memory_order_acquire);
}

std::int64_t Session::id() const noexcept {
  return host_->view().id.load(std::memory_order_acquire);
}

std::chrono::milliseconds Session::timeout() const noexcept {
  return std::chrono::milliseconds(host_->view().timeout_ms.load(std::memory_order_acquire));
}

}  // namespace latchkey::inline v0
