#pragma once

#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "crash_history.hpp"
#include "support/raw_client.hpp"

namespace latchkey::test_support {

/// Kills a process at the nth thing that anybody does. Thread safety: any thread.
class Fuse {
 public:
  Fuse(pid_t victim, int length) : victim_(victim), left_(length) {}
  void burn() {
    if (left_.fetch_sub(1) == 1) ::kill(victim_, SIGKILL);
  }

 private:
  const pid_t victim_;
  std::atomic<int> left_;
};

/// A client among `crowd` that writes into a folder of its own, `/c<number>`, several requests at a
/// time, and looks at those of the others: it reads, and it watches. It remembers what it asked
/// for, what was answered and what it saw.
///
/// Every request changes its folder to a state that never was before: names and data hold the
/// number of the request.
///
/// Thread safety: one thread at a time.
class CrashClient {
 public:
  CrashClient(std::string endpoint, int number, int crowd, std::uint64_t seed);

  /// Makes the folder. False: the server does not do what it is asked.
  bool set_up();

  /// Works until the connection ends.
  void run(Fuse& fuse);

  /// What it saw of others' folders, by their numbers, since the last call.
  [[nodiscard]] std::multimap<int, History::Seen> take_seen();
  /// The newest zxid in any answer.
  [[nodiscard]] std::int64_t seen_zxid() const { return seen_zxid_; }
  /// Answers that a right server does not give.
  [[nodiscard]] const std::vector<std::string>& trouble() const { return trouble_; }

  /// After a crash, with what was seen of this client's folder: compares the folder with the
  /// history, attaches to the session again, and says what is wrong; nothing if all is well.
  [[nodiscard]] std::string come_back(const std::vector<History::Seen>& seen,
                                      std::int64_t seen_by_anybody);

 private:
  struct Pending {
    enum class Kind { kWrite, kMulti, kClose, kList, kMark, kOther } kind;
    std::int32_t xid = 0;
    int owner = 0;
  };

  [[nodiscard]] static std::string folder(int number) { return "/c" + std::to_string(number); }
  [[nodiscard]] std::string own(const std::string& name) const {
    return folder(number_) + "/" + name;
  }
  bool watch_neighbour();
  bool open_session();
  void add_write();
  /// `made` is the name it will have.
  void add_create(const std::string& name, wire::CreateMode mode, const std::string& made);
  void add_multi();
  void add_close();
  void add_read();
  bool receive_all(Fuse& fuse);
  void take_notice(const RawClient::Reply& notice);
  void take_reply(const Pending& pending, const RawClient::Reply& reply);
  void complain(std::string text) { trouble_.push_back(std::move(text)); }
  void see(int owner, History::Seen seen) { seen_.emplace(owner, std::move(seen)); }
  [[nodiscard]] std::optional<std::string> any_removable();

  [[nodiscard]] std::string check_sessions(const History::State& state);
  /// What the server has in the folder, with the stats of the nodes and, as "", its own.
  [[nodiscard]] std::optional<std::map<std::string, History::Node>> look(
      RawClient& reader, std::map<std::string, wire::WireStat>& stats) const;

  const std::string endpoint_;
  const int number_;
  const int crowd_;
  base::Random random_;
  RawClient client_;
  History history_;
  std::int64_t request_ = 0;
  std::deque<Pending> pending_;
  /// Those that were closed or may have been, and the newest, since the last settled state.
  std::vector<std::optional<wire::ConnectResponse>> sessions_;
  std::size_t closed_before_ = 0;  ///< Sessions before sessions_[0].
  std::map<std::string, std::int64_t> czxids_;
  std::multimap<int, History::Seen> seen_;
  std::map<int, std::size_t> changes_seen_;
  std::int64_t seen_zxid_ = 0;
  std::vector<std::string> trouble_;
};

}  // namespace latchkey::test_support
