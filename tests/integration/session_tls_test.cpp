#include <algorithm>
#include <fstream>
#include <memory>

#include <gmock/gmock.h>

#include "integration/own_server.hpp"
#include "support/temp_dir.hpp"

/// TLS from the client's side; what the server does with its own is ServerTlsTest.
namespace latchkey::test_support {
namespace {

/// One server with a TLS port; client certificates are checked if they are shown.
class SessionTls : public testing::TestWithParam<ServiceKind> {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    files_ = make_tls_files(folder_->path());
  }
  static void TearDownTestSuite() {
    server_.reset();
    folder_.reset();
  }
  void SetUp() override {
    if (!server_) server_ = start(files_.server, ClientAuth::kWant);
  }

  static std::unique_ptr<OwnServer> start(const Identity& identity, ClientAuth clients) {
    auto server = own_server(GetParam(), OwnTls{identity, files_.ca, clients});
    server->start();
    // A new server takes its time over the first handshake, and most tests have a few seconds.
    SessionOptions options = showing(files_.client);
    options.tls.verify = TlsOptions::Verify::kChainOnly;
    static_cast<void>(open_session(server->connect_string(), options));
    return server;
  }

  /// With a time-out that no try reaches: what is told in the end is why the last one failed.
  static SessionOptions trusting(const std::filesystem::path& ca) {
    SessionOptions options = quick(60s);
    options.tls.ca_file = ca.string();
    return options;
  }
  static SessionOptions showing(const Identity& identity) {
    SessionOptions options = trusting(files_.ca);
    options.tls.cert_file = identity.certificate.string();
    options.tls.key_file = identity.key.string();
    return options;
  }
  static std::string secure() { return server_->connect_string(); }
  static Result<Session> try_open(const std::string& connect, SessionOptions options) {
    return Session::open(connect, std::move(options), deadline_in(5s));
  }

