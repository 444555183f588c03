#include "locate.hpp"

#include <sys/un.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exit_code.hpp"

namespace latchkey::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

Environment at_home() {
  Environment environment;
  environment.home = "/home/ann";
  environment.user = 1'000;
  return environment;
}

TEST(Locate, TheCommandLineCountsMoreThanTheEnvironmentAndThatMoreThanTheFile) {
  ServiceOptions typed;
  ServiceOptions file;
  Environment environment = at_home();
  file.config_file = "/etc/latchkey.conf";

  EXPECT_TRUE(locate(typed, environment, file)->own);
  file.connect = "zk3:2181";
  EXPECT_EQ(locate(typed, environment, file)->connect, "zk3:2181");
  EXPECT_EQ(locate(typed, environment, file)->source, "/etc/latchkey.conf");
  environment.connect = "zk2:2181";
  EXPECT_EQ(locate(typed, environment, file)->source, "LATCHKEY_CONNECT");
  typed.connect = "zk1:2181";
  EXPECT_EQ(locate(typed, environment, file)->connect, "zk1:2181");
  EXPECT_FALSE(locate(typed, environment, file)->own);
}

TEST(Locate, AnAddressWithASchemeIsRefusedWithWhoSaidSoAndHowToWriteIt) {
  Environment environment = at_home();
  environment.connect = "http://zk1:2181";

  const Result<Place> place = locate({}, environment, {});

  ASSERT_FALSE(place);
  EXPECT_EQ(exit_code_of(place.error().code()), 78);
  EXPECT_THAT(place.error().message(), StartsWith("LATCHKEY_CONNECT: \"http://zk1:2181\""));
  EXPECT_THAT(place.error().message(), testing::HasSubstr("leave out http://"));
}

