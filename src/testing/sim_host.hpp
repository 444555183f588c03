#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "session/host.hpp"
#include "testing/network.hpp"
#include "testing/process.hpp"
#include "testing/timeline.hpp"

namespace latchkey::testing {

/// A session's Machine in the simulation: what net::Driver is to sockets, this is to a Network and
/// a Timeline. Callbacks are events of its process.
///
/// Thread safety: one thread at a time.
class SimHost final : public session::Host, public std::enable_shared_from_this<SimHost> {
 public:
  SimHost(Timeline& timeline, Network& network, Process& process, std::vector<Server*> servers,
          SessionOptions options, const WorldOptions& world);

  /// Starts the machine. The session is closed when the last of those who share the result lets go.
  [[nodiscard]] std::shared_ptr<session::Host> start();

  void enter(base::FunctionRef<void(session::Machine&, Instant)> task) override;
  void post_in_order(std::function<void()> task) override;
  void post(std::function<void()> task) override;
  [[nodiscard]] bool is_forked() const noexcept override { return false; }
  /// Within any event: whoever waits there waits for events that cannot happen meanwhile.
  [[nodiscard]] bool is_own_thread() const noexcept override { return timeline_.is_in_event(); }
  bool wait(base::FunctionRef<bool()> is_there, base::FunctionRef<bool(Deadline)> block,
            Deadline deadline) override;
  [[nodiscard]] std::shared_ptr<const session::Guard> guard() const override { return guard_; }
  [[nodiscard]] const session::View& view() const noexcept override { return *view_; }
  [[nodiscard]] const SessionOptions& options() const noexcept override { return options_; }

  // The network's.

  void connected(LinkId link);
  void disconnected(LinkId link, const char* why);
  void received(LinkId link, std::string_view bytes);

  // The world's.

  [[nodiscard]] Process& process() { return process_; }
  /// 0: none.
  [[nodiscard]] LinkId link() const { return link_; }
  [[nodiscard]] bool is_connected() const { return up_; }
  /// To look at; whoever wants to change something enters.
  [[nodiscard]] const session::Machine& machine() const { return machine_; }
  [[nodiscard]] std::size_t callbacks_waiting() const { return waiting_; }
  /// Is a callback of the session's running?
  [[nodiscard]] bool is_in_callback() const { return in_callback_; }
  /// A number of its own, in the order of opening.
  std::uint64_t number = 0;
  void clock_changed();
  /// Nobody wants the session any more: it is closed, connected or not.
  void let_go();
  /// Its process has ended: nothing leaves any more, and nothing more happens here.
  void die(Tell servers_hear);
  /// The world ends: nobody is there to be entered.
  void retire();

 private:
  void carry_out(Instant now);
  void arm();
  void wake();
  [[nodiscard]] Duration draw_callback();
  void schedule_callback(Instant at, std::function<void()> task);
  [[nodiscard]] bool is_live() const { return !dead_ && !retired_; }

  Timeline& timeline_;
  Network& network_;
  Process& process_;
  const std::vector<Server*> servers_;
  const SessionOptions options_;
  const WorldOptions& world_;
  const std::shared_ptr<const session::Guard> guard_;
  const std::shared_ptr<session::View> view_;
  session::Machine machine_;
  session::Machine::Hooks hooks_;
  bool dead_ = false;
  bool retired_ = false;
  bool entered_ = false;
  bool in_callback_ = false;
  LinkId link_ = 0;
  bool up_ = false;
  Instant armed_ = Instant::max();  ///< True time.
  Instant last_callback_{};         ///< When the newest ordered callback is due.
  std::deque<std::function<void()>> in_order_;
  std::vector<std::function<void()>> posted_;  ///< To get going when the machine is left.
  std::size_t ordered_posted_ = 0;
  std::size_t waiting_ = 0;
};

}  // namespace latchkey::testing
