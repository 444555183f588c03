#pragma once

#include <signal.h>

#include <stop_token>
#include <thread>

namespace latchkey::app {

/// Hears the signals to end while a server starts, which may take long: reading its data is given
/// up then. The signals have to be blocked, and are left to whoever waits for them after end().
///
///     StartSignals early(signals);
///     options.cancel_start = early.token();
///     auto server = Server::start(options);
///     early.end();
///
/// A second signal ends the process at once. Thread safety: one thread at a time.
class StartSignals {
 public:
  explicit StartSignals(const sigset_t& signals);
  StartSignals(const StartSignals&) = delete;
  StartSignals& operator=(const StartSignals&) = delete;
  ~StartSignals() { end(); }

  /// Asked to stop when a signal has come, be it before the constructor was called.
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  void end();

 private:
  void hear();
  void listen();

  const sigset_t signals_;
  int signal_fd_;
  int end_fd_;
  std::stop_source source_;
  std::thread thread_;
};

}  // namespace latchkey::app
