#include "support/apache_server.hpp"

#include <poll.h>

#include <csignal>
#include <deque>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "support/eventually.hpp"
#include "support/sockets.hpp"

namespace latchkey::test_support {

namespace {

/// zookeeper.jar's manifest names most of what it needs. Missing there are a logger and the parts
/// of Netty that TLS pulls in.
std::string class_path() {
  std::string result;
  for (const char* jar :
       {"zookeeper", "slf4j-simple", "netty-codec", "netty-transport-native-unix-common"}) {
    if (!result.empty()) result += ':';
    result.append("/usr/share/java/").append(jar).append(".jar");
  }
  return result;
}

const char* name_of(ClientAuth auth) {
  switch (auth) {
    case ClientAuth::kNone: return "none";
    case ClientAuth::kWant: return "want";
    case ClientAuth::kNeed: return "need";
  }
  return "none";
}

}  // namespace

ApacheServer::ApacheServer(ApacheOptions options)
    : options_(std::move(options)),
      port_(free_port()),
      secure_port_(options_.tls ? free_port() : std::uint16_t{0}) {}

ApacheServer::~ApacheServer() = default;

void ApacheServer::write_config() const {
  std::filesystem::create_directories(folder() / "data");
  if (options_.my_id) std::ofstream(folder() / "data" / "myid") << *options_.my_id << '\n';
  std::ofstream config(folder() / "zoo.cfg");
  config << "dataDir=" << (folder() / "data").string() << '\n'
         << "clientPort=" << port_ << '\n'
         << "clientPortAddress=" << options_.host << '\n'
         << "tickTime=" << options_.tick_ms << '\n'
         << "minSessionTimeout=" << options_.min_session_timeout_ms << '\n'
         << "maxSessionTimeout=" << options_.max_session_timeout_ms << '\n'
         << "maxClientCnxns=0\n"
         << "admin.enableServer=false\n"
         << "4lw.commands.whitelist=*\n"
         << "extendedTypesEnabled=true\n"
         << "skipACL=no\n"
         << "forceSync=" << (options_.fsync == Fsync::kSkip ? "no" : "yes") << '\n';
  if (options_.tls) {
    config << "secureClientPort=" << secure_port_ << '\n'
           << "secureClientPortAddress=" << options_.host << '\n'
           << "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
           << "ssl.keyStore.location=" << options_.tls->key_store.string() << '\n'
           << "ssl.keyStore.type=PEM\n"
           << "ssl.trustStore.location=" << options_.tls->trust_store.string() << '\n'
           << "ssl.trustStore.type=PEM\n"
           << "ssl.clientAuth=" << name_of(options_.tls->client_auth) << '\n';
  }
  for (const std::string& line : options_.config_lines) config << line << '\n';
}

std::vector<std::string> ApacheServer::command() const {
  // The first line is about quick starts, the second about small files.
  std::vector<std::string> words = {
      "java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m",
      "-XX:-UsePerfData", "-Dzookeeper.preAllocSize=256", "-Dzookeeper.jmx.log4j.disable=true",
      "-Dznode.container.checkIntervalMs=" + std::to_string(options_.container_check_ms),
      "-Dorg.slf4j.simpleLogger.showDateTime=true",
      "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
      "-Dorg.slf4j.simpleLogger.showShortLogName=true",
      // Not a line for every word() that is asked.
      "-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn"};
  words.insert(words.end(), options_.java_flags.begin(), options_.java_flags.end());
  words.insert(words.end(), {"-cp", class_path(),
                             "org.apache.zookeeper.server.quorum.QuorumPeerMain", "./zoo.cfg"});
  return words;
}

void ApacheServer::start(Deadline deadline) {
  launch();
  wait_until_serving(deadline);
}

void ApacheServer::launch() {
  if (running()) return;
  write_config();
  ChildOptions options;
  options.folder = folder();
  options.output_file = folder() / "server.log";
  process_ = std::make_unique<Child>(command(), options);
}

void ApacheServer::wait_until_serving(Deadline deadline) {
  // The secure port is opened after the plain one.
  const auto secure_port_open = [&] {
    const Deadline soon = deadline_in(std::chrono::milliseconds(500));
    return !options_.tls || connect_to(Endpoint(secure_connect_string()), soon);
  };
  const auto serving = [&] { return mode() > ApacheMode::kNotServing && secure_port_open(); };
  if (eventually([&] { return serving() || !running(); }, deadline) && running()) return;
  throw std::runtime_error("Apache ZooKeeper at " + connect_string() +
                           (running() ? " does not serve:\n" : " has ended:\n") + log_tail());
}

void ApacheServer::stop() {
  if (!running()) return;
  process_->resume();
  process_->signal(SIGTERM);
  if (!process_->wait(deadline_in(std::chrono::seconds(20)))) kill();
}

void ApacheServer::kill() {
  if (!running()) return;
  process_->signal(SIGKILL);
  static_cast<void>(process_->wait(Deadline::never()));
}

void ApacheServer::pause() {
  if (running()) process_->pause();
}

void ApacheServer::resume() {
  if (running()) process_->resume();
}

void ApacheServer::restart(Deadline deadline) {
  stop();
  start(deadline);
}

void ApacheServer::wipe() {
  kill();
  std::filesystem::remove_all(folder() / "data");
}

bool ApacheServer::running() { return process_ && process_->running(); }

std::string ApacheServer::word(std::string_view word, Deadline deadline) const {
  return ask_word(Endpoint(connect_string()), word, deadline);
}

ApacheMode ApacheServer::mode() const {
  // A server that is just coming up may take the word and never answer it: ask again soon.
  const std::string answer = word("srvr", deadline_in(std::chrono::seconds(2)));
  if (answer.empty()) return ApacheMode::kDown;
  if (answer.find("Mode: standalone") != std::string::npos) return ApacheMode::kStandalone;
  if (answer.find("Mode: leader") != std::string::npos) return ApacheMode::kLeader;
  if (answer.find("Mode: follower") != std::string::npos) return ApacheMode::kFollower;
  return ApacheMode::kNotServing;
}

std::string ApacheServer::at(std::uint16_t port) const {
  const bool bracketed = options_.host.find(':') != std::string::npos;
  return (bracketed ? '[' + options_.host + ']' : options_.host) + ':' + std::to_string(port);
}

std::string ApacheServer::connect_string() const { return at(port_); }
std::string ApacheServer::secure_connect_string() const { return at(secure_port_); }

std::string ApacheServer::log_tail() const {
  std::ifstream log(folder() / "server.log");
  std::deque<std::string> last;
  for (std::string line; std::getline(log, line); last.push_back(line)) {
    if (last.size() == 40) last.pop_front();
  }
  std::string result;
  for (const std::string& line : last) result += line + '\n';
  return result;
}

}  // namespace latchkey::test_support
