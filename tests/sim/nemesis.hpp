#pragma once

#include <memory>
#include <vector>

#include "sim/client.hpp"
#include "sim/judge.hpp"
#include "sim/plan.hpp"
#include "testing/world.hpp"

namespace latchkey::sim {

/// Brings bad luck, one fault at a time, drawn from the world's generator; several may be under way
/// together. Thread safety: one thread at a time.
class Nemesis {
 public:
  using Clients = std::vector<std::unique_ptr<Client>>;
  /// `clients` grows: whoever is killed is replaced.
  Nemesis(testing::World& world, Judge& judge, const Plan& plan, Clients& clients);

  void start();
  /// No more faults; those under way are ended.
  void stop();

 private:
  void strike();
  void strike_client(testing::Fault fault, Client& client);
  void strike_network(testing::Fault fault, Client& client);
  void strike_server(testing::Fault fault);
  void strike_disk(testing::Fault fault);
  void bring_down(testing::Crash how);
  void replace(Client& client);
  /// Does `task` after a drawn time, unless the nemesis has been stopped by then.
  void after(Duration least, Duration most, std::function<void()> task);
  [[nodiscard]] Client* any_client();
  [[nodiscard]] Duration draw(Duration least, Duration most) {
    return world_.timeline().draw(least, most);
  }

  testing::World& world_;
  Judge& judge_;
  const Plan& plan_;
  Clients& clients_;
  bool stopped_ = false;
};

}  // namespace latchkey::sim
