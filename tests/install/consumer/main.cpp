#include <chrono>
#include <iostream>

#include "latchkey/mutex.hpp"
#include "latchkey/session.hpp"

// Needs no server: it is enough that the library answers.
int main() {
  using namespace std::chrono_literals;
  const auto session = latchkey::Session::open("no:such:port", {}, latchkey::deadline_in(5s));
  if (session || session.error() != latchkey::Code::kInvalidConnectString) {
    std::cerr << "a wrong connect string was accepted\n";
    return 1;
  }
  std::cout << session.error() << '\n';
  return 0;
}
