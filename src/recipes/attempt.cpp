#include "recipes/attempt.hpp"

#include "base/mutant.hpp"
#include "recipes/answer.hpp"

namespace latchkey::recipes {

namespace action = queue::action;
namespace event = queue::event;
using queue::Ask;
using session::Outcome;
using wire::Op;

std::shared_ptr<Attempt> Attempt::start(const std::shared_ptr<session::Host>& host,
                                        session::Machine& machine, std::shared_ptr<const Plan> plan,
                                        std::shared_ptr<Claimant> claimant) {
  auto attempt = std::make_shared<Attempt>(host, machine, std::move(plan), std::move(claimant));
  attempt->set_out();
  return attempt;
}

Attempt::Attempt(const std::shared_ptr<session::Host>& host, session::Machine& machine,
                 std::shared_ptr<const Plan> plan, std::shared_ptr<Claimant> claimant)
    : DirectoryErrand(host, machine, std::move(claimant)),
      plan_(std::move(plan)),
      contender_(plan_->contender, new_guid),
      companions_(plan_->company),
      company_(companions_.get()) {
  if (company_) id_ = company_->join(*this);
}

void Attempt::step(queue::Event& event) {
  for (queue::Action& wanted : contender_.step(std::move(event))) carry_out_any(wanted);
}

bool Attempt::downgrade(std::shared_ptr<Claimant> reader, std::function<void()> retire) {
  if (contender_.options().tag != queue::Tag::kWrite) return false;
  asking_ = std::move(reader);
  retire_ = std::make_unique<std::function<void()>>(std::move(retire));
  feed(event::Downgrade{});
  return true;
}

void Attempt::carry_out(action::Create& action) {
  session::Call call{.op = Op::kCreate2, .path = path_of(action.prefix), .joins_delete = true};
  std::string replaced = company_ ? choose_replaced() : std::string();
  if (!replaced.empty()) call.heir_of = path_of(replaced);
  call.frame.reserve(call.path.size() + plan_->data.size() + 96);
  wire::append_frame(
      call.frame, wire::RequestHeader{0, Op::kCreate2},
      wire::CreateOf{call.path, plan_->data, plan_->acl, wire::CreateMode::kEphemeralSequential});
  submit(action.ask, std::move(call),
         [this, ask = action.ask, replaced = std::move(replaced)](Outcome&& outcome) {
           event::Created created{.ask = ask, .answer = answer_of(outcome), .name = {}};
           std::string_view name;
           if (const auto* reply = std::get_if<wire::Create2Reply>(&outcome.reply)) {
             name = last_part(reply->path);
             created.name = name;
             created.czxid = reply->stat.czxid;
           }
           feed(std::move(created));
           take_place(name, outcome.in_place ? replaced : std::string());
         });
}

// Among others of the session.

/// An entry of the company whose delete waits to leave with ours. Of one whose delete has left
/// already nothing can be inherited.
std::string Attempt::choose_replaced() {
  const auto lingers = [this](const std::string& entry) {
    return machine_.lingers(path_of(entry));
  };
  estate_ = company_->take_estate();
  if (estate_ && lingers(estate_->entry)) return estate_->entry;
  estate_.reset();
  if (!machine_.will_linger()) return {};
  return company_->last_left(lingers);
}

/// What the contender made of its node is known by now: perhaps it has left already.
void Attempt::take_place(std::string_view name, const std::string& replaced) {
  if (!company_) return;
  base::Box<queue::Estate> estate = std::exchange(estate_, {});
  if (!contender_.is_own(name)) {
    // It has to find out by itself.
    company_->goes_alone(id_);
    return answer_waiting_list(std::nullopt);
  }
  // If it is due by that, the answer just now is as good as a list that shows its entry.
  has_just_come_ = true;
  company_->is_at(id_, *contender_.place(), replaced);
  has_just_come_ = false;
  if (!estate) return;
  std::optional<queue::Inherited> inherited;
  if (!replaced.empty()) inherited = queue::inherit(std::move(*estate), *contender_.place());
  answer_waiting_list(std::move(inherited));
}

void Attempt::answer_waiting_list(std::optional<queue::Inherited> inherited) {
  const Ask ask = std::exchange(waiting_list_, 0);
  if (ask == 0) return;
  if (inherited) {
    auto children = without_owed(std::move(inherited->children));
    return feed(event::Listed{ask, {}, std::move(children), true, inherited->whole});
  }
  action::List list{ask};
  DirectoryErrand::carry_out(list);
}

void Attempt::carry_out(action::List& action) {
  if (company_ && action.may_wait) {
    // Whoever waits for others of its session is told in time.
    if (company_->enters(id_)) {
      estate_.reset();
      waiting_list_ = action.ask;
      return;
    }
    if (estate_) {
      waiting_list_ = action.ask;
      if (!estate_->behind.empty()) feed(event::Foreseen{estate_->behind.back()});
      return;
    }
  }
  DirectoryErrand::carry_out(action);
}

void Attempt::carry_out(action::Bequeath& action) {
  if (company_ && machine_.will_linger()) company_->bequeath(std::move(action.estate));
}

void Attempt::is_due(std::optional<std::vector<std::string>> known) {
  const Ask ask = std::exchange(waiting_list_, 0);
  if (ask == 0) return;
  if (known) {
    feed(event::Listed{ask, {}, without_owed(std::move(*known)), has_just_come_});
  } else {
    action::List list{ask};
    DirectoryErrand::carry_out(list);
  }
}

void Attempt::on_listed(const std::vector<std::string>& children) {
  if (company_) company_->listed(children);
}

void Attempt::on_gone(const std::string& name) {
  if (company_) company_->gone(name);
}

/// Whoever comes next in our session need not wait until the server has heard of it.
void Attempt::on_owed(const std::string& name) {
  if (company_ && company_->is_known_by(id_, name)) leave_company();
}

void Attempt::leave_company() {
  const auto alive = companions_;  // Whoever hears of it may end us.
  if (auto* company = std::exchange(company_, nullptr)) company->leaves(id_);
}

void Attempt::carry_out(action::Watch& action) {
  if (!company_ || contender_.is_own(action.name) || !company_->watch(id_, action.name)) {
    return DirectoryErrand::carry_out(action);
  }
  watched_companion_.emplace(action.name);
  feed(event::Watched{action.ask, {}});
}

void Attempt::carry_out(action::ReadFarewell& action) {
  const wire::PathWatch body{machine_.absolute(directory()), false};
  send(action.ask, Op::kGetData, body, [this, ask = action.ask](Outcome&& outcome) {
    event::FarewellRead read{.ask = ask, .answer = answer_of(outcome)};
    if (auto* reply = std::get_if<wire::GetDataReply>(&outcome.reply)) {
      read.data = std::move(reply->data).value_or(std::string{});
      read.version = reply->stat.version;
      read.mzxid = reply->stat.mzxid;
    }
    feed(std::move(read));
  });
}

void Attempt::companion_left(const std::string& name) {
  if (!watched_companion_ || *watched_companion_ != name) return;
  watched_companion_.reset();
  feed(event::Gone{name});
}

void Attempt::carry_out(action::Unwatch& action) {
  if (!watched_companion_ || *watched_companion_ != action.name) {
    return DirectoryErrand::carry_out(action);
  }
  if (company_) company_->unwatch(id_, action.name);
  watched_companion_.reset();
}

void Attempt::carry_out(action::Withdraw& action) {
  if (action.ask != waiting_list_) return DirectoryErrand::carry_out(action);
  waiting_list_ = 0;
  if (company_) company_->goes_alone(id_);
}

void Attempt::carry_out(action::Done& action) {
  // The next one must not hold before a holder knows of its loss (H09).
  done_ = true;
  if (!is_telling_loss()) leave_company();
  DirectoryErrand::carry_out(action);
}

void Attempt::on_loss_told() {
  if (done_) leave_company();
}

/// Perhaps on a thread that has no business here: nobody hears of it.
Attempt::~Attempt() {
  if (company_) company_->forget(id_);
}

void Attempt::cancel(Code code) {
  if (company_ && waiting_list_ != 0) {
    if (auto ahead = company_->ahead_of(id_)) feed(event::Behind{*std::move(ahead)});
  }
  DirectoryErrand::cancel(code);
}

void Attempt::carry_out(action::Exchange& action) {
  wire::Multi body;
  body.ops.push_back(
      {Op::kCreate, wire::Create{path_of(action.to), plan_->data, session::to_wire(plan_->acl),
                                 wire::CreateMode::kEphemeral}});
  body.ops.push_back({Op::kDelete, wire::PathVersion{path_of(action.from), -1}});
  send(action.ask, Op::kMulti, path_of(action.from), body,
       [this, ask = action.ask](Outcome&& outcome) {
         feed(event::Exchanged{ask, answer_of_multi(outcome, 2), outcome.zxid});
       });
}

void Attempt::carry_out(action::Grant& action) {
  if (const auto retire = std::exchange(retire_, {})) (*retire)();
  Token token(action.token);
  if (base::mutated(base::Mutant::kTokenFromNumber)) {
    token = Token(queue::parse_place(action.name)->number + 1);
  }
  // Others hold for long, and only a writer may come to make another node.
  if (contender_.options().tag != queue::Tag::kWrite) plan_.reset();
  Granted granted{.token = token};
  granted.nodes.push_back(held_node(action.name, action.czxid));
  tell_granted(std::move(granted));
  if (company_) company_->holds(id_);
}

}  // namespace latchkey::recipes
