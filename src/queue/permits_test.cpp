#include "queue/permits.hpp"

#include "queue/counter.hpp"
#include "support/machine_rig.hpp"

/// The machine's answers to single events. That it keeps its promises in every order of events is
/// shown in tests/scenario/permits_exploration_test.cpp.
namespace latchkey::queue {
namespace {

TEST(SemaphoreSize, IsADecimalNumberAndNothingElse) {
  EXPECT_EQ(parse_size("8"), 8);
  EXPECT_EQ(parse_size("12\n"), 12);
  EXPECT_EQ(parse_size("0"), 0);
  for (const char* text : {"", "\n", "8 permits", "10.0.0.1", "0x8", "99999999999", "latchkey/1"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
}

class PermitsTest : public MachineRig<PermitAction, action::GrantAll> {
 protected:
  static std::string lease(int guid, int number) {
    return node_prefix(format_guid(1, static_cast<std::uint64_t>(guid)), Tag::kLease) +
           digits(number);
  }
  /// Leases of somebody else.
  static std::vector<std::string> others(int first, int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back(lease(77, first + i));
    return names;
  }

  void make(int count, std::optional<int> size = {}, Wait wait = Wait::kYes) {
    permits_.emplace(Permits::Options{.path = "/pool", .count = count, .size = size, .wait = wait},
                     [this] { return format_guid(1, static_cast<std::uint64_t>(++guids_)); });
    tell(event::Start{});
  }
  void tell(const PermitEvent& event) { note(permits_->step(event)); }
  [[nodiscard]] std::vector<std::string> owed() const {
    std::vector<std::string> names;
    for (const action::Owe& owe : all<action::Owe>()) names.push_back(owe.name);
    return names;
  }

  void size_is(const std::string& data, Answer answer = kOk, int children = 2) {
    tell(event::SizeRead{last<action::ReadSize>().ask, answer, data, children});
  }
  void synced(Answer answer = kOk) { tell(event::Synced{last<action::Sync>().ask, answer}); }
  void path_listed(std::vector<std::string> children, Answer answer = kOk,
                   std::vector<std::string> elders = {}) {
    synced();
    tell(event::PathListed{last<action::ListPath>().ask, answer, std::move(children),
                           std::move(elders)});
  }
  void resumed() { tell(event::Resumed{last<action::Pause>().ask}); }
  /// Two of three permits are ours, and the path has a child too many.
  void view_with_a_stranger() {
    make(2);
    size_is("3");
    tell(event::First{});
    created(4);
    listed();
    size_is("3", kOk, 3);
  }
  /// An entry of a mutex.
  static std::string entry(int number) {
    return node_prefix(format_guid(2, 2), Tag::kLock) + digits(number);
  }
  void created(int first) {
    const auto wish = last<action::CreateAll>();
    mine_.clear();
    for (int i = 0; i < wish.count; ++i) mine_.push_back(lease(guids_, first + i));
    tell(event::AllCreated{wish.ask, kOk, mine_, 500});
  }
  void created_not(Answer answer) {
    tell(event::AllCreated{last<action::CreateAll>().ask, answer, {}, 0});
  }
  /// The list shows ours and these.
  void listed(std::vector<std::string> besides = {}) {
    besides.insert(besides.end(), mine_.begin(), mine_.end());
    listed_exactly(std::move(besides));
  }
  void listed_exactly(std::vector<std::string> children, Answer answer = kOk) {
    Ask ask = 0;
    for (const PermitAction& action : all_) {
      if (const auto* list = std::get_if<action::List>(&action)) ask = list->ask;
      if (const auto* list = std::get_if<action::ListAndWatch>(&action)) ask = list->ask;
    }
    tell(event::Listed{ask, answer, std::move(children)});
  }
  void looked(const std::string& name, bool owned, std::int64_t czxid) {
    for (const action::Look& look : all<action::Look>()) {
      if (look.name == name) tell(event::Looked{look.ask, kOk, owned, czxid});
    }
  }
  void proved() { tell(event::Proved{last<action::Prove>().ask, kOk}); }
  /// Two of three permits, nobody else there.
  void hold() {
    make(2);
    size_is("3");
    tell(event::First{});
    created(4);
    listed();
    size_is("3");
    proved();
  }
  /// Two of three, with two taken by others.
  void wait() {
    make(2);
    size_is("3");
    tell(event::First{});
    created(4);
    for (int view = 0; view < 2; ++view) {
      listed(others(1, 2));
      size_is("3");
    }
    ASSERT_EQ(permits_->describe(), "waiting");
  }

  std::optional<Permits> permits_;
  int guids_ = 0;
  std::vector<std::string> mine_;
};

TEST_F(PermitsTest, GrantsAndLeavesTheQueueInOneStep) {
  hold();

  ASSERT_EQ(did<action::GrantAll>(), 1);
  EXPECT_EQ(last<action::GrantAll>().names, mine_);
  EXPECT_EQ(last<action::GrantAll>().czxid, 500);
  EXPECT_EQ(did<action::Unqueue>(), 1);
  EXPECT_EQ(ever<action::ListAndWatch>(), 0);

  tell(event::Release{});
  EXPECT_EQ(owed(), mine_);
  EXPECT_EQ(did<action::Done>(), 1);
}

TEST_F(PermitsTest, H46_CountsWhatIsAheadAndNotWhatIsBehind) {
  make(2);
  size_is("4");
  tell(event::First{});
  created(4);
  std::vector<std::string> besides = others(2, 2);
  for (const std::string& behind : others(6, 3)) besides.push_back(behind);
  listed(besides);
  size_is("4");

  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(PermitsTest, H46_AChildWithoutANumberTakesUpAPermitAsItDoesForCurator) {
  make(1);
  size_is("1");
  tell(event::First{});
  created(4);
  listed({"note"});
  size_is("1");

  EXPECT_EQ(ever<action::Prove>(), 0);
}

// Another kind of lock at the path.

TEST(SemaphoreStrangers, AreTheEntriesOfQueuesInAnyDialect) {
  const std::vector<std::string> children = {"locks", "leases", "readme", "x-1-0000000003",
                                             "6f7a__lock__0000000001"};
  EXPECT_EQ(strangers(children),
            (std::vector<std::string>{"x-1-0000000003", "6f7a__lock__0000000001"}));
}

TEST_F(PermitsTest, AUsualPathIsNotListed) {
  hold();
  EXPECT_EQ(ever<action::ListPath>(), 0);
}

TEST_F(PermitsTest, WhoHasToMakeTheLeasesLooksForAnotherLockBefore) {
  make(1, 1);
  size_is("", no(Code::kNoNode));
  tell(event::First{});
  created_not(no(Code::kNoNode));
  EXPECT_EQ(did<action::Sync>(), 1);
  EXPECT_EQ(ever<action::MakeDirectory>(), 0);
  path_listed({"locks"});
  EXPECT_EQ(last<action::MakeDirectory>().path, "/pool/leases");
}

TEST_F(PermitsTest, WhereAQueueIsNoLeasesAreMade) {
  make(1, 1);
  size_is("", no(Code::kNoNode));
  tell(event::First{});
  created_not(no(Code::kNoNode));
  path_listed({"locks", entry(3)});

  expect_failed(Code::kKindMismatch);
  EXPECT_EQ(ever<action::MakeDirectory>(), 0);
  EXPECT_EQ(did<action::Unqueue>(), 1);
  EXPECT_EQ(did<action::Done>(), 1);
}

TEST_F(PermitsTest, AnEntryOlderThanTheLeasesIsAnotherLock) {
  view_with_a_stranger();
  path_listed({"locks", "leases", entry(3), entry(4)}, kOk, {entry(3)});

  expect_failed(Code::kKindMismatch);
  EXPECT_EQ(owed(), mine_);
}

TEST_F(PermitsTest, AYoungerOneIsGivenTimeToFailOrToEndWithItsSession) {
  view_with_a_stranger();
  for (int i = 0; i < 10; ++i) {
    path_listed({"locks", "leases", entry(3), entry(4 + i)});
    ASSERT_EQ(did<action::Pause>(), 1);
    resumed();
  }
  path_listed({"locks", "leases", entry(20)});
  EXPECT_EQ(ever<action::Fail>(), 0);
  EXPECT_EQ(permits_->describe(), "viewing");
}

TEST_F(PermitsTest, H44_AWriterThatBecomesAReaderHasNotGone) {
  const auto of_tag = [](const std::string& tag) {
    return "_c_00000000-0000-4000-8000-000000000007-" + tag + "0000000003";
  };
  view_with_a_stranger();
  path_listed({"locks", "leases", of_tag("__WRIT__")});
  resumed();
  path_listed({"locks", "leases", of_tag("__READ__")});
  EXPECT_EQ(did<action::Pause>(), 1);
}

TEST_F(PermitsTest, OneThatStaysForLongIsALockOfAClientThatDoesNotLook) {
  view_with_a_stranger();
  for (int i = 0; i < 40; ++i) {
    path_listed({"locks", "leases", entry(3)});
    ASSERT_EQ(did<action::Pause>(), 1);
    resumed();
  }
  path_listed({"locks", "leases", entry(3)});

  expect_failed(Code::kKindMismatch);
  EXPECT_EQ(owed(), mine_);
}

TEST_F(PermitsTest, AnEntryThatGoesWasAContenderThatHasFailed) {
  view_with_a_stranger();
  path_listed({"locks", "leases", entry(3)});
  resumed();
  path_listed({"locks", "leases", entry(4)});
  listed();
  size_is("3", kOk, 3);
  proved();

  EXPECT_EQ(did<action::GrantAll>(), 1);
}

TEST_F(PermitsTest, AChildThatIsNoContendersIsNobodysLock) {
  view_with_a_stranger();
  path_listed({"locks", "leases", "readme"});
  listed();
  size_is("3", kOk, 3);

  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(PermitsTest, APathThatCannotBeListedNowIsListedLater) {
  view_with_a_stranger();
  path_listed({}, kMaybe);
  EXPECT_EQ(did<action::ListPath>(), 1);
  path_listed({}, no(Code::kOverloaded));
  EXPECT_EQ(did<action::Pause>(), 1);
  resumed();
  path_listed({}, no(Code::kNotAuthorized));
  EXPECT_EQ(ever<action::Fail>(), 0);
  EXPECT_EQ(permits_->describe(), "viewing");
}

TEST_F(PermitsTest, H06_WhoGivesUpWhileItLooksAtThePathLeavesNothing) {
  view_with_a_stranger();
  tell(event::Cancel{Code::kTimedOut});

  EXPECT_EQ(owed(), mine_);
  EXPECT_EQ(did<action::Unqueue>(), 1);
  EXPECT_EQ(did<action::Done>(), 1);
}

TEST_F(PermitsTest, WhereAnotherKindOfLockIsNotEvenAQueueIsMade) {
  make(1, 5);
  EXPECT_EQ(last<action::Queue>().missing, Missing::kFail);
  size_is("", kOk, 1);
  tell(event::OutOfLine{Code::kNoNode});
  EXPECT_EQ(did<action::Sync>(), 1);
  path_listed({entry(0)});

  expect_failed(Code::kKindMismatch);
  EXPECT_EQ(ever<action::Queue>(), 1);
  EXPECT_EQ(ever<action::Unqueue>(), 0);
  EXPECT_EQ(did<action::Done>(), 1);
}

TEST_F(PermitsTest, AQueueInFrontIsMadeOnceThePathIsLookedAt) {
  make(1, 5);
  size_is("", no(Code::kNoNode));
  tell(event::OutOfLine{Code::kNoNode});
  path_listed({}, no(Code::kNoNode));

  EXPECT_EQ(did<action::Queue>(), 1);
  EXPECT_EQ(last<action::Queue>().missing, Missing::kMake);
  tell(event::OutOfLine{Code::kNoNode});
  expect_failed(Code::kNoNode);
}

TEST_F(PermitsTest, H46_WhereAnotherLockWasTheFirstSaysHowLargeItIs) {
  make(1, 5);
  tell(event::SizeRead{last<action::ReadSize>().ask, kOk, "left 17", 0, 7});
  tell(event::OutOfLine{Code::kNoNode});
  path_listed({});
  EXPECT_EQ(did<action::Queue>(), 0);
  const auto store = last<action::StoreSize>();
  EXPECT_EQ(store.size, 5);
  EXPECT_EQ(store.version, 7);
  tell(event::SizeStored{store.ask, kOk});
  EXPECT_EQ(did<action::Queue>(), 1);
}

TEST_F(PermitsTest, H46_APathThatAServerDidNotKnowYetIsReadAgain) {
  make(1, 5);
  size_is("", no(Code::kNoNode));
  tell(event::OutOfLine{Code::kNoNode});
  path_listed({});
  tell(event::SizeRead{last<action::ReadSize>().ask, kOk, "held 17", 0, 7});
  tell(event::OutOfLine{Code::kNoNode});
  path_listed({});
  EXPECT_EQ(last<action::StoreSize>().version, 7);
}

TEST_F(PermitsTest, H46_WhoIsLateToSayItIsMeasuredByWhatWasSaid) {
  make(1, 5);
  size_is("gone 17", kOk, 0);
  tell(event::OutOfLine{Code::kNoNode});
  path_listed({});
  tell(event::SizeStored{last<action::StoreSize>().ask, kMaybe});
  EXPECT_EQ(permits_->describe(), "checking the path");
  path_listed({});
  tell(event::SizeStored{last<action::StoreSize>().ask, no(Code::kBadVersion)});
  size_is("3");
  synced();
  size_is("3");
  expect_failed(Code::kSizeMismatch);
  EXPECT_EQ(ever<action::Queue>(), 1);
}

TEST_F(PermitsTest, ASizeThatMayNotBeStoredIsTakenOnTrust) {
  make(1, 5);
  size_is("", kOk, 0);
  tell(event::OutOfLine{Code::kNoNode});
  path_listed({});
  tell(event::SizeStored{last<action::StoreSize>().ask, no(Code::kConnectionLoss)});
  resumed();
  path_listed({});
  tell(event::SizeStored{last<action::StoreSize>().ask, no(Code::kNotAuthorized)});
  EXPECT_EQ(did<action::Queue>(), 1);
}

TEST_F(PermitsTest, ASemaphoreThatGoesBeforeItIsQueuedAtIsNotMadeWithoutASize) {
  make(1);
  size_is("3");
  tell(event::OutOfLine{Code::kNoNode});
  path_listed({}, no(Code::kNoNode));
  EXPECT_EQ(ever<action::Queue>(), 1);
  size_is("", no(Code::kNoNode));
  synced();
  size_is("", no(Code::kNoNode));

  expect_failed(Code::kInvalidOption);
}

TEST_F(PermitsTest, ASurveyThatIsAnsweredWhileItLooksAtThePathDoesNotQueueItTwice) {
  for (const Answer& answer : {kOk, no(Code::kConnectionLoss)}) {
    make(1, 5);
    tell(event::OutOfLine{Code::kNoNode});
    size_is("5", answer);
    EXPECT_EQ(did<action::Queue>(), 0);
    EXPECT_EQ(permits_->describe(), "checking the path");
    path_listed({});
    EXPECT_EQ(did<action::Queue>(), 1);
  }
}

TEST_F(PermitsTest, H06_WhoGivesUpBeforeThePathIsLookedAtLeavesNothing) {
  make(1, 5);
  tell(event::OutOfLine{Code::kNoNode});
  tell(event::Cancel{Code::kTimedOut});
  EXPECT_EQ(ever<action::Unqueue>(), 0);
  EXPECT_EQ(did<action::Done>(), 1);
}

// The size.

TEST_F(PermitsTest, WithoutASizeItLooksBeforeItQueues) {
  make(1);
  EXPECT_EQ(ever<action::Queue>(), 0);
  size_is("3");
  EXPECT_EQ(did<action::Queue>(), 1);
}

TEST_F(PermitsTest, H46_AMismatchIsBelievedOnlyBehindASync) {
  make(1, 5);
  EXPECT_EQ(did<action::Queue>(), 1);
  size_is("3");
  EXPECT_EQ(did<action::Sync>(), 1);
  EXPECT_EQ(ever<action::Fail>(), 0);
  synced();
  size_is("3");

  expect_failed(Code::kSizeMismatch);
  EXPECT_EQ(did<action::Unqueue>(), 1);
  EXPECT_EQ(did<action::Done>(), 1);
}

TEST_F(PermitsTest, H46_AMismatchReadBehindACutIsBelievedOnlyBehindASyncOfItsOwn) {
  make(1, 5);
  size_is("3");
  synced();
  size_is("", kMaybe);
  EXPECT_EQ(did<action::Sync>(), 1) << "the new connection may lead to a server that is behind";
  EXPECT_EQ(did<action::ReadSize>(), 1);
  size_is("3");
  EXPECT_EQ(ever<action::Fail>(), 0) << "that sync has not been answered";
  synced();
  size_is("3");
  expect_failed(Code::kSizeMismatch);
}

TEST_F(PermitsTest, H46_ASyncThatDidNotHappenProvesNothing) {
  for (const Answer& answer : {kMaybe, kFault}) {
    all_.clear();
    make(1, 5);
    size_is("3");
    synced(answer);
    size_is("3");
    EXPECT_EQ(ever<action::Fail>(), 0);
    EXPECT_EQ(did<action::Sync>(), 1);
    synced();
    size_is("5");
    EXPECT_EQ(ever<action::Fail>(), 0);
  }
}

TEST_F(PermitsTest, H46_WhereASyncIsRefusedForTheMomentWhoQueuesDecidesAtTheHead) {
  make(1, 5);
  size_is("3");
  synced(no(Code::kOverloaded));
  size_is("3");
  EXPECT_TRUE(did_.empty());
  tell(event::First{});
  created(4);
  listed();
  size_is("5");
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(PermitsTest, H46_WhoDoesNotQueueAsksForThatSyncAgainAfterAPause) {
  make(4);
  size_is("3");
  synced(no(Code::kOverloaded));
  size_is("3");
  EXPECT_EQ(did<action::Pause>(), 1);
  resumed();
  EXPECT_EQ(did<action::Sync>(), 1);
  synced();
  size_is("3");
  expect_failed(Code::kInvalidOption);
}

TEST_F(PermitsTest, ASyncThatIsRefusedForGoodIsTheErrorThen) {
  make(1, 5);
  size_is("3");
  synced(no(Code::kNotAuthorized));
  size_is("3");
  expect_failed(Code::kNotAuthorized);
  EXPECT_EQ(did<action::Done>(), 1);
}

TEST_F(PermitsTest, AnotherKindOfLockIsBelievedOnlyBehindASync) {
  make(1, 5);
  size_is("", kOk, 1);
  tell(event::OutOfLine{Code::kNoNode});
  tell(event::PathListed{last<action::ListPath>().ask, kOk, {entry(0)}, {}});
  EXPECT_EQ(ever<action::Fail>(), 0);
  EXPECT_EQ(did<action::Sync>(), 1);
  synced(no(Code::kOverloaded));
  tell(event::PathListed{last<action::ListPath>().ask, kOk, {entry(0)}, {}});
  EXPECT_EQ(ever<action::Fail>(), 0);
  EXPECT_EQ(did<action::Pause>(), 1);
  resumed();
  path_listed({entry(0)});
  expect_failed(Code::kKindMismatch);
}

TEST_F(PermitsTest, H46_AServerThatWasBehindIsForgiven) {
  make(1, 5);
  size_is("3");
  synced();
  size_is("5");
  EXPECT_EQ(ever<action::Fail>(), 0);
}

TEST_F(PermitsTest, AWrongSizeIsABetterReasonThanSomebodyAhead) {
  make(1, 5, Wait::kNo);
  size_is("3");
  tell(event::OutOfLine{Code::kBusy});
  EXPECT_EQ(ever<action::Fail>(), 0);
  synced();
  size_is("3");
  expect_failed(Code::kSizeMismatch);
}

TEST_F(PermitsTest, BusyStaysBusyIfTheSizeWasRightAfterAll) {
  make(1, 5, Wait::kNo);
  size_is("3");
  tell(event::OutOfLine{Code::kBusy});
  synced();
  size_is("5");
  expect_failed(Code::kBusy);
  EXPECT_EQ(did<action::Done>(), 1);
}

TEST_F(PermitsTest, H46_TheFirstSizeItMeetsHasToBeItsOwn) {
  make(1, 5);
  size_is("", no(Code::kNoNode));
  tell(event::First{});
  created(4);
  listed();
  size_is("3");

  expect_failed(Code::kSizeMismatch);
  EXPECT_EQ(owed(), mine_);
}

TEST_F(PermitsTest, H48_WhoAgreedOnceGoesAlongWithAResize) {
  make(2, 3);
  size_is("3");
  tell(event::First{});
  created(4);
  listed(others(1, 2));
  size_is("4");
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(PermitsTest, H48_ASizeBelowWhatIsWantedEndsTheWait) {
  wait();
  tell(event::SizeChanged{});
  listed(others(1, 2));
  size_is("1");

  expect_failed(Code::kInvalidOption);
  EXPECT_EQ(owed(), mine_);
}

TEST_F(PermitsTest, NoSizeAnywhereIsAnErrorAndOneOfTheCallerAWarning) {
  make(1);
  size_is("", no(Code::kNoNode));
  synced();
  size_is("");
  expect_failed(Code::kInvalidOption);
  EXPECT_EQ(ever<action::Queue>(), 0);

  all_.clear();
  make(1, 2);
  size_is("");
  tell(event::First{});
  created(4);
  listed();
  size_is("");
  EXPECT_EQ(ever<action::Warn>(), 1);
  EXPECT_EQ(did<action::Prove>(), 1);
}

// Waiting.

TEST_F(PermitsTest, H47_WaitsWithBothWatchesAndDropsThemBeforeItHolds) {
  wait();
  EXPECT_EQ(ever<action::ListAndWatch>(), 1);
  EXPECT_TRUE(last<action::ReadSize>().watch);

  tell(event::DirectoryChanged{});
  EXPECT_EQ(did<action::ListAndWatch>(), 1) << "its watch is used up";
  EXPECT_FALSE(last<action::ReadSize>().watch) << "this one is still in place";
  listed(others(1, 1));
  size_is("3");
  EXPECT_EQ(did<action::UnwatchDirectory>(), 1);
  EXPECT_EQ(did<action::UnwatchSize>(), 1);
  EXPECT_EQ(did<action::Prove>(), 1);
}

TEST_F(PermitsTest, H47_AnEventBetweenListAndSizeIsNotForgotten) {
  wait();
  tell(event::DirectoryChanged{});
  listed(others(1, 2));
  tell(event::DirectoryChanged{});
  size_is("3");
  EXPECT_EQ(did<action::ListAndWatch>(), 1);
}

TEST_F(PermitsTest, H48_TheSizeIsReadAgainBehindAListThatWasAskedAgain) {
  make(1);
  size_is("1");
  tell(event::First{});
  created(4);
  const Ask early = last<action::ReadSize>().ask;
  listed_exactly({}, kMaybe);
  tell(event::SizeRead{early, kOk, "9"});
  listed(others(1, 1));
  EXPECT_EQ(ever<action::Prove>(), 0);
  size_is("1");
  EXPECT_EQ(ever<action::Prove>(), 0);
}

TEST_F(PermitsTest, TryLockOwesItsLeasesBeforeItLeavesTheQueue) {
  make(2, {}, Wait::kNo);
  size_is("3");
  tell(event::First{});
  created(4);
  listed(others(1, 2));
  size_is("3");

  expect_failed(Code::kBusy);
  ASSERT_EQ(did_.size(), 5U);
  EXPECT_TRUE(std::holds_alternative<action::Owe>(did_[1]));
  EXPECT_TRUE(std::holds_alternative<action::Owe>(did_[2]));
  EXPECT_TRUE(std::holds_alternative<action::Unqueue>(did_[3]));
  EXPECT_TRUE(std::holds_alternative<action::Done>(did_[4]));
}

// Identity.

class PermitsInDoubt : public PermitsTest {
 protected:
  void SetUp() override {
    make(2);
    size_is("3");
    tell(event::First{});
    created_not(kMaybe);
    ASSERT_EQ(did<action::Sync>(), 1);
    tell(event::Synced{last<action::Sync>().ask, kOk});
  }
};

TEST_F(PermitsInDoubt, H01_AllOfThemAreAdopted) {
  listed_exactly({lease(1, 5), lease(1, 4)});
  looked(lease(1, 4), true, 500);
  looked(lease(1, 5), true, 500);
  mine_ = {lease(1, 4), lease(1, 5)};
  listed();
  size_is("3");
  proved();

  EXPECT_EQ(ever<action::CreateAll>(), 1);
  EXPECT_EQ(last<action::GrantAll>().names, mine_);
  EXPECT_EQ(last<action::GrantAll>().czxid, 500);
}

TEST_F(PermitsInDoubt, H01_NoneOfThemMeansCreatedAgain) {
  listed_exactly(others(1, 1));
  EXPECT_EQ(did<action::CreateAll>(), 1);
}

TEST_F(PermitsInDoubt, H05_SomeOfThemAreALoss) {
  listed_exactly({lease(1, 5)});
  looked(lease(1, 5), true, 500);

  expect_failed(Code::kLost);
  EXPECT_EQ(owed(), std::vector{lease(1, 5)});
  EXPECT_EQ(did<action::Done>(), 1);
}

TEST_F(PermitsInDoubt, H02_OfTwoSetsTheFirstIsKept) {
  listed_exactly({lease(1, 4), lease(1, 5), lease(1, 8), lease(1, 9)});
  for (const int number : {4, 5}) looked(lease(1, number), true, 500);
  for (const int number : {8, 9}) looked(lease(1, number), true, 600);

  EXPECT_EQ(owed(), (std::vector{lease(1, 8), lease(1, 9)}));
  EXPECT_EQ(permits_->describe(), "viewing");
}

TEST_F(PermitsInDoubt, H04_WhatBelongsToAnotherSessionIsNotOurs) {
  listed_exactly({lease(1, 4), lease(1, 5)});
  looked(lease(1, 4), false, 500);
  looked(lease(1, 5), false, 500);

  EXPECT_EQ(did<action::CreateAll>(), 1);
  EXPECT_EQ(last<action::CreateAll>().prefix, node_prefix(format_guid(1, 2), Tag::kLease));
  EXPECT_TRUE(owed().empty());
}

TEST_F(PermitsInDoubt, H06_GivingUpMeansFindingThemAllTheSame) {
  tell(event::Cancel{Code::kTimedOut});
  expect_failed(Code::kTimedOut);
  EXPECT_EQ(did<action::Unqueue>(), 1);
  EXPECT_EQ(did<action::Done>(), 0);
  listed_exactly({lease(1, 4), lease(1, 5)});
  looked(lease(1, 4), true, 500);
  looked(lease(1, 5), true, 500);

  EXPECT_EQ(owed(), (std::vector{lease(1, 4), lease(1, 5)}));
  EXPECT_EQ(did<action::Done>(), 1);
}

TEST_F(PermitsTest, ATwinOfOursIsOwedAndDoesNotCount) {
  make(1);
  size_is("1");
  tell(event::First{});
  created(7);
  listed({lease(1, 3)});
  size_is("1");
  looked(lease(1, 3), true, 400);

  EXPECT_EQ(owed(), std::vector{lease(1, 3)});
  EXPECT_EQ(did<action::Prove>(), 1);
}

// Ends.

TEST_F(PermitsTest, H05_LosingOneNodeIsLosingAll) {
  hold();
  tell(event::Heartbeat{});
  EXPECT_EQ(did<action::Watch>(), 2);
  tell(event::Gone{mine_[0]});

  EXPECT_EQ(did<action::Lose>(), 1);
  EXPECT_EQ(owed(), std::vector{mine_[1]});
  EXPECT_EQ(did<action::Done>(), 1);
}

TEST_F(PermitsTest, H09_ALeaseThatEndsIsALossAndTheNodesAreOwed) {
  hold();
  tell(event::LeaseOver{});
  EXPECT_EQ(last<action::Lose>().code, Code::kLost);
  EXPECT_EQ(owed(), mine_);
}

TEST_F(PermitsTest, H22_NothingIsOwedWhenTheSessionIsOver) {
  hold();
  tell(event::SessionOver{Code::kSessionLost});
  EXPECT_EQ(did<action::Lose>(), 1);
  EXPECT_EQ(did<action::Done>(), 1);
  EXPECT_TRUE(owed().empty());
}

TEST_F(PermitsTest, APlaceInTheQueueThatIsGoneEndsTheWait) {
  wait();
  tell(event::OutOfLine{Code::kLost});
  expect_failed(Code::kLost);
  EXPECT_EQ(owed(), mine_);
  EXPECT_EQ(ever<action::Unqueue>(), 0);
  EXPECT_EQ(did<action::UnwatchDirectory>(), 1);
  EXPECT_EQ(did<action::UnwatchSize>(), 1);
}

// The directory of the leases.

TEST_F(PermitsTest, H39_AMissingDirectoryIsMadeAndASecondTimeAfterAPause) {
  make(1);
  size_is("1");
  tell(event::First{});
  created_not(no(Code::kNoNode));
  path_listed({"locks"});
  EXPECT_EQ(last<action::MakeDirectory>().path, "/pool/leases");
  tell(event::Made{last<action::MakeDirectory>().ask, kOk});
  created_not(no(Code::kNoNode));
  EXPECT_EQ(did<action::Pause>(), 1);
  resumed();
  path_listed({"locks"});
  EXPECT_EQ(did<action::MakeDirectory>(), 1);
}

TEST_F(PermitsTest, H35_ACounterNearItsEndIsDrainedAndTheDirectoryMadeAnew) {
  make(1);
  size_is("2");
  tell(event::First{});
  created(kSpentFrom);
  EXPECT_EQ(owed(), mine_);
  EXPECT_EQ(did<action::ListAndWatch>(), 1);
  listed(others(kSpentFrom - 1, 1));
  EXPECT_TRUE(did_.empty()) << "it waits for the others to let go";
  tell(event::DirectoryChanged{});
  listed();
  EXPECT_EQ(did<action::RemoveDirectory>(), 1);
  tell(event::Removed{last<action::RemoveDirectory>().ask, kOk});

  EXPECT_EQ(did<action::CreateAll>(), 1);
  EXPECT_EQ(last<action::CreateAll>().prefix, node_prefix(format_guid(1, 2), Tag::kLease));
  created_not(no(Code::kNoNode));
  path_listed({"locks"});
  EXPECT_EQ(did<action::MakeDirectory>(), 1);
}

}  // namespace
}  // namespace latchkey::queue
