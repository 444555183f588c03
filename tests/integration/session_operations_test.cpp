#include <algorithm>

#include <gmock/gmock.h>

#include "integration/session_fixture.hpp"
#include "support/raw_client.hpp"

/// Every operation of latchkey/operations.hpp and its answers, against a real service.
namespace latchkey::test_support {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST_P(SessionTest, CreatesReadsChangesAndRemovesANode) {
  Session session = open();
  const std::string path = fresh_path();

  const auto created = session.create(path, "one", {}, soon());
  ASSERT_TRUE(ok(created));
  EXPECT_EQ(created->path, path);
  ASSERT_TRUE(created->stat.has_value());
  EXPECT_GT(created->stat->czxid, 0);
  EXPECT_EQ(created->stat->data_length, 3);

  const auto changed = session.set(path, "second", soon(), 0);
  ASSERT_TRUE(ok(changed));
  EXPECT_EQ(changed->version, 1);
  EXPECT_GT(changed->mzxid, changed->czxid);

  const auto node = session.get(path, soon());
  ASSERT_TRUE(ok(node));
  EXPECT_EQ(node->data, "second");
  EXPECT_EQ(node->stat, *changed);

  ASSERT_TRUE(ok(session.remove(path, soon(), 1)));
  const auto gone = session.exists(path, soon());
  ASSERT_TRUE(ok(gone));
  EXPECT_EQ(*gone, std::nullopt);
}

TEST_P(SessionTest, TellsTheServersRefusalsApart) {
  Session session = open();
  const std::string path = fresh_path();
  const std::string below = path + "/below";

  EXPECT_TRUE(fails_with(session.get(path, soon()), Code::kNoNode, path));
  EXPECT_TRUE(fails_with(session.create(below, {}, {}, soon()), Code::kNoNode, below));
  make_node(session, path);
  make_node(session, below, {}, Lifetime::kEphemeral);
  EXPECT_TRUE(fails_with(session.create(path, {}, {}, soon()), Code::kNodeExists, path));
  EXPECT_TRUE(fails_with(session.remove(path, soon()), Code::kNotEmpty, path));
  EXPECT_TRUE(fails_with(session.set(path, "x", soon(), 7), Code::kBadVersion, path));
  EXPECT_TRUE(fails_with(session.remove(below, soon(), 7), Code::kBadVersion, below));
  EXPECT_TRUE(
      fails_with(session.create(below + "/child", {}, {}, soon()), Code::kNoChildrenForEphemerals));
  EXPECT_TRUE(
      fails_with(session.create(path + "/acl", {}, {.acl = {}}, soon()), Code::kInvalidAcl));
  EXPECT_TRUE(fails_with(session.children(path + "/nowhere", soon()), Code::kNoNode));
  EXPECT_TRUE(fails_with(session.call(RemoveWatches{path}, soon()), Code::kNoWatcher, path));

  const auto refused = session.set(path, "x", soon(), 7);
  EXPECT_EQ(refused.error().effect(), Effect::kNone);
}

TEST_P(SessionTest, NumbersSequentialNodesInOneGrowingRow) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path);

  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    const Lifetime life = i == 1 ? Lifetime::kEphemeral : Lifetime::kPersistent;
    const auto made =
        session.create(path + "/n-", {}, {.lifetime = life, .naming = Naming::kSequential}, soon());
    ASSERT_TRUE(ok(made));
    names.push_back(made->path);
  }
  const auto bare = session.create(path + "/", {}, {.naming = Naming::kSequential}, soon());

  EXPECT_THAT(names,
              ElementsAre(path + "/n-0000000000", path + "/n-0000000001", path + "/n-0000000002"));
  ASSERT_TRUE(ok(bare));
  EXPECT_EQ(bare->path, path + "/0000000003");
}

TEST_P(SessionTest, ReapsAnEmptiedContainerAndAnUnusedTtlNode) {
  Session session = open();
  const std::string box = fresh_path();
  const std::string brief = fresh_path();
  make_node(session, box, {}, Lifetime::kContainer);
  make_node(session, box + "/child");

  const auto ttl = session.create(brief, {}, {.lifetime = Lifetime::kTtl, .ttl = 200ms}, soon());
  ASSERT_TRUE(ok(ttl));
  ASSERT_TRUE(ok(session.remove(box + "/child", soon())));

  const auto gone = [&](const std::string& path) {
    const auto stat = session.exists(path, soon());
    return stat && !*stat;
  };
  EXPECT_TRUE(eventually([&] { return gone(brief) && gone(box); }));
}

