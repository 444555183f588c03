#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "latchkey/error.hpp"
#include "latchkey/token.hpp"
#include "sim/hazards.hpp"
#include "sim/plan.hpp"
#include "testing/world.hpp"
#include "tree/record.hpp"

namespace latchkey::sim {

/// Looks out for hazards: counts how often the schedule that makes a hazard was met in a run,
/// whatever came of it. That is the judge's business. Each rule looks at the run from outside: at
/// messages, at the leader's records, at the faults, and at what clients say.
///
///     Lookout lookout(world, plan);
///     ...
///     if (lookout.sightings().of(26) == 0) ...    // nobody lost its predecessor while it looked
///
/// Thread safety: one thread at a time.
class Lookout final : public testing::Observer {
 public:
  Lookout(testing::World& world, const Plan& plan);
  ~Lookout() override { world_.unwatch(*this); }

  [[nodiscard]] const Sightings& sightings() const { return sightings_; }

  // What clients say.

  struct Hold {
    std::size_t site = 0;
    std::uint32_t process = 0;
    bool is_shared = false;
    Token token{0};
    std::vector<std::string> nodes;
  };
  void granted(const Hold& hold);
  /// Before the lease goes. `is_lost`: by its own clock or by the server's word.
  enum class Ending : std::uint8_t { kRelease, kDestruction };
  void lets_go(const Hold& hold, testing::SimHost& host, bool is_lost, Ending ending);
  /// A writer becomes a reader.
  void reads_on(const Hold& hold);
  void releases_again() { sightings_.saw(24); }
  /// A lock was asked for in vain.
  void gave_up(testing::SimHost& host, Code code);
  /// Before the session is let go.
  void leaves(testing::SimHost& host);
  void found_sick() { sightings_.saw(74); }
  void led_before() { sightings_.saw(75); }
  void shown_leader(testing::SimHost& host);

  // Observer.

  void on_applied(const testing::LogEntry& entry) override;
  void on_sent(const testing::Message& message) override;
  void on_lost(const testing::Message& message) override;
  void on_arrived(std::uint64_t link, testing::Way way, std::size_t messages) override;
  void on_over(std::uint64_t link, testing::Over how) override;
  void on_fault(testing::Fault fault, const testing::Process* process) override;
  void on_failed(const Error& error) override;
  void on_recovered(const testing::Recovery& recovery) override;

 private:
  /// A request that its client has no answer to.
  struct Asked {
    wire::Op op = wire::Op::kError;
    std::string path;
    bool watches = false;
    std::vector<wire::Op> parts;       ///< Of a multi; of any other just itself.
    std::vector<std::string> creates;  ///< Without the server's number.
    Instant at;
    bool has_arrived = false;
    bool is_answered = false;

    [[nodiscard]] bool deletes() const {
      return std::ranges::find(parts, wire::Op::kDelete) != parts.end();
    }
  };
  /// A connection.
  struct Line {
    std::size_t server = 0;
    std::uint32_t process = 0;
    std::int64_t session = 0;
    std::deque<Asked> asked;
    std::deque<bool> to_client;        ///< On their way: is it an answer?
    bool has_unlisted_create = false;  ///< The last create was answered, its list was not.
    bool is_over = false;
  };
  struct Known {
    std::uint32_t process = 0;
    std::uint64_t line = 0;  ///< The newest.
    std::int32_t timeout_ms = 0;
  };
  /// A create without an answer, by its path without the server's number.
  struct Doubt {
    std::uint64_t line = 0;
    std::int64_t session = 0;
    std::string path;  ///< Once it has been carried out.
    bool is_over = false;
  };
  struct Entry {
    std::string path;
    std::int64_t owner = 0;
    bool is_reader = false;
    bool is_listed = false;  ///< Its owner was shown a list with it.
  };
  using Queue = std::map<std::int64_t, Entry>;  ///< By the zxid of the create.
  struct Directory {
    Sort sort = Sort::kMutex;
    int seats = 0;  ///< Of a semaphore's leases.
    bool is_made = false;
    bool has_been_used = false;
    bool holder_vanished = false;
    Queue queue;
  };

  // Connections.
  void ask(const testing::Message& message);
  void answer(const testing::Message& message, Line& line);
  void greet(const testing::Message& message, Line& line);
  void notify(const testing::Message& message, const Line& line);
  void end_of(const Asked& asked, testing::Over how);

  // Records.
  void create(std::int64_t zxid, const tree::Change& change);
  void join(Directory& directory, std::int64_t zxid, Entry entry);
  void remove(const tree::Record& record, const tree::Change& change);
  void look_at_order(const Directory& directory, Queue::const_iterator gone);
  void look_at_owner(Directory& directory, const Entry& gone, const tree::Record& record);
  /// Has its owner asked for its end?
  [[nodiscard]] bool has_closed(std::int64_t session) const;
  void look_at_multi(const tree::Record& record);
  [[nodiscard]] Directory* directory_of(const std::string& path);

  [[nodiscard]] bool is_lagging(std::size_t server);
  [[nodiscard]] bool holds(std::uint32_t process) const;

  testing::World& world_;
  const Plan& plan_;
  Sightings sightings_;
  std::map<std::uint64_t, Line> lines_;
  std::map<std::int64_t, Known> sessions_;
  std::map<std::string, Doubt> doubts_;
  std::map<std::string, Directory> directories_;
  std::map<std::string, std::uint32_t> held_;  ///< Nodes, and whose.
  std::map<std::uint32_t, int> holding_;       ///< Holds of each process.
  std::vector<Hold> readers_;
  std::string woken_by_;  ///< The path of the newest event, and how many heard of it at once.
  std::uint64_t woken_at_ = 0;
  int woken_ = 0;
  testing::Fault disk_fault_ = testing::Fault::kDiskFull;
};

}  // namespace latchkey::sim
