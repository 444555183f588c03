#include <iostream>

#include "latchkey/server.hpp"

// A program with a server and other people's clients.
int main() {
  auto server = latchkey::Server::start_in_temp_folder();
  if (!server) {
    std::cerr << server.error() << '\n';
    return 1;
  }
  std::cout << server->connect_string() << '\n';
  return server->stop() ? 0 : 1;
}
