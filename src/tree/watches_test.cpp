#include "tree/watches.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"

namespace latchkey::tree {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using wire::EventType;
using wire::WatcherType;
using Kind = Watches::Kind;
using Notices = std::vector<Notice>;

class WatchesTest : public testing::Test {
 protected:
  Notices created(std::string_view path) {
    Notices notices;
    watches.created(path, notices);
    return notices;
  }
  Notices deleted(std::string_view path) {
    Notices notices;
    watches.deleted(path, notices);
    return notices;
  }
  Notices changed(std::string_view path) {
    Notices notices;
    watches.changed(path, notices);
    return notices;
  }

  Watches watches;
};

TEST_F(WatchesTest, ADataWatchHearsOneEventOfItsNode) {
  watches.add(Kind::kData, 1, "/a");
  EXPECT_THAT(created("/a"), ElementsAre(Notice{1, EventType::kCreated, "/a"}));
  EXPECT_THAT(changed("/a"), IsEmpty()) << "it was spent";

  watches.add(Kind::kData, 1, "/a");
  EXPECT_THAT(created("/a/b"), IsEmpty());
  EXPECT_THAT(changed("/a"), ElementsAre(Notice{1, EventType::kDataChanged, "/a"}));
  EXPECT_THAT(deleted("/a"), IsEmpty()) << "it was spent";

  watches.add(Kind::kData, 1, "/a");
  EXPECT_THAT(deleted("/a"), ElementsAre(Notice{1, EventType::kDeleted, "/a"}));
  EXPECT_THAT(created("/a"), IsEmpty()) << "it was spent";
}

TEST_F(WatchesTest, TheEventSaysWhatHappened) {
  watches.add(Kind::kPersistent, 1, "/a");

  EXPECT_THAT(created("/a"), ElementsAre(Notice{1, EventType::kCreated, "/a"}));
  EXPECT_THAT(changed("/a"), ElementsAre(Notice{1, EventType::kDataChanged, "/a"}));
  EXPECT_THAT(created("/a/b"), ElementsAre(Notice{1, EventType::kChildrenChanged, "/a"}));
  EXPECT_THAT(changed("/a/b"), IsEmpty());
  EXPECT_THAT(deleted("/a/b"), ElementsAre(Notice{1, EventType::kChildrenChanged, "/a"}));
  EXPECT_THAT(deleted("/a"), ElementsAre(Notice{1, EventType::kDeleted, "/a"}));
}

TEST_F(WatchesTest, AChildrenWatchHearsOfComingAndGoingAndOfTheEnd) {
  watches.add(Kind::kChildren, 1, "/a");
  EXPECT_THAT(changed("/a"), IsEmpty());
  EXPECT_THAT(created("/a/b"), ElementsAre(Notice{1, EventType::kChildrenChanged, "/a"}));
  EXPECT_THAT(deleted("/a/b"), IsEmpty()) << "it was spent";

  watches.add(Kind::kChildren, 1, "/a");
  EXPECT_THAT(deleted("/a/b"), ElementsAre(Notice{1, EventType::kChildrenChanged, "/a"}));
  watches.add(Kind::kChildren, 1, "/a");
  EXPECT_THAT(deleted("/a"), ElementsAre(Notice{1, EventType::kDeleted, "/a"}));
  EXPECT_EQ(watches.size(), 0U);
}

TEST_F(WatchesTest, TheRootIsAParentToo) {
  watches.add(Kind::kChildren, 1, "/");
  watches.add(Kind::kRecursive, 2, "/");

  EXPECT_THAT(created("/a"), ElementsAre(Notice{2, EventType::kCreated, "/a"},
                                         Notice{1, EventType::kChildrenChanged, "/"}));
  EXPECT_THAT(changed("/"), ElementsAre(Notice{2, EventType::kDataChanged, "/"}));
}

TEST_F(WatchesTest, ADeletionIsToldOnceAndBeforeTheParentsEvent) {
  watches.add(Kind::kChildren, 1, "/a");
  watches.add(Kind::kData, 1, "/a/b");
  watches.add(Kind::kChildren, 1, "/a/b");
  watches.add(Kind::kPersistent, 1, "/a/b");
  watches.add(Kind::kRecursive, 1, "/a/b");
  watches.add(Kind::kRecursive, 1, "/a");

  EXPECT_THAT(deleted("/a/b"), ElementsAre(Notice{1, EventType::kDeleted, "/a/b"},
                                           Notice{1, EventType::kChildrenChanged, "/a"}));
}

TEST_F(WatchesTest, EverybodyWhoWatchesIsTold) {
  watches.add(Kind::kData, 1, "/a");
  watches.add(Kind::kData, 2, "/a");
  watches.add(Kind::kPersistent, 3, "/a");
  watches.add(Kind::kRecursive, 4, "/a");
  watches.add(Kind::kData, 5, "/b");

  EXPECT_THAT(changed("/a"), UnorderedElementsAre(Notice{1, EventType::kDataChanged, "/a"},
                                                  Notice{2, EventType::kDataChanged, "/a"},
                                                  Notice{3, EventType::kDataChanged, "/a"},
                                                  Notice{4, EventType::kDataChanged, "/a"}));
}

TEST_F(WatchesTest, ARecursiveWatchHearsOfEverythingBelowButNotOfChildren) {
  watches.add(Kind::kRecursive, 1, "/a");

  EXPECT_THAT(created("/a/b/c"), ElementsAre(Notice{1, EventType::kCreated, "/a/b/c"}));
  EXPECT_THAT(created("/a/b"), ElementsAre(Notice{1, EventType::kCreated, "/a/b"}));
  EXPECT_THAT(changed("/a/b"), ElementsAre(Notice{1, EventType::kDataChanged, "/a/b"}));
  EXPECT_THAT(deleted("/a/b"), ElementsAre(Notice{1, EventType::kDeleted, "/a/b"}));
  EXPECT_THAT(created("/ab"), IsEmpty());
  EXPECT_THAT(changed("/"), IsEmpty());
}

TEST_F(WatchesTest, ARecursiveWatchHearsFromAnyDepth) {
  PeerId peer = 0;
  for (const char* path : {"/", "/a", "/a/b", "/a/b/c", "/a/b/cd", "/a/bc", "/b"}) {
    watches.add(Kind::kRecursive, ++peer, path);
  }

  std::set<PeerId> told;
  for (const Notice& notice : changed("/a/b/c/d")) told.insert(notice.peer);
  EXPECT_THAT(told, ElementsAre(1U, 2U, 3U, 4U));
  EXPECT_THAT(changed("/"), ElementsAre(Notice{1, EventType::kDataChanged, "/"}));
}

TEST_F(WatchesTest, HowManyHearIsKnownBeforeTheyAreTold) {
  watches.add(Kind::kRecursive, 1, "/");
  watches.add(Kind::kRecursive, 2, "/a/b");
  watches.add(Kind::kChildren, 3, "/a");
  watches.add(Kind::kData, 4, "/a/b");
  watches.add(Kind::kPersistent, 5, "/a/b");
  watches.add(Kind::kData, 6, "/a");
  watches.add(Kind::kRecursive, 7, "/b");

  EXPECT_GE(watches.hearers("/a/b"), 5U);
  EXPECT_EQ(watches.hearers("/a/c"), 2U);
  EXPECT_EQ(watches.hearers("/a/b/c"), 2U + 1U) << "its parent's children are watched too";
  EXPECT_EQ(watches.hearers("/"), 1U);
  EXPECT_THAT(deleted("/a/b"), testing::SizeIs(5));
}

/// A recursive watch anywhere has what is above every change looked for. Hashed one by one, the
/// parts of a path of half a million would take longer than a session has.
TEST(WatchesWork, H89_ADeepPathTakesNoLongerThanALongOne) {
  Watches watches;
  watches.add(Watches::Kind::kRecursive, 1, "/elsewhere");
  std::string deep;
  for (int i = 0; i < 500'000; ++i) deep += "/a";
  Notices notices;

  for (int i = 0; i < 20; ++i) watches.changed(deep, notices);

  EXPECT_THAT(notices, IsEmpty());
}

TEST_F(WatchesTest, AOneShotWatchTakesNothingFromAPersistentOne) {
  watches.add(Kind::kPersistent, 1, "/a");
  watches.add(Kind::kData, 1, "/a");
  watches.add(Kind::kChildren, 1, "/a");

  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(changed("/a"), ElementsAre(Notice{1, EventType::kDataChanged, "/a"}));
    EXPECT_THAT(created("/a/b"), ElementsAre(Notice{1, EventType::kChildrenChanged, "/a"}));
  }
}

TEST_F(WatchesTest, ARecursiveWatchHidesNoOtherOnItsPath) {
  watches.add(Kind::kRecursive, 1, "/a");
  watches.add(Kind::kChildren, 1, "/a");

  EXPECT_THAT(created("/a/b"), ElementsAre(Notice{1, EventType::kCreated, "/a/b"},
                                           Notice{1, EventType::kChildrenChanged, "/a"}));
  EXPECT_THAT(created("/a/c"), ElementsAre(Notice{1, EventType::kCreated, "/a/c"}));
}

TEST_F(WatchesTest, AddingTwiceIsAddingOnce) {
  for (const Kind kind : {Kind::kData, Kind::kChildren, Kind::kPersistent, Kind::kRecursive}) {
    watches.add(kind, 1, "/a");
    watches.add(kind, 1, "/a");
  }
  EXPECT_EQ(watches.size(), 6U);

  watches.drop(1);

  EXPECT_EQ(watches.size(), 0U);
}

TEST_F(WatchesTest, HasLooksAtTheAskingConnectionAndTheExactPath) {
  watches.add(Kind::kData, 1, "/a");
  watches.add(Kind::kRecursive, 2, "/a");

  EXPECT_TRUE(watches.has(WatcherType::kData, 1, "/a"));
  EXPECT_FALSE(watches.has(WatcherType::kChildren, 1, "/a"));
  EXPECT_TRUE(watches.has(WatcherType::kAny, 1, "/a"));
  EXPECT_TRUE(watches.has(WatcherType::kData, 2, "/a"));
  EXPECT_TRUE(watches.has(WatcherType::kChildren, 2, "/a"));
  EXPECT_FALSE(watches.has(WatcherType::kAny, 2, "/a/b"));
  EXPECT_FALSE(watches.has(WatcherType::kAny, 3, "/a"));
  EXPECT_FALSE(watches.has(WatcherType(7), 1, "/a"));
}

TEST_F(WatchesTest, RemoveTakesOneTypeOfOneConnection) {
  watches.add(Kind::kData, 1, "/a");
  watches.add(Kind::kChildren, 1, "/a");
  watches.add(Kind::kData, 2, "/a");

  EXPECT_TRUE(watches.remove(WatcherType::kData, 1, "/a"));

  EXPECT_FALSE(watches.remove(WatcherType::kData, 1, "/a"));
  EXPECT_FALSE(watches.remove(WatcherType::kChildren, 2, "/a"));
  EXPECT_FALSE(watches.remove(WatcherType::kAny, 3, "/a"));
  EXPECT_FALSE(watches.remove(WatcherType::kAny, 1, "/b"));
  EXPECT_THAT(changed("/a"), ElementsAre(Notice{2, EventType::kDataChanged, "/a"}));
  EXPECT_THAT(created("/a/b"), ElementsAre(Notice{1, EventType::kChildrenChanged, "/a"}));
}

TEST_F(WatchesTest, RemoveTakesTheHalfOfAPersistentWatch) {
  watches.add(Kind::kPersistent, 1, "/a");
  watches.add(Kind::kPersistent, 2, "/a");

  EXPECT_TRUE(watches.remove(WatcherType::kData, 1, "/a"));
  EXPECT_TRUE(watches.remove(WatcherType::kChildren, 2, "/a"));

  EXPECT_THAT(changed("/a"), ElementsAre(Notice{2, EventType::kDataChanged, "/a"}));
  EXPECT_THAT(created("/a/b"), ElementsAre(Notice{1, EventType::kChildrenChanged, "/a"}));
  EXPECT_EQ(deleted("/a").size(), 2U) << "both halves hear of the end";
  EXPECT_FALSE(watches.has(WatcherType::kData, 1, "/a"));
  EXPECT_TRUE(watches.has(WatcherType::kChildren, 1, "/a"));
  EXPECT_TRUE(watches.remove(WatcherType::kAny, 1, "/a"));
  EXPECT_TRUE(watches.remove(WatcherType::kAny, 2, "/a"));
  EXPECT_EQ(watches.size(), 0U);
}

TEST_F(WatchesTest, RemoveTakesTheHalfOfARecursiveWatch) {
  watches.add(Kind::kRecursive, 1, "/a");

  EXPECT_TRUE(watches.remove(WatcherType::kData, 1, "/a"));

  EXPECT_THAT(created("/a/b"), IsEmpty());
  EXPECT_THAT(changed("/a/b"), IsEmpty());
  EXPECT_THAT(deleted("/a/b"), ElementsAre(Notice{1, EventType::kDeleted, "/a/b"}));
}

TEST_F(WatchesTest, H91_AConnectionTakesItsWatchesAlong) {
  watches.add(Kind::kData, 1, "/a");
  watches.add(Kind::kRecursive, 1, "/");
  watches.add(Kind::kPersistent, 1, "/b");
  watches.add(Kind::kData, 2, "/a");
  ASSERT_EQ(watches.count(1), 5U);

  watches.drop(1);
  watches.drop(3);

  EXPECT_THAT(deleted("/a"), ElementsAre(Notice{2, EventType::kDeleted, "/a"}));
  EXPECT_THAT(deleted("/b"), IsEmpty());
  EXPECT_EQ(watches.count(1), 0U);
}

TEST_F(WatchesTest, H91_CountsFollowEveryWatch) {
  watches.add(Kind::kData, 1, "/a");
  watches.add(Kind::kPersistent, 1, "/b");
  watches.add(Kind::kData, 2, "/a");

  EXPECT_EQ(watches.size(), 4U) << "a persistent one counts twice";
  EXPECT_EQ(watches.count(1), 3U);
  EXPECT_EQ(watches.count(2), 1U);
  EXPECT_EQ(watches.watched_paths(), 2U);
  EXPECT_EQ(watches.watching_peers(), 2U);

  changed("/a");

  EXPECT_EQ(watches.size(), 2U);
  EXPECT_EQ(watches.watched_paths(), 1U);
  EXPECT_EQ(watches.watching_peers(), 1U) << "spent watches keep nobody here";
}

TEST_F(WatchesTest, MovingKeepsEverything) {
  watches.add(Kind::kData, 1, "/a");
  watches.add(Kind::kRecursive, 2, "/");

  Watches moved = std::move(watches);
  Notices notices;
  moved.changed("/a", notices);
  moved.drop(2);

  EXPECT_EQ(notices.size(), 2U);
  EXPECT_EQ(moved.size(), 0U);
}

/// The same rules told slowly: two tables, every watch looked at for every event.
class Model {
 public:
  void add(Kind kind, PeerId peer, const std::string& path) {
    if (kind != Kind::kChildren) data_.insert({peer, path, kind});
    if (kind != Kind::kData) children_.insert({peer, path, kind});
  }
  bool remove(WatcherType type, PeerId peer, const std::string& path) {
    const auto meant = [&](const Watch& watch) { return watch.peer == peer && watch.path == path; };
    std::size_t removed = 0;
    if (type != WatcherType::kChildren) removed += std::erase_if(data_, meant);
    if (type != WatcherType::kData) removed += std::erase_if(children_, meant);
    return removed > 0;
  }
  bool has(WatcherType type, PeerId peer, const std::string& path) const {
    return Model(*this).remove(type, peer, path);
  }
  void drop(PeerId peer) {
    std::erase_if(data_, [&](const Watch& watch) { return watch.peer == peer; });
    std::erase_if(children_, [&](const Watch& watch) { return watch.peer == peer; });
  }

