// A test of one's own program without a server, without waiting and without luck: the service, the
// network and time are simulated, and every failure can be had again by its seed.
//
//     latchkey_example_simulated_test
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "latchkey/mutex.hpp"
#include "latchkey/run_while_held.hpp"
#include "latchkey/testing.hpp"

using namespace std::chrono_literals;

namespace {

/// The program under test: a biller that may run on many hosts and must never bill twice at once.
/// It is given its session, so that a test can give it a simulated one.
class Biller {
 public:
  Biller(latchkey::Session session, std::vector<std::string>& log, std::string name)
      : mutex_(std::move(session), "/locks/billing"), log_(log), name_(std::move(name)) {}

  /// Asynchronous, so that several can contend in a test's one thread.
  void bill() {
    mutex_.lock_async(latchkey::deadline_in(1min))
        .then([this](latchkey::Result<latchkey::Lease> lease) {
          if (!lease) {
            log_.push_back(name_ + " gave up");
            return;
          }
          lease_ = std::move(*lease);
          log_.push_back(name_ + " bills");
        });
  }
  void finish() { lease_->release(); }
  [[nodiscard]] bool may_bill() const {
    return lease_ && lease_->state() == latchkey::LeaseState::kHeld;
  }

 private:
  latchkey::Mutex mutex_;
  std::vector<std::string>& log_;
  std::string name_;
  std::optional<latchkey::Lease> lease_;
};

void check(bool condition, const char* what, std::uint64_t seed) {
  if (condition) return;
  std::cerr << "seed " << seed << ": " << what << '\n';
  std::exit(1);
}

/// One of two billers is cut off while it bills. The other takes over, and there is no moment at
/// which both may bill.
void one_is_cut_off(std::uint64_t seed) {
  latchkey::testing::Simulation simulation({.seed = seed, .followers = 2});
  std::vector<std::string> log;
  Biller ann(simulation.open("ann"), log, "ann");
  Biller bob(simulation.open("bob"), log, "bob");

  ann.bill();
  check(simulation.run_until([&] { return ann.may_bill(); }, 10s), "ann does not start", seed);
  bob.bill();
  simulation.run_for(1s);
  check(!bob.may_bill(), "bob does not wait", seed);

  simulation.isolate("ann");
  bool together = false;
  const bool taken_over = simulation.run_until(
      [&] {
        together = together || (ann.may_bill() && bob.may_bill());
        return bob.may_bill();
      },
      1min);

  check(taken_over, "bob does not take over", seed);
  check(!together, "both may bill", seed);
  check(log == std::vector<std::string>{"ann bills", "bob bills"}, "another story", seed);
}

}  // namespace

int main() {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) one_is_cut_off(seed);
  std::cout << "100 take-overs, each after some ten simulated seconds\n";
  return 0;
}
