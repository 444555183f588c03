// Every host's crontab has the same line; one host runs the job, once a night.
//
//     0 3 * * *  latchkey_example_cron zk1:2181,zk2:2181 nightly $(date +%F) /usr/local/bin/report
//
// Prints what it did. Returns 0 if the job is done, here or elsewhere, or under way elsewhere.
#include <cstdlib>
#include <iostream>
#include <string>

#include "latchkey/mutex.hpp"

using namespace latchkey;
using namespace std::chrono_literals;

int run(Session& session, const std::string& home, const std::string& day, const char* command) {
  auto lease = Mutex(session, home + "/lock", {.reason = day}).try_lock();
  if (!lease && lease.error() == Code::kBusy) return std::cout << "busy elsewhere\n", 0;
  if (!lease) return std::cerr << lease.error() << '\n', 1;

  // The marker holds the last day that is done; days are written so that they sort. It is read
  // under the lock, so nobody can be between the job and its marker.
  const auto marker = session.get(home + "/done", deadline_in(10s));
  if (!marker && marker.error() != Code::kNoNode) return std::cerr << marker.error() << '\n', 1;
  if (marker && marker->data >= day) return std::cout << "done before\n", 0;

  if (const int status = std::system(command); status != 0) {
    return std::cerr << command << " failed; the next host to come tries again\n", 1;
  }

  // Together with a check that the lock is still ours: whoever has lost it must not say "done" for
  // a run that somebody else may be repeating.
  Multi mark;
  if (marker) {
    mark.parts.emplace_back(Set{home + "/done", day, marker->stat.version});
  } else {
    mark.parts.emplace_back(Create{home + "/done", day});
  }
  if (auto ours = lease->guard(mark); !ours) return std::cerr << ours.error() << '\n', 1;
  const auto outcome = session.call(mark, deadline_in(10s));
  if (!outcome) return std::cerr << outcome.error() << '\n', 1;
  if (!outcome->committed) return std::cerr << "the lock was lost: it may run twice\n", 1;
  return std::cout << "done now\n", 0;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: " << argv[0] << " CONNECT NAME DAY COMMAND\n";
    return 64;
  }
  auto session = Session::open(argv[1], {}, deadline_in(10s));
  if (!session) return std::cerr << session.error() << '\n', 1;
  const int result = run(*session, std::string("/cron/") + argv[2], argv[3], argv[4]);
  // A process that ends right now waits for the server's word; otherwise what it leaves in the
  // queue might stay there for a session's time-out.
  static_cast<void>(session->close(deadline_in(5s)));
  return result;
}
