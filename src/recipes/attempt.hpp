#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "latchkey/mutex.hpp"
#include "queue/contender.hpp"
#include "recipes/hold.hpp"
#include "session/host.hpp"

namespace latchkey::recipes {

/// What an attempt needs to know beyond what its contender decides.
struct Plan {
  queue::Contender::Options contender;
  std::string data;  ///< Of our node: who we are.
  std::vector<Acl> acl;
  Parent parent = Parent::kContainer;
};

/// One contender on one session: carries out what it asks for and tells it what came back. Lives on
/// after its caller has got an answer, until nothing of it is left on the server.
///
/// Thread safety: session strand only: every member runs with the session's machine held.
class Attempt final : public session::Member, public std::enable_shared_from_this<Attempt> {
 public:
  /// Gets the one answer of the attempt.
  using Sink = std::function<void(Result<std::shared_ptr<Hold>>)>;

  static std::shared_ptr<Attempt> start(const std::shared_ptr<session::Host>& host,
                                        session::Machine& machine, Plan plan, Deadline deadline,
                                        Sink sink);

  Attempt(const std::shared_ptr<session::Host>& host, session::Machine& machine, Plan plan,
          Sink sink);

  void cancel(Code code);
  /// The holder lets go; `done`, if any, hears when the server has removed the node.
  void release(session::Completion done);

  void on_heartbeat() override { feed(queue::event::Heartbeat{}); }
  void on_lease_over() override { feed(queue::event::LeaseOver{}); }
  void on_session_over(Code code) override { feed(queue::event::SessionOver{code}); }

 private:
  void feed(queue::Event event);

  void carry_out(queue::action::Create& action);
  void carry_out(queue::action::List& action);
  void carry_out(queue::action::ListAndWatch& action);
  void carry_out(queue::action::Sync& action);
  void carry_out(queue::action::MakeDirectory& action);
  void carry_out(queue::action::RemoveDirectory& action);
  void carry_out(queue::action::Look& action);
  void carry_out(queue::action::Watch& action);
  void carry_out(queue::action::Unwatch& action);
  void carry_out(queue::action::UnwatchDirectory& action);
  void carry_out(queue::action::Withdraw& action);
  void carry_out(queue::action::Prove& action);
  void carry_out(queue::action::Pause& action);
  void carry_out(queue::action::Owe& action);
  void carry_out(queue::action::Grant& action);
  void carry_out(queue::action::Fail& action);
  void carry_out(queue::action::Lose& action);
  void carry_out(queue::action::Done& action);

  /// Sends a request for `ask`; `done` runs with the machine held.
  template <class Body>
  session::CallId send(queue::Ask ask, wire::Op op, const Body& body, session::Completion done,
                       std::optional<session::WatchWish> watch = std::nullopt);
  void look_for_ended(const std::string& name);
  void owe(const std::string& name);
  /// The holder has been told of its loss: what it owes may leave.
  void loss_is_told();
  void list(queue::Ask ask, std::optional<session::WatchWish> watch);
  void make_directory(queue::Ask ask, const std::string& path, Parent parent);
  [[nodiscard]] std::string path_of(const std::string& child) const;
  [[nodiscard]] Error error_of(Code code, const std::string& why) const;

  session::Host& host_;
  std::weak_ptr<session::Host> shared_host_;
  session::Machine& machine_;
  const Plan plan_;
  const std::string directory_;  ///< As the server knows it.
  queue::Contender contender_;
  Sink sink_;
  std::shared_ptr<Attempt> self_;  ///< Until Done.
  session::Machine::MemberId member_ = 0;
  session::Timers::Id deadline_timer_ = 0;
  session::Timers::Id pause_timer_ = 0;
  session::Timers::Id heartbeat_timer_ = 0;
  std::map<queue::Ask, session::CallId> calls_;     ///< Unanswered.
  std::map<std::string, session::CallId> watches_;  ///< By child.
  std::optional<session::CallId> directory_watch_;
  std::weak_ptr<Hold> hold_;
  session::Completion on_removed_;

  // Between a loss and its announcement.
  bool telling_loss_ = false;
  session::Timers::Id telling_timer_ = 0;
  std::vector<std::string> held_back_;  ///< Nodes to owe once the holder knows.

  std::deque<queue::Event> events_;
  bool feeding_ = false;
};

}  // namespace latchkey::recipes
