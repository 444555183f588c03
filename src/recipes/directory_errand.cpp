#include "recipes/directory_errand.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/mutant.hpp"
#include "queue/owner.hpp"
#include "queue/permits.hpp"
#include "recipes/answer.hpp"

namespace latchkey::recipes {

namespace action = queue::action;
namespace event = queue::event;
using queue::Ask;
using session::Outcome;
using wire::Op;

// Looking.

template <class Event>
void DirectoryErrand<Event>::list(Ask ask, std::optional<session::WatchWish> watch) {
  const bool watched = watch.has_value();
  const session::CallId id = send(
      ask, Op::kGetChildren, wire::PathWatch{machine_.absolute(directory()), watched},
      [this, ask](Outcome&& outcome) {
        event::Listed listed{.ask = ask, .answer = answer_of(outcome), .children = {}};
        if (auto* reply = std::get_if<wire::ChildrenReply>(&outcome.reply)) {
          on_listed(reply->children);
          listed.children = without_owed(std::move(reply->children));
        }
        feed(std::move(listed));
      },
      std::move(watch));
  if (watched) directory_watch_ = id;
}

template <class Event>
void DirectoryErrand<Event>::carry_out(action::ListAndWatch& action) {
  list(action.ask, watch_wish(session::WatchOn::kChildren,
                              [this](const WatchEvent&) { feed(event::DirectoryChanged{}); }));
}

template <class Event>
void DirectoryErrand<Event>::carry_out(action::UnwatchDirectory&) {
  machine_.unwatch(std::exchange(directory_watch_, 0), machine_.now());
}

template <class Event>
void DirectoryErrand<Event>::carry_out(action::RemoveDirectory& action) {
  send(action.ask, Op::kDelete, wire::PathVersion{machine_.absolute(directory()), -1},
       [this, ask = action.ask](Outcome&& outcome) {
         feed(event::Removed{ask, answer_of(outcome)});
       });
}

template <class Event>
void DirectoryErrand<Event>::carry_out(action::Look& action) {
  send(action.ask, Op::kExists, wire::PathWatch{path_of(action.name), false},
       [this, ask = action.ask](Outcome&& outcome) {
         event::Looked looked{.ask = ask, .answer = answer_of(outcome)};
         if (auto* reply = std::get_if<wire::StatReply>(&outcome.reply)) {
           looked.owned = reply->stat.ephemeral_owner == machine_.session_id();
           looked.czxid = reply->stat.czxid;
         }
         feed(looked);
       });
}

// Watching.

template <class Event>
void DirectoryErrand<Event>::carry_out(action::Watch& action) {
  const std::string name = action.name;
  session::WatchWish wish =
      watch_wish(session::WatchOn::kData, [this, name](const WatchEvent& happened) {
        take_watch(name);
        // Of several deletions that were missed, that of our own entry may be told last. So the one
        // ahead is looked at once more, which is answered when all of them have been told (H05).
        const bool in_order = !happened.missed || base::mutated(base::Mutant::kMissedInOrder);
        if (happened.kind == EventKind::kDeleted && (in_order || is_own(name))) {
          on_gone(name);
          feed(event::Gone{name});
        } else {
          feed(event::Touched{name});
        }
      });
  wish.kin = session::WatchTable::Kin::kYes;
  const session::CallId setter = send(
      action.ask, Op::kGetData, wire::PathWatch{path_of(name), true},
      [this, ask = action.ask, name](Outcome&& outcome) {
        const auto* reply = std::get_if<wire::GetDataReply>(&outcome.reply);
        const bool revoked =
            reply && reply->data && queue::is_asked_to_let_go(*reply->data) && is_own(name);
        if (!outcome.ok && outcome.code == Code::kNoNode) on_gone(name);
        feed(event::Watched{ask, answer_of(outcome), reply ? reply->stat.czxid : 0});
        if (outcome.ok) look_for_ended(name);
        if (revoked) this->tell_asked_to_let_go();
      },
      std::move(wish));
  take_watch(name);
  watches_.emplace_back(name, setter);
}

template <class Event>
session::CallId DirectoryErrand<Event>::take_watch(const std::string& name) {
  const auto watch = std::ranges::find(watches_, name, [](const auto& one) { return one.first; });
  if (watch == watches_.end()) return 0;
  const session::CallId setter = watch->second;
  watches_.erase(watch);
  return setter;
}

/// A node of our own session may end its hold while the watch on it is on its way: before there was
/// anybody to tell. So look once more when the watch is in place.
template <class Event>
void DirectoryErrand<Event>::look_for_ended(const std::string& name) {
  if (!machine_.is_owed(path_of(name))) return;
  const session::CallId setter = take_watch(name);
  if (setter == 0) return;
  machine_.forget_watch(setter);
  feed(event::Gone{name});
}

template <class Event>
void DirectoryErrand<Event>::carry_out(action::Unwatch& action) {
  const session::CallId setter = take_watch(action.name);
  if (setter == 0) return;
  // A node we are deleting takes the server's watch with it.
  if (machine_.is_owed(path_of(action.name))) {
    machine_.forget_watch(setter);
  } else {
    machine_.unwatch(setter, machine_.now());
  }
}

// Giving up.

template <class Event>
void DirectoryErrand<Event>::owe(const std::string& name, std::optional<queue::Farewell> farewell) {
  const std::string path = path_of(name);
  std::optional<session::LastWord> word;
  if (farewell)
    word = {machine_.absolute(directory()), std::move(farewell->data), farewell->version};
  session::Completion told = next_removal();
  // Whoever waits for it will not come back before it is answered.
  const auto linger = told ? session::Linger::kNo : session::Linger::kYes;
  machine_.owe_delete(
      path,
      [this, self = this->shared_from_this(),
       path = session::is_reporting(host_) ? machine_.relative(path) : std::string(),
       told = std::move(told)](Outcome&& outcome) {
        session::report(host_, Op::kDelete, path, outcome);
        if (told) told(std::move(outcome));
      },
      machine_.now(), linger, word);
  on_owed(name);
}

template <class Event>
void DirectoryErrand<Event>::carry_out(action::Owe& action) {
  if (!held_back_) return owe(action.name, std::move(action.farewell));
  held_back_->push_back(action.name);
}

template <class Event>
void DirectoryErrand<Event>::carry_out(action::Lose& action) {
  held_back_.emplace();
  this->tell_lost(action.code, [this] {
    const auto names = std::exchange(held_back_, {});
    for (const std::string& name : *names) owe(name);
    on_loss_told();
  });
}

template <class Event>
void DirectoryErrand<Event>::carry_out(action::Done&) {
  for (const auto& [name, setter] : std::exchange(watches_, {})) {
    machine_.unwatch(setter, machine_.now());
  }
  machine_.unwatch(directory_watch_, machine_.now());
  this->finish();
}

template class DirectoryErrand<queue::Event>;
template class DirectoryErrand<queue::PermitEvent>;

}  // namespace latchkey::recipes
