#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "latchkey/election.hpp"
#include "latchkey/lease.hpp"
#include "latchkey/lock.hpp"
#include "latchkey/rw_lock.hpp"
#include "sim/stage.hpp"

namespace latchkey::sim {

/// One contender of a directed schedule: a process, a session, and at most one lock at a time. It
/// does as it is told, and says so to judge and lookout. Thread safety: one thread at a time.
class Person {
 public:
  Person(const Stage& stage, std::size_t number, std::vector<std::size_t> servers);
  /// Another thread of the same process, on the same session.
  Person(const Person& beside, std::size_t number);

  /// From now on for so long.
  void wants(const Lock& lock, Share share = {}, Duration patience = std::chrono::seconds(60));
  void cancels() { stop_.request_stop(); }
  /// As a writer: it becomes a reader.
  void reads_on(const RwLock& lock);
  void lets_go(Lookout::Ending ending = Lookout::Ending::kRelease);
  /// Of what it has let go of last.
  void lets_go_again();
  /// As soon as its request is answered it lets its session go, in the very callback.
  void leaves_when_answered() { leaves_ = true; }
  [[nodiscard]] bool holds() const { return lease_ != nullptr; }
  [[nodiscard]] bool waits() const { return waits_; }
  [[nodiscard]] const Lease& lease() const { return *lease_; }
  /// Why it does not hold.
  [[nodiscard]] std::optional<Code> error() const { return error_; }

  testing::Process& process;
  Session session;
  [[nodiscard]] testing::SimHost& host() { return stage_.world.host_of(session); }

 private:
  [[nodiscard]] LockRequest::Handler answer(const Deadline& deadline);
  void hold(Lease lease);

  Stage stage_;
  const std::size_t number_;
  std::vector<Share> shares_;
  std::stop_source stop_;
  bool waits_ = false;
  bool goes_on_ = false;
  bool leaves_ = false;
  std::shared_ptr<Lease> lease_;
  std::shared_ptr<Lease> old_;
  Lookout::Hold seen_;
  Judge::HoldId hold_ = 0;
  std::optional<Code> error_;
};

/// Runs for leadership for a person, and says so to judge and lookout. Thread safety: one thread at
/// a time.
class Candidate {
 public:
  Candidate(const Stage& stage, Person& person, std::size_t site, ElectionOptions options = {});
  ~Candidate() { closes(); }
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;

  [[nodiscard]] bool leads() const { return hold_.has_value(); }
  /// How many terms it has had.
  [[nodiscard]] int terms() const { return terms_; }
  void resigns();
  void closes();

 private:
  void hear(const ElectionNews& news);
  void end();

  Stage stage_;
  Person& person_;
  const std::size_t site_;
  std::shared_ptr<Election> election_;
  std::optional<Judge::HoldId> hold_;
  int terms_ = 0;
};

/// A directed schedule: a small world with four people, told step by step what happens in it.
///
///     Scene scene;
///     scene.world.drop_next(scene.ann.process, Way::kReply, wire::Op::kDelete);
///     scene.take_and_leave(scene.ann);
///     scene.ends_having_met({21});
///
/// Everything that a run with a seed is checked for is checked here as well. Thread safety: one
/// thread at a time.
class Scene {
 public:
  struct Setup {
    std::vector<Site> sites = {{Sort::kMutex, "/locks/a"}};
    std::size_t followers = 0;
    testing::Store store = testing::Store::kMemory;
    std::uint64_t fold_bytes = testing::WorldOptions{}.fold_bytes;
    std::chrono::milliseconds timeout{4'000};
    std::vector<std::size_t> servers_of_ann = {0};  ///< Everybody else talks to the leader.
    std::uint64_t seed = 1;
    bool regrants = false;  ///< Sessions know that a server may grant a second and no more.
  };
  Scene() : Scene(Setup{}) {}
  explicit Scene(Setup setup);

  /// Fails the test if `done` does not come true in time.
  void until(base::FunctionRef<bool()> done, Duration limit = std::chrono::seconds(60));
  void until_holds(const Person& person);
  /// For so long that everything that is under way without a fault has happened.
  void settle() { world.run_for(std::chrono::milliseconds(100)); }
  /// Of what it holds, by its own clock.
  [[nodiscard]] LeaseState state_of(Person& person);
  /// The lock at /locks/a, or at another path.
  [[nodiscard]] static Lock mutex(const Person& person, std::string path = "/locks/a");
  void take(Person& person) {
    person.wants(mutex(person));
    until_holds(person);
  }
  void take_and_leave(Person& person) {
    take(person);
    person.lets_go();
    settle();
  }
  /// The person's connection ends and no server takes it back, until let_back().
  void lock_out(Person& person);
  void let_back(Person& person);
  void restart_server(Duration down);

  /// Heals, lets everybody go, waits until nothing is left, and expects that nothing was violated
  /// and that each of these hazards was met.
  void ends_having_met(std::initializer_list<int> hazards);

  const Plan plan;
  testing::World world;
  Judge judge;
  Lookout lookout;
  const Stage stage{world, judge, lookout, plan};
  Person ann;
  Person bob;
  Person cyd;
  Person dan;
};

}  // namespace latchkey::sim
