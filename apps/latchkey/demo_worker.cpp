#include <poll.h>

#include <iostream>

#include "demo.hpp"
#include "latchkey/mutex.hpp"

namespace latchkey::app {
namespace {

void say(const std::string& what) {
  std::cout << what << ' ' << BootClock::now().time_since_epoch().count() << std::flush;
}

}  // namespace

int run_demo_worker(const DemoWorkerOptions& options) {
  using std::chrono::seconds;
  auto session =
      Session::open(options.connect, {.timeout = kSessionTimeout}, deadline_in(seconds(10)));
  if (!session) return std::cerr << options.name << ": " << session.error() << '\n', 1;
  Mutex mutex(*session, options.directory, {.reason = options.name});

  say("queued");
  std::cout << std::endl;
  auto lease = mutex.lock(deadline_in(seconds(60)));
  if (!lease) return std::cerr << options.name << ": " << lease.error() << '\n', 1;

  say("holding");
  std::cout << ' ' << lease->token() << ' ' << lease->node() << std::endl;
  ::poll(nullptr, 0, static_cast<int>(options.hold.count()));  // The work that only one may do.
  say("released");
  std::cout << std::endl;
  lease->release();
  return 0;
}

}  // namespace latchkey::app
