#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/error.hpp"
#include "latchkey/export.hpp"
#include "latchkey/lock.hpp"
#include "latchkey/node.hpp"
#include "latchkey/path.hpp"
#include "latchkey/result.hpp"
#include "latchkey/session.hpp"
#include "latchkey/token.hpp"

namespace latchkey::inline v0 {

/// Where a candidate stands.
///
///     kQueued ◄──► kLeading        resigned, unhealthy or lost: queued again
///        └────┬────────┘
///             ▼
///     kFailed or kClosed, which are final
///
/// Whoever is asked reads the clock:
///
///     const Election election(session, "/schedulers");
///     if (election.state() == ElectionState::kLeading) use(*election.token());
enum class ElectionState {
  kQueued,  ///< In the queue, or about to be: after a term the next try waits for a back-off.
  kLeading,
  kFailed,  ///< The session is over or the service refuses us; the error says why.
  kClosed,  ///< By close() or destruction.
};

[[nodiscard]] LATCHKEY_EXPORT std::string_view name(ElectionState state) noexcept;
LATCHKEY_EXPORT std::ostream& operator<<(std::ostream& out, ElectionState state);

/// One step of a candidate's way. Every change is told, in order, and the last one is final. That
/// it queues to begin with is not told.
///
///     const auto log = [](const ElectionNews& news) {
///       std::clog << name(news.state) << '\n';
///       if (news.error) std::clog << *news.error << '\n';
///     };
struct ElectionNews {
  ElectionState state = ElectionState::kQueued;
  std::optional<Token> token;  ///< With kLeading.
  /// With kLeading: stop is requested when the term is over, for whatever reason, at the latest
  /// before another candidate can lead. The lock passes on when the callbacks of this token have
  /// returned, but no later than after a session time-out, and when the on_change that brought it
  /// has returned, however long that takes, unless it is lost. The callbacks run on a thread of the
  /// library, or right before on_change is called with what comes after the term.
  std::stop_token over;
  /// With kFailed; with kQueued, why the last term or try ended: kLost, kCancelled if the health
  /// check did it, nothing if we resigned.
  std::optional<Error> error;
};

/// What a candidate may be told beyond where it runs.
///
///     ElectionOptions options;
///     options.id = "node-7";
///     options.is_healthy = [] { return database.answers(); };
///     options.take_over_delay = 5s;
struct ElectionOptions {
  std::string id = {};  ///< Who we are, for observers: the node's data, as Curator's LeaderLatch.
  std::vector<Acl> acl = open_acl();
  Parent parent = Parent::kContainer;

  /// Told of every change, on the session's executor, in order, one at a time. It may take its
  /// time, and even lead in there until `over`: the lead does not pass on before it returns, but
  /// for a loss; no other callback waits for it; and on an executor of yours with one thread only
  /// `over` does not wait for it either; is_healthy would. A lead that ends with an exception
  /// resigns. With the news that a term has ended its `over` is requested. The last call may come
  /// after the Election has been destroyed, so let it share whatever it uses.
  std::function<void(const ElectionNews&)> on_change = {};

