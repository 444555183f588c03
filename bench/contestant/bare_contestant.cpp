#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>

#include "bare_session.hpp"
#include "options.hpp"
#include "pairs.hpp"
#include "report.hpp"

// The floor, and the load on servers: the requests of a lock and unlock on bare sockets, pipelined,
// in one thread. It waits for what tells that the lock is held and not for the delete, as Latchkey
// does, and it knows that nobody else is there.
namespace latchkey::bench {
namespace {

/// One worker's lock. A pair begins when its requests are sent and ends when their last answer is
/// there.
struct Lane {
  std::string directory;
  std::string prefix;
  std::string node;  ///< What we created last.
  Clock::time_point start;
};

enum class Expected { kCreate, kList, kDelete, kMulti };

enum class Unlock {
  kAtOnce,    ///< The delete leaves alone, as soon as the lock is held.
  kWithNext,  ///< It leaves together with the next create and list.
  kJoined,    ///< It is one transaction with the next create, and nothing is listed.
};

Unlock unlock_of(const Options& options) {
  const std::string name = options.text("unlock", "at-once");
  if (name == "at-once") return Unlock::kAtOnce;
  if (name == "with-next") return Unlock::kWithNext;
  if (name == "joined") return Unlock::kJoined;
  throw std::invalid_argument("no unlock " + name);
}

class Wire {
 public:
  Wire(const Options& options, int number)
      : session_(options.text("connect")),
        unlock_(unlock_of(options)),
        lanes_(static_cast<std::size_t>(options.number("workers", 1))) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].directory =
          options.text("path") + '/' + std::to_string(number) + '-' + std::to_string(i);
      lanes_[i].prefix = lanes_[i].directory + "/_c_6b1d5a4e-8c53-4a0b-9a57-0f3d2c1b7e11-lock-";
      session_.make_path(lanes_[i].directory);
    }
  }

  void begin() {
    for (Lane& lane : lanes_) ask(lane);
    session_.flush();
  }

  /// Reads what is there, at least something; each lane that is done starts again.
  void turn(std::vector<std::uint32_t>& latencies_ns) {
    session_.read_some();
    bool sent = false;
    while (const auto reply = session_.take()) {
      BareSession::check(*reply);
      const auto [lane, what] = expected_.front();
      expected_.pop_front();
      note(*lane, what, reply->body);
      if (what == Expected::kCreate || what == Expected::kDelete) continue;
      latencies_ns.push_back(static_cast<std::uint32_t>((Clock::now() - lane->start).count()));
      go_on(*lane);
      sent = true;
    }
    if (sent) session_.flush();
  }

  /// Ends the session, so that nothing of it is left for whoever comes next.
  void end() { session_.close(); }

  [[nodiscard]] int fd() const { return session_.fd(); }

 private:
  void ask(Lane& lane) {
    lane.start = Clock::now();
    session_.add(wire::Op::kCreate2, entry(lane));
    session_.add(wire::Op::kGetChildren, wire::PathWatch{lane.directory, false});
    expected_.emplace_back(&lane, Expected::kCreate);
    expected_.emplace_back(&lane, Expected::kList);
  }

  void go_on(Lane& lane) {
    const wire::PathVersion gone{lane.node, -1};
    if (unlock_ == Unlock::kJoined) {
      lane.start = Clock::now();
      wire::Multi joined;
      joined.ops = {{wire::Op::kDelete, gone}, {wire::Op::kCreate, entry(lane)}};
      session_.add(wire::Op::kMulti, joined);
      expected_.emplace_back(&lane, Expected::kMulti);
      return;
    }
    session_.add(wire::Op::kDelete, gone);
    expected_.emplace_back(&lane, Expected::kDelete);
    if (unlock_ == Unlock::kAtOnce) session_.flush();
    ask(lane);
  }

  static void note(Lane& lane, Expected what, std::string_view body) {
    if (what == Expected::kCreate) {
      lane.node = wire::decode<wire::Create2Reply>(body).value().path;
    } else if (what == Expected::kMulti) {
      const auto reply = wire::decode<wire::MultiReply>(body).value();
      const auto* created = reply.results.size() == 2
                                ? std::get_if<wire::CreateReply>(&reply.results[1].body)
                                : nullptr;
      if (created == nullptr) throw std::runtime_error("a transaction was refused");
      lane.node = created->path;
    }
  }

  static wire::Create entry(const Lane& lane) {
    return open_node(lane.prefix, wire::CreateMode::kEphemeralSequential);
  }

  BareSession session_;
  Unlock unlock_;
  std::vector<Lane> lanes_;
  std::deque<std::pair<Lane*, Expected>> expected_;
};

