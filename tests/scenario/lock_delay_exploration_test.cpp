#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>

#include <gtest/gtest.h>

#include "queue/lock_delay.hpp"
#include "scenario/mini_probe.hpp"
#include "scenario/walk.hpp"

namespace latchkey::queue {

/// Looks into a claim under a lock delay.
struct LockDelayProbe {
  static void fold(const LockDelay& self, mini::Fold& fold) {
    fold.kind(self.phase_);
    fold.flags({self.marked_, self.gone_});
  }
};

}  // namespace latchkey::queue

/// Everything that can happen to those who queue for a lock with a delay (H73): each has a session
/// of its own, and the directory's data is the one thing they have in common besides the queue.
namespace latchkey::walk::lock_delay {
namespace {

using namespace std::chrono_literals;
using namespace queue::lock_delay;
using queue::Answer;
using queue::LockDelay;
using queue::Wait;

/// How the machine, or whoever carries out what it says, is broken on purpose.
enum class Mutant {
  kNone,
  kDoesNotWait,
  kWaitsForAnotherTime,
  kCountsFromTheHold,
  kForgetsToNote,
  kTakesAnyMarkForItsOwn,
  kBelievesAnUnsyncedRead,
  kBelievesALateProof,
  kForgetsWhoItIs,
  kGrantsBeforeTheMark,
  kJumpsTheQueue,
  kMarksWithoutACheck,
  kWipesBehindTheDelete,
  kAlwaysWipes,
  kIgnoresTheLease,
  kKeepsHolding,
  kGivesUpItsPlace,
  kGivesUpBeforeItIsTold,
  kGivesUpWhatIsGone,
  kForgetsToGiveUp,
  kGivesUpTwice,
  kAnswersTwice,
  kForgetsToAnswer,
  kLosesTwice,
  kForgetsToWithdraw,
  kForgetsToLook,
  kEndsTooEarly,
};

/// How often each may happen along one road.
struct Troubles {
  int cancels = 0;
  int crashes = 0;
  int lapses = 0;        ///< Of a lease by the clock; the session may or may not survive it.
  int cuts = 0;          ///< Of a connection, with whatever is on its way.
  int robberies = 0;     ///< Another hand deletes an entry.
  int failed_syncs = 0;  ///< And the read behind it shows what was there before.
  int pauses = 0;        ///< In which half of the delay passes and nothing else happens.
  int set_backs = 0;     ///< Of the server's clock.
};

/// With kSettled every message arrives before anybody does anything else; a delay that is waited
/// out is no message.
enum class Pace { kEveryOrder, kSettled };

class World {
 public:
  /// The first so many would not wait.
  World(int contenders, Troubles troubles, Mutant mutant = Mutant::kNone, int impatient = 0)
      : left_(troubles), mutant_(mutant) {
    const auto delay = mutant == Mutant::kWaitsForAnotherTime ? kDelay + 1ms : kDelay;
    for (int i = 0; i < contenders; ++i) {
      all_.push_back({.machine = LockDelay(delay, i < impatient ? Wait::kNo : Wait::kYes)});
    }
  }

  void be(Pace pace) { pace_ = pace; }

  [[nodiscard]] std::vector<Step<World>> steps() const;
  [[nodiscard]] std::size_t key() const;
  [[nodiscard]] const std::string& violation() const { return violation_; }
  [[nodiscard]] const Troubles& left() const { return left_; }
  [[nodiscard]] Troubles& left() { return left_; }

  void check_at_rest() {
    for (const int who : queue_) {
      if (at(who).is == Is::kOver) violate("leaves its entry behind");
    }
    if (queue_.empty()) return;
    if (at(queue_.front()).is == Is::kWaiting) violate("sleeps though nobody holds");
  }

  // What the contenders do.

  void start(int who) {
    at(who).is = Is::kWaiting;
    at(who).came_at = wall();
    at(who).came = time_;
    queue_.push_back(who);
  }
  void cancel(int who) {
    feed(who, Cancel{Code::kTimedOut});
    const bool answered = at(who).is != Is::kWaiting || at(who).withdrawn;
    if (!answered) violate("a cancel was not answered");
  }
  void release(int who) {
    at(who).is = Is::kOver;
    at(who).let_go = true;
    feed(who, Release{});
  }

