#include "recipes/name_attempt.hpp"

#include <utility>
#include <variant>

#include "base/random.hpp"
#include "queue/node_name.hpp"
#include "queue/owner.hpp"
#include "recipes/answer.hpp"

namespace latchkey::recipes {

namespace action = queue::action;
namespace event = queue::event;
using queue::Answer;
using queue::Ask;
using session::Outcome;
using wire::Op;

std::shared_ptr<NameAttempt> NameAttempt::start(const std::shared_ptr<session::Host>& host,
                                                session::Machine& machine, NamePlan plan,
                                                std::shared_ptr<Claimant> claimant) {
  auto attempt = std::make_shared<NameAttempt>(host, machine, std::move(plan), std::move(claimant));
  attempt->begin();
  attempt->feed(event::Start{});
  return attempt;
}

NameAttempt::NameAttempt(const std::shared_ptr<session::Host>& host, session::Machine& machine,
                         NamePlan plan, std::shared_ptr<Claimant> claimant)
    : Errand(host, machine, std::move(claimant)),
      plan_(std::move(plan)),
      guid_(queue::format_guid(base::kernel_random(), base::kernel_random())),
      node_(machine.absolute(plan_.contender.node)),
      contender_(plan_.contender) {}

void NameAttempt::release(session::Completion done) {
  on_removed_ = std::move(done);
  feed(event::Release{});
}

void NameAttempt::feed(queue::NameEvent event) {
  const auto alive = shared_from_this();
  events_.push_back(std::move(event));
  if (std::exchange(feeding_, true)) return;
  while (!events_.empty()) {
    const queue::NameEvent next = std::move(events_.front());
    events_.pop_front();
    for (queue::NameAction& wanted : contender_.step(next)) {
      std::visit([this](auto& what) { carry_out(what); }, wanted);
    }
  }
  feeding_ = false;
}

// Requests.

void NameAttempt::carry_out(action::CreateNode& action) {
  send(action.ask, Op::kCreate2,
       wire::Create{node_, queue::sign(plan_.data, guid_), session::to_wire(plan_.acl),
                    wire::CreateMode::kEphemeral},
       [this, ask = action.ask](Outcome&& outcome) {
         event::Created created{.ask = ask, .answer = answer_of(outcome), .name = {}};
         if (const auto* reply = std::get_if<wire::Create2Reply>(&outcome.reply)) {
           created.czxid = reply->stat.czxid;
         }
         feed(std::move(created));
       });
}

session::CallId NameAttempt::read(Ask ask, std::optional<session::WatchWish> watch) {
  const bool watched = watch.has_value();
  return send(
      ask, Op::kGetData, wire::PathWatch{node_, watched},
      [this, ask](Outcome&& outcome) {
        event::NodeRead read{.ask = ask, .answer = answer_of(outcome)};
        bool revoked = false;
        if (const auto* reply = std::get_if<wire::GetDataReply>(&outcome.reply)) {
          read.owned = reply->stat.ephemeral_owner == machine_.session_id();
          read.is_signed = queue::is_signed(reply->data.value_or(std::string()), guid_);
          read.czxid = reply->stat.czxid;
          revoked = reply->data == queue::kRevokeData && contender_.is_own(read.czxid);
        }
        feed(read);
        if (revoked) tell_asked_to_let_go();
      },
      std::move(watch));
}

void NameAttempt::carry_out(action::ReadNode& action) { read(action.ask, std::nullopt); }

void NameAttempt::carry_out(action::ReadAndWatchNode& action) {
  const auto weak = std::weak_ptr(std::static_pointer_cast<NameAttempt>(shared_from_this()));
  watch_ =
      read(action.ask, session::WatchWish{.on = session::WatchOn::kData,
                                          .watcher = [weak](const WatchEvent& happened) {
                                            const auto self = weak.lock();
                                            if (!self || happened.kind == EventKind::kSessionOver)
                                              return;
                                            if (happened.kind == EventKind::kDeleted) {
                                              self->feed(event::NodeGone{});
                                            } else {
                                              self->feed(event::NodeTouched{});
                                            }
                                          }});
}

void NameAttempt::carry_out(action::UnwatchNode&) {
  if (watch_) machine_.unwatch(*std::exchange(watch_, std::nullopt), machine_.now());
}

void NameAttempt::carry_out(action::ForgetWatch&) {
  if (watch_) machine_.forget_watch(*std::exchange(watch_, std::nullopt));
}

/// Not a debt of the session, which would be sent again blindly: see NameContender.
void NameAttempt::carry_out(action::RemoveNode& action) {
  send(action.ask, Op::kDelete, wire::PathVersion{node_, -1},
       [this, ask = action.ask](Outcome&& outcome) {
         feed(event::Removed{ask, answer_of(outcome)});
       });
}

void NameAttempt::carry_out(action::NodeRemoved& action) {
  Outcome outcome;
  outcome.ok = action.answer.kind == Answer::Kind::kOk;
  outcome.code = action.answer.code;
  outcome.detail = "it stays until the session ends";
  tell_removed(std::move(outcome));
}

void NameAttempt::carry_out(action::Sync& action) {
  send(action.ask, Op::kSync, wire::PathOnly{node_}, [this, ask = action.ask](Outcome&& outcome) {
    feed(event::Synced{ask, answer_of(outcome)});
  });
}

void NameAttempt::carry_out(action::MakeDirectory& action) {
  make_directory(action.ask, action.path, {.directory = {}, .acl = {}, .parent = plan_.parent},
                 [this, ask = action.ask](Answer answer) {
                   feed(event::Made{ask, answer});
                 });
}

void NameAttempt::carry_out(action::Prove& action) {
  prove(action.ask, node_, [this, ask = action.ask](Answer answer) {
    feed(event::Proved{ask, answer});
  });
}

void NameAttempt::carry_out(action::Pause& action) {
  pause(action.round, [this, ask = action.ask] { feed(event::Resumed{ask}); });
}

// Answers to the caller.

void NameAttempt::carry_out(action::Grant& action) {
  tell_granted({.token = Token(action.czxid),
                .nodes = {{plan_.contender.node, action.czxid}},
                .provable = false});
}

void NameAttempt::carry_out(action::Fail& action) {
  tell_failed(error_of(action.code, action.why, plan_.contender.node));
}

void NameAttempt::carry_out(action::Lose& action) {
  tell_lost(action.code, [this] { feed(event::LossTold{}); });
}

void NameAttempt::carry_out(action::Done&) {
  if (watch_) machine_.unwatch(*watch_, machine_.now());
  finish();
}

}  // namespace latchkey::recipes
