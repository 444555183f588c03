#include "waiting_line.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <mutex>
#include <optional>

#include "queue_view.hpp"
#include "table.hpp"

namespace latchkey::app {
namespace {

std::string ordinal(int number) {
  const bool teen = number % 100 / 10 == 1;
  const int last = number % 10;
  return std::to_string(number) + (!teen && last == 1   ? "st"
                                   : !teen && last == 2 ? "nd"
                                   : !teen && last == 3 ? "rd"
                                                        : "th");
}

class Line {
 public:
  ~Line() { clear(); }

  void show(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    winsize size{};
    std::size_t columns = 80;
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) columns = size.ws_col;
    write("\r\033[K" + cut_to(printable(text), columns - 1));
    shown_ = true;
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    if (shown_ && !over_) write("\r\033[K");
    over_ = true;
  }

 private:
  static void write(const std::string& text) {
    // A terminal that Ctrl-S has halted is not waited for: whoever calls us has more to do.
    pollfd terminal{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&terminal, 1, 0) <= 0) return;
    static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
  }

  std::mutex mutex_;
  bool shown_ = false;
  bool over_ = false;
};

struct Shown {
  std::shared_ptr<Line> line;
  std::optional<QueueWatch> watch;

  ~Shown() { line->clear(); }
};

}  // namespace

std::string format_waiting(const Queue& queue, std::int64_t session) {
  int place = 0;
  int waiting = 0;
  for (const QueueEntry& entry : queue.entries) {
    if (entry.standing != QueueEntry::Standing::kWaits) continue;
    ++waiting;
    if (entry.session == session) place = waiting;
  }
  std::string text = "waiting for " + queue.directory;
  if (place > 0) text += ", " + ordinal(place) + " in line";
  const std::vector<const QueueEntry*> holders = queue.holders();
  if (holders.empty()) return text;
  text += "; held by " + holder_text(*holders.front());
  if (holders.size() > 1) text += " and " + std::to_string(holders.size() - 1) + " more";
  return text;
}

std::shared_ptr<void> show_waiting(const Session& session, const Path& directory) {
  auto shown = std::make_shared<Shown>();
  shown->line = std::make_shared<Line>();
  shown->watch.emplace(session, directory,
                       [line = shown->line, id = session.id()](const Result<Queue>& queue) {
                         if (queue) line->show("latchkey: " + format_waiting(*queue, id));
                       });
  return shown;
}

}  // namespace latchkey::app
