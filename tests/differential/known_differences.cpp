#include "differential/transcript.hpp"

namespace latchkey::differential {
namespace {

using wire::Err;
using wire::Op;

bool check_watches_of_others(const Line& apache, const Line& ours) {
  return apache.op == Op::kCheckWatches && ours.op == Op::kCheckWatches && apache.err == Err::kOk &&
         ours.err == Err::kNoWatcher;
}

bool old_connection_kept(const Line& apache, const Line& ours) {
  return apache.text == kOldConnectionKept && ours.text == kOldConnectionClosed;
}

}  // namespace

const std::vector<KnownDifference>& known_differences() {
  static const std::vector<KnownDifference> known = {
      {"checkWatches finds other connections' watches",
       "Apache 3.8.0 asks whether anybody watches the path. Ours asks whether this connection "
       "does.",
       check_watches_of_others},
      {"addWatch without a path (null, not empty)",
       "Apache 3.8.0 keeps a watch on nothing, and when that connection ends it fails to take it "
       "away and keeps the connection. Ours says MarshallingError.",
       nullptr},
      {"an old connection outlives the return of its session",
       "Apache 3.8.0 closes the old connection, unless one before that ended late and made it "
       "forget "
       "which one that was. Ours closes it always (H88).",
       old_connection_kept},
      {"a one-shot watch on a path takes a persistent one's place",
       "Apache 3.8.0 keeps one mode for each connection and path, so the client's persistent watch "
       "is silently gone. Ours keeps both.",
       nullptr},
      {"createTTL with a mode that has no TTL and a negative number",
       "Apache 3.8.0 lets it pass and fails where it should make the node. Ours says BadArguments.",
       nullptr},
      {"checkWatches of a path that does not begin with a slash",
       "Apache 3.8.0 answers NoWatcher or MarshallingError, depending on what others watch.",
       nullptr},
      {"check outside a multi",
       "Apache 3.8.0 never answers one that holds. Ours answers with the node's Stat.", nullptr},
      {"a path with characters outside the basic plane, said back",
       "Apache 3.8.0 spells them as two surrogates of three bytes each. No such node can exist.",
       nullptr},
      {"a session taken up again for longer than it was opened for",
       "Apache 3.8.0 grants it. Ours grants no more than is on record, which is all that the "
       "session has after a restart (H81).",
       nullptr},
      {"a wrong password closes the owner's connection",
       "Apache 3.8.0 closes it before it looks at the password. Ours looks first (H87).", nullptr},
  };
  return known;
}

}  // namespace latchkey::differential
