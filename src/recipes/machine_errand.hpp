#pragma once

#include <utility>

#include "queue/messages.hpp"
#include "recipes/errand.hpp"
#include "recipes/inbox.hpp"

namespace latchkey::recipes {

/// An errand whose machine is told `Event`s: what every such machine hears of, and what each of
/// them asks for. A subclass has the machine, and what only that one asks for; with
///
///     using MachineErrand::carry_out;
///
/// its own carry_out() stand beside those here. Thread safety: session strand only.
template <class Event>
class MachineErrand : public Errand {
 public:
  void set_out() {
    begin();
    feed(queue::event::Start{});
  }

  void cancel(Code code) override { feed(queue::event::Cancel{code}); }
  LetGo release(session::Completion done) override {
    keep_on_removed(std::move(done));
    feed(queue::event::Release{});
    return LetGo::kGivenUp;
  }
  void listen() override { feed(queue::event::Heartbeat{}); }

  void on_heartbeat() override { feed(queue::event::Heartbeat{}); }
  void on_lease_over() override { feed(queue::event::LeaseOver{}); }
  void on_session_over(Code code) override { feed(queue::event::SessionOver{code}); }

 protected:
  using Errand::Errand;

  /// Passes on what has happened, after all that has happened before.
  virtual void feed(Event event) {
    const auto alive = shared_from_this();
    inbox_.put(std::move(event), [this](Event& next) { step(next); });
  }
  /// Tells the machine, and carries out what it asks for.
  virtual void step(Event& event) = 0;

  void carry_out(queue::action::Sync& action) {
    sync(action.ask, [this, ask = action.ask](queue::Answer answer) {
      feed(queue::event::Synced{ask, answer});
    });
  }
  void carry_out(queue::action::MakeDirectory& action) {
    make_directory(action.ask, action.path, [this, ask = action.ask](queue::Answer answer) {
      feed(queue::event::Made{ask, answer});
    });
  }
  void carry_out(queue::action::Withdraw& action) { withdraw(action.ask); }
  void carry_out(queue::action::Prove& action) {
    prove(action.ask, [this, ask = action.ask](queue::Answer answer) {
      feed(queue::event::Proved{ask, answer});
    });
  }
  void carry_out(queue::action::Pause& action) {
    pause(action.round, [this, ask = action.ask] { feed(queue::event::Resumed{ask}); });
  }
  void carry_out(queue::action::Fail& action) { tell_failed(error_of(action.code, action.why)); }

 private:
  Inbox<Event> inbox_;
};

}  // namespace latchkey::recipes
