#include "interop/interop_fixture.hpp"

namespace latchkey::test_support {

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
