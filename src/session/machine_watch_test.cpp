#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/machine_rig.hpp"

namespace latchkey::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using wire::Err;
using wire::EventType;
using wire::Op;
using wire::WatcherType;

/// Answers whatever is in flight and hands back the removals among it.
std::vector<std::pair<std::string, WatcherType>> removals(Rig& rig) {
  std::vector<std::pair<std::string, WatcherType>> found;
  while (!rig.requests.empty()) {
    const Request request = rig.answer();
    if (request.op != Op::kRemoveWatches) continue;
    const auto body = request.as<wire::PathWatcherType>();
    found.emplace_back(body.path, body.type);
  }
  return found;
}

class MachineWatch : public testing::Test {
 protected:
  void SetUp() override { rig.open(); }

  Sent watch_data(const std::string& path, const std::string& who = "") {
    const Sent sent = rig.submit(get_call(path, rig.watcher(who)));
    rig.answer();
    return sent;
  }
  Sent watch_children(const std::string& path) {
    const Sent sent = rig.submit(children_call(path, rig.watcher("children: ")));
    rig.answer();
    return sent;
  }
  void unwatch(const Sent& sent) {
    rig.machine.unwatch(sent.id, rig.now);
    rig.settle();
  }

  Rig rig;
};

// Events.

TEST_F(MachineWatch, FiresOnce) {
  watch_data("/a");

  rig.event(EventType::kDataChanged, "/a");
  rig.event(EventType::kDataChanged, "/a");

  EXPECT_THAT(rig.events, ElementsAre("data changed /a"));
  EXPECT_EQ(rig.machine.watch_count(), 0U);
}

TEST_F(MachineWatch, IsNotSetByAReadThatFails) {
  rig.submit(get_call("/a", rig.watcher()));
  rig.answer(Err::kNoNode);

  rig.event(EventType::kCreated, "/a");

  EXPECT_THAT(rig.events, IsEmpty());
}

TEST_F(MachineWatch, ExistsOnAnAbsentNodeWaitsForItsCreation) {
  rig.submit(exists_call("/a", rig.watcher()));
  rig.answer(Err::kNoNode);

  rig.event(EventType::kCreated, "/a");

  EXPECT_THAT(rig.events, ElementsAre("created /a"));
}

TEST_F(MachineWatch, AChildWatchHearsOfChildrenAndOfTheEnd) {
  watch_children("/a");
  rig.event(EventType::kDataChanged, "/a");
  EXPECT_THAT(rig.events, IsEmpty());
  rig.event(EventType::kChildrenChanged, "/a");
  watch_children("/a");

  rig.event(EventType::kDeleted, "/a");

  EXPECT_THAT(rig.events, ElementsAre("children: children changed /a", "children: deleted /a"));
}

TEST_F(MachineWatch, APersistentOneStays) {
  rig.submit(add_watch_call("/a", WatchOn::kPersistent, rig.watcher()));
  rig.answer();

  rig.event(EventType::kDataChanged, "/a");
  rig.event(EventType::kChildrenChanged, "/a");
  rig.event(EventType::kDeleted, "/a/b");

  EXPECT_THAT(rig.events, ElementsAre("data changed /a", "children changed /a"));
}

TEST_F(MachineWatch, ARecursiveOneHearsOfEverythingBelowButNotOfLists) {
  rig.submit(add_watch_call("/a", WatchOn::kRecursive, rig.watcher()));
  rig.answer();

  rig.event(EventType::kCreated, "/a/b/c");
  rig.event(EventType::kChildrenChanged, "/a");
  rig.event(EventType::kDeleted, "/ab");
  rig.event(EventType::kDataChanged, "/a");

  EXPECT_THAT(rig.events, ElementsAre("created /a/b/c", "data changed /a"));
}

TEST_F(MachineWatch, H34_AnUnknownTypeTellsEverybodyToLookAgain) {
  for (const int type : {5, 6, 7, 99, -5}) {
    rig.events.clear();
    watch_data("/a", "data: ");
    watch_children("/a");

    rig.event(EventType{type}, "/a");

    EXPECT_THAT(rig.events, ElementsAre("data: unknown /a", "children: unknown /a")) << type;
  }
}

