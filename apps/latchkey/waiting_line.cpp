#include "waiting_line.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <mutex>

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

}  // namespace

class WaitingLine::Line {
 public:
  explicit Line(pid_t job) : job_(job) {}
  ~Line() { clear(); }

  void show(const std::string& text) {
    const std::lock_guard lock(mutex_);
    text_ = text;
    draw();
  }

  void refresh() {
    const std::lock_guard lock(mutex_);
    if (!is_ours()) {
      shown_ = false;  // It is the shell's now, and has been scrolled away.
    } else if ((!shown_ || ++looks_ % kDrawAgain == 0) && !text_.empty()) {
      draw();
    }
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    if (shown_ && !over_ && is_ours()) write("\r\033[K");
    over_ = true;
  }

 private:
  /// A terminal that is not the one our job is controlled by knows no jobs.
  [[nodiscard]] bool is_ours() const {
    const pid_t front = ::tcgetpgrp(STDERR_FILENO);
    return front < 0 || front == job_;
  }

  void draw() {
    shown_ = false;
    if (over_ || !is_ours()) return;
    winsize size{};
    std::size_t columns = 80;
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) columns = size.ws_col;
    write("\r\033[K" + cut_to(printable(text_), columns - 1));
    shown_ = true;
  }

  static void write(const std::string& text) {
    // A terminal that Ctrl-S has halted is not waited for: whoever calls us has more to do.
    pollfd terminal{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&terminal, 1, 0) <= 0) return;
    static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
  }

  /// Looks after which it is drawn again all the same: the shell may have been there between two.
  static constexpr int kDrawAgain = 10;

  const pid_t job_;
  std::mutex mutex_;
  std::string text_;
  bool shown_ = false;
  int looks_ = 0;
  bool over_ = false;
};

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

WaitingLine::WaitingLine(const Session& session, const Path& directory, pid_t job)
    : line_(std::make_shared<Line>(job)),
      watch_(session, directory, [line = line_, id = session.id()](const Result<Queue>& queue) {
        if (queue) line->show("latchkey: " + format_waiting(*queue, id));
      }) {}

WaitingLine::~WaitingLine() { line_->clear(); }

void WaitingLine::refresh() { line_->refresh(); }

}  // namespace latchkey::app
