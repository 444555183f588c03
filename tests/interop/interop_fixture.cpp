#include "interop/interop_fixture.hpp"

#include <sstream>

namespace latchkey::test_support {

bool InteropTest::is_watched(const std::string& node) {
  return eventually([&] {
    const auto stat = witness.session().exists(node, soon());
    if (!stat || !*stat) return false;
    std::ostringstream owner;
    owner << "\t0x" << std::hex << (*stat)->ephemeral_owner;
    // One line with the path, then one with each session, indented.
    std::istringstream answer(service().word("wchp"));
    bool here = false;
    for (std::string line; std::getline(answer, line);) {
      if (line.starts_with('/')) {
        here = line == node;
      } else if (here && line.starts_with('\t') && line != owner.str()) {
        return true;
      }
    }
    return false;
  });
}

// The fixtures of tests/integration are here, their tests are not.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MutexTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LeaseTest);

INSTANTIATE_TEST_SUITE_P(Standalone, MutexInteropTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, MutexInteropTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Standalone, KazooInteropTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Standalone, RwLockInteropTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, RwLockInteropTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Standalone, SemaphoreInteropTest,
                         testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, SemaphoreInteropTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Standalone, ElectionInteropTest,
                         testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, ElectionInteropTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Standalone, InspectInteropTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Embedded, MutexInteropTest, testing::Values(ServiceKind::kEmbedded));
INSTANTIATE_TEST_SUITE_P(Embedded, KazooInteropTest, testing::Values(ServiceKind::kEmbedded));
INSTANTIATE_TEST_SUITE_P(Embedded, RwLockInteropTest, testing::Values(ServiceKind::kEmbedded));
INSTANTIATE_TEST_SUITE_P(Embedded, SemaphoreInteropTest, testing::Values(ServiceKind::kEmbedded));
INSTANTIATE_TEST_SUITE_P(Embedded, ElectionInteropTest, testing::Values(ServiceKind::kEmbedded));
INSTANTIATE_TEST_SUITE_P(Embedded, InspectInteropTest, testing::Values(ServiceKind::kEmbedded));

}  // namespace latchkey::test_support
