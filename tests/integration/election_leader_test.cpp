#include <algorithm>

#include <gmock/gmock.h>

#include "integration/election_fixture.hpp"
#include "integration/fake_server.hpp"
#include "integration/watch_count.hpp"
#include "latchkey/inspect.hpp"
#include "queue/delay_note.hpp"
#include "queue/lock_delay.hpp"

/// Observers of an election.
namespace latchkey::test_support {

INSTANTIATE_TEST_SUITE_P(Standalone, LeaderTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, LeaderTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, LeaderTest, testing::Values(ServiceKind::kEmbedded));

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Sight = Result<std::optional<Leader>>;
using Sights = Recorder<Sight>;

/// "-" for nobody, "!" for the error at the end.
std::vector<std::string> ids(const Sights& sights) {
  std::vector<std::string> ids;
  for (const Sight& sight : sights.all()) {
    ids.push_back(!sight ? "!" : !*sight ? "-" : (*sight)->id);
  }
  return ids;
}

testing::AssertionResult shows(const Sights& sights, const std::string& id) {
  const bool shown =
      eventually([&] { return sights.size() > 0 && ids(sights).back() == id; }, deadline_in(60s));
  if (shown) return testing::AssertionSuccess();
  return testing::AssertionFailure() << testing::PrintToString(ids(sights));
}

bool never_go_down(const Sights& sights) {
  std::vector<Token> tokens;
  for (const Sight& sight : sights.all()) {
    if (sight && *sight) tokens.push_back((*sight)->token);
  }
  return std::is_sorted(tokens.begin(), tokens.end());
}

TEST_P(LeaderTest, CannotBeAskedToLetGoAndKeepsItsName) {
  const Election leads_now(open(), directory, {.id = "first", .take_over_delay = 30s});
  ASSERT_TRUE(leads(leads_now));
  const std::string entry = directory + "/" + witness.queue(directory).at(0);
  const auto before = witness.session().get(entry, soon());
  ASSERT_TRUE(ok(before));

  const auto asked = revoke(witness.session(), entry, soon());

  ASSERT_TRUE(fails_with(asked, Code::kInvalidOption));
  EXPECT_THAT(asked.error().message(), testing::HasSubstr("election"));
  const auto after = witness.session().get(entry, soon());
  ASSERT_TRUE(ok(after));
  EXPECT_EQ(after->data, before->data);
  EXPECT_EQ(after->stat.version, before->stat.version);
  EXPECT_EQ(leads_now.state(), ElectionState::kLeading);
}

TEST_P(LeaderTest, IsWhoeverLeadsNow) {
  Session session = open();
  const auto before = leader(session, directory, soon());
  ASSERT_TRUE(ok(before));
  EXPECT_EQ(*before, std::nullopt);
  Election first(session, directory, {.id = "first"});
  ASSERT_TRUE(leads(first));
  const Election second(session, directory, {.id = "second"});
  ASSERT_TRUE(candidates_become({"first", "second"}));

  const auto now = leader(session, directory, soon());
  ASSERT_TRUE(ok(now));
  ASSERT_TRUE(now->has_value());
  EXPECT_EQ((*now)->id, "first");
  EXPECT_EQ((*now)->token, first.token());
  EXPECT_EQ((*now)->node, witness.queue(directory).at(0));
  first.close();
  ASSERT_TRUE(leads(second));

  const auto then = leader(session, directory, soon());
  ASSERT_TRUE(ok(then));
  ASSERT_TRUE(then->has_value());
  EXPECT_EQ((*then)->id, "second");
}

TEST_P(LeaderTest, IsNobodyInAnEmptyDirectoryAndMayBeAskedFromACallback) {
  Session session = open();
  make_node(session, directory);
  const Recorder<Sight> answers;

  session.async(Exists{directory}, soon(), [=, path = directory](auto) mutable {
    answers.add(leader(session, path, soon()));
  });

  ASSERT_TRUE(answers.wait_for(1));
  ASSERT_TRUE(ok(answers.last()));
  EXPECT_EQ(*answers.last(), std::nullopt);
}

TEST_P(LeaderTest, WhoseDataMayNotBeReadIsKnownByItsToken) {
  Session session = open();
  ASSERT_TRUE(ok(session.call(Authenticate{"digest", "ann:secret"}, soon())));
  const Election election(session, directory, {.id = "hidden", .acl = creator_acl()});
  ASSERT_TRUE(leads(election));
  ASSERT_TRUE(ok(session.call(SetAcl{directory, open_acl()}, soon())));
  const Sights sights;
  const LeaderWatch watch(witness.session(), directory, sights.adder());

  const auto seen = leader(witness.session(), directory, soon());

  ASSERT_TRUE(ok(seen));
  ASSERT_TRUE(seen->has_value());
  EXPECT_EQ((*seen)->token, election.token());
  EXPECT_EQ((*seen)->id, "");
  ASSERT_TRUE(sights.wait_for(1));
  EXPECT_EQ(*sights.last(), *seen);
}

TEST_P(LeaderTest, RefusesABadPath) {
  Session session = open();
  const Sights sights;
  const LeaderWatch watch(session, "bad//path", sights.adder());

  EXPECT_TRUE(fails_with(leader(session, "bad//path", soon()), Code::kInvalidPath));
  ASSERT_TRUE(sights.wait_for(1));
  EXPECT_TRUE(fails_with(sights.last(), Code::kInvalidPath));
}

TEST_P(LeaderTest, AWatchShowsEveryLeaderInTurn) {
  const Sights sights;
  const LeaderWatch watch(open(), directory, sights.adder());
  ASSERT_TRUE(shows(sights, "-"));

  // A container might be gone before we remove it.
  Election first(open(), directory, {.id = "first", .parent = Parent::kPersistent});
  ASSERT_TRUE(shows(sights, "first"));
  ASSERT_TRUE(leads(first)) << "others may know before it does";
  EXPECT_EQ((*sights.last())->token, first.token());
  Election second(open(), directory, {.id = "second"});
  ASSERT_TRUE(candidates_become({"first", "second"}));
  first.close();
  ASSERT_TRUE(shows(sights, "second"));
  second.close();
  ASSERT_TRUE(shows(sights, "-"));
  ASSERT_TRUE(ok(witness.session().remove(directory, soon())));
  const Election third(open(), directory, {.id = "third"});
  ASSERT_TRUE(shows(sights, "third"));

  EXPECT_THAT(ids(sights), ElementsAre("-", "first", "second", "-", "third"));
  EXPECT_TRUE(never_go_down(sights));
}

TEST_P(LeaderTest, CandidatesThatComeAndGoCostAnObserverNothing) {
  const Election first(open(), directory, {.id = "first"});
  ASSERT_TRUE(leads(first));
  Proxied one = open_proxied();
  const Sights sights;
  const LeaderWatch watch(one.session, directory, sights.adder());
  ASSERT_TRUE(shows(sights, "first"));
  one.proxy->log().clear();

  for (int i = 0; i < 3; ++i) {
    const Election another(open(), directory, {.id = "another"});
    ASSERT_TRUE(candidates_become({"first", "another"}));
  }
  ASSERT_TRUE(candidates_become({"first"}));
  ASSERT_TRUE(ok(one.session.sync("/", soon())));

  EXPECT_THAT(requests(*one.proxy), IsEmpty());
  EXPECT_EQ(sights.size(), 1U);
}

TEST_P(LeaderTest, AWatchSurvivesReconnects) {
  Proxied one = open_proxied(quick(60s));
  const Sights sights;
  const LeaderWatch watch(one.session, directory, sights.adder());
  ASSERT_TRUE(shows(sights, "-"));
  one.proxy->cut_all();
  Election first(open(), directory, {.id = "first"});
  ASSERT_TRUE(shows(sights, "first"));
  one.proxy->refuse();
  one.proxy->cut_all();
  first.close();
  const Election second(open(), directory, {.id = "second"});
  ASSERT_TRUE(leads(second));
  one.proxy->accept();

  EXPECT_TRUE(shows(sights, "second"));
  EXPECT_TRUE(never_go_down(sights));
}

TEST_P(LeaderTest, AWatchEndsWithOneErrorWhenItsSessionDoes) {
  for (const bool somebody : {false, true}) {
    const std::string path = fresh_path();
    std::optional<Election> election;
    if (somebody) {
      election.emplace(witness.session(), path, ElectionOptions{.id = "a"});
      ASSERT_TRUE(leads(*election)) << "or the watch sees that nobody does, first";
    }
    Session session = open();
    const Sights sights;
    const LeaderWatch watch(session, path, sights.adder());
    ASSERT_TRUE(shows(sights, somebody ? "a" : "-"));

    ASSERT_TRUE(ok(session.close(soon())));

    ASSERT_TRUE(shows(sights, "!"));
    EXPECT_TRUE(fails_with(sights.last(), Code::kClosed));
    EXPECT_EQ(sights.size(), 2U);
  }
}

TEST_P(LeaderTest, AWatchThatIsDestroyedLeavesNothingBehind) {
  Session session = open();
  // What earlier tests have left goes with their sessions.
  ASSERT_TRUE(eventually([&] { return watches_of_all(service()) == 0; }));
  const Sights sights;
  // It goes after the last observer, who would see that nobody leads.
  std::optional<Election> election;
  {
    const LeaderWatch absent(session, fresh_path(), sights.adder());
    ASSERT_TRUE(sights.wait_for(1));
    make_node(witness.session(), directory);
    const LeaderWatch empty(session, directory, sights.adder());
    ASSERT_TRUE(sights.wait_for(2));
    EXPECT_TRUE(eventually([&] { return watches_of_all(service()) == 2; }));
    election.emplace(witness.session(), directory, ElectionOptions{.id = "a"});
    ASSERT_TRUE(sights.wait_for(3));
    const LeaderWatch led(session, directory, sights.adder());
    ASSERT_TRUE(sights.wait_for(4));
    LeaderWatch moved(session, fresh_path(), sights.adder());
    ASSERT_TRUE(sights.wait_for(5));
    moved = LeaderWatch(session, fresh_path(), sights.adder());
    ASSERT_TRUE(sights.wait_for(6));
  }
  election.reset();

  EXPECT_TRUE(eventually([&] { return watches_of_all(service()) == 0; }));
  EXPECT_EQ(sights.size(), 6U);
}

TEST_P(LeaderTest, AWatchMayBeDestroyedByItsHandler) {
  auto watch = std::make_shared<std::optional<LeaderWatch>>();
  const Events events;
  const auto ready = std::make_shared<std::mutex>();
  {
    const std::lock_guard lock(*ready);
    watch->emplace(open(), directory, [watch, events, ready](const Sight&) {
      const std::lock_guard wait(*ready);
      watch->reset();
      events.add("gone");
    });
  }

  EXPECT_TRUE(events.wait_for(1));
}

/// A service with one candidate, who waits out a take-over delay. The first looks at it fail at
/// their last question, and right behind the refusal comes word that the mark has changed.
class Moody {
 public:
  explicit Moody(int refusals) : refusals_(refusals) {}