  std::vector<Notice> fire(EventType type, const std::string& path) {
    std::set<PeerId> told = trigger(data_, type, path);
    if (type == EventType::kDeleted) told.merge(trigger(children_, type, path));
    std::vector<Notice> notices;
    for (const PeerId peer : told) notices.push_back({peer, type, path});
    if (type == EventType::kDataChanged) return notices;
    const std::size_t slash = path.rfind('/');
    const std::string parent = slash == 0 ? "/" : path.substr(0, slash);
    for (const PeerId peer : trigger(children_, EventType::kChildrenChanged, parent)) {
      notices.push_back({peer, EventType::kChildrenChanged, parent});
    }
    return notices;
  }

  std::size_t size() const { return data_.size() + children_.size(); }
  std::size_t count(PeerId wanted) const {
    std::size_t count = 0;
    each([&](const Watch& watch) { count += watch.peer == wanted ? 1 : 0; });
    return count;
  }
  std::size_t paths() const {
    std::set<std::string> paths;
    each([&](const Watch& watch) { paths.insert(watch.path); });
    return paths.size();
  }
  std::size_t peers() const {
    std::set<PeerId> peers;
    each([&](const Watch& watch) { peers.insert(watch.peer); });
    return peers.size();
  }

 private:
  struct Watch {
    PeerId peer;
    std::string path;
    Kind kind;
    friend auto operator<=>(const Watch&, const Watch&) = default;
  };
  using Table = std::set<Watch>;

