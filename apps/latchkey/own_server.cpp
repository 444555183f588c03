#include "own_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "daemon.hpp"
#include "folders.hpp"

namespace latchkey::app {
namespace {

constexpr const char* kAdvice =
    "; use another folder with XDG_STATE_HOME, or name a server with "
    "--connect";

constexpr int kLookAgainMs = 5;

std::string reason() { return std::generic_category().message(errno); }

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// The lock of a server that lives, begins or ends; closing it does not unlock what a server has.
class LifeLock {
 public:
  explicit LifeLock(const std::string& file)
      : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR)) {}
  ~LifeLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  LifeLock(const LifeLock&) = delete;
  LifeLock& operator=(const LifeLock&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool try_take() const { return ::flock(fd_, LOCK_EX | LOCK_NB) == 0; }

  void write_down(const std::string& text) const {
    if (::ftruncate(fd_, 0) != 0) return;
    static_cast<void>(::pwrite(fd_, text.data(), text.size(), 0) > 0);
  }
  [[nodiscard]] std::string text() const {
    std::array<char, 1'024> text{};
    const ssize_t size = ::pread(fd_, text.data(), text.size(), 0);
    return {text.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
  }

 private:
  int fd_;
};

/// Two lines: the address and the host. Nothing: not written yet.
std::optional<std::pair<std::string, std::string>> read_note(const std::string& text) {
  const std::size_t first = text.find('\n');
  if (first == std::string::npos || text.back() != '\n' || first + 1 == text.size()) {
    return std::nullopt;
  }
  return std::pair(text.substr(0, first), text.substr(first + 1, text.size() - first - 2));
}

Result<std::string> start(const OwnServer& own, const LifeLock& lock, Deadline deadline) {
  const std::optional<std::string> socket = choose_socket(own.sockets);
  if (!socket) {
    return Error(Code::kInvalidOption,
                 "there is no folder for the socket of your own server: XDG_RUNTIME_DIR, " +
                     own.folder + " and /tmp were tried" + kAdvice);
  }
  const std::string address = "unix:" + *socket;
  lock.write_down(address + "\n" + host_name() + "\n");
  Daemon daemon;
  daemon.words = {"serve", "--data", own.folder + "/data", "--unix", *socket, "--idle-stop",
                  fmt::format("{}ms", own.idle_stop.count()),
                  // Both ends are on this machine: a dead one is found soon.
                  "--tick", "500ms", "--min-session-timeout", "1s"};
  daemon.log_file = own.folder + "/server.log";
  daemon.keep = lock.fd();
  const Result<std::string> ready = start_daemon(daemon, deadline);
  if (ready) return address;
  return Error(ready.error().code(),
               "cannot start a server of your own: " + ready.error().message());
}

}  // namespace

std::optional<std::string> choose_socket(std::span<const std::string> names) {
  for (const std::string& socket : names) {
    const std::filesystem::path folder = std::filesystem::path(socket).parent_path();
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder.parent_path(), ignored)) continue;
    if (make_private_folder(folder)) return socket;
  }
  return std::nullopt;
}

std::optional<pid_t> listener_at(const std::string& address) {
  constexpr std::string_view kUnix = "unix:";
  const std::string path = address.substr(std::min(kUnix.size(), address.size()));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof name.sun_path) return std::nullopt;
  path.copy(name.sun_path, path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return std::nullopt;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how the socket API takes it.
  const bool taken = ::connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  ucred peer{};  // Of whoever called listen().
  socklen_t size = sizeof peer;
  const bool known = taken && ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  ::close(fd);
  return known ? std::optional(peer.pid) : std::nullopt;
}

Result<void> make_private_folder(const std::string& folder) {
  const auto refuse = [&](const std::string& why) {
    return Error(Code::kInvalidOption, fmt::format("the folder {} {}{}", folder, why, kAdvice));
  };
  make_folders(std::filesystem::path(folder).parent_path());
  if (::mkdir(folder.c_str(), S_IRWXU) == 0) {
    sync_name_of(folder);
    return {};
  }
  if (errno != EEXIST) return refuse("cannot be made: " + reason());
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0) return refuse("cannot be read: " + reason());
  if (!S_ISDIR(found.st_mode)) return refuse("is a file or a link");
  if (found.st_uid != ::geteuid()) {
    return refuse(
        fmt::format("belongs to another user (uid {}; sudo -H takes root's own)", found.st_uid));
  }
  const mode_t others = found.st_mode & (S_IRWXG | S_IRWXO);
  if (others != 0 && ::chmod(folder.c_str(), S_IRWXU) != 0) {
    return refuse("is open to others: " + reason());
  }
  return {};
}

Result<std::string> find_own_server(const OwnServer& own, Deadline deadline) {
  if (const Result<void> made = make_private_folder(own.folder); !made) return made.error();
  const std::string file = own.folder + "/server.lock";
  while (true) {
    const LifeLock lock(file);
    if (lock.fd() < 0) {
      return Error(Code::kInvalidOption, "open " + file + ": " + reason() + kAdvice);
    }
    if (lock.try_take()) return start(own, lock, deadline);
    if (const auto note = read_note(lock.text())) {
      const auto& [address, host] = *note;
      if (host == host_name()) return address;
      return Error(Code::kUnreachable,
                   fmt::format("your own server runs on the host {} and shares the folder {} with "
                               "this one{}",
                               host, own.folder, kAdvice));
    }
    if (deadline.has_passed(BootClock::now())) {
      return Error(Code::kUnreachable,
                   fmt::format("{} has been locked for too long: whoever starts "
                               "your own server does not get on with it",
                               file));
    }
    ::poll(nullptr, 0, kLookAgainMs);
  }
}

Result<std::string> revive_own_server(const OwnServer& own, Deadline deadline) {
  while (true) {
    Result<std::string> found = find_own_server(own, deadline);
    if (!found || listener_at(*found) || deadline.has_passed(BootClock::now())) return found;
    ::poll(nullptr, 0, kLookAgainMs);
  }
}

}  // namespace latchkey::app