  // What comes by itself.

  /// Whoever is first has proven its lease before it is told so.
  void promote(int who) {
    at(who).first = true;
    at(who).lapsed = false;
    feed(who, First{mutant_ == Mutant::kForgetsWhoItIs ? who + 2 : who + 1});
  }
  void withdraw(int who) {
    std::erase(queue_, who);
    feed(who, Failed{Code::kTimedOut});
  }
  void serve(int who) {
    Request request = at(who).sent.front();
    at(who).sent.pop_front();
    land(who, request);
    if (request.kind == Kind::kLook || request.kind == Kind::kMark) {
      at(who).replies.push_back(request);
    }
  }
  void receive(int who) {
    const Request reply = at(who).replies.front();
    at(who).replies.pop_front();
    // An answer proves the lease from when its question was sent.
    if (reply.answer.kind == Answer::Kind::kOk && reply.lapse == at(who).lapse) {
      at(who).lapsed = false;
    }
    answer(who, reply);
  }
  void resume(int who) {
    if (at(who).waits_until && mutant_ != Mutant::kDoesNotWait) {
      time_ = std::max(time_, *at(who).waits_until);
    }
    at(who).waits_until.reset();
    at(who).pauses = false;
    feed(who, Resumed{});
  }
  void tell(int who) {
    at(who).telling = false;
    feed(who, Told{});
  }
  /// Its session is over, or its entry: it learns that.
  void notice(int who, Code code) {
    at(who).lost = true;
    if (!at(who).first) return feed(who, Failed{code});
    feed(who, Lost{code});
    const bool fails = !at(who).telling;
    if (fails && mutant_ == Mutant::kGivesUpWhatIsGone) carry_out(who, GiveUp{});
  }

  // Troubles.

  void pass_time() { ++time_; }
  void put_clock_back() {
    torn_ = true;
    set_back_ += 3;
  }
  void crash(int who, std::size_t landed) {
    land_first(who, landed);
    at(who).crashed = true;
    at(who).is = Is::kOver;
  }
  void expire(int who) {
    torn_ = true;
    at(who).expired = true;
    at(who).sent.clear();
    at(who).replies.clear();
    remove(who);
  }
  void lapse(int who) {
    torn_ = true;
    at(who).lapsed = true;
    ++at(who).lapse;
    const bool waited = at(who).is == Is::kWaiting;
    if (mutant_ == Mutant::kIgnoresTheLease) return;
    if (mutant_ == Mutant::kGivesUpItsPlace && waited && at(who).first) {
      feed(who, Lost{Code::kSessionLost});
    } else {
      feed(who, LeaseOver{});
    }
    if (waited && at(who).is != Is::kWaiting) violate("gave up its place for a silence");
    if (at(who).is == Is::kHolding) violate("holds under a lease that is over");
  }
  /// It hears from the service again.
  void revive(int who) { at(who).lapsed = false; }
  void cut(int who, std::size_t landed) {
    torn_ = true;
    std::deque<Request> open = std::exchange(at(who).replies, {});
    open.insert(open.end(), at(who).sent.begin(), at(who).sent.end());
    land_first(who, landed);
    for (Request& request : open) {
      // Deletes are debts: they are sent again until they are answered.
      if (request.kind == Kind::kDelete) at(who).sent.push_back(request);
      request.answer = {Answer::Kind::kAmbiguous, Code::kConnectionLoss};
      if (request.kind == Kind::kLook || request.kind == Kind::kMark) {
        at(who).replies.push_back(request);
      }
    }
  }
  void rob(int who) {
    torn_ = true;
    at(who).robbed = true;
    remove(who);
  }

