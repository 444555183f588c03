// A process with a session that is to end with it, for tests that kill such processes.
//
//     bound_peer CONNECT TIMEOUT_MS [lies|forks|closes|hands-on|executes]
//     bound_peer CONNECT TIMEOUT_MS takes ID PASSWORD
//
// Says "session ID PASSWORD", the password in hexadecimal digits, and stays until its input ends.
// With "lies" it asks as a process would that began at another time; with "forks" it has a child
// that keeps the socket and stays as well; with "closes" it has three sessions and closes the last;
// with "hands-on" it connects, and a child that has the socket from it opens the session as its
// own; with "executes" it goes on as cat(1); with "takes" it takes up that session.
#include <unistd.h>

#include <iostream>
#include <string>

#include "base/process.hpp"
#include "support/hex.hpp"
#include "support/raw_client.hpp"

int main(int argc, char** argv) {
  using namespace latchkey;
  using test_support::RawClient;
  if (argc < 3) return 2;
  const std::string connect = argv[1];
  const int timeout_ms = std::stoi(argv[2]);
  const std::string manner = argc > 3 ? argv[3] : "";
  RawClient client(connect);
  if (!client.dial()) return 1;
  if (manner == "hands-on" && ::fork() != 0) {
    static_cast<void>(::pause());
    return 0;
  }
  const auto began = base::start_ticks();
  if (!began) return 1;
  const std::int32_t mark =
      base::process_mark(base::process_id(), *began + (manner == "lies" ? 1 : 0));
  wire::ConnectResponse earlier;
  if (manner == "takes" && argc == 6) {
    earlier.session_id = std::stoll(argv[4]);
    earlier.password = test_support::from_digits(argv[5]);
  }

  RawClient second(connect);
  RawClient third(connect);
  const auto session = client.greet(timeout_ms, earlier, 0, mark);
  if (!session) return 1;
  if (manner == "forks") static_cast<void>(::fork());
  if (manner == "closes" &&
      (!second.connect(timeout_ms, {}, 0, mark) || !third.connect(timeout_ms, {}, 0, mark) ||
       !third.call(wire::Op::kCloseSession, wire::Empty{}))) {
    return 1;
  }
  std::cout << "session " + std::to_string(session->session_id) + " " +
                   test_support::to_digits(session->password.value_or("")) + "\n"
            << std::flush;
  if (manner == "executes") ::execlp("cat", "cat", nullptr);
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}
