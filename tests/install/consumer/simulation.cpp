#include <chrono>
#include <iostream>

#include "latchkey/mutex.hpp"
#include "latchkey/testing.hpp"

using namespace std::chrono_literals;

/// Half a minute in the life of a lock, without a server and without waiting.
int main() {
  latchkey::testing::Simulation simulation;
  latchkey::Session ann = simulation.open("ann");
  latchkey::Session bob = simulation.open("bob");
  auto lease = latchkey::Mutex(ann, "/locks/a").lock(latchkey::deadline_in(5s));
  if (!lease) {
    std::cerr << lease.error() << '\n';
    return 1;
  }
  simulation.pause("ann", 30s);
  auto next = latchkey::Mutex(bob, "/locks/a").lock(latchkey::deadline_in(30s));
  if (!next || lease->state() != latchkey::LeaseState::kLost) {
    std::cerr << "the lock did not pass on\n";
    return 1;
  }
  return 0;
}
