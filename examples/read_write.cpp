// Many readers, one writer: a price list that is read all the time and changed now and then. The
// writer publishes a new list, then goes on as a reader to check what it has published, and no
// other writer gets in between.
//
//     latchkey_example_read_write read  [CONNECT]
//     latchkey_example_read_write write TEXT [CONNECT]
#include <iostream>
#include <string>

#include "latchkey/rw_lock.hpp"

using namespace latchkey;
using namespace std::chrono_literals;

namespace {

constexpr const char* kList = "/prices/list";

int fail(const Error& error) {
  std::cerr << error << '\n';
  return 1;
}

int read_list(Session& session, const RwLock& lock) {
  auto reading = lock.read().lock(deadline_in(10s));
  if (!reading) return fail(reading.error());
  auto list = session.get(kList, deadline_in(5s));
  if (!list && list.error() != Code::kNoNode) return fail(list.error());
  std::cout << (list ? list->data : "(empty)") << '\n';
  return 0;
}

int write_list(Session& session, const RwLock& lock, const std::string& text) {
  auto writing = lock.write().lock(deadline_in(10s));
  if (!writing) return fail(writing.error());
  static_cast<void>(session.create("/prices", "", {}, deadline_in(5s)));
  static_cast<void>(session.create(kList, "", {}, deadline_in(5s)));

  // Refused by the service as a whole, should the lock have been lost by then.
  Multi publish{.parts = {Set{kList, text}}};
  if (auto ours = writing->guard(publish); !ours) return fail(ours.error());
  auto published = session.call(publish, deadline_in(5s));
  if (!published) return fail(published.error());
  if (!published->committed) return fail(published->parts.front().error());

  auto reading = lock.downgrade(std::move(*writing), deadline_in(10s));
  if (!reading) return fail(reading.error());
  auto seen = session.get(kList, deadline_in(5s));
  if (!seen) return fail(seen.error());
  std::cout << "published: " << seen->data << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool writes = what == "write" && argc > 2;
  if (!writes && what != "read") {
    std::cerr << "usage: " << argv[0] << " read [CONNECT] | write TEXT [CONNECT]\n";
    return 64;
  }
  const int connect = writes ? 3 : 2;
  auto session =
      Session::open(argc > connect ? argv[connect] : "127.0.0.1:2181", {}, deadline_in(5s));
  if (!session) return fail(session.error());
  const RwLock lock(*session, "/locks/prices");
  return writes ? write_list(*session, lock, argv[2]) : read_list(*session, lock);
}
