#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace latchkey::base {

/// Classic mistakes, each of which can be made again on purpose, to see that the simulator catches
/// it. A build without LATCHKEY_MUTANTS has none of them: mutated() is false at compile time there.
///
///     if (ahead_.empty() || base::mutated(Mutant::kNeighbourLeft)) return prove();
enum class Mutant : std::uint8_t {
  kNone,
  kNeighbourLeft,      ///< "My neighbour has left, so it is my turn" (H27).
  kSearchWithoutSync,  ///< A search asks whatever server it has, without a sync (H02).
  kCreateAgain,        ///< A create without an answer is repeated without a search (H01).
  kReceiveTime,        ///< The lease counts from the arrival of an answer (H10).
  kReadHeartbeat,      ///< A heartbeat that the nearest server answers by itself (H11).
  kStaleGrant,         ///< A grant without a proof of the lease (H12).
  kWholeName,          ///< Order by the whole name instead of the number (H36).
  kDeleteOnce,         ///< A delete whose answer was lost is forgotten (H21).
  kCancelForgets,      ///< Who gives up leaves its entry behind (H06).
  kWatchKept,          ///< A watch nobody needs any more is kept (H29).
  kNoRestore,          ///< Watches are not set again on a new connection (H32).
  kLostEvent,          ///< The server takes a restored watch and says nothing of the past (H91).
  kTokenFromNumber,    ///< The token is the sequence number (H16).
  kSameToken,          ///< A hand-over passes the same token on (H70).
  kReaderOvertakes,    ///< A reader does not mind the writers before it (H42).
  kOneTooMany,         ///< A semaphore gives out one permit more than it has (H46).
  kReplyEarly,         ///< An answer leaves before what it says is durable (H78).
  kSyncErrorIgnored,   ///< A failed fsync is taken for a good one (H84).
  kSessionsForgotten,  ///< After a restart old sessions never end (H81).
  kOldConnectionKept,  ///< A session that moved is served on its old connection too (H88).
  kNoOwnerCheck,       ///< Whatever carries our guid is ours (H04).
  kNoTickDoubt,        ///< The lease knows nothing of the half tick between touches (H11).
  kNoBeatDoubt,        ///< Nor of the pause before the request that was touched for (H13).
  kOwnTrip,            ///< The lease allows for the proof's own round trip only (H10).
  kNoDrift,            ///< The lease takes all clocks to run alike (H14).
  kDirtyReads,         ///< A read shows what is decided and not durable (H78).
  kLateEvent,          ///< An event leaves after the answer that shows its cause (G4).
  kStaleReplay,        ///< New data of an old node is not recovered (H79).
  kProofNewsLost,      ///< Nobody hears that another answer has proven the lease (H12).
  kLastsTooStrict,     ///< No lease is ever long enough to begin with (H12).
  kLossUntold,         ///< A holder is not told that it has lost its lock (H09).
  kDeadlineIgnored,    ///< Who waits is not answered at its deadline (H51).
  kNoDelay,            ///< A lock delay is not waited out (H73).
  kGuardWithoutCheck,  ///< What is written under guard is not tied to the entry (H93).
  kAnyFarewell,        ///< Whoever said farewell, it was my neighbour (H72).
  kGapIgnored,         ///< Nobody can have come since the list that was left to us (H72).
  kLongerGrant,        ///< The newest grant counts, however small one before it was (H15).
  kMissedInOrder,      ///< Events missed while away are taken to be in order (H05).
  kNoHandshakeDoubt,   ///< A handshake without an answer was not carried out (H15).
};
inline constexpr std::size_t kMutants = 40;

inline constexpr std::array<std::string_view, kMutants> kMutantNames = {"none",
                                                                        "neighbour-left",
                                                                        "search-without-sync",
                                                                        "create-again",
                                                                        "receive-time",
                                                                        "read-heartbeat",
                                                                        "stale-grant",
                                                                        "whole-name",
                                                                        "delete-once",
                                                                        "cancel-forgets",
                                                                        "watch-kept",
                                                                        "no-restore",
                                                                        "lost-event",
                                                                        "token-from-number",
                                                                        "same-token",
                                                                        "reader-overtakes",
                                                                        "one-too-many",
                                                                        "reply-early",
                                                                        "sync-error-ignored",
                                                                        "sessions-forgotten",
                                                                        "old-connection-kept",
                                                                        "no-owner-check",
                                                                        "no-tick-doubt",
                                                                        "no-beat-doubt",
                                                                        "own-trip",
                                                                        "no-drift",
                                                                        "dirty-reads",
                                                                        "late-event",
                                                                        "stale-replay",
                                                                        "proof-news-lost",
                                                                        "lasts-too-strict",
                                                                        "loss-untold",
                                                                        "deadline-ignored",
                                                                        "no-delay",
                                                                        "guard-without-check",
                                                                        "any-farewell",
                                                                        "gap-ignored",
                                                                        "longer-grant",
                                                                        "missed-in-order",
                                                                        "no-handshake-doubt"};

#ifdef LATCHKEY_MUTANTS
/// The mistake that is being made, in the whole process.
inline std::atomic<Mutant> mutant = Mutant::kNone;
[[nodiscard]] inline bool mutated(Mutant one) {
  return mutant.load(std::memory_order_relaxed) == one;
}
#else
[[nodiscard]] constexpr bool mutated(Mutant) { return false; }
#endif

}  // namespace latchkey::base
