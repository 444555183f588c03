#include "support/fault_proxy.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace latchkey::test_support {

/// The proxy's thread and all it owns. Other threads reach it only through run(), so its state
/// needs no lock.
class FaultProxy::Loop {
 public:
  Loop(const std::string& server, const FaultProxyOptions& options, TrafficLog& log)
      : log_(log),
        framing_(options.framing),
        dial_(options.dial),
        address_(options.listen.empty() ? loopback(free_port()) : options.listen),
        server_(server),
        listener_(listen_on(address_)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) throw std::system_error(errno, std::generic_category(), "eventfd");
    thread_ = std::thread([this] { serve(); });
  }

  ~Loop() {
    run([this] { stopping_ = true; });
    thread_.join();
  }

  /// Has `work` done by the proxy's thread, waits for it, and throws what it throws.
  void run(const std::function<void()>& work) {
    std::unique_lock lock(mutex_);
    Job job{work};
    jobs_.push_back(&job);
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof one));
    job_done_.wait(lock, [&] { return job.done; });
    if (job.error) std::rethrow_exception(job.error);
  }

  [[nodiscard]] const std::string& address() const { return address_.text(); }

  int arm(FaultKind kind, const Match& match, std::chrono::milliseconds delay) {
    int id = 0;
    run([&] { plan_.arm({id = ++last_fault_, kind, match, delay}); });
    return id;
  }

  // For jobs only.
  FaultPlan& plan() { return plan_; }
  Holds& holds() { return holds_; }
  std::list<ProxyLink>& links() { return links_; }
  void close_all(Ending ending) {
    for (ProxyLink& link : links_) link.close(ending);
    callers_.clear();
  }
  [[nodiscard]] int accepted() const { return accepted_; }
  void set_server(const std::string& server) { server_ = Endpoint(server); }
  void listen() {
    if (!listener_) listener_ = listen_on(address_);
  }
  void stop_listening() { listener_.reset(); }

 private:
  /// A client that has no connection to the server yet.
  struct Caller {
    int number = 0;
    Fd client;
    Instant give_up;
  };

  struct Job {
    const std::function<void()>& work;
    bool done = false;
    std::exception_ptr error{};
  };

  void serve() {
    while (!stopping_) {
      wait_and_serve_links();
      do_jobs();
      std::erase_if(links_, [](const ProxyLink& link) { return link.closed(); });
    }
    links_.clear();
  }

  void wait_and_serve_links() {
    std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    Instant due = Instant::max();
    if (!callers_.empty()) due = BootClock::now() + std::chrono::milliseconds(10);
    const auto add = [&](int fd, short events) {
      polled.push_back({events == 0 ? -1 : fd, events, 0});
    };
    for (const ProxyLink& link : links_) {
      const ProxyLink::Interest interest = link.interest(holds_);
      add(link.client_fd(), interest.client);
      add(link.server_fd(), interest.server);
      due = std::min(due, link.next_due());
    }
    if (::poll(polled.data(), polled.size(), poll_timeout_ms(due)) < 0) return;
    std::size_t next = 2;
    for (ProxyLink& link : links_) {
      link.serve({polled[next].revents, polled[next + 1].revents}, holds_);
      next += 2;
    }
    if ((polled[1].revents & POLLIN) != 0) take_connection();
    connect_callers();
  }

  void take_connection() {
    Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client) return;
    send_at_once(client.get());
    const auto patience = std::chrono::seconds(dial_ == Dial::kPatiently ? 2 : 0);
    callers_.push_back({++accepted_, std::move(client), BootClock::now() + patience});
  }

  /// Dials the server for every caller, and forgets those who have got through or waited enough.
  void connect_callers() {
    const Instant now = BootClock::now();
    std::erase_if(callers_, [&](Caller& caller) {
      Fd server = start_connect(server_);
      if (server) {
        links_.emplace_back(ProxyLink::Context{plan_, log_, framing_}, caller.number,
                            std::move(caller.client), std::move(server));
        return true;
      }
      if (caller.give_up > now) return false;
      close_with_reset(caller.client.get());
      return true;
    });
  }

  void do_jobs() {
    const std::lock_guard lock(mutex_);
    std::uint64_t ignored = 0;
    static_cast<void>(!::read(wake_.get(), &ignored, sizeof ignored));
    for (Job* job : std::exchange(jobs_, {})) {
      try {
        job->work();
      } catch (...) {
        job->error = std::current_exception();
      }
      job->done = true;
    }
    job_done_.notify_all();
  }

  // Constant after construction.
  TrafficLog& log_;
  const Framing framing_;
  const Dial dial_;
  const Endpoint address_;

  // The proxy's thread only.
  Endpoint server_;
  Fd listener_;
  FaultPlan plan_;
  Holds holds_;
  std::list<ProxyLink> links_;
  std::vector<Caller> callers_;
  int accepted_ = 0;
  int last_fault_ = 0;
  bool stopping_ = false;

  Fd wake_;
  std::mutex mutex_;
  std::condition_variable job_done_;
  std::vector<Job*> jobs_;
  std::thread thread_;
};

