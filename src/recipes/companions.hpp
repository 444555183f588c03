#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "queue/company.hpp"
#include "recipes/inbox.hpp"
#include "session/machine.hpp"

namespace latchkey::recipes {

/// One who stands in a queue with others of its session. Thread safety: session strand only.
class Companion {
 public:
  virtual ~Companion() = default;

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
/// Thread safety: session strand only.
class Companions : public std::enable_shared_from_this<Companions> {
 public:
  using Id = queue::Company::Id;

  /// The company of those who want the lock `name` of this directory.
  static std::shared_ptr<Companions> of(session::Machine& machine, const std::string& directory,
                                        const std::string& name,
                                        const std::vector<std::string>& extra_tags);

  Companions(session::Machine& machine, std::vector<std::string> extra_tags)
      : machine_(machine), company_(std::move(extra_tags)) {}

  Id join(Companion& one);
  /// See queue::Company; whoever is due because of it is told.
  [[nodiscard]] bool enters(Id id);
  void is_at(Id id, const queue::Place& place);
  void goes_alone(Id id) { company_.goes_alone(id); }
  void holds(Id id);
  void leaves(Id id, const std::string& name);
  /// The member ends, and the session with it: there is nobody to tell.
  void forget(Id id);
  void listed(const std::vector<std::string>& children) { company_.listed(children); }
  void gone(const std::string& name) { company_.gone(name); }
  [[nodiscard]] std::optional<std::string> ahead_of(Id id) const { return company_.ahead_of(id); }

  /// `id` hears when the companion with that entry leaves. False: there is none.
  [[nodiscard]] bool watch(Id id, const std::string& name);
  void unwatch(Id id, const std::string& name);

 private:
  using Tiding = std::function<void()>;
  void tell_due();
  void tell_to_watch(Id id);
  void tell(Tiding tiding);

  session::Machine& machine_;
  queue::Company company_;
  Inbox<Tiding> inbox_;
  Id last_ = 0;
  std::map<Id, Companion*> members_;
  std::multimap<std::string, Id> watchers_;  ///< By the name that is watched.
};

}  // namespace latchkey::recipes
