#include <functional>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"

/// The fault sweep: the connection breaks at the 1st, 2nd, ... nth message of each kind on the way
/// through acquire and release, before and after the request and before and after the reply, until
/// a run is over before the fault strikes. Whatever breaks, the same must be true in the end.
namespace latchkey::test_support {
namespace {

using wire::Op;

using Cut = int (FaultProxy::*)(const Match&);

struct NamedCut {
  const char* name;
  Cut cut;
};

constexpr NamedCut kCuts[] = {{"before the request", &FaultProxy::cut_before_request},
                              {"after the request", &FaultProxy::cut_after_request},
                              {"before the reply", &FaultProxy::cut_before_reply},
                              {"after the reply", &FaultProxy::cut_after_reply}};

class MutexSweepTest : public MutexTest {
 protected:
  /// Two sessions go through everything a lock knows: missing directory, queue, hand-over within
  /// the session and between two, cancellation, release. Nothing here takes long, so that the
  /// sessions' time-out never comes to anybody's help.
  void go_through(const std::string& path) {
    Section section;
    Waiter a(Mutex(first, path));
    ASSERT_TRUE(a.holds());
    section.enter(a.lease());
    Waiter b(Mutex(second, path));
    ASSERT_TRUE(witness.queue_reaches(path, 2));
    Waiter c(Mutex(first, path));
    ASSERT_TRUE(witness.queue_reaches(path, 3));
    Waiter d(Mutex(second, path));
    ASSERT_TRUE(witness.queue_reaches(path, 4));
    c.cancel();
    ASSERT_FALSE(c.holds());
    EXPECT_TRUE(fails_with(c.answer(), Code::kCancelled));
    EXPECT_FALSE(b.has_answer());

    for (Waiter* next : {&b, &d}) {
      Waiter& holder = next == &b ? a : b;
      section.leave();
      holder.lease().release();
      ASSERT_TRUE(next->holds());
      section.enter(next->lease());
      EXPECT_NE(next->lease().state(), LeaseState::kLost);
    }
    section.leave();
    d.lease().release();

    EXPECT_EQ(section.overlaps(), 0);
    EXPECT_EQ(section.disorders(), 0);
    EXPECT_TRUE(witness.is_quiet(path));
    EXPECT_TRUE(ok(Mutex(witness.session(), path).try_lock()));
  }

  /// Sweeps one kind of message. `before` makes the message happen, where it needs a fault itself.
  void sweep(
      Op op, const std::function<void()>& before = [] {}) {
    for (const NamedCut& cut : kCuts) {
      const bool is_request =
          cut.cut == &FaultProxy::cut_before_request || cut.cut == &FaultProxy::cut_after_request;
      if (op == Op::kNotification && is_request) continue;
      int nth = 0;
      int fired = 1;
      while (fired > 0) {
        SCOPED_TRACE(testing::Message() << "cut " << cut.name << " no. " << ++nth << " of op "
                                        << static_cast<int>(op));
        before();
        const int fault = (proxy.*cut.cut)({op, nth});
        go_through(fresh_path());
        fired = proxy.fired(fault);
        proxy.disarm_all();
        faults += fired;
        ASSERT_FALSE(HasFatalFailure());
        ASSERT_LT(nth, 40) << "the faults do not come to an end";
      }
      EXPECT_GT(nth, 1) << "nothing was swept: " << cut.name;
    }
    EXPECT_EQ(first.id(), first_id);
    EXPECT_EQ(second.id(), second_id);
  }

  FaultProxy proxy{service().follower()};
  Session first = open_session(proxy.connect_string(), quick(60s));
  Session second = open_session(proxy.connect_string(), quick(60s));
  const std::int64_t first_id = first.id();
  const std::int64_t second_id = second.id();
  int faults = 0;
};

INSTANTIATE_TEST_SUITE_P(Standalone, MutexSweepTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, MutexSweepTest, testing::Values(ServiceKind::kEnsemble));

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
