#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/client.hpp"
#include "sim/operator.hpp"
#include "sim/stage.hpp"

namespace latchkey::sim {

/// Brings bad luck, one fault at a time, drawn from the world's generator; several may be under way
/// together. Thread safety: one thread at a time.
class Nemesis {
 public:
  using Clients = std::vector<std::unique_ptr<Client>>;
  /// `clients` grows: whoever is killed is replaced.
  Nemesis(const Stage& stage, Clients& clients);

  void start();
  /// No more faults; those under way are ended.
  void stop();
  /// Has it taken back whatever nobody else could?
  [[nodiscard]] bool is_done() const { return !operator_ || operator_->is_done(); }

 private:
  void go_on();
  void start_rarities();
  void regrant(Client& client);
  void strike();
  void strike_rarely();
  void age();
  void strike_client(testing::Fault fault, Client& client);
  void strike_network(testing::Fault fault, Client& client);
  void strike_server(testing::Fault fault);
  void strike_disk(testing::Fault fault);
  /// For no longer than `most`.
  void lag_all();
  void bring_down(testing::Crash how, Duration most);
  void expire(std::int64_t session);
  void replace(Client& client);
  /// Does `task` after a drawn time, unless the nemesis has been stopped by then.
  void after(Duration least, Duration most, std::function<void()> task);
  [[nodiscard]] Client* any_client();
  [[nodiscard]] Duration draw(Duration least, Duration most) {
    return world_.timeline().draw(least, most);
  }

  const Stage stage_;
  testing::World& world_;
  Judge& judge_;
  const Plan& plan_;
  Clients& clients_;
  std::optional<Operator> operator_;
  bool stopped_ = false;
};

}  // namespace latchkey::sim