TEST_F(MachineWatch, ASessionEventOnTheWireIsNoNews) {
  watch_data("/a");

  rig.event(EventType::kNone, "/a");
  rig.event(EventType::kNone, "");

  EXPECT_THAT(rig.events, IsEmpty());
  EXPECT_EQ(rig.machine.state(), SessionState::kConnected);
}

TEST_F(MachineWatch, AnEventBeforeTheReplyThatShowsItIsDeliveredBeforeIt) {
  watch_data("/a");
  Call call = get_call("/a");
  call.done = [&](Outcome&&) { rig.story.emplace_back("reply"); };
  rig.machine.submit(std::move(call), rig.now);
  rig.settle();
  rig.story.clear();
  std::string bytes;
  wire::append_frame(bytes, wire::ReplyHeader{wire::kNotificationXid, -1, Err::kOk},
                     wire::WatcherEvent{EventType::kDataChanged, 3, "/a"});

  rig.feed(bytes + Rig::reply_to(rig.take(), Err::kOk, 9));

  EXPECT_THAT(rig.story, ElementsAre("data changed /a", "reply"));
}

TEST(MachineWatchChroot, EventsSpeakTheUsersPaths) {
  Rig rig({.chroot = "/app"});
  rig.open();
  rig.submit(get_call("/app/a", rig.watcher()));
  rig.answer();

  rig.event(EventType::kDeleted, "/app/a");

  EXPECT_THAT(rig.events, ElementsAre("deleted /a"));
}

// Leaving.

TEST_F(MachineWatch, H29_TheServersWatchGoesWithTheLastWatcher) {
  const Sent first = watch_data("/a");
  const Sent second = watch_data("/a");

  unwatch(first);
  EXPECT_THAT(rig.requests, IsEmpty());
  unwatch(second);
  unwatch(second);

  EXPECT_THAT(removals(rig), ElementsAre(std::pair("/a", WatcherType::kData)));
  EXPECT_EQ(rig.machine.watch_count(), 0U);
}

TEST_F(MachineWatch, H62_NotWhileAnotherIsAboutToBeSetThere) {
  const Sent first = watch_data("/a");
  const Sent second = rig.submit(get_call("/a", rig.watcher()));

  unwatch(first);
  EXPECT_THAT(removals(rig), IsEmpty());
  rig.event(EventType::kDeleted, "/a");

  EXPECT_THAT(rig.events, ElementsAre("deleted /a"));
  EXPECT_TRUE(second.ok());
}

TEST_F(MachineWatch, H62_ThatItHasFiredMeanwhileIsNoError) {
  const Sent watch = watch_data("/a");

  unwatch(watch);
  rig.event(EventType::kDeleted, "/a");
  rig.answer(Err::kNoWatcher);

  EXPECT_THAT(rig.events, IsEmpty());
  EXPECT_EQ(rig.machine.state(), SessionState::kConnected);
}

TEST_F(MachineWatch, H62_ANewWaiterBehindTheRemovalSetsItsOwn) {
  const Sent first = watch_data("/a");
  unwatch(first);
  const Sent second = rig.submit(get_call("/a", rig.watcher()));

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kRemoveWatches, Op::kGetData));
  EXPECT_TRUE(rig.requests[1].as<wire::PathWatch>().watch);
  rig.answer_all();
  rig.event(EventType::kDataChanged, "/a");

  EXPECT_THAT(rig.events, ElementsAre("data changed /a"));
}

TEST_F(MachineWatch, DataAndExistsShareOneWatchOnTheServer) {
  const Sent data = watch_data("/a");
  const Sent exists = rig.submit(exists_call("/a", rig.watcher("exists: ")));
  rig.answer();
  const Sent absent = rig.submit(exists_call("/a", rig.watcher("absent: ")));
  rig.answer(Err::kNoNode);

  unwatch(data);
  unwatch(exists);
  EXPECT_THAT(rig.requests, IsEmpty());
  unwatch(absent);

  EXPECT_THAT(removals(rig), ElementsAre(std::pair("/a", WatcherType::kData)));
}

