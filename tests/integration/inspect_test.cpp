#include "latchkey/inspect.hpp"

#include <unistd.h>

#include <latch>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "integration/watch_count.hpp"
#include "latchkey/semaphore.hpp"

/// A lock's queue as data, as it is and as it changes.
namespace latchkey::test_support {

class InspectTest : public MutexTest {};
class QueueWatchTest : public MutexTest {};

INSTANTIATE_TEST_SUITE_P(Standalone, InspectTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, InspectTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, InspectTest, testing::Values(ServiceKind::kEmbedded));
INSTANTIATE_TEST_SUITE_P(Standalone, QueueWatchTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, QueueWatchTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, QueueWatchTest, testing::Values(ServiceKind::kEmbedded));

namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::Op;

constexpr auto kHolds = QueueEntry::Standing::kHolds;
constexpr auto kWaits = QueueEntry::Standing::kWaits;
constexpr auto kForeign = QueueEntry::Standing::kForeign;

std::vector<QueueEntry::Standing> standings(const Queue& queue) {
  std::vector<QueueEntry::Standing> all;
  for (const QueueEntry& entry : queue.entries) all.push_back(entry.standing);
  return all;
}

/// `_c_<uuid>-<tag>`, for nodes a test makes by hand.
std::string entry_path(const std::string& directory, const std::string& tag) {
  return directory + "/_c_00000000-0000-4000-8000-000000000000-" + tag;
}

Created make_entry(Session& session, const std::string& directory, const std::string& tag,
                   CreateOptions options = {.lifetime = Lifetime::kEphemeral}) {
  options.naming = Naming::kSequential;
  auto created = session.create(entry_path(directory, tag), "", options, soon());
  if (!created) throw std::runtime_error(created.error().message());
  return *created;
}

TEST_P(InspectTest, ADirectoryThatDoesNotExistIsAnEmptyQueue) {
  const auto queue = inspect(witness.session(), directory, soon());

  ASSERT_TRUE(ok(queue));
  EXPECT_FALSE(queue->exists);
  EXPECT_EQ(queue->directory, directory);
  EXPECT_THAT(queue->entries, IsEmpty());
}

TEST_P(InspectTest, ShowsWhoHoldsAndWhoWaits) {
  Session session = open();
  const Lease lease = take(session, directory, {.reason = "nightly run"});
  Waiter second(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));

  const auto queue = inspect(witness.session(), directory, soon());

  ASSERT_TRUE(ok(queue));
  EXPECT_TRUE(queue->exists);
  EXPECT_THAT(standings(*queue), ElementsAre(kHolds, kWaits));
  const QueueEntry& holder = queue->entries[0];
  EXPECT_EQ(directory + "/" + holder.node, lease.node());
  EXPECT_EQ(holder.token, lease.token());
  EXPECT_EQ(holder.session, session.id());
  EXPECT_GT(holder.created_ms, 0);
  EXPECT_EQ(holder.pid, ::getpid());
  EXPECT_EQ(holder.reason, "nightly run");
  EXPECT_EQ(holder.dialect, "curator");
  EXPECT_FALSE(holder.release_requested);
  EXPECT_THAT(queue->warnings, IsEmpty());
}

TEST_P(InspectTest, TellsHundredsOfEntriesApartInAFewRequests) {
  constexpr int kEntries = 300;
  Proxied one = open_proxied();
  make_node(witness.session(), directory);
  for (int i = 0; i < kEntries / 100; ++i) {
    std::vector<Multi::Part> parts;
    for (int k = 0; k < 100; ++k) {
      parts.emplace_back(Create{entry_path(directory, "lock-"),
                                "number " + std::to_string(k),
                                {.lifetime = Lifetime::kEphemeral, .naming = Naming::kSequential}});
    }
    ASSERT_TRUE(ok(witness.session().multi(parts, soon())));
  }
  ASSERT_TRUE(ok(one.session.sync(directory, soon())));

  const auto queue = inspect(one.session, directory, soon());

  ASSERT_TRUE(ok(queue));
  ASSERT_EQ(queue->entries.size(), static_cast<std::size_t>(kEntries));
  EXPECT_EQ(queue->entries[299].position, 300);
  EXPECT_EQ(queue->entries[299].data, "number 99");
  EXPECT_EQ(queue->holders().size(), 1U);
  EXPECT_LT(requests(*one.proxy).size(), 40U);
}

