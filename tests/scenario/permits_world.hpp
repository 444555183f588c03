#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "queue/permits.hpp"

/// A little world of its own for the semaphore: as mini_world.hpp, but with a size, several nodes
/// to each claim, and the queue in front, which is the Contender's business, as a plain list.
namespace latchkey::mini::semaphore {

/// Mistakes that the layer which carries out a machine's wishes makes here on purpose.
enum class Mutant {
  kNone,
  kSizeBeforeList,     ///< H48: the size is read before the leases.
  kDeafToLeases,       ///< H47: a watch on the leases is said to be set and is not.
  kDeafToSize,         ///< H47: the same for the size.
  kSearchWithoutSync,  ///< H02
  kCancelOwesNothing,  ///< H06
  kWakeIsGrant,        ///< H46: after a wake the leases are said to be ours alone.
};

struct Lease {
  std::string name;
  int number = 0;
  int claim = -1;
  std::int64_t czxid = 0;

  friend bool operator==(const Lease&, const Lease&) = default;
};

/// What a server knows after so many transactions.
struct State {
  std::vector<Lease> leases;
  int size = 0;
};

struct Request {
  enum class Kind { kQueue, kUnqueue, kCreate, kList, kSize, kSync, kLook, kProve, kDelete };
  Kind kind = Kind::kList;
  queue::Ask ask = 0;
  std::string name = {};  ///< Or prefix.
  bool watch = false;
};

struct Message {
  enum class Kind { kReply, kLeasesChanged, kSizeChanged };
  Kind kind = Kind::kReply;
  Request request = {};
  queue::Answer answer = {};
  std::vector<std::string> names = {};
  std::string data = {};
  std::int64_t czxid = 0;
  bool owned = false;
  std::size_t position = 0;
};

/// One caller with a session of its own.
struct Claimant {
  explicit Claimant(int wanted, queue::Permits permits) : count(wanted), machine(permits) {}

  int count;
  queue::Permits machine;
  bool started = false;
  bool cancelled = false;
  bool granted = false;
  bool failed = false;
  bool holding = false;
  bool done = false;
  bool crashed = false;
  bool told_first = false;
  bool robbed = false;
  bool woken = false;
  bool was_admitted = false;  ///< There was a moment at which it had a right to its permits.
  Code code = Code::kServerError;

  bool connected = true;
  bool lags = false;
  std::size_t position = 0;   ///< What its server has applied.
  std::size_t last_seen = 0;  ///< What a reply has shown to the client.
  bool server_watches_leases = false;
  bool server_watches_size = false;
  bool watches_leases = false;
  bool watches_size = false;
  std::set<queue::Ask> unwanted;  ///< Watches taken back while they were being asked for.
  queue::Ask last_list_watch = 0;
  queue::Ask last_size_watch = 0;

  std::deque<Request> sent;
  std::deque<Request> ghosts;  ///< Of a cut connection: creates still on their way.
  std::deque<Message> inbox;
  std::optional<queue::Ask> paused;
};

/// Nothing happens by itself: each public function is one thing that may happen next. A value.
class World {
 public:
  explicit World(int size, Mutant mutant = Mutant::kNone) : mutant_(mutant) {
    history_.push_back({{}, size});
  }

  int add(int count, std::optional<int> size = std::nullopt, bool lags = false,
          queue::Wait wait = queue::Wait::kYes);

  void start(int claim);
  void cancel(int claim);
  void release(int claim);
  void lease_over(int claim);
  void crash(int claim);
  void resize(int size);
  void rob(std::size_t lease);  ///< Another hand deletes it.

  void serve(int claim);
  void receive(int claim);
  void promote(int claim);  ///< It learns that it is the head of the queue.
  void catch_up(int claim);
  void cut(int claim);
  void land(int claim);
  enum class Attach { kNewest, kOldestAllowed };
  void attach(int claim, Attach to);
  void resume(int claim);

  [[nodiscard]] const std::vector<Claimant>& claims() const { return claims_; }
  [[nodiscard]] const std::vector<int>& line() const { return line_; }
  [[nodiscard]] const State& leader() const { return history_.back(); }
  [[nodiscard]] std::size_t newest() const { return history_.size() - 1; }
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

  /// Checks what has to hold when nothing is left to happen by itself.
  void check_at_rest();
  /// Two worlds with equal keys have equal futures, with or without connections being cut.
  [[nodiscard]] std::string key(bool may_be_cut) const;

 private:
  friend class Carrier;

  Claimant& at(int claim) { return claims_[static_cast<std::size_t>(claim)]; }
  void tell(int claim, const queue::PermitEvent& event);
  void commit(State state);
  void apply_next(Claimant& claim);
  void send(int claim, Request request);
  Message carry_out(int claim, const Request& request);
  void deliver(int claim, const Message& message);
  void deliver_reply(int claim, const Message& message);
  void granted(int claim, const queue::action::GrantAll& grant);
  void violate(std::string what) { violations_.push_back(std::move(what)); }

  Mutant mutant_;
  std::vector<State> history_;
  int counter_ = 0;
  std::vector<int> line_;  ///< The queue in front.
  std::vector<Claimant> claims_;
  std::vector<std::string> violations_;
};

}  // namespace latchkey::mini::semaphore
