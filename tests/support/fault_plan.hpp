#pragma once

#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wire/messages.hpp"

namespace latchkey::test_support {

inline constexpr int kForever = std::numeric_limits<int>::max();

/// Which messages a fault strikes: from the nth match after arming on, `times` times.
///
///     proxy.cut_before_request(Op::kCreate2);              // The next one.
///     proxy.cut_before_reply({Op::kDelete, 3});            // The third from now.
///     proxy.delay_reply({Op::kSync, 1, kForever}, 500ms);  // Every one.
///     proxy.cut_after_request(Match::any(5));              // The fifth of whatever comes.
struct Match {
  Match(wire::Op wanted, int from_nth = 1, int how_often = 1)
      : op(wanted), nth(from_nth), times(how_often) {}

  /// Any op, handshakes and pings included.
  static Match any(int from_nth = 1, int how_often = 1) {
    Match match(wire::Op::kNotification, from_nth, how_often);
    match.op.reset();
    return match;
  }

  /// Also asks for this text in the path of the request or watch event.
  [[nodiscard]] Match on(std::string part) const {
    Match match = *this;
    match.path_part = std::move(part);
    return match;
  }

  std::optional<wire::Op> op;
  int nth = 1;
  int times = 1;
  std::string path_part;
};

enum class FaultKind {
  kCutBeforeRequest,
  kCutAfterRequest,
  kDelayRequest,
  kCutBeforeReply,
  kCutAfterReply,
  kDelayReply,
};

struct Fault {
  int id = 0;
  FaultKind kind = FaultKind::kCutBeforeRequest;
  Match match = Match::any();
  std::chrono::milliseconds delay{0};  ///< milliseconds::max(): until release().
};

/// The armed faults of one proxy. Thread safety: one thread at a time.
class FaultPlan {
 public:
  void arm(Fault fault) { armed_.push_back({std::move(fault), 0, 0}); }
  void disarm(int id);
  void disarm_all() { armed_.clear(); }

  /// Counts the message with every fault of that side, and returns the one that strikes. If two
  /// are due at once, the one armed first strikes and the other is due at the next match.
  [[nodiscard]] std::optional<Fault> strike_request(wire::Op op, const std::string& path);
  [[nodiscard]] std::optional<Fault> strike_reply(wire::Op op, const std::string& path);

 private:
  struct Armed {
    Fault fault;
    int seen = 0;
    int struck = 0;
  };
  enum class Side { kRequest, kReply };

  static Side side_of(FaultKind kind);
  std::optional<Fault> strike(Side side, wire::Op op, const std::string& path);

  std::vector<Armed> armed_;
};

}  // namespace latchkey::test_support
