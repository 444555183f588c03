#include <algorithm>
#include <latch>
#include <random>

#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <gmock/gmock.h>

#include "integration/election_fixture.hpp"

/// Candidates: how they come to lead, how a term ends, and what comes after.
namespace latchkey::test_support {

INSTANTIATE_TEST_SUITE_P(Standalone, ElectionTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, ElectionTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, ElectionTest, testing::Values(ServiceKind::kEmbedded));

namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::Op;

TEST_P(ElectionTest, TheFirstLeadsAndTheNextFollowsWhenItCloses) {
  Diary diary;
  Election first(open(), directory, diary.kept({.id = "first"}));
  ASSERT_TRUE(diary.reaches(ElectionState::kLeading));
  const Election second(open(), directory, {.id = "second"});
  ASSERT_TRUE(candidates_become({"first", "second"}));
  EXPECT_EQ(second.state(), ElectionState::kQueued);
  EXPECT_EQ(second.token(), std::nullopt);
  const std::optional<Token> old = first.token();
  EXPECT_EQ(diary.last(ElectionState::kLeading).news.token, old);

  first.close();

  ASSERT_TRUE(leads(second));
  EXPECT_GT(second.token(), old);
  EXPECT_EQ(first.state(), ElectionState::kClosed);
  EXPECT_EQ(first.token(), std::nullopt);
  ASSERT_TRUE(diary.reaches(ElectionState::kClosed));
  EXPECT_THAT(diary.states(), ElementsAre(ElectionState::kLeading, ElectionState::kClosed));
  EXPECT_TRUE(diary.last(ElectionState::kLeading).news.over.stop_requested());
  EXPECT_TRUE(candidates_become({"second"}));
}

TEST_P(ElectionTest, EntriesAreThoseOfALeaderLatch) {
  const Election election(open(), directory, {.id = "node-7"});
  ASSERT_TRUE(leads(election));

  const auto queue = witness.queue(directory);

  ASSERT_EQ(queue.size(), 1U);
  EXPECT_THAT(queue[0], EndsWith("-latch-0000000000"));
  const auto node = witness.synced().get(directory + "/" + queue[0], soon());
  ASSERT_TRUE(ok(node));
  EXPECT_EQ(node->data, "node-7");
  EXPECT_EQ(Token(node->stat.czxid), election.token());
}

TEST_P(ElectionTest, ALeaderWhoseConnectionDiesForGoodMakesWay) {
  Diary diary;
  Proxied one = open_proxied(quick(10s));
  const Election doomed(one.session, directory, diary.kept({.id = "doomed"}));
  ASSERT_TRUE(leads(doomed));
  const Election next(open(), directory, {.id = "next"});
  ASSERT_TRUE(candidates_become({"doomed", "next"}));

  one.proxy->refuse();
  one.proxy->cut_all();

  ASSERT_TRUE(leads(next));
  EXPECT_NE(doomed.state(), ElectionState::kLeading);
  one.proxy->accept();
  ASSERT_TRUE(diary.reaches(ElectionState::kFailed));
  EXPECT_EQ(diary.last(ElectionState::kFailed).news.error, Code::kSessionLost);
  EXPECT_EQ(diary.all().back().news.state, ElectionState::kFailed);
}

TEST_P(ElectionTest, H73_TheTermOfALeaderThatIsCutOffIsOverBeforeTheNextLeads) {
  Proxied one = open_proxied(quick(12s));
  Diary diary;
  std::atomic<Instant::rep> over_at = 0;
  std::optional<std::stop_callback<std::function<void()>>> on_over;
  std::latch leading(1);
  auto options = diary.kept(
      {.id = "cut off", .on_change = [&](const ElectionNews& news) {
         if (news.state != ElectionState::kLeading || on_over) return;
         on_over.emplace(news.over, [&] { over_at = BootClock::now().time_since_epoch().count(); });
         leading.count_down();
       }});
  const Election old(one.session, directory, options);
  leading.wait();
  Diary successor;
  const Election next(open(), directory, successor.kept({.id = "next"}));
  ASSERT_TRUE(candidates_become({"cut off", "next"}));

  one.proxy->hold(Hold::kBoth);

  ASSERT_TRUE(successor.reaches(ElectionState::kLeading));
  ASSERT_NE(over_at, 0);
  EXPECT_LT(Instant(Duration(over_at.load())), successor.last(ElectionState::kLeading).at);
  EXPECT_NE(old.state(), ElectionState::kLeading);
  one.proxy->release();
  on_over.reset();
}

/// Somebody who needs a while to stop leading.
struct SlowToGo {
  [[nodiscard]] std::function<void(const ElectionNews&)> on_change() {
    return [this](const ElectionNews& news) {
      if (news.state != ElectionState::kLeading || callback) return;
      callback.emplace(news.over, [this] {
        stopping.count_down();
        may_go.wait();
      });
      leading.count_down();
    };
  }

