#include "queue_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hold_note.hpp"

namespace latchkey::app {
namespace {

using testing::HasSubstr;
using Standing = QueueEntry::Standing;

QueueEntry queue_entry(Standing standing, int position) {
  QueueEntry made;
  made.node = "_c_x-lock-000000000" + std::to_string(position);
  made.standing = standing;
  made.position = position;
  made.dialect = "curator";
  made.token = Token(100 + position);
  made.session = 0x1234;
  made.created_ms = 1'000'000;
  made.host = "db1";
  made.pid = 4711;
  made.program = "backup";
  made.since = "1970-01-01T00:16:40Z";
  return made;
}

Queue lock_of(std::vector<QueueEntry> entries) {
  Queue lock;
  lock.directory = "/locks/nightly";
  lock.exists = true;
  lock.entries = std::move(entries);
  return lock;
}

TEST(QueueView, AgesAreRoundedForPeople) {
  EXPECT_EQ(age_text(-5), "0s");
  EXPECT_EQ(age_text(4'900), "4s");
  EXPECT_EQ(age_text(119'000), "119s");
  EXPECT_EQ(age_text(12 * 60'000), "12min");
  EXPECT_EQ(age_text(3 * 3'600'000), "3h");
  EXPECT_EQ(age_text(5 * 86'400'000), "5d");
}

TEST(QueueView, ALockIsARowWithItsHolderAndHowManyWait) {
  const std::vector<Queue> locks = {
      lock_of({queue_entry(Standing::kHolds, 1), queue_entry(Standing::kWaits, 2),
               queue_entry(Standing::kWaits, 3)}),
      lock_of({})};

  const Table table = locks_table(locks, 1'005'000);

  EXPECT_THAT(table.rows[0].cells,
              testing::ElementsAre("nightly", "held", "db1 pid 4711 (backup)", "5s", "2", ""));
  EXPECT_EQ(table.rows[1].cells[1], "free");
}

TEST(QueueView, ALockBetweenTwoHoldersIsNotFree) {
  const Queue lock = lock_of({queue_entry(Standing::kWaits, 2)});
  EXPECT_FALSE(is_free(lock));
  EXPECT_EQ(queue_line(lock), "nightly: held by nobody yet; 1 waits");
}

TEST(QueueView, ForeignNodesAreShownAndDoNotCount) {
  QueueEntry stranger = queue_entry(Standing::kForeign, 0);
  stranger.node = "config";
  const Queue lock = lock_of({stranger});
  EXPECT_TRUE(is_free(lock));
  EXPECT_EQ(queue_table(lock, 0).rows[0].cells[2], "config");
}

TEST(QueueView, AForeignHolderIsNamedByWhatItWroteAndCannotForgeALine) {
  QueueEntry holder = queue_entry(Standing::kHolds, 1);
  holder.host.clear();
  holder.data = "10.0.0.7\nevil: free";
  EXPECT_EQ(queue_line(lock_of({holder})), "nightly: held by 10.0.0.7\\nevil: free");
}

TEST(QueueView, WhoWasAskedToLetGoIsStillNamed) {
  QueueEntry asked = queue_entry(Standing::kHolds, 1);
  asked.release_requested = true;
  EXPECT_EQ(queue_line(lock_of({asked})),
            "nightly: held by db1 pid 4711 (backup): asked to let go");
  asked.reason = "nightly run";
  EXPECT_EQ(holder_text(asked), "db1 pid 4711 (backup): nightly run; asked to let go");

  asked.host.clear();
  asked.reason.clear();
  asked.data = "__REVOKE__";
  EXPECT_EQ(holder_text(asked), "session 0x1234: asked to let go");
}

TEST(QueueView, ASemaphoreShowsItsSizeAndHowManyPermitsAreHeld) {
  Queue lock = lock_of({queue_entry(Standing::kHolds, 1), queue_entry(Standing::kWaits, 2)});
  EXPECT_EQ(permits_text(lock), "");
  lock.size = 4;

  EXPECT_EQ(permits_text(lock), "1 of 4 permits are held");
  EXPECT_EQ(locks_table(std::span(&lock, 1), 0).rows[0].cells[1], "held 1/4");
  EXPECT_THAT(queue_line(lock), HasSubstr("; 1 of 4 permits are held; 1 waits"));
  EXPECT_THAT(queue_json(lock), HasSubstr(R"("size":4,"entries")"));
}

TEST(QueueView, ADoneMarkIsKnownByWhatItSaysAndNotByItsName) {
  QueueEntry mark = queue_entry(Standing::kForeign, 0);
  mark.node = "done";
  EXPECT_FALSE(is_done_mark(mark)) << "a lock may be called so";
  mark.data = "latchkey/1\nhost=db1\ntoken=17\n";
  EXPECT_TRUE(is_done_mark(mark));

  const Queue lock = lock_of({mark});
  EXPECT_EQ(locks_table(std::span(&lock, 1), 0).rows[0].cells[1], "done");
}

TEST(QueueView, JsonHasEveryFieldOnOneLine) {
  Queue lock = lock_of({queue_entry(Standing::kHolds, 1)});
  lock.entries[0].reason = "line\nbreak \"quoted\"";
  lock.warnings = {"Careful."};

  const std::string json = queue_json(lock);

  EXPECT_THAT(json, HasSubstr(R"({"lock":"/locks/nightly","exists":true,"held":true,"waiting":0)"));
  EXPECT_THAT(json, HasSubstr(R"("standing":"holds","position":1,"shared":false)"));
  EXPECT_THAT(json, HasSubstr(R"("token":"101","session":"0x1234")"));
  EXPECT_THAT(json, HasSubstr(R"("reason":"line\u000abreak \"quoted\"")"));
  EXPECT_THAT(json, HasSubstr(R"("warnings":["Careful."])"));
  EXPECT_EQ(json.find('\n'), std::string::npos);
}

TEST(QueueView, WhoWaitsForPermitsIsCountedOnce) {
  Queue lock = lock_of({queue_entry(Standing::kHolds, 1), queue_entry(Standing::kWaits, 2),
                        queue_entry(Standing::kWaits, 3), queue_entry(Standing::kWaits, 4)});
  for (std::size_t i = 0; i < 3; ++i) lock.entries[i].node = "leases/x" + std::to_string(i);
  lock.entries[3].node = "locks/x";
  EXPECT_EQ(waiting_count(lock), 1U);
}

TEST(QueueView, AHoldIsShownWithItsOwnerReasonAndEnd) {
  Queue lock = lock_of({queue_entry(Standing::kHolds, 1)});
  lock.entries[0].reason = format_hold({"the big move", "ann@db1", "2026-11-16T09:30:00Z"});

  EXPECT_EQ(who_text(lock.entries[0]), "db1 pid 4711 (hold)");
  EXPECT_EQ(locks_table(std::span(&lock, 1), 0).rows[0].cells[5],
            "the big move; ann@db1, until 2026-11-16T09:30:00Z");
  EXPECT_THAT(queue_json(lock), HasSubstr(R"("reason":"the big move","owner":"ann@db1")"));
}

TEST(HoldNote, SurvivesAnyReason) {
  for (const char* reason : {"", "x", "until (hold: bob until never)", "a)"}) {
    const HoldNote note{reason, "ann@db1", "2026-11-16T09:30:00Z"};
    EXPECT_EQ(parse_hold(format_hold(note)), note) << reason;
  }
}

TEST(HoldNote, IsNotFoundInOrdinaryReasons) {
  for (const char* text : {"", "nightly", "(hold: ann)", "(hold: ann until x", "until )"}) {
    EXPECT_FALSE(parse_hold(text)) << text;
  }
}

TEST(HoldNote, TimesAreUtc) { EXPECT_EQ(utc_text(1'000'000'000'000), "2001-09-09T01:46:40Z"); }

}  // namespace
}  // namespace latchkey::app