  /// Asked every `health_period` while leading, on the session's executor. False, or an exception,
  /// resigns (H74): a leader that is connected but cannot act must not lead. A call that does not
  /// return within the period counts as false, and the hook is not called again before it has. The
  /// period is at least a millisecond.
  std::function<bool()> is_healthy = {};
  std::chrono::milliseconds health_period{1'000};

  /// How long a candidate stays out of the queue after a term: at least `min_pause` after a term
  /// shorter than `short_term`, doubled with every further short one up to `max_pause`; nothing
  /// after a long one (H75). A try that fails counts as a short term. None of them is negative, and
  /// the most is no less than the least: otherwise the election is kFailed with kInvalidOption.
  std::chrono::milliseconds min_pause{100};
  std::chrono::milliseconds max_pause{30'000};
  std::chrono::milliseconds short_term{10'000};

  /// See MutexOptions::lock_delay. While it is waited out nobody leads, for observers as well. An
  /// observer that is not Latchkey finds a line about the delay behind the id.
  std::chrono::milliseconds take_over_delay{0};
};

/// Runs for leadership for as long as it lives: queues, leads, and queues again after each term,
/// until it is closed or fails for good. It never stops silently: see state() and on_change.
///
///     Election election(session, "/schedulers", {.id = "node-7", .on_change = [=](auto& news) {
///       if (news.state == ElectionState::kLeading) scheduler->start(*news.token, news.over);
///     }});
///
/// It is no Lock, and gives no Lease: it has many terms, one after the other, and whoever waits for
/// one hears of it by on_change, which also brings the term's token and its `over`, or looks at
/// state() and token(). Whoever wants to wait for one term with a deadline, a future or co_await,
/// or a guard() for it, takes a Mutex, or run_while_held() with AfterLoss::kRequeue.
///
/// Leadership is a lock hold with a token: what the leader writes has to carry it (H73). Entries
/// are named as those of Curator's LeaderLatch. A lost connection costs neither the term nor the
/// place in the queue, as long as the session's lease lasts. examples/leader.cpp shows all of it.
///
/// Shares the session, and keeps it open until it is closed and its term told to be over.
/// Destruction closes it and never waits. A moved-from Election may only be assigned to or
/// destroyed. Thread safety: any thread.
class LATCHKEY_EXPORT Election {
 public:
  Election(const Session& session, Path directory, ElectionOptions options = ElectionOptions());
  Election(Election&&) noexcept;
  Election& operator=(Election&&) noexcept;
  ~Election();

  /// Ends the term, if there is one, and queues again at the end. Nothing happens while queued.
  void resign();
  /// Leaves for good.
  void close();

  /// Reads the clock at every call: a term whose lease has run out is over.
  [[nodiscard]] ElectionState state() const;
  /// While leading.
  [[nodiscard]] std::optional<Token> token() const;

 private:
  class Candidate;
  std::shared_ptr<Candidate> candidate_;
};

/// Who leads, as an observer sees it. Advisory (H76): compare tokens.
///
///     auto now = leader(session, "/schedulers", deadline_in(2s));
///     if (now && *now && (*now)->token >= largest_seen) std::cout << (*now)->id << " leads\n";
struct Leader {
  std::string id;  ///< The node's data; empty if we may not read it.
  Token token{0};
  std::string node;

  friend bool operator==(const Leader&, const Leader&) = default;
};

/// Who leads, no older than the call; nothing if nobody does. Errors: kInvalidPath, kNotAuthorized,
/// kTimedOut, what ended the session.
///
///     Result<std::optional<Leader>> now = leader(session, "/schedulers", deadline_in(2s));
///     if (now && *now) std::cout << (*now)->id << " leads\n";
[[nodiscard]] LATCHKEY_EXPORT Result<std::optional<Leader>> leader(Session& session,
                                                                   const Path& directory,
                                                                   Deadline deadline);

/// Pushes every change of leader, on the session's executor, in order; nothing while nobody leads.
/// The tokens of the leaders it shows never go down (H76). It ends with an Error as the last call,
/// if the session ends or the directory may not be read.
///
///     LeaderWatch watch(session, "/schedulers", [](const auto& leader) { show(leader); });
///
/// It watches one node, the leader's, so candidates that come and go cost nothing; while somebody
/// waits out a take-over delay, the directory as well. Destroying it ends the stream and takes its
/// watches along; a call that is under way may still finish. Thread safety: any thread.
class LATCHKEY_EXPORT LeaderWatch {
 public:
  using Handler = std::function<void(Result<std::optional<Leader>>)>;

  LeaderWatch(const Session& session, Path directory, Handler handler);
  LeaderWatch(LeaderWatch&&) noexcept;
  LeaderWatch& operator=(LeaderWatch&&) noexcept;
  ~LeaderWatch();

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace latchkey::inline v0
