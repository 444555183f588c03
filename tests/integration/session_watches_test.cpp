#include <gmock/gmock.h>

#include "integration/session_fixture.hpp"

/// Watches of all kinds, over reconnects too.
namespace latchkey::test_support {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using wire::Op;

TEST_P(SessionTest, AnExistsWatchFiresOnceOnCreationChangeAndDeletion) {
  Session session = open();
  const std::string path = fresh_path();
  Events events;

  ASSERT_TRUE(ok(session.exists(path, soon(), note(events))));
  make_node(session, path);
  ASSERT_TRUE(events.wait_for(1));
  ASSERT_TRUE(ok(session.exists(path, soon(), note(events))));
  ASSERT_TRUE(ok(session.set(path, "a", soon())));
  ASSERT_TRUE(ok(session.set(path, "b", soon())));
  ASSERT_TRUE(events.wait_for(2));
  ASSERT_TRUE(ok(session.exists(path, soon(), note(events))));
  ASSERT_TRUE(ok(session.remove(path, soon())));
  ASSERT_TRUE(events.wait_for(3));
  make_node(session, path);
  ASSERT_TRUE(ok(session.sync(path, soon())));

  EXPECT_THAT(events.all(),
              ElementsAre("created " + path, "data changed " + path, "deleted " + path));
}

TEST_P(SessionTest, AGetWatchIsSetOnlyOnANodeThatIsThere) {
  Session session = open();
  const std::string path = fresh_path();
  Events events;

  EXPECT_TRUE(fails_with(session.get(path, soon(), note(events)), Code::kNoNode));
  make_node(session, path);
  ASSERT_TRUE(ok(session.get(path, soon(), note(events))));
  EXPECT_EQ(service().watches_of(session.id()), 1);
  ASSERT_TRUE(ok(session.remove(path, soon())));
  ASSERT_TRUE(events.wait_for(1));

  EXPECT_THAT(events.all(), ElementsAre("deleted " + path));
  EXPECT_EQ(service().watches_of(session.id()), 0);
}

TEST_P(SessionTest, AChildrenWatchFiresForAChildAndForTheNodeItself) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path);
  Events events;

  ASSERT_TRUE(ok(session.children(path, soon(), note(events))));
  make_node(session, path + "/a");
  ASSERT_TRUE(events.wait_for(1));
  ASSERT_TRUE(ok(session.remove(path + "/a", soon())));
  ASSERT_TRUE(ok(session.children(path, soon(), note(events))));
  ASSERT_TRUE(ok(session.remove(path, soon())));
  ASSERT_TRUE(events.wait_for(2));

  EXPECT_THAT(events.all(), ElementsAre("children changed " + path, "deleted " + path));
}

TEST_P(SessionTest, AnEventComesBeforeAnyAnswerThatShowsTheChange) {
  Session watcher = open();
  Session writer = open();
  const std::string path = fresh_path();
  make_node(writer, path, "old");
  ASSERT_TRUE(ok(watcher.sync(path, soon())));
  Events order;
  ASSERT_TRUE(ok(watcher.get(path, soon(), note(order))));

  ASSERT_TRUE(ok(writer.set(path, "new", soon())));
  watcher.async(Sync{path}, soon(), [](const Result<void>&) {});
  watcher.async(Get{path}, soon(), [order](const Result<Node>& node) { order.add(node->data); });

  ASSERT_TRUE(order.wait_for(2));
  EXPECT_THAT(order.all(), ElementsAre("data changed " + path, "new"));
}

TEST_P(SessionTest, APersistentWatchReportsEveryChangeOfItsNode) {
  Session session = open();
  const std::string path = fresh_path();
  Events events;

  ASSERT_TRUE(ok(session.call(AddWatch{path, WatchMode::kPersistent, note(events)}, soon())));
  make_node(session, path);
  ASSERT_TRUE(ok(session.set(path, "a", soon())));
  make_node(session, path + "/child");
  make_node(session, path + "/child/deep");
  ASSERT_TRUE(ok(session.set(path, "b", soon())));

  ASSERT_TRUE(events.wait_for(4));
  EXPECT_THAT(events.all(), ElementsAre("created " + path, "data changed " + path,
                                        "children changed " + path, "data changed " + path));
}

TEST_P(SessionTest, ARecursiveWatchReportsTheWholeTree) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path);
  Events events;

  ASSERT_TRUE(
      ok(session.call(AddWatch{path, WatchMode::kPersistentRecursive, note(events)}, soon())));
  make_node(session, path + "/a");
  make_node(session, path + "/a/b");
  ASSERT_TRUE(ok(session.set(path + "/a/b", "x", soon())));
  ASSERT_TRUE(ok(session.remove(path + "/a/b", soon())));

  ASSERT_TRUE(events.wait_for(4));
  EXPECT_THAT(events.all(),
              ElementsAre("created " + path + "/a", "created " + path + "/a/b",
                          "data changed " + path + "/a/b", "deleted " + path + "/a/b"));
}

