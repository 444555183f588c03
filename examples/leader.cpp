// One of several processes works on a store, and another takes over when it dies, hangs or is cut
// off. The store is a file that refuses whoever has been overtaken.
//
//     latchkey_example_leader zk1:2181,zk2:2181 /schedulers /var/lib/store node-7
//
// Start it twice; kill -9 or kill -STOP the one that leads. It ends when its standard input does.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <latch>
#include <limits>
#include <mutex>
#include <string>
#include <syncstream>
#include <utility>

#include "latchkey/election.hpp"

using namespace latchkey;
using namespace std::chrono_literals;

/// A value with the largest token that has ever written it. Both change together or not at all, so
/// an older token is refused for ever, whatever its owner believes.
class Store {
 public:
  explicit Store(std::string path) : path_(std::move(path)) {}

  /// False: somebody newer has been here. The counter goes up by one otherwise.
  bool count_up(Token token) {
    const int lock = ::open((path_ + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    const bool written = lock >= 0 && ::flock(lock, LOCK_EX) == 0 && replace(token);
    if (lock >= 0) ::close(lock);
    return written;
  }

 private:
  bool replace(Token token) {
    std::int64_t newest = 0;
    long count = 0;
    std::ifstream(path_) >> newest >> count;
    if (token.zxid() < newest) return false;
    const std::string text = std::to_string(token.zxid()) + ' ' + std::to_string(count + 1) + '\n';
    const std::string draft = path_ + ".new";
    const int file = ::open(draft.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (file < 0) return false;
    const bool complete =
        ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        ::fsync(file) == 0;
    ::close(file);
    return complete && ::rename(draft.c_str(), path_.c_str()) == 0;
  }

  const std::string path_;
};

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: " << argv[0] << " CONNECT DIRECTORY STORE NAME\n";
    return 64;
  }
  SessionOptions options;
  options.timeout = 6s;
  auto session = Session::open(argv[1], options, deadline_in(10s));
  if (!session) return std::cerr << session.error() << '\n', 1;

  Store store(argv[3]);
  const auto say = [](const auto&... words) {
    ((std::osyncstream(std::cout) << ... << words) << std::endl);
  };
  std::latch closed(1);
  const auto lead = [&](const ElectionNews& news) {
    if (news.state == ElectionState::kFailed) {
      // Whoever watches over us starts us again, with a new session.
      say("failed: ", *news.error);
      std::_Exit(1);
    }
    if (news.state == ElectionState::kClosed) return closed.count_down();
    if (news.state == ElectionState::kQueued) return say("queued");
    say("leading ", *news.token);
    std::mutex mutex;
    std::condition_variable_any nap;
    for (bool said = false; !news.over.stop_requested();) {
      // We may have been stopped right before this line, for an hour.
      if (!store.count_up(*news.token)) return say("refused ", *news.token);
      if (!std::exchange(said, true)) say("wrote ", *news.token);
      std::unique_lock lock(mutex);
      nap.wait_for(lock, news.over, 20ms, [] { return false; });
    }
  };
  Election election(*session, argv[2], {.id = argv[4], .on_change = lead});

  std::cin.ignore(std::numeric_limits<std::streamsize>::max());  // Until it is closed.
  election.close();
  closed.wait();
  static_cast<void>(session->close(deadline_in(5s)));  // So that the next one leads at once.
}
