#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/function_ref.hpp"
#include "wire/messages.hpp"

namespace latchkey::tree {

/// A connection as the tree knows it. Watches belong to connections, not to sessions: a client that
/// reconnects sets them again.
using PeerId = std::uint64_t;

/// An event on its way to one connection.
struct Notice {
  PeerId peer = 0;
  wire::EventType type = wire::EventType::kNone;
  std::string path;
  friend bool operator==(const Notice&, const Notice&) = default;
};

/// Who wants to hear of what. One-shot watches on data (exists and getData) and on children
/// (getChildren), persistent and persistent recursive ones; each kind is kept apart, so that a
/// one-shot watch on a path takes nothing from a persistent one there.
///
///     watches.add(Watches::Kind::kData, peer, "/a");
///     watches.deleted("/a", notices);  // notices: {peer, kDeleted, "/a"}
///
/// A change reaches a connection at most once for each path and type, however many of its watches
/// it meets; in which order it reaches different connections is not promised. A change costs as
/// much as there are watches that hear it, and a few look-ups. A recursive watcher gets no
/// kChildrenChanged. Who may not hear of a node (H92) is for the Tree to say, which knows
/// permissions.
///
/// Thread safety: one thread at a time.
class Watches {
 public:
  enum class Kind : std::uint8_t { kData, kChildren, kPersistent, kRecursive };

  Watches() = default;
  // A copy's two indices would point into the original's.
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;
  Watches(Watches&&) = default;
  Watches& operator=(Watches&&) = default;
  ~Watches() = default;

  /// Adding the same watch twice is adding it once.
  void add(Kind kind, PeerId peer, std::string_view path);

  /// What that adds: nothing if it is there already.
  struct Addition {
    std::size_t watches = 0;
    std::size_t bytes = 0;       ///< Of a path that nobody watches.
    std::size_t peer_bytes = 0;  ///< Of one that this connection does not watch.
  };
  [[nodiscard]] Addition would_add(Kind kind, PeerId peer, std::string_view path) const;

  /// Does the connection have a watch of this type on exactly this path? A persistent or recursive
  /// one counts as every type, unless remove() has taken that half of it.
  [[nodiscard]] bool has(wire::WatcherType type, PeerId peer, std::string_view path) const;
  /// Removes what has() would find: for kData and kChildren the one-shot watch of that type and, as
  /// Apache does, the half of a persistent watch that listens to that type. False if there was
  /// none.
  bool remove(wire::WatcherType type, PeerId peer, std::string_view path);
  /// The connection is gone, and every watch of it.
  void drop(PeerId peer);

  // What happened to a node; the notices are appended in the order they must leave.

  void created(std::string_view path, std::vector<Notice>& notices);
  void deleted(std::string_view path, std::vector<Notice>& notices);
  void changed(std::string_view path, std::vector<Notice>& notices);

  /// Watches in all, as `mntr` counts them (data and children apart; a persistent one counts
  /// twice).
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t watched_paths() const { return places_.size(); }
  /// Of the watched paths, each of them once, as they lie in memory.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t watching_peers() const { return peers_.size(); }
  /// How many watches hear of it when something happens to a node, at most.
  [[nodiscard]] std::size_t hearers(std::string_view path) const;
  /// Of those that listen to data only, for `wchs`. They are known and not counted, however many
  /// there are (H89).
  struct DataCounts {
    std::size_t peers = 0;
    std::size_t paths = 0;
    std::size_t watches = 0;
  };
  [[nodiscard]] const DataCounts& data_counts() const { return data_; }
  /// Everybody who listens to the data of a path, path by path, for `wchc` and `wchp`.
  void visit_data(base::FunctionRef<void(PeerId, std::string_view path)> visitor) const;
  /// Watches of one connection, counted in the same way.
  [[nodiscard]] std::size_t count(PeerId peer) const;
  /// Bytes of the paths that one connection watches.
  [[nodiscard]] std::size_t bytes(PeerId peer) const;
  /// The sum of that over all connections.
  [[nodiscard]] std::size_t bytes_of_peers() const { return bytes_of_peers_; }

