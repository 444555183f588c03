#include "recipes/semaphore_claim.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/random.hpp"
#include "queue/owner.hpp"
#include "recipes/answer.hpp"
#include "recipes/attempt.hpp"

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

/// What the nodes of a multi that was carried out are called.
std::vector<std::string> names_in(const Outcome& outcome) {
  std::vector<std::string> names;
  const auto* reply = std::get_if<wire::MultiReply>(&outcome.reply);
  if (!reply) return names;
  for (const wire::MultiResult& result : reply->results) {
    if (const auto* made = std::get_if<wire::CreateReply>(&result.body)) {
      names.push_back(last_part(made->path));
    } else if (const auto* too = std::get_if<wire::Create2Reply>(&result.body)) {
      names.push_back(last_part(too->path));
    }
  }
  return names;
}

}  // namespace

std::shared_ptr<Claim> SemaphoreClaim::start(const std::shared_ptr<session::Host>& host,
                                             session::Machine& machine, PermitPlan plan,
                                             std::shared_ptr<Claimant> claimant) {
  auto claim =
      std::make_shared<SemaphoreClaim>(host, machine, std::move(plan), std::move(claimant));
  claim->begin();
  claim->feed(event::Start{});
  return claim;
}

SemaphoreClaim::SemaphoreClaim(const std::shared_ptr<session::Host>& host,
                               session::Machine& machine, PermitPlan plan,
                               std::shared_ptr<Claimant> claimant)
    : Errand(host, machine, std::move(claimant)),
      shared_host_(host),
      plan_(std::move(plan)),
      path_(machine.absolute(plan_.permits.path)),
      directory_(machine.absolute(queue::Permits::leases_of(plan_.permits.path))),
      permits_(plan_.permits, new_guid) {}

void SemaphoreClaim::feed(queue::PermitEvent event) {
  const auto alive = shared_from_this();
  events_.push_back(std::move(event));
  if (std::exchange(feeding_, true)) return;
  while (!events_.empty()) {
    const queue::PermitEvent next = std::move(events_.front());
    events_.pop_front();
    for (queue::PermitAction& wanted : permits_.step(next)) {
      std::visit([this](auto& what) { carry_out(what); }, wanted);
    }
  }
  feeding_ = false;
}

void SemaphoreClaim::release(session::Completion done) {
  on_all_removed_ = std::move(done);
  feed(event::Release{});
}

// The queue in front.

void SemaphoreClaim::carry_out(action::Queue&) {
  const auto host = shared_host_.lock();
  if (!host) return feed(event::OutOfLine{Code::kClosed});
  const std::optional<int> size = plan_.permits.size;
  const auto front =
      Attempt::start(host, machine_,
                     {.contender = {.directory = queue::Permits::locks_of(plan_.permits.path),
                                    .wait = plan_.permits.wait,
                                    .until = queue::Until::kNodeGoes},
                      .data = plan_.data,
                      .acl = plan_.acl,
                      .parent = plan_.parent,
                      // Whoever makes the semaphore says how large it is, in the same transaction:
                      // so of two who come first with different sizes one is refused (H46).
                      .base = plan_.permits.path,
                      .base_data = size ? std::to_string(*size) : std::string{}},
                     weak_self().lock());
  front_ = front;
}

void SemaphoreClaim::carry_out(action::Unqueue&) {
  const auto front = front_.lock();
  if (!front) return;
  if (first_) {
    front->release({});
  } else {
    front->cancel(Code::kCancelled);
  }
}

void SemaphoreClaim::granted(Granted) {
  first_ = true;
  feed(event::First{});
}

void SemaphoreClaim::failed(Error error) {
  front_error_ = std::move(error);
  feed(event::OutOfLine{front_error_->code()});
}

void SemaphoreClaim::lost(Code code, std::function<void()> told) {
  told();
  feed(event::OutOfLine{code});
}

// Requests.

std::string SemaphoreClaim::path_of(const std::string& lease) const {
  return directory_ + "/" + lease;
}

void SemaphoreClaim::carry_out(action::CreateAll& action) {
  wire::Multi body;
  for (int i = 0; i < action.count; ++i) {
    body.ops.push_back(
        {Op::kCreate, wire::Create{path_of(action.prefix), plan_.data, session::to_wire(plan_.acl),
                                   wire::CreateMode::kEphemeralSequential}});
  }
  const std::size_t parts = body.ops.size();
  send(action.ask, Op::kMulti, path_of(action.prefix), body,
       [this, ask = action.ask, parts](Outcome&& outcome) {
         feed(event::AllCreated{ask, answer_of_multi(outcome, parts), names_in(outcome),
                                outcome.zxid});
       });
}

void SemaphoreClaim::carry_out(action::ReadSize& action) {
  std::optional<session::WatchWish> wish;
  if (action.watch) {
    wish = session::WatchWish{.on = session::WatchOn::kData,
                              .watcher = [weak = weak_self()](const WatchEvent& happened) {
                                const auto self = weak.lock();
                                if (!self || happened.kind == EventKind::kSessionOver) return;
                                self->size_watch_.reset();
                                self->feed(event::SizeChanged{});
                              }};
  }
  const session::CallId id = send(
      action.ask, Op::kGetData, wire::PathWatch{path_, action.watch},
      [this, ask = action.ask](Outcome&& outcome) {
        event::SizeRead read{.ask = ask, .answer = answer_of(outcome), .data = {}};
        if (auto* reply = std::get_if<wire::GetDataReply>(&outcome.reply)) {
          read.data = std::move(reply->data).value_or(std::string{});
        }
        feed(std::move(read));
      },
      std::move(wish));
  if (action.watch) size_watch_ = id;
}

