#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/random.hpp"
#include "base/slab.hpp"
#include "latchkey/session.hpp"
#include "session/lease_clock.hpp"
#include "session/outcome.hpp"
#include "session/timers.hpp"
#include "session/view.hpp"
#include "session/watch_table.hpp"
#include "wire/frame.hpp"

namespace latchkey::session {

/// What happens to a request whose connection breaks before the answer.
enum class Resend {
  kNever,          ///< It ends: kConnectionLoss, with the effect unknown for a write.
  kWithinPolicy,   ///< Sent again, RetryPolicy::count times: reads.
  kUntilAnswered,  ///< Sent again until the server has spoken or the session is over: debts.
};

using Completion = std::function<void(Outcome&&)>;

/// A watch that a request sets if it succeeds.
struct WatchWish {
  WatchOn on = WatchOn::kData;
  WatchTable::Kin kin = WatchTable::Kin::kNo;
  Watcher watcher;
};

/// One request, encoded once. The xid is written into the frame each time it is sent.
struct Call {
  wire::Op op = wire::Op::kPing;
  std::string frame;
  std::string path;  ///< The server's path, chroot included.
  std::optional<WatchWish> watch;
  Resend resend = Resend::kNever;
  /// removeWatches on behalf of the user: on success our watchers go too.
  std::optional<wire::WatcherType> removes;
  /// A new queue entry: may leave in one transaction with the delete of an older one. Its answer
  /// then has of the Stat only the czxid.
  bool joins_delete = false;
  /// The older one that it would best leave with; Outcome::in_place tells whether it did.
  std::string heir_of;
  /// The delete of a node that is owed until this ends: see Machine::owe_delete.
  bool pays_debt = false;
  /// A look of a recipe's own, which knows what its session owes: deletes that wait for the next
  /// entry go on waiting. Whatever else is sent comes behind them.
  bool lets_linger = false;
  Instant deadline = Instant::max();
  Completion done;
};

using CallId = base::Slab<int>::Id;

/// Somebody whose fate hangs on the session: a contender or a holder. While there are members,
/// heartbeats go through the leader (P5).
class Member {
 public:
  virtual ~Member() = default;
  virtual void on_heartbeat() = 0;
  virtual void on_lease_over() = 0;
  /// The lease was over, not proven yet or about to end, and is proven for a while now.
  virtual void on_lease_proven() {}
  virtual void on_session_over(Code code) = 0;
};

/// May a delete wait for the next entry, to leave with it (Machine::owe_delete)? Only where
/// somebody brings the machine the time while nobody calls.
enum class Linger { kNo, kYes };

/// What is set in the transaction that deletes a node, if nobody has set anything else since
/// `version`: see queue/farewell.hpp.
struct LastWord {
  std::string path;
  std::string data;
  std::int32_t version = 0;
};

struct MachineOptions {
  std::chrono::milliseconds timeout{10'000};
  std::optional<std::chrono::milliseconds> least_timeout;
  std::vector<Credential> credentials;
  std::size_t endpoints = 1;
  std::vector<std::string> endpoint_names;  ///< For messages; may be left out.
  RetryPolicy retry;
  std::chrono::milliseconds give_up_after{0};
  std::size_t max_requests = 10'000;
  std::size_t max_queued_bytes = 64U << 20U;
  std::size_t max_request_bytes = 1'048'575;
  std::size_t max_reply_bytes = 16U << 20U;
  std::string chroot;
  std::int32_t first_xid = 1;  ///< For the test of H64.
  /// What is said of us on a Unix socket, see base::process_mark(); 0: nothing.
  std::int32_t process_mark = 0;
  Linger linger = Linger::kYes;
};

/// The client's side of a session as a machine without I/O: requests, bytes and time go in; bytes,
/// outcomes, events and state changes come out. It owns the handshake, xids, heartbeats,
/// reconnects, watches, the lease clock and the debts of its recipes.
///
///     machine.start(now);
///     machine.submit(std::move(call), now);
///     machine.deliver(hooks);            // completions and watchers run here, and only here
///     write(socket, machine.take_output());
///
/// After every input the driver delivers, carries out take_dial()/take_hang_up(), writes
/// take_output() and comes back with tick() at next_wake(). Completions may call back into the
/// machine.
///
/// Thread safety: one thread at a time.
class Machine {
 public:
  struct Hooks {
    std::function<void(SessionState)> on_state;
    std::function<void(LogLevel, std::string)> log;
  };

