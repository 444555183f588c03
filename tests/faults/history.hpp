#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/deadline.hpp"
#include "support/sockets.hpp"

namespace latchkey::faults {

/// What a line of a history says.
enum class What {
  kWant,      ///< Right before the lock is asked for. Number: its weight; text: how it is asked.
  kGranted,   ///< The outcome of a want. Number: the token.
  kFailed,    ///< The other outcome. Text: the code.
  kSilent,    ///< There was no outcome long after the deadline.
  kHolds,     ///< Proof of belief: the time was read first, then the lease said that it is held.
  kLost,      ///< The lease said that it is lost.
  kReleased,  ///< After release() has returned.
  kWrote,     ///< The fenced store took our token.
  kRefused,   ///< The fenced store has seen a newer token.
  kCounted,   ///< The service acknowledged this number in the ledger. Number: it; text: the token.
  kAccepted,  ///< In the store's own history: it took this token.
  kEnded,     ///< The process is at rest; nothing of it is open.
};

/// One line: who did what, in which operation on which lock, at what time since boot. Processes
/// have names of the form "w2.1": worker 2 after one restart.
///
///     8123456789 w2.1 17 mutex granted 4294967311 -
///
/// Thread safety: a value.
struct Event {
  std::int64_t at_ns = 0;
  std::string who;
  std::uint64_t operation = 0;
  std::string lock;
  What what = What::kWant;
  std::int64_t number = 0;
  std::string text = "-";

  friend bool operator==(const Event&, const Event&) = default;
};

[[nodiscard]] std::string_view name(What what);
[[nodiscard]] std::int64_t now_ns();

/// With its end of line; and back, without it. Nothing: not a line of a history.
[[nodiscard]] std::string to_line(const Event& event);
[[nodiscard]] std::optional<Event> from_line(std::string_view line);

/// Appends lines, each with one system call, so that a killed process leaves whole lines behind and
/// at most a torn last one.
///
///     HistoryWriter history(folder / "w2.1");
///     history.add({now_ns(), "w2.1", 17, "mutex", What::kWant, 1});
///
/// Thread safety: any thread. Throws std::system_error if the file cannot be opened or written.
class HistoryWriter {
 public:
  explicit HistoryWriter(const std::filesystem::path& file);
  void add(const Event& event) const;

 private:
  test_support::Fd file_;
};

/// Everything in the files of a folder, by time; lines of one file keep their order. A last line
/// without an end is left out. Throws std::runtime_error for a line that is none.
[[nodiscard]] std::vector<Event> read_histories(const std::filesystem::path& folder);

}  // namespace latchkey::faults
