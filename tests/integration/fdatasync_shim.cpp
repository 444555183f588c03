#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// Preloaded into a server: the call of fdatasync() that FAIL_FDATASYNC counts to fails, once. What
// is asked for after that is said aloud. Whoever syncs a file with the name in KILL_AT_FDATASYNC_OF
// is killed instead.
namespace {

int fails_at() {
  const char* text = std::getenv("FAIL_FDATASYNC");
  return text == nullptr ? 0 : std::atoi(text);
}

void kill_if_asked(int fd) {
  const char* fatal = std::getenv("KILL_AT_FDATASYNC_OF");
  if (fatal == nullptr) return;
  char link[64];
  char path[4'096] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (::readlink(link, path, sizeof path - 1) < 0) return;
  const char* name = std::strrchr(path, '/');
  if (name != nullptr && std::strcmp(name + 1, fatal) == 0) ::kill(::getpid(), SIGKILL);
}

std::atomic<int> calls{0};

}  // namespace

extern "C" __attribute__((visibility("default"))) int fdatasync(int fd) {
  kill_if_asked(fd);
  static const int fatal = fails_at();
  const int call = ++calls;
  if (call == fatal) {
    errno = EIO;
    return -1;
  }
  constexpr char kComplaint[] = "synced again after a failure\n";
  if (fatal != 0 && call > fatal) {
    static_cast<void>(!::write(STDERR_FILENO, kComplaint, sizeof kComplaint - 1));
  }
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
