#include "queue/bundle.hpp"

#include <string>

#include <gtest/gtest.h>

#include "queue/counter.hpp"
#include "queue/node_name.hpp"
#include "queue/test_answers.hpp"

// All orders of messages and troubles are in tests/scenario/multi_exploration_test.cpp.
namespace latchkey::queue {
namespace {

/// Two members, "/x" and "/y".
class BundleTest : public testing::Test {
 protected:
  static constexpr std::size_t kSize = 2;

  explicit BundleTest(Wait wait = Wait::kYes) : wait_(wait) { begin(); }

  void begin() {
    members_.clear();
    all_.clear();
    bundle_ = Bundle(kSize);
    for (const char* directory : {"/x", "/y"}) {
      members_.emplace_back(
          Contender::Options{.directory = directory, .wait = wait_, .spent = Spent::kFail},
          [this] { return format_guid(1, ++guids_); });
    }
  }

  void tell(std::size_t member, const Event& event) {
    const auto contender = [this](std::size_t one) -> Contender& { return members_[one]; };
    did_ = bundle_.step(contender, member, event);
    for (const Bundle::Wish& wish : did_) all_.push_back(wish);
  }
  void tell_all(const Event& event) {
    for (std::size_t i = 0; i < kSize; ++i) tell(i, event);
  }

  template <class What>
  [[nodiscard]] static int count(const std::vector<Bundle::Wish>& wishes, std::size_t member) {
    int found = 0;
    for (const Bundle::Wish& wish : wishes) {
      found += wish.member == member && std::holds_alternative<What>(wish.action) ? 1 : 0;
    }
    return found;
  }
  template <class What>
  [[nodiscard]] int did(std::size_t member) const {
    return count<What>(did_, member);
  }
  template <class What>
  [[nodiscard]] int ever(std::size_t member) const {
    return count<What>(all_, member);
  }
  template <class What>
  [[nodiscard]] What last(std::size_t member) const {
    for (auto wish = all_.rbegin(); wish != all_.rend(); ++wish) {
      const What* what = std::get_if<What>(&wish->action);
      if (what && wish->member == member) return *what;
    }
    ADD_FAILURE() << "it never asked for that";
    return {};
  }

  static std::string digits(int number) {
    std::string text = std::to_string(number);
    return text.insert(0, 10 - text.size(), '0');
  }
  [[nodiscard]] std::string name_of(std::size_t member, int number = 9) const {
    return last<action::Create>(member).prefix + digits(number);
  }
  static std::string other(int number) {
    return node_prefix(format_guid(7, 7), Tag::kLock) + digits(number);
  }

  void created(std::size_t member, int number = 9) {
    const action::Create create = last<action::Create>(member);
    tell(member, event::Created{create.ask, kOk, create.prefix + digits(number), 100});
  }
  void created_not(std::size_t member, Answer answer) {
    tell(member, event::Created{last<action::Create>(member).ask, answer, "", 0});
  }
  void listed(std::size_t member, std::vector<std::string> children) {
    tell(member, event::Listed{last<action::List>(member).ask, kOk, std::move(children)});
  }
  /// All are in; member 1 is behind somebody, member 0 is first.
  void wait_in_y() {
    tell_all(event::Start{});
    created(0);
    created(1);
    listed(0, {name_of(0)});
    listed(1, {name_of(1), other(5)});
  }
  /// After an ambiguous transaction: does the member find its node?
  void search(std::size_t member, bool finds) {
    tell(member, event::Synced{last<action::Sync>(member).ask, kOk});
    listed(member, finds ? std::vector{name_of(member)} : std::vector<std::string>{});
    if (finds) tell(member, event::Looked{last<action::Look>(member).ask, kOk, true, 100});
  }
  void hold() {
    tell_all(event::Start{});
    for (const std::size_t i : {0U, 1U}) created(i);
    for (const std::size_t i : {0U, 1U}) listed(i, {name_of(i)});
    tell(0, event::Proved{last<action::Prove>(0).ask, kOk});
  }
  void expect_failed_first(std::size_t member, Code code) const {
    for (const Bundle::Wish& wish : all_) {
      const auto* fail = std::get_if<action::Fail>(&wish.action);
      if (!fail) continue;
      EXPECT_EQ(wish.member, member);
      EXPECT_EQ(fail->code, code);
      return;
    }
    FAIL() << "nobody failed";
  }
  void expect_all_done() const {
    for (std::size_t i = 0; i < kSize; ++i) EXPECT_EQ(ever<action::Done>(i), 1) << i;
  }

