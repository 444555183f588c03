#include "serve.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "latchkey/version.hpp"
#include "systemd.hpp"

namespace latchkey::app {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 64;

constexpr const char* kExamples =
    "Examples:\n"
    "  latchkey serve --data /var/lib/latchkey\n"
    "  latchkey serve --memory --listen 127.0.0.1:0\n"
    "  latchkey serve --data ./data --unix ./latchkey.sock --words all --metrics 127.0.0.1:9090\n"
    "  latchkey serve --config /etc/latchkey.conf\n"
    "\n"
    "A configuration file has the same names, one to a line: listen = \"127.0.0.1:2181\". What "
    "the\n"
    "command line says counts more.";

void add_duration(CLI::App& command, const char* name, std::int64_t& ms, const char* help) {
  const std::map<std::string, std::int64_t> units = {{"ms", 1}, {"s", 1'000}, {"min", 60'000}};
  command.add_option(name, ms, help)
      ->transform(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::CASE_SENSITIVE))
      ->check(CLI::PositiveNumber)
      ->option_text("TIME [" + std::to_string(ms) + "ms]");
}

void add_count(CLI::App& command, const char* name, std::size_t& count, const char* help) {
  command.add_option(name, count, help)
      ->check(CLI::PositiveNumber)
      ->option_text("N [" + std::to_string(count) + "]");
}

CLI::Option* add_text(CLI::App& command, const char* name, std::string& text, const char* form,
                      const char* help) {
  return command.add_option(name, text, help)->option_text(form);
}

/// Gives every option of the file to the command, unless the command line has it.
void read_config(CLI::App& command, const std::string& file) {
  std::ifstream input(file);
  if (!input) throw CLI::FileError::Missing(file);
  const CLI::ConfigBase format;
  for (const CLI::ConfigItem& item : format.from_config(input)) {
    CLI::Option* option = command.get_option_no_throw("--" + item.fullname());
    if (option == nullptr || item.name == "config" || item.name == "help") {
      throw CLI::ConfigError(file + ": there is no option " + item.fullname() +
                             "; latchkey serve --help lists them");
    }
    if (!option->empty()) continue;
    if (option->get_expected_max() == 0) {
      // A flag; false is as good as not naming it.
      if (item.inputs != std::vector<std::string>{"false"}) option->add_result("true");
    } else {
      option->add_result(item.inputs);
    }
    option->run_callback();
  }
}

/// As many connections as the administrator lets us have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

ServerOptions server_options(const ServeOptions& asked) {
  using std::chrono::milliseconds;
  ServerOptions options = asked.server;
  options.tick = milliseconds(asked.tick_ms);
  options.min_session_timeout = milliseconds(asked.min_session_timeout_ms);
  options.max_session_timeout = milliseconds(asked.max_session_timeout_ms);
  options.reap_interval = milliseconds(asked.reap_interval_ms);
  if (!asked.tls.cert_file.empty() || !asked.tls.key_file.empty() ||
      !asked.tls.client_ca_file.empty() || asked.require_client_certificate) {
    options.tls = asked.tls;
    if (asked.require_client_certificate) {
      options.tls->clients = ServerTls::Clients::kMustShowCertificate;
    }
  }
  options.inherited = take_systemd_sockets();
  if (options.listen.empty() && options.unix_path.empty() && options.inherited.empty()) {
    options.listen = {"127.0.0.1:2181"};
  }
  options.log = [](LogLevel level, std::string_view text) {
    const char* tag = level >= LogLevel::kError     ? "error: "
                      : level == LogLevel::kWarning ? "warning: "
                                                    : "";
    fmt::print(stderr, "latchkey serve: {}{}\n", tag, text);
  };
  return options;
}

int complain(const Error& error) {
  fmt::print(stderr, "latchkey serve: {}: {}\n", name(error.code()), error.message());
  return kFailed;
}

void say_where(const Server& server, const ServerOptions& options) {
  const std::string data =
      options.data_folder.empty()
          ? "data in memory, gone when this ends"
          : fmt::format("data in {}: {}", options.data_folder.string(), server.recovered());
  fmt::print("latchkey {} serves on {}; {}\n", LATCHKEY_VERSION,
             fmt::join(server.addresses(), ", "), data);
  if (!options.metrics.empty())
    fmt::print("metrics: http://{}/metrics\n", server.metrics_address());
  std::fflush(stdout);
}

