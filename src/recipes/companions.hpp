#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/box.hpp"
#include "base/function_ref.hpp"
#include "queue/company.hpp"
#include "queue/estate.hpp"
#include "recipes/inbox.hpp"
#include "session/machine.hpp"

namespace latchkey::recipes {

/// One who stands in a queue with others of its session. Thread safety: session strand only.
class Companion {
 public:
  virtual ~Companion() = default;

  /// Of its lock: see queue::parse_place().
  [[nodiscard]] virtual const std::vector<std::string>& extra_tags() const = 0;
  /// Where it stands, if its entry is not given up.
  [[nodiscard]] virtual const std::optional<queue::Place>& stands_at() const = 0;
  /// It is due: see queue::Company. Nothing is known: it has to ask the server.
  virtual void is_due(std::optional<std::vector<std::string>> known) = 0;
  /// One it watches has left.
  virtual void companion_left(const std::string& name) = 0;
  /// Somebody waits for it to leave, or its turn is near: it has to notice when its entry is gone.
  virtual void watch_yourself() = 0;
};

/// A queue::Company, and its members to talk to. Members keep it alive and leave it in time.
///
///     auto company = Companions::of(machine, "/locks/a", {}, tags);
///     const auto id = company->join(*this);
///
/// Most locks are wanted by one at a time: a company is made when a second one joins.
/// Thread safety: session strand only.
class Companions : public std::enable_shared_from_this<Companions> {
 public:
  using Id = queue::Company::Id;

  /// The company of those who want the lock `name` of this directory.
  static std::shared_ptr<Companions> of(session::Machine& machine, const std::string& directory,
                                        const std::string& name,
                                        const std::vector<std::string>& extra_tags);

  explicit Companions(session::Machine& machine) : machine_(machine) {}

  Id join(Companion& one);
  /// See queue::Company; whoever is due because of it is told.
  [[nodiscard]] bool enters(Id id);
  void is_at(Id id, const queue::Place& place, const std::string& replaced);
  void goes_alone(Id id);
  void holds(Id id);
  void leaves(Id id);
  /// The member ends, and the session with it: there is nobody to tell.
  void forget(Id id);
  void listed(const std::vector<std::string>& children);
  void gone(const std::string& name);
  /// Is `name`, which it gives up, what it is known by?
  [[nodiscard]] bool is_known_by(Id id, const std::string& name) const;
  [[nodiscard]] std::optional<std::string> ahead_of(Id id) const;
  /// The last of Company::left() that `is_wanted`; empty: none.
  [[nodiscard]] std::string last_left(
      base::FunctionRef<bool(const std::string& entry)> is_wanted) const;

  void bequeath(queue::Estate estate) { estate_.emplace(std::move(estate)); }
  [[nodiscard]] base::Box<queue::Estate> take_estate() { return std::exchange(estate_, {}); }

  /// `id` hears when the companion with that entry leaves. False: there is none.
  [[nodiscard]] bool watch(Id id, const std::string& name);
  void unwatch(Id id, const std::string& name);

 private:
  using Tiding = std::function<void()>;
  /// Where there are several, or were.
  struct Several {
    explicit Several(std::vector<std::string> extra_tags) : company(std::move(extra_tags)) {}

    queue::Company company;
    Inbox<Tiding> inbox;
    std::map<Id, Companion*> members;
    std::multimap<std::string, Id> watchers;  ///< By the name that is watched.
  };
  /// One that is alone, and how far it has come.
  struct Lone {
    Companion* one = nullptr;  ///< Null: nobody.
    bool has_entered = false;
    bool has_place = false;
    bool holds = false;
  };

  /// Makes a company of the one that was alone.
  void make_company();
  void tell_due();
  void tell_to_watch(Id id);
  void tell(Tiding tiding);

  session::Machine& machine_;
  Id last_ = 0;
  Lone lone_;                         ///< Its id is `last_`. Of use while there is no company.
  std::unique_ptr<Several> several_;  ///< Null: at most one.
  base::Box<queue::Estate> estate_;   ///< Of the last one that let go.
};

}  // namespace latchkey::recipes
