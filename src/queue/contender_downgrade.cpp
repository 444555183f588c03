// From a writer's hold to a reader's without letting anybody in between: the reader's entry takes
// the number of the writer's, in one transaction, as Curator's does (H44). A writer behind it that
// sees its predecessor deleted lists again and finds the reader in its place: see Admission.
#include "queue/contender.hpp"

namespace latchkey::queue {

std::string Contender::reader_name() const {
  const std::string prefix = node_prefix(guid_, Tag::kWrite);
  return node_prefix(guid_, Tag::kRead) + own_->name.substr(prefix.size());
}

void Contender::on(const event::Downgrade&) {
  if (phase_ != Phase::kHolding || tag_ != Tag::kWrite) return;
  outcome_ = Outcome::kOpen;
  downgrading_ = true;
  drop_own_watch();
  exchange();
}

void Contender::exchange() {
  phase_ = Phase::kExchanging;
  ask<action::Exchange>(asks_.exchange, own_->name, reader_name());
}

void Contender::on(const event::Exchanged& exchanged) {
  if (!take(asks_.exchange, exchanged.ask)) return;
  if (exchanged.answer.kind == Answer::Kind::kOk) return exchanged_for(exchanged.czxid);
  // To ask again is safe: either name tells what became of it before. A lost connection paces
  // itself; a server that answers does not.
  const Code code = exchanged.answer.code;
  if (exchanged.answer.kind == Answer::Kind::kAmbiguous) {
    return code == Code::kServerError ? pause(AfterPause::kExchange) : exchange();
  }
  if (is_retryable(code) || code == Code::kRolledBack) return pause(AfterPause::kExchange);
  if (exchanged.answer.code == Code::kNodeExists) return look_at_exchanged();
  if (exchanged.answer.code == Code::kNoNode) {
    return exchange_lost(Code::kLost,
                         "our queue entry " + own_->name + " was deleted by another hand");
  }
  exchange_lost(exchanged.answer.code, "exchange " + own_->name + " for " + reader_name());
}

/// The transaction had gone through before its answer was lost; only its number is missing.
void Contender::look_at_exchanged() { ask<action::Look>(asks_.look, reader_name()); }

void Contender::exchanged_looked(const event::Looked& looked) {
  if (looked.answer.kind == Answer::Kind::kAmbiguous) return look_at_exchanged();
  const bool ok = looked.answer.kind == Answer::Kind::kOk;
  const bool stranger = ok && !looked.owned;
  if (stranger) disown(reader_name());  // Not ours to delete, whatever its name (H04).
  if (leaving_) return leave();
  if (stranger) {
    return exchange_lost(Code::kLost, reader_name() + " is there already, and not of our session");
  }
  if (ok) return exchanged_for(looked.czxid);
  if (looked.answer.code == Code::kNoNode) {
    return exchange_lost(Code::kLost,
                         "our queue entry " + reader_name() + " was deleted by another hand");
  }
  exchange_lost(looked.answer.code, "look at " + reader_name());
}

void Contender::exchanged_for(std::int64_t czxid) {
  disown(own_->name);  // Gone with the transaction: never again counted or adopted.
  own_ = parse_place(reader_name());
  tag_ = Tag::kRead;
  czxid_ = czxid;
  round_ = 0;
  prove();
}

/// The writer, which holds until the reader does, and whoever waits for the reader both hear of it.
void Contender::exchange_lost(Code code, const std::string& why) {
  want(action::Lose{code});
  fail(code, why);
  leave();
}

}  // namespace latchkey::queue
