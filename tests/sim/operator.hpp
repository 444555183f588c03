#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "latchkey/session.hpp"
#include "sim/stage.hpp"

namespace latchkey::sim {

/// Another hand on the service: it puts things into lock directories that are none of its business
/// (H37), changes and removes entries (H05, H34), removes directories (H40) and changes the size of
/// semaphores (H48). It is spared by the other faults. Thread safety: one thread at a time.
class Operator {
 public:
  explicit Operator(const Stage& stage);

  /// One deed, drawn from the world's generator.
  void meddle();
  /// Takes back what would be in the way for ever.
  void tidy_up();
  [[nodiscard]] bool is_done() const { return foreign_.empty() && changed_.empty(); }

 private:
  void open();
  /// Counts what has been done, if it has.
  [[nodiscard]] std::function<void(const Error*)> struck();
  void litter();
  void remove_directory();
  void resize(const Site& site, int size);
  /// Until it has worked.
  void take_away(const std::string& path);
  template <class Operation>
  void send(Operation operation, std::function<void(const Error*)> done);
  [[nodiscard]] const Site& any_site();

  Stage stage_;
  testing::Process& process_;
  std::optional<Session> session_;
  std::set<std::string> foreign_;  ///< What it has put somewhere.
  /// Semaphores that have or get another size than the plan says, by the number of the last change.
  std::map<std::string, std::uint64_t> changed_;
  std::uint64_t last_ = 0;
  bool is_tidying_ = false;
};

}  // namespace latchkey::sim