/// Waits for a signal to end, or for the server to end by itself.
void wait_for_end(Server& server, const sigset_t& signals, std::atomic<bool>& stopping) {
  std::thread watcher([&server, &stopping] {
    static_cast<void>(server.wait());
    if (!stopping) ::kill(::getpid(), SIGTERM);
  });
  int number = 0;
  ::sigwait(&signals, &number);
  stopping = true;
  notify_systemd("STOPPING=1");
  // Whoever asks a second time does not want to wait.
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  static_cast<void>(server.stop());
  watcher.join();
}

}  // namespace

CLI::App* add_serve(CLI::App& app, ServeOptions& options) {
  ServerOptions& server = options.server;
  CLI::App* command = app.add_subcommand("serve", "Run a ZooKeeper-compatible server");
  command->footer(kExamples);
  command->add_option("--data", server.data_folder, "Folder for the data; made if it is missing")
      ->option_text("DIR");
  command->add_flag("--memory", options.memory, "Keep the data in memory only");
  command->add_option("--listen", server.listen, "TCP address; may be named more than once")
      ->option_text("HOST:PORT [127.0.0.1:2181]")
      ->allow_extra_args(false);
  command->add_option("--unix", server.unix_path, "Unix socket, for this user only")
      ->option_text("PATH");
  command->add_option("--words", server.words, "Four-letter words to answer")
      ->option_text("LIST|all [ruok,srvr]")
      ->allow_extra_args(false)
      ->delimiter(',');
  add_text(*command, "--super-digest", server.super_digest, "USER:HASH",
           "Whoever may do everything; HASH is base64(sha1(USER:PASSWORD))");
  add_duration(*command, "--tick", options.tick_ms,
               "How late a session may be found to have ended");
  add_duration(*command, "--min-session-timeout", options.min_session_timeout_ms,
               "Shortest session time-out to grant");
  add_duration(*command, "--max-session-timeout", options.max_session_timeout_ms,
               "Longest session time-out to grant");
  add_duration(*command, "--reap-interval", options.reap_interval_ms,
               "Time between looks for unused containers and old TTL nodes");
  add_count(*command, "--max-connections", server.max_connections, "Connections in all");
  add_count(*command, "--max-connections-per-address", server.max_connections_per_address,
            "Connections from one address other than the loopback");
  add_count(*command, "--max-frame", server.max_frame, "Bytes of one request");
  add_count(*command, "--max-sessions", server.max_sessions, "Sessions in all");
  add_count(*command, "--max-nodes", server.max_nodes, "Nodes in all");
  add_count(*command, "--max-bytes", server.max_bytes, "Bytes of paths and data in all");
  add_text(*command, "--metrics", server.metrics, "HOST:PORT", "Where Prometheus finds /metrics");
  add_text(*command, "--tls-cert", options.tls.cert_file, "FILE",
           "Certificate chain of the server, PEM");
  add_text(*command, "--tls-key", options.tls.key_file, "FILE", "Its private key, PEM");
  add_text(*command, "--tls-client-ca", options.tls.client_ca_file, "FILE",
           "Who may sign client certificates, PEM");
  command->add_flag("--tls-require-client-cert", options.require_client_certificate,
                    "Refuse clients without a certificate");
  add_text(*command, "--config", options.config_file, "FILE", "More options, see below");
  command->parse_complete_callback([command, &options] {
    if (!options.config_file.empty()) read_config(*command, options.config_file);
  });
  return command;
}

int run_serve(const ServeOptions& asked) {
  if (asked.memory == !asked.server.data_folder.empty()) {
    fmt::print(stderr,
               "latchkey serve: {}: --data DIR keeps the data in DIR, --memory loses them "
               "when the server ends\n",
               asked.memory ? "choose one of the two" : "say where the data shall lie");
    return kUsage;
  }
  raise_descriptor_limit();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // A file that may not grow is an error of the disk, told as one.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const ServerOptions options = server_options(asked);
  Result<Server> server = Server::start(options);
  if (!server) return complain(server.error());
  say_where(*server, options);
  notify_systemd("READY=1");
  std::atomic<bool> stopping = false;
  wait_for_end(*server, signals, stopping);
  const Result<void> ended = server->stop();
  return ended ? 0 : complain(ended.error());
}

}  // namespace latchkey::app
