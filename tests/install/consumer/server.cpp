#include "latchkey/server.hpp"

#include <chrono>
#include <iostream>

#include "latchkey/mutex.hpp"
#include "latchkey/session.hpp"

// Both libraries in one program: a lock on a server of one's own, and an error that both know.
int main() {
  using namespace std::chrono_literals;
  auto server = latchkey::Server::start();
  if (!server) {
    std::cerr << server.error() << '\n';
    return 1;
  }
  auto session = latchkey::Session::open(server->connect_string(), {}, latchkey::deadline_in(60s));
  if (!session) {
    std::cerr << session.error() << '\n';
    return 1;
  }
  latchkey::Mutex mutex(*session, "/locks/a");
  const auto lease = mutex.lock(latchkey::deadline_in(60s));
  if (!lease) {
    std::cerr << lease.error() << '\n';
    return 1;
  }
  const std::error_code none = server->expire_session(1).error();
  if (none != latchkey::Code::kNoNode || &none.category() != &latchkey::category()) {
    std::cerr << "the two libraries have a category each\n";
    return 1;
  }
  std::cout << "held on " << server->connect_string() << ", token " << lease->token() << '\n';
  return 0;
}
