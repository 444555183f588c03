#include <memory>
#include <string>

#include "differential/endpoint.hpp"
#include "differential/runner.hpp"
#include "support/apache_server.hpp"

namespace latchkey::differential {

using test_support::ApacheOptions;
using test_support::ApacheServer;

Endpoint& apache_endpoint() {
  static const auto server = [] {
    ApacheOptions options;
    options.tick_ms = 2'000;
    options.min_session_timeout_ms = static_cast<int>(kMinTimeout.count());
    options.max_session_timeout_ms = static_cast<int>(kMaxTimeout.count());
    options.container_check_ms = 1'000'000'000;
    options.java_flags = {"-Dzookeeper.DigestAuthenticationProvider.superDigest=" +
                          std::string(kSuperDigest)};
    auto started = std::make_unique<ApacheServer>(options);
    started->start();
    return started;
  }();
  static const std::unique_ptr<Endpoint> endpoint = socket_endpoint(server->connect_string());
  return *endpoint;
}

}  // namespace latchkey::differential