TEST_P(InspectTest, AChildThatVanishesInBetweenIsLeftOut) {
  Proxied one = open_proxied(quick(60s));
  make_node(witness.session(), directory);
  const Created gone = make_entry(witness.session(), directory, "lock-");
  make_entry(witness.session(), directory, "lock-");
  ASSERT_TRUE(ok(one.session.sync(directory, soon())));
  const int stopped = one.proxy->stop_at_request(Op::kMultiRead);
  std::optional<Result<Queue>> answer;

  std::jthread asker([&] { answer = inspect(one.session, directory, deadline_in(60s)); });
  ASSERT_TRUE(one.proxy->wait_until_fired(stopped));
  ASSERT_TRUE(ok(witness.session().remove(gone.path, soon())));
  ASSERT_TRUE(eventually([&] {
    const auto stat = open_session(service().follower(), quick()).exists(gone.path, soon());
    return stat && !*stat;
  }));
  one.proxy->release();
  asker.join();

  ASSERT_TRUE(ok(*answer));
  EXPECT_THAT(standings(**answer), ElementsAre(kHolds));
}

TEST_P(InspectTest, AChildWeMayNotReadIsListedWithoutItsData) {
  Session owner = open();
  ASSERT_TRUE(ok(owner.call(Authenticate{"digest", "ann:secret"}, soon())));
  make_node(owner, directory);
  const Created hidden = make_entry(owner, directory, "lock-",
                                    {.lifetime = Lifetime::kEphemeral, .acl = creator_acl()});
  make_entry(owner, directory, "lock-");
  ASSERT_TRUE(ok(owner.set(hidden.path, "secret", soon())));
  ASSERT_TRUE(ok(witness.session().sync(directory, soon())));

  const auto queue = inspect(witness.session(), directory, soon());

  ASSERT_TRUE(ok(queue));
  EXPECT_THAT(standings(*queue), ElementsAre(kHolds, kWaits));
  EXPECT_EQ(queue->entries[0].data, "");
  EXPECT_EQ(queue->entries[0].token, Token(hidden.stat->czxid));
  EXPECT_EQ(queue->entries[0].session, owner.id());
}

TEST_P(InspectTest, ADirectoryWeMayNotListIsAnError) {
  ASSERT_TRUE(ok(witness.session().create(
      directory, "", {.acl = {{kCreate | kDelete, "world", "anyone"}}}, soon())));

  EXPECT_TRUE(
      fails_with(inspect(witness.session(), directory, soon()), Code::kNotAuthorized, directory));
}

TEST_P(InspectTest, RefusesABadPathAndKeepsItsDeadline) {
  EXPECT_TRUE(fails_with(inspect(witness.session(), "bad//path", soon()), Code::kInvalidPath));
  Proxied one = open_proxied();
  one.proxy->hold(Hold::kBoth);
  EXPECT_TRUE(fails_with(inspect(one.session, directory, deadline_in(200ms)), Code::kTimedOut));
}

TEST_P(InspectTest, MayBeAskedFromACallback) {
  Session session = open();
  const Recorder<bool> answers;

  session.async(Exists{"/"}, soon(), [=, path = directory](auto) mutable {
    answers.add(bool(inspect(session, path, soon())));
  });

  ASSERT_TRUE(answers.wait_for(1));
  EXPECT_TRUE(answers.last());
}

TEST_P(InspectTest, ASemaphoreIsShownByItsPermits) {
  Session session = open();
  make_node(session, directory);
  make_node(session, directory + "/locks");
  make_node(session, directory + "/leases");
  Session other = open();
  make_entry(session, directory + "/leases", "lease-");
  make_entry(session, directory + "/leases", "lease-");
  make_entry(other, directory + "/locks", "lock-");
  make_node(session, directory + "/readme");
  ASSERT_TRUE(ok(session.sync(directory, soon())));

  const auto queue = inspect(session, directory, soon());

  ASSERT_TRUE(ok(queue));
  EXPECT_THAT(standings(*queue), ElementsAre(kHolds, kHolds, kWaits, kForeign));
  EXPECT_THAT(queue->entries[0].node, HasSubstr("leases/_c_"));
  EXPECT_THAT(queue->warnings, IsEmpty());
}

