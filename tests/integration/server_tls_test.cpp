#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "latchkey/operations.hpp"
#include "latchkey/server.hpp"
#include "latchkey/session.hpp"
#include "support/child.hpp"
#include "support/raw_client.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"
#include "support/tls_files.hpp"

/// Our server's TLS with our client; that the client gets on with Apache's is SessionTls.
namespace latchkey {
namespace {

using namespace std::chrono_literals;
using test_support::make_tls_files;
using test_support::RawClient;
using test_support::TempDir;
using test_support::TlsFiles;
using testing::HasSubstr;

/// A client by hand that asks for new keys, and after its handshake reads nothing.
class KeyAsker {
 public:
  explicit KeyAsker(const std::string& address)
      : fd_(connect_to(test_support::Endpoint(address), deadline_in(20s))) {
    const int small = 4'096;
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    ::SSL_set_bio(ssl_.get(), ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
  }

  /// The first step of a handshake.
  [[nodiscard]] bool say_hello() { return ::SSL_connect(ssl_.get()) != 1 && flush(); }
  [[nodiscard]] bool hears_something() const {
    return test_support::wait_ready(fd_.get(), POLLIN, deadline_in(60s));
  }
  [[nodiscard]] bool shake_hands() {
    while (::SSL_connect(ssl_.get()) != 1) {
      std::string bytes;
      if (!flush() || !test_support::wait_ready(fd_.get(), POLLIN, deadline_in(20s))) return false;
      if (test_support::receive_some(fd_.get(), bytes) != test_support::Received::kSome)
        return false;
      ::BIO_write(::SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    }
    return flush();
  }
  /// So many times. False: the server is gone.
  [[nodiscard]] bool ask(int times) {
    for (int i = 0; i < times; ++i) {
      if (::SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED) != 1) return false;
      if (::SSL_do_handshake(ssl_.get()) != 1) return false;
    }
    return flush();
  }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { ::SSL_free(ssl); }
  };

  bool flush() {
    BIO* bio = ::SSL_get_wbio(ssl_.get());
    std::string bytes(::BIO_ctrl_pending(bio), '\0');
    if (!bytes.empty()) ::BIO_read(bio, bytes.data(), static_cast<int>(bytes.size()));
    return test_support::send_all(fd_.get(), bytes, deadline_in(60s));
  }

  test_support::Fd fd_;
  std::unique_ptr<SSL_CTX, Free> context_{::SSL_CTX_new(::TLS_client_method())};
  std::unique_ptr<SSL, Free> ssl_{::SSL_new(context_.get())};
};

/// What a server's metrics say of a name.
int metric(const std::string& address, const std::string& name) {
  const test_support::Fd fd = connect_to(test_support::Endpoint(address), deadline_in(60s));
  std::string page;
  if (!test_support::send_all(fd.get(), "GET /metrics HTTP/1.0\r\n\r\n", deadline_in(60s)))
    return -1;
  while (test_support::wait_ready(fd.get(), POLLIN, deadline_in(60s)) &&
         test_support::receive_some(fd.get(), page) != test_support::Received::kEnd) {
  }
  const std::string line = "\nlatchkey_" + name + " ";
  const std::size_t at = page.find(line);
  return at == std::string::npos ? -1 : std::stoi(page.substr(at + line.size()));
}

class ServerTlsTest : public testing::Test {
 protected:
  ServerTlsTest() : files_(make_tls_files(folder_.path())) {}

  [[nodiscard]] ServerTls tls() const {
    return {.cert_file = files_.server.certificate,
            .key_file = files_.server.key,
            .client_ca_file = files_.ca};
  }
  static Result<Server> start(const ServerTls& tls) {
    ServerOptions options;
    options.tls = tls;
    return Server::start(options);
  }
  [[nodiscard]] SessionOptions trusting() const {
    SessionOptions options;
    options.tls.ca_file = files_.ca;
    return options;
  }
  [[nodiscard]] SessionOptions showing(const test_support::Identity& identity) const {
    SessionOptions options = trusting();
    options.tls.cert_file = identity.certificate;
    options.tls.key_file = identity.key;
    return options;
  }
  static std::vector<std::string> who_am_i(Session& session) {
    const Result<std::vector<Identity>> identities = session.call(WhoAmI{}, deadline_in(20s));
    std::vector<std::string> names;
    for (const Identity& identity : *identities) {
      names.push_back(identity.scheme + ":" + identity.user);
    }
    return names;
  }

