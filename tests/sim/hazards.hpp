#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace latchkey::sim {

/// Who is to meet a hazard of docs/hazards.md.
enum class Reach : std::uint8_t {
  kLuck,       ///< The random search. One that it never meets is a missing fault.
  kScript,     ///< A directed schedule: luck does not get there, or nothing is promised there.
  kElsewhere,  ///< No simulator: it has no threads, terminals, TLS, descriptors or strangers.
};

struct Hazard {
  int number = 0;
  Reach reach = Reach::kLuck;
  std::string_view what;  ///< What counts as having met it, or where it is tested instead.
};

inline constexpr std::size_t kHazards = 101;
/// All of them, H01 first.
[[nodiscard]] const std::array<Hazard, kHazards>& hazards();

/// How often each hazard was met. Thread safety: one thread at a time.
class Sightings {
 public:
  void saw(int hazard) { ++counts_.at(static_cast<std::size_t>(hazard)); }
  [[nodiscard]] std::uint64_t of(int hazard) const {
    return counts_.at(static_cast<std::size_t>(hazard));
  }
  void add(const Sightings& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_.at(i) += other.counts_.at(i);
  }
  /// Of those that luck is to reach.
  [[nodiscard]] std::size_t reached() const;
  [[nodiscard]] static std::size_t reachable();

 private:
  std::array<std::uint64_t, kHazards + 1> counts_{};  ///< By number.
};

}  // namespace latchkey::sim