  static inline std::unique_ptr<TempDir> folder_;
  static inline TlsFiles files_;
  static inline std::unique_ptr<OwnServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Standalone, SessionTls, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Embedded, SessionTls, testing::Values(ServiceKind::kEmbedded));

TEST_P(SessionTls, TrustsTheRightCertificateByAddressAndByName) {
  const std::string port = secure().substr(secure().rfind(':'));

  for (const std::string& connect : {secure(), "localhost" + port}) {
    auto session = Session::open(connect, trusting(files_.ca), soon());
    ASSERT_TRUE(ok(session));
    EXPECT_TRUE(ok(session->get("/", soon())));
    EXPECT_TRUE(ok(session->close(soon())));
  }
}

TEST_P(SessionTls, RefusesAServerSignedByAnotherAuthority) {
  const auto refused = try_open(secure(), trusting(files_.other_ca));

  EXPECT_TRUE(fails_with(refused, Code::kTls, secure()));
  EXPECT_TRUE(fails_with(refused, Code::kTls, "certificate verify failed"));
}

TEST_P(SessionTls, RefusesAServerTheSystemDoesNotTrust) {
  SessionOptions options = quick(60s);
  options.tls.enabled = true;

  EXPECT_TRUE(fails_with(try_open(secure(), options), Code::kTls, secure()));
}

TEST_P(SessionTls, RefusesAServerOfAnotherNameUnlessOnlyTheChainIsAsked) {
  const auto server = start(files_.wrong_name, ClientAuth::kNone);
  const std::string connect = server->connect_string();
  SessionOptions options = trusting(files_.ca);

  const auto by_address = try_open(connect, options);
  EXPECT_TRUE(fails_with(by_address, Code::kTls, "IP address mismatch"));
  const auto by_name = try_open("localhost" + connect.substr(connect.rfind(':')), options);
  EXPECT_TRUE(fails_with(by_name, Code::kTls, "ostname mismatch"));

  options.tls.verify = TlsOptions::Verify::kChainOnly;
  EXPECT_TRUE(ok(Session::open(connect, options, soon())));
}

TEST_P(SessionTls, ShowsItsCertificateAndIsKnownByIt) {
  auto session = Session::open(secure(), showing(files_.client), soon());
  ASSERT_TRUE(ok(session));

  const auto identities = session->call(WhoAmI{}, soon());

  ASSERT_TRUE(ok(identities));
  EXPECT_TRUE(std::any_of(identities->begin(), identities->end(), [](const auto& one) {
    return one.scheme == "x509" && one.user.find("CN=client") != std::string::npos;
  }));
}

TEST_P(SessionTls, AServerThatInsistsRefusesStrangersAndTheNameless) {
  const auto server = start(files_.server, ClientAuth::kNeed);
  const std::string connect = server->connect_string();

  EXPECT_TRUE(ok(Session::open(connect, showing(files_.client), soon())));
  const auto nameless = try_open(connect, trusting(files_.ca));
  EXPECT_TRUE(fails_with(nameless, Code::kTls, connect));
  const auto stranger = try_open(connect, showing(files_.stranger));
  EXPECT_TRUE(fails_with(stranger, Code::kTls, connect));
}

TEST_P(SessionTls, NamesTheFileItCannotUse) {
  const std::string missing = (folder_->path() / "missing.pem").string();
  const std::string garbage = (folder_->path() / "garbage.pem").string();
  std::ofstream(garbage) << "-----BEGIN CERTIFICATE-----\nnonsense\n";
  const auto expect_refused = [&](void (*spoil)(TlsOptions&, const std::string&),
                                  const std::string& file) {
    SessionOptions options = showing(files_.client);
    spoil(options.tls, file);
    EXPECT_TRUE(fails_with(Session::start(secure(), options), Code::kTls, file));
  };

  for (const std::string& file : {missing, garbage}) {
    expect_refused([](TlsOptions& tls, const std::string& bad) { tls.ca_file = bad; }, file);
    expect_refused([](TlsOptions& tls, const std::string& bad) { tls.cert_file = bad; }, file);
    expect_refused([](TlsOptions& tls, const std::string& bad) { tls.key_file = bad; }, file);
  }
  // A key that belongs to another certificate.
  expect_refused([](TlsOptions& tls, const std::string& bad) { tls.key_file = bad; },
                 files_.stranger.key.string());
  // A key with a pass phrase: nobody is asked for it.
  const std::string locked = (folder_->path() / "locked.pem").string();
  std::ofstream(locked) << "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
                           "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgopKCEcGLbtgICCAAw\n"
                           "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEENa4fhR5V+/KyJvt1ntkFSoEgZAK\n"
                           "ztj9Z5+VX9pWFZ3vvRe9DStbF4vgGDMMzfrnKX/R+NdwnD2jZxvHcoke/XJV3/vY\n"
                           "GQZvXPTgYDWeuwJfw+KRTiFeEFbDrr93SigxOnHSSfj4oNxQIqtfaa3aAetFIZBk\n"
                           "X/00M7FKq5AfcGENlhjNx2mECRztv+/2Fo6K5wm6cv8BLwMk8r/9VvxiF0v6o2s=\n"
                           "-----END ENCRYPTED PRIVATE KEY-----\n";
  expect_refused([](TlsOptions& tls, const std::string& bad) { tls.key_file = bad; }, locked);
  SessionOptions half = trusting(files_.ca);
  half.tls.cert_file = files_.client.certificate.string();
  EXPECT_TRUE(fails_with(Session::start(secure(), half), Code::kTls, "key_file"));
}

TEST_P(SessionTls, AUnixSocketHasNoHostNameToCheck) {
  const std::string socket = "unix:" + (folder_->path() / "zk").string();
  const FaultProxy proxy(secure(), {.listen = socket, .framing = Framing::kOpaque});
  SessionOptions options = trusting(files_.ca);

  EXPECT_TRUE(fails_with(Session::start(socket, options), Code::kInvalidOption, socket));

  options.tls.verify = TlsOptions::Verify::kChainOnly;
  EXPECT_TRUE(ok(Session::open(socket, options, soon())));
}

TEST_P(SessionTls, APlainClientAtASecurePortFailsInTime) {
  const auto refused = try_open(secure(), quick());

  EXPECT_TRUE(fails_with(refused, Code::kUnreachable, secure()));
}

TEST_P(SessionTls, ASecureClientAtAPlainPortFailsInTime) {
  const std::string plain = shared_service(GetParam()).connect_string();

  EXPECT_TRUE(fails_with(try_open(plain, trusting(files_.ca)), Code::kTls, plain));
}

TEST_P(SessionTls, ASilentPeerInTheHandshakeIsGivenUp) {
  FaultProxy proxy(secure(), {.framing = Framing::kOpaque});
  proxy.hold(Hold::kBoth);

  EXPECT_FALSE(try_open(proxy.connect_string(), trusting(files_.ca)));
  proxy.release();
  EXPECT_TRUE(eventually([&] { return proxy.connections_open() == 0; }));
}

TEST_P(SessionTls, CarriesPipelinedRequestsLargeDataAndWatches) {
  Session session = open_session(secure(), trusting(files_.ca));
  const std::string path = fresh_path();
  const std::string large(1'000'000, 'x');
  make_node(session, path, large);
  Events events;
  Recorder<bool> answers;

  EXPECT_EQ(session.get(path, soon())->data, large);
  ASSERT_TRUE(ok(session.exists(path + "-last", soon(), note(events))));
  for (int i = 0; i < 2'000; ++i) {
    session.async(Create{path + "/" + std::to_string(i), std::string(100, 'y')}, soon(),
                  [answers](const auto& made) { answers.add(bool(made)); });
  }
  make_node(session, path + "-last");

  ASSERT_TRUE(answers.wait_for(2'000));
  const std::vector<bool> all = answers.all();
  EXPECT_EQ(std::count(all.begin(), all.end(), true), 2'000);
  EXPECT_EQ(session.children(path, soon())->names.size(), 2'000U);
  ASSERT_TRUE(events.wait_for(1));
}

TEST_P(SessionTls, ReconnectsAndKeepsItsSession) {
  FaultProxy proxy(secure(), {.framing = Framing::kOpaque});
  Session session = open_session(proxy.connect_string(), trusting(files_.ca));
  const std::string path = fresh_path();
  make_node(session, path, "mine", Lifetime::kEphemeral);
  Events events;
  ASSERT_TRUE(ok(session.get(path, soon(), note(events))));

  for (int i = 0; i < 6; ++i) {
    if (i % 2 == 0) proxy.cut_all();
    if (i % 2 == 1) proxy.reset_all();
    const auto node = session.get(path, soon());
    ASSERT_TRUE(ok(node));
    EXPECT_EQ(node->stat.ephemeral_owner, session.id());
  }

  ASSERT_TRUE(ok(session.set(path, "x", soon())));
  ASSERT_TRUE(events.wait_for(1));
  EXPECT_EQ(events.last(), "data changed " + path);
}

}  // namespace
}  // namespace latchkey::test_support