  void serve(FakeServer::Guest& guest) {
    if (!guest.greet(0x1234, 60'000)) return;  // Whoever reconnects asks again.
    while (const auto frame = guest.receive()) {
      wire::RequestHeader header;
      wire::PathOnly about;
      wire::Reader reader(*frame);
      reader(header);
      reader(about);
      const auto reply = [&](const auto&... body) {
        guest.send(reply_frame(header.xid, wire::Err::kOk, body...));
      };
      const bool own = about.path == "/e" || about.path == kNode;
      switch (header.op) {
        case wire::Op::kPing: guest.send(reply_frame(wire::kPingXid, wire::Err::kOk)); break;
        case wire::Op::kSync:
          if (own) asked_.add("sync");
          reply(about);
          break;
        case wire::Op::kGetChildren2:
          asked_.add("list");
          nodes_read_ = 0;
          reply(wire::Children2Reply{{std::string(kNode).substr(3)}, {}});
          break;
        case wire::Op::kGetData: read(guest, header.xid, about.path); break;
        default: reply(); break;
      }
      if (header.op == wire::Op::kCloseSession) return;
    }
  }

  /// The questions in order, watches that were taken back left out.
  [[nodiscard]] std::vector<std::string> asked() const { return asked_.all(); }

 private:
  static constexpr const char* kNode =
      "/e/_c_00000000-0000-0000-0000-000000000000-latch-0000000000";

  void read(FakeServer::Guest& guest, std::int32_t xid, const std::string& path) {
    wire::GetDataReply node;
    node.stat.czxid = 7;
    asked_.add(path == kNode ? "node" : "mark");
    if (path == kNode) {
      node.data = queue::with_delay_note("late", 1h);
      if (++nodes_read_ == 2 && refusals_ > 0) {
        --refusals_;
        guest.send(reply_frame(xid, wire::Err::kQuotaExceeded) +
                   reply_frame(wire::kNotificationXid, wire::Err::kOk,
                               wire::WatcherEvent{wire::EventType::kDataChanged, 3, "/e"}));
        return;
      }
    } else {
      node.data = refusals_ > 0 ? std::string() : queue::format_holder(7);
    }
    guest.send(reply_frame(xid, wire::Err::kOk, node));
  }

  int refusals_;
  int nodes_read_ = 0;  ///< In the look under way.
  const Recorder<std::string> asked_;
};

TEST(LeaderWatchTest, ALookThatFailedIsRepeatedOnceThoughTheMarkHasChangedMeanwhile) {
  Moody moody(3);
  FakeServer server([&](FakeServer::Guest& guest, int) { moody.serve(guest); });
  const Sights sights;
  {
    const LeaderWatch watch(open_session(server.connect_string(), quick(60s)), "/e",
                            sights.adder());
    ASSERT_TRUE(shows(sights, "late"));
  }

  std::vector<std::string> four_looks;
  for (int i = 0; i < 4; ++i) {
    for (const char* question : {"sync", "list", "node", "mark", "node"}) {
      four_looks.emplace_back(question);
    }
  }
  EXPECT_EQ(moody.asked(), four_looks);
  EXPECT_THAT(ids(sights), ElementsAre("late"));
}

/// Behind several servers one of which has not heard of the latest.
class LeaderEnsembleTest : public testing::Test {
 protected:
  [[nodiscard]] Session open_at(std::size_t member) {
    return open_session(ensemble.connect_string(member), quick(60s));
  }

  Ensemble& ensemble = shared_ensemble();
  const std::string directory = fresh_path();
};

TEST_F(LeaderEnsembleTest, H76_AnObserverThatMovesToALaggingServerNeverSeesAnOlderLeader) {
  const std::size_t behind = ensemble.followers().at(0);
  const std::size_t current = ensemble.followers().at(1);
  Session candidates = open_at(current);
  Election first(candidates, directory, {.id = "first"});
  ASSERT_TRUE(eventually([&] { return first.state() == ElectionState::kLeading; }));
  FaultProxy proxy(ensemble.connect_string(current));
  const Sights sights;
  const LeaderWatch watch(open_session(proxy.connect_string(), quick(60s)), directory,
                          sights.adder());
  ASSERT_TRUE(shows(sights, "first"));
  Election second(candidates, directory, {.id = "second"});

  ensemble.cut_from_leader(behind);
  first.close();
  ASSERT_TRUE(shows(sights, "second"));
  proxy.retarget(ensemble.connect_string(behind));
  proxy.cut_all();
  ASSERT_TRUE(eventually([&] { return proxy.connections_accepted() >= 2; }));
  ensemble.heal(behind);
  const Election third(candidates, directory, {.id = "third"});
  second.close();

  EXPECT_TRUE(shows(sights, "third"));
  EXPECT_THAT(ids(sights), ElementsAre("first", "second", "third"));
  EXPECT_TRUE(never_go_down(sights));
}

TEST_F(LeaderEnsembleTest, H76_AnObserverOfALaggingServerIsShownNobodyOld) {
  const std::size_t behind = ensemble.followers().at(0);
  const std::size_t current = ensemble.followers().at(1);
  Session candidates = open_at(current);
  Election first(candidates, directory, {.id = "first"});
  const Election second(candidates, directory, {.id = "second"});
  Session late = open_at(behind);
  Session reader = open_at(behind);
  ASSERT_TRUE(eventually([&] {
    const auto list = late.children(directory, soon());
    return list && list->names.size() == 2;
  }));
  ASSERT_TRUE(eventually([&] { return first.state() == ElectionState::kLeading; }));

  ensemble.cut_from_leader(behind);
  first.close();
  ASSERT_TRUE(eventually([&] { return second.state() == ElectionState::kLeading; }));
  const Sights sights;
  const LeaderWatch watch(late, directory, sights.adder());
  // That is the trap: what this server shows is long past.
  const auto stale = reader.children(directory, soon());
  ASSERT_TRUE(ok(stale));
  EXPECT_EQ(stale->names.size(), 2U);
  EXPECT_TRUE(fails_with(leader(late, directory, deadline_in(300ms)), Code::kTimedOut));
  EXPECT_THAT(ids(sights), IsEmpty());
  ensemble.heal(behind);

  ASSERT_TRUE(shows(sights, "second"));
  EXPECT_EQ(sights.size(), 1U);
}

}  // namespace
}  // namespace latchkey::test_support
