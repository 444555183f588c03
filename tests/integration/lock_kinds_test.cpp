#include <algorithm>
#include <array>
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "latchkey/election.hpp"
#include "latchkey/multi_lock.hpp"
#include "latchkey/recursive_mutex.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/semaphore.hpp"

/// A path is for one kind of lock: a semaphore and a queue at one path would not exclude each
/// other.
namespace latchkey::test_support {
namespace {

using testing::HasSubstr;
using wire::Op;

class LockKindsTest : public MutexTest {
 protected:
  [[nodiscard]] Lock permit(const Session& session) const {
    return Semaphore(session, directory, {.size = 2}).permits();
  }
  [[nodiscard]] static std::vector<std::string> sorted(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  }
  [[nodiscard]] testing::AssertionResult is_refused(const Lock& lock) const {
    const auto lease = lock.lock(soon());
    if (auto refused = fails_with(lease, Code::kKindMismatch, directory); !refused) return refused;
    return fails_with(lock.try_lock(), Code::kKindMismatch, directory);
  }
};

INSTANTIATE_TEST_SUITE_P(Standalone, LockKindsTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, LockKindsTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, LockKindsTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(LockKindsTest, WhereASemaphoreIsEveryQueueIsRefused) {
  auto held = permit(open()).lock(soon());
  ASSERT_TRUE(ok(held));
  const Session session = open();

  EXPECT_TRUE(is_refused(mutex(session)));
  EXPECT_TRUE(is_refused(Mutex(session, directory, {.name = "one"})));
  EXPECT_TRUE(is_refused(RecursiveMutex(session, directory).of(Owner())));
  EXPECT_TRUE(is_refused(RwLock(session, directory).read()));
  EXPECT_TRUE(is_refused(RwLock(session, directory).write()));
  EXPECT_TRUE(is_refused(MultiLock(session, {directory, fresh_path()})));
  EXPECT_THAT(mutex(session).try_lock().error().message(), HasSubstr("is a semaphore"));

  const std::vector<std::string> nothing_else{"leases", "locks"};
  EXPECT_TRUE(eventually([&] {
    const auto below = witness.synced().children(directory, soon());
    return below && std::ranges::includes(nothing_else, sorted(below->names));
  }));
  EXPECT_TRUE(ok(held->check(soon())));
}

TEST_P(LockKindsTest, WhereASemaphoreIsNobodyIsElected) {
  auto held = permit(open()).lock(soon());
  ASSERT_TRUE(ok(held));
  Recorder<ElectionNews> news;

  const Election election(open(), directory, {.on_change = news.adder()});

  ASSERT_TRUE(news.wait_for(1));
  EXPECT_EQ(news.all()[0].state, ElectionState::kFailed);
  EXPECT_EQ(news.all()[0].error->code(), Code::kKindMismatch);
}

TEST_P(LockKindsTest, WhereAQueueIsPermitsAreRefusedAndTheQueueGoesOn) {
  Lease held = take(open(), directory);
  Session session = open();
  const auto changes = [&] { return witness.synced().children(directory, soon())->stat.cversion; };
  const auto before = changes();

  EXPECT_TRUE(is_refused(permit(session)));
  EXPECT_THAT(permit(session).try_lock().error().message(), HasSubstr(directory + " itself"));
  EXPECT_EQ(changes(), before) << "who is refused leaves nothing";
  EXPECT_TRUE(ok(held.check(soon())));
  ASSERT_TRUE(ok(held.release(soon())));

  EXPECT_TRUE(ok(mutex(session).try_lock()));
}

TEST_P(LockKindsTest, WhoQueuesAtASemaphoreByMistakeDisturbsNobody) {
  const Session takers = open();
  const auto held = permit(takers).lock(soon());  // So that nobody removes an empty semaphore.
  ASSERT_TRUE(ok(held));
  std::atomic<int> tries = 0;
  std::jthread mistaken([&, session = open()](const std::stop_token& stop) {
    for (; !stop.stop_requested(); ++tries) {
      EXPECT_TRUE(fails_with(mutex(session).try_lock(), Code::kKindMismatch));
    }
  });

  for (int i = 0; i < 20 || tries < 20; ++i) {
    auto lease = permit(takers).lock(soon());
    ASSERT_TRUE(ok(lease));
    ASSERT_TRUE(ok(lease->release(soon())));
  }
}

TEST_P(LockKindsTest, WhoDiedWhenItHadQueuedAtASemaphoreIsWaitedFor) {
  const auto held = permit(open()).lock(soon());
  ASSERT_TRUE(ok(held));
  const auto left = witness.session().create(
      directory + "/_c_00000000-0000-0000-0000-000000000000-lock-", "",
      {.lifetime = Lifetime::kEphemeral, .naming = Naming::kSequential}, soon());
  ASSERT_TRUE(ok(left));
  const Session session = open();

  EXPECT_TRUE(fails_with(permit(session).try_lock(), Code::kBusy, directory));
  Waiter next(permit(session));
  ASSERT_TRUE(witness.queue_reaches(directory + "/leases", 2));
  EXPECT_FALSE(next.has_answer());
  ASSERT_TRUE(ok(witness.session().remove(left->path, soon())));

  EXPECT_TRUE(next.holds());
}

TEST_P(LockKindsTest, TheRootBelowAChrootIsAPathLikeAnyOther) {
  SessionOptions options = patient();
  make_node(witness.session(), directory);
  const Session below = open_session(service().connect_string() + directory, options);
  // Older than the leases: a client that does not look is there for good.
  const auto elder = witness.session().create(
      directory + "/_c_00000000-0000-0000-0000-000000000000-lock-", "",
      {.lifetime = Lifetime::kEphemeral, .naming = Naming::kSequential}, soon());
  ASSERT_TRUE(ok(elder));
  make_node(witness.session(), directory + "/leases");

  EXPECT_TRUE(fails_with(Semaphore(below, "/", {.size = 1}).permits().try_lock(soon()),
                         Code::kKindMismatch));
}

TEST_P(LockKindsTest, OfTwoKindsThatComeAtOnceNeverBothHold) {
  const std::array sessions{open(), open()};
  for (int round = 0; round < 20; ++round) {
    const std::string path = fresh_path();
    const Semaphore semaphore(sessions[0], path, {.size = 1});
    auto permit = semaphore.permits().lock_async(soon()).future();
    auto queued = Mutex(sessions[1], path).lock_async(soon()).future();
    const Result<Lease> ours = permit.get();
    const Result<Lease> theirs = queued.get();

    EXPECT_FALSE(ours && theirs);
    for (const auto* one : {&ours, &theirs}) {
      EXPECT_TRUE(*one || fails_with(*one, Code::kKindMismatch, path));
    }
  }
}

TEST_P(LockKindsTest, AChildThatIsNobodysLockCostsOneLookMore) {
  // Or the queue in front, reaped when it is empty, would be made anew behind a look of its own.
  make_node(witness.session(), directory, "2");
  for (const char* below : {"/locks", "/leases"}) make_node(witness.session(), directory + below);
  const auto held = permit(open()).lock(soon());
  ASSERT_TRUE(ok(held));
  make_node(witness.session(), directory + "/readme");
  Proxied one = open_proxied();

  EXPECT_TRUE(ok(permit(one.session).lock(soon())));

  EXPECT_EQ(one.proxy->log().count([this](const TrafficRecord& record) {
    return requests_of(Op::kGetChildren)(record) && record.path == directory;
  }),
            1U);
}

}  // namespace
}  // namespace latchkey::test_support
