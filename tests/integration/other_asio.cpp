// Compiled with ASIO_DISABLE_EPOLL, which the library is not: its io_context is another one.
#include <iostream>

#include "latchkey/asio.hpp"

int main() {
  asio::io_context context;
  const auto session = latchkey::start(context, "127.0.0.1:2181");
  if (session) {
    std::cout << "taken\n";
    return 1;
  }
  std::cout << session.error() << '\n';
  return session.error() == latchkey::Code::kInvalidOption ? 0 : 1;
}