TEST_P(SessionTest, RefusesLifetimesThatMakeNoSense) {
  Session session = open();
  const std::string path = fresh_path();

  EXPECT_TRUE(fails_with(session.create(path, {}, {.lifetime = Lifetime::kTtl}, soon()),
                         Code::kInvalidOption));
  EXPECT_TRUE(fails_with(
      session.create(path, {}, {.lifetime = Lifetime::kContainer, .naming = Naming::kSequential},
                     soon()),
      Code::kInvalidOption));
  EXPECT_TRUE(fails_with(session.call(AddWatch{.path = path, .watcher = {}}, soon()),
                         Code::kInvalidOption));
  EXPECT_TRUE(fails_with(session.call(Authenticate{"", "x"}, soon()), Code::kInvalidOption));
}

TEST_P(SessionTest, EndsEphemeralNodesWithTheSession) {
  Session session = open();
  const std::string path = fresh_path();
  Session other = open();
  make_node(session, path, "mine", Lifetime::kEphemeral);

  ASSERT_TRUE(ok(other.sync(path, soon())));
  const auto seen = other.get(path, soon());
  ASSERT_TRUE(ok(seen));
  EXPECT_EQ(seen->stat.ephemeral_owner, session.id());

  ASSERT_TRUE(ok(session.close(soon())));
  ASSERT_TRUE(ok(other.sync(path, soon())));
  const auto after = other.exists(path, soon());
  ASSERT_TRUE(ok(after));
  EXPECT_EQ(*after, std::nullopt);
}

TEST_P(SessionTest, ListsChildrenEphemeralsAndCountsTheTree) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path);
  make_node(session, path + "/a");
  make_node(session, path + "/a/deep", {}, Lifetime::kEphemeral);
  make_node(session, path + "/b", {}, Lifetime::kEphemeral);

  const auto children = session.children(path, soon());
  ASSERT_TRUE(ok(children));
  EXPECT_THAT(children->names, UnorderedElementsAre("a", "b"));
  EXPECT_EQ(children->stat.num_children, 2);

  const auto mine = session.call(Ephemerals{path}, soon());
  ASSERT_TRUE(ok(mine));
  EXPECT_THAT(*mine, UnorderedElementsAre(path + "/a/deep", path + "/b"));

  const auto count = session.call(ChildrenCount{path}, soon());
  ASSERT_TRUE(ok(count));
  EXPECT_EQ(*count, 3);
}

TEST_P(SessionTest, KeepsStrangersOutByDigest) {
  SessionOptions options = quick();
  options.credentials = {{"digest", "alice:secret"}};
  Session alice = open(options);
  Session stranger = open();
  const std::string path = fresh_path();
  ASSERT_TRUE(ok(alice.create(path, "private", {.acl = creator_acl()}, soon())));
  ASSERT_TRUE(ok(stranger.sync(path, soon())));

  EXPECT_TRUE(fails_with(stranger.get(path, soon()), Code::kNotAuthorized, path));
  EXPECT_TRUE(fails_with(stranger.set(path, "x", soon()), Code::kNotAuthorized, path));
  EXPECT_TRUE(ok(alice.get(path, soon())));

  ASSERT_TRUE(ok(stranger.call(Authenticate{"digest", "alice:secret"}, soon())));
  EXPECT_TRUE(ok(stranger.get(path, soon())));
}

TEST_P(SessionTest, ReadsAndChangesAccessControlLists) {
  SessionOptions options = quick();
  options.credentials = {{"digest", "bob:pass"}};
  Session bob = open(options);
  const std::string path = fresh_path();
  make_node(bob, path);

  const auto before = bob.call(GetAcl{path}, soon());
  ASSERT_TRUE(ok(before));
  EXPECT_EQ(before->acl, open_acl());

  EXPECT_TRUE(fails_with(bob.call(SetAcl{path, creator_acl(), 9}, soon()), Code::kBadVersion));
  const auto changed = bob.call(SetAcl{path, creator_acl(), 0}, soon());
  ASSERT_TRUE(ok(changed));
  EXPECT_EQ(changed->aversion, 1);

  const auto after = bob.call(GetAcl{path}, soon());
  ASSERT_TRUE(ok(after));
  ASSERT_EQ(after->acl.size(), 1U);
  EXPECT_EQ(after->acl[0].scheme, "digest");
  EXPECT_THAT(after->acl[0].id, HasSubstr("bob:"));
}

TEST_P(SessionTest, KnowsWhomTheServerTakesItFor) {
  SessionOptions options = quick();
  options.credentials = {{"digest", "carol:pass"}};
  Session session = open(options);

  const auto identities = session.call(WhoAmI{}, soon());

  ASSERT_TRUE(ok(identities));
  const auto is_carol = [](const auto& one) {
    return one.scheme == "digest" && one.user.starts_with("carol");
  };
  EXPECT_TRUE(std::any_of(identities->begin(), identities->end(), is_carol));
}

