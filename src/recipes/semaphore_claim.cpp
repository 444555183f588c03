#include "recipes/semaphore_claim.hpp"

#include <algorithm>
#include <utility>

#include "recipes/answer.hpp"
#include "recipes/attempt.hpp"

namespace latchkey::recipes {

namespace action = queue::action;
namespace event = queue::event;
using session::Outcome;
using wire::Op;

std::shared_ptr<Claim> SemaphoreClaim::start(const std::shared_ptr<session::Host>& host,
                                             session::Machine& machine, PermitPlan plan,
                                             std::shared_ptr<Claimant> claimant) {
  auto claim =
      std::make_shared<SemaphoreClaim>(host, machine, std::move(plan), std::move(claimant));
  claim->set_out();
  return claim;
}

SemaphoreClaim::SemaphoreClaim(const std::shared_ptr<session::Host>& host,
                               session::Machine& machine, PermitPlan plan,
                               std::shared_ptr<Claimant> claimant)
    : DirectoryErrand(host, machine, std::move(claimant)),
      shared_host_(host),
      plan_(std::move(plan)),
      leases_(queue::Permits::leases_of(plan_.permits.path)),
      permits_(plan_.permits, new_guid) {}

void SemaphoreClaim::step(queue::PermitEvent& event) {
  for (queue::PermitAction& wanted : permits_.step(event)) {
    std::visit([this](auto& what) { carry_out(what); }, wanted);
  }
}

// The queue in front.

void SemaphoreClaim::carry_out(action::Queue& action) {
  const auto host = shared_host_.lock();
  if (!host) return feed(event::OutOfLine{Code::kClosed});
  const std::optional<int> size = plan_.permits.size;
  queue::Contender::Options options{.directory = queue::Permits::locks_of(plan_.permits.path),
                                    .wait = plan_.permits.wait,
                                    .until = queue::Until::kNodeGoes,
                                    .missing = action.missing};
  Plan plan{.contender = std::make_shared<const queue::Contender::Options>(std::move(options)),
            .data = plan_.data,
            .acl = plan_.acl,
            .parent = plan_.parent,
            // Whoever makes the semaphore says how large it is, in the same transaction: so of two
            // who come first with different sizes one is refused (H46).
            .base = plan_.permits.path,
            .base_data = size ? std::to_string(*size) : std::string{}};
  const auto front = Attempt::start(host, machine_, std::make_shared<const Plan>(std::move(plan)),
                                    std::static_pointer_cast<SemaphoreClaim>(shared_from_this()));
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
         feed(event::AllCreated{ask, answer_of_multi(outcome, parts), names_made(outcome),
                                outcome.zxid});
       });
}

void SemaphoreClaim::carry_out(action::ReadSize& action) {
  std::optional<session::WatchWish> wish;
  if (action.watch) {
    wish = watch_wish(session::WatchOn::kData,
                      [this](const WatchEvent&) { feed(event::SizeChanged{}); });
  }
  const session::CallId id = send(
      action.ask, Op::kGetData, wire::PathWatch{machine_.absolute(path()), action.watch},
      [this, ask = action.ask](Outcome&& outcome) {
        event::SizeRead read{.ask = ask, .answer = answer_of(outcome), .data = {}};
        if (auto* reply = std::get_if<wire::GetDataReply>(&outcome.reply)) {
          read.data = std::move(reply->data).value_or(std::string{});
          read.children = reply->stat.num_children;
          read.version = reply->stat.version;
        }
        feed(std::move(read));
      },
      std::move(wish));
  if (action.watch) size_watch_ = id;
}

void SemaphoreClaim::carry_out(action::UnwatchSize&) {
  if (size_watch_) machine_.unwatch(*std::exchange(size_watch_, std::nullopt), machine_.now());
}

void SemaphoreClaim::carry_out(action::StoreSize& action) {
  send(action.ask, Op::kSetData,
       wire::SetData{machine_.absolute(path()), std::to_string(action.size), action.version},
       [this, ask = action.ask](Outcome&& outcome) {
         feed(event::SizeStored{ask, answer_of(outcome)});
       });
}

void SemaphoreClaim::carry_out(action::ListPath& action) {
  send(action.ask, Op::kGetChildren, wire::PathWatch{machine_.absolute(path()), false},
       [this, ask = action.ask](Outcome&& outcome) {
         event::PathListed listed{
             .ask = ask, .answer = answer_of(outcome), .children = {}, .elders = {}};
         if (auto* reply = std::get_if<wire::ChildrenReply>(&outcome.reply)) {
           listed.children = std::move(reply->children);
         }
         compare_ages(std::move(listed));
       });
}

/// Asks which came first, the leases or the strangers' first.
void SemaphoreClaim::compare_ages(event::PathListed listed) {
  const std::vector<std::string> strangers = queue::strangers(listed.children);
  const bool has_leases = std::find(listed.children.begin(), listed.children.end(),
                                    queue::kLeases) != listed.children.end();
  if (strangers.empty() || !has_leases) return feed(std::move(listed));
  const auto number = [](const std::string& name) { return queue::parse_place(name)->number; };
  const std::string oldest = *std::ranges::min_element(strangers, {}, number);
  ask_age(std::move(listed), std::string(queue::kLeases),
          [this, oldest](event::PathListed with, std::int64_t leases_made) {
            ask_age(std::move(with), oldest,
                    [this, oldest, leases_made](event::PathListed last, std::int64_t made) {
                      if (made < leases_made) last.elders.push_back(oldest);
                      feed(std::move(last));
                    });
          });
}

/// `next` hears when a child of the path was made. If it has gone meanwhile the next look shows
/// that.
void SemaphoreClaim::ask_age(
    event::PathListed listed, const std::string& child,
    std::function<void(event::PathListed listed, std::int64_t made)> next) {
  const queue::Ask ask = listed.ask;
  const std::string path = (this->path() == "/" ? "" : this->path()) + "/" + child;
  send(ask, Op::kExists, wire::PathWatch{machine_.absolute(path), false},
       [this, listed = std::move(listed), next = std::move(next)](Outcome&& outcome) mutable {
         if (const auto* reply = std::get_if<wire::StatReply>(&outcome.reply)) {
           return next(std::move(listed), reply->stat.czxid);
         }
         if (outcome.code != Code::kNoNode) listed.answer = answer_of(outcome);
         feed(std::move(listed));
       });
}

// What is given up.

session::Completion SemaphoreClaim::next_removal() {
  ++removals_;
  if (auto told = take_on_removed()) on_all_removed_ = std::move(told);
  return [this](Outcome&& outcome) { removed(std::move(outcome)); };
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
  host_.post_in_order([guard = host_.guard(), log, text = std::move(action.text)] {
    guard->run("log", [&] { log(LogLevel::kWarning, text); });
  });
}

void SemaphoreClaim::carry_out(action::GrantAll& action) {
  Granted grant{.token = Token(action.czxid), .nodes = {}};
  for (const std::string& name : action.names) {
    grant.nodes.push_back(held_node(name, action.czxid));
  }
  tell_granted(std::move(grant));
}

void SemaphoreClaim::carry_out(action::Fail& action) {
  const bool by_front = action.why.empty() && front_error_ && *front_error_ == action.code;
  if (by_front) return tell_failed(*front_error_);
  const auto front = front_.lock();
  const bool waits = action.why.empty() && front && !first_;
  tell_failed(error_of(action.code, waits ? front->why_it_waits() : action.why));
}

}  // namespace latchkey::recipes
