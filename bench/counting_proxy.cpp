#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <iostream>
#include <string>

#include "support/sockets.hpp"

// Stands between a client and a ZooKeeper server and counts what passes: requests, answers, events
// and bytes, the same way for every client. It looks at lengths and xids only.
//
//     latchkey_counting_proxy 127.0.0.1:2182 127.0.0.1:2181
//
// prints "begin" when it listens; for each line on its standard input it prints the counters as one
// line of JSON; it ends with its standard input. Thread safety: none needed, it has one thread.
namespace latchkey::bench {
namespace {

using namespace std::chrono_literals;
using test_support::Endpoint;
using test_support::Fd;

struct Counters {
  std::uint64_t requests = 0;
  std::uint64_t events = 0;
  std::uint64_t bytes_up = 0;
  std::uint64_t bytes_down = 0;
  double last_up = 0;  ///< When the last byte came from a client, on the monotonic clock.
};

/// Follows one direction: where a message begins, and the first eight bytes of each.
class Framer {
 public:
  template <class OnMessage>
  void feed(const char* bytes, std::size_t count, OnMessage on_message) {
    while (count > 0) {
      if (left_ > 0) {
        const std::size_t skipped = std::min<std::size_t>(left_, count);
        left_ -= skipped;
        bytes += skipped;
        count -= skipped;
        continue;
      }
      head_.at(held_++) = *bytes++;
      --count;
      if (held_ < head_.size()) continue;
      held_ = 0;
      left_ = number(0) - 4;  // The xid has been read.
      on_message(static_cast<std::int32_t>(number(4)), first_);
      first_ = false;
    }
  }

 private:
  [[nodiscard]] std::uint32_t number(std::size_t at) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      value = (value << 8U) | static_cast<unsigned char>(head_.at(at + i));
    }
    return value;
  }

  std::array<char, 8> head_{};
  std::size_t held_ = 0;
  std::size_t left_ = 0;
  bool first_ = true;
};

struct Side {
  Fd fd;
  Framer framer;
  std::string unsent;  ///< For this side; what the kernel did not take at once.
  bool watching_output = false;
};

struct Link {
  Side client;
  Side server;
  bool over = false;
};

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Proxy {
 public:
  Proxy(const std::string& listen, const std::string& server)
      : server_(server),
        listener_(test_support::listen_on(Endpoint(listen))),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    watch(listener_.get(), &listener_, EPOLLIN, EPOLL_CTL_ADD);
    watch(STDIN_FILENO, nullptr, EPOLLIN, EPOLL_CTL_ADD);
  }

  void run() {
    std::cout << "begin" << std::endl;
    std::array<epoll_event, 64> events{};
    while (true) {
      const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
      for (int i = 0; i < count; ++i) {
        void* what = events.at(static_cast<std::size_t>(i)).data.ptr;
        if (what == nullptr) {
          if (!answer()) return;
        } else if (what == &listener_) {
          accept();
        } else {
          carry(*static_cast<Link*>(what));
        }
      }
    }
  }

 private:
  void watch(int fd, void* what, std::uint32_t events, int how) const {
    epoll_event event{};
    event.events = events;
    event.data.ptr = what;
    ::epoll_ctl(epoll_.get(), how, fd, &event);
  }

  bool answer() const {
    char byte = 0;
    if (::read(STDIN_FILENO, &byte, 1) != 1) return false;
    if (byte != '\n') return true;
    std::printf(
        "{\"requests\": %lu, \"events\": %lu, \"bytes_up\": %lu, \"bytes_down\": %lu, "
        "\"last_up\": %.6f}\n",
        counters_.requests, counters_.events, counters_.bytes_up, counters_.bytes_down,
        counters_.last_up);
    std::fflush(stdout);
    return true;
  }

  void accept() {
    while (true) {
      Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) return;
      Link& link = links_.emplace_back();
      link.client.fd = std::move(fd);
      link.server.fd = test_support::connect_to(server_, deadline_in(5s));
      if (!link.server.fd) {
        end(link);
        continue;
      }
      for (Side* side : {&link.client, &link.server}) {
        test_support::send_at_once(side->fd.get());
        watch(side->fd.get(), &link, EPOLLIN, EPOLL_CTL_ADD);
      }
    }
  }

  void carry(Link& link) {
    if (link.over) return;
    const auto from_client = [&](std::int32_t, bool) { ++counters_.requests; };
    const auto from_server = [&](std::int32_t xid, bool first) {
      if (!first && xid == -1) ++counters_.events;
    };
    const bool alive =
        pump(link, link.client, link.server, counters_.bytes_up, from_client, &counters_.last_up) &&
        pump(link, link.server, link.client, counters_.bytes_down, from_server, nullptr);
    if (!alive) end(link);
  }

  template <class OnMessage>
  bool pump(Link& link, Side& from, Side& to, std::uint64_t& bytes, OnMessage on_message,
            double* moment) {
    std::string read;
    const auto got = test_support::receive_some(from.fd.get(), read);
    if (!read.empty()) {
      bytes += read.size();
      from.framer.feed(read.data(), read.size(), on_message);
      if (moment != nullptr) *moment = now_s();
      to.unsent += read;
    }
    if (!to.unsent.empty()) {
      const ssize_t sent =
          ::send(to.fd.get(), to.unsent.data(), to.unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN) return false;
      if (sent > 0) to.unsent.erase(0, static_cast<std::size_t>(sent));
    }
    if (to.watching_output == to.unsent.empty()) {
      to.watching_output = !to.unsent.empty();
      const std::uint32_t events = to.watching_output ? EPOLLIN | EPOLLOUT : EPOLLIN;
      watch(to.fd.get(), &link, events, EPOLL_CTL_MOD);
    }
    return got != test_support::Received::kEnd;
  }

  /// The link itself stays: an event for it may be waiting.
  static void end(Link& link) {
    link.over = true;
    link.client.fd.reset();
    link.server.fd.reset();
    link.client.unsent.clear();
    link.server.unsent.clear();
  }

  Endpoint server_;
  Fd listener_;
  Fd epoll_;
  std::deque<Link> links_;
  Counters counters_;
};

}  // namespace
}  // namespace latchkey::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: latchkey_counting_proxy LISTEN SERVER\n");
    return 2;
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  try {
    latchkey::bench::Proxy(argv[1], argv[2]).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
