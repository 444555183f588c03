#include "strike.hpp"

namespace latchkey::faults {

namespace {

using std::chrono::milliseconds;

milliseconds between(milliseconds from, milliseconds to, base::Random& random) {
  return from + milliseconds(random.below(static_cast<std::uint64_t>((to - from).count()) + 1));
}

milliseconds a_short_while(milliseconds timeout, base::Random& random) {
  return between(milliseconds(20), timeout / 2, random);
}

milliseconds past(milliseconds timeout, base::Random& random) {
  return between(timeout * 5 / 4, timeout * 2, random);
}

}  // namespace

std::string_view name(ServiceKind kind) {
  switch (kind) {
    case ServiceKind::kEnsemble: return "ensemble";
    case ServiceKind::kEmbedded: return "embedded";
    case ServiceKind::kStandalone: return "standalone";
  }
  return "unknown";
}

std::string_view name(ClientFault fault) {
  switch (fault) {
    case ClientFault::kKill: return "kill-client";
    case ClientFault::kStopShort: return "stop-client";
    case ClientFault::kStopLong: return "stop-client-long";
    case ClientFault::kCut: return "cut";
    case ClientFault::kReset: return "reset";
    case ClientFault::kDelay: return "delay";
    case ClientFault::kDropRequests: return "drop-requests";
    case ClientFault::kDropReplies: return "drop-replies";
    case ClientFault::kSilenceToServer: return "silence-to-server";
    case ClientFault::kSilenceToClient: return "silence-to-client";
    case ClientFault::kSilenceLong: return "silence-long";
    case ClientFault::kLinkDown: return "link-down";
    case ClientFault::kLinkFlaps: return "link-flaps";
    case ClientFault::kPacketLoss: return "packet-loss";
  }
  return "unknown";
}

std::string_view name(ServerFault fault) {
  switch (fault) {
    case ServerFault::kKill: return "kill-server";
    case ServerFault::kStopShort: return "stop-server";
    case ServerFault::kStopLong: return "stop-server-long";
    case ServerFault::kKillLeader: return "kill-leader";
    case ServerFault::kStopLeader: return "stop-leader-long";
    case ServerFault::kCutFollower: return "cut-follower";
    case ServerFault::kRollingRestart: return "rolling-restart";
    case ServerFault::kSyncError: return "disk-sync-error";
    case ServerFault::kDiskFull: return "disk-full";
    case ServerFault::kSlowDisk: return "disk-slow";
  }
  return "unknown";
}

std::vector<ClientFault> client_faults(const Means& means) {
  std::vector<ClientFault> faults;
  for (int fault = 0; fault <= static_cast<int>(ClientFault::kPacketLoss); ++fault) {
    const auto one = static_cast<ClientFault>(fault);
    if (one >= ClientFault::kLinkDown && !means.namespaces) continue;
    if (one == ClientFault::kPacketLoss && !means.packet_loss) continue;
    faults.push_back(one);
  }
  return faults;
}

std::vector<ServerFault> server_faults(ServiceKind kind) {
  std::vector<ServerFault> faults = {ServerFault::kKill, ServerFault::kStopShort,
                                     ServerFault::kStopLong};
  if (kind == ServiceKind::kEnsemble) {
    faults.insert(faults.end(), {ServerFault::kKillLeader, ServerFault::kStopLeader,
                                 ServerFault::kCutFollower, ServerFault::kRollingRestart});
  }
  if (kind == ServiceKind::kEmbedded) {
    faults.insert(faults.end(),
                  {ServerFault::kSyncError, ServerFault::kDiskFull, ServerFault::kSlowDisk});
  }
  return faults;
}

std::vector<ServerFault> sparing_faults(ServiceKind kind) {
  std::vector<ServerFault> faults = server_faults(kind);
  std::erase_if(faults, [](ServerFault fault) {
    return fault != ServerFault::kStopShort && fault != ServerFault::kStopLong &&
           fault != ServerFault::kStopLeader && fault != ServerFault::kCutFollower &&
           fault != ServerFault::kSlowDisk;
  });
  return faults;
}

std::optional<ServerFault> server_fault_named(std::string_view text) {
  for (int fault = 0; fault <= static_cast<int>(ServerFault::kSlowDisk); ++fault) {
    const auto one = static_cast<ServerFault>(fault);
    if (name(one) == text) return one;
  }
  return std::nullopt;
}

milliseconds length_of(ClientFault fault, milliseconds timeout, base::Random& random) {
  switch (fault) {
    case ClientFault::kStopLong:
    case ClientFault::kSilenceLong: return past(timeout, random);
    case ClientFault::kSilenceToServer:
    case ClientFault::kSilenceToClient:
    case ClientFault::kLinkDown:
      return random.below(2) == 0 ? past(timeout, random) : a_short_while(timeout, random);
    default: return a_short_while(timeout, random);
  }
}

milliseconds length_of(ServerFault fault, milliseconds timeout, base::Random& random) {
  switch (fault) {
    case ServerFault::kStopLong:
    case ServerFault::kStopLeader:
    case ServerFault::kSlowDisk: return past(timeout, random);
    case ServerFault::kCutFollower: return past(timeout, random) * 2;
    default: return a_short_while(timeout, random);
  }
}

namespace {

template <class Fault>
std::vector<std::string> unmet(const std::vector<Fault>& planned,
                               const std::map<std::string, int>& struck) {
  std::vector<std::string> names;
  for (const Fault fault : planned) {
    std::string text(name(fault));
    if (!struck.contains(text)) names.push_back(std::move(text));
  }
  return names;
}

std::vector<ServerFault> planned(ServiceKind kind, std::optional<ServerFault> only) {
  return only ? std::vector{*only} : server_faults(kind);
}

}  // namespace

std::vector<std::string> not_struck(ServiceKind kind, const Means& means,
                                    std::optional<ServerFault> only,
                                    const std::map<std::string, int>& struck) {
  std::vector<std::string> names = unmet(client_faults(means), struck);
  for (std::string& text : unmet(planned(kind, only), struck)) names.push_back(std::move(text));
  return names;
}

std::string missing(ServiceKind kind, const Means& means, std::optional<ServerFault> only,
                    const std::map<std::string, int>& struck) {
  const std::vector<ClientFault> clients = client_faults(means);
  if (unmet(clients, struck).size() == clients.size()) return "no fault of a client has struck";
  const std::vector<ServerFault> servers = planned(kind, only);
  if (unmet(servers, struck).size() < servers.size()) return {};
  return only ? std::string(name(*only)) + " has never struck" : "no fault of a server has struck";
}

}  // namespace latchkey::faults
