#include "session/watch_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/frame.hpp"

namespace latchkey::session {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using wire::EventType;
using wire::WatcherType;

class WatchTableTest : public testing::Test {
 protected:
  void add(WatchId id, WatchOn on, const std::string& path,
           WatchTable::Kin kin = WatchTable::Kin::kNo) {
    table.add(path, {id, on, kin, [this, id](const WatchEvent&) { fired.push_back(id); }});
  }
  std::vector<WatchId> fire(EventType type, const std::string& path) {
    fired.clear();
    for (const Watcher& watcher : table.fire(type, path)) watcher({});
    return fired;
  }
  static std::vector<WatchId> ids(const std::vector<WatchTable::Watch>& watches) {
    std::vector<WatchId> result;
    for (const WatchTable::Watch& watch : watches) result.push_back(watch.id);
    return result;
  }
  /// The frames of a restore, decoded as setWatches2.
  std::vector<wire::SetWatches2> restore(std::size_t max_frame, wire::Op& op) const {
    std::string out;
    int frames = 0;
    table.append_restore(out, 7, max_frame, frames);
    wire::FrameSplitter splitter(1U << 20U);
    splitter.feed(out);
    std::vector<wire::SetWatches2> result;
    while (const auto frame = splitter.next()) {
      EXPECT_LE(frame->size(), max_frame);
      wire::RequestHeader header;
      wire::Reader reader(*frame);
      reader(header);
      op = header.op;
      EXPECT_EQ(header.xid, wire::kSetWatchesXid);
      wire::SetWatches2 message;
      reader(message.relative_zxid, message.data, message.exists, message.children);
      if (op == wire::Op::kSetWatches2) reader(message.persistent, message.persistent_recursive);
      EXPECT_TRUE(reader.done());
      result.push_back(message);
    }
    EXPECT_EQ(result.size(), static_cast<std::size_t>(frames));
    return result;
  }

