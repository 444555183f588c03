#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "latchkey/inspect.hpp"
#include "latchkey/multi_lock.hpp"
#include "latchkey/recursive_mutex.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/semaphore.hpp"

/// What a Lease can do whatever lock it is of: be checked by a transaction, and be asked for.
namespace latchkey::test_support {
namespace {

class LeaseKindsTest : public MutexTest {
 protected:
  struct Kind {
    std::string name;
    std::function<Result<Lease>(const Session&)> take;
  };

  [[nodiscard]] std::vector<Kind> kinds() const {
    return {{"multi",
             [this](const Session& session) {
               return MultiLock(session, {directory + "-a", directory + "-b"}).lock(soon());
             }},
            {"semaphore",
             [this](const Session& session) {
               return Semaphore(session, directory + "-s", {.size = 3}).permits(2).lock(soon());
             }},
            {"read", [this](const Session& session) { return rw(session).read().lock(soon()); }},
            {"write", [this](const Session& session) { return rw(session).write().lock(soon()); }},
            {"downgraded",
             [this](const Session& session) -> Result<Lease> {
               auto writing = rw(session).write().lock(soon());
               if (!writing) return writing.error();
               return rw(session).downgrade(std::move(*writing), soon());
             }},
            {"recursive", [this](const Session& session) {
               return RecursiveMutex(session, directory + "-r").of(Owner()).lock(soon());
             }}};
  }
  [[nodiscard]] RwLock rw(const Session& session) const {
    return RwLock(session, directory + "-rw");
  }
};

INSTANTIATE_TEST_SUITE_P(Standalone, LeaseKindsTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, LeaseKindsTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, LeaseKindsTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(LeaseKindsTest, AGuardedWriteIsMadeWhileTheLockIsHeldAndRefusedOnceAnyNodeOfItIsGone) {
  const std::string ledger = fresh_path();
  make_node(witness.session(), ledger);
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    Session session = open();
    std::size_t nodes = 1;
    for (std::size_t robbed = 0; robbed < nodes; ++robbed) {
      auto lease = kind.take(session);
      ASSERT_TRUE(ok(lease));
      nodes = lease->nodes().size();
      const std::string held = kind.name + std::to_string(robbed);
      Multi good{.parts = {Set{ledger, held}}};
      ASSERT_TRUE(ok(lease->guard(good)));
      auto outcome = session.call(good, soon());
      ASSERT_TRUE(ok(outcome));
      EXPECT_TRUE(outcome->committed);
      Multi late{.parts = {Set{ledger, "too late"}}};
      ASSERT_TRUE(ok(lease->guard(late)));

      ASSERT_TRUE(ok(witness.session().remove(lease->nodes()[robbed], soon())));

      outcome = session.call(late, soon());
      ASSERT_TRUE(ok(outcome));
      EXPECT_FALSE(outcome->committed);
      EXPECT_EQ(witness.synced().get(ledger, soon())->data, held);
      EXPECT_TRUE(fails_with(lease->check(soon()), Code::kLost));
    }
    auto released = kind.take(session);
    ASSERT_TRUE(ok(released));
    released->release();
    Multi never;
    EXPECT_TRUE(fails_with(released->guard(never), Code::kLost));
  }
}

TEST_P(LeaseKindsTest, ARevokeOfAnyNodeIsAWishThatTheHolderHears) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const Session session = open();
    std::size_t nodes = 1;
    for (std::size_t asked = 0; asked < nodes; ++asked) {
      auto lease = kind.take(session);
      ASSERT_TRUE(ok(lease));
      nodes = lease->nodes().size();
      const std::stop_token wish = lease->release_requested();
      EXPECT_FALSE(wish.stop_requested());

      ASSERT_TRUE(ok(revoke(witness.session(), lease->nodes()[asked], soon())));

      EXPECT_TRUE(eventually([&] { return wish.stop_requested(); }));
      EXPECT_EQ(lease->state(), LeaseState::kHeld) << "it is a wish";
      EXPECT_TRUE(ok(lease->release(soon())));
    }
  }
}

TEST_P(LeaseKindsTest, ARevokeReachesEveryLevelOfARecursiveHold) {
  const RecursiveMutex mutex(open(), directory);
  const Owner owner;
  auto outer = mutex.of(owner).lock(soon());
  auto inner = mutex.of(owner).lock(soon());
  ASSERT_TRUE(ok(outer) && ok(inner));
  const std::stop_token outer_wish = outer->release_requested();
  const std::stop_token inner_wish = inner->release_requested();

  ASSERT_TRUE(ok(revoke(witness.session(), outer->node(), soon())));

  EXPECT_TRUE(eventually([&] { return inner_wish.stop_requested(); }));
  EXPECT_TRUE(eventually([&] { return outer_wish.stop_requested(); }));
}

TEST_P(LeaseKindsTest, AReaderThatWasAWriterIsAskedByItsOwnNode) {
  const RwLock lock = rw(open());
  auto writing = lock.write().lock(soon());
  ASSERT_TRUE(ok(writing));
  const std::stop_token wish = writing->release_requested();
  ASSERT_TRUE(ok(revoke(witness.session(), writing->node(), soon())));
  ASSERT_TRUE(eventually([&] { return wish.stop_requested(); }));

  auto reading = lock.downgrade(std::move(*writing), soon());

  // The reader's node is a new one, which nobody has asked for yet.
  ASSERT_TRUE(ok(reading));
  const std::stop_token again = reading->release_requested();
  ASSERT_TRUE(ok(revoke(witness.session(), reading->node(), soon())));
  EXPECT_TRUE(eventually([&] { return again.stop_requested(); }));
}

}  // namespace
}  // namespace latchkey::test_support
