#include "support/shared_servers.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>

#include <gtest/gtest.h>

#include "support/eventually.hpp"
#include "support/raw_client.hpp"

namespace latchkey::test_support {

namespace {

/// GoogleTest owns it; TearDown runs after the last test.
class SharedServers : public testing::Environment {
 public:
  void TearDown() override {
    server.reset();
    ensemble.reset();
    embedded.reset();
  }

  std::unique_ptr<ApacheServer> server;
  std::unique_ptr<Ensemble> ensemble;
  std::unique_ptr<EmbeddedServer> embedded;
};

// Registered before main, because GoogleTest takes no environment once the tests run. This file is
// linked in only where its functions are called, so other test programs are not affected.
SharedServers* const kShared = [] {
  auto* servers = new SharedServers;
  testing::AddGlobalTestEnvironment(servers);
  return servers;
}();

}  // namespace

ApacheServer& shared_server() {
  if (!kShared->server) kShared->server = std::make_unique<ApacheServer>();
  kShared->server->resume();
  kShared->server->start();
  return *kShared->server;
}

Ensemble& shared_ensemble() {
  if (!kShared->ensemble) {
    EnsembleOptions options;
    options.links = QuorumLinks::kCuttable;
    // A member that is cut off serves old data for longer than any session here lives.
    options.sync_limit = 60;
    kShared->ensemble = std::make_unique<Ensemble>(options);
  }
  Ensemble& ensemble = *kShared->ensemble;
  for (std::size_t i = 0; i < ensemble.size(); ++i) {
    ensemble.member(i).resume();
    ensemble.heal(i);
  }
  ensemble.start();
  // A member that was cut off or stopped in the last test may still think that it follows. A new
  // session has to go through the leader, so it tells.
  const auto all_grant_sessions = [&] {
    for (std::size_t i = 0; i < ensemble.size(); ++i) {
      RawClient client(ensemble.connect_string(i), std::chrono::seconds(2));
      if (!client.connect(1'000)) return false;
    }
    return ensemble.followers().size() + 1 == ensemble.size();
  };
  if (!eventually(all_grant_sessions, deadline_in(std::chrono::seconds(60)))) {
    throw std::runtime_error("the ensemble does not recover");
  }
  return ensemble;
}

EmbeddedServer& shared_embedded() {
  if (!kShared->embedded) kShared->embedded = std::make_unique<EmbeddedServer>(LATCHKEY_COMMAND);
  kShared->embedded->resume();
  kShared->embedded->start();
  return *kShared->embedded;
}

std::string fresh_path() {
  static std::atomic<int> last = 0;
  std::string name = "/";
  if (const auto* test = testing::UnitTest::GetInstance()->current_test_info()) {
    name.append(test->test_suite_name()).append(".").append(test->name());
    // Parameterized tests have slashes in their names.
    std::replace(name.begin() + 1, name.end(), '/', '.');
  }
  return name + '-' + std::to_string(++last);
}

}  // namespace latchkey::test_support
