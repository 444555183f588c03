#include "interop/arrival_order.hpp"

#include <map>
#include <set>

namespace latchkey::test_support {
namespace {

int number_of(const std::string& node) { return std::stoi(node.substr(node.size() - 10)); }

bool is_reader(const std::string& node) { return node.find("__READ__") != std::string::npos; }

/// A semaphore as its events tell it.
class Permits {
 public:
  explicit Permits(std::size_t size) : size_(size) {}

  testing::AssertionResult see(const std::string& what, const std::string& node) {
    const bool made = what == "created";
    if (!made && what != "deleted") return testing::AssertionSuccess();
    if (node.find("/locks/") != std::string::npos) {
      made ? queue_.insert_or_assign(number_of(node), node).second : queue_.erase(number_of(node));
    } else if (node.find("/leases/") != std::string::npos) {
      if (!made) leases_.erase(node);
      if (made) return take(node);
    }
    return testing::AssertionSuccess();
  }
  /// The entries whose turn it was, once for each lease that was made in it.
  [[nodiscard]] const std::vector<std::string>& turns() const { return turns_; }

 private:
  testing::AssertionResult take(const std::string& lease) {
    if (queue_.empty()) return testing::AssertionFailure() << lease << " came without queueing";
    if (leases_.size() > size_) {
      return testing::AssertionFailure() << lease << " came before the one ahead had its permit";
    }
    leases_.insert(lease);
    turns_.push_back(queue_.begin()->second);
    return testing::AssertionSuccess();
  }

  const std::size_t size_;
  std::map<int, std::string> queue_;  ///< By number: the first is the head.
  std::set<std::string> leases_;
  std::vector<std::string> turns_;
};

}  // namespace

testing::AssertionResult in_order_of_arrival(const std::vector<std::string>& nodes) {
  if (nodes.empty()) return testing::AssertionFailure() << "nobody came";
  for (auto later = nodes.begin(); later != nodes.end(); ++later) {
    for (auto earlier = nodes.begin(); earlier != later; ++earlier) {
      if (is_reader(*earlier) && is_reader(*later)) continue;
      if (number_of(*earlier) < number_of(*later)) continue;
      return testing::AssertionFailure() << *earlier << " was served before " << *later;
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult permits_in_order_of_arrival(const std::vector<std::string>& events,
                                                     std::size_t size) {
  Permits permits(size);
  for (const std::string& event : events) {
    const std::size_t space = event.find(" /");
    if (space == std::string::npos) return testing::AssertionFailure() << "what is " << event;
    if (auto seen = permits.see(event.substr(0, space), event.substr(space + 1)); !seen)
      return seen;
  }
  return in_order_of_arrival(permits.turns());
}

}  // namespace latchkey::test_support