TEST_P(SessionTest, OneShotAndPersistentWatchesOnOnePathDoNotDisturbEachOther) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path);
  Events lasting;
  Events recursive;
  Events once;

  ASSERT_TRUE(ok(session.get(path, soon(), note(once))));
  ASSERT_TRUE(ok(session.call(AddWatch{path, WatchMode::kPersistent, note(lasting)}, soon())));
  ASSERT_TRUE(ok(session.exists(path, soon(), note(once))));
  ASSERT_TRUE(ok(session.children(path, soon(), note(once))));
  ASSERT_TRUE(ok(session.set(path, "a", soon())));
  make_node(session, path + "/child");
  ASSERT_TRUE(ok(session.set(path, "b", soon())));
  make_node(session, path + "/other");

  ASSERT_TRUE(lasting.wait_for(4));
  EXPECT_THAT(lasting.all(), ElementsAre("data changed " + path, "children changed " + path,
                                         "data changed " + path, "children changed " + path));
  EXPECT_THAT(once.all(), ElementsAre("data changed " + path, "data changed " + path,
                                      "children changed " + path));
}

TEST_P(SessionTest, OneShotAndRecursiveWatchesOnOnePathDoNotDisturbEachOther) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path);
  Events recursive;
  Events once;

  ASSERT_TRUE(
      ok(session.call(AddWatch{path, WatchMode::kPersistentRecursive, note(recursive)}, soon())));
  ASSERT_TRUE(ok(session.get(path, soon(), note(once))));
  ASSERT_TRUE(ok(session.children(path, soon(), note(once))));
  ASSERT_TRUE(ok(session.set(path, "a", soon())));
  make_node(session, path + "/child");
  ASSERT_TRUE(ok(session.set(path, "b", soon())));
  ASSERT_TRUE(ok(session.set(path + "/child", "c", soon())));

  ASSERT_TRUE(recursive.wait_for(4));
  EXPECT_THAT(recursive.all(),
              ElementsAre("data changed " + path, "created " + path + "/child",
                          "data changed " + path, "data changed " + path + "/child"));
  EXPECT_THAT(once.all(), ElementsAre("data changed " + path, "children changed " + path));
}

TEST_P(SessionTest, AChildrenWatchStaysWhenARecursiveOneJoinsIt) {
  // Servers before 3.9 keep one mode for each path, and a recursive one hides a children watch.
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path);
  Events events;

  ASSERT_TRUE(ok(session.children(path, soon(), note(events))));
  ASSERT_TRUE(
      ok(session.call(AddWatch{path, WatchMode::kPersistentRecursive, note(events)}, soon())));
  make_node(session, path + "/child");
  ASSERT_TRUE(ok(session.remove(path + "/child", soon())));

  ASSERT_TRUE(events.wait_for(3));
  EXPECT_THAT(events.all(),
              UnorderedElementsAre("created " + path + "/child", "children changed " + path,
                                   "deleted " + path + "/child"));
}

TEST_P(SessionTest, H62_RemovingWatchesEndsThemHereAndAtTheServer) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path);
  Events data;
  Events children;
  Events lasting;
  ASSERT_TRUE(ok(session.get(path, soon(), note(data))));
  ASSERT_TRUE(ok(session.children(path, soon(), note(children))));

  ASSERT_TRUE(ok(session.call(RemoveWatches{path, WatchKind::kData}, soon())));
  ASSERT_TRUE(data.wait_for(1));
  EXPECT_THAT(data.all(), ElementsAre("watch removed " + path));
  EXPECT_TRUE(
      fails_with(session.call(RemoveWatches{path, WatchKind::kData}, soon()), Code::kNoWatcher));

  ASSERT_TRUE(ok(session.call(AddWatch{path, WatchMode::kPersistent, note(lasting)}, soon())));
  ASSERT_TRUE(ok(session.call(RemoveWatches{path, WatchKind::kAny}, soon())));
  ASSERT_TRUE(lasting.wait_for(1));
  ASSERT_TRUE(children.wait_for(1));
  EXPECT_EQ(service().watches_of(session.id()), 0);
  ASSERT_TRUE(ok(session.set(path, "x", soon())));
  EXPECT_EQ(data.size() + children.size() + lasting.size(), 3U);
}

TEST_P(SessionTest, WatchersHearThatTheSessionIsOver) {
  Session session = open();
  const std::string path = fresh_path();
  Events events;
  ASSERT_TRUE(ok(session.exists(path, soon(), note(events))));
  ASSERT_TRUE(ok(session.call(AddWatch{path, WatchMode::kPersistent, note(events)}, soon())));

  ASSERT_TRUE(ok(session.close(soon())));

  ASSERT_TRUE(events.wait_for(2));
  EXPECT_THAT(events.all(), ElementsAre("session over ", "session over "));
}

