#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"

namespace latchkey::faults {

/// What is served by whom.
enum class ServiceKind { kEnsemble, kEmbedded, kStandalone };

[[nodiscard]] std::string_view name(ServiceKind kind);

/// What can be done to a client or to its link. "Long" is past the session's time-out.
enum class ClientFault {
  kKill,
  kStopShort,
  kStopLong,
  kCut,              ///< Connections end in order.
  kReset,            ///< Connections are reset, and new ones refused for a while.
  kDelay,            ///< Every message waits.
  kDropRequests,     ///< The server never sees them, and the connection ends.
  kDropReplies,      ///< The server has carried them out, and the connection ends.
  kSilenceToServer,  ///< One way silent, TCP stays up.
  kSilenceToClient,
  kSilenceLong,  ///< Both ways.
  kLinkDown,     ///< Below TCP: the interface is down. This and the next need namespaces.
  kLinkFlaps,    ///< Down and up again many times.
  kPacketLoss,   ///< A third of all packets is lost, the others are late.
};

/// What can be done to the service.
enum class ServerFault {
  kKill,            ///< And started again. Of an ensemble, a follower.
  kStopShort,       ///< One server.
  kStopLong,        ///< One server, past the sessions' time-out.
  kKillLeader,      ///< This and the next three need an ensemble.
  kStopLeader,      ///< Past the sessions' time-out.
  kCutFollower,     ///< From its leader, while it goes on serving reads.
  kRollingRestart,  ///< One server after the other.
  kSyncError,       ///< One fdatasync fails. This and the next two need our own server.
  kDiskFull,        ///< Every write to the disk fails.
  kSlowDisk,        ///< Every fdatasync takes long.
};

[[nodiscard]] std::string_view name(ClientFault fault);
[[nodiscard]] std::string_view name(ServerFault fault);

/// What this machine lets us do to links.
struct Means {
  bool namespaces = false;
  bool packet_loss = false;
};

[[nodiscard]] std::vector<ClientFault> client_faults(const Means& means);
[[nodiscard]] std::vector<ServerFault> server_faults(ServiceKind kind);
/// Those after which every process of the service is still the same.
[[nodiscard]] std::vector<ServerFault> sparing_faults(ServiceKind kind);
/// Nothing: there is no such fault.
[[nodiscard]] std::optional<ServerFault> server_fault_named(std::string_view text);

/// What a round was to strike with and has not, by name. `only`: no other fault of a server.
/// `struck`: how often each did.
[[nodiscard]] std::vector<std::string> not_struck(ServiceKind kind, const Means& means,
                                                  std::optional<ServerFault> only,
                                                  const std::map<std::string, int>& struck);

/// Has a round been struck as it was to be: on both sides, and by the only fault of a server if
/// there is but one? Otherwise what is missing, for people.
[[nodiscard]] std::string missing(ServiceKind kind, const Means& means,
                                  std::optional<ServerFault> only,
                                  const std::map<std::string, int>& struck);

/// Deals each of its cards once, in an order drawn from the seed, and then again: a short run sees
/// many kinds, a long one all of them equally often.
///
///     Deck<ServerFault> deck(server_faults(kind), random);
///     strike(deck.next());
///
/// Thread safety: one thread at a time.
template <class Card>
class Deck {
 public:
  Deck(std::vector<Card> cards, base::Random& random) : cards_(std::move(cards)), random_(random) {}

  Card next() {
    if (left_ == 0) left_ = cards_.size();
    const std::size_t drawn = random_.below(left_);
    std::swap(cards_[drawn], cards_[--left_]);
    return cards_[left_];
  }

 private:
  std::vector<Card> cards_;
  std::size_t left_ = 0;
  base::Random& random_;
};

/// How long a fault of this kind lasts, the session's time-out being what it is.
[[nodiscard]] std::chrono::milliseconds length_of(ClientFault fault,
                                                  std::chrono::milliseconds timeout,
                                                  base::Random& random);
[[nodiscard]] std::chrono::milliseconds length_of(ServerFault fault,
                                                  std::chrono::milliseconds timeout,
                                                  base::Random& random);

}  // namespace latchkey::faults