  std::latch leading{1};
  std::latch stopping{1};
  std::latch may_go{1};
  std::optional<std::stop_callback<std::function<void()>>> callback;
};

TEST_P(ElectionTest, H73_TheLockPassesOnWhenThoseWhoLedHaveStopped) {
  SlowToGo slow;
  Diary diary;
  Election first(open(quick(60s)), directory,
                 diary.kept({.id = "first", .on_change = slow.on_change()}));
  slow.leading.wait();
  const Election second(open(), directory, {.id = "second"});
  ASSERT_TRUE(candidates_become({"first", "second"}));

  first.resign();
  slow.stopping.wait();

  EXPECT_EQ(first.state(), ElectionState::kQueued);
  first.resign();  // Changes nothing, and loses nothing.
  ASSERT_TRUE(ok(witness.session().sync(directory, soon())));
  EXPECT_THAT(candidates(), ElementsAre("first", "second"));
  EXPECT_EQ(second.state(), ElectionState::kQueued);
  slow.may_go.count_down();
  ASSERT_TRUE(leads(second));
  EXPECT_TRUE(candidates_become({"second", "first"}));
  ASSERT_TRUE(diary.reaches(ElectionState::kQueued));
  EXPECT_EQ(diary.count(ElectionState::kQueued), 1U);
}

TEST_P(ElectionTest, H73_OneThatNeverStopsHoldsTheLockForATimeOutAtMost) {
  SlowToGo slow;
  Election first(open(quick(10s)), directory, {.id = "first", .on_change = slow.on_change()});
  slow.leading.wait();
  const Election second(open(), directory, {.id = "second"});
  ASSERT_TRUE(candidates_become({"first", "second"}));

  first.resign();

  EXPECT_TRUE(leads(second));
  slow.may_go.count_down();
  slow.callback.reset();
}

TEST_P(ElectionTest, ALeaderMayLeadInsideItsCallbackUntilTheEndOfItsTerm) {
  Diary diary;
  std::latch leading(1);
  auto work = [&](const ElectionNews& news) {
    if (news.state != ElectionState::kLeading) return;
    leading.count_down();
    EXPECT_TRUE(eventually([&] { return news.over.stop_requested(); }));
  };
  Session session = open();
  Election election(session, directory, diary.kept({.id = "a", .on_change = work}));
  leading.wait();
  // And nobody else's callbacks wait for it.
  const Events others;
  session.async(Exists{"/"}, soon(), [others](auto) { others.add("done"); });
  ASSERT_TRUE(others.wait_for(1));

  election.close();

  ASSERT_TRUE(diary.reaches(ElectionState::kClosed));
}

TEST_P(ElectionTest, H73_ALeadPassesOnWhenTheWorkerInsideOnChangeHasReturned) {
  std::atomic<int> working = 0;
  std::atomic<int> most = 0;
  Recorder<std::string> turns;
  const auto works = [&](const std::string& id, auto& may_return) {
    return [&, id](const ElectionNews& news) {
      if (news.state != ElectionState::kLeading) return;
      most = std::max(most.load(), ++working);
      turns.add(id);
      EXPECT_TRUE(eventually([&] { return news.over.stop_requested(); }));
      may_return.wait();
      --working;
    };
  };
  std::latch first_may_return(1);
  std::latch second_may_return(0);
  Election first(open(), directory, {.id = "first", .on_change = works("first", first_may_return)});
  ASSERT_TRUE(turns.wait_for(1));
  Election second(open(), directory,
                  {.id = "second", .on_change = works("second", second_may_return)});
  ASSERT_TRUE(candidates_become({"first", "second"}));

  first.resign();
  ASSERT_TRUE(eventually([&] { return first.state() == ElectionState::kQueued; }));
  // As long as others take for a few locks of their own.
  for (int i = 0; i < 20; ++i) take(witness.session(), fresh_path()).release();
  EXPECT_EQ(turns.size(), 1U);
  first_may_return.count_down();

  ASSERT_TRUE(turns.wait_for(2));
  EXPECT_EQ(most, 1);
  second.close();
  ASSERT_TRUE(eventually([&] { return working == 0; }));
}

TEST_P(ElectionTest, ALeadThatThrowsResignsAndIsLogged) {
  Recorder<std::string> logged;
  SessionOptions options = patient();
  options.log = [logged](LogLevel level, std::string_view text) mutable {
    if (level == LogLevel::kError) logged.add(std::string(text));
  };
  Diary diary;
  ElectionOptions wants = restless("a");
  wants.on_change = [](const ElectionNews& news) {
    if (news.state == ElectionState::kLeading) throw std::runtime_error("no disk");
  };
  const Election election(open(options), directory, diary.kept(wants));

  ASSERT_TRUE(diary.reaches(ElectionState::kLeading, 2)) << "it has resigned and stood again";
  ASSERT_TRUE(logged.wait_for(1));
  EXPECT_EQ(logged.all().front(), "a callback has thrown (on_change): no disk");
}

TEST_P(ElectionTest, ALeaderMayLeadInsideItsCallbackOnAnExecutorOfOneThread) {
  // Whatever else is to run there runs when the term is over: so its end must not.
  asio::thread_pool pool(1);
  Diary diary;
  std::atomic<int> heard = 0;
  auto work = [&](const ElectionNews& news) {
    if (news.state != ElectionState::kLeading) return;
    if (eventually([&] { return news.over.stop_requested(); })) ++heard;
  };
  {
    SessionOptions one_thread = patient();
    one_thread.executor = [&](std::function<void()> task) { asio::post(pool, std::move(task)); };
    ElectionOptions options = restless("a");
    options.on_change = work;
    Election election(open(one_thread), directory, diary.kept(options));
    ASSERT_TRUE(diary.reaches(ElectionState::kLeading));

    election.resign();
    ASSERT_TRUE(diary.reaches(ElectionState::kLeading, 2));
    EXPECT_EQ(heard, 1);
    ASSERT_TRUE(
        ok(witness.session().remove(directory + "/" + witness.queue(directory).at(0), soon())));
    ASSERT_TRUE(diary.reaches(ElectionState::kLeading, 3));
    EXPECT_EQ(heard, 2);
    election.close();

    ASSERT_TRUE(diary.reaches(ElectionState::kClosed));
    EXPECT_EQ(heard, 3);
  }
  pool.join();
}

/// Leads, is found sick once, and has to queue behind the other.
void expect_to_be_replaced(const std::function<bool()>& is_healthy, const Session& session,
                           const Session& other, const std::string& directory) {
  Diary diary;
  const auto sick = std::make_shared<std::atomic<bool>>(false);
  ElectionOptions options{.id = "sick", .min_pause = 1ms};
  // A check that takes longer is a bad answer, too, before anybody is sick.
  options.health_period = 2s;
  options.is_healthy = [sick, is_healthy] { return !*sick || is_healthy(); };
  const Election election(session, directory, diary.kept(options));
  ASSERT_TRUE(diary.reaches(ElectionState::kLeading));
  const Election healthy(other, directory, {.id = "healthy"});
  ASSERT_TRUE(eventually([&] {
    const auto list = Session(other).children(directory, soon());
    return list && list->names.size() == 2;
  }));

  *sick = true;

  EXPECT_TRUE(eventually([&] { return healthy.state() == ElectionState::kLeading; }));
  ASSERT_TRUE(diary.reaches(ElectionState::kQueued));
  const auto queued = diary.last(ElectionState::kQueued).news;
  ASSERT_TRUE(queued.error.has_value());
  EXPECT_THAT(queued.error->message(), HasSubstr("health"));
  EXPECT_TRUE(diary.last(ElectionState::kLeading).news.over.stop_requested());
  EXPECT_EQ(session.state(), SessionState::kConnected);
}

TEST_P(ElectionTest, H74_ALeaderThatIsConnectedButCannotActResigns) {
  expect_to_be_replaced([] { return false; }, open(), open(), directory);
}

TEST_P(ElectionTest, H74_AHealthCheckThatThrowsIsABadAnswer) {
  expect_to_be_replaced([]() -> bool { throw std::runtime_error("no disk"); }, open(), open(),
                        directory);
}

TEST_P(ElectionTest, H74_AHealthCheckThatHangsIsABadAnswer) {
  struct Hook {
    std::latch done{1};
    std::atomic<int> calls = 0;
  };
  const auto hook = std::make_shared<Hook>();
  expect_to_be_replaced(
      [hook] {
        ++hook->calls;
        hook->done.wait();
        return true;
      },
      open(), open(), directory);
  EXPECT_EQ(hook->calls, 1);
  hook->done.count_down();
}

TEST_P(ElectionTest, H75_ResignWhileQueuedChangesNothing) {
  const Election first(open(), directory, {.id = "first"});
  ASSERT_TRUE(leads(first));
  Diary diary;
  Election second(open(), directory, diary.kept({.id = "second"}));
  ASSERT_TRUE(candidates_become({"first", "second"}));
  const auto before = witness.queue(directory);

  second.resign();

  ASSERT_TRUE(ok(witness.session().sync(directory, soon())));
  EXPECT_EQ(witness.queue(directory), before);
  EXPECT_THAT(diary.all(), IsEmpty());
}

TEST_P(ElectionTest, H75_WhoResignsQueuesAgainAtTheEnd) {
  Diary diary;
  Election first(open(), directory, diary.kept(restless("first")));
  ASSERT_TRUE(leads(first));
  Election second(open(), directory, restless("second"));
  ASSERT_TRUE(candidates_become({"first", "second"}));

  first.resign();
  ASSERT_TRUE(candidates_become({"second", "first"}));
  ASSERT_TRUE(leads(second));
  second.resign();

  ASSERT_TRUE(leads(first));
  ASSERT_TRUE(diary.reaches(ElectionState::kLeading, 2));
  EXPECT_THAT(diary.states(), ElementsAre(ElectionState::kLeading, ElectionState::kQueued,
                                          ElectionState::kLeading));
  EXPECT_EQ(diary.last(ElectionState::kQueued).news.error, std::nullopt);
}

TEST_P(ElectionTest, H75_ResignWhileRestingDoesNotLoseTheReturn) {
  // So long that the others see it rest.
  Election election(open(), directory, {.id = "a", .min_pause = 10s, .short_term = 1h});
  ASSERT_TRUE(leads(election));

  election.resign();
  for (int i = 0; i < 10; ++i) election.resign();

  ASSERT_TRUE(candidates_become({}));
  election.resign();
  EXPECT_TRUE(leads(election));
}

TEST_P(ElectionTest, H75_EveryTermCostsOneEntryAndShortOnesComeFarBetween) {
  constexpr std::size_t kTerms = 6;
  make_node(witness.session(), directory);
  Proxied one = open_proxied();
  ASSERT_TRUE(ok(one.session.sync(directory, soon())));
  Diary diary;
  auto election = std::make_shared<std::optional<Election>>();
  const auto ready = std::make_shared<std::latch>(1);
  auto options = restless("flapping");
  options.on_change = [=](const ElectionNews& news) {
    ready->wait();
    if (news.state == ElectionState::kLeading && diary.count(ElectionState::kLeading) <= kTerms) {
      (*election)->resign();
    }
  };

  election->emplace(one.session, directory, diary.kept(options));
  ready->count_down();

  ASSERT_TRUE(diary.reaches(ElectionState::kLeading, kTerms + 1));
  EXPECT_EQ(count(*one.proxy, Op::kCreate2), kTerms + 1);
  EXPECT_EQ(witness.queue(directory).size(), 1U);
  election->reset();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(ElectionTest, H75_AReconnectInTheSameSessionKeepsThePlace) {
  Proxied one = open_proxied(quick(60s));
  Proxied two = open_proxied(quick(60s));
  Diary leader;
  Diary follower;
  const Election first(one.session, directory, leader.kept({.id = "first"}));
  ASSERT_TRUE(leads(first));
  const Election second(two.session, directory, follower.kept({.id = "second"}));
  ASSERT_TRUE(candidates_become({"first", "second"}));
  const auto before = witness.queue(directory);

  for (int i = 0; i < 5; ++i) {
    one.proxy->cut_all();
    two.proxy->cut_all();
    ASSERT_TRUE(ok(one.session.sync("/", soon())));
    ASSERT_TRUE(ok(two.session.sync("/", soon())));
  }

  EXPECT_EQ(witness.queue(directory), before);
  EXPECT_THAT(leader.states(), ElementsAre(ElectionState::kLeading));
  EXPECT_THAT(follower.states(), IsEmpty());
}

TEST_P(ElectionTest, H75_ALeaderWhoseEntryIsDeletedByAnotherHandQueuesAgain) {
  Diary diary;
  const Election election(open(), directory, diary.kept(restless("a")));
  ASSERT_TRUE(leads(election));
  const std::optional<Token> old = election.token();
  const std::string entry = directory + "/" + witness.queue(directory).at(0);
  ASSERT_TRUE(eventually([&] { return witness.watches_below(entry) > 0; }));

  ASSERT_TRUE(ok(witness.session().remove(entry, soon())));

  ASSERT_TRUE(diary.reaches(ElectionState::kLeading, 2));
  EXPECT_EQ(diary.last(ElectionState::kQueued).news.error, Code::kLost);
  EXPECT_GT(election.token(), old);
}

TEST_P(ElectionTest, H75_ACandidateWhoseEntryIsDeletedByAnotherHandQueuesAgain) {
  const Election first(open(), directory, {.id = "first"});
  ASSERT_TRUE(leads(first));
  Diary diary;
  const Election second(open(), directory, diary.kept(restless("second")));
  ASSERT_TRUE(candidates_become({"first", "second"}));
  const std::string entry = directory + "/" + witness.queue(directory).at(1);
  ASSERT_TRUE(eventually([&] { return witness.watches_below(entry) > 0; }));

  ASSERT_TRUE(ok(witness.session().remove(entry, soon())));

  ASSERT_TRUE(diary.reaches(ElectionState::kQueued));
  EXPECT_EQ(diary.last(ElectionState::kQueued).news.error, Code::kLost);
  EXPECT_TRUE(candidates_become({"first", "second"}));
}

TEST_P(ElectionTest, MayBeClosedOrDestroyedInEveryState) {
  Session session = open();
  {
    Election unconnected(*Session::start("127.0.0.1:1"), directory, {.id = "nowhere"});
    unconnected.close();
    EXPECT_EQ(unconnected.state(), ElectionState::kClosed);
  }
  { const Election entering(session, directory, {.id = "entering"}); }
  {
    const Election leading(session, directory, {.id = "leading"});
    ASSERT_TRUE(leads(leading));
    const Election queued(session, directory, {.id = "queued"});
    ASSERT_TRUE(candidates_become({"leading", "queued"}));
  }
  {
    Election resting(session, directory, {.id = "resting", .min_pause = 30s, .short_term = 1h});
    ASSERT_TRUE(leads(resting));
    resting.resign();
    ASSERT_TRUE(candidates_become({}));
  }

  EXPECT_TRUE(witness.is_quiet(directory));
  EXPECT_TRUE(eventually([&] { return service().watches_of(session.id()) == 0; }));
}

TEST_P(ElectionTest, MayBeDestroyedByItsOwnCallback) {
  Diary diary;
  auto election = std::make_shared<std::optional<Election>>();
  const auto ready = std::make_shared<std::latch>(1);
  auto leave = [=](const ElectionNews& news) {
    ready->wait();
    if (news.state == ElectionState::kLeading) election->reset();
  };
  election->emplace(open(), directory, diary.kept({.id = "a", .on_change = leave}));
  ready->count_down();

  ASSERT_TRUE(diary.reaches(ElectionState::kClosed));
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(ElectionTest, KeepsItsSessionOpenAndLetsGoOfItInTheEnd) {
  std::int64_t id = 0;
  {
    Session session = open();
    id = session.id();
    std::optional<Election> election;
    election.emplace(session, directory, ElectionOptions{.id = "a"});
    session = open();
    ASSERT_TRUE(leads(*election));
    EXPECT_EQ(service().connections_of(id), 1);
  }

  EXPECT_TRUE(eventually([&] { return service().connections_of(id) == 0; }));
}

TEST_P(ElectionTest, TheEndOfTheSessionIsTheLastNews) {
  Session session = open();
  Diary leading;
  Diary queued;
  Diary resting;
  Election first(session, directory, leading.kept({.id = "first", .min_pause = 30s}));
  ASSERT_TRUE(leads(first));
  const Election second(session, directory, queued.kept({.id = "second"}));
  Election alone(session, fresh_path(), resting.kept({.id = "alone", .min_pause = 30s}));
  ASSERT_TRUE(leads(alone));
  alone.resign();
  ASSERT_TRUE(candidates_become({"first", "second"}));

  ASSERT_TRUE(ok(session.close(soon())));

  for (const Diary& diary : {leading, queued, resting}) {
    ASSERT_TRUE(diary.reaches(ElectionState::kFailed));
    EXPECT_EQ(diary.all().back().news.error, Code::kClosed);
  }
  EXPECT_TRUE(leading.last(ElectionState::kLeading).news.over.stop_requested());
  EXPECT_EQ(first.state(), ElectionState::kFailed);
  first.resign();
  first.close();
  EXPECT_EQ(first.state(), ElectionState::kFailed);
}

TEST_P(ElectionTest, AServiceThatRefusesUsIsTheLastNews) {
  Session session = open();
  ASSERT_TRUE(ok(session.create(directory, "", {.acl = {{kRead, "world", "anyone"}}}, soon())));
  Diary diary;

  const Election election(session, directory, diary.kept({.id = "a"}));

  ASSERT_TRUE(diary.reaches(ElectionState::kFailed));
  EXPECT_EQ(diary.last(ElectionState::kFailed).news.error, Code::kNotAuthorized);
  EXPECT_EQ(diary.all().size(), 1U);
}

TEST_P(ElectionTest, ABadPathIsTheLastNews) {
  Diary diary;

  const Election election(open(), "no/slash", diary.kept({.id = "a"}));

  ASSERT_TRUE(diary.reaches(ElectionState::kFailed));
  EXPECT_EQ(diary.last(ElectionState::kFailed).news.error, Code::kInvalidPath);
}

TEST_P(ElectionTest, H73_ATakeOverDelayKeepsTheOrderlyWayFree) {
  // A delay that no test would survive.
  Election first(open(), directory, {.id = "first", .take_over_delay = 1h});
  ASSERT_TRUE(leads(first));
  const Election second(open(), directory, {.id = "second", .take_over_delay = 1h});
  ASSERT_TRUE(candidates_become({"first", "second"}));

  first.close();

  EXPECT_TRUE(leads(second));
}

/// Notices when two lead at once, or when tokens do not grow. Thread safety: any thread.
class Throne {
 public:
  void take(const ElectionNews& news) {
    auto term = std::make_shared<Term>();
    // From here on the term cannot end unnoticed.
    term->left.emplace(news.over, [this, weak = std::weak_ptr(term)] {
      const std::lock_guard lock(mutex_);
      const auto ended = weak.lock();
      if (ended && std::exchange(ended->entered, false)) --inside_;
    });
    const std::lock_guard lock(mutex_);
    terms_.push_back(term);
    if (news.over.stop_requested()) return;
    term->entered = true;
    if (++inside_ > 1) ++overlaps_;
    if (*news.token <= last_) ++disorders_;
    last_ = *news.token;
  }

  [[nodiscard]] int overlaps() const { return overlaps_; }
  [[nodiscard]] int disorders() const { return disorders_; }
  [[nodiscard]] bool is_empty() const { return inside_ == 0; }

 private:
  struct Term {
    bool entered = false;
    std::optional<std::stop_callback<std::function<void()>>> left;
  };

  std::mutex mutex_;
  std::vector<std::shared_ptr<Term>> terms_;
  std::atomic<int> inside_ = 0;
  std::atomic<int> overlaps_ = 0;
  std::atomic<int> disorders_ = 0;
  Token last_{0};
};

TEST_P(ElectionTest, H73_H75_UnderChurnThereIsOneLeaderAtATimeAndOneInTheEnd) {
  constexpr std::size_t kCandidates = 6;
  const auto throne = std::make_shared<Throne>();
  std::vector<Proxied> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(open_proxied());
  std::vector<std::unique_ptr<Election>> elections(kCandidates);
  const auto enter = [&](std::size_t who) {
    auto options = restless("c" + std::to_string(who));
    options.max_pause = 20ms;
    options.on_change = [throne](const ElectionNews& news) {
      if (news.state == ElectionState::kLeading) throne->take(news);
    };
    elections[who] = std::make_unique<Election>(clients[who % 3].session, directory, options);
  };
  for (std::size_t i = 0; i < kCandidates; ++i) enter(i);

  std::minstd_rand luck(7);
  for (int round = 0; round < 60; ++round) {
    const std::size_t who = luck() % kCandidates;
    switch (luck() % 4) {
      case 0: enter(who); break;
      case 1: clients[who % 3].proxy->cut_all(); break;
      default: elections[who]->resign();
    }
    ASSERT_TRUE(ok(witness.session().sync("/", soon())));
  }

  const auto leaders = [&] {
    return std::count_if(elections.begin(), elections.end(), [](const auto& election) {
      return election->state() == ElectionState::kLeading;
    });
  };
  EXPECT_TRUE(witness.queue_reaches(directory, kCandidates));
  EXPECT_TRUE(eventually([&] { return leaders() == 1; }));
  EXPECT_EQ(throne->overlaps(), 0);
  EXPECT_EQ(throne->disorders(), 0);
  elections.clear();
  EXPECT_TRUE(witness.is_quiet(directory));
  EXPECT_TRUE(eventually([&] { return throne->is_empty(); }));
}

}  // namespace
}  // namespace latchkey::test_support