  Machine(MachineOptions options, std::uint64_t seed, std::shared_ptr<View> view);

  /// Every input comes at a moment; the driver says which, first of all.
  void advance(Instant now) { now_ = now; }
  [[nodiscard]] Instant now() const { return now_; }

  // What users want.

  void start(Instant now);
  /// The call's `done` is delivered exactly once, unless it is empty.
  /// A call whose deadline has passed already ends with kTimedOut and is not sent.
  CallId submit(Call call, Instant now);
  /// Is there room for another request? Debts and heartbeats do not ask.
  [[nodiscard]] bool has_room() const {
    return calls_.size() < options_.max_requests + waiters_ && bytes_ < options_.max_queued_bytes;
  }
  /// Ends a call now with `code`. Its answer, if it was sent, is ignored when it comes.
  void abandon(CallId id, Code code, Instant now);
  /// Takes back a call that has not left yet: it ends with kCancelled. Otherwise nothing happens.
  void withdraw(CallId id, Instant now);
  /// Done when a server has accepted the session; kUnreachable or kTls at the deadline.
  void await_connection(Instant deadline, Completion done, Instant now);
  /// Done when has_room() is true again; kTimedOut at the deadline. One free place wakes one
  /// waiter, which has to submit a call or to ask again: nobody else is woken for that place.
  void await_room(Instant deadline, Completion done, Instant now);
  void add_credential(Credential credential, Completion done, Instant deadline, Instant now);
  /// Ends the session: every request not yet sent fails, the server is told, for which one more try
  /// to reach it is made at once (H25). `done` comes with the server's word, or with kTimedOut at
  /// the deadline; the session is over then all the same. However it ends, it ends as kClosed. If
  /// it was over before without the server's word, `done` hears what ended it. Unless it is
  /// Losses::kAsTheyAre, the server hears of it when all losses have been told.
  enum class Losses { kToldFirst, kAsTheyAre };
  void close(Instant deadline, Completion done, Instant now, Losses losses = Losses::kToldFirst);

  // What recipes want.

  using MemberId = std::uint64_t;
  /// If the session is over already, the member hears of it with the next deliver().
  MemberId join(Member& member);
  void leave(MemberId id);
  /// Deletes a node of this session for certain: sent now, and again after every reconnect, until
  /// the server says OK or NoNode or the session is over (H21). Until then is_owed() is true, and
  /// the recipes of this session take the node for gone: their watches on it fire at once.
  ///
  /// In a session where the last delete was followed by a new entry at once, as a loop of lock and
  /// unlock does it, this one waits for kPatience at most, to leave with the next entry in one
  /// transaction: one write for the server instead of two (docs/decisions/0011).
  ///
  /// One with a last word leaves at once, and the word is said once: if that transaction is refused
  /// or its answer lost, the delete goes on alone. Nothing is said where the delete waits for the
  /// next entry, nor while another delete below `word->path` is unanswered: the node may be first
  /// in the eyes of this session only (docs/decisions/0014).
  void owe_delete(const std::string& path, Completion done, Instant now,
                  Linger linger = Linger::kYes, const std::optional<LastWord>& word = {});
  [[nodiscard]] bool is_owed(const std::string& path) const { return owed_.contains(path); }
  /// Would a delete wait for the next entry of the session now?
  [[nodiscard]] bool will_linger() const {
    return comes_again_ && options_.linger == Linger::kYes && phase_ == Phase::kAttached &&
           !closing_;
  }
  /// Does the delete of this node wait for the next entry?
  [[nodiscard]] bool lingers(const std::string& path) const {
    return find_lingering(path) != lingering_.end();
  }
  /// Drops a watch that a call has set or is about to set; the server's goes too if it was the
  /// last.
  void unwatch(CallId setter, Instant now);
  /// Drops it on this side only: the node is about to be deleted and takes the server's with it.
  void forget_watch(CallId setter);
  /// A member tells its holder of a loss, from begin to end. A close is sent to the server when
  /// nothing is being told any more.
  void begin_telling() { ++tellings_; }
  void end_telling();
  Timers& timers() { return timers_; }
  /// What recipes of this session share, by a name of their choice, for as long as one of them has
  /// it.
  std::map<std::string, std::weak_ptr<void>>& commons() { return commons_; }
  /// How long to wait before try number `round` + 1, by the session's RetryPolicy.
  [[nodiscard]] Duration back_off(int round);

