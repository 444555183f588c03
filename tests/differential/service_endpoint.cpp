#include "differential/service_endpoint.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <openssl/evp.h>

#include "base/random.hpp"
#include "differential/runner.hpp"
#include "tree/service.hpp"
#include "wire/frame.hpp"

namespace latchkey::differential {
namespace {

using tree::Identity;
using tree::PeerId;
using tree::Service;

/// What Apache stores for "user:password".
std::string digest_of(std::string_view credentials) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(credentials.data(), credentials.size(), hash, &size, EVP_sha1(), nullptr);
  unsigned char text[EVP_MAX_MD_SIZE * 2];
  const int length = EVP_EncodeBlock(text, hash, static_cast<int>(size));
  const std::string user(credentials.substr(0, credentials.find(':')));
  return user + ":" +
         std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(length));
}

std::optional<std::vector<Identity>> authenticate(std::string_view scheme,
                                                  std::string_view credentials) {
  if (scheme != "digest") return std::nullopt;
  std::vector<Identity> proven;
  if (credentials == kSuperCredentials) proven.push_back({"super", ""});
  proven.push_back({"digest", digest_of(credentials)});
  return proven;
}

class ServiceEndpoint : public Endpoint {
 public:
  ServiceEndpoint(Journal journal, std::uint64_t seed)
      : journal_(journal), random_(seed), service_(options()) {
    service_.start(now());
    settle();
  }

  std::unique_ptr<Link> connect() override;
  void settle() override;

  void send(PeerId peer, std::string_view bytes);
  Arrival receive(PeerId peer, Wait wait);
  void drop(PeerId peer);

 private:
  struct Client {
    wire::FrameSplitter splitter{std::size_t{64} << 20U};
    bool closed = false;
  };

  tree::ServiceOptions options();
  tree::Moment now();
  /// Carries out what the service asks for, as a driver with sockets would.
  void drive();
  void store(std::size_t records);

  Journal journal_;
  base::Random random_;
  std::int64_t clock_ms_ = 1'000'000;
  Service service_;
  std::deque<std::int64_t> unstored_;
  std::map<PeerId, Client> clients_;
};

class ServiceLink : public Link {
 public:
  ServiceLink(ServiceEndpoint& endpoint, PeerId peer) : endpoint_(endpoint), peer_(peer) {}
  ~ServiceLink() override { endpoint_.drop(peer_); }

  void send(std::string_view bytes) override { endpoint_.send(peer_, bytes); }
  Arrival receive(Wait wait) override { return endpoint_.receive(peer_, wait); }

 private:
  ServiceEndpoint& endpoint_;
  PeerId peer_;
};

tree::ServiceOptions ServiceEndpoint::options() {
  tree::ServiceOptions options;
  options.min_session_timeout = kMinTimeout;
  options.max_session_timeout = kMaxTimeout;
  options.authenticate = authenticate;
  options.secret = [this] { return random_.next(); };
  return options;
}

tree::Moment ServiceEndpoint::now() {
  ++clock_ms_;
  return {Instant(std::chrono::milliseconds(clock_ms_)), clock_ms_};
}

std::unique_ptr<Link> ServiceEndpoint::connect() {
  const PeerId peer = service_.connect({"127.0.0.1:1", {{"ip", "127.0.0.1"}}}, now());
  clients_[peer];
  return std::make_unique<ServiceLink>(*this, peer);
}

void ServiceEndpoint::store(std::size_t records) {
  if (records == 0) return;
  const std::int64_t zxid = unstored_[records - 1];
  unstored_.erase(unstored_.begin(), unstored_.begin() + static_cast<std::ptrdiff_t>(records));
  service_.stored(zxid, now());
}

void ServiceEndpoint::drive() {
  while (true) {
    for (const Service::Stored& record : service_.take_batch()) unstored_.push_back(record.zxid);
    if (journal_ == Journal::kImmediate) store(unstored_.size());
    const std::vector<PeerId> ready = service_.take_ready();
    if (ready.empty()) return;
    for (const PeerId peer : ready) {
      const auto client = clients_.find(peer);
      if (client == clients_.end()) continue;
      client->second.splitter.feed(service_.take_output(peer, now()));
      if (service_.closing(peer) == Service::Closing::kNo) continue;
      client->second.closed = true;
      service_.disconnect(peer, now());
    }
  }
}

void ServiceEndpoint::settle() {
  drive();
  while (!unstored_.empty()) {
    store(unstored_.size());
    drive();
  }
}

void ServiceEndpoint::send(PeerId peer, std::string_view bytes) {
  service_.receive(peer, bytes, now());
  drive();
  if (journal_ == Journal::kImmediate || unstored_.empty()) return;
  store(random_.below(4) == 0 ? random_.below(unstored_.size() + 1) : 0);
  drive();
}

Arrival ServiceEndpoint::receive(PeerId peer, Wait wait) {
  Client& client = clients_.at(peer);
  if (const auto frame = client.splitter.next()) {
    return {Arrival::Kind::kFrame, std::string(*frame)};
  }
  if (client.closed) return {Arrival::Kind::kClosed, {}};
  if (wait == Wait::kNo || unstored_.empty()) return {Arrival::Kind::kNothing, {}};
  settle();
  return receive(peer, wait);
}

void ServiceEndpoint::drop(PeerId peer) {
  clients_.erase(peer);
  service_.disconnect(peer, now());
  drive();
}

}  // namespace

std::unique_ptr<Endpoint> service_endpoint(Journal journal, std::uint64_t seed) {
  return std::make_unique<ServiceEndpoint>(journal, seed);
}

}  // namespace latchkey::differential