TEST_P(InspectTest, PermitsThatWaitForRoomAreNotShownAsHeld) {
  Session session = open();
  const Semaphore pool(session, directory, {.size = 3});
  auto two = pool.permits(2).lock(soon());
  ASSERT_TRUE(ok(two));
  Waiter next(Semaphore(open(), directory, {.size = 3}).permits(2));
  ASSERT_TRUE(eventually([&] {
    const auto leases = session.children(directory + "/leases", soon());
    return leases && leases->names.size() == 4;
  }));

  const auto before = inspect(session, directory, soon());
  ASSERT_TRUE(ok(before));
  EXPECT_THAT(standings(*before), ElementsAre(kHolds, kHolds, kWaits, kWaits, kWaits));

  two->release();
  ASSERT_TRUE(next.holds());
  ASSERT_TRUE(ok(session.sync(directory, soon())));
  const auto after = inspect(session, directory, soon());
  ASSERT_TRUE(ok(after));
  EXPECT_EQ(after->holders().size(), 2U);
}

TEST_P(InspectTest, WarnsOfOrphansAndOfClientsThatDoNotSeeEachOther) {
  Session session = open();
  make_node(session, directory);
  make_entry(session, directory, "lock-", {});
  ASSERT_TRUE(ok(session.create(directory + "/0123456789abcdef0123456789abcdef__lock__", "",
                                {.lifetime = Lifetime::kEphemeral, .naming = Naming::kSequential},
                                soon())));

  const auto queue = inspect(session, directory, soon());

  ASSERT_TRUE(ok(queue));
  EXPECT_THAT(queue->warnings, ElementsAre(HasSubstr("kazoo"), HasSubstr("Not ephemeral")));
}

// Requests to let go.

TEST_P(InspectTest, ARevokeIsAWishThatTheHolderHears) {
  const Lease lease = take(open(), directory);
  const std::stop_token wish = lease.release_requested();
  EXPECT_FALSE(wish.stop_requested());

  ASSERT_TRUE(ok(revoke(witness.session(), lease.node(), soon())));

  EXPECT_TRUE(eventually([&] { return wish.stop_requested(); }));
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
  EXPECT_FALSE(lease.lost().stop_requested());
  const auto queue = inspect(witness.session(), directory, soon());
  ASSERT_TRUE(ok(queue));
  EXPECT_TRUE(queue->entries.at(0).release_requested);
}

TEST_P(InspectTest, ARevokeBeforeAnybodyListensIsHeardByWhoListensLater) {
  const Lease lease = take(open(), directory);
  ASSERT_TRUE(ok(revoke(witness.session(), lease.node(), soon())));

  const std::stop_token wish = lease.release_requested();

  EXPECT_TRUE(eventually([&] { return wish.stop_requested(); }));
}

TEST_P(InspectTest, ARevokeOfOneWhoWaitsIsForTheHolderItBecomes) {
  Lease first = take(open(), directory);
  Waiter second(mutex(open()));
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  const std::string entry = directory + "/" + witness.queue(directory).at(1);
  ASSERT_TRUE(eventually([&] { return witness.watches_below(entry) > 0; }));

  ASSERT_TRUE(ok(revoke(witness.session(), entry, soon())));
  ASSERT_TRUE(ok(first.release(soon())));

  ASSERT_TRUE(second.holds());
  const std::stop_token wish = second.lease().release_requested();
  EXPECT_TRUE(eventually([&] { return wish.stop_requested(); }));
  EXPECT_FALSE(first.release_requested().stop_requested());
}

