#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/box.hpp"
#include "recipes/machine_errand.hpp"

namespace latchkey::recipes {

/// An errand among the nodes of one directory: lists them, watches some, and owes the deletes of
/// its own. A subclass brings `using DirectoryErrand::carry_out`, as with a MachineErrand.
///
/// `Event` is queue::Event or queue::PermitEvent. Thread safety: session strand only.
template <class Event>
class DirectoryErrand : public MachineErrand<Event> {
 protected:
  using MachineErrand<Event>::MachineErrand;

  /// The lock's path or one below it, as the user knows it.
  [[nodiscard]] virtual const std::string& directory() const = 0;

  using Errand::host_;
  using Errand::machine_;
  using Errand::send;
  using Errand::watch_wish;
  using MachineErrand<Event>::feed;

  using MachineErrand<Event>::carry_out;
  void carry_out(queue::action::List& action) { list(action.ask, std::nullopt); }
  void carry_out(queue::action::ListAndWatch& action);
  void carry_out(queue::action::UnwatchDirectory& action);
  void carry_out(queue::action::RemoveDirectory& action);
  void carry_out(queue::action::Look& action);
  void carry_out(queue::action::Watch& action);
  void carry_out(queue::action::Unwatch& action);
  void carry_out(queue::action::Owe& action);
  void carry_out(queue::action::Lose& action);
  void carry_out(queue::action::Done& action);

  /// Is this a node it waits or holds with?
  [[nodiscard]] virtual bool is_own(const std::string& name) const = 0;
  /// A list of ours was answered; a node we watched is gone; a delete of ours is on its way.
  virtual void on_listed(const std::vector<std::string>& children) { static_cast<void>(children); }
  virtual void on_gone(const std::string& name) { static_cast<void>(name); }
  virtual void on_owed(const std::string& name) { static_cast<void>(name); }
  [[nodiscard]] bool is_telling_loss() const { return bool(held_back_); }
  /// The holder knows of its loss, and what was held is being given up.
  virtual void on_loss_told() {}
  /// Nodes of our own session that are being given up count as gone.
  [[nodiscard]] std::vector<std::string> without_owed(std::vector<std::string> children) const {
    std::string path = path_of({});
    const std::size_t length = path.size();
    std::erase_if(children, [&](const std::string& child) {
      path.resize(length);
      path += child;
      return machine_.is_owed(path);
    });
    return children;
  }

  /// Who hears of the delete that is owed next.
  [[nodiscard]] virtual session::Completion next_removal() = 0;

  /// As the server knows it.
  [[nodiscard]] std::string path_of(const std::string& child) const {
    const std::string& parent = directory();
    std::string path;
    path.reserve(machine_.chroot().size() + parent.size() + 1 + child.size());
    path += machine_.chroot();
    if (parent != "/") path += parent;
    path += '/';
    path += child;
    return path;
  }
  /// As the user knows it.
  [[nodiscard]] HeldNode held_node(const std::string& name, std::int64_t czxid) const {
    return {machine_.relative(path_of(name)), czxid};
  }

 private:
  void list(queue::Ask ask, std::optional<session::WatchWish> watch);
  void look_for_ended(const std::string& name);
  /// The call that set the watch on it, which is forgotten here; 0: none.
  session::CallId take_watch(const std::string& name);
  void owe(const std::string& name, std::optional<queue::Farewell> farewell = {});

  /// By child: the calls that set them. One or two.
  std::vector<std::pair<std::string, session::CallId>> watches_;
  /// The same for the directory, 0: none. One that has fired does no harm, ids do not return.
  session::CallId directory_watch_ = 0;

  /// Between a loss and its announcement: nodes to owe once the holder knows.
  base::Box<std::vector<std::string>> held_back_;
};

}  // namespace latchkey::recipes
