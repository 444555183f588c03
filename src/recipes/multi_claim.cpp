#include "recipes/multi_claim.hpp"

#include "queue/node_name.hpp"
#include "recipes/answer.hpp"
#include "session/operations.hpp"

namespace latchkey::recipes {

namespace action = queue::action;
namespace event = queue::event;
using queue::Answer;
using session::Outcome;
using wire::Op;

// Members.

MultiClaim::Member::Member(const std::shared_ptr<session::Host>& host, session::Machine& machine,
                           std::shared_ptr<const Plan> plan, std::shared_ptr<MultiClaim> claim,
                           std::size_t index)
    : Attempt(host, machine, std::move(plan),
              std::shared_ptr<Claimant>(claim, &claim->ears_[index])),
      claim_(std::move(claim)),
      index_(index) {}

wire::MultiOp MultiClaim::Member::create(const std::string& prefix) const {
  // Not create2: servers of 3.8 answer it without the Stat it is asked for all the same.
  return {Op::kCreate, wire::Create{path_of(prefix), plan_->data, session::to_wire(plan_->acl),
                                    wire::CreateMode::kEphemeralSequential}};
}

std::shared_ptr<MultiClaim> MultiClaim::start(const std::shared_ptr<session::Host>& host,
                                              session::Machine& machine, std::vector<Plan> plans,
                                              std::shared_ptr<Claimant> claimant) {
  const std::size_t size = plans.size();
  auto claim = std::make_shared<MultiClaim>(host, machine, size, std::move(claimant));
  for (std::size_t i = 0; i < size; ++i) {
    claim->members_.push_back(std::make_shared<Member>(
        host, machine, std::make_shared<const Plan>(std::move(plans[i])), claim, i));
  }
  if (const std::size_t bytes = claim->size_of_multi(); bytes > machine.max_request_bytes()) {
    Outcome outcome;
    outcome.code = Code::kTooLarge;
    outcome.detail = std::to_string(bytes) + " bytes for " + std::to_string(size) + " members";
    claim->failed(session::make_error("lock", claim->members_[0]->directory(), outcome));
    claim->members_.clear();
    return claim;
  }
  for (const auto& member : claim->members_) member->begin();
  for (std::size_t i = 0; i < size; ++i) claim->feed(i, event::Start{});
  return claim;
}

MultiClaim::MultiClaim(const std::shared_ptr<session::Host>& host, session::Machine& machine,
                       std::size_t size, std::shared_ptr<Claimant> claimant)
    : host_(*host),
      machine_(machine),
      bundle_(size),
      asking_(std::move(claimant)),
      claimant_(asking_),
      nodes_(size) {
  for (std::size_t i = 0; i < size; ++i) ears_.emplace_back(*this, i);
}

void MultiClaim::feed(std::size_t member, queue::Event event) {
  const auto alive = shared_from_this();
  const auto contender = [this](std::size_t one) -> queue::Contender& {
    return members_[one]->contender();
  };
  inbox_.put({member, std::move(event)}, [&](const auto& next) {
    if (members_.empty()) return;  // All are done.
    for (auto& wish : bundle_.step(contender, next.first, next.second)) carry_out(wish);
    if (done_ == members_.size()) members_.clear();  // They keep us as we keep them.
  });
}

void MultiClaim::carry_out(queue::Bundle::Wish& wish) {
  if (auto* create = std::get_if<action::Create>(&wish.action)) {
    creates_.push_back(std::move(*create));
    if (creates_.size() == members_.size()) send_creates();
    return;
  }
  if (const auto* withdrawn = std::get_if<action::Withdraw>(&wish.action);
      withdrawn && multi_ && creates_[wish.member].ask == withdrawn->ask) {
    return machine_.withdraw(*multi_, machine_.now());
  }
  if (std::holds_alternative<action::Done>(wish.action)) ++done_;
  members_[wish.member]->carry_out_any(wish.action);
}

// The one transaction.

/// Every name of ours is as long as any other, so the size is known before anything is sent.
std::size_t MultiClaim::size_of_multi() const {
  const std::string prefix = queue::node_prefix(queue::format_guid(0, 0), queue::Tag::kLock);
  std::string frame;
  wire::Multi body;
  for (const auto& member : members_) body.ops.push_back(member->create(prefix));
  wire::append_frame(frame, wire::RequestHeader{0, Op::kMulti}, body);
  return frame.size() - sizeof(std::int32_t);
}

void MultiClaim::send_creates() {
  wire::Multi body;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    body.ops.push_back(members_[i]->create(creates_[i].prefix));
  }
  session::Call call{.op = Op::kMulti};
  wire::append_frame(call.frame, wire::RequestHeader{0, Op::kMulti}, body);
  call.done = [this, alive = shared_from_this()](Outcome&& outcome) {
    session::report(host_, Op::kMulti, {}, outcome);
    multi_.reset();
    created(outcome);
  };
  multi_ = machine_.submit(std::move(call), machine_.now());
}