  [[nodiscard]] SessionState state() const { return state_; }
  [[nodiscard]] bool is_over() const { return phase_ == Phase::kOver; }
  /// It is over, or being closed: members have been told or are about to be.
  [[nodiscard]] bool is_ending() const { return closing_ || is_over(); }
  [[nodiscard]] Code over_code() const { return over_code_; }
  /// Why there is no connection, for error messages: "127.0.0.1:2181: connection refused".
  [[nodiscard]] const std::string& last_trouble() const { return last_trouble_; }
  [[nodiscard]] std::int64_t session_id() const { return session_id_; }
  /// As granted, or as wanted before anything was granted.
  [[nodiscard]] Duration timeout() const { return timeout_; }
  [[nodiscard]] const LeaseClock& lease() const { return lease_; }
  /// Does somebody bring the machine the time while nobody calls? See Linger.
  [[nodiscard]] bool may_linger() const { return options_.linger == Linger::kYes; }
  [[nodiscard]] const std::string& chroot() const { return options_.chroot; }
  [[nodiscard]] std::size_t max_request_bytes() const { return options_.max_request_bytes; }
  /// Does a persistent watch of ours report what a one-shot watch on `path` would? Then setting
  /// that one on the server is needless, and harmful: servers before 3.9 keep one mode for each
  /// path.
  [[nodiscard]] bool is_covered(WatchOn on, const std::string& path) const;
  [[nodiscard]] std::size_t watch_count() const { return watches_.size(); }
  /// "/a" as the server knows it.
  [[nodiscard]] std::string absolute(const std::string& path) const;
  /// The server's path as the user knows it.
  [[nodiscard]] std::string relative(std::string path) const;
  /// For people who find no node: what may be missing is the chroot. Empty without one.
  [[nodiscard]] std::string chroot_hint() const;

  // What the driver brings.

  void transport_up(Instant now);
  /// `kind` is kTls for trouble with certificates, kUnreachable for any other.
  void transport_down(const std::string& why, Code kind, Instant now);
  void received(std::string_view bytes, Instant now);
  void tick(Instant now);

  // What the driver takes.

  /// Connect to this endpoint; answered by transport_up() or transport_down().
  [[nodiscard]] std::optional<std::size_t> take_dial() {
    return std::exchange(dial_, std::nullopt);
  }
  /// Close the transport. Comes before take_dial(): the dial is for the next one. There is no
  /// output for a transport that is to be closed.
  [[nodiscard]] bool take_hang_up() { return std::exchange(hang_up_, false); }
  /// `spare` is empty, and its memory is used for the next.
  [[nodiscard]] std::string take_output(std::string spare = {}) {
    return std::exchange(output_, std::move(spare));
  }
  [[nodiscard]] bool has_news() const {
    return !notices_.empty() || !output_.empty() || dial_ || hang_up_;
  }
  [[nodiscard]] Instant next_wake() const;
  /// Runs completions, watchers, members and hooks until there are none left.
  void deliver(const Hooks& hooks);
  /// What is done with, to be destroyed where the session may be entered again: a user's closure
  /// may own the last handle of this very session.
  struct Spent {
    Completion done;
    Watcher watcher;
  };
  [[nodiscard]] std::vector<Spent> take_spent() { return std::exchange(spent_, {}); }

 private:
  enum class Phase {
    kWaiting,      ///< For connect_at_.
    kDialing,      ///< For the transport.
    kHandshaking,  ///< For the server's greeting.
    kAttached,
    kOver,
  };

  /// Has the server said so, or do we only conclude it?
  enum class Confirmed { kNo, kYes };

  struct Pending {
    Call call;
    bool sent = false;
    bool watch_wanted = true;
    int attempts = 0;
    Instant submitted_at{};
    Timers::Id timer = 0;
    CallId id = 0;
  };

  /// On the wire, in order. Heartbeats have no call.
  struct Flight {
    std::int32_t xid = 0;
    CallId id = 0;
    wire::Op op = wire::Op::kPing;
    Instant sent_at{};
    CallId debt = 0;        ///< A delete in the same transaction; 0: none.
    bool in_place = false;  ///< See Outcome.
  };

