#pragma once

#include "tree/service.hpp"

namespace latchkey::tree::test {

/// Whoever is not read from has a reason that ends, and when it does somebody looks again: it
/// stands in line for the disk or rests until the next round, an answer is due, or output is to be
/// taken; or it leaves. Without
/// one it would never be heard again, however long it waits (H85). For rigs and fuzzers, which ask
/// as the driver does.
[[nodiscard]] inline bool is_read_or_woken(Service& service, PeerId id) {
  if (service.wants_input(id)) return true;
  const auto found = service.peers().find(id);
  if (found == service.peers().end()) return true;
  const Peer& peer = *found->second;
  return peer.gone || peer.state == Peer::State::kLeaving || peer.in_line || peer.rests ||
         peer.requests > 0 || !peer.output.empty() || peer.unwritten > 0;
}

}  // namespace latchkey::tree::test
