#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "history.hpp"
#include "support/sockets.hpp"

namespace latchkey::faults {

/// The resource behind the locks, as docs/guarantees.md wants it: it remembers the largest token it
/// has seen for each lock and refuses smaller ones.
/// Thread safety: one thread at a time.
class FencedStore {
 public:
  /// kOff: it takes everything, to see whether anybody needs the check (docs/testing.md).
  enum class Check { kOn, kOff };

  explicit FencedStore(Check check = Check::kOn) : check_(check) {}

  /// Whether the token is as large as any before it.
  bool write(const std::string& lock, std::int64_t token) {
    std::int64_t& largest = largest_[lock];
    if (token < largest) return check_ == Check::kOff;
    largest = token;
    return true;
  }

 private:
  Check check_;
  std::map<std::string, std::int64_t> largest_;
};

/// A FencedStore behind a Unix socket, with a history of its own. It is a process's neighbour and
/// not a file with a lock, so that a stopped client holds up nobody.
///
///     StoreService service(folder / "store", folder / "histories" / "store", Check::kOn);
///
/// Thread safety: one thread at a time.
class StoreService {
 public:
  StoreService(const std::filesystem::path& socket, const std::filesystem::path& history,
               FencedStore::Check check);
  ~StoreService();
  StoreService(const StoreService&) = delete;
  StoreService& operator=(const StoreService&) = delete;

 private:
  void serve();
  /// False: the client has gone.
  bool answer(const test_support::Fd& client);

  HistoryWriter history_;
  FencedStore store_;
  test_support::Fd listener_;
  test_support::Fd stopping_;
  std::vector<test_support::Fd> clients_;
  std::thread thread_;
};

/// A client of the service. Thread safety: one thread at a time.
class StoreClient {
 public:
  /// Throws std::system_error if the service is not there.
  explicit StoreClient(const std::filesystem::path& socket);

  /// Whether the store took the token. The event says who, on what lock, under which token.
  [[nodiscard]] bool write(const Event& event);

 private:
  test_support::Fd socket_;
};

}  // namespace latchkey::faults
