#include "integration/sweep_fixture.hpp"

namespace latchkey::test_support {
namespace {

using wire::Op;

struct Cut {
  const char* name;
  int (FaultProxy::*arm)(const Match&);
  bool at_request;
};

constexpr Cut kCuts[] = {{"before the request", &FaultProxy::cut_before_request, true},
                         {"after the request", &FaultProxy::cut_after_request, true},
                         {"before the reply", &FaultProxy::cut_before_reply, false},
                         {"after the reply", &FaultProxy::cut_after_reply, false}};

}  // namespace

void SweepTest::sweep(Op op, const std::function<void()>& before) {
  for (const Cut& cut : kCuts) {
    if (op == Op::kNotification && cut.at_request) continue;
    int nth = 0;
    int fired = 1;
    while (fired > 0) {
      SCOPED_TRACE(testing::Message()
                   << "cut " << cut.name << " no. " << ++nth << " of op " << static_cast<int>(op));
      before();
      const int fault = (proxy.*cut.arm)({op, nth});
      go_through(fresh_path());
      wait_for_answers();
      fired = proxy.fired(fault);
      proxy.disarm_all();
      ASSERT_FALSE(HasFatalFailure());
      ASSERT_LT(nth, 40) << "the faults do not come to an end";
    }
    EXPECT_GT(nth, 1) << "nothing was swept: " << cut.name;
  }
  EXPECT_EQ(section_.overlaps(), 0);
  EXPECT_EQ(section_.disorders(), 0);
  EXPECT_EQ(first.id(), first_id_);
  EXPECT_EQ(second.id(), second_id_);
}

/// A run ends when the service has seen its last request, which may be before the answer has passed
/// the proxy. With a request that nobody sweeps; one that is cut off is behind a fault that struck.
void SweepTest::wait_for_answers() {
  for (Session* session : {&first, &second}) {
    static_cast<void>(session->call(GetAcl{"/"}, soon()));
  }
}

testing::AssertionResult SweepTest::is_in_line(const std::string& path) {
  const auto watched = [&](const TrafficRecord& record) {
    return replies_to(Op::kGetData)(record) && record.path.starts_with(path + "/");
  };
  if (proxy.log().wait_for(watched, 2, soon())) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "nobody watches anybody in " << path;
}

void SweepTest::enter(Waiter& waiter) {
  ASSERT_TRUE(waiter.holds());
  section_.enter(waiter.lease());
  EXPECT_NE(waiter.lease().state(), LeaseState::kLost);
}

void SweepTest::hand_on(Waiter& holder, Waiter& next) {
  let_go(holder);
  enter(next);
}

void SweepTest::let_go(Waiter& holder) {
  section_.leave();
  holder.lease().release();
}

void SweepTest::give_up(Waiter& waiter) {
  waiter.cancel();
  ASSERT_FALSE(waiter.holds());
  EXPECT_TRUE(fails_with(waiter.answer(), Code::kCancelled));
}

}  // namespace latchkey::test_support