  const TempDir folder_;
  const TlsFiles files_;
};

TEST_F(ServerTlsTest, ServesAClientThatTrustsIt) {
  Result<Server> server = start(tls());
  ASSERT_TRUE(server) << server.error();

  auto session = Session::open(server->connect_string(), trusting(), deadline_in(20s));

  ASSERT_TRUE(session) << session.error();
  const std::string large(900'000, 'x');
  ASSERT_TRUE(session->create("/large", large, {}, deadline_in(20s)));
  EXPECT_EQ(session->get("/large", deadline_in(20s)).value().data, large);
}

TEST_F(ServerTlsTest, AClientsCertificateIsItsIdentity) {
  Result<Server> server = start(tls());
  ASSERT_TRUE(server) << server.error();

  auto known = Session::open(server->connect_string(), showing(files_.client), deadline_in(20s));
  auto unknown = Session::open(server->connect_string(), trusting(), deadline_in(20s));

  ASSERT_TRUE(known) << known.error();
  ASSERT_TRUE(unknown) << unknown.error();
  EXPECT_THAT(who_am_i(*known), testing::Contains("x509:CN=client"));
  EXPECT_THAT(who_am_i(*unknown), testing::Not(testing::Contains(HasSubstr("x509"))));
}

TEST_F(ServerTlsTest, H92_ANodeCanBeKeptForTheOwnerOfACertificate) {
  Result<Server> server = start(tls());
  ASSERT_TRUE(server) << server.error();
  auto known = Session::open(server->connect_string(), showing(files_.client), deadline_in(20s));
  auto unknown = Session::open(server->connect_string(), trusting(), deadline_in(20s));
  ASSERT_TRUE(known) << known.error();
  ASSERT_TRUE(unknown) << unknown.error();

  CreateOptions kept;
  kept.acl = {{kAllPermissions, "x509", "CN=client"}};
  ASSERT_TRUE(unknown->create("/kept", "treasure", kept, deadline_in(20s)));

  EXPECT_EQ(known->get("/kept", deadline_in(20s)).value().data, "treasure");
  EXPECT_EQ(unknown->get("/kept", deadline_in(20s)).error().code(), Code::kNotAuthorized);
}

TEST_F(ServerTlsTest, ACertificateOfAStrangerIsRefused) {
  Result<Server> server = start(tls());
  ASSERT_TRUE(server) << server.error();

  const auto session =
      Session::open(server->connect_string(), showing(files_.stranger), deadline_in(2s));

  EXPECT_FALSE(session);
}

TEST_F(ServerTlsTest, WithoutACertificateNobodyGetsInIfOneIsDemanded) {
  ServerTls demanding = tls();
  demanding.clients = ServerTls::Clients::kMustShowCertificate;
  Result<Server> server = start(demanding);
  ASSERT_TRUE(server) << server.error();

  EXPECT_FALSE(Session::open(server->connect_string(), trusting(), deadline_in(2s)));
  EXPECT_TRUE(Session::open(server->connect_string(), showing(files_.client), deadline_in(20s)));
}

TEST_F(ServerTlsTest, APlainClientIsTurnedAwayAndOthersAreServed) {
  Result<Server> server = start(tls());
  ASSERT_TRUE(server) << server.error();

  EXPECT_FALSE(Session::open(server->connect_string(), {}, deadline_in(2s)));
  EXPECT_TRUE(Session::open(server->connect_string(), trusting(), deadline_in(20s)));
}

TEST_F(ServerTlsTest, H89_AHandshakeThatDoesNotGetOnIsDropped) {
  ServerOptions options;
  options.tls = tls();
  options.handshake_timeout = 3s;  // Enough for whoever does get on, however slow.
  Server server = Server::start(options).value();
  RawClient silent(server.connect_string(), 60s);
  RawClient stalled(server.connect_string(), 60s);
  ASSERT_TRUE(silent.dial());
  ASSERT_TRUE(stalled.dial());
  ASSERT_TRUE(stalled.send(std::string_view("\x16\x03\x01\x02\x00\x01", 6)));

  EXPECT_TRUE(silent.ended());
  EXPECT_TRUE(stalled.ended());
  EXPECT_TRUE(Session::open(server.connect_string(), trusting(), deadline_in(60s)));
}

/// While it stands still, many begin a handshake and one asks for a sign of life. Everything is
/// there when it goes on; answers leave after each turn, so what counts is how many turns it takes.
TEST_F(ServerTlsTest, H89_ManyHandshakesAtOnceTakeManyTurns) {
  constexpr int kHandshakes = 400;
  constexpr int kMostInATurn = 16;
  const std::string address = test_support::loopback(test_support::free_port());
  const std::string metrics = test_support::loopback(test_support::free_port());
  const std::string socket = folder_.path() / "plain.sock";
  test_support::Child server({LATCHKEY_COMMAND, "serve", "--memory", "--listen", address, "--unix",
                              socket, "--metrics", metrics, "--tls-cert", files_.server.certificate,
                              "--tls-key", files_.server.key});
  ASSERT_TRUE(server.wait_for_line("serves on", deadline_in(60s)));
  RawClient other("unix:" + socket, 60s);
  ASSERT_TRUE(other.connect(60'000));
  const int before = metric(metrics, "turns_total");
  ASSERT_GT(before, 0);

  server.pause();
  std::vector<std::unique_ptr<KeyAsker>> crowd;
  for (int i = 0; i < kHandshakes; ++i) {
    ASSERT_TRUE(crowd.emplace_back(std::make_unique<KeyAsker>(address))->say_hello());
  }
  other.add(wire::Op::kPing, wire::Empty{});
  ASSERT_TRUE(other.flush());
  server.resume();

  EXPECT_TRUE(other.receive());
  for (const auto& one : crowd) ASSERT_TRUE(one->hears_something());
  EXPECT_GE(metric(metrics, "turns_total") - before, kHandshakes / kMostInATurn);
}

TEST_F(ServerTlsTest, H90_WhoAsksForNewKeysAndDoesNotReadIsDropped) {
  ServerOptions options;
  options.tls = tls();
  options.handshake_timeout = std::chrono::minutes(10);
  Server server = Server::start(options).value();
  KeyAsker greedy(server.connect_string());
  ASSERT_TRUE(greedy.shake_hands());

  // Many times what is kept for it; the rest lies in buffers of the system.
  constexpr int kAtOnce = 100;
  int asked = 0;
  while (asked < 200'000 && greedy.ask(kAtOnce)) asked += kAtOnce;

  RecordProperty("asked", asked);
  EXPECT_LT(asked, 200'000);
  EXPECT_TRUE(Session::open(server.connect_string(), trusting(), deadline_in(20s)));
}

TEST_F(ServerTlsTest, AUnixSocketBesideItIsPlain) {
  ServerOptions options;
  options.tls = tls();
  options.listen = {"127.0.0.1:0"};
  Result<Server> server = Server::start_in_temp_folder(options);
  ASSERT_TRUE(server) << server.error();

  EXPECT_TRUE(
      Session::open("unix:" + server->unix_path().string(), SessionOptions{}, deadline_in(20s)));
}

TEST_F(ServerTlsTest, FilesThatCannotBeUsedAreNamed) {
  const auto trouble = [](const ServerTls& tls) {
    const Result<Server> server = start(tls);
    return server ? std::string("none") : server.error().message();
  };
  ServerTls missing = tls();
  missing.cert_file = folder_.path() / "nowhere.pem";
  ServerTls mixed_up = tls();
  mixed_up.key_file = files_.client.key;
  ServerTls no_ca = tls();
  no_ca.client_ca_file = folder_.path() / "no-ca.pem";
  ServerTls toothless = tls();
  toothless.client_ca_file.clear();
  toothless.clients = ServerTls::Clients::kMustShowCertificate;

  EXPECT_THAT(trouble(missing), HasSubstr("nowhere.pem"));
  EXPECT_THAT(trouble(mixed_up), HasSubstr("client.key: key values mismatch"));
  EXPECT_THAT(trouble(no_ca), HasSubstr("no-ca.pem"));
  EXPECT_THAT(trouble(toothless), HasSubstr("client_ca_file"));
}

}  // namespace
}  // namespace latchkey