  const Wait wait_;
  std::uint64_t guids_ = 0;
  std::vector<Contender> members_;
  Bundle bundle_{kSize};
  std::vector<Bundle::Wish> did_;
  std::vector<Bundle::Wish> all_;
};

class BundleTryTest : public BundleTest {
 protected:
  BundleTryTest() : BundleTest(Wait::kNo) {}
};

TEST_F(BundleTest, H49_AllEnterInOneTransactionAndTheListsStandBehindIt) {
  tell(0, event::Start{});
  EXPECT_TRUE(did_.empty());
  tell(1, event::Start{});

  ASSERT_EQ(did_.size(), 4U);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(did_[i].member, i);
    EXPECT_TRUE(std::holds_alternative<action::Create>(did_[i].action));
    EXPECT_TRUE(std::holds_alternative<action::List>(did_[2 + i].action));
  }
}

TEST_F(BundleTest, H12_TheLeaseIsProvenOnceForAllAndTheGrantsComeTogether) {
  tell_all(event::Start{});
  created(0);
  created(1);
  listed(0, {name_of(0)});
  EXPECT_TRUE(did_.empty());
  EXPECT_TRUE(bundle_.is_ready(0));
  listed(1, {name_of(1)});

  EXPECT_EQ(did<action::Prove>(0) + did<action::Prove>(1), 1);
  tell(0, event::Proved{last<action::Prove>(0).ask, kOk});

  EXPECT_EQ(did<action::Grant>(0), 1);
  EXPECT_EQ(did<action::Grant>(1), 1);
  EXPECT_EQ(ever<action::Watch>(0), 0) << "nobody waited";
}

TEST_F(BundleTest, H12_AnAmbiguousProofGrantsNobodyAndARefusedOneFailsAll) {
  tell_all(event::Start{});
  for (const std::size_t i : {0U, 1U}) created(i);
  for (const std::size_t i : {0U, 1U}) listed(i, {name_of(i)});

  tell(0, event::Proved{last<action::Prove>(0).ask, kMaybe});
  EXPECT_EQ(did<action::Prove>(0), 1);
  EXPECT_EQ(did<action::Grant>(0) + did<action::Grant>(1), 0);

  tell(0, event::Proved{last<action::Prove>(0).ask, no(Code::kServerError)});
  expect_failed_first(0, Code::kServerError);
  EXPECT_EQ(ever<action::Owe>(0), 1);
  EXPECT_EQ(ever<action::Owe>(1), 1);
  expect_all_done();
}

TEST_F(BundleTest, WhoeverIsFirstWatchesItsNodeWhileAnotherWaits) {
  wait_in_y();

  EXPECT_EQ(ever<action::Prove>(0), 0);
  ASSERT_EQ(ever<action::Watch>(0), 1);
  EXPECT_EQ(last<action::Watch>(0).name, name_of(0));
  tell(0, event::Watched{last<action::Watch>(0).ask, kOk});
  tell(0, event::Gone{name_of(0)});
  expect_failed_first(0, Code::kLost);
  EXPECT_EQ(ever<action::Owe>(1), 1);
  expect_all_done();
}

TEST_F(BundleTest, ALeaseThatEndsWhileOneStillWaitsIsNobodysLoss) {
  wait_in_y();
  tell_all(event::LeaseOver{});
  EXPECT_TRUE(did_.empty());
  EXPECT_EQ(ever<action::Fail>(0) + ever<action::Lose>(0), 0);
}

TEST_F(BundleTest, H71_TheOthersEnterAgainWhenAPartFails) {
  for (const std::size_t missing : {0U, 1U}) {
    begin();
    tell_all(event::Start{});
    const std::size_t fine = 1 - missing;
    for (const std::size_t i : {0U, 1U}) {
      created_not(i, no(i == missing ? Code::kNoNode : Code::kRolledBack));
    }
    EXPECT_EQ(ever<action::Create>(fine), 1) << "nothing is sent before both have asked";
    EXPECT_EQ(ever<action::MakeDirectory>(missing), 1);
    EXPECT_EQ(ever<action::MakeDirectory>(fine), 0);

    tell(missing, event::Made{last<action::MakeDirectory>(missing).ask, kOk});

    EXPECT_EQ(did<action::Create>(0), 1);
    EXPECT_EQ(did<action::Create>(1), 1);
    EXPECT_EQ(did<action::List>(0), 1);
    EXPECT_EQ(did<action::List>(1), 1);
  }
}

TEST_F(BundleTest, H49_APartThatIsRefusedForGoodFailsAllAndLeavesNothing) {
  for (const std::size_t refused : {0U, 1U}) {
    begin();
    tell_all(event::Start{});
    for (const std::size_t i : {0U, 1U}) {
      created_not(i, no(i == refused ? Code::kNotAuthorized : Code::kRolledBack));
    }
    expect_failed_first(refused, Code::kNotAuthorized);
    EXPECT_EQ(ever<action::Owe>(0) + ever<action::Owe>(1), 0);
    EXPECT_EQ(ever<action::Create>(0), 1);
    expect_all_done();
  }
}

TEST_F(BundleTest, H49_ATransactionInDoubtIsSearchedForByEachMember) {
  tell_all(event::Start{});
  created_not(0, kMaybe);
  created_not(1, kMaybe);
  EXPECT_EQ(ever<action::Sync>(0), 1);
  EXPECT_EQ(ever<action::Sync>(1), 1);

  search(0, true);
  EXPECT_EQ(ever<action::Prove>(0), 0);
  search(1, true);
  EXPECT_EQ(ever<action::Prove>(0), 1);
  EXPECT_EQ(ever<action::Create>(0), 1);
}

TEST_F(BundleTest, H49_ATransactionThatNobodyFindsIsSentAgain) {
  tell_all(event::Start{});
  created_not(0, kMaybe);
  created_not(1, kMaybe);
  search(0, false);
  EXPECT_EQ(ever<action::Create>(0), 1);
  search(1, false);
  EXPECT_EQ(did<action::Create>(0), 1);
  EXPECT_EQ(did<action::Create>(1), 1);
}

TEST_F(BundleTest, H49_ATransactionOfWhichOnlyAPartIsFoundIsGivenUp) {
  for (const std::size_t finder : {0U, 1U}) {
    for (const bool finder_first : {false, true}) {
      begin();
      const std::size_t robbed = 1 - finder;
      tell_all(event::Start{});
      created_not(0, kMaybe);
      created_not(1, kMaybe);
      search(finder_first ? finder : robbed, finder_first);
      search(finder_first ? robbed : finder, !finder_first);

      expect_failed_first(robbed, Code::kLost);
      EXPECT_EQ(ever<action::Owe>(finder), 1);
      EXPECT_EQ(ever<action::Create>(robbed), 1);
      expect_all_done();
    }
  }
}

TEST_F(BundleTest, H06_ACancelBeforeAllHaveAskedTakesEverythingBack) {
  tell(0, event::Start{});
  tell(0, event::Cancel{Code::kTimedOut});
  expect_failed_first(0, Code::kTimedOut);
  tell(1, event::Start{});
  EXPECT_EQ(ever<action::Create>(0) + ever<action::Create>(1), 0);
  expect_all_done();
}

TEST_F(BundleTest, H06_ACancelWithTheTransactionOnItsWayOwesWhatItMakes) {
  tell_all(event::Start{});
  tell(1, event::Cancel{Code::kCancelled});
  expect_failed_first(1, Code::kCancelled);
  EXPECT_EQ(ever<action::Withdraw>(0) > 0, true);
  created(0);
  created(1);
  EXPECT_EQ(ever<action::Owe>(0), 1);
  EXPECT_EQ(ever<action::Owe>(1), 1);
  expect_all_done();
}

TEST_F(BundleTest, H35_ASpentCounterFailsAllWithAWordOnWhatToDo) {
  tell_all(event::Start{});
  created(0, kSpentFrom);
  expect_failed_first(0, Code::kCounterExhausted);
  EXPECT_NE(last<action::Fail>(0).why.find("/x"), std::string::npos);
  EXPECT_NE(last<action::Fail>(0).why.find("Mutex"), std::string::npos);
  created(1);
  EXPECT_EQ(ever<action::Owe>(0), 1);
  EXPECT_EQ(ever<action::Owe>(1), 1);
  expect_all_done();
}

TEST_F(BundleTest, H49_OneLostLeavesTheOthersToBeReleasedOnceTheHolderKnows) {
  hold();
  tell(0, event::Heartbeat{});
  tell(0, event::Watched{last<action::Watch>(0).ask, kOk});
  tell(0, event::Gone{name_of(0)});

  EXPECT_EQ(ever<action::Lose>(0), 1);
  EXPECT_EQ(ever<action::Owe>(1), 0);
  tell_all(event::Release{});
  EXPECT_EQ(ever<action::Owe>(1), 1);
  expect_all_done();
}

TEST_F(BundleTest, H12_TheEndOfTheSessionEndsAllWithOneAnswer) {
  wait_in_y();
  tell_all(event::SessionOver{Code::kSessionLost});
  expect_failed_first(0, Code::kSessionLost);
  expect_all_done();
}

TEST_F(BundleTryTest, H49_OneThatIsBusyFailsAll) {
  for (const std::size_t busy : {0U, 1U}) {
    begin();
    tell_all(event::Start{});
    created(0);
    created(1);
    listed(1 - busy, {name_of(1 - busy)});
    listed(busy, {name_of(busy), other(5)});
    expect_failed_first(busy, Code::kBusy);
    EXPECT_EQ(ever<action::Owe>(0), 1);
    EXPECT_EQ(ever<action::Owe>(1), 1);
    expect_all_done();
  }
}

}  // namespace
}  // namespace latchkey::queue
