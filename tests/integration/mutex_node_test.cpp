#include <unistd.h>

#include <regex>

#include <gmock/gmock.h>

#include "integration/mutex_fixture.hpp"
#include "queue/owner.hpp"

/// The nodes a lock makes, and those of others it finds beside its own.
namespace latchkey::test_support {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using wire::Op;

/// Behind a sync, so that the answer is not an old one.
std::int64_t owner_of(Session& session, const std::string& path) {
  static_cast<void>(session.sync(path, soon()));
  const auto stat = session.exists(path, soon());
  if (!stat || !*stat) throw std::runtime_error("no " + path);
  return (*stat)->ephemeral_owner;
}

/// Behind a sync, so that the answer is not an old one.
bool is_there(Session& session, const std::string& path) {
  static_cast<void>(session.sync(path, soon()));
  const auto stat = session.exists(path, soon());
  return !stat || stat->has_value();
}

TEST_P(MutexTest, QueueEntriesAreNamedAsCurators) {
  Session session = open();
  const Lease lease = take(session, directory);
  const Lease named = take(session, directory, {.name = "jobs"});

  const std::string prefix = "/_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
  const auto name = [&](const Lease& one) { return one.node().substr(directory.size()); };
  EXPECT_TRUE(std::regex_match(name(lease), std::regex(prefix + "-lock-0000000000")));
  EXPECT_TRUE(std::regex_match(name(named), std::regex(prefix + "-jobs_lock_0000000001")));
  EXPECT_EQ(owner_of(witness.session(), lease.node()), session.id());
}

TEST_P(MutexTest, TheTokenIsTheTransactionThatMadeTheNode) {
  const Lease lease = take(open(), directory);

  const auto stat = witness.synced().exists(lease.node(), soon());
  ASSERT_TRUE(ok(stat));
  EXPECT_EQ(lease.token().zxid(), (*stat)->czxid);
  EXPECT_EQ(to_string(lease.token()), std::to_string((*stat)->czxid));
}

TEST_P(MutexTest, TheNodeTellsWhoHoldsAndWhy) {
  const Lease lease = take(open(), directory, {.reason = "nightly run\nof 50 %"});

  const auto node = witness.synced().get(lease.node(), soon());
  ASSERT_TRUE(ok(node));
  const auto owner = queue::parse_owner(node->data);
  ASSERT_TRUE(owner.has_value()) << node->data;
  EXPECT_EQ(owner->pid, ::getpid());
  EXPECT_EQ(owner->reason, "nightly run\nof 50 %");
  EXPECT_EQ(owner->program, ::program_invocation_short_name);
  EXPECT_FALSE(owner->host.empty());
  EXPECT_THAT(owner->since, MatchesRegex("....-..-..T..:..:..Z"));
}

TEST_P(MutexTest, MissingParentsAreMadeLevelByLevelAsContainers) {
  Proxied one = open_proxied();
  const std::string deep = directory + "/b/c";
  take(one.session, deep).release();

  // Up to the first level whose parent is there, and down again.
  EXPECT_EQ(count(*one.proxy, Op::kCreateContainer), 5U);
  EXPECT_EQ(count(*one.proxy, Op::kCreate2), 2U);
  // All three are reaped in the end.
  EXPECT_TRUE(eventually([&] { return !is_there(witness.session(), directory); }));
}

TEST_P(MutexTest, ParentsArePersistentIfTheOptionsSaySo) {
  const std::string deep = directory + "/b";
  Proxied one = open_proxied();
  take(one.session, deep, {.parent = Parent::kPersistent}).release();

  EXPECT_EQ(count(*one.proxy, Op::kCreateContainer), 0U);
  EXPECT_EQ(count(*one.proxy, Op::kCreate2), 5U);
  EXPECT_TRUE(is_there(witness.session(), deep));
}

TEST_P(MutexTest, H40_AnEmptyDirectoryIsReapedAndMadeAgainWithGrowingTokens) {
  Session session = open();
  Lease lease = take(session, directory);
  const Token before = lease.token();
  lease.release();

  ASSERT_TRUE(eventually([&] { return !is_there(witness.session(), directory); }));
  const Lease again = take(session, directory);

  EXPECT_GT(again.token(), before);
  EXPECT_THAT(again.node(), HasSubstr("-lock-0000000000"));
}

TEST_P(MutexTest, H16_H17_TokensGrowAlthoughTheDirectoryIsMadeAnew) {
  Session session = open();
  FencedResource resource;
  const MutexOptions persistent{.parent = Parent::kPersistent};
  Lease old = take(session, directory, persistent);
  ASSERT_TRUE(resource.write(old.token()));
  const Token first = old.token();

  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(ok(old.release(soon())));
    ASSERT_TRUE(ok(witness.session().remove(directory, soon())));
    old = take(session, directory, persistent);
    EXPECT_THAT(old.node(), HasSubstr("-lock-0000000000"));
    EXPECT_TRUE(resource.write(old.token()));
    EXPECT_TRUE(resource.write(old.token())) << "H17: the same hold may write twice";
  }
  EXPECT_FALSE(resource.write(first));
}