TEST_P(InspectTest, ARevokeAfterTheReleaseFindsNobody) {
  Lease lease = take(open(), directory);
  const std::stop_token wish = lease.release_requested();
  ASSERT_TRUE(ok(lease.release(soon())));

  EXPECT_TRUE(fails_with(revoke(witness.session(), lease.node(), soon()), Code::kNoNode));
  EXPECT_FALSE(wish.stop_requested());
}

TEST_P(InspectTest, AWishSurvivesAReconnect) {
  Proxied one = open_proxied();
  const Lease lease = take(one.session, directory);
  const std::stop_token wish = lease.release_requested();
  ASSERT_TRUE(eventually([&] { return witness.watches_below(lease.node()) > 0; }));
  one.proxy->refuse();
  one.proxy->cut_all();
  ASSERT_TRUE(ok(revoke(witness.session(), lease.node(), soon())));
  one.proxy->accept();

  EXPECT_TRUE(eventually([&] { return wish.stop_requested(); }));
}

// The queue as it changes.

using Pictures = Recorder<Result<Queue>>;

template <class Predicate>
testing::AssertionResult shows_entries(const Pictures& pictures, Predicate predicate) {
  const bool shown = eventually([&] {
    const auto all = pictures.all();
    return !all.empty() && all.back() && predicate(*all.back());
  });
  return shown ? testing::AssertionSuccess() : testing::AssertionFailure() << "it never did";
}

auto has_entries(std::size_t count) {
  return [count](const Queue& queue) { return queue.entries.size() == count; };
}

TEST_P(QueueWatchTest, ShowsTheQueueAndEveryChangeOfIt) {
  const Pictures pictures;
  const QueueWatch watch(open(), directory, pictures.adder());
  ASSERT_TRUE(shows_entries(pictures, [](const Queue& queue) { return !queue.exists; }));

  Lease first = take(open(), directory);
  ASSERT_TRUE(shows_entries(pictures, has_entries(1)));
  Waiter second(mutex(open()));
  ASSERT_TRUE(shows_entries(pictures, has_entries(2)));
  EXPECT_THAT(standings(*pictures.last()), ElementsAre(kHolds, kWaits));
  ASSERT_TRUE(ok(first.release(soon())));
  ASSERT_TRUE(second.holds());
  ASSERT_TRUE(shows_entries(pictures, [&](const Queue& queue) {
    return queue.holders().size() == 1 && queue.holders()[0]->token == second.lease().token();
  }));
  ASSERT_TRUE(ok(second.lease().release(soon())));
  ASSERT_TRUE(shows_entries(pictures, has_entries(0)));
}

TEST_P(QueueWatchTest, SurvivesTheRemovalOfTheDirectoryAndItsReturn) {
  make_node(witness.session(), directory);
  const Pictures pictures;
  const QueueWatch watch(open(), directory, pictures.adder());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(shows_entries(pictures, [](const Queue& queue) { return queue.exists; }));
    ASSERT_TRUE(ok(witness.session().remove(directory, soon())));
    ASSERT_TRUE(shows_entries(pictures, [](const Queue& queue) { return !queue.exists; }));
    make_node(witness.session(), directory);
  }

  const Lease lease = take(open(), directory);

  EXPECT_TRUE(shows_entries(pictures, has_entries(1)));
}

TEST_P(QueueWatchTest, ShowsOnceThatASemaphoreIsGone) {
  Session session = open();
  for (const char* below : {"", "/locks", "/leases"}) make_node(session, directory + below);
  const Pictures pictures;
  const QueueWatch watch(open(), directory, pictures.adder());
  ASSERT_TRUE(shows_entries(pictures, [](const Queue& queue) { return queue.exists; }));

  // In one transaction: each of its watches tells of it.
  ASSERT_TRUE(ok(session.multi(
      {Remove{directory + "/locks"}, Remove{directory + "/leases"}, Remove{directory}}, soon())));
  ASSERT_TRUE(shows_entries(pictures, [](const Queue& queue) { return !queue.exists; }));
  make_node(session, directory);
  ASSERT_TRUE(shows_entries(pictures, [](const Queue& queue) { return queue.exists; }));

  int gone = 0;
  for (const auto& picture : pictures.all()) gone += picture && !picture->exists ? 1 : 0;
  EXPECT_EQ(gone, 1);
}