void SemaphoreClaim::carry_out(action::UnwatchSize&) {
  if (size_watch_) machine_.unwatch(*std::exchange(size_watch_, std::nullopt), machine_.now());
}

/// Leases of our own session that are being given up count as gone.
void SemaphoreClaim::list(Ask ask, std::optional<session::WatchWish> watch) {
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

void SemaphoreClaim::carry_out(action::List& action) { list(action.ask, std::nullopt); }

void SemaphoreClaim::carry_out(action::ListAndWatch& action) {
  list(action.ask, session::WatchWish{.on = session::WatchOn::kChildren,
                                      .watcher = [weak = weak_self()](const WatchEvent& happened) {
                                        const auto self = weak.lock();
                                        if (!self || happened.kind == EventKind::kSessionOver)
                                          return;
                                        self->directory_watch_.reset();
                                        self->feed(event::DirectoryChanged{});
                                      }});
}

void SemaphoreClaim::carry_out(action::UnwatchDirectory&) {
  if (!directory_watch_) return;
  machine_.unwatch(*std::exchange(directory_watch_, std::nullopt), machine_.now());
}

void SemaphoreClaim::carry_out(action::Sync& action) {
  send(action.ask, Op::kSync, wire::PathOnly{path_}, [this, ask = action.ask](Outcome&& outcome) {
    feed(event::Synced{ask, answer_of(outcome)});
  });
}

void SemaphoreClaim::carry_out(action::MakeDirectory& action) {
  make_directory(action.ask, action.path, {action.path, plan_.acl, plan_.parent},
                 [this, ask = action.ask](Answer answer) {
                   feed(event::Made{ask, answer});
                 });
}

void SemaphoreClaim::carry_out(action::RemoveDirectory& action) {
  send(action.ask, Op::kDelete, wire::PathVersion{directory_, -1},
       [this, ask = action.ask](Outcome&& outcome) {
         feed(event::Removed{ask, answer_of(outcome)});
       });
}

void SemaphoreClaim::carry_out(action::Look& action) {
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

void SemaphoreClaim::carry_out(action::Watch& action) {
  const std::string name = action.name;
  session::WatchWish wish{.on = session::WatchOn::kData,
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
        const bool revoked = reply && reply->data == queue::kRevokeData && permits_.is_own(name);
        feed(event::Watched{ask, answer_of(outcome)});
        if (revoked) tell_asked_to_let_go();
      },
      std::move(wish));
}

void SemaphoreClaim::carry_out(action::Unwatch& action) {
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

void SemaphoreClaim::carry_out(action::Withdraw& action) { withdraw(action.ask); }

void SemaphoreClaim::carry_out(action::Prove& action) {
  prove(action.ask, path_, [this, ask = action.ask](Answer answer) {
    feed(event::Proved{ask, answer});
  });
}

void SemaphoreClaim::carry_out(action::Pause& action) {
  pause(action.round, [this, ask = action.ask] { feed(event::Resumed{ask}); });
}

// What is given up.

void SemaphoreClaim::carry_out(action::Owe& action) {
  if (!telling_loss_) return owe(action.name);
  held_back_.push_back(action.name);
}

void SemaphoreClaim::owe(const std::string& name) {
  const std::string path = path_of(name);
  ++removals_;
  machine_.owe_delete(
      path,
      [self = weak_self().lock(), path](Outcome&& outcome) {
        session::report(self->host_, Op::kDelete, self->machine_.relative(path), outcome);
        self->removed(std::move(outcome));
      },
      machine_.now());
}

void SemaphoreClaim::removed(Outcome outcome) {
  if (!outcome.ok || !trouble_) trouble_ = std::move(outcome);
  if (--removals_ > 0 || !on_all_removed_) return;
  std::exchange(on_all_removed_, {})(std::move(*trouble_));
}

// Answers to the caller.

void SemaphoreClaim::carry_out(action::Warn& action) {
  const auto& log = host_.options().log;
  if (!log || std::exchange(*plan_.warned, true)) return;
  host_.post_in_order([log, text = std::move(action.text)] { log(LogLevel::kWarning, text); });
}

void SemaphoreClaim::carry_out(action::GrantAll& action) {
  Granted grant{.token = Token(action.czxid), .nodes = {}};
  for (const std::string& name : action.names) {
    grant.nodes.push_back({machine_.relative(path_of(name)), action.czxid});
  }
  tell_granted(std::move(grant));
}

void SemaphoreClaim::carry_out(action::Fail& action) {
  const bool by_front = action.why.empty() && front_error_ && *front_error_ == action.code;
  tell_failed(by_front ? *front_error_ : error_of(action.code, action.why, plan_.permits.path));
}

void SemaphoreClaim::carry_out(action::Lose& action) {
  telling_loss_ = true;
  tell_lost(action.code, [this] {
    telling_loss_ = false;
    for (const std::string& name : std::exchange(held_back_, {})) owe(name);
  });
}

void SemaphoreClaim::carry_out(action::Done&) {
  for (const auto& [name, setter] : watches_) machine_.unwatch(setter, machine_.now());
  watches_.clear();
  // Whoever waits for the removal of nodes that nobody owed any more must not wait for ever.
  if (on_all_removed_ && removals_ == 0) {
    Outcome outcome;
    outcome.code = machine_.is_over() ? machine_.over_code() : Code::kLost;
    std::exchange(on_all_removed_, {})(std::move(outcome));
  }
  finish();
}

}  // namespace latchkey::recipes
