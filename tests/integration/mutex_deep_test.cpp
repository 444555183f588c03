#include <algorithm>
#include <memory>
#include <vector>

#include "integration/mutex_fixture.hpp"
#include "queue/farewell.hpp"

/// A deep queue of many sessions, where a holder says farewell and the next one need not list:
/// queue/farewell.hpp.
namespace latchkey::test_support {
namespace {

using wire::Op;

/// One session, one entry, and what was asked for it.
class InLine {
 public:
  InLine(const std::string& server, const std::string& directory, MutexOptions options = {})
      : session_(open_session(server, reporting())),
        waiter_(Mutex(session_, directory, std::move(options))) {}

  Waiter& waiter() { return waiter_; }
  [[nodiscard]] std::size_t count(const std::string& operation) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        reports_.all(),
        [&](const OperationReport& report) { return report.operation == operation; }));
  }

 private:
  SessionOptions reporting() {
    SessionOptions options = quick(60s);
    options.on_operation = reports_.adder();
    return options;
  }

  Recorder<OperationReport> reports_;
  Session session_;
  Waiter waiter_;
};

class MutexDeepTest : public MutexTest {
 protected:
  /// The first to know whom it waits for and to look for a farewell, behind one who says none.
  static constexpr std::size_t kFirstToLook = queue::kDeep + 1;

  MutexDeepTest() { make_node(witness.session(), directory); }

  void join(const std::string& server, MutexOptions options = {}) {
    line_.push_back(std::make_unique<InLine>(server, directory, std::move(options)));
    ASSERT_TRUE(witness.queue_reaches(directory, line_.size()));
  }
  void join(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) join(service().connect_string());
  }
  Waiter& at(std::size_t who) { return line_.at(who)->waiter(); }
  /// Those from `first` to the one before `end` take their turns.
  void drain(std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      ASSERT_TRUE(at(i).holds()) << i;
      EXPECT_LT(last_, at(i).lease().token()) << i;
      last_ = at(i).lease().token();
      at(i).lease().release();
    }
  }
  [[nodiscard]] Node data() { return witness.synced().get(directory, soon()).value(); }

  std::vector<std::unique_ptr<InLine>> line_;
  Token last_{0};
};

TEST_P(MutexDeepTest, H33_AHandOverBehindManyNeedsNoList) {
  constexpr std::size_t kMany = kFirstToLook + 8;
  join(kMany);

  drain(0, kMany - 1);
  ASSERT_TRUE(at(kMany - 1).holds());

  EXPECT_EQ(data().data, queue::format_farewell(last_.zxid()));
  EXPECT_EQ(data().stat.version, static_cast<int>(kMany - 1 - kFirstToLook));
  EXPECT_EQ(line_[kFirstToLook]->count("getChildren"), 2U) << "it found nothing";
  for (std::size_t i = kFirstToLook + 1; i < kMany; ++i) {
    // Its neighbour, itself, the directory; reports come behind what they are about.
    EXPECT_TRUE(eventually([&] { return line_[i]->count("getData") == 3; })) << i;
    EXPECT_EQ(line_[i]->count("getChildren"), 1U) << i;
  }
  drain(kMany - 1, kMany);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexDeepTest, H27_WhoeverGivesUpInTheMiddleSaysNoFarewell) {
  constexpr std::size_t kMany = kFirstToLook + 6;
  join(kMany);
  drain(0, kMany - 4);
  ASSERT_TRUE(at(kMany - 4).holds());
  ASSERT_FALSE(data().data.empty());

  at(kMany - 2).cancel();
  ASSERT_TRUE(eventually([&] { return line_[kMany - 1]->count("getChildren") == 2; }));

  EXPECT_FALSE(at(kMany - 1).has_answer());
  at(kMany - 4).lease().release();
  drain(kMany - 3, kMany - 2);
  drain(kMany - 1, kMany);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexDeepTest, WhatAUserKeepsInTheDirectoryStays) {
  constexpr std::size_t kMany = kFirstToLook + 3;
  ASSERT_TRUE(witness.session().set(directory, "mine", soon()));
  join(kMany);

  drain(0, kMany);

  EXPECT_EQ(data().data, "mine");
  EXPECT_EQ(data().stat.version, 1);
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexDeepTest, WhatAUserWritesInBetweenStaysToo) {
  constexpr std::size_t kMany = kFirstToLook + 4;
  join(kMany);
  drain(0, kMany - 2);
  ASSERT_TRUE(at(kMany - 2).holds());
  ASSERT_TRUE(witness.session().set(directory, "mine", soon()));

  drain(kMany - 2, kMany);

  EXPECT_EQ(data().data, "mine");
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexDeepTest, H73_ALockWithADelayKeepsItsMarkAmongThem) {
  constexpr std::size_t kDelayed = kFirstToLook + 2;
  join(kDelayed);
  join(service().connect_string(), {.lock_delay = 50ms});
  join(2);
  drain(0, kDelayed);
  ASSERT_TRUE(at(kDelayed).holds());
  EXPECT_TRUE(data().data.starts_with("held ")) << data().data;

  drain(kDelayed, kDelayed + 3);

  EXPECT_FALSE(data().data.starts_with("held ")) << data().data;
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexDeepTest, H21_AReleaseWithAFarewellIsLostBeforeOrAfterItHappens) {
  for (const bool happens : {false, true}) {
    line_.clear();
    ASSERT_TRUE(witness.is_quiet(directory));
    FaultProxy proxy(service().follower());
    join(kFirstToLook + 1);
    join(proxy.connect_string());
    join(1);
    const int cut =
        happens ? proxy.cut_before_reply(Op::kMulti) : proxy.cut_before_request(Op::kMulti);

    drain(0, line_.size());

    EXPECT_TRUE(proxy.wait_until_fired(cut));
    EXPECT_TRUE(witness.is_quiet(directory));
  }
}

INSTANTIATE_TEST_SUITE_P(Standalone, MutexDeepTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, MutexDeepTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, MutexDeepTest, testing::Values(ServiceKind::kEmbedded));

}  // namespace
}  // namespace latchkey::test_support
