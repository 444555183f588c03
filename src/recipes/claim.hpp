#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "latchkey/error.hpp"
#include "latchkey/token.hpp"
#include "session/machine.hpp"

namespace latchkey::recipes {

/// A node whose existence is the hold.
struct HeldNode {
  std::string path;        ///< As the user knows it.
  std::int64_t czxid = 0;  ///< The transaction that created it.
};

/// What a claim came to, when it came to something.
struct Granted {
  Token token;
  std::vector<HeldNode> nodes;  ///< At least one.
  /// Does the existence of the nodes prove this very hold? Not where a name returns, or where one
  /// node serves several holds in turn.
  bool provable = true;
};

/// What the release of a claim came to.
enum class LetGo {
  kGivenUp,
  kStillHeld,  ///< Others share what was held, and one of them has it, or is about to.
};

/// Who hears what becomes of a claim: the caller's Hold, or a recipe built on top of another.
/// Exactly one of granted() and failed() comes, once; lost() at most once and only after granted(),
/// unless the claim was released before. Thread safety: session strand only.
class Claimant {
 public:
  virtual ~Claimant() = default;

  virtual void granted(Granted grant) = 0;
  virtual void failed(Error error) = 0;
  /// The hold is over, not by its holder's wish; `code` says why: kLost, kSessionLost, kClosed, ...
  /// `told` has to be called once the holder knows:
  /// until then what it held is not given up, or the next one could hold before (H09).
  virtual void lost(Code code, std::function<void()> told) = 0;
  /// Somebody asks the holder to let go.
  virtual void asked_to_let_go() = 0;
};

/// One caller's claim to a lock, whatever the lock: it waits, perhaps holds, and ends. It lives on
/// after its claimant has let go, until nothing of it is left on the server, and keeps itself alive
/// for that long. Its claimant it keeps alive only until it has answered it.
///
/// Thread safety: session strand only.
class Claim : public std::enable_shared_from_this<Claim> {
 public:
  virtual ~Claim() = default;

  /// The claimant no longer wants to wait: answered by failed(code), unless an answer came first.
  virtual void cancel(Code code) = 0;
  /// The holder lets go; `done`, if any, hears when the server has removed what was held.
  virtual LetGo release(session::Completion done) = 0;
  /// The lease has run out by the local clock, and whoever noticed it was faster than the timer.
  virtual void on_lease_over() = 0;
  /// The holder wants to hear asked_to_let_go(), from now on.
  virtual void listen() = 0;
  /// A writer's hold is to become a reader's: `reader` hears how that went, and is the claimant
  /// from then on; right before, `retire` is called. Until then a loss is told to the writer as
  /// well. False, and nothing is called: this claim is no writer's.
  virtual bool downgrade(std::shared_ptr<Claimant> reader, std::function<void()> retire) {
    static_cast<void>(reader);
    static_cast<void>(retire);
    return false;
  }
};

}  // namespace latchkey::recipes