TEST(Locate, EverySettingIsLookedUpForItself) {
  ServiceOptions typed;
  typed.connect = "zk1:2181";
  typed.timeout_ms = 4'000;
  ServiceOptions file;
  file.timeout_ms = 30'000;
  file.chroot = "/app";
  file.credentials_file = "/etc/latchkey.secret";
  file.tls.ca_file = "/etc/ca.pem";
  file.tls_any_name = true;

  const Result<Place> place = locate(typed, at_home(), file);

  EXPECT_EQ(place->timeout, std::chrono::milliseconds(4'000));
  EXPECT_EQ(place->chroot, "/app");
  EXPECT_EQ(place->credentials_file, "/etc/latchkey.secret");
  EXPECT_EQ(place->tls.ca_file, "/etc/ca.pem");
  EXPECT_EQ(place->tls.verify, TlsOptions::Verify::kChainOnly);
}

/// Without encryption a password would go out for everybody to read.
TEST(Locate, ACertificateOfAnyNameIsACertificate) {
  ServiceOptions typed;
  typed.connect = "zk1:2181";
  EXPECT_FALSE(locate(typed, at_home(), {})->tls.enabled);

  typed.tls_any_name = true;

  EXPECT_TRUE(locate(typed, at_home(), {})->tls.enabled);
}

TEST(Locate, TheFirstConfigurationFileIsTheOneThatWasNamed) {
  ServiceOptions typed;
  Environment environment = at_home();

  EXPECT_THAT(config_files(typed, environment),
              ElementsAre(ConfigFile{"/home/ann/.config/latchkey.conf", false},
                          ConfigFile{"/etc/latchkey.conf", false}));
  environment.config_home = "/srv/config";
  EXPECT_EQ(config_files(typed, environment)[0].path, "/srv/config/latchkey.conf");
  environment.config = "here.conf";
  EXPECT_THAT(config_files(typed, environment), ElementsAre(ConfigFile{"here.conf", true}));
  typed.config_file = "there.conf";
  EXPECT_THAT(config_files(typed, environment), ElementsAre(ConfigFile{"there.conf", true}));
}

TEST(Locate, OurOwnServerLivesInTheStateFolder) {
  Environment environment = at_home();
  const auto own = [&] { return *locate({}, environment, {})->own; };

  EXPECT_EQ(own().folder, "/home/ann/.local/state/latchkey");
  EXPECT_THAT(own().sockets, ElementsAre("/home/ann/.local/state/latchkey/server.sock",
                                         StartsWith("/tmp/latchkey-1000/")));
  environment.runtime_dir = "/run/user/1000";
  EXPECT_THAT(own().sockets[0], StartsWith("/run/user/1000/latchkey/"));
  environment.state_home = "/var/state";
  EXPECT_EQ(own().folder, "/var/state/latchkey");
}

TEST(Locate, TwoStateFoldersDoNotShareASocket) {
  Environment environment = at_home();
  environment.runtime_dir = "/run/user/1000";
  const std::string first = locate({}, environment, {})->own->sockets[0];
  environment.state_home = "/elsewhere";

  EXPECT_NE(locate({}, environment, {})->own->sockets[0], first);
}

TEST(Locate, ASocketsNameIsNeverTooLong) {
  Environment environment = at_home();
  environment.state_home = "/" + std::string(200, 'x');
  environment.runtime_dir = "/" + std::string(90, 'y');

  const OwnServer own = *locate({}, environment, {})->own;

  for (const std::string& socket : own.sockets) {
    EXPECT_LT(socket.size(), sizeof(sockaddr_un::sun_path)) << socket;
  }
  EXPECT_FALSE(own.sockets.empty());
}

TEST(Locate, RelativeFoldersAreIgnored) {
  Environment environment = at_home();
  environment.state_home = "state";
  environment.runtime_dir = "run";
  environment.config_home = "config";

  EXPECT_EQ(locate({}, environment, {})->own->folder, "/home/ann/.local/state/latchkey");
  EXPECT_EQ(config_files({}, environment)[0].path, "/home/ann/.config/latchkey.conf");
}

TEST(Locate, WithoutAHomeThereIsNoOwnServer) {
  const Result<Place> place = locate({}, Environment{}, {});
  ASSERT_FALSE(place);
  EXPECT_THAT(place.error().message(), testing::HasSubstr("--connect"));
  EXPECT_EQ(exit_code_of(place.error().code()), kConfiguration);
}

TEST(ExitCodes, AreThoseOfTheManual) {
  EXPECT_EQ(exit_code_of(Code::kBusy), 1);
  EXPECT_EQ(exit_code_of(Code::kTimedOut), 1);
  EXPECT_EQ(exit_code_of(Code::kInvalidPath), 64);
  EXPECT_EQ(exit_code_of(Code::kUnreachable), 69);
  EXPECT_EQ(exit_code_of(Code::kSessionLost), 75);
  EXPECT_EQ(exit_code_of(Code::kSizeMismatch), 76);
  EXPECT_EQ(exit_code_of(Code::kKindMismatch), 76);
  EXPECT_EQ(exit_code_of(Code::kAuthFailed), 77);
  EXPECT_EQ(exit_code_of(Code::kNotAuthorized), 77);
  EXPECT_EQ(exit_code_of(Code::kInvalidConnectString), 78);
}

TEST(LockName, LivesBelowLocksUnlessItIsAPath) {
  EXPECT_EQ(*lock_path("backup"), "/locks/backup");
  EXPECT_EQ(*lock_path("db/backup"), "/locks/db/backup");
  EXPECT_EQ(*lock_path("/services/x"), "/services/x");
  EXPECT_EQ(lock_name("/locks/db/backup"), "db/backup");
  EXPECT_EQ(lock_name("/services/x"), "/services/x");
}

TEST(LockName, RefusesWhatNoServerTakes) {
  for (const char* name : {"", "a//b", "a/", "..", "a/../b", "a\x01"}) {
    EXPECT_FALSE(lock_path(name)) << name;
  }
}

TEST(DefaultDataFolder, IsAServicesOwnOrOneOfTheUsers) {
  EXPECT_EQ(default_data_folder({}), "");
  Environment environment{.home = "/home/ann"};
  EXPECT_EQ(default_data_folder(environment), "/home/ann/.local/state/latchkey/serve");
  environment.state_home = "/state";
  EXPECT_EQ(default_data_folder(environment), "/state/latchkey/serve");
  environment.service_state = "/var/lib/latchkey:/var/lib/more";
  EXPECT_EQ(default_data_folder(environment), "/var/lib/latchkey");
}

TEST(DefaultSockets, LieBesideTheDataOrInAFolderOfTheUsers) {
  Environment environment{.runtime_dir = "/run/user/1000", .user = 1000};
  EXPECT_THAT(default_sockets("/var/lib/x", environment), ElementsAre("/var/lib/x/latchkey.sock"));
  EXPECT_THAT(default_sockets("", environment),
              ElementsAre("/run/user/1000/latchkey/memory.sock", "/tmp/latchkey-1000/memory.sock"));
  EXPECT_THAT(default_sockets("/" + std::string(100, 'x'), environment), IsEmpty());
  environment.runtime_dir = "relative";
  EXPECT_THAT(default_sockets("", environment), ElementsAre("/tmp/latchkey-1000/memory.sock"));
}

}  // namespace
}  // namespace latchkey::app
