#include "serve.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "exit_code.hpp"
#include "latchkey/server.hpp"
#include "latchkey/version.hpp"
#include "serve_options.hpp"
#include "serve_signals.hpp"
#include "systemd.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

constexpr int kFailed = 1;

constexpr const char* kExamples =
    "Examples:\n"
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

void say_logged(LogLevel level, std::string_view text) {
  const char* tag = level >= LogLevel::kError     ? "error: "
                    : level == LogLevel::kWarning ? "warning: "
                                                  : "";
  say("latchkey serve: {}{}\n", tag, text);
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

int run_serve(const ServeOptions& asked) {
  if (asked.memory == !asked.server.data_folder.empty()) {
    say("latchkey serve: {}: --data DIR keeps the data in DIR, --memory loses them "
        "when the server ends\n",
        asked.memory ? "choose one of the two" : "say where the data shall lie");
    return kUsage;
  }
  for (const std::string& address : asked.server.listen) {
    const bool any_port = address.ends_with(":0");
    if (any_port || std::ranges::count(asked.server.listen, address) == 1) continue;
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

  ServerOptions options = server_options(asked);
  options.inherited = take_systemd_sockets();
  if (options.listen.empty() && options.unix_path.empty() && options.inherited.empty()) {
    options.listen = {"127.0.0.1:2181"};
  }
  options.log = say_logged;
  StartSignals early(signals);
  options.cancel_start = early.token();
  Result<Server> server = Server::start(options);
  early.end();
  if (!server && server.error() == Code::kCancelled) {
    say("latchkey serve: ended before it had read its data\n");
    return 0;
  }
  if (!server) return refuse(server.error());
  if (early.token().stop_requested()) {
    const Result<void> ended = server->stop();
    return ended ? 0 : refuse(ended.error());
  }
  say_where(*server, options);
  notify_systemd("READY=1");
  std::atomic<bool> stopping = false;
  wait_for_end(*server, signals, stopping);
  const Result<void> ended = server->stop();
  return ended ? 0 : refuse(ended.error());
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
