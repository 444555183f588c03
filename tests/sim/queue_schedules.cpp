#include <array>
#include <memory>
#include <utility>

#include "latchkey/mutex.hpp"
#include "sim/directed.hpp"

// Three people in one queue, and the steps at which the classic mistakes of a queue show.
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using testing::Way;
using wire::Op;

constexpr std::chrono::milliseconds kQueueTimeout = 4'000ms;

class Trio {
 public:
  Trio() : plan_(plan()), world_(plan_.world), judge_(world_, plan_) {
    SessionOptions options;
    options.timeout = kQueueTimeout;
    for (Person& one : people_) {
      one.process = &world_.start_process("person " + std::to_string(&one - people_.data()));
      one.session = world_.open(*one.process, options);
    }
    world_.run_for(1s);
    join(0);
    leave(0);
  }

  void ask(std::size_t who) {
    Person& one = people_.at(who);
    one.stop = {};
    const Deadline deadline = deadline_in(100s);
    const Judge::AskId ask = judge_.asked({who, one.process, deadline.at(), {Share{}}});
    Mutex(*one.session, "/locks/a")
        .lock_async(deadline, one.stop.get_token())
        .then([this, who, ask](Result<Lease> lease) { answer(who, ask, std::move(lease)); });
  }
  void join(std::size_t who) {
    ask(who);
    settle();
  }
  void until_holds(std::size_t who) {
    world_.run_until([&] { return people_.at(who).lease != nullptr; }, kQueueTimeout);
  }
  void cancel(std::size_t who) {
    people_.at(who).stop.request_stop();
    settle();
  }
  void leave(std::size_t who) {
    let_go(who);
    settle();
  }
  void let_go(std::size_t who) {
    Person& one = people_.at(who);
    if (!one.lease) return;
    judge_.ended(one.hold);
    one.lease.reset();
  }
  void settle() { world_.run_for(kQueueTimeout / 4); }

  void lose(std::size_t who, Way way, Op op) {
    world_.drop_next(*people_.at(who).process, way, op);
  }
  void cut_for(std::size_t who, Duration span) {
    testing::Process& process = *people_.at(who).process;
    world_.refuse(process, 0, testing::Refusal::kOn);
    world_.cut(world_.host_of(*people_.at(who).session));
    world_.script(span, [this, &process] { world_.refuse(process, 0, testing::Refusal::kOff); });
  }
  /// Every answer comes late, from the next proof on.
  void hold_up_next_proof(std::size_t who, Duration span) {
    const std::uint64_t before = world_.count(testing::Fault::kHold);
    world_.hold_next(*people_.at(who).process, Way::kRequest, Op::kSync, span);
    world_.run_until([&] { return world_.count(testing::Fault::kHold) > before; }, kQueueTimeout);
  }
  void cut(std::size_t who) { world_.cut(world_.host_of(*people_.at(who).session)); }
  void prove(std::size_t who) {
    static_cast<void>(people_.at(who).session->sync("/", deadline_in(10s)));
  }
  void fall_silent(std::size_t who) {
    world_.partition(*people_.at(who).process, 0, testing::Silence::kRequests);
  }
  void run_for(Duration span) { world_.run_for(span); }

  void expect_entries(std::size_t count) {
    const std::size_t there = world_.leader().tree().nodes().find("/locks/a")->children.size();
    if (there == count) return;
    judge_.fail(Invariant::kNoOrphan, "there are " + std::to_string(there) + " entries");
  }
  void expect_none(std::size_t who) {
    const Person& one = people_.at(who);
    if (one.lease) judge_.fail(Invariant::kLiveness, one.process->name() + " holds too soon");
  }
  void expect_hold(std::size_t who) {
    const Person& one = people_.at(who);
    if (!one.lease) judge_.fail(Invariant::kAwake, one.process->name() + " is first and sleeps");
  }

  /// Everybody lets go, and nothing may be left.
  std::optional<Violation> end() {
    world_.heal_everything();
    for (int round = 0; round < 4 && !judge_.violation(); ++round) {
      settle();
      for (std::size_t i = 0; i < people_.size(); ++i) leave(i);
    }
    if (!judge_.violation()) world_.run_for(3 * kQueueTimeout);
    if (!judge_.violation()) judge_.check_quiet();
    return judge_.violation();
  }