/// Turns of whichever wire has something to read, until the time is over.
void spin(std::vector<std::unique_ptr<Wire>>& wires, int epoll, double seconds,
          std::vector<std::uint32_t>& latencies_ns) {
  const auto start = Clock::now();
  std::array<epoll_event, 64> events{};
  while (seconds_since(start) < seconds) {
    if (wires.size() == 1) {
      wires.front()->turn(latencies_ns);
      continue;
    }
    const int count = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 1'000);
    for (int i = 0; i < count; ++i) {
      static_cast<Wire*>(events.at(static_cast<std::size_t>(i)).data.ptr)->turn(latencies_ns);
    }
  }
}

void pairs(const Options& options, Report& report) {
  std::vector<std::unique_ptr<Wire>> wires;
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < options.number("sessions", 1); ++i) {
    wires.push_back(std::make_unique<Wire>(options, i));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = wires.back().get();
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, wires.back()->fd(), &event);
  }
  std::vector<std::uint32_t> latencies_ns;
  latencies_ns.reserve(1U << 20U);
  for (const auto& wire : wires) wire->begin();
  spin(wires, epoll, options.real("warmup", 0.5), latencies_ns);
  latencies_ns.clear();
  say_begin();
  const double processor_before = processor_s();
  const auto start = Clock::now();
  spin(wires, epoll, options.real("seconds", 1), latencies_ns);
  report.add("seconds", seconds_since(start));
  report.add("cpu_s", processor_s() - processor_before);
  report.add("ops", static_cast<double>(latencies_ns.size()));
  report.add_latencies(latencies_ns);
  for (const auto& wire : wires) wire->end();
  report.add("rss_kb", static_cast<double>(resident_kb()));
  report.add("violations", 0);
}

/// Nodes that come and go again, a create and a delete each, in crowds that servers sync together.
void come_and_go(BareSession& session, const std::string& path, int pairs) {
  constexpr int kAtOnce = 100;
  for (int done = 0; done < pairs; done += kAtOnce) {
    const int end = std::min(pairs, done + kAtOnce);
    for (int i = done; i < end; ++i) {
      const std::string node = path + "/_c_6b1d5a4e-8c53-4a0b-9a57-0f3d2c1b7e11-lock-" +
                               std::to_string(1'000'000'000 + i);
      session.add(wire::Op::kCreate, open_node(node, wire::CreateMode::kEphemeral));
      session.add(wire::Op::kDelete, wire::PathVersion{node, -1});
    }
    session.flush();
    for (int i = done; i < end; ++i) {
      BareSession::check(session.receive());
      BareSession::check(session.receive());
    }
  }
}

/// `--nodes` of `--bytes` each, a thousand in one request, `--pairs` of a lock and unlock, and
/// `--idle` sessions that stay until the driver has looked.
void fill(const Options& options, Report& report) {
  BareSession session(options.text("connect"), 40'000);
  session.make_path(options.text("path"));
  constexpr int kAtOnce = 1'000;
  const int nodes = options.number("nodes", 0);
  const std::string data(static_cast<std::size_t>(options.number("bytes", 100)), 'x');
  for (int done = 0; done < nodes; done += kAtOnce) {
    wire::Multi multi;
    for (int i = done; i < std::min(nodes, done + kAtOnce); ++i) {
      multi.ops.push_back(
          {wire::Op::kCreate, open_node(options.text("path") + "/node-" + std::to_string(i),
                                        wire::CreateMode::kPersistent, data)});
    }
    session.call(wire::Op::kMulti, multi);
  }
  come_and_go(session, options.text("path"), options.number("pairs", 0));
  std::vector<std::unique_ptr<BareSession>> idle;
  for (int i = 0; i < options.number("idle", 0); ++i) {
    idle.push_back(std::make_unique<BareSession>(options.text("connect"), 40'000));
  }
  say_begin();
  wait_for_go();
  report.add("ops", nodes);
  report.add("violations", 0);
}

void run(const Options& options, Report& report) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const std::string workload = options.text("workload");
  if (workload == "pairs") return pairs(options, report);
  if (workload == "fill") return fill(options, report);
  throw std::invalid_argument("no workload " + workload);
}

}  // namespace
}  // namespace latchkey::bench

int main(int argc, char** argv) {
  return latchkey::bench::run_contestant(argc, argv, latchkey::bench::run);
}