  struct Finished {
    Completion done;
    Outcome outcome;
    std::string owed = {};  ///< The node that is owed no more; empty: it paid no debt.
  };
  struct Fired {
    Watcher watcher;
    WatchEvent event;
  };
  struct StateChanged {
    SessionState state;
  };
  struct Logged {
    LogLevel level;
    std::string text;
  };
  enum class Tiding { kHeartbeat, kLeaseOver, kLeaseProven, kSessionOver };
  /// For those from the first to the last who are still there.
  struct ForMembers {
    MemberId first;
    MemberId last;
    Tiding tiding;
  };
  /// Members have been told that the session is closed, and have begun to tell their holders.
  struct CloseAnnounced {};
  using Notice = std::variant<Finished, Fired, StateChanged, Logged, ForMembers, CloseAnnounced>;

  // Connection (machine_connection.cpp).
  void dial(Instant now);
  void detach(const std::string& why, Instant now, Code kind = Code::kUnreachable);
  void requeue_flights(const std::string& why, Instant now);
  [[nodiscard]] Duration pause_before_dial();
  /// "127.0.0.1:2181: " for the server in hand.
  [[nodiscard]] std::string where() const;
  void handle_greeting(std::string_view body, Instant now);
  void attach(Instant now);
  void end(SessionState state, Code code, Confirmed confirmed, Instant now);
  void send_heartbeat(Instant now);
  [[nodiscard]] Instant heartbeat_at() const;

  // Frames (machine_frames.cpp).
  void handle_frame(std::string_view body, Instant now);
  void handle_event(std::string_view body, Instant now);
  void handle_auth(wire::Err err, Instant now);
  void handle_restored(wire::Err err, Instant now);
  void handle_reply(const wire::ReplyHeader& header, std::string_view body, Instant now);
  void settle(const Flight& flight, const wire::ReplyHeader& header, Reply reply, std::size_t bytes,
              Instant now);
  void settle_watch(Pending& pending, wire::Err err, Instant now);
  /// A request for it was answered; if it is sent again, it is expected again.
  void expect_watch_no_more(const Pending& pending);
  /// The server has spoken: this connection is good for something.
  void heard();
  [[nodiscard]] static std::optional<Reply> decode_reply(wire::Op op, std::string_view body);

