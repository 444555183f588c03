#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

// Preloaded into a server: its disk fails from the moment the file named by DISK_FAULT.sync or
// DISK_FAULT.full appears. With .sync one fdatasync() fails with EIO, and to ask for it again would
// be to ask for a lie, so that ends the process; with .full every pwrite() fails with ENOSPC. While
// DISK_FAULT.slow is there every fdatasync() takes 300 ms more.
namespace {

bool told_to(const char* how) {
  const char* prefix = std::getenv("DISK_FAULT");
  if (prefix == nullptr) return false;
  char path[512];
  char* end = path;
  for (const char* part : {prefix, how}) {
    while (*part != '\0' && end != path + sizeof path - 1) *end++ = *part++;
  }
  *end = '\0';
  return ::access(path, F_OK) == 0;
}

std::atomic<int> failed{-1};

}  // namespace

extern "C" __attribute__((visibility("default"))) int fdatasync(int fd) {
  if (failed == fd) ::abort();
  if (failed == -1 && told_to(".sync")) {
    failed = fd;
    errno = EIO;
    return -1;
  }
  constexpr int kSlowMs = 300;
  if (told_to(".slow")) ::poll(nullptr, 0, kSlowMs);
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

extern "C" __attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* bytes,
                                                                 size_t size, off_t offset) {
  if (told_to(".full")) {
    errno = ENOSPC;
    return -1;
  }
  return ::syscall(SYS_pwrite64, fd, bytes, size, offset);
}
