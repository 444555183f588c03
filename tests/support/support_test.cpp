#include <csignal>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/shared_servers.hpp"
#include "support/sockets.hpp"
#include "support/tls_files.hpp"

namespace latchkey::test_support {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::CreateMode;
using wire::Err;
using wire::Op;

std::optional<Err> create(RawClient& client, const std::string& path,
                          CreateMode mode = CreateMode::kPersistent) {
  const auto reply = client.call(Op::kCreate2, create_request(path, mode));
  if (!reply) return std::nullopt;
  return reply->header.err;
}

std::optional<Err> exists(RawClient& client, const std::string& path) {
  const auto reply = client.call(Op::kExists, wire::PathWatch{path, false});
  if (!reply) return std::nullopt;
  return reply->header.err;
}

TEST(FreePort, IsNeverGivenTwice) {
  const std::uint16_t first = free_port();
  const std::uint16_t second = free_port();

  EXPECT_NE(first, second);
  EXPECT_FALSE(connect_to(Endpoint(loopback(first)), deadline_in(seconds(1))));
}

TEST(TempDir, IsGoneWithItsContents) {
  std::filesystem::path path;
  {
    const TempDir folder;
    path = folder.path();
    std::ofstream(path / "file") << "text";
    ASSERT_TRUE(std::filesystem::exists(path / "file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Child, TalksAndReportsHowItEnded) {
  Child child({"sh", "-c", "read word; echo got $word; echo more; exit 3"});

  ASSERT_TRUE(child.write("hello\n"));

  EXPECT_EQ(child.next_line(deadline_in(seconds(20))), "got hello");
  EXPECT_EQ(child.wait_for_line("mor", deadline_in(seconds(20))), "more");
  EXPECT_EQ(child.wait(deadline_in(seconds(20))), (ExitStatus{3, 0}));
  EXPECT_EQ(child.next_line(deadline_in(seconds(20))), std::nullopt);
}

TEST(Child, OutlivesTheThreadThatStartedItButNotItsOwner) {
  std::unique_ptr<Child> child;
  std::thread([&] { child = std::make_unique<Child>(std::vector<std::string>{"cat"}); }).join();

  EXPECT_EQ(child->wait(deadline_in(milliseconds(200))), std::nullopt);
  ASSERT_TRUE(child->write("still here\n"));
  EXPECT_EQ(child->next_line(deadline_in(seconds(20))), "still here");

  const pid_t pid = child->pid();
  child.reset();
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Child, SaysWhenTheProgramDoesNotExist) {
  EXPECT_THROW(Child({"/nowhere/at/all"}), std::system_error);
}

TEST(ApacheServerTest, StartsAnswersAndKeepsItsDataOverARestart) {
  ApacheServer server;
  server.start();
  EXPECT_EQ(server.word("ruok"), "imok");
  EXPECT_TRUE(eventually([&] { return server.mode() == ApacheMode::kStandalone; }));
  RawClient client(server.connect_string());
  ASSERT_TRUE(client.connect(30'000));
  ASSERT_EQ(create(client, "/kept"), Err::kOk);

  server.kill();
  EXPECT_EQ(server.mode(), ApacheMode::kDown);
  server.restart();

  ASSERT_TRUE(client.connect(30'000));
  EXPECT_EQ(exists(client, "/kept"), Err::kOk);

  server.wipe();
  server.start();
  ASSERT_TRUE(client.connect(30'000));
  EXPECT_EQ(exists(client, "/kept"), Err::kNoNode);
}

TEST(ApacheServerTest, GrantsShortSessionsAndExpiresThemInTime) {
  ApacheServer& server = shared_server();
  RawClient client(server.connect_string());
  RawClient witness(server.connect_string());
  const std::string path = fresh_path();

  const auto shortest = witness.connect(500);
  ASSERT_TRUE(shortest);
  EXPECT_EQ(shortest->timeout_ms, 500);
  // Not so short that it is over before its node is there.
  const auto session = client.connect(8'000);
  ASSERT_TRUE(session);
  EXPECT_EQ(session->timeout_ms, 8'000);
  ASSERT_EQ(create(client, path, CreateMode::kEphemeral), Err::kOk);
  client.close();

  ASSERT_TRUE(witness.connect(30'000));
  EXPECT_TRUE(eventually([&] { return exists(witness, path) == Err::kNoNode; }));
}

TEST(ApacheServerTest, SweepsContainersAndTtlNodesSoon) {
  RawClient client(shared_server().connect_string());
  ASSERT_TRUE(client.connect(30'000));
  const std::string container = fresh_path();
  const auto made =
      client.call(Op::kCreateContainer, create_request(container, CreateMode::kContainer));
  ASSERT_TRUE(made && made->header.err == Err::kOk);
  ASSERT_EQ(create(client, container + "/child"), Err::kOk);
  ASSERT_TRUE(client.call(Op::kDelete, wire::PathVersion{container + "/child", -1}));
  const std::string brief = fresh_path();
  wire::CreateTtl ttl;
  const wire::Create plain = create_request(brief, CreateMode::kTtl);
  ttl.path = brief;
  ttl.data = plain.data;
  ttl.acl = plain.acl;
  ttl.ttl_ms = 50;
  const auto made_ttl = client.call(Op::kCreateTtl, ttl);
  ASSERT_TRUE(made_ttl && made_ttl->header.err == Err::kOk);

  EXPECT_TRUE(eventually([&] { return exists(client, container) == Err::kNoNode; }));
  EXPECT_TRUE(eventually([&] { return exists(client, brief) == Err::kNoNode; }));
}

TEST(ApacheServerTest, StandsStillWhilePausedAndIsMendedForTheNextTest) {
  ApacheServer& server = shared_server();

  server.pause();
  EXPECT_EQ(server.word("ruok", deadline_in(milliseconds(300))), "");
  EXPECT_EQ(shared_server().word("ruok"), "imok");

  server.kill();
  EXPECT_EQ(shared_server().word("ruok"), "imok");
}

TEST(ApacheServerTest, ListensOnIpv6) {
  ApacheOptions options;
  options.host = "::1";
  ApacheServer server(options);
  server.start();

  EXPECT_EQ(server.connect_string().substr(0, 6), "[::1]:");
  EXPECT_EQ(server.word("ruok"), "imok");
}

TEST(ApacheServerTest, SpeaksTlsOnItsSecurePort) {
  const TempDir folder;
  const TlsFiles files = make_tls_files(folder.path());
  ApacheOptions options;
  options.tls = ApacheTls{files.server.both, files.ca, ClientAuth::kNeed};
  ApacheServer server(options);
  server.start();
  const auto handshake = [&](const Identity& client, const std::filesystem::path& ca) {
    Child program({"openssl", "s_client", "-brief", "-connect", server.secure_connect_string(),
                   "-verify_return_error", "-verify_ip", "127.0.0.1", "-CAfile", ca, "-cert",
                   client.certificate, "-key", client.key},
                  {{}, folder.path() / "s_client.log", {}});
    program.close_stdin();
    return program.wait(deadline_in(seconds(20))) == ExitStatus{0, 0};
  };

  EXPECT_TRUE(handshake(files.client, files.ca));
  EXPECT_FALSE(handshake(files.client, files.other_ca));
  EXPECT_FALSE(handshake(files.stranger, files.ca));
}

TEST(EnsembleTest, ElectsAndSurvivesTheDeathOfItsLeader) {
  Ensemble& ensemble = shared_ensemble();
  const std::size_t first = ensemble.leader();
  EXPECT_EQ(ensemble.followers().size(), 2U);
  RawClient client(ensemble.connect_string(ensemble.followers().at(0)));
  const std::string path = fresh_path();
  ASSERT_TRUE(client.connect(30'000));
  ASSERT_EQ(create(client, path), Err::kOk);

  ensemble.member(first).kill();
  ensemble.wait_for_quorum();

  EXPECT_NE(ensemble.leader(), first);
  EXPECT_EQ(ensemble.followers().size(), 1U);
  ensemble.start();
  RawClient returned(ensemble.connect_string(first));
  ASSERT_TRUE(returned.connect(30'000));
  ASSERT_TRUE(returned.call(Op::kSync, wire::PathOnly{path}));
  EXPECT_EQ(exists(returned, path), Err::kOk);
}

TEST(EnsembleTest, RestartsOneMemberAtATime) {
  Ensemble& ensemble = shared_ensemble();

  ensemble.rolling_restart();

  EXPECT_EQ(ensemble.followers().size(), 2U);
}

TEST(EnsembleTest, AFollowerCutFromTheLeaderGoesOnServingReads) {
  Ensemble& ensemble = shared_ensemble();
  const std::size_t cut = ensemble.followers().at(0);
  const std::size_t other = ensemble.followers().at(1);
  RawClient behind(ensemble.connect_string(cut));
  RawClient unheard(ensemble.connect_string(cut), seconds(3));
  RawClient current(ensemble.connect_string(other));
  const std::string path = fresh_path();
  ASSERT_TRUE(behind.connect(30'000));
  ASSERT_TRUE(eventually([&] { return unheard.connect(30'000).has_value(); }));
  ASSERT_TRUE(current.connect(30'000));

  ensemble.cut_from_leader(cut);
  ASSERT_EQ(create(current, path), Err::kOk);

  EXPECT_EQ(exists(behind, path), Err::kNoNode);
  EXPECT_EQ(create(unheard, path + "-b"), std::nullopt);
  ensemble.heal(cut);
  ensemble.wait_for_quorum();
  ASSERT_TRUE(eventually([&] { return unheard.connect(30'000).has_value(); }));
  EXPECT_TRUE(eventually([&] { return exists(unheard, path) == Err::kOk; }));
}

}  // namespace
}  // namespace latchkey::test_support
