#include "integration/sweep_fixture.hpp"

namespace latchkey::test_support {
namespace {

using wire::Op;

class MutexSweepTest : public SweepTest {
 protected:
  /// Two sessions go through everything a lock knows: missing directory, queue, hand-over within
  /// the session and between two, cancellation, release.
  void go_through(const std::string& path) override {
    Waiter a(Mutex(first, path));
    ASSERT_NO_FATAL_FAILURE(enter(a));
    Waiter b(Mutex(second, path));
    ASSERT_TRUE(witness.queue_reaches(path, 2));
    ASSERT_TRUE(is_in_line(path));
    Waiter c(Mutex(first, path));
    ASSERT_TRUE(witness.queue_reaches(path, 3));
    // Without a watch there is none to give up.
    ASSERT_TRUE(witness.is_watched(path + "/" + witness.queue(path).at(1)));
    Waiter d(Mutex(second, path));
    ASSERT_TRUE(witness.queue_reaches(path, 4));
    ASSERT_NO_FATAL_FAILURE(give_up(c));
    EXPECT_FALSE(b.has_answer());

    ASSERT_NO_FATAL_FAILURE(hand_on(a, b));
    ASSERT_NO_FATAL_FAILURE(hand_on(b, d));
    let_go(d);

    EXPECT_TRUE(witness.is_quiet(path));
    EXPECT_TRUE(ok(Mutex(witness.session(), path).try_lock()));
  }
};

INSTANTIATE_TEST_SUITE_P(Standalone, MutexSweepTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, MutexSweepTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, MutexSweepTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(MutexSweepTest, H01_Create) { sweep(Op::kCreate2); }
TEST_P(MutexSweepTest, H71_List) { sweep(Op::kGetChildren); }
TEST_P(MutexSweepTest, H39_Container) { sweep(Op::kCreateContainer); }
TEST_P(MutexSweepTest, H26_Watch) { sweep(Op::kGetData); }
TEST_P(MutexSweepTest, H21_Delete) { sweep(Op::kDelete); }
TEST_P(MutexSweepTest, H29_RemoveWatch) { sweep(Op::kRemoveWatches); }
TEST_P(MutexSweepTest, H32_Event) { sweep(Op::kNotification); }

// These come only after another fault. The first create of all finds no directory.
TEST_P(MutexSweepTest, H02_SyncOfASearch) {
  sweep(Op::kSync, [this] { proxy.cut_after_request({Op::kCreate2, 2}); });
}
TEST_P(MutexSweepTest, H04_LookAtWhatASearchHasFound) {
  sweep(Op::kExists, [this] { proxy.cut_after_request({Op::kCreate2, 2}); });
}
TEST_P(MutexSweepTest, H32_RestoreOfWatches) {
  sweep(Op::kSetWatches, [this] { proxy.cut_after_reply({Op::kGetData, 2}); });
}
TEST_P(MutexSweepTest, H25_Handshake) {
  sweep(Op::kCreateSession, [this] { proxy.cut_after_request({Op::kGetData, 2}); });
}

}  // namespace
}  // namespace latchkey::test_support
