// Is there another kind of lock at the semaphore's path? Off the usual way: when the queue in front
// or the directory of the leases has to be made, and when the path has more children than a
// semaphore's.
#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "queue/permits.hpp"

namespace latchkey::queue {

std::vector<std::string> strangers(std::span<const std::string> children) {
  std::vector<std::string> entries;
  std::copy_if(children.begin(), children.end(), std::back_inserter(entries),
               [](const std::string& child) { return parse_place(child).has_value(); });
  return entries;
}

/// Behind a sync: nobody is refused for what was true yesterday.
void Permits::check_path() {
  retract_view();
  drop_traces();
  withdraw(asks_.sync);
  phase_ = Phase::kChecking;
  sync_answer_.reset();
  ask<action::Sync>(asks_.sync);
  ask<action::ListPath>(asks_.path);
}

void Permits::on(const event::PathListed& listed) {
  if (!take(asks_.path, listed.ask)) return;
  if (listed.answer.kind == Answer::Kind::kAmbiguous) return check_path();
  if (listed.answer.kind == Answer::Kind::kNo && is_retryable(listed.answer.code)) {
    return pause(AfterPause::kCheck);
  }
  if (!sync_answer_ || sync_answer_->kind == Answer::Kind::kAmbiguous) return check_path();
  if (sync_answer_->kind == Answer::Kind::kNo) {
    if (is_retryable(sync_answer_->code)) return pause(AfterPause::kCheck);
    fail(sync_answer_->code, "sync " + options_.path);
    return leave();
  }
  // What we may not list, or what is gone, cannot be told from a path that is ours alone.
  const std::vector<std::string> here = strangers(listed.children);
  const bool is_semaphore =
      std::find(listed.children.begin(), listed.children.end(), kLeases) != listed.children.end();
  if (!is_semaphore && !here.empty()) return refuse_path(here);
  const bool exists = listed.answer.kind == Answer::Kind::kOk;
  if (!queued_ && exists && unseen_ && !is_semaphore) return survey_anew();
  if (!queued_) return path_is_free(is_semaphore);
  if (own_.empty()) return make_directory();
  if (!listed.elders.empty()) return refuse_path(listed.elders);
  wait_for_strangers(here);
}

/// The server we asked before the sync did not know of a path that is there. What does it say of a
/// size? Then the path is looked at once more.
void Permits::survey_anew() {
  missing_ = Missing::kFail;
  phase_ = Phase::kQueueing;
  survey();
}

/// Before the queue in front is made. Whoever makes the path says how large it is, and so does
/// whoever finds one that was another lock's: else those who come next could say what they like.
void Permits::path_is_free(bool is_semaphore) {
  if (!options_.size) {
    phase_ = Phase::kQueueing;
    return survey();  // It may be gone, and then nobody knows its size.
  }
  if (is_semaphore || !blank_) return queue();
  phase_ = Phase::kStoring;
  ask<action::StoreSize>(asks_.store, *options_.size, *blank_);
}

void Permits::on(const event::SizeStored& stored) {
  if (!take(asks_.store, stored.ask)) return;
  if (stored.answer.kind == Answer::Kind::kAmbiguous) return check_path();
  if (stored.answer.kind == Answer::Kind::kNo && is_retryable(stored.answer.code)) {
    return pause(AfterPause::kCheck);
  }
  if (stored.answer.kind == Answer::Kind::kNo && stored.answer.code == Code::kBadVersion) {
    phase_ = Phase::kQueueing;
    return survey();  // Somebody was faster: what does it say?
  }
  queue();
}

/// Whoever came when there were leases is about to fail, or its session is dead: in either case it
/// goes. What stays for long is a lock of a client that does not look.
void Permits::wait_for_strangers(const std::vector<std::string>& here) {
  constexpr int kMostLooks = 40;  // About a minute: longer than the dead keep their sessions.
  // By number: a writer that becomes a reader keeps it, and stays.
  std::set<std::int32_t> numbers;
  for (const std::string& entry : here) numbers.insert(parse_place(entry)->number);
  const auto is_gone = [&](const std::string& entry) {
    return !numbers.contains(parse_place(entry)->number);
  };
  if (looks_ == 0) strangers_ = here;
  std::erase_if(strangers_, is_gone);
  if (strangers_.empty()) {
    looks_ = 0;
    path_is_clear_ = true;
    return view(vigil_);
  }
  if (options_.wait == Wait::kNo && looks_ > 0) {
    fail(Code::kBusy, strangers_.front() + " has come to " + options_.path +
                          " itself, as if that were a mutex, and has not gone yet");
    return leave();
  }
  if (++looks_ > kMostLooks) return refuse_path(strangers_);
  pause(AfterPause::kCheck);
}

void Permits::refuse_path(const std::vector<std::string>& entries) {
  const std::string others =
      entries.size() > 1 ? " and " + std::to_string(entries.size() - 1) + " more" : std::string();
  fail(Code::kKindMismatch, entries.front() + others + " in " + options_.path +
                                " itself: a mutex or the like, which knows nothing of permits; "
                                "choose another path");
  leave();
}

}  // namespace latchkey::queue
