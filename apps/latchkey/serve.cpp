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
#include "latchkey/server.hpp"
#include "latchkey/version.hpp"
#include "locate.hpp"
#include "own_server.hpp"
#include "serve_options.hpp"
#include "serve_signals.hpp"
#include "systemd.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

constexpr int kFailed = 1;
constexpr std::chrono::seconds kLastWords(1);

constexpr const char* kExamples =
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

int refuse(const Error& error) {
  if (error.code() != Code::kInvalidOption) {
    complain("serve", error);
    return kFailed;
  }
  complain("serve", Error(error.code(), as_typed(error.message())));
  return kUsage;
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

Result<Server> start(ServerOptions& options) {
  const bool told_where =
      !options.listen.empty() || !options.unix_path.empty() || !options.inherited.empty();
  if (!told_where) take_default_addresses(options);
  Result<Server> server = Server::start(options);
  if (told_where || server || !server.error().message().starts_with("listen on unix:")) {
    return server;
  }
  options.log(LogLevel::kWarning,
              "no Unix socket; name one with --unix: " + server.error().message());
  options.unix_path.clear();
  return Server::start(options);
}

int serve(ServerOptions options, const sigset_t& signals, const Speaker& speaker) {
  StartSignals early(signals);
  options.cancel_start = early.token();
  Result<Server> server = start(options);
  early.end();
  const auto end = [&speaker](const Result<void>& ended) {
    speaker.finish(kLastWords);
    return ended ? 0 : refuse(ended.error());
  };
  if (!server && server.error() == Code::kCancelled) {
    say("latchkey serve: ended before it had read its data\n");
    return 0;
  }
  if (!server) return end(server.error());
  if (early.token().stop_requested()) return end(server->stop());
  say_where(*server, options);
  notify_systemd("READY=1");
  std::atomic<bool> stopping = false;
  wait_for_end(*server, signals, stopping);
  return end(server->stop());
}

int run_serve(const ServeOptions& asked) {
  ServerOptions options = server_options(asked);
  const bool both = asked.memory && !options.data_folder.empty();
  if (!asked.memory && options.data_folder.empty()) {
    options.data_folder = default_data_folder(environment());
    std::error_code ignored;  // The server says what it cannot do.
    std::filesystem::create_directories(options.data_folder.parent_path(), ignored);
  }
  if (both || (!asked.memory && options.data_folder.empty())) {
    say("latchkey serve: {}: --data DIR keeps the data in DIR, --memory loses them "
        "when the server ends\n",
        both ? "choose one of the two" : "say where the data shall lie");
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
  // Whoever does not read what is said holds up no server.
  const Speaker speaker;
  options.log = [&speaker](LogLevel level, std::string_view text) {
    speaker.say(logged(level, text));
  };
  return serve(std::move(options), signals, speaker);
}

}  // namespace

Command add_serve(CLI::App& app) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "Run a ZooKeeper-compatible server");
  command->footer(kExamples);
  add_serve_options(*command, *options);
  return {command, [options] { return run_serve(*options); }};
}

}  // namespace latchkey::app
