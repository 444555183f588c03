#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

// Preloaded into a server: the call of fdatasync() that FAIL_FDATASYNC counts to fails, once. What
// is asked for after that is said aloud.
namespace {

int fails_at() {
  const char* text = std::getenv("FAIL_FDATASYNC");
  return text == nullptr ? 0 : std::atoi(text);
}

std::atomic<int> calls{0};

}  // namespace

extern "C" __attribute__((visibility("default"))) int fdatasync(int fd) {
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