FaultProxy::FaultProxy(const std::string& server, const FaultProxyOptions& options)
    : loop_(std::make_unique<Loop>(server, options, log_)) {}

FaultProxy::~FaultProxy() = default;

std::string FaultProxy::connect_string() const { return loop_->address(); }

int FaultProxy::arm(FaultKind kind, const Match& match, std::chrono::milliseconds delay) {
  return loop_->arm(kind, match, delay);
}

int FaultProxy::cut_before_request(const Match& match) {
  return arm(FaultKind::kCutBeforeRequest, match);
}

int FaultProxy::cut_after_request(const Match& match) {
  return arm(FaultKind::kCutAfterRequest, match);
}

int FaultProxy::cut_before_reply(const Match& match) {
  return arm(FaultKind::kCutBeforeReply, match);
}

int FaultProxy::cut_after_reply(const Match& match) {
  return arm(FaultKind::kCutAfterReply, match);
}

int FaultProxy::delay_request(const Match& match, std::chrono::milliseconds delay) {
  return arm(FaultKind::kDelayRequest, match, delay);
}

int FaultProxy::delay_reply(const Match& match, std::chrono::milliseconds delay) {
  return arm(FaultKind::kDelayReply, match, delay);
}

int FaultProxy::stop_at_request(const Match& match) {
  return arm(FaultKind::kDelayRequest, match, std::chrono::milliseconds::max());
}

int FaultProxy::stop_at_reply(const Match& match) {
  return arm(FaultKind::kDelayReply, match, std::chrono::milliseconds::max());
}

void FaultProxy::disarm(int fault) {
  loop_->run([&] { loop_->plan().disarm(fault); });
}

void FaultProxy::disarm_all() {
  loop_->run([&] { loop_->plan().disarm_all(); });
}

bool FaultProxy::wait_until_fired(int fault, Deadline deadline) {
  return log_.wait_until_fired(fault, 1, deadline);
}

void FaultProxy::hold(Hold which) {
  loop_->run([&] {
    Holds& holds = loop_->holds();
    holds.to_server = holds.to_server || which != Hold::kToClient;
    holds.to_client = holds.to_client || which != Hold::kToServer;
  });
}

void FaultProxy::release() {
  loop_->run([&] {
    loop_->holds() = {};
    for (ProxyLink& link : loop_->links()) link.release();
  });
}

void FaultProxy::cut_all() {
  loop_->run([&] { loop_->close_all(Ending::kOrderly); });
}

void FaultProxy::reset_all() {
  loop_->run([&] { loop_->close_all(Ending::kReset); });
}

void FaultProxy::refuse() {
  loop_->run([&] { loop_->stop_listening(); });
}

void FaultProxy::accept() {
  loop_->run([&] { loop_->listen(); });
}

void FaultProxy::retarget(const std::string& server) {
  loop_->run([&] { loop_->set_server(server); });
}

int FaultProxy::connections_accepted() const {
  int result = 0;
  loop_->run([&] { result = loop_->accepted(); });
  return result;
}

std::size_t FaultProxy::connections_open() const {
  std::size_t result = 0;
  loop_->run([&] {
    for (const ProxyLink& link : loop_->links()) result += link.closed() ? 0U : 1U;
  });
  return result;
}

}  // namespace latchkey::test_support
