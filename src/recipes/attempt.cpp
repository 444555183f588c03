#include "recipes/attempt.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/random.hpp"
#include "queue/owner.hpp"
#include "recipes/answer.hpp"
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

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::shared_ptr<Attempt> Attempt::start(const std::shared_ptr<session::Host>& host,
                                        session::Machine& machine, Plan plan,
                                        std::shared_ptr<Claimant> claimant) {
  auto attempt = std::make_shared<Attempt>(host, machine, std::move(plan), std::move(claimant));
  attempt->begin();
  attempt->feed(event::Start{});
  return attempt;
}

Attempt::Attempt(const std::shared_ptr<session::Host>& host, session::Machine& machine, Plan plan,
                 std::shared_ptr<Claimant> claimant)
    : Errand(host, machine, std::move(claimant)),
      plan_(std::move(plan)),
      contender_(plan_.contender, new_guid),
      directory_(machine.absolute(plan_.contender.directory)) {}

void Attempt::cancel(Code code) { feed(event::Cancel{code}); }

void Attempt::release(session::Completion done) {
  on_removed_ = std::move(done);
  feed(event::Release{});
}

void Attempt::downgrade(std::shared_ptr<Claimant> reader, std::function<void()> retire) {
  asking_ = std::move(reader);
  retire_ = std::move(retire);
  feed(event::Downgrade{});
}

void Attempt::feed(queue::Event event) {
  const auto alive = shared_from_this();
  events_.push_back(std::move(event));
  if (std::exchange(feeding_, true)) return;
  while (!events_.empty()) {
    const queue::Event next = std::move(events_.front());
    events_.pop_front();
    for (queue::Action& wanted : contender_.step(next)) carry_out_any(wanted);
  }
  feeding_ = false;
}

// Requests.

std::string Attempt::path_of(const std::string& child) const {
  return directory_ == "/" ? "/" + child : directory_ + "/" + child;
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
                                      .watcher = [weak = weak_self()](const WatchEvent&) {
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

void Attempt::carry_out(action::MakeDirectory& action) {
  make_directory(action.ask, action.path,
                 {plan_.contender.directory, plan_.acl, plan_.parent, plan_.base, plan_.base_data},
                 [this, ask = action.ask](Answer answer) {
                   feed(event::Made{ask, answer});
                 });
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
                          .watcher = [weak = weak_self(), name](const WatchEvent& happened) {
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
        const auto* reply = std::get_if<wire::GetDataReply>(&outcome.reply);
        const bool revoked = reply && reply->data == queue::kRevokeData && contender_.is_own(name);
        feed(event::Watched{ask, answer_of(outcome)});
        if (outcome.ok) look_for_ended(name);
        if (revoked) tell_asked_to_let_go();
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

void Attempt::carry_out(action::Exchange& action) {
  wire::Multi body;
  body.ops.push_back(
      {Op::kCreate, wire::Create{path_of(action.to), plan_.data, session::to_wire(plan_.acl),
                                 wire::CreateMode::kEphemeral}});
  body.ops.push_back({Op::kDelete, wire::PathVersion{path_of(action.from), -1}});
  send(action.ask, Op::kMulti, path_of(action.from), body,
       [this, ask = action.ask](Outcome&& outcome) {
         feed(event::Exchanged{ask, answer_of_multi(outcome, 2), outcome.zxid});
       });
}

void Attempt::carry_out(action::Withdraw& action) { withdraw(action.ask); }

void Attempt::carry_out(action::Prove& action) {
  prove(action.ask, directory_, [this, ask = action.ask](Answer answer) {
    feed(event::Proved{ask, answer});
  });
}

void Attempt::carry_out(action::Pause& action) {
  pause(action.round, [this, ask = action.ask] { feed(event::Resumed{ask}); });
}

void Attempt::owe(const std::string& name) {
  const std::string path = path_of(name);
  auto done = [self = weak_self().lock(), path,
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

void Attempt::carry_out(action::Grant& action) {
  if (const auto retire = std::exchange(retire_, {})) retire();
  tell_granted({.token = Token(action.czxid),
                .nodes = {{machine_.relative(path_of(action.name)), action.czxid}}});
}

void Attempt::carry_out(action::Fail& action) {
  tell_failed(error_of(action.code, action.why, plan_.contender.directory));
}

void Attempt::carry_out(action::Lose& action) {
  telling_loss_ = true;
  tell_lost(action.code, [this] {
    telling_loss_ = false;
    for (const std::string& name : std::exchange(held_back_, {})) owe(name);
  });
}

void Attempt::carry_out(action::Done&) {
  for (const auto& [name, setter] : watches_) machine_.unwatch(setter, machine_.now());
  watches_.clear();
  if (directory_watch_) machine_.unwatch(*directory_watch_, machine_.now());
  finish();
}

}  // namespace latchkey::recipes
