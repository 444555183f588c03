#include "integration/mutex_fixture.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace latchkey::test_support {

Waiter::Waiter(const Lock& lock, Deadline deadline)
    : thread_([state = state_, lock, deadline](const std::stop_token& stop) {
        state->answer.emplace(lock.lock(deadline, stop));
        state->at = BootClock::now();
        state->answered = true;
      }) {}

Waiter::~Waiter() = default;

testing::AssertionResult Waiter::holds(Deadline deadline) {
  if (!eventually([&] { return has_answer(); }, deadline)) {
    return testing::AssertionFailure() << "still waiting";
  }
  return ok(answer());
}

void Section::enter(const Lease& lease) {
  if (inside_.fetch_add(1) != 0) ++overlaps_;
  if (last_.exchange(lease.token().zxid()) >= lease.token().zxid()) ++disorders_;
  ++holds_;
}

void Section::leave() { --inside_; }

Witness::Witness(Service& service)
    : service_(service), session_(open_session(service.connect_string(), patient())) {}

std::vector<std::string> Witness::queue(const std::string& directory) {
  // Behind a sync, because other servers of an ensemble may be ahead of ours.
  static_cast<void>(session_.sync(directory, soon()));
  auto list = session_.children(directory, soon());
  if (!list) {
    if (list.error() == Code::kNoNode) return {};
    throw std::runtime_error("queue: " + list.error().message());
  }
  std::sort(list->names.begin(), list->names.end(), [](const auto& a, const auto& b) {
    return a.substr(a.size() - std::min<std::size_t>(a.size(), 10)) <
           b.substr(b.size() - std::min<std::size_t>(b.size(), 10));
  });
  return list->names;
}

bool Witness::queue_reaches(const std::string& directory, std::size_t size, Deadline deadline) {
  return eventually([&] { return queue(directory).size() == size; }, deadline);
}

int Witness::watches_below(const std::string& path) {
  // One line with the path, then one with each session, indented.
  std::istringstream answer(service_.word("wchp"));
  int count = 0;
  bool below = false;
  for (std::string line; std::getline(answer, line);) {
    if (line.starts_with('/')) {
      below = line == path || line.starts_with(path + "/");
    } else if (below && line.starts_with('\t')) {
      ++count;
    }
  }
  return count;
}

bool Witness::is_watched(const std::string& node) {
  return eventually([&] {
    const auto stat = session_.exists(node, soon());
    if (!stat || !*stat) return false;
    std::ostringstream owner;
    owner << "\t0x" << std::hex << (*stat)->ephemeral_owner;
    // One line with the path, then one with each session, indented.
    std::istringstream answer(service_.word("wchp"));
    bool here = false;
    for (std::string line; std::getline(answer, line);) {
      if (line.starts_with('/')) {
        here = line == node;
      } else if (here && line.starts_with('\t') && line != owner.str()) {
        return true;
      }
    }
    return false;
  });
}

testing::AssertionResult Witness::is_quiet(const std::string& directory) {
  std::size_t nodes = 0;
  int watches = 0;
  const bool quiet = eventually([&] {
    nodes = queue(directory).size();
    watches = watches_below(directory);
    return nodes == 0 && watches == 0;
  });
  if (quiet) return testing::AssertionSuccess();
  return testing::AssertionFailure() << nodes << " nodes and " << watches << " watches are left";
}

std::vector<wire::Op> requests(FaultProxy& proxy) {
  std::vector<wire::Op> ops;
  for (const TrafficRecord& record : proxy.log().records()) {
    const bool upkeep = record.op == wire::Op::kCreateSession || record.op == wire::Op::kPing ||
                        (record.op == wire::Op::kSync && record.path == "/");
    if (record.direction == Direction::kToServer && !upkeep) ops.push_back(record.op);
  }
  return ops;
}

std::size_t count(FaultProxy& proxy, wire::Op op) { return proxy.log().count(requests_of(op)); }

Lease take(const Session& session, const std::string& directory, MutexOptions options) {
  auto lease = Mutex(session, directory, std::move(options)).lock(soon());
  if (!lease) throw std::runtime_error("take: " + lease.error().message());
  return std::move(*lease);
}

INSTANTIATE_TEST_SUITE_P(Standalone, MutexTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, MutexTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, MutexTest, testing::Values(ServiceKind::kEmbedded));
INSTANTIATE_TEST_SUITE_P(Standalone, LeaseTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, LeaseTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, LeaseTest, testing::Values(ServiceKind::kEmbedded));

}  // namespace latchkey::test_support
