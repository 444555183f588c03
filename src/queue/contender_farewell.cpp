// A hand-over in a deep queue without a list: farewell.hpp says what a farewell proves.
#include "base/mutant.hpp"
#include "queue/contender.hpp"

namespace latchkey::queue {

/// Somebody ahead may still become a reader, who says none: then only a list tells (H44).
bool Contender::may_have_said_farewell(std::int64_t left) const {
  return left != 0 && ahead_.size() >= options_->farewell_from && counts_the_gone();
}

/// And are we still there (H05)? Asked first, so that we know it when the farewell is there.
void Contender::read_farewell(std::int64_t left) {
  phase_ = Phase::kReading;
  left_ = left;
  if (own_arm_ == Arm::kNo) watch_own();
  ask<action::ReadFarewell>(asks_.farewell);
}

void Contender::on(const event::FarewellRead& read) {
  if (!take(asks_.farewell, read.ask) || phase_ != Phase::kReading) return;
  // Refused, or without an answer: the list will tell.
  if (read.answer.kind != Answer::Kind::kOk) return relist();
  version_.reset();
  // A version of -1 would mean any, and one below that has wrapped around.
  if (read.version >= 0 && makes_room(read.data)) version_ = read.version;
  const auto whose = parse_farewell(read.data);
  const bool is_neighbours = (whose == left_ && read.mzxid > left_) ||
                             (whose && base::mutated(base::Mutant::kAnyFarewell));
  if (!is_neighbours) return relist();
  ahead_.clear();
  fresh_ = false;
  be_first();
}

/// Only who has looked knows what it would write over.
std::optional<Farewell> Contender::farewell() const {
  if (!version_) return std::nullopt;
  return Farewell{format_farewell(czxid_), *version_};
}

}  // namespace latchkey::queue
