#include "interop/turns.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>

#include "interop/section.hpp"
#include "latchkey/election.hpp"
#include "latchkey/mutex.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/semaphore.hpp"
#include "support/eventually.hpp"

namespace latchkey::test_support {
namespace {

using namespace std::chrono_literals;

void visit(Visitor& visitor, const std::string& node) {
  visitor.enter(node);
  pause_between_looks();
  visitor.leave(node);
}

/// The news of a candidate, for a thread that waits for them.
struct News {
  std::mutex mutex;
  std::condition_variable_any came;
  std::deque<ElectionNews> news;
};

/// The node of our term. Throws if somebody else leads.
std::string node_of_term(Session session, const std::string& path, Token token) {
  const auto now = leader(session, path, deadline_in(20s));
  if (!now) throw std::runtime_error(now.error().message());
  if (!*now || (*now)->token != token) throw std::runtime_error("we lead, and the server says no");
  return (*now)->node;
}

/// Leads for a moment and resigns, again and again.
int lead_in_turns(const Session& session, const std::string& path, const std::string& who,
                  Visitor& visitor, const std::stop_token& stop) {
  const auto told = std::make_shared<News>();
  Election election(session, path,
                    {.id = who,
                     .on_change =
                         [told](const ElectionNews& news) {
                           const std::lock_guard lock(told->mutex);
                           told->news.push_back(news);
                           told->came.notify_all();
                         },
                     .min_pause = 1ms,
                     .max_pause = 5ms});
  for (int terms = 0;;) {
    std::unique_lock lock(told->mutex);
    if (!told->came.wait(lock, stop, [&] { return !told->news.empty(); })) return terms;
    const ElectionNews news = told->news.front();
    told->news.pop_front();
    lock.unlock();
    if (news.state == ElectionState::kFailed) throw std::runtime_error(news.error->message());
    if (news.state != ElectionState::kLeading) continue;
    visit(visitor, node_of_term(session, path, *news.token));
    ++terms;
    election.resign();
  }
}

}  // namespace

Lock lock_of(const Session& session, const std::vector<std::string>& wish) {
  const std::string& kind = wish.at(0);
  const std::string& path = wish.at(1);
  if (kind == "mutex") return Mutex(session, path);
  if (kind == "read") return RwLock(session, path).read();
  if (kind == "write") return RwLock(session, path).write();
  if (kind == "semaphore") {
    return Semaphore(session, path, {.size = std::stoi(wish.at(2))}).permits(std::stoi(wish.at(3)));
  }
  throw std::runtime_error("what is " + kind + "?");
}

int take_turns(const Session& session, const std::string& folder, const std::string& who,
               const std::vector<std::string>& wish, const std::stop_token& stop) {
  const std::string& kind = wish.at(0);
  const int most = kind == "semaphore" ? std::stoi(wish.at(2)) : 1;
  Visitor visitor(folder, kind == "mutex" ? "write" : kind, who, most);
  if (kind == "latch") return lead_in_turns(session, wish.at(1), who, visitor, stop);
  const Lock lock = lock_of(session, wish);
  for (int holds = 0;; ++holds) {
    auto lease = lock.lock(deadline_in(60s), stop);
    if (!lease && stop.stop_requested()) return holds;
    if (!lease) throw std::runtime_error(lease.error().message());
    visit(visitor, lease->node());
  }
}

}  // namespace latchkey::test_support