TEST_P(SessionTest, WatchesOfEveryKindOutliveAReconnect) {
  FaultProxy proxy(service().follower());
  Session session = open_session(proxy.connect_string());
  Session other = open();
  const std::string path = fresh_path();
  make_node(session, path);
  Events events;
  ASSERT_TRUE(ok(session.get(path, soon(), note(events))));
  ASSERT_TRUE(ok(session.children(path, soon(), note(events))));
  ASSERT_TRUE(ok(session.exists(path + "-later", soon(), note(events))));
  ASSERT_TRUE(
      ok(session.call(AddWatch{path + "-p", WatchMode::kPersistent, note(events)}, soon())));
  ASSERT_TRUE(
      ok(session.call(AddWatch{path, WatchMode::kPersistentRecursive, note(events)}, soon())));

  proxy.cut_all();
  ASSERT_TRUE(ok(session.sync(path, soon())));
  ASSERT_TRUE(ok(other.sync(path, soon())));
  ASSERT_TRUE(ok(other.set(path, "x", soon())));
  make_node(other, path + "/child");
  make_node(other, path + "-later");
  make_node(other, path + "-p");

  EXPECT_TRUE(events.wait_for(6));
  EXPECT_THAT(events.all(),
              UnorderedElementsAre("data changed " + path, "data changed " + path,
                                   "children changed " + path, "created " + path + "/child",
                                   "created " + path + "-later", "created " + path + "-p"));
}

TEST_P(SessionTest, WhatChangedWhileAwayIsReportedAfterTheReconnect) {
  FaultProxy proxy(service().follower());
  States states;
  Session session = open_session(proxy.connect_string(), watched(states, quick(60s)));
  Session other = open();
  const std::string path = fresh_path();
  for (const char* part : {"", "-gone", "-parent"}) make_node(session, path + part);
  Events events;
  ASSERT_TRUE(ok(session.get(path, soon(), note(events))));
  ASSERT_TRUE(ok(session.get(path + "-gone", soon(), note(events))));
  ASSERT_TRUE(ok(session.children(path + "-parent", soon(), note(events))));
  ASSERT_TRUE(ok(session.exists(path + "-new", soon(), note(events))));
  ASSERT_TRUE(ok(other.sync(path, soon())));

  proxy.refuse();
  proxy.cut_all();
  ASSERT_TRUE(reaches(states, SessionState::kSuspended));
  ASSERT_TRUE(ok(other.set(path, "x", soon())));
  ASSERT_TRUE(ok(other.remove(path + "-gone", soon())));
  make_node(other, path + "-parent/child");
  make_node(other, path + "-new");
  proxy.accept();

  ASSERT_TRUE(events.wait_for(4));
  EXPECT_THAT(
      events.all(),
      UnorderedElementsAre("data changed " + path, "deleted " + path + "-gone",
                           "children changed " + path + "-parent", "created " + path + "-new"));
}

TEST_P(SessionTest, H30_H61_NodeWatchersNeverHearOfReconnects) {
  FaultProxy proxy(service().follower());
  Session session = open_session(proxy.connect_string());
  const std::string path = fresh_path();
  make_node(session, path);
  Events events;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(ok(session.exists(path + std::to_string(i), soon(), note(events))));
  }
  ASSERT_TRUE(ok(session.call(AddWatch{path, WatchMode::kPersistent, note(events)}, soon())));

  for (int i = 0; i < 12; ++i) {
    if (i % 2 == 0) proxy.cut_all();
    if (i % 2 == 1) proxy.reset_all();
    ASSERT_TRUE(ok(session.get(path, soon())));
  }

  EXPECT_THAT(events.all(), IsEmpty());
  ASSERT_TRUE(ok(session.set(path, "x", soon())));
  make_node(session, path + "49");
  ASSERT_TRUE(events.wait_for(2));
  EXPECT_THAT(events.all(), ElementsAre("data changed " + path, "created " + path + "49"));
}

TEST_P(SessionTest, H63_FortyThousandWatchesAreRestoredInChunks) {
  FaultProxy proxy(service().follower());
  Session session = open_session(proxy.connect_string(), quick(60s));
  const std::string path = fresh_path();
  const std::string filler(40, 'w');
  constexpr int kCount = 40'000;
  Events events;
  Recorder<bool> answers;
  for (int i = 0; i < kCount; ++i) {
    // In portions: a session takes 10,000 requests at once.
    ASSERT_TRUE(i % 5'000 != 0 || answers.wait_for(static_cast<std::size_t>(i)));
    session.async(Exists{path + "-" + filler + std::to_string(i), note(events)}, soon(),
                  [answers](const auto& result) { answers.add(bool(result)); });
  }
  ASSERT_TRUE(answers.wait_for(kCount));
  proxy.log().clear();

  proxy.cut_all();
  ASSERT_TRUE(ok(session.exists(path, soon())));

  EXPECT_GT(proxy.log().count(requests_of(Op::kSetWatches)), 10U);
  EXPECT_EQ(proxy.log().count(requests_of(Op::kCreateSession)), 1U);
  EXPECT_EQ(service().watches_of(session.id()), kCount);
  make_node(session, path + "-" + filler + "39999");
  ASSERT_TRUE(events.wait_for(1));
}

}  // namespace
}  // namespace latchkey::test_support