TEST_P(MutexTest, H39_ADirectoryTakenAwayAgainAndAgainIsMadeAgain) {
  Proxied one = open_proxied();
  std::optional<Waiter> waiter;
  constexpr int kRounds = 4;
  const int stop = one.proxy->stop_at_reply({Op::kCreateContainer, 1, kRounds});
  waiter.emplace(mutex(one.session));

  for (int round = 1; round <= kRounds; ++round) {
    ASSERT_TRUE(one.proxy->log().wait_until_fired(stop, round, soon()));
    ASSERT_TRUE(ok(witness.session().sync(directory, soon())));
    ASSERT_TRUE(ok(witness.session().remove(directory, soon())));
    one.proxy->release();
  }

  ASSERT_TRUE(waiter->holds());
  EXPECT_EQ(count(*one.proxy, Op::kCreateContainer), kRounds + 1U);
}

TEST_P(MutexTest, H37_ForeignChildrenAreIgnored) {
  Session& by_hand = witness.session();
  make_node(by_hand, directory);
  for (const char* stray : {"note", "lock", "-lock-", "-lock-12", "-lock-00000000001", "0000000000",
                            "task_0000000000", "_c_-lock-000000000x", "nested"}) {
    make_node(by_hand, directory + "/" + stray);
  }
  make_node(by_hand, directory + "/nested/lock-0000000000");

  Session session = open();
  auto lease = mutex(session).try_lock();

  EXPECT_TRUE(ok(lease));
  // A lock below a lock's directory is another lock.
  EXPECT_TRUE(ok(Mutex(session, directory + "/nested/deeper").try_lock()));
}

TEST_P(MutexTest, H37_EveryDialectIsRespectedWhenItIsAhead) {
  Session& by_hand = witness.session();
  Session session = open();
  make_node(by_hand, directory);
  for (const char* prefix :
       {"7d1f3c5a9b8e4f60a1b2c3d4e5f60718__lock__", "7d1f3c5a9b8e4f60a1b2c3d4e5f60718-lock-",
        "7d1f3c5a9b8e4f60a1b2c3d4e5f60718__rlock__", "_c_7d1f3c5a9b8e4f60a1b2c3d4e5f60718-lock-",
        "_c_7d1f3c5a-9b8e-4f60-a1b2-c3d4e5f60718-lock-", "x-0100a5f3b2c00010-",
        "x-72057594037927936-", "LOCKNODE", "n_", "lock-", "seq-", "write-lock-", "db1-W-",
        "db1-R-", "7d1f3c5a-9b8e-4f60-a1b2-c3d4e5f60718_",
        "_c_7d1f3c5a-9b8e-4f60-a1b2-c3d4e5f60718-__WRIT__",
        "_c_7d1f3c5a-9b8e-4f60-a1b2-c3d4e5f60718-__READ__"}) {
    const auto ahead =
        by_hand.create(directory + "/" + prefix, {},
                       {.lifetime = Lifetime::kEphemeral, .naming = Naming::kSequential}, soon());
    ASSERT_TRUE(ok(ahead));

    EXPECT_TRUE(fails_with(mutex(session).try_lock(), Code::kBusy)) << prefix;
    Waiter waiter(mutex(session));
    ASSERT_TRUE(witness.queue_reaches(directory, 2)) << prefix;
    ASSERT_TRUE(eventually([&] { return witness.watches_below(ahead->path) == 1; })) << prefix;
    EXPECT_FALSE(waiter.has_answer()) << prefix;
    ASSERT_TRUE(ok(by_hand.remove(ahead->path, soon())));
    ASSERT_TRUE(waiter.holds()) << prefix;
  }
}

TEST_P(MutexTest, AnExtraTagMakesAnotherProgramsEntriesCount) {
  Session session = open();
  make_node(witness.session(), directory);
  const auto ahead = witness.session().create(
      directory + "/ticket:", {}, {.lifetime = Lifetime::kEphemeral, .naming = Naming::kSequential},
      soon());
  ASSERT_TRUE(ok(ahead));

  EXPECT_TRUE(ok(mutex(session).try_lock()));
  Mutex knowing(session, directory, {.extra_tags = {"ticket:"}});
  EXPECT_TRUE(fails_with(knowing.try_lock(), Code::kBusy));
}