TEST_P(QueueWatchTest, AChangeThatShowsNothingNewIsNotShown) {
  const Lease lease = take(open(), directory);
  Session watching = open();
  const Pictures pictures;
  const QueueWatch watch(watching, directory, pictures.adder());
  ASSERT_TRUE(shows_entries(pictures, has_entries(1)));

  const auto node = witness.synced().get(lease.node(), soon());
  ASSERT_TRUE(ok(node));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(ok(witness.session().set(lease.node(), node->data, soon())));
    // Behind the event, and then behind the look it gave cause for.
    for (int j = 0; j < 2; ++j) ASSERT_TRUE(ok(watching.sync(directory, soon())));
  }
  const Waiter second(mutex(open()));
  ASSERT_TRUE(shows_entries(pictures, has_entries(2)));

  EXPECT_EQ(pictures.size(), 2U);
}

TEST_P(QueueWatchTest, ShowsThatAHolderWasAskedToLetGo) {
  const Lease lease = take(open(), directory);
  const Pictures pictures;
  const QueueWatch watch(open(), directory, pictures.adder());
  ASSERT_TRUE(shows_entries(pictures, has_entries(1)));

  ASSERT_TRUE(ok(revoke(witness.session(), lease.node(), soon())));

  EXPECT_TRUE(shows_entries(
      pictures, [](const Queue& queue) { return queue.entries.at(0).release_requested; }));
}

TEST_P(QueueWatchTest, ShowsASemaphoreAsItChanges) {
  Session session = open();
  make_node(session, directory);
  make_node(session, directory + "/locks");
  const Pictures pictures;
  const QueueWatch watch(open(), directory, pictures.adder());
  ASSERT_TRUE(shows_entries(pictures, has_entries(0)));

  Session other = open();
  make_entry(other, directory + "/locks", "lock-");
  ASSERT_TRUE(shows_entries(pictures, has_entries(1)));
  make_node(session, directory + "/leases");
  const Created lease = make_entry(session, directory + "/leases", "lease-");
  ASSERT_TRUE(shows_entries(pictures, has_entries(2)));
  EXPECT_THAT(standings(*pictures.last()), ElementsAre(kHolds, kWaits));
  ASSERT_TRUE(ok(session.remove(lease.path, soon())));

  EXPECT_TRUE(shows_entries(pictures, has_entries(1)));
}

TEST_P(QueueWatchTest, SurvivesReconnects) {
  Proxied one = open_proxied();
  const Pictures pictures;
  const QueueWatch watch(one.session, directory, pictures.adder());
  ASSERT_TRUE(pictures.wait_for(1));
  for (std::size_t i = 1; i <= 4; ++i) {
    one.proxy->refuse();
    one.proxy->cut_all();
    if (i == 1) make_node(witness.session(), directory);
    make_entry(witness.session(), directory, "lock-");
    one.proxy->accept();
    ASSERT_TRUE(shows_entries(pictures, has_entries(i)));
  }
}

TEST_P(QueueWatchTest, AChangeCostsAListAndWhatIsNew) {
  make_node(witness.session(), directory);
  for (int i = 0; i < 40; ++i) make_entry(witness.session(), directory, "lock-");
  Proxied one = open_proxied();
  const Pictures pictures;
  const QueueWatch watch(one.session, directory, pictures.adder());
  ASSERT_TRUE(shows_entries(pictures, has_entries(40)));
  one.proxy->log().clear();

  make_entry(witness.session(), directory, "lock-");

  ASSERT_TRUE(shows_entries(pictures, has_entries(41)));
  EXPECT_THAT(requests(*one.proxy), ElementsAre(Op::kGetChildren2, Op::kGetData));
}