 private:
  enum class Is { kAway, kWaiting, kHolding, kOver };
  enum class Kind { kLook, kMark, kWipe, kDelete };
  struct DirectoryMark {
    int holder = 0;  ///< 0: nobody; otherwise the contender's number and one.
    bool gone = false;
    int at = 0;  ///< By the server's clock.
  };
  struct Request {
    Kind kind = Kind::kLook;
    int lapse = 0;  ///< How many there had been when it was sent.
    Answer answer = {};
    DirectoryMark mark = {};  ///< What a Look has found or a Mark sets.
    bool synced = true;
  };
  struct Contender {
    LockDelay machine;
    Is is = Is::kAway;
    bool first = false;      ///< It was told so.
    bool withdrawn = false;  ///< It has cancelled its claim, which was not granted.
    bool granted = false;    ///< At some time.
    bool wiped = false;      ///< Its mark, by the leader's order.
    bool let_go = false;
    bool lapsed = false;
    int lapse = 0;
    bool pauses = false;
    std::optional<int> waits_until;  ///< Of a lock delay.
    int came_at = 0;                 ///< By the server's clock;
    int came = 0;                    ///< and in truth.
    bool older_than_mark = false;    ///< Its entry is.
    bool telling = false;
    bool crashed = false;
    bool expired = false;
    bool robbed = false;
    bool lost = false;  ///< And knows it.
    bool done = false;
    std::deque<Request> sent;
    std::deque<Request> replies;
  };

  void add_natural_steps(int who, Steps<World>& steps) const;
  void add_deeds(int who, Steps<World>& steps) const;

  Contender& at(int who) { return all_[static_cast<std::size_t>(who)]; }
  void violate(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  [[nodiscard]] bool has_entry(int who) const {
    return std::find(queue_.begin(), queue_.end(), who) != queue_.end();
  }
  [[nodiscard]] bool errs(Mutant how) {
    if (mutant_ != how || erred_) return false;
    return erred_ = true;
  }

  /// An entry goes. If it was a holder's that has not wiped out its mark, the holder has vanished.
  void remove(int who) {
    if (std::erase(queue_, who) == 0) return;
    if (!at(who).granted) return;
    if (!at(who).wiped) vanished_ = time_;
    let_go_ = at(who).let_go;
  }

  /// A request takes effect.
  void land(int who, Request& request) {
    const bool mine = has_entry(who) || mutant_ == Mutant::kMarksWithoutACheck;
    switch (request.kind) {
      case Kind::kDelete: return remove(who);
      case Kind::kLook:
        request.mark = request.synced ? mark_ : mark_before_;
        if (!has_entry(who)) request.answer = {Answer::Kind::kNo, Code::kNoNode};
        return;
      case Kind::kMark:
        if (!mine) request.answer = {Answer::Kind::kNo, Code::kNoNode};
        if (mine && (!request.mark.gone || mutant_ != Mutant::kForgetsToNote)) {
          set_mark(request.mark);
        }
        return;
      case Kind::kWipe:
        if (!mine) return;
        set_mark({});
        at(who).wiped = true;
        return;
    }
  }
  void set_mark(DirectoryMark mark) {
    mark.at = wall();
    mark_before_ = std::exchange(mark_, mark);
    for (Contender& one : all_) one.older_than_mark = one.is != Is::kAway;
  }
  /// Of what is on its way the first so many still take effect; the rest is lost.
  void land_first(int who, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) land(who, at(who).sent[i]);
    at(who).sent.clear();
  }
  void answer(int who, const Request& reply) {
    if (reply.kind == Kind::kMark) {
      const bool late = at(who).lapsed && mutant_ != Mutant::kBelievesALateProof;
      return feed(who, Marked{reply.answer, late ? kNow : kNow + 1h});
    }
    DirectoryMark seen = reply.mark;
    if (mutant_ == Mutant::kTakesAnyMarkForItsOwn) seen = {.holder = who + 1};
    if (mutant_ == Mutant::kCountsFromTheHold) seen.gone = true;
    const bool synced = reply.synced || mutant_ == Mutant::kBelievesAnUnsyncedRead;
    feed(who, Looked{.synced = synced,
                     .answer = reply.answer,
                     .data = text(seen),
                     .mzxid = at(who).older_than_mark ? who + 2 : who,
                     .marked_at = seen.at * kHalf.count(),
                     .came_at = at(who).came_at * kHalf.count()});
  }
  static std::string text(const DirectoryMark& mark) {
    if (mark.holder == 0) return std::string(queue::kNoHolder);
    return mark.gone ? queue::format_vanished(mark.holder) : queue::format_holder(mark.holder);
  }

