#include <algorithm>
#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <zookeeper/zookeeper.h>

#include "pairs.hpp"

// Apache's C client with the plainest lock that is right: create, list, delete, each waited for,
// and a watch on the one ahead. What a program that writes its own recipe reaches.
namespace latchkey::bench {
namespace {

/// Set once, by whatever thread.
class Signal {
 public:
  void set() {
    const std::lock_guard guard(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

void must(int outcome, const char* what) {
  if (outcome != ZOK) throw std::runtime_error(std::string(what) + ": " + zerror(outcome));
}

void on_session(zhandle_t*, int, int state, const char*, void* context) {
  if (state == ZOO_CONNECTED_STATE) static_cast<Signal*>(context)->set();
}

void on_node(zhandle_t*, int type, int, const char*, void* context) {
  if (type != ZOO_SESSION_EVENT) static_cast<Signal*>(context)->set();
}

class Handle {
 public:
  explicit Handle(const std::string& connect)
      : handle_(::zookeeper_init(connect.c_str(), on_session, 30'000, nullptr, &connected_, 0)) {
    if (handle_ == nullptr) throw std::runtime_error("no handle");
    connected_.wait();
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { ::zookeeper_close(handle_); }

  [[nodiscard]] zhandle_t* get() const { return handle_; }

  void make_parents(const std::string& path) const {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      ::zoo_create(handle_, path.substr(0, end).c_str(), nullptr, -1, &ZOO_OPEN_ACL_UNSAFE,
                   ZOO_PERSISTENT, nullptr, 0);
      if (end == std::string::npos) return;
    }
  }

 private:
  Signal connected_;
  zhandle_t* handle_;
};

class PlainLocker final : public Locker {
 public:
  PlainLocker(const Handle& handle, std::string directory)
      : handle_(handle.get()), directory_(std::move(directory)) {
    handle.make_parents(directory_);
  }

  std::int64_t lock() override {
    std::array<char, 512> path{};
    must(::zoo_create(handle_, (directory_ + "/lock-").c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                      ZOO_EPHEMERAL | ZOO_SEQUENCE, path.data(), path.size()),
         "create");
    path_ = path.data();
    const std::string self = path_.substr(directory_.size() + 1);
    while (true) {
      const std::string ahead = one_ahead_of(self);
      if (ahead.empty()) return std::stoll(self.substr(5)) + 1;
      Signal gone;
      // get, not exists: exists would leave a watch behind on a node that is gone already.
      int size = 0;
      const int found = ::zoo_wget(handle_, (directory_ + '/' + ahead).c_str(), on_node, &gone,
                                   nullptr, &size, nullptr);
      if (found == ZOK) {
        gone.wait();
      } else if (found != ZNONODE) {
        must(found, "get");
      }
    }
  }

  void unlock() override { must(::zoo_delete(handle_, path_.c_str(), -1), "delete"); }

 private:
  [[nodiscard]] std::string one_ahead_of(const std::string& self) const {
    String_vector names{};
    must(::zoo_get_children(handle_, directory_.c_str(), 0, &names), "list");
    std::string ahead;
    for (int i = 0; i < names.count; ++i) {
      if (names.data[i] < self && ahead < names.data[i]) ahead = names.data[i];
    }
    ::deallocate_String_vector(&names);
    return ahead;
  }

  zhandle_t* handle_;
  std::string directory_;
  std::string path_;
};

void run(const Options& options, Report& report) {
  ::zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  std::vector<std::unique_ptr<Handle>> handles;
  for (int i = 0; i < options.number("sessions", 1); ++i) {
    handles.push_back(std::make_unique<Handle>(options.text("connect")));
  }
  const auto locker = [&](int session, const std::string& path) {
    return std::make_unique<PlainLocker>(*handles.at(static_cast<std::size_t>(session)), path);
  };
  if (options.text("workload") == "pairs") {
    report.add("violations", run_pairs(options, locker, report));
    return;
  }
  if (options.text("workload") != "hold") throw std::invalid_argument("no such workload");
  std::vector<std::unique_ptr<Locker>> held;
  for (int i = 0; i < options.number("held", 1); ++i) {
    held.push_back(locker(0, options.text("path") + '/' + std::to_string(i)));
    held.back()->lock();
  }
  say_begin();
  wait_for_go();
  report.add("ops", static_cast<double>(held.size()));
  report.add("rss_kb", static_cast<double>(resident_kb()));
  report.add("violations", 0);
}

}  // namespace
}  // namespace latchkey::bench

int main(int argc, char** argv) {
  return latchkey::bench::run_contestant(argc, argv, latchkey::bench::run);
}