TEST_F(MachineWatch, ChildrenAndDataAreTwoWatchesOnTheServer) {
  const Sent data = watch_data("/a");
  const Sent children = watch_children("/a");

  unwatch(data);
  unwatch(children);

  EXPECT_THAT(removals(rig), ElementsAre(std::pair("/a", WatcherType::kData),
                                         std::pair("/a", WatcherType::kChildren)));
}

TEST_F(MachineWatch, OneThatIsUnwantedBeforeItIsSetIsRemovedWhenItIs) {
  const Sent sent = rig.submit(get_call("/a", rig.watcher()));

  unwatch(sent);
  EXPECT_THAT(rig.ops(), ElementsAre(Op::kGetData));

  EXPECT_THAT(removals(rig), ElementsAre(std::pair("/a", WatcherType::kData)));
  EXPECT_TRUE(sent.ok());
  EXPECT_EQ(rig.machine.watch_count(), 0U);
}

TEST_F(MachineWatch, OneSetByAnAbandonedCallIsRemoved) {
  Call call = get_call("/a", rig.watcher());
  call.deadline = rig.now + seconds(1);
  const Sent sent = rig.submit(std::move(call));
  rig.pass(seconds(1));
  EXPECT_EQ(sent.code(), Code::kTimedOut);

  EXPECT_THAT(removals(rig), ElementsAre(std::pair("/a", WatcherType::kData)));
  EXPECT_EQ(rig.machine.watch_count(), 0U);
}

TEST_F(MachineWatch, OneSetByAnAbandonedCallIsNotRestored) {
  const Sent sent = rig.submit(get_call("/a", rig.watcher()));
  rig.machine.abandon(sent.id, Code::kCancelled, rig.now);

  rig.reconnect();

  EXPECT_THAT(rig.requests, IsEmpty());
  const Sent other = watch_data("/a");
  unwatch(other);
  EXPECT_THAT(removals(rig), ElementsAre(std::pair("/a", WatcherType::kData)))
      << "nothing is left of the call that never was answered";
}

TEST_F(MachineWatch, AnAbandonedLastingWatchIsRemovedAltogether) {
  const Sent sent = rig.submit(add_watch_call("/a", WatchOn::kPersistent, rig.watcher()));
  rig.machine.abandon(sent.id, Code::kCancelled, rig.now);

  EXPECT_THAT(removals(rig), ElementsAre(std::pair("/a", WatcherType::kAny)));
}

TEST_F(MachineWatch, AnAbandonedLastingWatchIsLeftIfAnotherReliesOnIt) {
  const Sent lasting = rig.submit(add_watch_call("/a", WatchOn::kPersistent, rig.watcher()));
  rig.submit(get_call("/a", rig.watcher("data: ")));
  rig.machine.abandon(lasting.id, Code::kCancelled, rig.now);

  EXPECT_THAT(removals(rig), IsEmpty());
  rig.event(EventType::kDataChanged, "/a");

  EXPECT_THAT(rig.events, ElementsAre("data: data changed /a"));
}

TEST_F(MachineWatch, ForgettingOneTellsTheServerNothing) {
  const Sent sent = watch_data("/a");

  rig.machine.forget_watch(sent.id);
  rig.settle();

  EXPECT_THAT(rig.requests, IsEmpty());
  EXPECT_EQ(rig.machine.watch_count(), 0U);
}

TEST_F(MachineWatch, RemovingByPathTellsEachWatcher) {
  watch_data("/a", "1: ");
  watch_data("/a", "2: ");
  watch_children("/a");
  Call call = make_call(Op::kRemoveWatches, wire::PathWatcherType{"/a", WatcherType::kData});
  call.removes = WatcherType::kData;

  rig.submit(std::move(call));
  EXPECT_THAT(rig.events, IsEmpty());
  rig.answer();

  EXPECT_THAT(rig.events, ElementsAre("1: watch removed /a", "2: watch removed /a"));
  EXPECT_EQ(rig.machine.watch_count(), 1U);
}