  void feed(int who, const queue::lock_delay::Event& event) {
    for (const auto& action : at(who).machine.step(event, kNow)) {
      if (at(who).done) violate("asks for something after its end");
      std::visit([&](const auto& what) { carry_out(who, what); }, action);
    }
  }
  void send(int who, Kind kind, bool synced = true) {
    at(who).sent.push_back({.kind = kind, .lapse = at(who).lapse, .synced = synced});
  }

  void carry_out(int who, const Withdraw&) {
    if (mutant_ != Mutant::kForgetsToWithdraw) at(who).withdrawn = true;
  }
  void carry_out(int who, const Look&) {
    if (mutant_ == Mutant::kForgetsToLook) return;
    send(who, Kind::kLook);
  }
  void carry_out(int who, const WaitOut& action) {
    const int age = at(who).older_than_mark ? 0 : at(who).came_at - mark_.at;
    const bool sound = action.until == kNow + kDelay - age * kHalf;
    if (!sound && set_back_ == 0 && has_entry(who))
      violate("waits for another time than it should");
    if (!torn_ && let_go_) violate("waits though the last holder let go");
    at(who).waits_until = time_ + static_cast<int>((action.until - kNow) / kHalf);
  }
  void carry_out(int who, const Pause&) { at(who).pauses = true; }
  void carry_out(int who, const Mark& action) {
    const queue::HolderMark mark = queue::parse_mark(action.text);
    const bool gone = mark.kind == queue::HolderMark::Kind::kGone;
    if (gone == (mark.czxid == who + 1)) violate("leaves another's mark");
    if (mutant_ == Mutant::kGrantsBeforeTheMark) return feed(who, Marked{{}, kNow + 1h});
    send(who, Kind::kMark);
    at(who).sent.back().mark = {.holder = static_cast<int>(mark.czxid), .gone = gone};
  }
  void carry_out(int who, const Wipe&) { send(who, Kind::kWipe); }
  void carry_out(int who, const GiveUp& action) {
    if (mutant_ == Mutant::kEndsTooEarly) at(who).done = true;
    if (at(who).telling) violate("gives up before the holder knows");
    if (at(who).lost) violate("gives up what it has not");
    auto& sent = at(who).sent;
    if (mutant_ == Mutant::kForgetsToGiveUp) return;
    if (mutant_ == Mutant::kAlwaysWipes) send(who, Kind::kWipe);
    send(who, Kind::kDelete);
    const bool swaps = mutant_ == Mutant::kWipesBehindTheDelete && sent.size() > 1;
    if (swaps) std::swap(sent[sent.size() - 1], sent[sent.size() - 2]);
    if (std::count_if(sent.begin(), sent.end(),
                      [](const Request& one) { return one.kind == Kind::kDelete; }) > 1) {
      violate("gives up twice");
    }
    if (errs(Mutant::kGivesUpTwice)) carry_out(who, action);
  }
  void carry_out(int who, const Grant&) {
    if (at(who).is != Is::kWaiting) violate("answered twice");
    at(who).is = Is::kHolding;
    at(who).granted = true;
    if (at(who).lapsed) violate("granted under a lease that is over");
    if (at(who).robbed) return;  // It believes what is not so, for a while.
    if (mark_.holder != who + 1 || mark_.gone) violate("holds without a mark");
    if (vanished_ && time_ - *vanished_ < kHalves) violate("holds without having waited");
    vanished_.reset();
    noted_.reset();
    for (int other = 0; other < static_cast<int>(all_.size()); ++other) {
      const bool holds = other != who && at(other).is == Is::kHolding && !at(other).robbed;
      if (holds) violate("two hold at once");
    }
    if (queue_.front() != who) violate("holds out of turn");
  }
  void carry_out(int who, const Fail& action) {
    if (mutant_ == Mutant::kForgetsToAnswer) return;
    if (at(who).is != Is::kWaiting) violate("answered twice");
    at(who).is = Is::kOver;
    if (action.code == Code::kBusy && set_back_ == 0) {
      if (noted_ && at(who).came - *noted_ >= kHalves) violate("is busy though the delay is over");
      if (!noted_) noted_ = time_;
    }
    if (errs(Mutant::kAnswersTwice)) carry_out(who, action);
  }
  void carry_out(int who, const Lose& action) {
    if (mutant_ == Mutant::kKeepsHolding) return;
    if (at(who).is != Is::kHolding) violate("loses what it does not hold");
    at(who).is = Is::kOver;
    at(who).telling = true;
    if (mutant_ == Mutant::kGivesUpBeforeItIsTold) carry_out(who, GiveUp{});
    if (errs(Mutant::kLosesTwice)) carry_out(who, action);
  }
  void carry_out(int who, const Done&) {
    if (at(who).is != Is::kOver) violate("ends without an answer");
    at(who).done = true;
  }

