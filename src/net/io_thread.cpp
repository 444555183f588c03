#include "net/io_thread.hpp"

#include <cerrno>
#include <system_error>

#include "net/threads.hpp"

namespace latchkey::net {

IoThread& IoThread::shared() { return per_process<IoThread>(); }

IoThread::IoThread() : work_(asio::make_work_guard(context_)) {
  const bool started = start_thread("latchkey-io", [this] { context_.run(); });
  if (!started) throw std::system_error(EAGAIN, std::generic_category(), "no I/O thread");
}

}  // namespace latchkey::net
