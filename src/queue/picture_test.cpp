#include "queue/picture.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "queue/admission.hpp"
#include "queue/delay_note.hpp"
#include "queue/lock_delay.hpp"
#include "queue/owner.hpp"

namespace latchkey::queue {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kHolds = QueueEntry::Standing::kHolds;
constexpr auto kWaits = QueueEntry::Standing::kWaits;
constexpr auto kForeign = QueueEntry::Standing::kForeign;

const std::string kGuid = "00000000-0000-4000-8000-00000000000";

/// `_c_<uuid>-<tag><number>`, a different uuid for each digit.
std::string ours(const std::string& tag, const std::string& number) {
  return "_c_" + kGuid + number.back() + "-" + tag + "000000000" + number;
}

const std::string kGuidHex = "0123456789abcdef0123456789abcdef";

Child child(std::string node, std::int64_t czxid = 7, std::int64_t session = 99) {
  Stat stat{.czxid = czxid, .ctime_ms = 1'000, .ephemeral_owner = session};
  return {std::move(node), stat, {}};
}

Queue look(const std::vector<std::string>& names) {
  std::vector<Child> children;
  for (const std::string& name : names) children.push_back(child(name));
  return picture("/locks/a", std::move(children));
}

std::vector<QueueEntry::Standing> standings(const Queue& queue) {
  std::vector<QueueEntry::Standing> all;
  for (const QueueEntry& entry : queue.entries) all.push_back(entry.standing);
  return all;
}

TEST(Picture, AnEmptyDirectoryIsNothingToWorryAbout) {
  const Queue queue = look({});

  EXPECT_TRUE(queue.exists);
  EXPECT_EQ(queue.directory, "/locks/a");
  EXPECT_THAT(queue.entries, IsEmpty());
  EXPECT_THAT(queue.warnings, IsEmpty());
}

TEST(Picture, TheFirstHoldsAndTheOthersWaitInOrderOfArrival) {
  const Queue queue = look({ours("lock-", "3"), ours("lock-", "1"), ours("lock-", "2")});

  EXPECT_THAT(standings(queue), ElementsAre(kHolds, kWaits, kWaits));
  EXPECT_EQ(queue.entries[0].node, ours("lock-", "1"));
  EXPECT_EQ(queue.entries[2].node, ours("lock-", "3"));
  EXPECT_EQ(queue.entries[0].position, 1);
  EXPECT_EQ(queue.entries[2].position, 3);
  ASSERT_EQ(queue.holders().size(), 1U);
  EXPECT_EQ(queue.holders()[0], &queue.entries[0]);
  EXPECT_THAT(queue.warnings, IsEmpty());
}

TEST(Picture, TellsWhatStatAndDataSay) {
  Child mine = child(ours("lock-", "1"), 42);
  mine.data = format_owner(
      {.host = "db1", .pid = 4711, .program = "backup", .since = "now", .reason = "nightly run"});

  const Queue queue = picture("/locks/a", {mine});

  const QueueEntry& entry = queue.entries.at(0);
  EXPECT_EQ(entry.token, Token(42));
  EXPECT_EQ(entry.session, 99);
  EXPECT_EQ(entry.created_ms, 1'000);
  EXPECT_EQ(entry.dialect, "curator");
  EXPECT_EQ(entry.host, "db1");
  EXPECT_EQ(entry.pid, 4711);
  EXPECT_EQ(entry.program, "backup");
  EXPECT_EQ(entry.since, "now");
  EXPECT_EQ(entry.reason, "nightly run");
  EXPECT_EQ(entry.data, mine.data);
  EXPECT_FALSE(entry.release_requested);
}

TEST(Picture, SomebodyElsesDataIsShownAsItIs) {
  Child theirs = child(ours("lock-", "1"));
  theirs.data = "10.0.0.7";

  const Queue queue = picture("/locks/a", {theirs});

  EXPECT_EQ(queue.entries.at(0).data, "10.0.0.7");
  EXPECT_EQ(queue.entries.at(0).host, "");
}

TEST(Picture, ShowsWhoWasAskedToLetGo) {
  Child asked = child(ours("lock-", "1"));
  asked.data = "__REVOKE__";

  EXPECT_TRUE(picture("/locks/a", {asked}).entries.at(0).release_requested);
}

TEST(Picture, WhoWasAskedToLetGoIsStillKnown) {
  Child asked = child(ours("lock-", "1"));
  asked.data = asking_to_let_go(format_owner({.host = "db1", .pid = 4711}));

  const QueueEntry entry = picture("/locks/a", {asked}).entries.at(0);

  EXPECT_TRUE(entry.release_requested);
  EXPECT_EQ(entry.host, "db1");
  EXPECT_EQ(entry.pid, 4711);
}

TEST(Picture, AnEntryWeMayNotReadIsListedWithoutData) {
  const Queue queue = picture("/locks/a", {{ours("lock-", "1"), std::nullopt, ""}});

  EXPECT_THAT(standings(queue), ElementsAre(kHolds));
  EXPECT_EQ(queue.entries[0].token, Token(0));
  EXPECT_THAT(queue.warnings, IsEmpty());
}

TEST(Picture, ReadersHoldTogetherUpToTheFirstWriter) {
  const Queue queue = look(
      {ours("__READ__", "1"), ours("__READ__", "2"), ours("__WRIT__", "3"), ours("__READ__", "4")});

  EXPECT_THAT(standings(queue), ElementsAre(kHolds, kHolds, kWaits, kWaits));
  EXPECT_TRUE(queue.entries[0].shared);
  EXPECT_FALSE(queue.entries[2].shared);
  EXPECT_THAT(queue.warnings, IsEmpty());
}

TEST(Picture, AWriterThatTurnsIntoAReaderIsNoFault) {
  const Queue queue = look({ours("__WRIT__", "1"), ours("__READ__", "1"), ours("__WRIT__", "2")});

  EXPECT_THAT(queue.warnings, IsEmpty());
  ASSERT_EQ(queue.holders().size(), 1U);
  EXPECT_TRUE(queue.holders()[0]->shared);
}

TEST(Picture, EachLockNameIsAQueueOfItsOwn) {
  const Queue queue = look({ours("jobs_lock_", "1"), ours("mail_lock_", "2"),
                            ours("jobs_lock_", "3"), ours("lock-", "4")});

  EXPECT_THAT(standings(queue), ElementsAre(kHolds, kHolds, kWaits, kHolds));
  EXPECT_EQ(queue.entries[1].lock_name, "mail");
  EXPECT_EQ(queue.entries[1].position, 1);
  EXPECT_EQ(queue.entries[2].position, 2);
  EXPECT_EQ(queue.entries[2].dialect, "named");
  EXPECT_THAT(queue.warnings, IsEmpty());
}

TEST(Picture, ForeignChildrenComeLast) {
  const Queue queue = look({"readme", ours("lock-", "1"), "config"});

  EXPECT_THAT(standings(queue), ElementsAre(kHolds, kForeign, kForeign));
  EXPECT_EQ(queue.entries[1].node, "config");
  EXPECT_EQ(queue.entries[1].position, 0);
  EXPECT_EQ(queue.entries[1].dialect, "");
  EXPECT_THAT(queue.warnings, IsEmpty());
}

TEST(Picture, EveryDialectHasAName) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {ours("lock-", "1"), "curator"},
      {kGuidHex + "__lock__0000000001", "kazoo"},
      {kGuidHex + "-lock-0000000001", "kazoo"},
      {"_c_" + kGuidHex + "-lock-0000000001", "go"},
      {"x-72057594037927936-0000000001", "zookeeper"},
      {"n_0000000001", "zookeeper"},
      {"LOCKNODE0000000001", "pegasus"},
      {kGuid + "1_0000000001", "rust"},
      {"lock-0000000001", "tutorial"},
  };
  for (const auto& [name, dialect] : names) {
    EXPECT_EQ(look({name}).entries.at(0).dialect, dialect) << name;
  }
}

TEST(Picture, WarnsOfStockKazooBesideAnybodyElse) {
  for (const std::string& other :
       {ours("lock-", "1"), "_c_" + kGuidHex + "-lock-0000000001", kGuidHex + "-lock-0000000001",
        ours("__READ__", "1"), ours("latch-", "1")}) {
    EXPECT_THAT(look({other, kGuidHex + "__lock__0000000002"}).warnings,
                ElementsAre(HasSubstr("interop/kazoo")))
        << other;
  }
  EXPECT_THAT(look({kGuidHex + "__lock__0000000001", kGuidHex + "__rlock__0000000002"}).warnings,
              IsEmpty());
}

TEST(Picture, WarnsOfLocksOfDifferentKinds) {
  EXPECT_THAT(look({ours("lock-", "1"), ours("__READ__", "2")}).warnings,
              ElementsAre(HasSubstr("read-write locks")));
  EXPECT_THAT(look({ours("lock-", "1"), ours("latch-", "2")}).warnings,
              ElementsAre(HasSubstr("leader latches")));
  EXPECT_THAT(look({ours("lock-", "1"), "LOCKNODE0000000002"}).warnings,
              ElementsAre(HasSubstr("Pegasus")));
}

TEST(Picture, ClientsWhoSeeEachOtherAreNothingToWorryAbout) {
  EXPECT_THAT(look({ours("lock-", "1"), "_c_" + kGuidHex + "-lock-0000000002",
                    kGuidHex + "-lock-0000000003", "lock-0000000004"})
                  .warnings,
              IsEmpty());
}

TEST(Picture, WarnsOfNamesOnWhichGoStumbles) {
  const std::string go = "_c_" + kGuidHex + "-lock-0000000001";
  EXPECT_THAT(look({go, "readme"}).warnings, ElementsAre(HasSubstr("go-zookeeper")));
  EXPECT_THAT(look({go, ours("jobs_lock_", "2")}).warnings, ElementsAre(HasSubstr("go-zookeeper")));
  EXPECT_THAT(look({ours("lock-", "1"), "readme"}).warnings, IsEmpty());
}

TEST(Picture, WarnsOfNamesOnWhichTheCRecipeCrashes) {
  EXPECT_THAT(look({"x-0123456789abcdef-0000000001", "readme"}).warnings,
              ElementsAre(HasSubstr("C recipe")));
}

TEST(Picture, WarnsOfAChildThatCuratorWouldWaitFor) {
  EXPECT_THAT(look({ours("lock-", "1"), "0"}).warnings, ElementsAre(HasSubstr("Curator counts")));
}

TEST(Picture, H35_WarnsOfANumberGivenTwiceAndNobodyHolds) {
  const Queue queue = look({ours("lock-", "1"), "lock-0000000001"});

  EXPECT_THAT(queue.holders(), IsEmpty());
  EXPECT_THAT(queue.warnings, ElementsAre(HasSubstr("Several entries carry the number 1")));
}

TEST(Picture, H35_WarnsOfACounterNearItsEnd) {
  EXPECT_THAT(look({"lock-2146435070"}).warnings, IsEmpty());
  EXPECT_THAT(look({"lock-2146435071"}).warnings, ElementsAre(HasSubstr("nears its end")));
  EXPECT_THAT(look({"lock--000000001"}).warnings, ElementsAre(HasSubstr("nears its end")));
  EXPECT_THAT(look({"lock--2147483648"}).warnings, ElementsAre(HasSubstr("nears its end")));
}

TEST(Picture, WarnsOfEntriesThatNobodyRemoves) {
  std::vector<Child> children;
  for (const char* digit : {"1", "2", "3", "4", "5"}) {
    children.push_back(child(ours("lock-", digit)));
    children.back().stat->ephemeral_owner = 0;
  }

  const Queue queue = picture("/locks/a", children);

  ASSERT_EQ(queue.warnings.size(), 1U);
  EXPECT_THAT(queue.warnings[0], HasSubstr("Not ephemeral"));
  EXPECT_THAT(queue.warnings[0], HasSubstr(ours("lock-", "1")));
  EXPECT_THAT(queue.warnings[0], HasSubstr("and 2 more"));
}

TEST(Picture, WarnsOfALockNameThatOthersMisread) {
  EXPECT_THAT(look({ours("my-lock-name_lock_", "1")}).warnings,
              ElementsAre(HasSubstr("\"my-lock-name\"")));
  EXPECT_THAT(look({ours("a__b_lock_", "1")}).warnings, ElementsAre(HasSubstr("\"a__b\"")));
}

TEST(Picture, ASemaphoreIsKnownByItsLayout) {
  using Names = std::vector<std::string>;
  EXPECT_TRUE(is_semaphore(Names{"locks", "leases"}));
  EXPECT_TRUE(is_semaphore(Names{"locks"}));
  EXPECT_TRUE(is_semaphore(Names{"leases", "readme"}));
  EXPECT_FALSE(is_semaphore(Names{}));
  EXPECT_FALSE(is_semaphore(Names{"readme"}));
  EXPECT_FALSE(is_semaphore(Names{"locks", "leases", ours("lock-", "1")}));
}

TEST(Picture, InASemaphoreLeasesAreHeldAndTheFrontQueueWaits) {
  const Queue queue = semaphore_picture(
      "/pool", {child("leases/" + ours("lease-", "2"), 20), child("leases/" + ours("lease-", "1"))},
      {child("locks/" + ours("lock-", "5"), 21, 98)}, {child("readme")});

  EXPECT_THAT(standings(queue), ElementsAre(kHolds, kHolds, kWaits, kForeign));
  EXPECT_EQ(queue.entries[1].node, "leases/" + ours("lease-", "2"));
  EXPECT_EQ(queue.entries[1].token, Token(20));
  EXPECT_EQ(queue.entries[2].position, 3);
  EXPECT_EQ(queue.entries[3].node, "readme");
  EXPECT_EQ(queue.holders().size(), 2U);
  EXPECT_THAT(queue.warnings, IsEmpty());
}

TEST(Picture, ASemaphoresSizeIsShownIfItIsStored) {
  EXPECT_EQ(semaphore_picture("/pool", {}, {}, {}, "8").size, 8);
  EXPECT_EQ(semaphore_picture("/pool", {}, {}, {}, "10.0.0.1").size, std::nullopt);
  EXPECT_EQ(semaphore_picture("/pool", {}, {}, {}).size, std::nullopt);
}

/// A lease of session 5, two of session 6, made together, and who queues in front.
std::vector<QueueEntry::Standing> look_at_leases(std::int64_t first_in_front,
                                                 const std::optional<std::string>& size = {}) {
  return standings(semaphore_picture(
      "/pool",
      {child("leases/" + ours("lease-", "3"), 20, 6), child("leases/" + ours("lease-", "2"), 20, 6),
       child("leases/" + ours("lease-", "1"), 10, 5)},
      {child("locks/" + ours("lock-", "6"), 31, 98),
       child("locks/" + ours("lock-", "5"), 30, first_in_front)},
      {}, size));
}

TEST(Picture, LeasesThatWereMadeAndNotGrantedYetWait) {
  EXPECT_THAT(look_at_leases(6, "2"), ElementsAre(kHolds, kWaits, kWaits, kWaits, kWaits));
  EXPECT_THAT(look_at_leases(6, "1"), ElementsAre(kHolds, kWaits, kWaits, kWaits, kWaits));
  EXPECT_THAT(look_at_leases(6), ElementsAre(kHolds, kWaits, kWaits, kWaits, kWaits))
      << "no size is stored, but whoever is first in front has made its leases";
}

TEST(Picture, LeasesThatHaveRoomOrWhoseOwnerIsNotFirstInFrontAreHeld) {
  EXPECT_THAT(look_at_leases(6, "3"), ElementsAre(kHolds, kHolds, kHolds, kWaits, kWaits));
  EXPECT_THAT(look_at_leases(5, "2"), ElementsAre(kHolds, kHolds, kHolds, kWaits, kWaits))
      << "it holds one, and is about to make others";
  EXPECT_THAT(look_at_leases(98, "1"), ElementsAre(kHolds, kHolds, kHolds, kWaits, kWaits))
      << "the size was reduced: nobody is evicted";
}

TEST(Picture, H73_WhoWaitsOutALockDelayIsNotShownAsHolding) {
  Child first = child(ours("lock-", "1"), 10);
  first.data = with_delay_note("us", std::chrono::milliseconds(5));
  const std::vector<Child> children{first, child(ours("lock-", "2"), 11)};

  const auto seen = [&](const std::optional<std::string>& mark) {
    return standings(picture("/locks/a", children, mark)).front();
  };

  EXPECT_EQ(seen(format_holder(9)), kWaits);
  EXPECT_EQ(seen(""), kWaits);
  EXPECT_EQ(seen(format_holder(10)), kHolds);
  EXPECT_EQ(seen(std::nullopt), kHolds) << "it is not known, and so counts for nothing";
}

TEST(Picture, H73_AnOldMarkChangesNothingForALockWithoutADelay) {
  const std::vector<Child> children{child(ours("lock-", "1"), 10)};

  EXPECT_THAT(standings(picture("/locks/a", children, format_holder(9))), ElementsAre(kHolds));
}

TEST(Picture, SoleHoldersAreThoseWhoHoldAlone) {
  using Names = std::vector<std::string>;
  EXPECT_THAT(sole_holders(Names{ours("lock-", "2"), ours("lock-", "1"), ours("jobs_lock_", "3")}),
              ElementsAre(ours("lock-", "1"), ours("jobs_lock_", "3")));
  EXPECT_THAT(sole_holders(Names{ours("__READ__", "1"), ours("__WRIT__", "2")}), IsEmpty());
}

TEST(Picture, H76_TheLeaderIsTheFirstInLineAndNotTheFirstChild) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(first_in_line(Names{"aaa", ours("latch-", "2"), ours("latch-", "1")}),
            ours("latch-", "1"));
  EXPECT_EQ(first_in_line(Names{"readme"}), std::nullopt);
  EXPECT_EQ(first_in_line(Names{ours("jobs_lock_", "1"), ours("latch-", "2")}),
            ours("latch-", "2"));
  EXPECT_EQ(first_in_line(Names{ours("latch-", "1"), "lock-0000000001"}), std::nullopt)
      << "the counter has ended";
}

/// The quick way to find the holders against the plain question, for up to five contenders.
TEST(Picture, HoldersAreThoseWhomAdmissionLetsInForEveryQueueOfFive) {
  const std::vector<std::string> kinds = {"__READ__", "__WRIT__", "lock-", "jobs_lock_"};
  for (int code = 0; code < 4 * 4 * 4 * 4 * 4; ++code) {
    std::vector<std::string> names;
    std::vector<Place> places;
    for (int i = 0, rest = code; i < 5; ++i, rest /= 4) {
      names.push_back(ours(kinds[static_cast<std::size_t>(rest % 4)], std::to_string(i)));
      places.push_back(*parse_place(names.back()));
    }
    std::vector<std::string> wanted;
    for (const Place& place : places) {
      if (admit(places, place).holds()) wanted.push_back(place.name);
    }

    const Queue queue = look(names);
    std::vector<std::string> found;
    for (const QueueEntry* holder : queue.holders()) found.push_back(holder->node);
    ASSERT_EQ(found, wanted) << code;
  }
}

}  // namespace
}  // namespace latchkey::queue