  static constexpr Instant kNow{1h};
  static constexpr int kHalves = 2;
  static constexpr std::chrono::milliseconds kHalf{5};
  static constexpr std::chrono::milliseconds kDelay = kHalf * kHalves;

  [[nodiscard]] int wall() const { return time_ - set_back_; }

  Troubles left_;
  const Mutant mutant_;
  Pace pace_ = Pace::kEveryOrder;
  bool erred_ = false;
  std::vector<Contender> all_;
  std::deque<int> queue_;  ///< By the leader's order.
  DirectoryMark mark_;
  DirectoryMark mark_before_;    ///< What a server that lags still shows.
  int time_ = 0;                 ///< In halves of the delay.
  int set_back_ = 0;             ///< By how much the server's clock is behind.
  std::optional<int> vanished_;  ///< When a holder has, and nobody has held since.
  std::optional<int> noted_;     ///< When somebody was first refused for that.
  bool let_go_ = true;           ///< The last holder did.
  bool torn_ = false;            ///< Something happened that may cost a wait in vain.
  std::string violation_;
};

std::vector<Step<World>> World::steps() const {
  Steps<World> steps(*this);
  if (pace_ == Pace::kSettled) {
    for (int i = 0; i < static_cast<int>(all_.size()); ++i) {
      add_natural_steps(i, steps);
      const bool waits = all_[static_cast<std::size_t>(i)].waits_until.has_value();
      for (const Step<World>& step : steps.take()) {
        if (step.by_itself && !(waits && step.name.starts_with("resume"))) return {step};
      }
    }
  }
  for (int i = 0; i < static_cast<int>(all_.size()); ++i) {
    if (all_[static_cast<std::size_t>(i)].is != Is::kAway) {
      add_natural_steps(i, steps);
      add_deeds(i, steps);
      continue;
    }
    // All are alike, so whoever comes next is the next one.
    steps.may("start " + std::to_string(i), [i](World& w) { w.start(i); });
    break;
  }
  steps.trouble("half of the delay passes", &Troubles::pauses, [](World& w) { w.pass_time(); });
  steps.trouble("the clock is put back", &Troubles::set_backs,
                [](World& w) { w.put_clock_back(); });
  return steps.take();
}

/// What the servers, the network and the clock do.
void World::add_natural_steps(int i, Steps<World>& steps) const {
  const Contender& self = all_[static_cast<std::size_t>(i)];
  const std::string who = " " + std::to_string(i);
  if (self.crashed) {
    if (has_entry(i)) steps.soon("expire" + who, [i](World& w) { w.expire(i); });
    return;
  }
  const bool gone = self.expired || self.robbed;
  if (gone && !self.lost && !self.done) {
    const Code code = self.expired ? Code::kSessionLost : Code::kLost;
    steps.soon("notice" + who, [i, code](World& w) { w.notice(i, code); });
  }
  const bool front =
      mutant_ == Mutant::kJumpsTheQueue ? has_entry(i) : !queue_.empty() && queue_.front() == i;
  if (front && self.is == Is::kWaiting && !self.first && !self.withdrawn) {
    steps.soon("promote" + who, [i](World& w) { w.promote(i); });
  }
  if (self.withdrawn && self.is == Is::kWaiting) {
    steps.soon("withdraw" + who, [i](World& w) { w.withdraw(i); });
  }
  if (!self.sent.empty()) {
    steps.soon("serve" + who, [i](World& w) { w.serve(i); });
    if (self.sent.front().kind == Kind::kLook) {
      steps.trouble("serve unsynced" + who, &Troubles::failed_syncs, [i](World& w) {
        w.at(i).sent.front().synced = false;
        // Waiting in vain is the lesser evil; the greater one is to be found.
        if (w.mutant_ == Mutant::kBelievesAnUnsyncedRead) w.torn_ = true;
        w.serve(i);
      });
    }
  }
  if (!self.replies.empty() && !self.done)
    steps.soon("receive" + who, [i](World& w) { w.receive(i); });
  if ((self.pauses || self.waits_until) && !self.done) {
    steps.soon("resume" + who, [i](World& w) { w.resume(i); });
  }
  if (self.telling) steps.soon("tell" + who, [i](World& w) { w.tell(i); });
}

/// What the callers do, and what may go wrong.
void World::add_deeds(int i, Steps<World>& steps) const {
  const Contender& self = all_[static_cast<std::size_t>(i)];
  const std::string who = " " + std::to_string(i);
  if (self.crashed) return;
  if (self.is == Is::kHolding) steps.may("release" + who, [i](World& w) { w.release(i); });
  if (self.is == Is::kHolding || (self.is == Is::kWaiting && !self.withdrawn)) {
    steps.trouble("cancel" + who, &Troubles::cancels, [i](World& w) { w.cancel(i); });
  }
  const bool at_work = self.is != Is::kOver || !self.sent.empty();
  if (!at_work || self.expired) return;
  for (std::size_t n = 0; n <= self.sent.size(); ++n) {
    const std::string landed = who + " with " + std::to_string(n) + " landed";
    steps.trouble("crash" + landed, &Troubles::crashes, [i, n](World& w) { w.crash(i, n); });
    if (self.sent.empty() && self.replies.empty()) break;
    steps.trouble("cut" + landed, &Troubles::cuts, [i, n](World& w) { w.cut(i, n); });
  }
  if (!self.lapsed) steps.trouble("lapse" + who, &Troubles::lapses, [i](World& w) { w.lapse(i); });
  if (self.lapsed) {
    steps.may("expire" + who, [i](World& w) { w.expire(i); });
    steps.may("revive" + who, [i](World& w) { w.revive(i); });
  }
  if (has_entry(i)) steps.trouble("rob" + who, &Troubles::robberies, [i](World& w) { w.rob(i); });
}

std::size_t World::key() const {
  mini::Fold fold;
  // Only differences of times matter, and none beyond the delay.
  const auto fold_time = [&](int time, int now) {
    fold.number(static_cast<std::uint64_t>(std::min(now - time, kHalves) + 8));
  };
  const auto fold_mark = [&](const DirectoryMark& mark) {
    fold.number(static_cast<std::uint64_t>(mark.holder));
    fold.flags({mark.gone});
    fold_time(mark.at, wall());
  };
  const auto fold_all = [&](const std::deque<Request>& requests, const Contender& self) {
    fold.number(requests.size());
    for (const Request& one : requests) {
      fold.kind(one.kind);
      fold.kind(one.answer.kind);
      fold_mark(one.mark);
      fold.flags({one.synced, one.lapse == self.lapse});
    }
  };
  for (int i = 0; i < static_cast<int>(all_.size()); ++i) {
    const Contender& self = all_[static_cast<std::size_t>(i)];
    fold.kind(self.is);
    const bool nothing_left = (self.done || self.crashed) && self.sent.empty() && !has_entry(i);
    if (self.is == Is::kAway || nothing_left) continue;
    queue::LockDelayProbe::fold(self.machine, fold);
    fold.flags({self.first, self.withdrawn, self.granted, self.wiped, self.let_go, self.lapsed,
                self.pauses, self.waits_until.has_value(), self.older_than_mark, self.telling,
                self.crashed, self.expired, self.robbed, self.lost, self.done});
    if (self.waits_until) fold_time(*self.waits_until, time_);
    fold_time(self.came_at, mark_.at);
    fold_time(self.came, noted_.value_or(time_));
    fold_all(self.sent, self);
    fold_all(self.replies, self);
  }
  fold.number(queue_.size());
  for (const int who : queue_) fold.number(static_cast<std::uint64_t>(who));
  fold_mark(mark_);
  fold_mark(mark_before_);
  if (vanished_) fold_time(*vanished_, time_);
  if (noted_) fold_time(*noted_, time_);
  fold.flags({vanished_.has_value(), noted_.has_value(), let_go_, torn_, erred_});
  for (const int count : {left_.cancels, left_.crashes, left_.lapses, left_.cuts, left_.robberies,
                          left_.failed_syncs, left_.pauses, left_.set_backs}) {
    fold.number(static_cast<std::uint64_t>(count));
  }
  return fold.sum();
}

TEST(LockDelayExploration, H73_FiveComeGoAndGiveUpAndNobodyWaitsInVain) {
  expect_all_is_well(World(5, {.cancels = 2}));
}

TEST(LockDelayExploration, H73_FiveOfWhomTwoVanishWhileTheyHoldOrWait) {
  expect_all_is_well(World(5, {.crashes = 2}));
}

TEST(LockDelayExploration, H73_FiveOfWhomOneVanishesOneGivesUpAndOneFallsSilent) {
  expect_all_is_well(World(5, {.cancels = 1, .crashes = 1, .lapses = 1}));
}

TEST(LockDelayExploration, H73_FiveWhoEachMayVanishOrGiveUpAtAnyTimeAlsoDuringTheDelay) {
  for (const int impatient : {0, 2, 5}) {
    World world(5, {.cancels = 5, .crashes = 5}, Mutant::kNone, impatient);
    world.be(Pace::kSettled);
    expect_all_is_well(world);
  }
}

TEST(LockDelayExploration, H73_ThreeWhoVanishAndGiveUpDuringTheDelay) {
  expect_all_is_well(World(3, {.cancels = 2, .crashes = 2}));
}

TEST(LockDelayExploration, H73_WhoeverWouldNotWaitLeavesTheDelayToTheOthers) {
  expect_all_is_well(World(4, {.cancels = 1, .crashes = 1}, Mutant::kNone, 2));
  expect_all_is_well(World(3, {.crashes = 1, .lapses = 1, .cuts = 1}, Mutant::kNone, 1));
}

TEST(LockDelayExploration, H73_ThoseWhoOnlyTryHoldWhenTheDelayIsOver) {
  expect_all_is_well(World(4, {.crashes = 1, .pauses = 3}, Mutant::kNone, 4));
  expect_all_is_well(World(3, {.crashes = 2, .pauses = 3}, Mutant::kNone, 3));
  expect_all_is_well(World(3, {.crashes = 1, .cuts = 1, .pauses = 2}, Mutant::kNone, 2));
}

TEST(LockDelayExploration, H73_ADelayThatOthersBeganIsWaitedOutFromThere) {
  expect_all_is_well(World(4, {.cancels = 2, .crashes = 1, .pauses = 2}));
  expect_all_is_well(World(3, {.cancels = 1, .crashes = 2, .pauses = 2, .set_backs = 1}));
}

/// What `./dev test` and the sanitizers see of the one above.
TEST(LockDelayExplorationSmall, H73_ADelayThatAnotherBeganIsWaitedOutFromThere) {
  expect_all_is_well(World(2, {.cancels = 1, .crashes = 1, .pauses = 1, .set_backs = 1}));
}

TEST(LockDelayExploration, H73_ASilenceDuringTheDelayCostsNobodyItsPlace) {
  expect_all_is_well(World(3, {.cancels = 1, .crashes = 1, .lapses = 2}));
}

TEST(LockDelayExploration, H73_AConnectionLostAtAnyMoment) {
  expect_all_is_well(World(3, {.crashes = 1, .cuts = 2}));
  expect_all_is_well(World(2, {.cancels = 1, .lapses = 1, .cuts = 2}));
}

TEST(LockDelayExploration, H73_AnotherHandDeletesAnyEntry) {
  expect_all_is_well(World(3, {.cancels = 1, .crashes = 1, .robberies = 1}));
}

TEST(LockDelayExploration, H73_AReadThatIsNotSyncedSaysNothing) {
  expect_all_is_well(World(3, {.cancels = 1, .crashes = 1, .failed_syncs = 2}));
}

TEST(LockDelayExploration, H73_EverythingInEveryOrder) {
  expect_all_is_well(World(
      2, {.cancels = 1, .crashes = 1, .lapses = 1, .cuts = 1, .robberies = 1, .failed_syncs = 1}));
}

// A net that catches nothing is worth nothing: each rule is broken once, and that has to be found.

struct Broken {
  const char* name;
  Mutant mutant;
  const char* found;
  Troubles troubles = {.cancels = 1, .crashes = 1, .lapses = 1};
  int impatient = 0;
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class LockDelayExplorationFinds : public testing::TestWithParam<Broken> {};

TEST_P(LockDelayExplorationFinds, H73_AClaimThat) {
  expect_found(World(3, GetParam().troubles, GetParam().mutant, GetParam().impatient),
               GetParam().found);
}

constexpr Broken kBroken[] = {
    {"DoesNotWait", Mutant::kDoesNotWait, "holds without having waited"},
    {"WaitsForAnotherTime", Mutant::kWaitsForAnotherTime, "waits for another time than it should"},
    {"CountsFromTheHold",
     Mutant::kCountsFromTheHold,
     "holds without having waited",
     {.crashes = 1, .pauses = 2}},
    {"ForgetsToNote",
     Mutant::kForgetsToNote,
     "is busy though the delay is over",
     {.crashes = 1, .pauses = 2},
     3},
    {"TakesAnyMarkForItsOwn", Mutant::kTakesAnyMarkForItsOwn, "holds without having waited"},
    {"BelievesAnUnsyncedRead",
     Mutant::kBelievesAnUnsyncedRead,
     "holds without having waited",
     {.crashes = 1, .failed_syncs = 1}},
    {"BelievesALateProof", Mutant::kBelievesALateProof, "granted under a lease that is over"},
    {"ForgetsWhoItIs", Mutant::kForgetsWhoItIs, "leaves another's mark"},
    {"GrantsBeforeTheMark", Mutant::kGrantsBeforeTheMark, "holds without a mark"},
    {"JumpsTheQueue", Mutant::kJumpsTheQueue, "holds out of turn", {}},
    {"MarksWithoutACheck",
     Mutant::kMarksWithoutACheck,
     "holds without having waited",
     {.crashes = 1, .robberies = 1}},
    {"WipesBehindTheDelete", Mutant::kWipesBehindTheDelete, "waits though the last holder let go"},
    {"AlwaysWipes", Mutant::kAlwaysWipes, "holds without having waited"},
    {"IgnoresTheLease", Mutant::kIgnoresTheLease, "two hold at once", {.lapses = 1}},
    {"KeepsHolding", Mutant::kKeepsHolding, "holds under a lease that is over"},
    {"GivesUpItsPlace", Mutant::kGivesUpItsPlace, "gave up its place for a silence"},
    {"GivesUpBeforeItIsTold", Mutant::kGivesUpBeforeItIsTold, "gives up before the holder knows"},
    {"GivesUpWhatIsGone", Mutant::kGivesUpWhatIsGone, "gives up what it has not", {.robberies = 1}},
    {"ForgetsToGiveUp", Mutant::kForgetsToGiveUp, "leaves its entry behind"},
    {"GivesUpTwice", Mutant::kGivesUpTwice, "gives up twice"},
    {"AnswersTwice", Mutant::kAnswersTwice, "answered twice"},
    {"ForgetsToAnswer", Mutant::kForgetsToAnswer, "ends without an answer"},
    {"LosesTwice", Mutant::kLosesTwice, "loses what it does not hold"},
    {"ForgetsToWithdraw", Mutant::kForgetsToWithdraw, "a cancel was not answered"},
    {"ForgetsToLook", Mutant::kForgetsToLook, "sleeps though nobody holds"},
    {"EndsTooEarly", Mutant::kEndsTooEarly, "asks for something after its end"},
};

INSTANTIATE_TEST_SUITE_P(Mutants, LockDelayExplorationFinds, testing::ValuesIn(kBroken),
                         [](const auto& broken) { return broken.param.name; });

}  // namespace
}  // namespace latchkey::walk::lock_delay
