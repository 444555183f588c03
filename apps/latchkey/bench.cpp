#include "bench.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "exit_code.hpp"
#include "json.hpp"
#include "latchkey/mutex.hpp"
#include "options.hpp"
#include "service.hpp"
#include "table.hpp"
#include "terminal.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

using std::chrono::milliseconds;

struct BenchOptions {
  ServiceOptions service;
  std::int64_t for_ms = 2'000;
  int contenders = 8;
  bool json = false;
};

/// How long each of some things took.
struct Figures {
  const char* what = "";
  std::vector<Duration> each = {};
  Duration in_all{};
};

double ms(Duration length) { return std::chrono::duration<double, std::milli>(length).count(); }

double quantile_ms(const Figures& figures, std::size_t per_cent) {
  if (figures.each.empty()) return 0;
  return ms(figures.each[std::min(figures.each.size() - 1, figures.each.size() * per_cent / 100)]);
}

double per_second(const Figures& figures) {
  const double seconds = ms(figures.in_all) / 1'000;
  return seconds > 0 ? static_cast<double>(figures.each.size()) / seconds : 0;
}

/// Does `once` again and again until the time is over.
template <class Once>
Result<Figures> repeat(const char* what, Duration length, Once once) {
  Figures figures{what};
  const Instant begin = BootClock::now();
  Instant now = begin;
  while (now - begin < length) {
    if (const Result<void> done = once(); !done) return done.error();
    const Instant after = BootClock::now();
    figures.each.push_back(after - now);
    now = after;
  }
  figures.in_all = now - begin;
  std::ranges::sort(figures.each);
  return figures;
}

Result<void> lock_and_let_go(const Mutex& mutex) {
  Result<Lease> lease = mutex.lock(deadline_in(kAnswerPatience));
  if (!lease) return lease.error();
  // The next one's turn begins when the server has heard of it, so that is what is measured.
  const Result<void> gone = lease->release(deadline_in(kAnswerPatience));
  return gone ? Result<void>() : gone.error();
}

Result<Figures> sessions(const BenchOptions& options) {
  return repeat("session opened and closed", milliseconds(options.for_ms), [&]() -> Result<void> {
    Result<Session> session = open_aloud(options.service, deadline_in(kOpenPatience));
    if (!session) return session.error();
    return session->close(deadline_in(kAnswerPatience));
  });
}

/// Several sessions on one lock: from one holder's release to the next one's grant and release.
Result<Figures> hand_overs(const BenchOptions& options, const std::string& path) {
  std::vector<Session> all;
  for (int i = 0; i < options.contenders; ++i) {
    Result<Session> session = open_aloud(options.service, deadline_in(kOpenPatience));
    if (!session) return session.error();
    all.push_back(std::move(*session));
  }
  std::mutex mutex;
  std::optional<Error> trouble;
  std::vector<Instant> ends;
  {
    std::vector<std::jthread> threads;
    const Deadline end = deadline_in(milliseconds(options.for_ms));
    for (const Session& session : all) {
      threads.emplace_back([&, lock = Mutex(session, path)] {
        while (!end.has_passed(BootClock::now())) {
          const Result<void> done = lock_and_let_go(lock);
          const std::lock_guard guard(mutex);
          if (!done) trouble = done.error();
          if (trouble) return;
          ends.push_back(BootClock::now());
        }
      });
    }
  }
  for (Session& session : all) static_cast<void>(session.close(deadline_in(kAnswerPatience)));
  if (trouble) return *trouble;
  Figures figures{"lock handed over"};
  for (std::size_t i = 1; i < ends.size(); ++i) figures.each.push_back(ends[i] - ends[i - 1]);
  if (!ends.empty()) figures.in_all = ends.back() - ends.front();
  std::ranges::sort(figures.each);
  return figures;
}

void show(const std::vector<Figures>& all, const BenchOptions& options) {
  std::vector<std::string> lines;
  Table table{{"WHAT", "COUNT", "EACH SECOND", "MEDIAN MS", "99 % MS"}, {}};
  for (const Figures& one : all) {
    const double half = quantile_ms(one, 50);
    const double most = quantile_ms(one, 99);
    if (options.json) {
      lines.push_back(JsonLine()
                          .add("what", one.what)
                          .add("count", static_cast<std::int64_t>(one.each.size()))
                          .add_raw("per_second", fmt::format("{:.1f}", per_second(one)))
                          .add_raw("median_ms", fmt::format("{:.3f}", half))
                          .add_raw("p99_ms", fmt::format("{:.3f}", most))
                          .text());
      continue;
    }
    table.rows.push_back(
        {{one.what, std::to_string(one.each.size()), fmt::format("{:.0f}", per_second(one)),
          fmt::format("{:.2f}", half), fmt::format("{:.2f}", most)}});
  }
  if (!options.json) lines = render(table, 0, wanted_colour());
  print_lines(lines);
}

int bench(const BenchOptions& options) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string path = fmt::format("{}/bench-{}-{}", kLocksRoot, host.data(), ::getpid());
  Result<Session> session = open_aloud(options.service, deadline_in(kOpenPatience));
  if (!session) return complain("bench", session.error());
  if (const Result<std::string> address = service_address(options.service); address) {
    say("Measuring {}: three times {:.1f} s.\n", *address,
        static_cast<double>(options.for_ms) / 1'000);
  }
  std::vector<Figures> all;
  const auto add = [&](Result<Figures> figures) -> std::optional<Error> {
    if (!figures) return figures.error();
    all.push_back(std::move(*figures));
    return std::nullopt;
  };
  std::optional<Error> trouble = add(sessions(options));
  const Mutex mutex(*session, path);
  if (!trouble) {
    trouble = add(repeat("lock taken and let go", milliseconds(options.for_ms),
                         [&] { return lock_and_let_go(mutex); }));
  }
  if (!trouble) trouble = add(hand_overs(options, path));
  static_cast<void>(session->remove(path, deadline_in(kAnswerPatience)));
  static_cast<void>(session->close(deadline_in(kAnswerPatience)));
  show(all, options);
  return trouble ? complain("bench", *trouble) : kOk;
}

}  // namespace

Command add_bench(CLI::App& app) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure the service you use, from here");
  add_duration(*command, "--for", options->for_ms, "How long each of the three is measured");
  add_number(*command, "--contenders", options->contenders, 2, 100, "N [8]",
             "Sessions that hand a lock over");
  command->add_flag("--json", options->json, "One JSON object on each line");
  add_service_options(*command, options->service);
  command->footer(
      "Examples:\n"
      "  latchkey bench                      your own server, about six seconds\n"
      "  latchkey bench -z zk1:2181 --for 10 --json\n"
      "\n"
      "Sessions are opened and closed, a lock is taken and let go by one, and handed over among\n"
      "several. Every one of these waits for the service to have it on its disks. A lock below\n"
      "/locks is made for it and removed in the end; the service is under load meanwhile.");
  return {command, [options] { return bench(*options); }};
}

}  // namespace latchkey::app