TEST_P(SessionTest, CommitsAMultiAsOneWithTypedParts) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path, "old");
  make_node(session, path + "/gone");

  const auto outcome =
      session.multi({Check{path, 0}, Set{path, "new", 0}, Remove{path + "/gone"},
                     Create{path + "/s-", "", {.naming = Naming::kSequential}},
                     Create{path + "/box", "", {.lifetime = Lifetime::kContainer}},
                     Create{path + "/ttl", "", {.lifetime = Lifetime::kTtl, .ttl = 60s}}},
                    soon());

  ASSERT_TRUE(ok(outcome));
  ASSERT_TRUE(outcome->committed);
  ASSERT_EQ(outcome->parts.size(), 6U);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*outcome->parts[0]));
  EXPECT_EQ(std::get<Stat>(*outcome->parts[1]).version, 1);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*outcome->parts[2]));
  EXPECT_EQ(std::get<Created>(*outcome->parts[3]).path, path + "/s-0000000001");
  EXPECT_EQ(std::get<Created>(*outcome->parts[4]).path, path + "/box");
  EXPECT_EQ(session.get(path, soon())->data, "new");
}

TEST_P(SessionTest, RollsAMultiBackAndNamesTheCulprit) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path, "old");

  const auto outcome = session.multi(
      {Set{path, "new"}, Remove{path + "/nowhere"}, Create{path + "/child", ""}, Check{path, 5}},
      soon());

  ASSERT_TRUE(ok(outcome));
  EXPECT_FALSE(outcome->committed);
  ASSERT_EQ(outcome->parts.size(), 4U);
  EXPECT_TRUE(fails_with(outcome->parts[0], Code::kRolledBack, path));
  EXPECT_TRUE(fails_with(outcome->parts[1], Code::kNoNode, path + "/nowhere"));
  EXPECT_TRUE(fails_with(outcome->parts[2], Code::kRolledBack));
  EXPECT_TRUE(fails_with(outcome->parts[3], Code::kRolledBack));
  EXPECT_EQ(session.get(path, soon())->data, "old");
}

TEST_P(SessionTest, AMultiThatAsksForStatsIsCarriedOutByOldServersWithoutThem) {
  // Servers before 3.8.2 answer a create2 inside a multi as a plain create (ZOOKEEPER-4026).
  Session session = open();
  const std::string path = fresh_path();

  const auto outcome =
      session.call(Multi{.parts = {Create{path, "x"}}, .create_stat = true}, soon());

  ASSERT_TRUE(ok(outcome));
  ASSERT_TRUE(outcome->committed);
  const auto created = std::get<Created>(*outcome->parts.at(0));
  EXPECT_EQ(created.path, path);
  const auto node = session.get(path, soon());
  ASSERT_TRUE(ok(node));
  EXPECT_EQ(created.stat.value_or(node->stat), node->stat);
}

TEST_P(SessionTest, ReadsSeveralNodesInOneRoundTrip) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path, "data");
  make_node(session, path + "/child");

  const auto read =
      session.call(MultiRead{{Get{path}, Children{path}, Get{path + "/nowhere"}}}, soon());

  ASSERT_TRUE(ok(read));
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ(std::get<Node>(*read->at(0)).data, "data");
  EXPECT_THAT(std::get<std::vector<std::string>>(*read->at(1)), ElementsAre("child"));
  EXPECT_TRUE(fails_with(read->at(2), Code::kNoNode, path + "/nowhere"));

  const auto watched = session.call(MultiRead{{Get{path, [](const WatchEvent&) {}}}}, soon());
  EXPECT_TRUE(fails_with(watched, Code::kInvalidOption));
}

TEST_P(SessionTest, ChecksAVersionOnItsOwn) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path);

  EXPECT_TRUE(ok(session.call(Check{path, 0}, soon())));
  EXPECT_TRUE(fails_with(session.call(Check{path, 3}, soon()), Code::kBadVersion, path));
  EXPECT_TRUE(fails_with(session.call(Check{path + "/no"}, soon()), Code::kNoNode));
}

