#include "recipes/name_attempt.hpp"

#include <utility>
#include <variant>

#include "queue/owner.hpp"
#include "recipes/answer.hpp"

namespace latchkey::recipes {

namespace action = queue::action;
namespace event = queue::event;
using queue::Answer;
using session::Outcome;
using wire::Op;

std::shared_ptr<NameAttempt> NameAttempt::start(const std::shared_ptr<session::Host>& host,
                                                session::Machine& machine, NamePlan plan,
                                                std::shared_ptr<Claimant> claimant) {
  auto attempt = std::make_shared<NameAttempt>(host, machine, std::move(plan), std::move(claimant));
  attempt->set_out();
  return attempt;
}

NameAttempt::NameAttempt(const std::shared_ptr<session::Host>& host, session::Machine& machine,
                         NamePlan plan, std::shared_ptr<Claimant> claimant)
    : MachineErrand(host, machine, std::move(claimant)),
      plan_(std::move(plan)),
      guid_(new_guid()),
      node_(machine.absolute(plan_.contender.node)),
      contender_(plan_.contender) {}

void NameAttempt::step(queue::NameEvent& event) {
  for (queue::NameAction& wanted : contender_.step(event)) {
    std::visit([this](auto& what) { carry_out(what); }, wanted);
  }
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

session::CallId NameAttempt::read(queue::Ask ask, std::optional<session::WatchWish> watch) {
  const bool watched = watch.has_value();
  return send(
      ask, Op::kGetData, wire::PathWatch{node_, watched},
      [this, ask](Outcome&& outcome) {
        event::NodeRead read{.ask = ask, .answer = answer_of(outcome)};
        bool revoked = false;
        if (const auto* reply = std::get_if<wire::GetDataReply>(&outcome.reply)) {
          read.owned = reply->stat.ephemeral_owner == machine_.session_id();
          const std::string data = reply->data.value_or(std::string());
          read.is_signed = queue::is_signed(data, guid_);
          read.czxid = reply->stat.czxid;
          revoked = queue::is_asked_to_let_go(data) && contender_.is_own(read.czxid);
        }
        feed(read);
        if (revoked) tell_asked_to_let_go();
      },
      std::move(watch));
}

void NameAttempt::carry_out(action::ReadNode& action) { read(action.ask, std::nullopt); }

void NameAttempt::carry_out(action::ReadAndWatchNode& action) {
  watch_ = read(action.ask, watch_wish(session::WatchOn::kData, [this](const WatchEvent& happened) {
                  if (happened.kind == EventKind::kDeleted) {
                    feed(event::NodeGone{});
                  } else {
                    feed(event::NodeTouched{});
                  }
                }));
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

// Answers to the caller.

void NameAttempt::carry_out(action::Grant& action) {
  tell_granted({.token = Token(action.czxid),
                .nodes = {{plan_.contender.node, action.czxid}},
                .provable = false});
}

void NameAttempt::carry_out(action::Lose& action) {
  tell_lost(action.code, [this] { feed(event::LossTold{}); });
}

void NameAttempt::carry_out(action::Done&) {
  if (watch_) machine_.unwatch(*watch_, machine_.now());
  finish();
}

}  // namespace latchkey::recipes
