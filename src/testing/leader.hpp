#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "latchkey/result.hpp"
#include "storage/file_journal.hpp"
#include "storage/sim_disk.hpp"
#include "testing/network.hpp"
#include "testing/server.hpp"
#include "testing/timeline.hpp"
#include "testing/world_options.hpp"
#include "tree/service.hpp"

namespace latchkey::testing {

class Follower;

/// The server that decides: the real tree::Service, driven as server::Driver drives it, over the
/// simulated network and disk. Commits take a drawn time each; the next batch gathers meanwhile.
///
/// Thread safety: one thread at a time.
class Leader final : public Server {
 public:
  Leader(Process& process, Timeline& timeline, Network& network, const WorldOptions& options,
         const std::vector<Observer*>& observers);
  ~Leader() override;

  [[nodiscard]] bool is_listening() const override { return service_ != nullptr; }
  void accepted(LinkId link) override;
  void received(LinkId link, std::string_view bytes) override;
  void hung_up(LinkId link) override;
  void clock_changed() override;

  // To look at.

  [[nodiscard]] bool is_up() const { return service_ != nullptr; }
  /// Only while it is up.
  [[nodiscard]] const tree::Service& service() const { return *service_; }
  [[nodiscard]] const tree::Tree& tree() const { return service_->tree(); }
  [[nodiscard]] const Log& log() const { return log_; }
  /// Why it ended or could not start; nothing if it never had to.
  [[nodiscard]] const std::optional<Error>& trouble() const { return trouble_; }
  [[nodiscard]] std::uint64_t folds() const { return folds_; }
  [[nodiscard]] std::uint64_t restarts() const { return restarts_; }

  // The world's.

  void add_follower(Follower& follower) { followers_.push_back(&follower); }
  bool expire(tree::SessionId session);
  void crash(Crash how);
  /// Recovers and serves. Without success trouble() says why, and it stays down.
  void start();
  /// All data is gone. Only while it is down.
  void wipe();
  /// Its data is that of an old copy. Only while it is down.
  void restore(const std::map<std::string, std::string>& files);
  /// See World. For the next start.
  void age(std::string directory, std::int32_t creates) { aged_ = {std::move(directory), creates}; }
  void limit_timeouts(std::chrono::milliseconds most) { longest_timeout_ = most; }
  [[nodiscard]] storage::SimDisk& disk() { return disk_; }
  /// The next commit takes so much longer.
  void stall_disk(Duration span) { stall_ = std::max(stall_, span); }
  void fail_next_sync() { fail_sync_ = true; }
  void fill_disk() { disk_.fill_up(); }
  void make_room() { disk_.make_room(); }
  /// Told when something that was prepared for its disk has come about.
  std::function<void(Fault)> struck;
  /// Whatever the disk was to do wrong from now on, it does right.
  void heal_disk() {
    stall_ = {};
    fail_sync_ = false;
    disk_.make_room();
  }

  // A follower's: each of its connections has a peer of its own here. What it passes on is no sign
  // of life, as in Apache: take_touch() is one, and a handshake.

  void take_from(Follower& follower, LinkId link, std::string_view bytes);
  void take_touch(LinkId link);
  /// The session was alive at a follower it has left since, which had granted it this time-out.
  void take_late_touch(tree::SessionId session, std::chrono::milliseconds timeout);
  void take_hang_up(LinkId link);
  [[nodiscard]] std::vector<tree::Identity> identities_of(LinkId link) const;
  void forget(const Follower& follower);

 private:
  struct Target {
    LinkId link = 0;
    Follower* follower = nullptr;  ///< Null: the client itself.
  };
  using Batch = std::vector<tree::Service::Stored>;

  [[nodiscard]] tree::Moment moment();
  [[nodiscard]] tree::ServiceOptions service_options();
  tree::PeerId introduce(LinkId link, Follower* follower);
  void hear(LinkId link, std::string_view bytes, tree::Service::Heard heard);
  void disconnect(LinkId link);
  void carry_out();
  void serve(tree::PeerId peer);
  void commit_batch();
  void committed();
  [[nodiscard]] Result<void> append(const Batch& batch);
  void publish(const Batch& batch);
  void fold_if_needed();
  void fail(const Error& error);
  void end(Tell clients_hear);
  [[nodiscard]] Result<void> recover(Batch& replayed, Recovery& recovery);
  /// The record of a directory that has aged while the leader was down.
  [[nodiscard]] Result<void> grow_old(Batch& records);
  void settle_commit_in_flight(Crash how);
  void trim();
  void arm();
  void wake();
  void tick();

  Timeline& timeline_;
  Network& network_;
  const WorldOptions& options_;
  const std::vector<Observer*>& observers_;
  std::vector<Follower*> followers_;
  storage::SimDisk disk_;
  std::unique_ptr<tree::Service> service_;
  std::unique_ptr<storage::Journal> journal_;
  std::unordered_map<LinkId, tree::PeerId> peers_;
  std::unordered_map<tree::PeerId, Target> targets_;
  Log log_;
  std::int64_t last_zxid_ = 0;  ///< Of the newest record in the log.
  Batch committing_;
  bool folding_ = false;
  Duration stall_{};
  bool fail_sync_ = false;
  std::optional<Error> trouble_;
  Instant armed_ = Instant::max();  ///< True time.
  Instant asked_{};                 ///< The same by its own clock.
  Duration late_{};
  std::size_t forgotten_ = 0;  ///< Records that were decided when it ended.
  Instant ended_{};
  std::optional<std::pair<std::string, std::int32_t>> aged_;
  std::chrono::milliseconds longest_timeout_ = std::chrono::milliseconds::max();
  std::uint64_t folds_ = 0;
  std::uint64_t restarts_ = 0;

  // Store::kMemory: what a restart finds.
  std::vector<std::string> saved_;
  Batch saved_batch_;
};

}  // namespace latchkey::testing
