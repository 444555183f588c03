#include "words.hpp"

#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace latchkey::app {

void write_words(std::string_view text, int fd) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

struct Speaker::Words {
  const std::size_t most;
  const int fd;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> unwritten;
  std::size_t dropped = 0;
  bool speaking = false;  ///< There is a thread.

  void write_all() {
    std::unique_lock lock(mutex);
    while (!unwritten.empty()) {
      const std::string text = std::move(unwritten.front());
      unwritten.pop_front();
      lock.unlock();
      write_words(text, fd);
      lock.lock();
      if (unwritten.empty() && dropped > 0) {
        unwritten.push_back(fmt::format("latchkey: {} more lines, which nobody took in time\n",
                                        std::exchange(dropped, 0)));
      }
    }
    speaking = false;
    changed.notify_all();
  }
};

Speaker::Speaker(std::size_t most, int fd) : words_(new Words{.most = most, .fd = fd}) {}

void Speaker::say(std::string text) const {
  const std::lock_guard lock(words_->mutex);
  if (words_->unwritten.size() >= words_->most) {
    ++words_->dropped;
    return;
  }
  words_->unwritten.push_back(std::move(text));
  if (words_->speaking) return;
  try {
    std::thread([words = words_] { words->write_all(); }).detach();
    words_->speaking = true;
  } catch (const std::system_error&) {
    words_->unwritten.clear();
  }
}

void Speaker::finish(Duration most) const {
  std::unique_lock lock(words_->mutex);
  words_->changed.wait_for(lock, most, [&] { return !words_->speaking; });
}

}  // namespace latchkey::app
