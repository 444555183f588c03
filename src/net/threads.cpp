#include "net/threads.hpp"

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <utility>

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
    // It names itself: to name another goes through a file below /proc, which is not to be had
    // without a descriptor, and which the kernel then has to clear away when the process ends.
    thread = std::thread([name = std::string(name), body = std::move(body)] {
      ::pthread_setname_np(::pthread_self(), name.c_str());
      body();
    });
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

}  // namespace latchkey::net