  template <class Visit>
  void each(Visit visit) const {
    for (const Watch& watch : data_) visit(watch);
    for (const Watch& watch : children_) visit(watch);
  }

  static std::set<PeerId> trigger(Table& table, EventType type, const std::string& path) {
    std::set<PeerId> told;
    for (const Watch& watch : table) {
      const std::string prefix = watch.path == "/" ? "/" : watch.path + "/";
      const bool is_below = path != watch.path && path.starts_with(prefix);
      const bool is_recursive = watch.kind == Kind::kRecursive;
      if (is_recursive && type == EventType::kChildrenChanged) continue;
      if (watch.path == path || (is_recursive && is_below)) {
        told.insert(watch.peer);
      }
    }
    std::erase_if(table, [&](const Watch& watch) {
      return watch.path == path && (watch.kind == Kind::kData || watch.kind == Kind::kChildren);
    });
    return told;
  }

  Table data_;
  Table children_;
};

class WatchStorm {
 public:
  explicit WatchStorm(std::uint64_t seed) : random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      if (i % 10 == 0) check_counts();
    }
    for (PeerId peer = 0; peer < kPeers; ++peer) watches_.drop(peer);
    EXPECT_EQ(watches_.size(), 0U);
    EXPECT_EQ(watches_.watched_paths(), 0U);
    EXPECT_EQ(watches_.watching_peers(), 0U);
  }

 private:
  static constexpr PeerId kPeers = 6;

  std::string path() {
    static const std::vector<std::string> paths{"/a",     "/b",  "/a/a",  "/a/b",
                                                "/a/a/a", "/ab", "/a/a/b"};
    return paths[random_.below(paths.size())];
  }

  void step() {
    const PeerId peer = random_.below(kPeers);
    const std::string path = random_.below(8) == 0 ? "/" : this->path();
    const auto type = WatcherType(static_cast<int>(1 + random_.below(3)));
    switch (random_.below(12)) {
      case 0: watches_.drop(peer); return model_.drop(peer);
      case 1:
      case 2: EXPECT_EQ(watches_.remove(type, peer, path), model_.remove(type, peer, path)); return;
      case 3:
      case 4:
      case 5: return fire(path);
      default:
        const auto kind = Kind(random_.below(4));
        add(kind, peer, path);
        model_.add(kind, peer, path);
        EXPECT_EQ(watches_.has(type, peer, path), model_.has(type, peer, path));
    }
  }

  void fire(const std::string& path) {
    std::vector<Notice> notices;
    // The root is neither made nor deleted.
    EventType type = EventType::kDataChanged;
    if (path != "/") type = EventType(static_cast<int>(1 + random_.below(3)));
    if (type == EventType::kCreated) watches_.created(path, notices);
    if (type == EventType::kDeleted) watches_.deleted(path, notices);
    if (type == EventType::kDataChanged) watches_.changed(path, notices);
    // Only the order that one connection sees is promised.
    const auto by_peer = [](const Notice& a, const Notice& b) { return a.peer < b.peer; };
    std::vector<Notice> expected = model_.fire(type, path);
    std::stable_sort(notices.begin(), notices.end(), by_peer);
    std::stable_sort(expected.begin(), expected.end(), by_peer);
    EXPECT_EQ(notices, expected) << static_cast<int>(type) << " on " << path;
  }

  void check_counts() {
    EXPECT_EQ(watches_.size(), model_.size());
    EXPECT_EQ(watches_.watched_paths(), model_.paths());
    EXPECT_EQ(watches_.watching_peers(), model_.peers());
    for (PeerId peer = 0; peer < kPeers; ++peer) {
      EXPECT_EQ(watches_.count(peer), model_.count(peer)) << peer;
    }
    std::set<PeerId> peers;
    std::set<std::string, std::less<>> paths;
    std::size_t heard = 0;
    watches_.visit_data([&](PeerId peer, std::string_view path) {
      peers.insert(peer);
      paths.emplace(path);
      ++heard;
    });
    EXPECT_EQ(watches_.data_counts().peers, peers.size());
    EXPECT_EQ(watches_.data_counts().paths, paths.size());
    EXPECT_EQ(watches_.data_counts().watches, heard);
    std::size_t bytes = 0;
    for (PeerId peer = 0; peer < kPeers; ++peer) bytes += watches_.bytes(peer);
    EXPECT_EQ(watches_.bytes_of_peers(), bytes);
  }

  /// It is known before what it will come to.
  void add(Watches::Kind kind, PeerId peer, const std::string& path) {
    const std::size_t size = watches_.size();
    const std::size_t bytes = watches_.bytes();
    const std::size_t peer_bytes = watches_.bytes(peer);
    const Watches::Addition more = watches_.would_add(kind, peer, path);
    watches_.add(kind, peer, path);
    EXPECT_EQ(watches_.size(), size + more.watches);
    EXPECT_EQ(watches_.bytes(), bytes + more.bytes);
    EXPECT_EQ(watches_.bytes(peer), peer_bytes + more.peer_bytes);
    EXPECT_EQ(watches_.would_add(kind, peer, path).watches, 0U);
  }

  base::Random random_;
  Watches watches_;
  Model model_;
};

TEST(WatchesRandom, H91_NoEventIsLostAndNoWatchIsLeaked) {
  for (std::uint64_t seed = 1; seed <= 50 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WatchStorm(seed).run(300);
  }
}

TEST(WatchesRandom, H91_AHerdComesAndGoesWithoutATrace) {
  Watches watches;
  for (PeerId peer = 0; peer < 2'000; ++peer) {
    watches.add(Kind::kData, peer, "/herd");
    watches.add(peer % 2 == 0 ? Kind::kPersistent : Kind::kChildren, peer, "/herd");
    watches.add(Kind::kData, peer, "/own/" + std::to_string(peer));
  }

  std::vector<Notice> notices;
  watches.deleted("/herd", notices);
  EXPECT_EQ(notices.size(), 2'000U);
  for (PeerId peer = 0; peer < 2'000; ++peer) watches.drop(peer * 7 % 2'000);

  EXPECT_EQ(watches.size(), 0U);
  EXPECT_EQ(watches.watched_paths(), 0U);
  EXPECT_EQ(watches.watching_peers(), 0U);
}

}  // namespace
}  // namespace latchkey::tree
