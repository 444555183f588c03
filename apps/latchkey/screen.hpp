#pragma once

#include <termios.h>

#include <optional>
#include <string>
#include <vector>

namespace latchkey::app {

/// What a program that shows something live waits for: news, a signal, a key.
///
///     Screen screen(Screen::Use::kWhole);
///     while (!screen.has_ended()) { screen.draw(lines); screen.wait(1'000); }
///     return screen.exit_code();
///
/// SIGINT, SIGQUIT, SIGTERM, SIGHUP and SIGWINCH are kept from the process while it lives: make it
/// before any thread. What was ignored when we were started stays so. With kWhole the terminal
/// shows nothing else, and has its old contents back in the end and while Ctrl-Z has stopped us.
/// Thread safety: one thread at a time; ring() any thread.
class Screen {
 public:
  enum class Use { kLines, kWhole };

  explicit Screen(Use use);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// There is news.
  void ring() const;

  /// Returns at news, a signal or a key, or after so long; -1: for ever. True: there is news.
  bool wait(int timeout_ms);

  [[nodiscard]] bool has_ended() const { return ended_; }
  /// 0 after q, 128+n after a signal.
  [[nodiscard]] int exit_code() const { return code_; }

  /// Shows these instead of what was there, as many as there is room for.
  void draw(const std::vector<std::string>& lines) const;

 private:
  void enter();
  void leave();
  /// As Ctrl-Z wants it; returns when we go on.
  void stop();

  const bool whole_;
  int news_ = -1;
  int signals_ = -1;
  bool keys_ = false;  ///< Somebody may type.
  std::optional<termios> old_;
  bool ended_ = false;
  int code_ = 0;
};

}  // namespace latchkey::app
