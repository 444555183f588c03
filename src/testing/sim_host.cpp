#include "testing/sim_host.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace latchkey::testing {
namespace {

/// As long as net::Driver gives a session that nobody wants any more.
constexpr std::chrono::seconds kPatience(2);
/// A call without a deadline that waits for longer than this waits for ever.
constexpr std::chrono::hours kLongestWait(24 * 365);

session::ConnectString addresses(const std::vector<Server*>& servers, const std::string& chroot) {
  session::ConnectString connect;
  for (const Server* server : servers) {
    connect.endpoints.push_back({"server" + std::to_string(server->index()), 2181, {}});
  }
  if (chroot != "/") connect.chroot = chroot;
  return connect;
}

}  // namespace

SimHost::SimHost(Timeline& timeline, Network& network, Process& process,
                 std::vector<Server*> servers, SessionOptions options, const WorldOptions& world)
    : timeline_(timeline),
      network_(network),
      process_(process),
      servers_(std::move(servers)),
      options_(std::move(options)),
      world_(world),
      guard_(std::make_shared<session::Guard>(options_,
                                              [](const std::function<void()>& task) { task(); })),
      view_(std::make_shared<session::View>()),
      machine_(
          session::machine_options(addresses(servers_, options_.chroot), options_, world.linger),
          timeline.random(), view_),
      hooks_(session::user_hooks(*this)) {}

std::shared_ptr<session::Host> SimHost::start() {
  enter([](session::Machine& machine, Instant now) { machine.start(now); });
  return {this, [self = shared_from_this()](session::Host*) mutable {
            // Taken out: whoever still has a weak pointer to the host keeps this function.
            const std::shared_ptr<SimHost> last = std::move(self);
            last->let_go();
          }};
}

void SimHost::let_go() {
  enter([](session::Machine& machine, Instant now) { machine.close(now + kPatience, {}, now); });
}

void SimHost::enter(base::FunctionRef<void(session::Machine&, Instant)> task) {
  LATCHKEY_ASSERT(!entered_);
  // Destroyed last, and outside: a closure of the user's may own the last handle.
  std::vector<session::Machine::Spent> spent;
  std::vector<std::function<void()>> posted;
  {
    const base::SurroundingsScope scope(retired_ ? base::surroundings : &process_);
    entered_ = true;
    const Instant now = retired_ ? machine_.now() : process_.now();
    machine_.advance(now);
    task(machine_, now);
    carry_out(now);
    entered_ = false;
    spent = machine_.take_spent();
    posted.swap(posted_);
  }
  if (!is_live()) return;  // Nobody is there to run them; they go with what they own.
  for (std::function<void()>& callback : posted) {
    ++waiting_;
    schedule_callback(timeline_.now() + draw_callback(), std::move(callback));
  }
  for (; ordered_posted_ > 0; --ordered_posted_) {
    ++waiting_;
    last_callback_ = std::max(timeline_.now() + draw_callback(), last_callback_ + Duration(1));
    schedule_callback(last_callback_, {});
  }
  arm();
}

void SimHost::carry_out(Instant) {
  while (machine_.has_news()) {
    machine_.deliver(hooks_);
    if (machine_.take_hang_up() && link_ != 0) {
      if (is_live()) network_.hang_up(link_, Way::kRequest);
      link_ = 0;
      up_ = false;
    }
    if (const auto endpoint = machine_.take_dial(); endpoint && is_live()) {
      link_ = network_.dial(*this, process_, *servers_[*endpoint]);
      up_ = false;
    }
    std::string output = machine_.take_output();
    if (!output.empty() && up_ && is_live()) network_.send(link_, Way::kRequest, std::move(output));
  }
}

// Callbacks.

void SimHost::post_in_order(std::function<void()> task) {
  if (!is_live()) return post(std::move(task));
  in_order_.push_back(std::move(task));
  ++ordered_posted_;
}

void SimHost::post(std::function<void()> task) { posted_.push_back(std::move(task)); }

Duration SimHost::draw_callback() {
  return timeline_.draw(world_.callback.least, world_.callback.most);
}

void SimHost::schedule_callback(Instant at, std::function<void()> task) {
  timeline_.at(at, &process_, Happens::kCallback,
               [self = shared_from_this(), task = std::move(task)]() mutable {
                 --self->waiting_;
                 // An empty one stands for the next in line.
                 if (!task) {
                   task = std::move(self->in_order_.front());
                   self->in_order_.pop_front();
                 }
                 if (self->options_.executor) return self->options_.executor(std::move(task));
                 self->in_callback_ = true;
                 task();
                 self->in_callback_ = false;
               });
}

// Time.

bool SimHost::wait(base::FunctionRef<bool()> is_there, base::FunctionRef<bool(Deadline)> /*block*/,
                   Deadline deadline) {
  LATCHKEY_ASSERT(!timeline_.is_in_event());
  const bool process_was_killed = !process_.is_alive();
  LATCHKEY_ASSERT(!process_was_killed);
  const Instant began = timeline_.now();
  while (!is_there()) {
    if (deadline.has_passed(process_.now())) return false;
    const Instant until = process_.true_time_of(deadline.at());
    if (timeline_.next() > until) {
      timeline_.pass_to(until);
      continue;
    }
    LATCHKEY_ASSERT(timeline_.now() - began < kLongestWait);
    const bool something_happens = timeline_.step();
    LATCHKEY_ASSERT(something_happens);
  }
  return true;
}

void SimHost::arm() {
  if (machine_.is_over()) return;
  const Instant wake = process_.true_time_of(machine_.next_wake());
  if (wake >= armed_ || wake == Instant::max()) return;
  armed_ = wake;
  timeline_.at(wake, &process_, Happens::kWake, [weak = weak_from_this(), wake] {
    const auto self = weak.lock();
    if (self && self->armed_ == wake) self->wake();
  });
}

void SimHost::wake() {
  armed_ = Instant::max();
  if (!is_live()) return;
  if (process_.now() < machine_.next_wake()) return arm();
  enter([](session::Machine& machine, Instant now) { machine.tick(now); });
}

void SimHost::clock_changed() {
  armed_ = Instant::max();
  if (is_live()) arm();
}

// The network.

void SimHost::connected(LinkId link) {
  if (link != link_ || !is_live()) return;
  up_ = true;
  enter([](session::Machine& machine, Instant now) { machine.transport_up(now); });
}

void SimHost::disconnected(LinkId link, const char* why) {
  if (link != link_ || !is_live()) return;
  up_ = false;
  link_ = 0;
  enter([why](session::Machine& machine, Instant now) {
    machine.transport_down(why, Code::kUnreachable, now);
  });
}

void SimHost::received(LinkId link, std::string_view bytes) {
  if (link != link_ || !is_live()) return;
  enter([bytes](session::Machine& machine, Instant now) { machine.received(bytes, now); });
}

// The end.

void SimHost::die(Tell servers_hear) {
  if (!is_live()) return;
  dead_ = true;
  in_order_.clear();
  if (link_ != 0) network_.abandon(link_, servers_hear);
  link_ = 0;
  up_ = false;
}

void SimHost::retire() {
  if (retired_) return;
  // Everything that waits ends here, so that no closure keeps what keeps the closure.
  dead_ = true;
  in_order_.clear();
  enter([](session::Machine& machine, Instant now) {
    machine.close(now, {}, now);
    machine.tick(now);
  });
  retired_ = true;
}

}  // namespace latchkey::testing