TEST_F(MachineWatch, ARefusedRemovalRemovesNothing) {
  watch_data("/a");
  Call call = make_call(Op::kRemoveWatches, wire::PathWatcherType{"/a", WatcherType::kData});
  call.removes = WatcherType::kData;

  rig.submit(std::move(call));
  rig.answer(Err::kNoWatcher);

  EXPECT_THAT(rig.events, IsEmpty());
  EXPECT_EQ(rig.machine.watch_count(), 1U);
}

// Persistent and one-shot on one path.

TEST_F(MachineWatch, AOneShotUnderAPersistentOneSetsNoneOfItsOwn) {
  rig.submit(add_watch_call("/a", WatchOn::kPersistent, rig.watcher("lasting: ")));

  rig.submit(get_call("/a", rig.watcher("once: ")));
  EXPECT_FALSE(rig.requests.back().as<wire::PathWatch>().watch);
  rig.answer_all();
  rig.event(EventType::kDataChanged, "/a");
  rig.event(EventType::kDataChanged, "/a");

  EXPECT_THAT(rig.events, ElementsAre("once: data changed /a", "lasting: data changed /a",
                                      "lasting: data changed /a"));
}

TEST_F(MachineWatch, AlsoIfBothWaitedForAConnection) {
  rig.down();
  rig.submit(add_watch_call("/a", WatchOn::kPersistent, rig.watcher()));
  rig.submit(get_call("/a", rig.watcher()));

  rig.accept();

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kAddWatch, Op::kGetData));
  EXPECT_FALSE(rig.requests[1].as<wire::PathWatch>().watch);
}

TEST_F(MachineWatch, APersistentOneThatNeverGotSentCoversNothing) {
  rig.down();
  const Sent lasting = rig.submit(add_watch_call("/a", WatchOn::kPersistent, rig.watcher()));
  rig.submit(get_call("/a", rig.watcher()));
  rig.machine.withdraw(lasting.id, rig.now);
  rig.settle();

  rig.accept();

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kGetData));
  EXPECT_TRUE(rig.requests[0].as<wire::PathWatch>().watch);
}

TEST_F(MachineWatch, ARecursiveOneCoversNoChildWatch) {
  rig.submit(add_watch_call("/a", WatchOn::kRecursive, rig.watcher()));

  rig.submit(children_call("/a", rig.watcher()));
  EXPECT_TRUE(rig.requests.back().as<wire::PathWatch>().watch);
  rig.submit(get_call("/a", rig.watcher()));
  EXPECT_FALSE(rig.requests.back().as<wire::PathWatch>().watch);
}

// Reconnecting.

TEST_F(MachineWatch, H32_AllAreRestoredRelativeToTheLastZxidBeforeAnythingElse) {
  watch_data("/data");
  watch_children("/children");
  rig.submit(exists_call("/absent", rig.watcher()));
  rig.answer(Err::kNoNode, 777);
  rig.down();
  rig.submit(get_call("/next"));

  rig.accept();

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kSetWatches, Op::kGetData));
  const auto restored = rig.requests[0].as<wire::SetWatches>();
  EXPECT_EQ(rig.requests[0].xid, wire::kSetWatchesXid);
  EXPECT_EQ(restored.relative_zxid, 777);
  EXPECT_THAT(restored.data, ElementsAre("/data"));
  EXPECT_THAT(restored.children, ElementsAre("/children"));
  EXPECT_THAT(restored.exists, ElementsAre("/absent"));
}

TEST_F(MachineWatch, H32_AReplayedEventIsDeliveredOnce) {
  watch_data("/a");
  rig.reconnect();

  rig.event(EventType::kDeleted, "/a");
  rig.answer_all();
  rig.reconnect();
  rig.event(EventType::kDeleted, "/a");

  EXPECT_THAT(rig.events, ElementsAre("deleted /a"));
}

TEST_F(MachineWatch, LastingOnesNeedTheNewerRequest) {
  watch_data("/data");
  rig.submit(add_watch_call("/p", WatchOn::kPersistent, rig.watcher()));
  rig.submit(add_watch_call("/r", WatchOn::kRecursive, rig.watcher()));
  rig.answer_all();

  rig.reconnect();

  ASSERT_THAT(rig.ops(), ElementsAre(Op::kSetWatches2));
  const auto restored = rig.requests[0].as<wire::SetWatches2>();
  EXPECT_THAT(restored.data, ElementsAre("/data"));
  EXPECT_THAT(restored.persistent, ElementsAre("/p"));
  EXPECT_THAT(restored.persistent_recursive, ElementsAre("/r"));
}

