#include "queue/bundle.hpp"

#include <algorithm>
#include <variant>

namespace latchkey::queue {

std::vector<Bundle::Wish> Bundle::step(Members members, std::size_t member, const Event& event) {
  const auto* answer = std::get_if<event::Proved>(&event);
  if (answer && prover_ == member && answer->ask == seats_[member].prove) {
    proved(answer->answer);
  } else {
    events_.emplace_back(member, event);
  }
  while (!events_.empty()) {
    const auto [who, what] = std::move(events_.front());
    events_.pop_front();
    Contender& member_at = members(who);
    for (Action& action : member_at.step(what)) sort(who, std::move(action));
    note(who, member_at.has_place());
    settle();
  }
  return std::exchange(out_, {});
}

/// What a member asks for goes out, comes to sit here, or concerns the others.
void Bundle::sort(std::size_t member, Action action) {
  Seat& seat = seats_[member];
  if (auto* create = std::get_if<action::Create>(&action)) {
    seat.create = std::move(*create);
    return;
  }
  if (auto* list = std::get_if<action::List>(&action); list && seat.create) {
    seat.list = *list;
    return;
  }
  if (auto* prove = std::get_if<action::Prove>(&action)) {
    seat.prove = prove->ask;
    if (!std::exchange(seat.watches, true)) unwatched_.push_back(member);
    return;
  }
  if (auto* withdrawn = std::get_if<action::Withdraw>(&action)) return withdraw(member, *withdrawn);
  if (auto* failed = std::get_if<action::Fail>(&action)) end(member, failed->code);
  if (std::holds_alternative<action::Watch>(action)) contended_ = true;
  out_.push_back({member, std::move(action)});
}

void Bundle::withdraw(std::size_t member, const action::Withdraw& withdrawn) {
  Seat& seat = seats_[member];
  if (seat.create && seat.create->ask == withdrawn.ask) {
    seat.create.reset();
    seat.list.reset();
    events_.emplace_back(
        member, event::Created{withdrawn.ask, {Answer::Kind::kNo, Code::kCancelled}, {}, 0});
    return;
  }
  if (seat.list && seat.list->ask == withdrawn.ask) {
    seat.list.reset();
    return;
  }
  if (seat.prove == withdrawn.ask) {
    seat.prove = 0;
    if (prover_ != member) return;
    prover_.reset();
  }
  out_.push_back({member, withdrawn});
}

/// One has failed: the others have nothing to wait for.
void Bundle::end(std::size_t member, Code code) {
  if (std::exchange(ended_, true)) return;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (i != member) events_.emplace_back(i, event::Cancel{code});
  }
}

/// Keeps the counts, so that a step costs the same however many members there are.
void Bundle::note(std::size_t member, bool inside) {
  Seat& seat = seats_[member];
  const auto count = [](std::size_t& sum, bool& counted, bool now) {
    if (now && !counted) ++sum;
    if (!now && counted) --sum;
    counted = now;
  };
  count(asking_, seat.asks, seat.create.has_value());
  count(inside_, seat.inside, inside);
  count(ready_, seat.ready, seat.prove != 0);
}

void Bundle::settle() {
  if (ended_) return;
  if (asking_ == seats_.size()) return enter_all();
  if (asking_ > 0 && inside_ > 0) return give_up();
  if (ready_ == seats_.size() && !prover_) {
    prover_ = 0;
    out_.push_back({0, action::Prove{seats_[0].prove}});
  }
  if (ready_ < seats_.size() && contended_) watch_those_ready();
}

/// They entered in one transaction, so whoever has no place any more was robbed of it.
void Bundle::give_up() {
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].create) events_.emplace_back(i, event::Cancel{Code::kLost});
  }
}

/// Somebody waits, and that may take long: those who are first watch their own nodes meanwhile, or
/// one of them might be gone when all are granted.
void Bundle::watch_those_ready() {
  for (const std::size_t member : std::exchange(unwatched_, {})) {
    events_.emplace_back(member, event::Heartbeat{});
  }
}

void Bundle::enter_all() {
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    out_.push_back({i, std::move(*seats_[i].create)});
    seats_[i].create.reset();
    seats_[i].asks = false;
  }
  asking_ = 0;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].list) out_.push_back({i, *seats_[i].list});
    seats_[i].list.reset();
  }
}

/// One proof is good for all, and all hear of it before anything else can happen.
void Bundle::proved(const Answer& answer) {
  prover_.reset();
  ready_ = 0;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    seats_[i].ready = false;
    events_.emplace_back(i, event::Proved{std::exchange(seats_[i].prove, 0), answer});
  }
}

}  // namespace latchkey::queue
