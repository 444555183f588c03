#include "recipes/attempt.hpp"

#include "base/mutant.hpp"
#include "recipes/answer.hpp"

namespace latchkey::recipes {

namespace action = queue::action;
namespace event = queue::event;
using session::Outcome;
using wire::Op;

std::shared_ptr<Attempt> Attempt::start(const std::shared_ptr<session::Host>& host,
                                        session::Machine& machine, Plan plan,
                                        std::shared_ptr<Claimant> claimant) {
  auto attempt = std::make_shared<Attempt>(host, machine, std::move(plan), std::move(claimant));
  attempt->set_out();
  return attempt;
}

Attempt::Attempt(const std::shared_ptr<session::Host>& host, session::Machine& machine, Plan plan,
                 std::shared_ptr<Claimant> claimant)
    : DirectoryErrand(host, machine, plan.contender.directory, plan.contender.directory,
                      {plan.contender.directory, plan.acl, plan.parent, plan.base, plan.base_data},
                      std::move(claimant)),
      plan_(std::move(plan)),
      contender_(plan_.contender, new_guid) {}

void Attempt::step(const queue::Event& event) {
  for (queue::Action& wanted : contender_.step(event)) carry_out_any(wanted);
}

bool Attempt::downgrade(std::shared_ptr<Claimant> reader, std::function<void()> retire) {
  if (plan_.contender.tag != queue::Tag::kWrite) return false;
  asking_ = std::move(reader);
  retire_ = std::move(retire);
  feed(event::Downgrade{});
  return true;
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

void Attempt::carry_out(action::Grant& action) {
  if (const auto retire = std::exchange(retire_, {})) retire();
  Token token(action.token);
  if (base::mutated(base::Mutant::kTokenFromNumber)) {
    token = Token(queue::parse_place(action.name)->number + 1);
  }
  tell_granted({.token = token, .nodes = {held_node(action.name, action.czxid)}});
}

}  // namespace latchkey::recipes