TEST_F(MachineWatch, H63_FortyThousandAreRestoredInFramesTheServerTakes) {
  constexpr int kMany = 40'000;
  for (int i = 0; i < kMany; ++i) {
    rig.machine.submit(get_call("/locks/some-resource/" + std::to_string(i), rig.watcher()),
                       rig.now);
  }
  rig.settle();
  std::string answers;
  while (!rig.requests.empty()) answers += Rig::reply_to(rig.take(), Err::kOk, 5);
  rig.feed(answers);
  ASSERT_EQ(rig.machine.watch_count(), static_cast<std::size_t>(kMany));

  rig.reconnect();

  EXPECT_GT(rig.requests.size(), 5U);
  std::size_t restored = 0;
  for (const Request& request : rig.requests) {
    EXPECT_LE(request.body.size(), 128U * 1024U);
    restored += request.as<wire::SetWatches>().data.size();
  }
  EXPECT_EQ(restored, static_cast<std::size_t>(kMany));
  rig.answer_all();
  EXPECT_EQ(rig.machine.state(), SessionState::kConnected);
}

TEST_F(MachineWatch, ARefusedRestoreStartsOver) {
  watch_data("/a");
  rig.reconnect();

  rig.answer(Err::kMarshallingError);

  EXPECT_EQ(rig.machine.state(), SessionState::kSuspended);
  EXPECT_EQ(rig.machine.watch_count(), 1U);
}

TEST_F(MachineWatch, ARequestOnItsWayAtTheCutLeavesNoTrace) {
  const Sent first = watch_data("/a");
  Call lost = get_call("/a", rig.watcher());
  lost.resend = Resend::kNever;
  rig.submit(std::move(lost));
  rig.reconnect();
  rig.answer_all();

  unwatch(first);

  EXPECT_THAT(removals(rig), ElementsAre(std::pair("/a", WatcherType::kData)));
}

TEST_F(MachineWatch, LeavingWhileDisconnectedNeedsNoRemoval) {
  const Sent sent = watch_data("/a");
  rig.down();

  unwatch(sent);
  rig.accept();

  EXPECT_THAT(rig.requests, IsEmpty());
}

TEST_F(MachineWatch, WatchersHearOfTheEndOfTheSession) {
  watch_data("/a");
  rig.submit(add_watch_call("/p", WatchOn::kPersistent, rig.watcher()));
  rig.answer();
  rig.cut();
  rig.up();

  rig.greet(milliseconds(0), 0);

  EXPECT_THAT(rig.events, UnorderedElementsAre("session over ", "session over "));
  EXPECT_EQ(rig.machine.watch_count(), 0U);
}

TEST_F(MachineWatch, H29_AWatchWhoseReadWasThrottledIsTakenBackLikeAnyOther) {
  Call call = get_call("/a", rig.watcher());
  call.resend = Resend::kUntilAnswered;
  const Sent sent = rig.submit(std::move(call));
  rig.answer(Err::kThrottled);
  rig.pass(seconds(2));
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kGetData));
  rig.answer();

  unwatch(sent);

  EXPECT_THAT(removals(rig), ElementsAre(std::pair("/a", WatcherType::kData)));
}

TEST_F(MachineWatch, H32_WhatARestoredWatchTellsIsMarkedAsMissed) {
  std::vector<bool> missed;
  const auto note = [&](const WatchEvent& event) { missed.push_back(event.missed); };
  for (const char* path : {"/a", "/b"}) {
    rig.submit(get_call(path, note));
    rig.answer();
  }
  rig.down();
  rig.accept();
  ASSERT_THAT(rig.ops(), ElementsAre(Op::kSetWatches));

  rig.event(EventType::kDeleted, "/a");
  rig.answer();
  rig.event(EventType::kDeleted, "/b");

  EXPECT_THAT(missed, ElementsAre(true, false));
}

}  // namespace
}  // namespace latchkey::session
