#include "words.hpp"

#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace latchkey::app {

void write_words(std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(STDERR_FILENO, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

struct Speaker::Words {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> unwritten;
  bool speaking = false;  ///< There is a thread.

  void write_all() {
    std::unique_lock lock(mutex);
    while (!unwritten.empty()) {
      const std::string text = std::move(unwritten.front());
      unwritten.pop_front();
      lock.unlock();
      write_words(text);
      lock.lock();
    }
    speaking = false;
    changed.notify_all();
  }
};

Speaker::Speaker() : words_(std::make_shared<Words>()) {}

void Speaker::say(std::string text) const {
  constexpr std::size_t kMost = 100;  // Who does not read these does not read more.
  const std::lock_guard lock(words_->mutex);
  if (words_->unwritten.size() == kMost) return;
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