  // Requests (machine.cpp).
  CallId add_waiter(Completion done, Instant deadline, Code code, Instant now);
  void release_waiter(CallId id, Instant now);
  void wake_room_waiters(Instant now);
  /// Out of the table. Every call ends here.
  [[nodiscard]] std::optional<Pending> take_call(CallId id);
  void bury(Pending& pending);
  void send_queued(Instant now);
  /// What a thread takes to come back for the next lock, and not much more.
  static constexpr std::chrono::microseconds kBreath{200};
  /// How long a delete waits for one that is expected. Longer than a breath, because a timer that
  /// is to ring that soon takes the system as long to set as a request.
  static constexpr std::chrono::microseconds kPatience{1'000};
  /// The deletes that have waited for the next entry for long enough.
  void send_overdue(Instant now);
  [[nodiscard]] Instant next_leave() const;
  void send(CallId id, Pending& pending, Instant now);
  [[nodiscard]] std::string size_and_limit(std::size_t bytes) const;
  [[nodiscard]] std::int32_t next_xid();
  /// Tells whoever waits for the call.
  void finish(Pending& pending, Outcome outcome, Instant now);
  /// Takes the call out and tells whoever waits for it. The effect follows from whether it was
  /// sent.
  void fail(CallId id, Code code, const std::string& detail, Instant now);
  void pay_debts(Instant now);
  [[nodiscard]] bool may_say(const LastWord& word) const;
  void submit_with(const LastWord& word, Call debt, Instant now);
  /// Sends the entry together with a delete that waits for it. False: there is none.
  bool send_joined(CallId id, Instant now);
  [[nodiscard]] std::vector<CallId>::const_iterator find_lingering(const std::string& path) const;
  void settle_joined(const Flight& flight, const wire::ReplyHeader& header, Reply& reply,
                     std::size_t bytes, Instant now);
  /// Whatever became of it, the session owes it no more.
  void settle_debt(const std::string& path, Outcome& outcome);
  /// A delete that was sent and is not settled: again, at `when`.
  void owe_again(CallId debt, Instant when);
  void touched(Instant now);
  void send_credential(std::size_t index);
  /// Is there such a watch, or a request on its way that sets one?
  [[nodiscard]] bool is_wanted(WatchOn on, const std::string& path) const;
  void drop_server_watch(WatchOn on, const std::string& path, Instant now);
  void tell_members(Tiding tiding);
  void tell(const ForMembers& tiding);
  void announce_end();
  void send_close(Instant now);
  void change_state(SessionState state);
  void publish_lease();
  void log(LogLevel level, std::string text);

  const MachineOptions options_;
  const std::shared_ptr<View> view_;
  base::Random random_;

  Instant now_{};
  Phase phase_ = Phase::kWaiting;
  SessionState state_ = SessionState::kConnecting;
  Code over_code_ = Code::kClosed;
  bool started_ = false;

  // The session, as the server granted it.
  std::int64_t session_id_ = 0;
  std::string password_ = std::string(16, '\0');
  Duration timeout_{};
  std::int64_t last_zxid_ = 0;
  LeaseClock lease_;
  bool lease_over_told_ = false;

  // The connection.
  std::vector<std::size_t> order_;  ///< Endpoints, shuffled once.
  std::size_t next_endpoint_ = 0;
  int failures_ = 0;  ///< Since the last connection that was good for an answer.
  Instant connect_at_ = Instant::max();
  Instant attempt_until_ = Instant::max();
  /// Since the last connection that was good for an answer; not looked at while attached. So a
  /// server that takes the session and drops it at once, for ever, is given up too (H63).
  Instant give_up_at_ = Instant::max();
  Instant last_sent_{};
  Instant last_proof_sent_{};
  Instant read_until_ = Instant::max();
  Instant last_tick_{};
  std::string last_trouble_;
  Code trouble_kind_ = Code::kUnreachable;
  wire::FrameSplitter splitter_;
  std::int32_t xid_;
  int restores_ = 0;           ///< setWatches frames not yet answered.
  Instant restored_at_{};      ///< When they were sent.
  std::deque<Instant> pings_;  ///< When those not yet answered were sent.

  // Requests.
  base::Slab<Pending> calls_;
  std::size_t bytes_ = 0;  ///< Of their frames.
  std::deque<CallId> queued_;
  std::deque<Flight> flights_;
  struct Identity {
    Credential credential;
    std::vector<CallId> waiters;
  };
  std::vector<Identity> identities_;
  std::deque<std::size_t> auth_flights_;
  std::set<std::string> owed_;
  bool says_words_ = true;  ///< Until it was told that it may not.
  /// Debts the server answered without settling them: sent again at pay_at_, or on a new
  /// connection.
  std::vector<CallId> unpaid_;
  Instant pay_at_ = Instant::max();
  /// Debts that wait for an entry to leave with; they leave by themselves at leave_at_.
  std::vector<CallId> lingering_;
  Instant leave_at_ = Instant::max();
  bool comes_again_ = false;  ///< The last debt was followed by an entry at once.
  Instant last_debt_at_{};
  Timers timers_;
  WatchTable watches_;
  std::map<std::pair<WatchOn, std::string>, int> coming_watches_;  ///< Sent, not yet answered.

  // Those who wait for the machine itself: entries of calls_ without a frame.
  std::vector<CallId> connection_waiters_;
  std::deque<CallId> room_waiters_;
  std::size_t waiters_ = 0;  ///< How many of calls_ these are.

  // Closing.
  bool closing_ = false;
  Confirmed end_ = Confirmed::kNo;  ///< Has the server confirmed the end?
  bool end_announced_ = false;
  int tellings_ = 0;
  bool awaits_tellings_ = true;  ///< The close does.
  bool close_announced_ = false;
  Instant close_until_ = Instant::max();
  std::vector<Completion> close_waiters_;

  std::map<MemberId, Member*> members_;
  std::map<std::string, std::weak_ptr<void>> commons_;
  MemberId last_member_ = 0;

  // For the driver.
  std::optional<std::size_t> dial_;
  bool hang_up_ = false;
  std::string output_;
  std::vector<Notice> notices_;
  std::vector<Spent> spent_;
};

}  // namespace latchkey::session
