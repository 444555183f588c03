#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include "differential/runner.hpp"
#include "differential/service_endpoint.hpp"
#include "latchkey/server.hpp"

namespace latchkey::differential {
namespace {

class ServerEndpoint : public Endpoint {
 public:
  explicit ServerEndpoint(Server server)
      : server_(std::move(server)), socket_(socket_endpoint(server_.connect_string())) {}

  std::unique_ptr<Link> connect() override { return socket_->connect(); }

 private:
  Server server_;
  std::unique_ptr<Endpoint> socket_;
};

}  // namespace

std::unique_ptr<Endpoint> server_endpoint() {
  ServerOptions options;
  options.min_session_timeout = kMinTimeout;
  options.max_session_timeout = kMaxTimeout;
  options.super_digest = kSuperDigest;
  options.reap_interval = std::chrono::hours(24);  // However long a script takes on a busy machine.
  auto server = Server::start(std::move(options));
  if (!server) throw std::runtime_error("our server does not start: " + server.error().message());
  return std::make_unique<ServerEndpoint>(std::move(*server));
}

}  // namespace latchkey::differential