  WatchTable table;
  std::vector<WatchId> fired;
};

TEST_F(WatchTableTest, WhoHearsWhichEvent) {
  const auto fill = [&] {
    table.clear();
    add(1, WatchOn::kData, "/a");
    add(2, WatchOn::kExists, "/a");
    add(3, WatchOn::kChildren, "/a");
    add(4, WatchOn::kPersistent, "/a");
    add(5, WatchOn::kRecursive, "/a");
    add(6, WatchOn::kRecursive, "/");
    add(7, WatchOn::kData, "/b");
  };

  fill();
  EXPECT_THAT(fire(EventType::kCreated, "/a"), ElementsAre(1, 2, 4, 5, 6));
  fill();
  EXPECT_THAT(fire(EventType::kDataChanged, "/a"), ElementsAre(1, 2, 4, 5, 6));
  fill();
  EXPECT_THAT(fire(EventType::kDeleted, "/a"), ElementsAre(1, 2, 3, 4, 5, 6));
  fill();
  EXPECT_THAT(fire(EventType::kChildrenChanged, "/a"), ElementsAre(3, 4));
  fill();
  EXPECT_THAT(fire(EventType{99}, "/a"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(fire(EventType::kDeleted, "/a"), ElementsAre(4, 5, 6)) << "only the lasting are left";
}

TEST_F(WatchTableTest, RecursiveReachesDownPartByPart) {
  add(1, WatchOn::kRecursive, "/a/b");

  EXPECT_THAT(fire(EventType::kCreated, "/a/b/c/d"), ElementsAre(1));
  EXPECT_THAT(fire(EventType::kCreated, "/a/bc"), IsEmpty());
  EXPECT_THAT(fire(EventType::kCreated, "/a"), IsEmpty());
  EXPECT_THAT(fire(EventType::kCreated, "/"), IsEmpty());
  EXPECT_THAT(fire(EventType::kCreated, ""), IsEmpty());
  EXPECT_THAT(fire(EventType::kCreated, "no slash"), IsEmpty());
}

TEST_F(WatchTableTest, RemoveSaysWhatIsLeftWithoutAWatcher) {
  add(1, WatchOn::kData, "/a");
  add(2, WatchOn::kData, "/a");

  EXPECT_FALSE(table.remove(1));
  const auto place = table.remove(2);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->first, WatchOn::kData);
  EXPECT_EQ(place->second, "/a");
  EXPECT_FALSE(table.remove(2));

  EXPECT_FALSE(table.watches(WatchOn::kData, "/a"));
  EXPECT_TRUE(table.empty());
}

TEST_F(WatchTableTest, OneThatFiredCannotBeRemoved) {
  add(1, WatchOn::kData, "/a");
  fire(EventType::kDeleted, "/a");
  add(2, WatchOn::kData, "/a");

  EXPECT_FALSE(table.remove(1));

  EXPECT_TRUE(table.watches(WatchOn::kData, "/a"));
}

TEST_F(WatchTableTest, RemoveAllTakesWhatTheTypeCovers) {
  const auto fill = [&] {
    table.clear();
    add(1, WatchOn::kData, "/a");
    add(2, WatchOn::kExists, "/a");
    add(3, WatchOn::kChildren, "/a");
    add(4, WatchOn::kPersistent, "/a");
    add(5, WatchOn::kRecursive, "/a");
    add(6, WatchOn::kData, "/b");
  };

  fill();
  EXPECT_THAT(ids(table.remove_all("/a", WatcherType::kData)), UnorderedElementsAre(1, 2));
  fill();
  EXPECT_THAT(ids(table.remove_all("/a", WatcherType::kChildren)), UnorderedElementsAre(3));
  fill();
  EXPECT_THAT(ids(table.remove_all("/a", WatcherType::kAny)), UnorderedElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(table.size(), 1U);
}

TEST_F(WatchTableTest, TakesOutKinAndLeavesTheRest) {
  add(1, WatchOn::kData, "/a", WatchTable::Kin::kYes);
  add(2, WatchOn::kData, "/a");
  add(3, WatchOn::kChildren, "/a", WatchTable::Kin::kYes);

  EXPECT_THAT(ids(table.take_kin("/a")), ElementsAre(1));
  EXPECT_THAT(ids(table.take_kin("/a")), IsEmpty());
  EXPECT_THAT(ids(table.take_kin("/none")), IsEmpty());

  EXPECT_EQ(table.size(), 2U);
  EXPECT_FALSE(table.remove(1));
}

TEST_F(WatchTableTest, ClearTakesOutEverything) {
  add(1, WatchOn::kData, "/a");
  add(2, WatchOn::kRecursive, "/b");

  EXPECT_THAT(ids(table.clear()), UnorderedElementsAre(1, 2));

  EXPECT_TRUE(table.empty());
  EXPECT_FALSE(table.remove(1));
}

TEST_F(WatchTableTest, H63_RestoresInFramesUnderTheLimit) {
  for (WatchId id = 1; id <= 100; ++id) add(id, WatchOn::kData, "/data/" + std::to_string(id));
  for (WatchId id = 101; id <= 200; ++id)
    add(id, WatchOn::kChildren, "/list/" + std::to_string(id));
  wire::Op op{};

  const auto frames = restore(256, op);

  EXPECT_EQ(op, wire::Op::kSetWatches);
  EXPECT_GT(frames.size(), 10U);
  std::size_t data = 0;
  std::size_t children = 0;
  for (const auto& frame : frames) {
    EXPECT_EQ(frame.relative_zxid, 7);
    EXPECT_GT(frame.data.size() + frame.children.size(), 4U) << "frames are filled";
    data += frame.data.size();
    children += frame.children.size();
  }
  EXPECT_EQ(data, 100U);
  EXPECT_EQ(children, 100U);
}

TEST_F(WatchTableTest, RestoresEachPathOnceHoweverManyWatchIt) {
  for (WatchId id = 1; id <= 5; ++id) add(id, WatchOn::kExists, "/a");
  wire::Op op{};

  const auto frames = restore(1'024, op);

  ASSERT_EQ(frames.size(), 1U);
  EXPECT_THAT(frames[0].exists, ElementsAre("/a"));
}

TEST_F(WatchTableTest, RestoresLastingOnesLastForOlderServersKeepTheLastMode) {
  add(1, WatchOn::kPersistent, "/a");
  add(2, WatchOn::kRecursive, "/r");
  for (WatchId id = 3; id < 30; ++id) add(id, WatchOn::kData, "/data/" + std::to_string(id));
  wire::Op op{};

  const auto frames = restore(256, op);

  EXPECT_EQ(op, wire::Op::kSetWatches2);
  EXPECT_THAT(frames.back().persistent, ElementsAre("/a"));
  EXPECT_THAT(frames.back().persistent_recursive, ElementsAre("/r"));
}

TEST_F(WatchTableTest, AnEmptyTableRestoresNothing) {
  wire::Op op{};

  EXPECT_TRUE(restore(1'024, op).empty());
}

}  // namespace
}  // namespace latchkey::session
