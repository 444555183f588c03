// What to do in a directory whose sequence counter nears its end (H35): leave the queue, wait until
// it is empty, remove the directory, start over in a new one that counts from 0.
#include "queue/contender.hpp"
#include "queue/counter.hpp"

namespace latchkey::queue {
namespace {

/// How many names a sentence can bear.
constexpr int kNamesToTell = 3;

}  // namespace

void Contender::drain() {
  if (options_->spent == Spent::kFail) {
    fail(Code::kCounterExhausted, "the sequence counter of " + options_->directory +
                                      " nears its end: lock it once with a Mutex, which makes the "
                                      "directory anew");
    return leave();
  }
  given_up_ = own_->number;
  drop_watch();
  withdraw(asks_.list);
  owe_own();
  ahead_.clear();
  list_to_drain();
}

void Contender::list_to_drain() {
  phase_ = Phase::kDraining;
  drop_directory_watch();
  directory_watched_ = true;  // From the asking on: it may be in place before we hear of it.
  ask<action::ListAndWatch>(asks_.list);
}

void Contender::drain_listed(const Answer& answer) {
  if (answer.kind == Answer::Kind::kAmbiguous) return list_to_drain();
  if (answer.kind == Answer::Kind::kNo) {
    directory_watched_ = false;
    if (answer.code == Code::kNoNode) return start_over();
    if (is_retryable(answer.code)) return pause(AfterPause::kDrain);
    fail(answer.code, "list " + options_->directory);
    return leave();
  }
  directory_watched_ = true;

  bool contended = false;
  bool fresh = false;
  std::optional<std::int32_t> first;
  int told = 0;
  std::string& names = in_the_way_.emplace();
  for (const std::string& child : children_) {
    if (is_disowned(child)) continue;
    if (told++ < kNamesToTell) names += (told > 1 ? ", " : "") + child;
    const auto place = parse_place(child, options_->extra_tags);
    if (!place) continue;
    contended = true;
    fresh = fresh || is_of_a_fresh_directory(place->number);
    if (!first || is_later(*first, place->number)) first = place->number;
  }
  if (told > kNamesToTell) names += ", …";

  if (fresh) {
    // Somebody was faster: this is the new directory. Should it be an ancient holder in the old
    // one, we come back here, more slowly each time.
    drop_directory_watch();
    renew_guid();
    return pause(AfterPause::kEnter);
  }
  if (!contended) return ask<action::RemoveDirectory>(asks_.remove);
  if (options_->wait == Wait::kNo) {
    fail(Code::kBusy, why_not_drained());
    return leave();
  }
  // Those who came before us, or one of ours that died before its delete left, go by themselves:
  // DirectoryChanged comes next.
  if (!is_later(*first, later_one_.value_or(*given_up_))) return;
  later_one_ = first;
  if (++later_ones_seen_ < kMostLooksAtLaterOnes) return pause(AfterPause::kDrain);
  fail(Code::kCounterExhausted, why_not_drained() + "; another client goes on using it");
  leave();
}

void Contender::on(const event::DirectoryChanged&) {
  directory_watched_ = false;
  if (phase_ == Phase::kDraining && asks_.list == 0 && asks_.remove == 0) list_to_drain();
  if (phase_ == Phase::kWaiting && options_->watching == Watching::kDirectory) relist();
}

void Contender::on(const event::Removed& removed) {
  if (!take(asks_.remove, removed.ask)) return;
  if (removed.answer.kind == Answer::Kind::kAmbiguous) return list_to_drain();
  if (removed.answer.kind == Answer::Kind::kOk || removed.answer.code == Code::kNoNode) {
    return start_over();
  }
  // A newcomer, a delete of ours that is still on its way, or a child that is no contender's.
  if (removed.answer.code == Code::kNotEmpty || is_retryable(removed.answer.code)) {
    return pause(AfterPause::kDrain);
  }
  fail(Code::kCounterExhausted,
       why_not_drained() + "; removing it: " + std::string(name(removed.answer.code)));
  leave();
}

/// With a fresh guid: the node that was given up must not be taken for a trace of the next one.
void Contender::start_over() {
  drop_directory_watch();
  renew_guid();
  enter();
}

std::string Contender::why_not_drained() const {
  if (!given_up_) return {};
  std::string why = "the sequence counter of " + options_->directory +
                    " nears its end, and the directory has to be empty before it can be made anew";
  if (in_the_way_ && !in_the_way_->empty()) why += "; still there: " + *in_the_way_;
  return why;
}

}  // namespace latchkey::queue
