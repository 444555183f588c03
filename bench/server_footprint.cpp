#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "latchkey/server.hpp"
#include "support/apache_server.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/sockets.hpp"

// What the embedded server takes up: memory, processor, time to start; beside Apache ZooKeeper, in
// one run on one machine. Prints a table of Markdown. See docs/benchmarks.md.
namespace latchkey::bench {
namespace {

using namespace std::chrono_literals;
using test_support::ApacheServer;
using test_support::Child;
using test_support::create_request;
using test_support::Endpoint;
using test_support::RawClient;
using Clock = std::chrono::steady_clock;

constexpr int kNodes = 100'000;
constexpr int kSessions = 10'000;
constexpr std::size_t kNodeBytes = 100;
constexpr int kStarts = 20;
constexpr int kApacheStarts = 3;
constexpr std::chrono::seconds kIdle(10);

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

double memory_mb(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1'024;
  }
  throw std::runtime_error("no VmRSS of " + std::to_string(process));
}

/// User and system time that a process has used up to now.
double processor_ms(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text.erase(0, text.rfind(')') + 2);  // The name may hold anything.
  long user = 0;
  long system = 0;
  if (std::sscanf(text.c_str(), "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user,
                  &system) != 2) {
    throw std::runtime_error("no times of " + std::to_string(process));
  }
  return static_cast<double>(user + system) * 1'000 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// Dials without a pause until `ruok` is answered: what a client that cannot wait would see.
void wait_for_answer(const std::string& endpoint) {
  const Endpoint server(endpoint);
  while (test_support::ask_word(server, "ruok", deadline_in(1s)) != "imok") {
    std::this_thread::yield();
  }
}

/// One of the two: how to start it, and where it is then.
struct Subject {
  std::string endpoint;
  std::function<pid_t()> start;
  std::function<void()> stop;
};

struct Footprint {
  double start_ms = 0;
  double best_start_ms = 0;
  double idle_mb = 0;
  double idle_processor_ms = 0;
  double full_mb = 0;
  double full_processor_ms = 0;
};

void make_nodes(const std::string& endpoint) {
  RawClient client(endpoint, 120s);
  if (!client.connect(60'000)) throw std::runtime_error("no session on " + endpoint);
  client.call(wire::Op::kCreate, create_request("/bench", wire::CreateMode::kPersistent));
  constexpr int kAtOnce = 1'000;
  for (int done = 0; done < kNodes; done += kAtOnce) {
    wire::Multi multi;
    for (int i = done; i < done + kAtOnce; ++i) {
      wire::Create request =
          create_request("/bench/node-" + std::to_string(i), wire::CreateMode::kPersistent);
      request.data = std::string(kNodeBytes, 'x');
      multi.ops.push_back({wire::Op::kCreate, request});
    }
    const auto reply = client.call(wire::Op::kMulti, multi);
    const auto parts = reply ? reply->as<wire::MultiReply>() : std::nullopt;
    if (!parts || parts->results.front().op == wire::Op::kError) {
      throw std::runtime_error("nodes were refused by " + endpoint);
    }
  }
}

std::vector<std::unique_ptr<RawClient>> open_sessions(const std::string& endpoint) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < kSessions; ++i) {
    clients.push_back(std::make_unique<RawClient>(endpoint, 120s));
    if (!clients.back()->connect(60'000)) throw std::runtime_error("no session on " + endpoint);
  }
  return clients;
}

double processor_while_idle_ms(pid_t process) {
  const double before = processor_ms(process);
  static_cast<void>(test_support::eventually([] { return false; }, deadline_in(kIdle)));
  return processor_ms(process) - before;
}

Footprint measure(const Subject& subject, int starts) {
  Footprint footprint;
  std::vector<double> start_ms;
  pid_t process = -1;
  for (int i = 0; i < starts; ++i) {
    if (i > 0) subject.stop();
    const auto start = Clock::now();
    process = subject.start();
    wait_for_answer(subject.endpoint);
    start_ms.push_back(ms_since(start));
  }
  footprint.start_ms = median(start_ms);
  footprint.best_start_ms = *std::min_element(start_ms.begin(), start_ms.end());
  footprint.idle_processor_ms = processor_while_idle_ms(process);
  footprint.idle_mb = memory_mb(process);
  make_nodes(subject.endpoint);
  const auto sessions = open_sessions(subject.endpoint);
  footprint.full_mb = memory_mb(process);
  footprint.full_processor_ms = processor_while_idle_ms(process);
  subject.stop();
  return footprint;
}

Footprint measure_latchkey() {
  const std::string endpoint = test_support::loopback(test_support::free_port());
  std::optional<Child> process;
  return measure(
      {endpoint,
       [&] {
         process.emplace(std::vector<std::string>{LATCHKEY_COMMAND, "serve", "--memory", "--listen",
                                                  endpoint, "--max-session-timeout", "60s"});
         return process->pid();
       },
       [&] { process.reset(); }},
      kStarts);
}

Footprint measure_apache() {
  test_support::ApacheOptions options;
  options.tick_ms = 2'000;
  options.container_check_ms = 60'000;
  options.java_flags = {"-Xmx1000m"};  // What Apache's own script gives it.
  ApacheServer server(options);
  return measure({server.connect_string(),
                  [&] {
                    server.launch();
                    return server.pid();
                  },
                  [&] { server.wipe(); }},
                 kApacheStarts);
}

double start_in_process_ms() {
  std::vector<double> values;
  for (int i = 0; i < kStarts; ++i) {
    const auto start = Clock::now();
    const Result<Server> server = Server::start();
    values.push_back(ms_since(start));
    if (!server) throw std::runtime_error(server.error().message());
  }
  return median(values);
}

void row(const char* what, double ours, double theirs, const char* unit) {
  if (ours > 0) {
    std::printf("| %s | %.1f %s | %.1f %s | %.1f |\n", what, ours, unit, theirs, unit,
                theirs / ours);
  } else {
    std::printf("| %s | %.1f %s | %.1f %s | |\n", what, ours, unit, theirs, unit);
  }
}

void allow_many_sockets() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run() {
  allow_many_sockets();
  const double in_process = start_in_process_ms();
  const Footprint ours = measure_latchkey();
  const Footprint theirs = measure_apache();
  std::printf("%d nodes of %zu bytes, %d sessions; starts: median of %d and of %d\n\n", kNodes,
              kNodeBytes, kSessions, kStarts, kApacheStarts);
  std::printf("| | latchkey serve | Apache ZooKeeper | ratio |\n|---|---|---|---|\n");
  row("start to the first answer, median", ours.start_ms, theirs.start_ms, "ms");
  row("start to the first answer, best", ours.best_start_ms, theirs.best_start_ms, "ms");
  row("memory, idle", ours.idle_mb, theirs.idle_mb, "MB");
  row("memory with nodes and sessions", ours.full_mb, theirs.full_mb, "MB");
  row("processor in 10 s, idle", ours.idle_processor_ms, theirs.idle_processor_ms, "ms");
  row("processor in 10 s, nodes and silent sessions", ours.full_processor_ms,
      theirs.full_processor_ms, "ms");
  std::printf("\nServer::start() in memory, inside the process: %.2f ms\n", in_process);
  return 0;
}

}  // namespace
}  // namespace latchkey::bench

int main() {
  try {
    return latchkey::bench::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
