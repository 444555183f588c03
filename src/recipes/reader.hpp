#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "session/host.hpp"
#include "session/submit.hpp"

namespace latchkey::recipes {

/// The requests and watches of somebody who looks at nodes that are not its own: answers and events
/// come on the session's strand, and nothing comes after close(). Watches go with it, the server's
/// too where nobody else in the session needs them.
///
/// Owns no session, so that it may be destroyed anywhere. Thread safety: session strand only.
class Reader final : public session::Member, public std::enable_shared_from_this<Reader> {
 public:
  using Changed = std::function<void()>;
  /// Of a watch, while it is in place.
  using Key = std::uint64_t;

  /// `deadline` is that of every request. `session_over` is called when the session has ended under
  /// a watch, once for each.
  Reader(session::Host& host, session::Machine& machine, Deadline deadline, session::Resend resend,
         Changed session_over = {})
      : host_(host),
        machine_(machine),
        deadline_(deadline),
        resend_(resend),
        session_over_(std::move(session_over)) {}

  /// `changed` is called once, by the watch that the request sets if it succeeds. A request that
  /// cannot be sent at all is answered at once.
  template <class Operation>
  Key ask(Operation operation, session::Sink<typename Operation::Value> done,
          Changed changed = {}) {
    const Key key = ++last_key_;
    if constexpr (requires { operation.watcher; }) {
      if (changed) {
        operation.watcher = [weak = weak_from_this(), key](const WatchEvent& event) {
          if (const auto self = weak.lock()) self->fired(key, event);
        };
      }
    }
    auto prepared = session::prepare(operation, machine_);
    if (!prepared) {
      done(prepared.error());
      return key;
    }
    session::Call& call = prepared->call;
    call.deadline = deadline_.at();
    call.resend = resend_;
    if (prepared->watcher) {
      call.watch = session::WatchWish{.on = session::watch_on(operation),
                                      .watcher = std::move(prepared->watcher)};
    }
    call.done = [self = shared_from_this(), key, op = call.op, operation,
                 done = std::move(done)](session::Outcome&& outcome) {
      session::report(self->host_, op, session::path_text(operation), outcome);
      auto result = session::finish(operation, std::move(outcome), self->machine_);
      if (!result) self->watches_.erase(key);
      if (!self->closed_) done(std::move(result));
    };
    const session::CallId setter = machine_.submit(std::move(call), machine_.now());
    if (changed) watches_.emplace(key, Watch{setter, std::move(changed)});
    return key;
  }

  /// As ask(), behind a sync in the same flush: what is read is as new as the service's leader was
  /// when it answered (H76). A sync that fails is the answer.
  template <class Operation>
  void ask_synced(Operation operation, session::Sink<typename Operation::Value> done) {
    const auto synced = std::make_shared<Result<void>>();
    ask(Sync{operation.path}, [synced](Result<void> answer) { *synced = std::move(answer); });
    ask(std::move(operation),
        [synced, done = std::move(done)](Result<typename Operation::Value> result) {
          if (!*synced) return done(synced->error());
          done(std::move(result));
        });
  }

  /// The watch is no longer wanted.
  void forget(Key key);
  /// Calls back after a back-off that grows with `round`, or as soon as the session has ended. One
  /// at a time.
  void pause(int round, std::function<void()> done);
  void close();

  [[nodiscard]] const session::Machine& machine() const { return machine_; }
  /// How many nodes' data fit into one reply for certain: what a request may carry in, a node may
  /// hold.
  [[nodiscard]] std::size_t nodes_per_reply() const;

  void on_heartbeat() override {}
  void on_lease_over() override {}
  void on_session_over(Code) override { resume(); }

 private:
  struct Watch {
    session::CallId setter;
    Changed changed;
  };

  void fired(Key key, const WatchEvent& event);
  void resume();

  session::Host& host_;
  session::Machine& machine_;
  const Deadline deadline_;
  const session::Resend resend_;
  const Changed session_over_;
  bool closed_ = false;
  Key last_key_ = 0;
  std::map<Key, Watch> watches_;

  // While pausing. Timers do not outlive the session, so we are one of its members then.
  std::function<void()> after_pause_;
  session::Timers::Id timer_ = 0;
  session::Machine::MemberId member_ = 0;
};

/// Looks once, in one entry of the session, and waits for what is seen. `look` gets a reader and
/// whom to tell. Any thread; `what` is the operation's name, for errors.
template <class Seen, class Look>
Result<Seen> look_once(session::Host& host, const char* what, Deadline deadline, const Look& look) {
  if (auto allowed = session::check_blocking(host, what); !allowed) return allowed.error();
  base::Slot<Result<Seen>> slot;
  host.enter([&](session::Machine& machine, Instant) {
    look(std::make_shared<Reader>(host, machine, deadline, session::Resend::kWithinPolicy),
         [&slot](Result<Seen> seen) { slot.set(std::move(seen)); });
  });
  return session::wait_for(host, slot, deadline);
}

}  // namespace latchkey::recipes
