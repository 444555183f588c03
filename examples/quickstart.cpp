// Waits for one lock and says so. It looks for a service at 127.0.0.1:2181, such as
// `latchkey serve --memory`:
//
//     latchkey_example_quickstart
#include <iostream>

#include "latchkey/mutex.hpp"

using namespace latchkey;
using namespace std::chrono_literals;

int main() {
  auto session = Session::open("127.0.0.1:2181", {}, deadline_in(5s));
  if (!session) return std::cerr << session.error() << '\n', 1;
  Mutex mutex(*session, "/locks/invoices");
  auto lease = mutex.lock(deadline_in(30s));
  if (!lease) return std::cerr << lease.error() << '\n', 1;
  std::cout << "holding, token " << lease->token() << '\n';  // Let the store refuse older ones.
}  // Released here; a crash releases it too, after the session's time-out.
