#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace latchkey::test_support {

/// The data folder of a server that has not started yet, with nodes whose parents have seen any
/// number of creates: nobody has the time to make a billion of them. It is written in the server's
/// own format, as what the server would have stored on that way.
///
///     SeededData data;
///     data.create("/locks", 1);
///     data.create("/locks/seed", 1 << 30);
///     data.remove("/locks/seed");
///     data.save_for_apache(server.folder() / "data");
///     server.start();
///
/// Thread safety: one thread at a time.
class SeededData {
 public:
  /// `creates` is what the parent's counter will be behind it, the number of its next child.
  void create(const std::string& path, std::int32_t creates) { steps_.push_back({path, creates}); }
  void remove(const std::string& path) { steps_.push_back({path, kRemoved}); }

  /// A transaction log. The server wants -Dzookeeper.snapshot.trust.empty=true.
  void save_for_apache(const std::filesystem::path& folder) const;
  /// A journal, written by the code that reads it. Throws std::runtime_error if it cannot be.
  void save_for_embedded(const std::filesystem::path& folder) const;

 private:
  static constexpr std::int32_t kRemoved = -1;
  struct Step {
    std::string path;
    std::int32_t creates;  ///< Or kRemoved.
  };

  std::vector<Step> steps_;
};

}  // namespace latchkey::test_support
