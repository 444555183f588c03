#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

namespace latchkey::net {

/// The process's one I/O thread, shared by all sessions that do not bring an io_context of their
/// own. Started on first use, never stopped: sessions may be destroyed in any order, after main()
/// too. Thread safety: any thread.
class IoThread {
 public:
  /// This process's thread: a forked child gets one of its own.
  static IoThread& shared();

  /// Throws std::system_error if the process has no thread or no descriptor left.
  IoThread();

  asio::io_context& context() { return context_; }

 private:
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
};

}  // namespace latchkey::net
