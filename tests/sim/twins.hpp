#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "testing/world.hpp"

namespace latchkey::sim {

/// Makes twins: now and then the answer to the create of an entry is lost, and the create is
/// carried out once more, as if its client had sent it again on the same connection. Whoever looks
/// for its entry then finds two.
///
/// Thread safety: one thread at a time.
class Twins final : public testing::Observer {
 public:
  explicit Twins(testing::World& world) : world_(world) { world_.watch(*this); }
  ~Twins() override { world_.unwatch(*this); }

  /// No more of them.
  void stop() { stopped_ = true; }
  [[nodiscard]] std::uint64_t made() const { return made_; }

  // Observer.

  void on_sent(const testing::Message& message) override;
  void on_lost(const testing::Message& message) override;
  void on_arrived(std::uint64_t link, testing::Way way, std::size_t messages) override;

 private:
  void make(std::uint64_t link, std::size_t server, const std::string& frame);

  testing::World& world_;
  bool stopped_ = false;
  std::uint64_t made_ = 0;
  /// Creates without an answer, by connection and xid.
  std::map<std::pair<std::uint64_t, std::int32_t>, std::string> asked_;
  std::set<std::uint64_t> halves_;  ///< Connections on which a part of a message has arrived.
};

}  // namespace latchkey::sim
