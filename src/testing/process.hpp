#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/random.hpp"
#include "base/surroundings.hpp"
#include "latchkey/deadline.hpp"

namespace latchkey::testing {

class Timeline;

/// One simulated process: a clock of its own and a life. Whatever runs as a part of it sees its
/// clock through BootClock. Its clock starts as the true one; rate and jump lead it astray.
///
/// Thread safety: one thread at a time.
class Process final : public base::Surroundings {
 public:
  Process(Timeline& timeline, std::uint32_t id, std::string name);

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool is_alive() const { return alive_; }
  /// Grows with every end: events of an earlier life never happen.
  [[nodiscard]] std::uint32_t life() const { return life_; }
  void die();
  void rise() { alive_ = true; }

  [[nodiscard]] Instant now() noexcept override;
  [[nodiscard]] std::int64_t wall_ms() noexcept override;
  [[nodiscard]] std::uint64_t random() noexcept override;

  /// The true time at which this clock shows `local`, as it goes at present: never earlier.
  [[nodiscard]] Instant true_time_of(Instant local);

  void set_rate(double rate);
  [[nodiscard]] double rate() const { return rate_; }
  void jump(Duration by);
  void jump_wall(std::chrono::milliseconds by) { wall_ahead_ += by; }
  [[nodiscard]] std::chrono::milliseconds wall_ahead() const { return wall_ahead_; }
  void stop_clock();
  void start_clock();

  /// True time until which nothing is handled; see Timeline.
  Instant paused_until{};

 private:
  void rebase();

  Timeline& timeline_;
  const std::uint32_t id_;
  const std::string name_;
  bool alive_ = true;
  std::uint32_t life_ = 0;
  Instant true_base_;
  Instant local_base_;
  double rate_ = 1.0;
  bool stopped_ = false;
  std::chrono::milliseconds wall_ahead_{};
};

}  // namespace latchkey::testing
