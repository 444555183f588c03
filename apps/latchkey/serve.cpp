#include "serve.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "latchkey/version.hpp"
#include "systemd.hpp"
#include "values.hpp"

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
    "Times are written 500ms, 1.5s, 5min, 2h; counts of bytes may be 64K, 16M, 4G.\n"
    "A configuration file has the same names, one to a line: listen = \"127.0.0.1:2181\". What "
    "the\n"
    "command line says counts more.";

/// An option whose text `parse` understands, or whose message says how to write it.
template <class Value, class Parse>
void add_parsed(CLI::App& command, const std::string& name, Value& value, Parse parse,
                const char* help, const std::string& form) {
  const auto take = [name, &value, parse](const std::string& text) {
    auto parsed = parse(text);
    if (!parsed) throw CLI::ValidationError(name, parsed.error().message());
    value = *parsed;
  };
  command.add_option_function<std::string>(name, take, help)->option_text(form);
}

void add_duration(CLI::App& command, const char* name, std::int64_t& ms, const char* help) {
  add_parsed(command, name, ms, parse_duration, help, "TIME [" + std::to_string(ms) + "ms]");
}

void add_count(CLI::App& command, const char* name, std::size_t& count, const char* help,
               std::size_t least = 1) {
  const auto parse = [least](const std::string& text) -> Result<std::size_t> {
    auto parsed = parse_count(text);
    if (!parsed || *parsed >= least) return parsed;
    return Error(Code::kInvalidOption, fmt::format("{} is less than {}", text, least));
  };
  add_parsed(command, name, count, parse, help, "N [" + std::to_string(count) + "]");
}

/// An empty value is most often a variable that nobody has set.
template <class Text>
CLI::Option* add_text(CLI::App& command, const char* name, Text& text, const char* form,
                      const char* help) {
  return command.add_option(name, text, help)
      ->option_text(form)
      ->check([](const std::string& value) {
        return value.empty() ? std::string("the value is empty") : std::string();
      });
}

/// Gives every setting of the file to the command, unless the command line has it.
void read_config(CLI::App& command, const std::string& file) {
  std::ifstream input(file);
  if (!input || !std::filesystem::is_regular_file(file)) {
    throw CLI::ConfigError("cannot read the configuration file " + file);
  }
  const std::string text(std::istreambuf_iterator<char>(input), {});
  const auto settings = parse_settings(text);
  if (!settings) throw CLI::ConfigError(file + ":" + settings.error().message());
  std::set<const CLI::Option*> named;  ///< By the command line, which counts more.
  for (const CLI::Option* option : command.get_options()) {
    if (!option->empty()) named.insert(option);
  }
  std::map<CLI::Option*, const Setting*> changed;
  for (const Setting& setting : *settings) {
    const std::string where = fmt::format("{}:{}: ", file, setting.line);
    CLI::Option* option = command.get_option_no_throw("--" + setting.name);
    if (option == nullptr || setting.name == "config" || setting.name == "help") {
      throw CLI::ConfigError(where + "there is no option \"" + setting.name +
                             "\"; latchkey serve --help lists them");
    }
    if (named.contains(option)) continue;
    if (option->get_expected_max() == 0) {
      const auto value = parse_bool(setting.values.front());
      if (!value) throw CLI::ConfigError(where + value.error().message());
      if (*value) option->add_result("true");
    } else {
      for (const std::string& value : setting.values) option->add_result(value);
    }
    changed[option] = &setting;
  }
  for (const auto& [option, setting] : changed) {
    if (option->empty()) continue;
    try {
      option->run_callback();
    } catch (const CLI::Error& error) {
      throw CLI::ConfigError(fmt::format("{}:{}: {}", file, setting->line, error.what()));
    }
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
  options.handshake_timeout = milliseconds(asked.handshake_timeout_ms);
  if (asked.cut_damage) options.on_damage = ServerOptions::Damage::kCut;
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
  return error.code() == Code::kInvalidOption ? kUsage : kFailed;
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
  add_text(*command, "--data", server.data_folder, "DIR",
           "Folder for the data; made if it is missing");
  command->add_flag("--memory", options.memory, "Keep the data in memory only");
  command->add_flag("--cut-damage", options.cut_damage,
                    "For one start: keep what comes before a damage, lose the rest");
  add_text(*command, "--listen", server.listen, "HOST:PORT [127.0.0.1:2181]",
           "TCP address; may be named more than once")
      ->allow_extra_args(false);
  add_text(*command, "--unix", server.unix_path, "PATH", "Unix socket, for this user only");
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
  add_duration(*command, "--handshake-timeout", options.handshake_timeout_ms,
               "How long a connection may take to begin a session");
  add_count(*command, "--max-connections", server.max_connections, "Connections in all");
  add_count(*command, "--max-connections-per-address", server.max_connections_per_address,
            "Connections from one address other than the loopback");
  add_count(*command, "--max-frame", server.max_frame, "Bytes of one request", 1'024);
  add_count(*command, "--max-sessions", server.max_sessions, "Sessions in all");
  add_count(*command, "--max-nodes", server.max_nodes, "Nodes in all");
  add_count(*command, "--max-bytes", server.max_bytes, "Bytes of paths and data in all");
  add_count(*command, "--max-requests-per-connection", server.max_requests_per_connection,
            "Requests that may wait for their answer");
  add_count(*command, "--max-watches", server.max_watches, "Watches in all");
  add_count(*command, "--max-watches-per-connection", server.max_watches_per_connection,
            "Watches of one connection");
  add_count(*command, "--max-output-per-connection", server.max_output_per_connection,
            "Bytes that may wait for a slow reader", 65'536);
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
  for (const std::string& address : asked.server.listen) {
    const bool any_port = address.ends_with(":0");
    if (any_port || std::ranges::count(asked.server.listen, address) == 1) continue;
    fmt::print(stderr, "latchkey serve: --listen {} is named twice\n", address);
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
