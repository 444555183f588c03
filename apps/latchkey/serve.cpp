#include "serve.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "environment.hpp"
#include "exit_code.hpp"
#include "folders.hpp"
#include "latchkey/server.hpp"
#include "latchkey/version.hpp"
#include "locate.hpp"
#include "own_server.hpp"
#include "serve_options.hpp"
#include "serve_signals.hpp"
#include "systemd.hpp"
#include "table.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

constexpr int kFailed = 1;

constexpr const char* kServeExamples =
    "Examples:\n"
    "  latchkey serve\n"
    "  latchkey serve --data /var/lib/latchkey\n"
    "  latchkey serve --memory --listen 127.0.0.1:0\n"
    "  latchkey serve --data ./data --unix ./latchkey.sock --words all --metrics 127.0.0.1:9090\n"
    "  latchkey serve --config /etc/latchkey-serve.conf\n"
    "\n"
    "Times are written 500ms, 1.5s, 5min, 2h; counts of bytes may be 64K, 16M, 4G.\n"
    "A configuration file has the same names, one to a line: listen = \"127.0.0.1:2181\". What "
    "the\n"
    "command line says counts more.";

/// As many connections as the administrator lets us have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string logged(LogLevel level, std::string_view text) {
  const char* tag = level >= LogLevel::kError     ? "error: "
                    : level == LogLevel::kWarning ? "warning: "
                                                  : "";
  return fmt::format("latchkey serve: {}{}\n", tag, text);
}

std::string where_text(const Server& server, const ServerOptions& options) {
  const std::string data =
      options.data_folder.empty()
          ? "data in memory, gone when this ends"
          : fmt::format("data in {}: {}", options.data_folder.string(), server.recovered());
  const std::string metrics = options.metrics.empty() ? ""
                                                      : fmt::format("metrics: http://{}/metrics\n",
                                                                    server.metrics_address());
  return fmt::format("latchkey {} serves on {}; {}\n{}", LATCHKEY_VERSION,
                     fmt::join(server.addresses(), ", "), data, metrics);
}

/// Waits for a signal to end, or for the server to end by itself.
void wait_for_end(Server& server, const sigset_t& signals, std::atomic<bool>& stopping) {
  std::thread watcher([&server, &stopping] {
    static_cast<void>(server.wait());
    if (!stopping.exchange(true)) ::kill(::getpid(), SIGTERM);
  });
  int number = 0;
  ::sigwait(&signals, &number);
  const bool ended_by_itself = stopping.exchange(true);
  notify_systemd("STOPPING=1");
  // Whoever asks a second time does not want to wait. The watcher's own signal is no such wish: it
  // may come after somebody's, and why the server has ended is still to be said.
  if (!ended_by_itself) ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  static_cast<void>(server.stop());
  watcher.join();
}

/// For this machine alone, and the socket for this user alone.
void take_default_addresses(ServerOptions& options) {
  options.listen = {"127.0.0.1:2181"};
  const std::vector<std::string> sockets = default_sockets(options.data_folder, environment());
  // A data folder is made and looked at by the server itself.
  const auto socket = options.data_folder.empty() || sockets.empty()
                          ? choose_socket(sockets)
                          : std::optional(sockets.front());
  if (socket) {
    options.unix_path = *socket;
  } else {
    options.log(LogLevel::kWarning,
                "no Unix socket: there is no name for it that is short "
                "enough, or no folder; name one with --unix");
  }
}

Result<Server> start_server(ServerOptions& options) {
  const bool told_where =
      !options.listen.empty() || !options.unix_path.empty() || !options.inherited.empty();
  if (!told_where) take_default_addresses(options);
  Result<Server> server = Server::start(options);
  if (server || told_where || options.unix_path.empty()) return server;
  // A file system may have no sockets, and nobody has asked for this one.
  const std::string why = server.error().message();
  options.unix_path.clear();
  server = Server::start(options);
  if (server) options.log(LogLevel::kWarning, "no Unix socket; name one with --unix: " + why);
  return server;
}

/// Whoever does not read what a server says does not hold it up.
struct Voices {
  Speaker out{100, STDOUT_FILENO};
  Speaker log{10'000};

  void finish() const {
    constexpr std::chrono::seconds kLastWords(1);
    out.finish(kLastWords);
    log.finish(kLastWords);
  }
};

int end(const Result<void>& ended, const Voices& voices) {
  if (ended) return kOk;
  const Error& error = ended.error();
  const bool misused = error == Code::kInvalidOption;
  voices.log.say(fmt::format("latchkey serve: {}\n",
                             printable(misused ? as_typed(error.message()) : error.message())));
  return misused ? kUsage : kFailed;
}

int serve(ServerOptions options, const sigset_t& signals, const Voices& voices) {
  StartSignals early(signals);
  options.cancel_start = early.token();
  Result<Server> server = start_server(options);
  early.end();
  if (!server && server.error() == Code::kCancelled) {
    voices.log.say("latchkey serve: ended before it had read its data\n");
    return kOk;
  }
  if (!server) return end(server.error(), voices);
  if (early.token().stop_requested()) return end(server->stop(), voices);
  voices.out.say(where_text(*server, options));
  notify_systemd("READY=1");
  std::atomic<bool> stopping = false;
  wait_for_end(*server, signals, stopping);
  return end(server->stop(), voices);
}

int run_serve(const ServeOptions& asked) {
  ServerOptions options = server_options(asked);
  const bool both = asked.memory && !options.data_folder.empty();
  if (!asked.memory && options.data_folder.empty()) {
    options.data_folder = default_data_folder(environment());
    make_folders(options.data_folder.parent_path());  // The server says what it cannot do.
  } else if (!options.data_folder.empty()) {
    // What is said of it shall be of use to others.
    std::error_code error;
    const auto absolute = std::filesystem::absolute(options.data_folder, error);
    if (!error) options.data_folder = absolute.lexically_normal();
  }
  if (both || (!asked.memory && options.data_folder.empty())) {
    say("latchkey serve: {}: --data DIR keeps the data in DIR, --memory loses them "
        "when the server ends\n",
        both ? "choose one of the two" : "say where the data shall lie");
    return kUsage;
  }
  if (const std::string missing = missing_of_tls(options); !missing.empty()) {
    say("latchkey serve: {}\n", missing);
    return kUsage;
  }
  for (const std::string& address : options.listen) {
    const bool any_port = address.ends_with(":0");
    if (any_port || std::ranges::count(options.listen, address) == 1) continue;
    say("latchkey serve: --listen {} is named twice\n", address);
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
  options.inherited = take_systemd_sockets();
  const Voices voices;
  options.log = [&voices](LogLevel level, std::string_view text) {
    voices.log.say(logged(level, text));
  };
  const int code = serve(std::move(options), signals, voices);
  voices.finish();
  return code;
}

}  // namespace

Command add_serve(CLI::App& app) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "Run a ZooKeeper-compatible server");
  command->footer(kServeExamples);
  add_serve_options(*command, *options);
  return {command, [options] { return run_serve(*options); }};
}

}  // namespace latchkey::app