 private:
  struct Person {
    testing::Process* process = nullptr;
    std::optional<Session> session;
    std::stop_source stop;
    std::shared_ptr<Lease> lease;
    Judge::HoldId hold = 0;
  };

  static Plan plan() {
    Plan plan;
    plan.world.service.tick = 100ms;
    plan.world.service.min_session_timeout = 1s;
    plan.sites = {{Sort::kMutex, "/locks/a"}};
    plan.timeout = kQueueTimeout;
    return plan;
  }
  void answer(std::size_t who, Judge::AskId ask, Result<Lease> lease) {
    Person& one = people_.at(who);
    judge_.answered(ask, lease ? Judge::Got::kHold : Judge::Got::kNothing, one.session->id());
    if (!lease) return;
    one.lease = std::make_shared<Lease>(std::move(*lease));
    const auto believes = [held = one.lease] {
      return held->state() == LeaseState::kHeld || held->state() == LeaseState::kSuspect;
    };
    one.hold = judge_.granted({who,
                               one.process,
                               one.session->id(),
                               {Share{}},
                               one.lease->token(),
                               one.lease->nodes(),
                               false,
                               believes,
                               one.lease->lost()});
  }

  const Plan plan_;
  testing::World world_;
  Judge judge_;
  std::array<Person, 3> people_;
};

/// Whoever stands between a holder and a waiter gives up (H06, H27).
void give_up_between(Trio& trio) {
  for (std::size_t who = 0; who < 3; ++who) trio.join(who);
  trio.cancel(1);
}

/// The answer to a create is lost (H01).
void lose_create(Trio& trio) {
  trio.lose(0, Way::kReply, Op::kCreate2);
  trio.ask(0);
  trio.until_holds(0);
  trio.expect_entries(1);
}

/// A release is lost with its connection (H21).
void lose_delete(Trio& trio) {
  trio.join(0);
  trio.join(1);
  trio.lose(0, Way::kRequest, Op::kDelete);
  trio.leave(0);
}

/// A waiter has a new connection when the lock becomes free (H32), or it becomes free meanwhile
/// (H91).
void attach_again(Trio& trio) {
  trio.join(0);
  trio.join(1);
  trio.cut_for(1, 10ms);
  trio.settle();
  trio.leave(0);
  trio.leave(1);
  trio.join(0);
  trio.join(1);
  trio.cut_for(1, kQueueTimeout / 8);
  trio.leave(0);
}

/// A waiter whose requests do not arrive hears that the lock is free when its lease is over, and
/// before it gives the connection up (H12).
void wake_without_a_lease(Trio& trio) {
  trio.join(0);
  trio.join(1);
  trio.prove(1);
  trio.fall_silent(1);
  trio.run_for(kQueueTimeout * 60 / 100);
  trio.leave(0);
}

/// Whoever is first has a proof that came too late, and another answer proves its lease (H10).
void prove_by_the_way(Trio& trio) {
  trio.join(0);
  trio.ask(1);
  trio.run_for(100ms);
  trio.hold_up_next_proof(1, 2'300ms);
  trio.run_for(2s);
  trio.let_go(0);
  trio.run_for(400ms);
  trio.expect_none(1);
  trio.cut(1);  // On a new connection nothing was slow yet.
  trio.prove(1);
  trio.run_for(100ms);
  trio.expect_hold(1);
}

/// A holder whose requests do not arrive has to hear that its lease is over (H09).
void outlast_the_lease(Trio& trio) {
  trio.join(0);
  trio.fall_silent(0);
  trio.run_for(2 * kQueueTimeout);
}

}  // namespace

std::optional<Violation> play_queue() {
  for (const auto schedule : {give_up_between, lose_create, lose_delete, attach_again,
                              wake_without_a_lease, prove_by_the_way, outlast_the_lease}) {
    Trio trio;
    schedule(trio);
    if (auto violation = trio.end()) return violation;
  }
  return std::nullopt;
}

}  // namespace latchkey::sim