void MultiClaim::created(const Outcome& outcome) {
  const std::vector<action::Create> creates = std::exchange(creates_, {});
  std::size_t culprit = creates.size();
  Answer answer = answer_of_multi(outcome, creates.size(), &culprit);
  const bool undone_by_nobody =
      answer.kind == Answer::Kind::kNo && answer.code == Code::kRolledBack;
  if (undone_by_nobody) answer = {Answer::Kind::kAmbiguous, Code::kServerError};
  for (std::size_t i = 0; i < creates.size(); ++i) {
    event::Created event{.ask = creates[i].ask, .answer = answer, .name = {}};
    if (answer.kind == Answer::Kind::kOk) {
      const auto& result = std::get<wire::MultiReply>(outcome.reply).results[i];
      const auto* reply = std::get_if<wire::CreateReply>(&result.body);
      event.name = reply ? last_part(reply->path) : std::string_view();
      event.czxid = outcome.zxid;  // Of the transaction, and so of every node it has made.
    } else if (culprit < creates.size() && i != culprit) {
      event.answer.code = Code::kRolledBack;
    }
    feed(i, std::move(event));
  }
}

// What callers want.

/// The error names a member that was waited for, if there is one.
void MultiClaim::cancel(Code code) {
  std::size_t late = 0;
  while (late + 1 < nodes_.size() && bundle_.is_ready(late)) ++late;
  feed(late, event::Cancel{code});
}

LetGo MultiClaim::release(session::Completion done) {
  const auto members = members_;
  struct Removal {
    std::size_t missing;
    session::Completion done;
    Outcome worst;
  };
  const auto removal = std::make_shared<Removal>(Removal{members.size(), std::move(done), {}});
  removal->worst.ok = true;
  for (const auto& member : members) {
    member->release([removal](Outcome&& outcome) {
      if (!outcome.ok && removal->worst.ok) removal->worst = std::move(outcome);
      if (--removal->missing == 0 && removal->done) removal->done(std::move(removal->worst));
    });
  }
  return LetGo::kGivenUp;
}

void MultiClaim::on_lease_over() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) feed(i, event::LeaseOver{});
}

void MultiClaim::listen() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) feed(i, event::Heartbeat{});
}

// What members say.

void MultiClaim::granted(std::size_t member, Granted grant) {
  nodes_[member] = std::move(grant.nodes.front());
  if (++granted_ < nodes_.size()) return;
  claimant_ = asking_;
  std::exchange(asking_, {})->granted({.token = grant.token, .nodes = nodes_});
}

void MultiClaim::failed(Error error) {
  if (asking_) std::exchange(asking_, {})->failed(std::move(error));
}

void MultiClaim::lost(Code code, std::function<void()> told) {
  if (loss_told_) return told();
  told_.push_back(std::move(told));
  if (std::exchange(losing_, true)) return;
  const auto claimant = claimant_.lock();
  if (!claimant) return loss_is_told();
  announce_loss(machine_, *claimant, code, [this, alive = shared_from_this()] { loss_is_told(); });
}

/// Now the next ones may hold: those that were lost give up what they owe, the others let go.
void MultiClaim::loss_is_told() {
  loss_told_ = true;
  for (const auto& told : std::exchange(told_, {})) told();
  release({});
}

void MultiClaim::asked_to_let_go() {
  if (const auto claimant = claimant_.lock()) claimant->asked_to_let_go();
}

}  // namespace latchkey::recipes
