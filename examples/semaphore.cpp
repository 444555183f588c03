// Takes some of eight GPUs, all of them or none, and keeps them until enter is pressed.
//
//     latchkey_example_semaphore [HOW_MANY [CONNECT]]
#include "latchkey/semaphore.hpp"

#include <cstdlib>
#include <iostream>

using namespace latchkey;
using namespace std::chrono_literals;

int main(int argc, char** argv) {
  const int wanted = argc > 1 ? std::atoi(argv[1]) : 2;
  if (wanted < 1 || argc > 3) {
    std::cerr << "usage: " << argv[0] << " [HOW_MANY [CONNECT]]\n";
    return 64;
  }
  auto session = Session::open(argc > 2 ? argv[2] : "127.0.0.1:2181", {}, deadline_in(5s));
  if (!session) return std::cerr << session.error() << '\n', 1;
  // Whoever comes first stores the size; another one is refused, so no two programs disagree.
  Semaphore gpus(*session, "/pools/gpu", {.size = 8, .reason = "training run"});
  auto lease = gpus.permits(wanted).lock(deadline_in(1min));
  if (!lease) return std::cerr << lease.error() << '\n', 1;
  std::cout << "holding " << lease->nodes().size() << " permits:\n";
  for (const std::string& node : lease->nodes()) std::cout << "  " << node << '\n';
  std::stop_callback on_loss(lease->lost(), [] { std::cerr << "lost: stop working\n"; });
  std::cout << "press enter to give them back\n";
  std::cin.get();
}  // Released here; a crash releases them too, after the session's time-out.
