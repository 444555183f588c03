#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "testing/network.hpp"
#include "testing/pipe.hpp"
#include "testing/server.hpp"
#include "testing/timeline.hpp"
#include "testing/world_options.hpp"
#include "tree/tree.hpp"
#include "wire/frame.hpp"

namespace latchkey::testing {

class Leader;

/// A server that applies the leader's records late, in front of a tree of its own. Reads, watches
/// and pings are answered here; the handshake, writes, sync, credentials and the close go to the
/// leader, and their answers are held back until this tree has what they speak of. So answers of a
/// connection leave in the order of its requests, and none shows a later state than the tree's.
///
/// A client that has seen a later state than this one is turned away. When its session moves to
/// another server, the connection here stays, and its writes are answered with kSessionMoved. The
/// leader hears of who is alive only now and then, over the link, and not at all once that is cut.
///
/// One that plays a deposed leader takes no new connections; a real one would attach sessions that
/// it knows.
///
/// Thread safety: one thread at a time.
class Follower final : public Server {
 public:
  Follower(std::size_t index, Process& process, Leader& leader, Timeline& timeline,
           Network& network, const WorldOptions& options);

  [[nodiscard]] bool is_listening() const override { return joined_ && !deposed_; }
  void accepted(LinkId link) override;
  void received(LinkId link, std::string_view bytes) override;
  void hung_up(LinkId link) override;
  void clock_changed() override {}

  // To look at.

  /// How many records of the log it has applied.
  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] const tree::Tree& tree() const { return *tree_; }
  /// Is it in touch with the leader, as far as it knows?
  [[nodiscard]] bool is_joined() const { return joined_; }
  [[nodiscard]] std::size_t connections() const { return fronts_.size(); }

  // The world's.

  void set_lag(std::size_t records);
  /// It grants no more than this from now on, as if its configuration were another one.
  void limit_timeouts(std::chrono::milliseconds most) { longest_timeout_ = most; }
  /// Nothing passes between it and the leader. False: nothing did before.
  [[nodiscard]] bool part();
  void rejoin();
  /// From the leader's end on it plays the leader that was: it knows all that was applied, answers
  /// reads, pings and syncs of the clients it has, and carries out nothing. Until give_way().
  /// False: it was not with the leader.
  [[nodiscard]] bool succeed();
  void give_way();
  void crash(Tell clients_hear);
  void start();
  /// Everything is gone. Only while the leader is down.
  void wipe();
  /// Told when a lag first keeps something back after it was set.
  std::function<void(Fault)> struck;

  // The leader's.

  void leader_ships(std::uint64_t end);
  void leader_sends(LinkId link, std::string bytes);
  /// `moved`: because the session has moved elsewhere.
  void leader_closes(LinkId link, bool moved);
  /// Not told, it goes on answering what it can for WorldOptions::sync_limit, or until a leader is
  /// up again.
  void leader_ended(Tell told);
  /// It says nothing for now, and is missed if that lasts.
  void leader_paused();
  void leader_started();
  /// A follower that can reach the leader takes part again.
  void join();

 private:
  /// A request that has not been answered.
  struct Item {
    wire::RequestHeader header;
    std::string body;  ///< Of one that is answered here.
    bool forwarded = false;
    bool answered = false;  ///< The leader has spoken.
    std::int64_t zxid = 0;  ///< What the answer speaks of.
    std::string reply;      ///< A whole frame.
  };
  /// One client connection.
  struct Front {
    enum class State : std::uint8_t { kGreeting, kAttaching, kServing };
    explicit Front(std::size_t max_frame) : splitter(max_frame) {}

    State state = State::kGreeting;
    wire::FrameSplitter splitter;
    bool reattaches = false;
    std::string greeting;              ///< The leader's, not yet shown.
    std::uint64_t greeting_needs = 0;  ///< Records that must have been applied first.
    tree::SessionId session = 0;
    std::chrono::milliseconds timeout{};  ///< As granted.
    std::vector<tree::Identity> identities;
    std::deque<Item> items;
    bool touched = false;  ///< Heard of since the leader was last told.
    bool moved = false;
    bool closing = false;  ///< When everything has been answered.
  };

  [[nodiscard]] Front* find(LinkId link);
  void take_frame(LinkId link, Front& front, std::string_view frame);
  void take_greeting(LinkId link, Front& front, std::string_view frame);
  void take_request(LinkId link, Front& front, std::string_view frame);
  void forward(LinkId link, std::string_view frame);
  void answer_sync(Item& item, std::string_view body);
  void answer(LinkId link, Front& front, const Item& item);
  /// Lets out whatever may leave by now.
  void advance(LinkId link);
  void advance_all();
  void take_reply(LinkId link, Front& front, std::string_view frame);
  void take_bytes_of_leader(LinkId link, const std::string& bytes, std::uint64_t end);
  void take_close_of_leader(LinkId link, bool moved);
  void close(LinkId link);
  void drop_clients();
  void lose_leader();
  /// It has not been heard of from now on. After a while that is noticed, unless `is_back` by then.
  void miss_leader(std::function<bool()> is_back);
  void apply_next();
  void catch_up();
  /// The records up to which an answer with this zxid needs.
  [[nodiscard]] std::uint64_t needed_for(std::int64_t zxid) const;
  void send_notices(const std::vector<tree::Notice>& notices);
  void touch_later();

  Leader& leader_;
  Timeline& timeline_;
  Network& network_;
  const WorldOptions& options_;
  std::unique_ptr<tree::Tree> tree_;
  Pipe up_;
  Pipe down_;
  bool joined_ = false;
  bool parted_ = false;
  bool deposed_ = false;
  std::uint64_t missing_ = 0;  ///< Counts how often, so that a time-out knows whose it is.
  std::uint64_t position_ = 0;
  std::uint64_t known_ = 0;   ///< Records the leader has shipped.
  std::uint64_t wanted_ = 0;  ///< Records that an answer waits for.
  std::size_t lag_ = 0;
  bool lag_waits_ = false;  ///< It has kept nothing back so far.
  bool applying_ = false;
  bool touching_ = false;
  std::map<LinkId, Front> fronts_;
  std::chrono::milliseconds longest_timeout_ = std::chrono::milliseconds::max();
  /// Heard of on connections that are gone since the leader was last told. Left out where all
  /// servers grant the same, for there it only keeps a session longer.
  std::map<tree::SessionId, std::chrono::milliseconds> late_touches_;
};

}  // namespace latchkey::testing