TEST_P(MutexTest, TheLockLivesBelowTheSessionsRoot) {
  make_node(witness.session(), directory);
  Session session = open_session(service().connect_string() + directory);

  const Lease lease = take(session, "/locks/a");

  EXPECT_THAT(lease.node(), HasSubstr("/locks/a/_c_"));
  EXPECT_EQ(owner_of(witness.session(), directory + lease.node()), session.id());
  EXPECT_EQ(witness.queue(directory + "/locks/a").size(), 1U);
}

TEST_P(MutexTest, AMissingRootIsAnErrorAndIsNotMade) {
  Session session = open_session(service().connect_string() + directory);

  EXPECT_TRUE(fails_with(Mutex(session, "/a").lock(soon()), Code::kNoNode, "root"));
  EXPECT_FALSE(is_there(witness.session(), directory));
}

TEST_P(MutexTest, NodesCarryTheAclOfTheOptions) {
  SessionOptions options = patient();
  options.credentials.push_back({"digest", "owner:secret"});
  Session owner = open(options);
  const Lease lease = take(owner, directory, {.acl = creator_acl()});

  const auto acl = owner.call(GetAcl{lease.node()}, soon());
  ASSERT_TRUE(ok(acl));
  ASSERT_EQ(acl->acl.size(), 1U);
  EXPECT_EQ(acl->acl[0].scheme, "digest");
  EXPECT_TRUE(fails_with(witness.synced().get(lease.node(), soon()), Code::kNotAuthorized));
  Session stranger = open();
  EXPECT_TRUE(fails_with(mutex(stranger).lock(soon()), Code::kNotAuthorized, directory));
}

TEST_P(MutexTest, LevelsAboveTheLockStayOpenToEveryone) {
  SessionOptions options = patient();
  options.credentials.push_back({"digest", "owner:secret"});
  Session owner = open(options);
  const Lease lease = take(owner, directory + "/mine", {.acl = creator_acl()});

  Session stranger = open();
  EXPECT_TRUE(ok(Mutex(stranger, directory + "/other").lock(soon())));
}

TEST_P(MutexTest, ANodeThatMayNotBeReadIsWaitedForAllTheSame) {
  SessionOptions options = patient();
  options.credentials.push_back({"digest", "owner:secret"});
  make_node(witness.session(), directory);
  Lease lease = take(open(options), directory, {.acl = creator_acl()});
  Proxied one = open_proxied();

  Waiter waiter(mutex(one.session));
  ASSERT_TRUE(one.proxy->log().wait_for(replies_to(Op::kGetChildren), 3, soon()));
  EXPECT_FALSE(waiter.has_answer());
  lease.release();

  EXPECT_TRUE(waiter.holds());
}

TEST_P(MutexTest, ADirectoryThatCannotHaveChildrenGivesAnError) {
  make_node(witness.session(), directory, {}, Lifetime::kEphemeral);
  Session session = open();

  EXPECT_TRUE(fails_with(mutex(session).lock(soon()), Code::kNoChildrenForEphemerals, directory));
}

TEST_P(MutexTest, H05_ANodeDeletedByAnotherHandEndsTheWait) {
  Session session = open();
  Lease holder = take(open(), directory);
  Waiter waiter(mutex(session));
  ASSERT_TRUE(eventually([&] { return witness.watches_below(directory) >= 2; }));

  const std::string node = witness.queue(directory).at(1);
  ASSERT_TRUE(ok(witness.session().remove(directory + "/" + node, soon())));

  ASSERT_FALSE(waiter.holds());
  EXPECT_TRUE(fails_with(waiter.answer(), Code::kLost, node));
  holder.release();
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(MutexTest, H05_AListWithoutOurNodeNeverGrants) {
  Proxied one = open_proxied();
  make_node(witness.session(), directory);
  // Created; before the list is taken the node is gone again.
  const int stop = one.proxy->stop_at_request(Op::kGetChildren);
  Waiter waiter(mutex(one.session));
  ASSERT_TRUE(one.proxy->wait_until_fired(stop));
  ASSERT_TRUE(witness.queue_reaches(directory, 1));
  ASSERT_TRUE(
      ok(witness.session().remove(directory + "/" + witness.queue(directory).at(0), soon())));
  // A list may be old, and then it may show the node; this is about one that does not.
  Session beside = open_session(service().follower());
  ASSERT_TRUE(ok(beside.sync(directory, soon())));

  one.proxy->release();

  ASSERT_FALSE(waiter.holds());
  EXPECT_TRUE(fails_with(waiter.answer(), Code::kLost));
  EXPECT_TRUE(witness.is_quiet(directory));
}

}  // namespace
}  // namespace latchkey::test_support
