// A process that holds a lock or waits for it, for tests that stop and kill such processes.
//
//     lock_holder CONNECT DIRECTORY TIMEOUT_MS [LOCK_DELAY_MS [at-once|timeout]]
//
// Says "queued" before it asks for the lock and "held TOKEN" when it has it. Then it answers lines:
// "state" with the lease's state, "release" with how that went.
#include <iostream>
#include <string>

#include "latchkey/mutex.hpp"

int main(int argc, char** argv) {
  using namespace latchkey;
  if (argc < 4 || argc > 6) return 2;
  SessionOptions options;
  options.timeout = std::chrono::milliseconds(std::stoi(argv[3]));
  if (argc == 6 && argv[5] == std::string("timeout")) options.after_death = AfterDeath::kTimeout;
  auto session = Session::open(argv[1], options, deadline_in(std::chrono::seconds(20)));
  if (!session) {
    std::cerr << session.error() << '\n';
    return 1;
  }
  std::cout << "queued" << std::endl;
  MutexOptions kind;
  if (argc >= 5) kind.lock_delay = std::chrono::milliseconds(std::stoi(argv[4]));
  auto lease = Mutex(*session, argv[2], kind).lock(Deadline::never());
  if (!lease) {
    std::cerr << lease.error() << '\n';
    return 1;
  }
  std::cout << "held " << lease->token().zxid() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "state") std::cout << lease->state() << std::endl;
    if (line == "release") {
      std::cout << (lease->release() == Released::kNow ? "released" : "over") << std::endl;
    }
  }
  return 0;
}
