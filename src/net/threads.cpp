#include "net/threads.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <system_error>

namespace latchkey::net {

std::thread make_thread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // A crash in a callback is the application's to handle, on whatever thread it happens.
  for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    ::sigdelset(&all, crash);
  }
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(body));
    ::pthread_setname_np(thread.native_handle(), name);
  } catch (const std::system_error&) {
    // Left as it is: not joinable.
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

bool start_thread(const char* name, std::function<void()> body) {
  std::thread thread = make_thread(name, std::move(body));
  if (!thread.joinable()) return false;
  thread.detach();
  return true;
}

pid_t process_id() noexcept { return ::getpid(); }

}  // namespace latchkey::net
