#include <gmock/gmock.h>

#include "integration/session_fixture.hpp"
#include "support/child.hpp"

/// A process that forks with every recipe in use; see fork_peer.cpp.
namespace latchkey::test_support {
namespace {

using testing::ElementsAreArray;
using wire::Op;

const std::vector<std::string> kLocks = {"delayed",   "multi",   "mutex",     "name",
                                         "passed on", "permits", "recursive", "write"};

class Fork : public testing::TestWithParam<ServiceKind> {};
INSTANTIATE_TEST_SUITE_P(Standalone, Fork, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Embedded, Fork, testing::Values(ServiceKind::kEmbedded));

TEST_P(Fork, H53_InAForkedChildEveryRecipeFailsAtOnceAndLeavesTheParentAlone) {
  FaultProxy proxy(shared_service(GetParam()).connect_string());
  // What the parent's threads were holding looks like a leak in the child, which has no threads.
  Child child({LATCHKEY_FORK_PEER, proxy.connect_string(), fresh_path()},
              {.environment = {"ASAN_OPTIONS=detect_leaks=0"}});

  std::vector<std::string> expected{"settled"};
  for (const std::string& kind : kLocks) {
    expected.push_back("child " + kind +
                       ": lock Forked, then Forked, future Forked, lease lost, check Forked, "
                       "release Forked");
  }
  for (const char* call :
       {"downgrade", "resize", "size", "leader", "inspect", "revoke", "run", "lockable"}) {
    expected.push_back(std::string("child ") + call + " Forked");
  }
  for (const char* line : {"election failed", "candidate failed Forked", "leader watch Forked",
                           "queue watch Forked", "has destroyed everything", "ended 0"}) {
    expected.push_back(std::string("child ") + line);
  }
  for (const std::string& kind : kLocks) expected.push_back("parent " + kind + ": held, check ok");
  for (const char* line :
       {"election leading", "waiter ok", "queue watch ok", "leader watch ok", "close ok"}) {
    expected.push_back(std::string("parent ") + line);
  }
  std::vector<std::string> lines;
  while (auto line = child.next_line(soon())) lines.push_back(*line);

  EXPECT_THAT(lines, ElementsAreArray(expected));
  EXPECT_EQ(child.wait(soon()), (ExitStatus{0, 0}));
  // One connection, never broken, closed once: by the parent.
  EXPECT_EQ(proxy.connections_accepted(), 1);
  EXPECT_EQ(proxy.log().count([](const TrafficRecord& record) {
    return record.op == Op::kCloseSession && record.direction == Direction::kToServer;
  }),
            1U);
}

}  // namespace
}  // namespace latchkey::test_support
