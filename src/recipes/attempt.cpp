#include "recipes/attempt.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/random.hpp"
#include "session/operations.hpp"

namespace latchkey::recipes {

namespace action = queue::action;
namespace event = queue::event;
using queue::Answer;
using queue::Ask;
using session::Outcome;
using wire::Op;

namespace {

std::string new_guid() { return queue::format_guid(base::kernel_random(), base::kernel_random()); }

/// What an outcome proves. A session that moved is re-attached by the machine; the request may be
/// asked again there, after a look at what became of it.
Answer answer_of(const Outcome& outcome) {
  if (outcome.ok) return {};
  const bool ambiguous = outcome.effect == Effect::kUnknown ||
                         outcome.code == Code::kConnectionLoss ||
                         outcome.code == Code::kSessionMoved;
  const bool over = is_session_over(outcome.code);
  return {ambiguous && !over ? Answer::Kind::kAmbiguous : Answer::Kind::kNo, outcome.code};
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::shared_ptr<Attempt> Attempt::start(const std::shared_ptr<session::Host>& host,
                                        session::Machine& machine, Plan plan, Deadline deadline,
                                        Sink sink) {
  auto attempt = std::make_shared<Attempt>(host, machine, std::move(plan), std::move(sink));
  attempt->self_ = attempt;
  attempt->member_ = machine.join(*attempt);
  attempt->deadline_timer_ = machine.timers().add(deadline.at(), [weak = std::weak_ptr(attempt)] {
    if (const auto self = weak.lock()) self->cancel(Code::kTimedOut);
  });
  attempt->feed(event::Start{});
  return attempt;
}

Attempt::Attempt(const std::shared_ptr<session::Host>& host, session::Machine& machine, Plan plan,
                 Sink sink)
    : host_(*host),
      shared_host_(host),
      machine_(machine),
      plan_(std::move(plan)),
      directory_(machine.absolute(plan_.contender.directory)),
      contender_(plan_.contender, new_guid),
      sink_(std::move(sink)) {}

void Attempt::cancel(Code code) { feed(event::Cancel{code}); }

void Attempt::release(session::Completion done) {
  on_removed_ = std::move(done);
  feed(event::Release{});
}

void Attempt::feed(queue::Event event) {
  const auto alive = shared_from_this();
  events_.push_back(std::move(event));
  if (std::exchange(feeding_, true)) return;
  while (!events_.empty()) {
    const queue::Event next = std::move(events_.front());
    events_.pop_front();
    for (queue::Action& wanted : contender_.step(next)) {
      std::visit([this](auto& what) { carry_out(what); }, wanted);
    }
  }
  feeding_ = false;
}

// Requests.

std::string Attempt::path_of(const std::string& child) const {
  return directory_ == "/" ? "/" + child : directory_ + "/" + child;
}

template <class Body>
session::CallId Attempt::send(Ask ask, Op op, const Body& body, session::Completion done,
                              std::optional<session::WatchWish> watch) {
  session::Call call{.op = op, .path = body.path, .watch = std::move(watch)};
  wire::append_frame(call.frame, wire::RequestHeader{0, op}, body);
  call.done = [self = shared_from_this(), ask, op, path = body.path,
               done = std::move(done)](Outcome&& outcome) {
    self->calls_.erase(ask);
    session::report(self->host_, op, self->machine_.relative(path), outcome);
    done(std::move(outcome));
  };
  const session::CallId id = machine_.submit(std::move(call), machine_.now());
  calls_.emplace(ask, id);
  return id;
}

void Attempt::carry_out(action::Create& action) {
  send(action.ask, Op::kCreate2,
       wire::Create{path_of(action.prefix), plan_.data, session::to_wire(plan_.acl),
                    wire::CreateMode::kEphemeralSequential},
       [this, ask = action.ask](Outcome&& outcome) {
         event::Created created{.ask = ask, .answer = answer_of(outcome), .name = {}};
         if (auto* reply = std::get_if<wire::Create2Reply>(&outcome.reply)) {
           created.name = last_part(reply->path);
           created.czxid = reply->stat.czxid;
         }
         feed(std::move(created));
       });
}

void Attempt::list(Ask ask, std::optional<session::WatchWish> watch) {
  const bool watched = watch.has_value();
  const session::CallId id = send(
      ask, Op::kGetChildren, wire::PathWatch{directory_, watched},
      [this, ask](Outcome&& outcome) {
        event::Listed listed{.ask = ask, .answer = answer_of(outcome), .children = {}};
        if (auto* reply = std::get_if<wire::ChildrenReply>(&outcome.reply)) {
          listed.children = std::move(reply->children);
          std::erase_if(listed.children,
                        [&](const std::string& child) { return machine_.is_owed(path_of(child)); });
        }
        feed(std::move(listed));
      },
      std::move(watch));
  if (watched) directory_watch_ = id;
}

void Attempt::carry_out(action::List& action) { list(action.ask, std::nullopt); }

void Attempt::carry_out(action::ListAndWatch& action) {
  list(action.ask, session::WatchWish{.on = session::WatchOn::kChildren,
                                      .watcher = [weak = weak_from_this()](const WatchEvent&) {
                                        if (const auto self = weak.lock())
                                          self->feed(event::DirectoryChanged{});
                                      }});
}

void Attempt::carry_out(action::Sync& action) {
  send(action.ask, Op::kSync, wire::PathOnly{directory_},
       [this, ask = action.ask](Outcome&& outcome) {
         feed(event::Synced{ask, answer_of(outcome)});
       });
}

void Attempt::make_directory(Ask ask, const std::string& path, Parent parent) {
  const bool container = parent == Parent::kContainer;
  // The options speak of this lock; what lies above it is everybody's.
  const bool is_ours = path == plan_.contender.directory;
  send(ask, container ? Op::kCreateContainer : Op::kCreate2,
       wire::Create{machine_.absolute(path), std::string{},
                    session::to_wire(is_ours ? plan_.acl : open_acl()),
                    container ? wire::CreateMode::kContainer : wire::CreateMode::kPersistent},
       [this, ask, path, container](Outcome&& outcome) {
         // Servers before 3.5 know no containers.
         if (container && !outcome.ok && outcome.code == Code::kUnimplemented) {
           return make_directory(ask, path, Parent::kPersistent);
         }
         feed(event::Made{ask, answer_of(outcome)});
       });
}

void Attempt::carry_out(action::MakeDirectory& action) {
  make_directory(action.ask, action.path, plan_.parent);
}

void Attempt::carry_out(action::RemoveDirectory& action) {
  send(action.ask, Op::kDelete, wire::PathVersion{directory_, -1},
       [this, ask = action.ask](Outcome&& outcome) {
         feed(event::Removed{ask, answer_of(outcome)});
       });
}

void Attempt::carry_out(action::Look& action) {
  send(action.ask, Op::kExists, wire::PathWatch{path_of(action.name), false},
       [this, ask = action.ask](Outcome&& outcome) {
         event::Looked looked{.ask = ask, .answer = answer_of(outcome)};
         if (auto* reply = std::get_if<wire::StatReply>(&outcome.reply)) {
           looked.owned = reply->stat.ephemeral_owner == machine_.session_id();
           looked.czxid = reply->stat.czxid;
         }
         feed(looked);
       });
}

void Attempt::carry_out(action::Watch& action) {
  const std::string name = action.name;
  session::WatchWish wish{.on = session::WatchOn::kData,
                          .kin = session::WatchTable::Kin::kYes,
                          .watcher = [weak = weak_from_this(), name](const WatchEvent& happened) {
                            const auto self = weak.lock();
                            if (!self || happened.kind == EventKind::kSessionOver) return;
                            self->watches_.erase(name);
                            if (happened.kind == EventKind::kDeleted) {
                              self->feed(event::Gone{name});
                            } else {
                              self->feed(event::Touched{name});
                            }
                          }};
  watches_[name] = send(
      action.ask, Op::kGetData, wire::PathWatch{path_of(name), true},
      [this, ask = action.ask, name](Outcome&& outcome) {
        feed(event::Watched{ask, answer_of(outcome)});
        if (outcome.ok) look_for_ended(name);
      },
      std::move(wish));
}

/// A node of our own session may end its hold while the watch on it is on its way: before there was
/// anybody to tell. So look once more when the watch is in place.
void Attempt::look_for_ended(const std::string& name) {
  const auto watch = watches_.find(name);
  if (watch == watches_.end() || !machine_.is_owed(path_of(name))) return;
  machine_.forget_watch(watch->second);
  watches_.erase(watch);
  feed(event::Gone{name});
}

void Attempt::carry_out(action::Unwatch& action) {
  const auto watch = watches_.find(action.name);
  if (watch == watches_.end()) return;
  const session::CallId setter = watch->second;
  watches_.erase(watch);
  // A node we are deleting takes the server's watch with it.
  if (machine_.is_owed(path_of(action.name))) {
    machine_.forget_watch(setter);
  } else {
    machine_.unwatch(setter, machine_.now());
  }
}

void Attempt::carry_out(action::UnwatchDirectory&) {
  if (!directory_watch_) return;
  machine_.unwatch(*std::exchange(directory_watch_, std::nullopt), machine_.now());
}

void Attempt::carry_out(action::Withdraw& action) {
  const auto call = calls_.find(action.ask);
  if (call != calls_.end()) machine_.withdraw(call->second, machine_.now());
}

void Attempt::carry_out(action::Prove& action) {
  if (machine_.now() < machine_.lease().deadline()) {
    return feed(event::Proved{action.ask, Answer{}});
  }
  send(action.ask, Op::kSync, wire::PathOnly{directory_},
       [this, ask = action.ask](Outcome&& outcome) {
         const bool fresh = machine_.now() < machine_.lease().deadline();
         if (!outcome.ok || fresh) return feed(event::Proved{ask, answer_of(outcome)});
         // An answer that took a lease's time to come, or came after a long silence of ours, proves
         // nothing about now: ask again, after a heartbeat.
         pause_timer_ = machine_.timers().add(
             machine_.now() + machine_.lease().heartbeat(), [weak = weak_from_this(), ask] {
               const auto self = weak.lock();
               if (self) self->feed(event::Proved{ask, {Answer::Kind::kAmbiguous, {}}});
             });
       });
}

void Attempt::carry_out(action::Pause& action) {
  pause_timer_ = machine_.timers().add(machine_.now() + machine_.back_off(action.round),
                                       [weak = weak_from_this(), ask = action.ask] {
                                         if (const auto self = weak.lock())
                                           self->feed(event::Resumed{ask});
                                       });
}

void Attempt::owe(const std::string& name) {
  const std::string path = path_of(name);
  auto done = [self = shared_from_this(), path,
               told = std::exchange(on_removed_, {})](Outcome&& outcome) {
    session::report(self->host_, Op::kDelete, self->machine_.relative(path), outcome);
    if (told) told(std::move(outcome));
  };
  machine_.owe_delete(path, std::move(done), machine_.now());
}

void Attempt::carry_out(action::Owe& action) {
  if (!telling_loss_) return owe(action.name);
  held_back_.push_back(action.name);
}

// Answers to the caller.

Error Attempt::error_of(Code code, const std::string& why) const {
  Outcome outcome;
  outcome.code = code;
  outcome.detail = why;
  if (why.empty() && code == Code::kTimedOut) outcome.detail = machine_.last_trouble();
  return session::make_error("lock", plan_.contender.directory, outcome);
}

void Attempt::carry_out(action::Grant& action) {
  machine_.timers().cancel(std::exchange(deadline_timer_, 0));
  auto hold = std::make_shared<Hold>(shared_host_.lock(), weak_from_this(), Token(action.czxid),
                                     machine_.relative(path_of(action.name)));
  hold_ = hold;
  // A heartbeat tells us to watch our own node, but where requests are frequent there are none.
  heartbeat_timer_ = machine_.timers().add(machine_.now() + machine_.lease().heartbeat(),
                                           [weak = weak_from_this()] {
                                             if (const auto self = weak.lock())
                                               self->on_heartbeat();
                                           });
  std::exchange(sink_, {})(std::move(hold));
}

void Attempt::carry_out(action::Fail& action) {
  machine_.timers().cancel(std::exchange(deadline_timer_, 0));
  std::exchange(sink_, {})(error_of(action.code, action.why));
}

void Attempt::carry_out(action::Lose&) {
  auto hold = hold_.lock();
  if (!hold) return;
  hold->mark_lost();
  auto self = shared_from_this();
  // Whoever comes next must not hold before our holder knows that it no longer does: the delete
  // waits until its callbacks have run, but not longer than the session's time-out, should one
  // hang.
  telling_loss_ = true;
  telling_timer_ =
      machine_.timers().add(machine_.now() + machine_.timeout(), [self] { self->loss_is_told(); });
  // The hold may be the last that keeps the session open, and the session must not be closed from
  // in here: so it is let go over there.
  host_.post([hold = std::move(hold), self = std::move(self)] {
    hold->announce_loss();
    hold->host().enter([&](session::Machine&, Instant) { self->loss_is_told(); });
  });
}

void Attempt::loss_is_told() {
  telling_loss_ = false;
  machine_.timers().cancel(std::exchange(telling_timer_, 0));  // It would keep us until it rings.
  for (const std::string& name : std::exchange(held_back_, {})) owe(name);
}

void Attempt::carry_out(action::Done&) {
  machine_.leave(member_);
  for (const session::Timers::Id timer : {deadline_timer_, pause_timer_, heartbeat_timer_}) {
    machine_.timers().cancel(timer);
  }
  for (const auto& [name, setter] : watches_) machine_.unwatch(setter, machine_.now());
  watches_.clear();
  if (directory_watch_) machine_.unwatch(*directory_watch_, machine_.now());
  // Whoever waits for the removal of a node that nobody owed any more must not wait for ever.
  if (on_removed_) {
    Outcome outcome;
    outcome.code = machine_.is_over() ? machine_.over_code() : Code::kLost;
    std::exchange(on_removed_, {})(std::move(outcome));
  }
  self_.reset();
}

}  // namespace latchkey::recipes
