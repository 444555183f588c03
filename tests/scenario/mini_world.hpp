#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "queue/company.hpp"
#include "queue/contender.hpp"
#include "scenario/mini_tree.hpp"

namespace latchkey::mini {

/// Classic mistakes. None of them is in the product: the layer that carries out a contender's
/// wishes makes them here, or tells it a lie that amounts to one.
enum class Mutant {
  kNone,
  kSearchWithoutSync,  ///< H02: a sync is answered without being sent.
  kWakeIsGrant,        ///< H27: one deletion ahead is told as the deletion of everyone ahead.
  kOwnAbsenceIgnored,  ///< H05: our own node is read into every list, and never missed.
  kCancelOwesNothing,  ///< H06: the node of an attempt that failed is forgotten.
  kDebtNotRetried,     ///< H21: a delete is sent once.
  kDeafToNoNode,       ///< H26: a watch on a node that is gone counts as set.
  kNameIsIdentity,     ///< H04: whoever carries our guid is us.
  kGrantWithoutProof,  ///< H12: the lease is taken on trust.
  kReadersNotCounted,  ///< H44: a writer does not see the reader in its predecessor's place.
  kLeavesUntold,       ///< H26: a companion leaves, and who waits for it is not told.
  kListWithoutUs,      ///< H02: a list from before our create counts, too.
  kAnyFarewell,        ///< H72: whoever said farewell, it is told as the neighbour's.
  kDataNotMinded,      ///< A farewell is written over whatever is there.
  kGapIgnored,         ///< H72: whoever came since the list of an estate is not thought of.
};

struct Request {
  enum class Kind {
    kCreate,
    kList,
    kListAndWatch,
    kSync,
    kMake,
    kRemove,
    kLook,
    kWatch,
    kProve,
    kDelete,
    kExchange,
    kRead
  };
  Kind kind = Kind::kList;
  int slot = -1;
  queue::Ask ask = 0;
  std::string name;
  std::string to = {};                           ///< Of an exchange; of a create: what it replaces.
  std::optional<queue::Farewell> farewell = {};  ///< Of a delete.
};

/// What travels from a server to a client.
struct Message {
  enum class Kind { kReply, kGone, kTouched, kDirectoryChanged };
  Kind kind = Kind::kReply;
  Request request;
  queue::Answer answer;
  std::string name;
  std::int64_t czxid = 0;
  bool owned = false;
  std::vector<std::string> children;
  Data data = {};
  std::size_t position = 0;  ///< How many transactions the server had applied.
};

/// A client process, its session and the connection it has or had.
struct Client {
  bool crashed = false;      ///< The process is gone.
  bool session_open = true;  ///< As the leader knows it.
  bool session_known_over = false;
  bool connected = true;
  bool lags = false;        ///< Its server may be behind the leader.
  bool lease_fresh = true;  ///< By the client's own clock.

  Tree view;  ///< What its server has applied.
  std::size_t position = 0;
  std::size_t last_seen = 0;  ///< The newest state a reply has shown to the client.
  std::set<std::string> server_watches;

  std::deque<Request> unsent;
  std::deque<Request> sent;
  std::deque<Request> ghosts;  ///< Of a cut connection: still on their way to the leader.
  std::deque<Message> inbox;
  std::set<std::string> watches;  ///< Registered on the client's side.
  std::vector<std::string> debts;
  std::vector<std::pair<int, queue::Ask>> timers;
  queue::Company company;              ///< Of its slots; a member's id is its slot.
  std::vector<std::string> lingering;  ///< Debts that wait for the next create.
  std::optional<queue::Estate> estate;
};

/// One attempt at the lock.
struct Slot {
  Slot(std::string label, int of, queue::Contender contender)
      : name(std::move(label)), client(of), machine(std::move(contender)) {}

  std::string name;
  int client;
  queue::Contender machine;
  std::set<std::string> wanted_watches;
  bool started = false;
  bool cancelled = false;
  bool granted = false;
  bool failed = false;
  bool holding = false;
  bool released = false;
  bool done = false;
  bool shares = false;           ///< Holds as a reader, or no longer as more than that.
  bool downgrading = false;      ///< A second answer is to come.
  bool saw_own_missing = false;  ///< It was shown a state without its node.
  bool robbed = false;           ///< An operator has deleted its node.
  /// What a lost hold owes, until its holder has heard of the loss.
  std::vector<std::string> withheld;

  bool in_company = false;
  std::string entry;                    ///< What its company knows it by.
  queue::Ask waiting_list = 0;          ///< Until it is due.
  std::string companion;                ///< The one it watches.
  std::optional<queue::Estate> estate;  ///< Until its create is answered.
};

/// A few clients, a leader, a server for each client, and every message between them in the open.
/// Nothing happens by itself: each public function is one thing that may happen next. A value, so
/// that all orders can be explored.
///
/// Broken promises are collected in violations(), worded for people.
class World {
 public:
  struct Options {
    Mutant mutant = Mutant::kNone;
    bool repeat_guids = false;  ///< All attempts draw the same guid (H08).
    queue::Relist relist = queue::Relist::kWhenNeeded;
    bool company = false;  ///< Slots of one client know of each other.
    /// Whoever loses gives up its node when it knows, and not before (H73): loss_is_told().
    bool tells_losses_first = false;
    std::size_t farewell_from = queue::Contender::kNever;
    /// Deletes wait for the next create of their client, which inherits: queue/estate.hpp.
    bool estates = false;
  };

