#include <future>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "latchkey/election.hpp"
#include "latchkey/lockable.hpp"
#include "latchkey/multi_lock.hpp"
#include "latchkey/name_lock.hpp"
#include "latchkey/rw_lock.hpp"
#include "latchkey/semaphore.hpp"

/// What users get wrong, and what they are told.
namespace latchkey::test_support {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A session that never finds a server: what is refused here is refused before anything is sent.
Session nowhere(SessionOptions options = {}) {
  auto session = Session::start("127.0.0.1:1", std::move(options));
  if (!session) throw std::runtime_error(session.error().message());
  return *session;
}

testing::AssertionResult is_refused(const Lock& lock, Code code, std::string_view why) {
  return fails_with(lock.lock(soon()), code, why);
}

TEST(Misuse, OptionsThatMakeNoSenseAreNamedWithTheirValue) {
  const Session session = nowhere();
  const auto refused = [&](MutexOptions options, std::string_view why) {
    return is_refused(Mutex(session, "/a", std::move(options)), Code::kInvalidOption, why);
  };

  EXPECT_TRUE(refused({.hand_over = {.count = -1}}, "lock /a: hand_over.count is -1"));
  EXPECT_TRUE(refused({.hand_over = {.count = 5, .time = -1ms}}, "hand_over.time is -1 ms"));
  EXPECT_TRUE(refused({.hand_over = {.time = -1ms}}, "hand_over.time is -1 ms"));
  EXPECT_TRUE(refused({.lock_delay = -1s}, "a lock delay is -1000 ms"));
  EXPECT_TRUE(refused({.extra_tags = {"lock-", ""}}, "an extra tag is empty"));
}

TEST(Misuse, AnElectionWithOptionsThatMakeNoSenseFailsAtOnce) {
  const Session session = nowhere();
  const auto failure = [&](void (*spoil)(ElectionOptions&)) {
    Recorder<ElectionNews> news;
    ElectionOptions options{.on_change = news.adder()};
    spoil(options);
    const Election election(session, "/a", std::move(options));
    if (!news.wait_for(1) || !news.all()[0].error) return std::string("nothing is told");
    EXPECT_EQ(news.all()[0].state, ElectionState::kFailed);
    EXPECT_EQ(news.all()[0].error->code(), Code::kInvalidOption);
    return news.all()[0].error->message();
  };

  EXPECT_THAT(failure([](auto& o) { o.min_pause = -1ms; }), HasSubstr("min_pause is -1 ms"));
  EXPECT_THAT(failure([](auto& o) { o.max_pause = 1ms; }),
              HasSubstr("max_pause is 1 ms; it may be 100 ms and more"));
  EXPECT_THAT(failure([](auto& o) { o.short_term = -1ms; }), HasSubstr("short_term"));
  EXPECT_THAT(failure([](auto& o) { o.health_period = 0ms; }), HasSubstr("health_period is 0 ms"));
  EXPECT_THAT(failure([](auto& o) { o.take_over_delay = -1ms; }), HasSubstr("take_over_delay"));
}

TEST(Misuse, TheRootAndTheServicesOwnNodesAreNoPlaceForALock) {
  const Session session = nowhere();
  for (const char* path : {"/", "/zookeeper", "/zookeeper/quota"}) {
    const std::string named = "lock " + std::string(path);
    EXPECT_TRUE(is_refused(Mutex(session, path), Code::kInvalidPath, named));
    EXPECT_TRUE(is_refused(RwLock(session, path).read(), Code::kInvalidPath, named));
    EXPECT_TRUE(is_refused(MultiLock(session, {"/a", path}), Code::kInvalidPath, named));
    const Semaphore semaphore(session, path, {.size = 2});
    EXPECT_TRUE(is_refused(semaphore.permits(), Code::kInvalidPath, named));
    EXPECT_TRUE(fails_with(semaphore.resize(3, soon()), Code::kInvalidPath, named));
    EXPECT_TRUE(fails_with(semaphore.size(soon()), Code::kInvalidPath, named));
    EXPECT_TRUE(is_refused(NameLock(session, path), Code::kInvalidPath, path));
  }
}

TEST(Misuse, BelowAChrootEveryPathIsTheUsers) {
  SessionOptions options;
  options.chroot = "/app";
  const Session sessions[] = {nowhere(options), *Session::start("127.0.0.1:1/app")};
  std::vector<std::future<Result<Lease>>> answers;
  for (const Session& session : sessions) {
    for (const char* path : {"/", "/zookeeper"}) {
      // Not so soon that it has passed before anything is asked.
      answers.push_back(Mutex(session, path).lock_async(deadline_in(8s)).future());
    }
  }
  for (auto& answer : answers) EXPECT_TRUE(fails_with(answer.get(), Code::kTimedOut, "no answer"));
}

/// One process for each, which ends with the sentence.
class MisuseDeath : public testing::Test {
 protected:
  MisuseDeath() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(MisuseDeath, ALeaseThatWasMovedAwayIsNamed) {
  const Lease lease{nullptr};

  EXPECT_EQ(lease.state(), LeaseState::kReleased);
  Multi multi;
  EXPECT_TRUE(fails_with(lease.guard(multi), Code::kLost, "moved away"));
  EXPECT_DEATH(static_cast<void>(lease.token()), "latchkey: Lease::token\\(\\): .* moved away");
  EXPECT_DEATH(static_cast<void>(lease.lost()), "latchkey: Lease::lost\\(\\): .* moved away");
}

TEST_F(MisuseDeath, ARequestThatIsSentTwiceIsNamed) {
  const Mutex mutex(nowhere(), "/a");
  LockRequest request = mutex.lock_async(deadline_in(1ms));
  static_cast<void>(std::move(request).wait());

  EXPECT_DEATH(static_cast<void>(std::move(request).wait()), "latchkey: LockRequest: it was sent");
  EXPECT_DEATH(std::move(request).then({}), "latchkey: LockRequest: it was sent");
  EXPECT_DEATH(static_cast<void>(std::move(request).on({})), "latchkey: LockRequest: it was sent");
}

TEST_F(MisuseDeath, ALockThatWasMovedAwayIsNamed) {
  Lock lock = Mutex(nowhere(), "/a");
  const Lock other = std::move(lock);

  EXPECT_DEATH(static_cast<void>(lock.lock(soon())), "latchkey: Lock::lock\\(\\): .* moved away");
}

TEST(Misuse, AStandardLockThrowsTheSentenceOnce) {
  Lockable lockable(Mutex(nowhere(), "bad"));
  try {
    lockable.lock();
    FAIL() << "nothing was thrown";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidPath);
    EXPECT_STREQ(error.what(), "path \"bad\": it must begin with /");
  }
}

class WordsTest : public MutexTest {};

INSTANTIATE_TEST_SUITE_P(Embedded, WordsTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(WordsTest, WhoIsNotFirstByTheDeadlineHearsWhoIs) {
  const Lease holder = take(open(), directory);
  Session session = open();
  const std::string ahead = holder.node().substr(directory.size() + 1);

  const auto late = mutex(session).lock(deadline_in(10s));
  const auto busy = mutex(session).try_lock();

  ASSERT_TRUE(fails_with(late, Code::kTimedOut));
  EXPECT_EQ(late.error().message(),
            "lock " + directory + ": not granted by the deadline (still behind " + ahead + ")");
  ASSERT_TRUE(fails_with(busy, Code::kBusy));
  EXPECT_EQ(busy.error().message(),
            "lock " + directory + ": somebody else is ahead (" + ahead + ")");
}

TEST_P(WordsTest, ADeadlineThatHasPassedIsNotTheServersFault) {
  const auto late = mutex(open()).lock(deadline_in(-1s));

  ASSERT_TRUE(fails_with(late, Code::kTimedOut, directory));
  EXPECT_THAT(late.error().message(), AllOf(HasSubstr("had passed"), Not(HasSubstr("no answer"))));
}

TEST_P(WordsTest, AGuardOfALockThatIsOverNamesItsNode) {
  Lease lease = take(open(), directory);
  lease.release();
  Multi multi;

  EXPECT_TRUE(
      fails_with(lease.guard(multi), Code::kLost, lease.node() + ": the lock was released"));
}

}  // namespace
}  // namespace latchkey::test_support
