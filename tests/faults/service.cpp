#include "service.hpp"

#include <csignal>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "pause.hpp"
#include "support/apache_server.hpp"
#include "support/embedded_server.hpp"
#include "support/ensemble.hpp"
#include "support/eventually.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

namespace latchkey::faults {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test_support::ApacheServer;
using test_support::EmbeddedServer;

[[noreturn]] void not_for_us(ServerFault fault) {
  throw std::logic_error("not a fault of this service: " + std::string(name(fault)));
}

class StandaloneService : public Service {
 public:
  void start() override { server_.start(); }
  [[nodiscard]] std::vector<std::string> addresses() const override {
    return {server_.connect_string()};
  }
  std::vector<pid_t> processes() override { return {server_.pid()}; }

  std::string strike(ServerFault fault, milliseconds length, base::Random& /*random*/) override {
    switch (fault) {
      case ServerFault::kKill:
        server_.kill();
        pause_for(length);
        server_.start();
        return {};
      case ServerFault::kStopShort:
      case ServerFault::kStopLong:
        server_.pause();
        pause_for(length);
        server_.resume();
        return {};
      default: not_for_us(fault);
    }
  }

 private:
  ApacheServer server_;
};

class EnsembleService : public Service {
 public:
  EnsembleService() : ensemble_(options()) {}

  void start() override { ensemble_.start(); }
  [[nodiscard]] std::vector<std::string> addresses() const override {
    std::vector<std::string> result;
    for (std::size_t i = 0; i < ensemble_.size(); ++i) {
      result.push_back(ensemble_.connect_string(i));
    }
    return result;
  }
  std::vector<pid_t> processes() override {
    std::vector<pid_t> result;
    for (std::size_t i = 0; i < ensemble_.size(); ++i) {
      result.push_back(ensemble_.member(i).pid());
    }
    return result;
  }

  std::string strike(ServerFault fault, milliseconds length, base::Random& random) override {
    const Roles roles = wait_for_roles();
    const std::size_t leader = roles.leader.value();
    const std::size_t follower = roles.followers.at(random.below(roles.followers.size()));
    switch (fault) {
      case ServerFault::kKill: kill(follower, length); break;
      case ServerFault::kKillLeader: kill(leader, length); break;
      case ServerFault::kStopShort:
      case ServerFault::kStopLong: stop(follower, length); break;
      case ServerFault::kStopLeader: stop(leader, length); break;
      case ServerFault::kRollingRestart: ensemble_.rolling_restart(); break;
      case ServerFault::kCutFollower:
        ensemble_.cut_from_leader(follower);
        pause_for(length);
        ensemble_.heal(follower);
        break;
      default: not_for_us(fault);
    }
    ensemble_.wait_for_quorum();
    return {};
  }

 private:
  static test_support::EnsembleOptions options() {
    test_support::EnsembleOptions options;
    options.links = test_support::QuorumLinks::kCuttable;
    return options;
  }

  struct Roles {
    std::optional<std::size_t> leader = {};
    std::vector<std::size_t> followers = {};
  };

  /// Elections may still be going on after the last strike.
  Roles wait_for_roles() {
    Roles roles;
    const auto all_serve = [&] {
      roles = {};
      for (std::size_t i = 0; i < ensemble_.size(); ++i) {
        const test_support::ApacheMode mode = ensemble_.member(i).mode();
        if (mode == test_support::ApacheMode::kLeader) roles.leader = i;
        if (mode == test_support::ApacheMode::kFollower) roles.followers.push_back(i);
      }
      return roles.leader && roles.followers.size() + 1 == ensemble_.size();
    };
    if (test_support::eventually(all_serve, deadline_in(60s))) return roles;
    throw std::runtime_error("the ensemble does not recover: " + word("srvr"));
  }

  void kill(std::size_t member, milliseconds length) {
    ensemble_.member(member).kill();
    pause_for(length);
    ensemble_.start();
  }
  void stop(std::size_t member, milliseconds length) {
    ensemble_.member(member).pause();
    pause_for(length);
    ensemble_.member(member).resume();
  }

  test_support::Ensemble ensemble_;
};

class EmbeddedService : public Service {
 public:
  explicit EmbeddedService(const ServerProgram& program)
      : server_(program.command,
                {.environment = {"LD_PRELOAD=" + program.disk_shim, "DISK_FAULT=" + trigger("")}}) {
  }

  void start() override { server_.start(); }
  [[nodiscard]] std::vector<std::string> addresses() const override {
    return {server_.connect_string()};
  }
  std::vector<pid_t> processes() override { return {server_.pid()}; }

  std::string strike(ServerFault fault, milliseconds length, base::Random& /*random*/) override {
    switch (fault) {
      case ServerFault::kKill:
        server_.kill();
        pause_for(length);
        server_.start();
        return {};
      case ServerFault::kStopShort:
      case ServerFault::kStopLong:
        ::kill(server_.pid(), SIGSTOP);
        pause_for(length);
        ::kill(server_.pid(), SIGCONT);
        return {};
      case ServerFault::kSyncError: return break_disk(".sync", "Input/output error", length);
      case ServerFault::kDiskFull: return break_disk(".full", "No space left", length);
      case ServerFault::kSlowDisk:
        std::ofstream(trigger(".slow")).flush();
        pause_for(length);
        std::filesystem::remove(trigger(".slow"));
        return {};
      default: not_for_us(fault);
    }
  }

 private:
  [[nodiscard]] std::string trigger(const char* how) const {
    return (folder_.path() / "disk").string() + how;
  }

  /// The clients write all the time, so the server must stop by itself, and say why.
  std::string break_disk(const char* how, const char* reason, milliseconds length) {
    std::ofstream(trigger(how)).flush();
    const auto status = server_.wait(deadline_in(60s));
    pause_for(length);
    std::filesystem::remove(trigger(how));
    const std::string log = server_.log();
    if (!status) return "the server goes on although its disk has failed:\n" + log;
    server_.start();
    const bool said = log.find(reason) != std::string::npos;
    if (*status == test_support::ExitStatus{1, 0} && said) return {};
    return "the server did not end with status 1 and \"" + std::string(reason) + "\", but with " +
           std::to_string(status->code) + " or signal " + std::to_string(status->signal) + ":\n" +
           log;
  }

  test_support::TempDir folder_;
  EmbeddedServer server_;
};

}  // namespace

std::string Service::word(std::string_view word) const {
  std::string answers;
  for (const std::string& address : addresses()) {
    answers += test_support::ask_word(test_support::Endpoint(address), word, deadline_in(2s));
  }
  return answers;
}

std::string Service::connect_string() const {
  std::string result;
  for (const std::string& address : addresses()) result += (result.empty() ? "" : ",") + address;
  return result;
}

std::unique_ptr<Service> make_service(ServiceKind kind, const ServerProgram& program) {
  switch (kind) {
    case ServiceKind::kEnsemble: return std::make_unique<EnsembleService>();
    case ServiceKind::kEmbedded: return std::make_unique<EmbeddedService>(program);
    case ServiceKind::kStandalone: return std::make_unique<StandaloneService>();
  }
  throw std::logic_error("no such service");
}

}  // namespace latchkey::faults