  World() : World(Options{}) {}
  explicit World(Options options) : options_(options) {}

  // Building.
  int add_client(bool lags = false);
  int add_slot(const std::string& name, int client, queue::Contender::Options options = {});

  // What callers do.
  void start(int slot);
  void cancel(int slot, Code code);
  void release(int slot);
  void downgrade(int slot);
  void loss_is_told(int slot);

  // What the network and the servers do.
  void serve(int client);     ///< The oldest request on the wire is carried out.
  void receive(int client);   ///< The oldest message on the wire arrives.
  void catch_up(int client);  ///< A lagging server applies one more transaction.
  void cut(int client);       ///< The connection ends; what was unanswered becomes ambiguous.
  void land(int client);      ///< A request of the cut connection reaches the leader after all.
  enum class Attach { kNewest, kOldestAllowed };
  void attach(int client, Attach to);
  void resume(int client);          ///< The oldest back-off is over.
  void send_lingering(int client);  ///< Nobody has come back in time.
  void heartbeat(int client);
  void lease_over(int client);
  void expire(int client);
  void crash(int client);

  // What other hands do.
  void delete_entry(const std::string& name);
  void touch_entry(const std::string& name);
  void add_entry(const std::string& prefix);
  void remove_level(const std::string& path);
  void write_data(const std::string& text);
  void set_counter(std::int32_t counter);

  // What may happen next.
  [[nodiscard]] bool can_expire(int client) const;
  [[nodiscard]] bool is_idle(int client) const;  ///< Nothing is on the way to or from it.

  [[nodiscard]] const std::vector<Client>& clients() const { return clients_; }
  [[nodiscard]] const std::vector<Slot>& slots() const { return slots_; }
  [[nodiscard]] const Tree& leader() const { return leader_; }
  [[nodiscard]] std::size_t log_size() const { return log_.size(); }
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  /// What happened since the last call, for transcripts.
  [[nodiscard]] std::vector<std::string> take_transcript() { return std::exchange(said_, {}); }
  void keep_transcript() { transcribes_ = true; }
  /// Slots in the order of their grants.
  [[nodiscard]] const std::vector<int>& grants() const { return grants_; }

  /// Checks what has to hold at any instant.
  void check();
  /// Checks what has to hold when nothing is left to happen by itself.
  void check_at_rest();
  /// Two worlds with equal keys have equal futures.
  [[nodiscard]] std::size_t key() const;

 private:
  friend class Carrier;

  Client& at(int client) { return clients_[static_cast<std::size_t>(client)]; }
  Slot& slot_at(int slot) { return slots_[static_cast<std::size_t>(slot)]; }
  void tell(int slot, const queue::Event& event);
  void carry_out(int slot, const queue::Action& action);
  void say(const std::string& line);
  void violate(const std::string& what) { violations_.push_back(what); }

  // The servers (mini_server.cpp).
  Message carry_out_at_leader(int client, const Request& request);
  queue::Answer delete_at_leader(int client, const Request& request);
  Message read_at(Client& client, int session, const Request& request);
  void commit(Change change);
  void apply_next(Client& client);
  void catch_up_fully(Client& client);
  void fire(Client& client, const Effects& effects);

  // The clients (mini_client.cpp).
  void send(int client, Request request);
  void owe(int slot, const std::string& name, std::optional<queue::Farewell> farewell = {});
  void create(int slot, const queue::action::Create& create);
  void unwatch(int slot, const std::string& name);
  void withdraw(int slot, queue::Ask ask);
  void deliver(int client, const Message& message);
  void deliver_reply(int client, const Message& message);
  void deliver_watched(int client, const Message& message);
  void deliver_read(const Message& message);
  void ambiguous(int client, const Request& request);
  void granted(int slot, const queue::action::Grant& grant);

  // Their company (mini_company.cpp), as recipes/attempt.cpp keeps it.
  [[nodiscard]] bool waits_to_be_due(int slot, const queue::action::List& list);
  void take_place(int slot, const Message& created);
  void inherit(int slot, bool in_place);
  [[nodiscard]] bool watches_companion(int slot, const queue::action::Watch& watch);
  void leave_company(int slot);
  /// `just_come`: the slot whose create is being answered; -1: none.
  void tell_due(int client, int just_come = -1);
  [[nodiscard]] bool is_stranded(const Slot& slot) const;
  [[nodiscard]] bool anyone_wants(int client, const std::string& watch) const;
  [[nodiscard]] std::string own_node(int slot) const;

  Options options_;
  Tree leader_;
  std::vector<Change> log_;
  std::vector<Client> clients_;
  std::vector<Slot> slots_;
  std::vector<int> grants_;
  std::map<std::string, std::int64_t> newest_tokens_;  ///< By the name of the lock.
  std::deque<std::pair<int, queue::Event>> local_;  ///< Told within a client, before anything else.
  bool telling_ = false;
  bool transcribes_ = false;
  std::vector<std::string> said_;
  std::vector<std::string> violations_;
};

/// Says whether a slot waits, and for whom.
struct Waiting {
  bool waits = false;
  std::string watched;
};
[[nodiscard]] Waiting waiting_of(const queue::Contender& contender);

}  // namespace latchkey::mini
