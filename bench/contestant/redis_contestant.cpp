#include <fcntl.h>
#include <poll.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "pairs.hpp"
#include "support/sockets.hpp"

// The usual lock on Redis: SET key value NX PX, released by a script that compares the value. It
// has no queue: who finds it taken asks again at once. A connection for each worker.
namespace latchkey::bench {
namespace {

using namespace std::chrono_literals;

class Connection {
 public:
  explicit Connection(const std::string& endpoint)
      : fd_(test_support::connect_to(test_support::Endpoint(endpoint), deadline_in(10s))) {
    if (!fd_) throw std::runtime_error("no connection to " + endpoint);
    test_support::send_at_once(fd_.get());
    ::fcntl(fd_.get(), F_SETFL, 0);  // Blocking: one system call for each answer.
  }

  /// Sends a command and returns its answer, which is one line for those used here.
  std::string ask(const std::string& command) {
    if (::send(fd_.get(), command.data(), command.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(command.size())) {
      throw std::runtime_error("Redis hung up");
    }
    std::string answer;
    while (!answer.ends_with("\r\n")) {
      char bytes[256];
      const ssize_t count = ::recv(fd_.get(), bytes, sizeof bytes, 0);
      if (count <= 0) throw std::runtime_error("Redis hung up");
      answer.append(bytes, static_cast<std::size_t>(count));
    }
    if (answer.front() == '-') throw std::runtime_error(answer);
    return answer;
  }

 private:
  test_support::Fd fd_;
};

std::string command(std::initializer_list<std::string> words) {
  std::string text = '*' + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    text += '$' + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return text;
}

class RedisLocker final : public Locker {
 public:
  RedisLocker(const Options& options, const std::string& key, int number)
      : connection_(options.text("connect")) {
    const std::string self = "worker-" + std::to_string(number);
    set_ = command({"SET", key, self, "NX", "PX", "30000"});
    unset_ = command({"EVAL",
                      "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) "
                      "else return 0 end",
                      "1", key, self});
  }

  std::int64_t lock() override {
    while (!connection_.ask(set_).starts_with("+OK")) {
    }
    return 0;
  }

  void unlock() override {
    if (!connection_.ask(unset_).starts_with(":1")) throw std::runtime_error("not ours any more");
  }

 private:
  Connection connection_;
  std::string set_;
  std::string unset_;
};

void run(const Options& options, Report& report) {
  if (options.text("workload") != "pairs") throw std::invalid_argument("no such workload");
  int number = 0;
  const auto locker = [&](int, const std::string& path) {
    return std::make_unique<RedisLocker>(options, path, ++number);
  };
  report.add("violations", run_pairs(options, locker, report));
}

}  // namespace
}  // namespace latchkey::bench

int main(int argc, char** argv) {
  return latchkey::bench::run_contestant(argc, argv, latchkey::bench::run);
}