TEST_P(QueueWatchTest, AHandlerThatTakesItsTimeGetsTheLatestAndNotAll) {
  struct Slow {
    Pictures pictures;
    std::latch go_on{1};
    std::atomic<int> inside = 0;
    std::atomic<int> most = 0;
  };
  make_node(witness.session(), directory);
  const auto slow = std::make_shared<Slow>();
  Session session = open();
  const QueueWatch watch(session, directory, [slow](Result<Queue> queue) {
    slow->most = std::max(slow->most.load(), ++slow->inside);
    slow->pictures.add(std::move(queue));
    slow->go_on.wait();
    --slow->inside;
  });
  ASSERT_TRUE(slow->pictures.wait_for(1));

  for (int i = 0; i < 20; ++i) make_entry(witness.session(), directory, "lock-");
  ASSERT_TRUE(ok(session.sync(directory, soon())));
  slow->go_on.count_down();

  ASSERT_TRUE(shows_entries(slow->pictures, has_entries(20)));
  EXPECT_LE(slow->pictures.size(), 4U);
  EXPECT_EQ(slow->most, 1);
}

TEST_P(QueueWatchTest, EndsWithOneErrorWhenItsSessionDoes) {
  for (const bool exists : {false, true}) {
    const std::string path = fresh_path();
    if (exists) make_node(witness.session(), path);
    Session session = open();
    const Pictures pictures;
    const QueueWatch watch(session, path, pictures.adder());
    ASSERT_TRUE(pictures.wait_for(1));

    ASSERT_TRUE(ok(session.close(soon())));

    ASSERT_TRUE(pictures.wait_for(2));
    EXPECT_TRUE(fails_with(pictures.last(), Code::kClosed, path));
    EXPECT_EQ(pictures.size(), 2U);
  }
}

TEST_P(QueueWatchTest, EndsWithOneErrorWhenTheSessionIsOverBeforeItBegins) {
  Session session = open();
  ASSERT_TRUE(ok(session.close(soon())));
  const Pictures pictures;

  const QueueWatch watch(session, directory, pictures.adder());

  ASSERT_TRUE(pictures.wait_for(1));
  EXPECT_TRUE(fails_with(pictures.last(), Code::kClosed));
}

TEST_P(QueueWatchTest, EndsWithAnErrorIfTheDirectoryMayNotBeRead) {
  ASSERT_TRUE(ok(witness.session().create(
      directory, "", {.acl = {{kCreate | kDelete, "world", "anyone"}}}, soon())));
  const Pictures pictures;

  const QueueWatch watch(open(), directory, pictures.adder());
  const QueueWatch bad(open(), "bad//path", pictures.adder());

  ASSERT_TRUE(pictures.wait_for(2));
  EXPECT_THAT(pictures.all(), Each(testing::ResultOf([](auto& r) { return bool(r); }, false)));
}

TEST_P(QueueWatchTest, LeavesNothingBehindWhenItIsDestroyed) {
  Session session = open();
  const Lease lease = take(witness.session(), directory);
  ASSERT_TRUE(eventually([&] { return witness.watches_below(lease.node()) == 1; }));
  // What earlier tests have left goes with their sessions.
  const int before = 1;
  ASSERT_TRUE(eventually([&] { return watches_of_all(service()) == before; }));
  const Pictures pictures;
  {
    const QueueWatch present(session, directory, pictures.adder());
    const QueueWatch absent(session, fresh_path(), pictures.adder());
    ASSERT_TRUE(pictures.wait_for(2));
    EXPECT_TRUE(eventually([&] { return watches_of_all(service()) == before + 3; }));
    QueueWatch moved(session, fresh_path(), pictures.adder());
    moved = QueueWatch(session, fresh_path(), pictures.adder());
    const QueueWatch brief(session, directory, [](const auto&) {});
  }

  EXPECT_TRUE(eventually([&] { return watches_of_all(service()) == before; }));
}

TEST_P(QueueWatchTest, MayBeDestroyedByItsHandler) {
  auto watch = std::make_shared<std::optional<QueueWatch>>();
  const Events events;
  const auto ready = std::make_shared<std::mutex>();
  {
    const std::lock_guard lock(*ready);
    watch->emplace(open(), directory, [watch, events, ready](const Result<Queue>&) {
      const std::lock_guard wait(*ready);
      watch->reset();
      events.add("gone");
    });
  }

  EXPECT_TRUE(events.wait_for(1));
}

}  // namespace
}  // namespace latchkey::test_support