TEST_P(SessionTest, EmptyAndTrulyAbsentDataBothReadAsEmpty) {
  Session session = open();
  const std::string empty = fresh_path();
  const std::string absent = fresh_path();
  make_node(session, empty);
  RawClient raw(service().servers().front());
  ASSERT_TRUE(raw.connect(4'000));
  auto request = create_request(absent, wire::CreateMode::kPersistent);
  request.data.reset();
  ASSERT_EQ(raw.call(wire::Op::kCreate2, request)->header.err, wire::Err::kOk);
  ASSERT_TRUE(ok(session.sync(absent, soon())));

  EXPECT_EQ(session.get(empty, soon())->data, "");
  EXPECT_EQ(session.get(absent, soon())->data, "");
}

TEST_P(SessionTest, CarriesDataUpToTheLimitAndRefusesMore) {
  Session session = open();
  const std::string path = fresh_path();
  const std::string large(1'048'575 - 200, 'x');

  ASSERT_TRUE(ok(session.create(path, large, {}, soon())));
  EXPECT_EQ(session.get(path, soon())->data, large);
  EXPECT_TRUE(
      fails_with(session.set(path, std::string(1'048'576, 'y'), soon()), Code::kTooLarge, path));
  EXPECT_EQ(session.get(path, soon())->stat.version, 0);
}

TEST_P(SessionTest, SurvivesTheServersOwnRefusalOfALargeRequest) {
  // Apache ends the connection of a client that sends too much. The request is not known to have
  // failed, and the session goes on.
  SessionOptions options = quick();
  options.max_request_bytes = 8U << 20U;
  Session session = open(options);
  const std::string path = fresh_path();
  make_node(session, path, "small");

  const auto refused = session.set(path, std::string(3U << 20U, 'z'), soon());

  ASSERT_TRUE(fails_with(refused, Code::kConnectionLoss, path));
  EXPECT_EQ(refused.error().effect(), Effect::kUnknown);
  const auto after = session.get(path, soon());
  ASSERT_TRUE(ok(after));
  EXPECT_EQ(after->data, "small");
}

TEST_P(SessionTest, AnswersEveryAsynchronousOperationOnceAndInOrder) {
  Session session = open();
  const std::string path = fresh_path();
  Recorder<std::string> order;
  const auto told = [&](std::string what) {
    return [order, what](const auto& result) { order.add(what + (result ? "" : "!")); };
  };

  session.async(Create{path, "x"}, soon(), told("create"));
  session.async(Set{path, "y"}, soon(), told("set"));
  session.async(Get{path}, soon(), told("get"));
  session.async(Exists{path + "/no"}, soon(), told("exists"));
  session.async(Children{path}, soon(), told("children"));
  session.async(Get{path + "/no"}, soon(), told("get"));
  session.async(GetAcl{path}, soon(), told("acl"));
  session.async(SetAcl{path, open_acl()}, soon(), told("setacl"));
  session.async(Sync{path}, soon(), told("sync"));
  session.async(Check{path}, soon(), told("check"));
  session.async(Multi{{Check{path}}}, soon(), told("multi"));
  session.async(MultiRead{{Get{path}}}, soon(), told("multiread"));
  session.async(Ephemerals{}, soon(), told("ephemerals"));
  session.async(ChildrenCount{path}, soon(), told("count"));
  session.async(WhoAmI{}, soon(), told("who"));
  session.async(AddWatch{path, WatchMode::kPersistent, [](const WatchEvent&) {}}, soon(),
                told("watch"));
  session.async(RemoveWatches{path}, soon(), told("unwatch"));
  session.async(Remove{path}, soon(), told("remove"));
  session.async(Get{"no slash"}, soon(), told("bad"));

  ASSERT_TRUE(order.wait_for(19));
  std::vector<std::string> all = order.all();
  std::erase(all, "bad!");
  EXPECT_THAT(all, ElementsAre("create", "set", "get", "exists", "children", "get!", "acl",
                               "setacl", "sync", "check", "multi", "multiread", "ephemerals",
                               "count", "who", "watch", "unwatch", "remove"));
}

TEST_P(SessionTest, PipelinesThousandsOfRequestsInOrder) {
  Session session = open();
  const std::string path = fresh_path();
  make_node(session, path);
  Recorder<std::int32_t> versions;

  constexpr int kCount = 3'000;
  for (int i = 0; i < kCount; ++i) {
    session.async(Set{path, std::to_string(i)}, soon(), [versions](const Result<Stat>& stat) {
      versions.add(stat ? stat->version : -1);
    });
  }

  ASSERT_TRUE(versions.wait_for(kCount, deadline_in(60s)));
  const std::vector<std::int32_t> all = versions.all();
  EXPECT_EQ(all.front(), 1);
  EXPECT_EQ(all.back(), kCount);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Standalone, SessionTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, SessionTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, SessionTest, testing::Values(ServiceKind::kEmbedded));

}  // namespace latchkey::test_support