 private:
  /// What one watch listens with, as bits. A persistent or recursive watch has two ears, one in
  /// each of what Apache calls the data and the child watches, and can lose one of them to
  /// remove().
  using Ears = std::uint8_t;

  struct Watcher;
  struct Watch {
    Watcher* watcher = nullptr;
    Ears ears = 0;
  };
  /// The watches on one path. They stand in rows by what they hear, so that a change walks past
  /// nobody whom it does not concern; a connection has one seat in a row.
  static constexpr std::size_t kRows = 3;
  struct Place {
    const std::string* path = nullptr;  ///< The key in places_.
    std::size_t data = 0;               ///< How many of the watches listen to data.
    std::array<std::vector<Watch>, kRows> rows;
  };
  using Seats = std::array<std::uint32_t, kRows>;
  struct Watcher {
    PeerId id = 0;
    std::size_t size = 0;
    std::size_t bytes = 0;
    std::size_t data = 0;    ///< How many of its watches listen to data.
    std::uint64_t told = 0;  ///< The last round in which it got a notice.
    std::unordered_map<const Place*, Seats> places;
  };
  /// One type of event on one path.
  struct Round {
    std::uint64_t number;
    wire::EventType type;
    std::string_view path;
    std::vector<Notice>& notices;

    /// Once only, however often it is asked to.
    void tell(Watcher& watcher) const;
  };
  /// A path whose hash is known.
  struct Hashed {
    std::string_view path;
    std::uint64_t hash;
    friend bool operator==(const Hashed& one, const std::string& other) {
      return one.path == other;
    }
  };
  /// Goes on from byte to byte (FNV-1a), so that all the paths above one are hashed in one go.
  struct Hash {
    using is_transparent = void;
    static constexpr std::uint64_t kNothing = 0xcbf29ce484222325U;
    static std::uint64_t next(std::uint64_t hash, char byte) {
      return (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
    std::size_t operator()(std::string_view path) const {
      std::uint64_t hash = kNothing;
      for (const char byte : path) hash = next(hash, byte);
      return hash;
    }
    std::size_t operator()(const Hashed& hashed) const { return hashed.hash; }
  };
  using Places = std::unordered_map<std::string, Place, Hash, std::equal_to<>>;

  [[nodiscard]] static Ears ears_of(Kind kind);
  [[nodiscard]] static Ears ears_of(wire::WatcherType type);

  /// With which a connection listens to a path; none if it does not.
  [[nodiscard]] Ears ears_at(PeerId peer, std::string_view path) const;
  [[nodiscard]] Place* find_place(std::string_view path);
  /// Takes ears from whoever has that seat, and the seat with the last of them. False if it had
  /// none of these. Leaves the place behind even if it is empty now.
  bool silence(Place& place, std::size_t row, std::size_t seat, Ears ears);
  bool take(Watcher& watcher, Place& place, Ears ears);
  void forget_if_empty(Place& place);
  /// Gives a watch its ears, and counts whether it listens to data.
  void set_ears(Place& place, Watch& watch, Ears ears);

  /// Tells everybody in the row. One-shot watches are spent by it.
  void ring(const Round& round, Place& place, std::size_t row);
  void ring_node(const Round& round, Ears ears);
  /// What is watched above a node. A deep path takes no longer than a flat one of its length (H89).
  void visit_above(std::string_view path, base::FunctionRef<void(const Place&)> visitor) const;
  void ring_parent(std::string_view path, std::vector<Notice>& notices);

  Places places_;
  std::unordered_map<PeerId, Watcher> peers_;
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
  std::size_t bytes_of_peers_ = 0;
  DataCounts data_;
  std::size_t recursive_ = 0;  ///< How many of them are recursive; while 0 no parent is looked up.
  std::uint64_t rounds_ = 0;
};

}  // namespace latchkey::tree
