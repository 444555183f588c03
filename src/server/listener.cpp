#include "server/listener.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace latchkey::server {
namespace {

constexpr int kBacklog = 1'024;

std::string system_reason(int error) { return std::generic_category().message(error); }

Error listen_error(const std::string& where, int error) {
  if (error == EADDRINUSE) {
    return Error(Code::kInUse, "listen on " + where +
                                   ": another process listens there; stop it or choose another");
  }
  const bool not_ours = error == EADDRNOTAVAIL || error == EACCES;
  return Error(not_ours ? Code::kUnreachable : Code::kInvalidOption,
               "listen on " + where + ": " + system_reason(error));
}

sockaddr* plain(sockaddr_storage& storage) { return reinterpret_cast<sockaddr*>(&storage); }

struct NumericAddress {
  std::string host;
  std::uint16_t port = 0;
};

/// An IPv4 address that came through an IPv6 socket is an IPv4 address.
NumericAddress numeric(const sockaddr_storage& storage) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &storage, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return {text.data(), ntohs(v4.sin_port)};
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &storage, sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  }
  return {text.data(), ntohs(v6.sin6_port)};
}

/// The half of an address that names a network: all the rest is usually one customer's.
std::string network_of(const sockaddr_storage& storage) {
  if (storage.ss_family == AF_INET) return numeric(storage).host;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &storage, sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return numeric(storage).host;
  std::fill_n(&v6.sin6_addr.s6_addr[8], 8, std::uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  return std::string(text.data()) + "/64";
}

std::string to_text(const NumericAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

/// Held while the name of a socket is looked at and taken. It is a file beside the socket, since
/// others may lock the folder for reasons of their own, and goes with the lock.
class NameLock {
 public:
  /// Errors: kInUse if another server is taking the name at this very moment.
  static Result<NameLock> take(const std::filesystem::path& socket) {
    constexpr int kTries = 100;
    const std::string name = socket.string() + ".lock";
    for (int i = 0; i < kTries; ++i) {
      Descriptor file(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
      if (file.get() < 0) return listen_error("unix:" + socket.string(), errno);
      if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) break;
      struct stat ours {};
      struct stat there {};
      // Unless its last holder has removed it meanwhile.
      if (::fstat(file.get(), &ours) == 0 && ::stat(name.c_str(), &there) == 0 &&
          ours.st_ino == there.st_ino && ours.st_dev == there.st_dev) {
        return NameLock(std::move(file), name);
      }
    }
    return Error(Code::kInUse, "listen on unix:" + socket.string() + ": another process has " +
                                   name + " locked; stop it or choose another name");
  }

  NameLock(NameLock&&) noexcept = default;
  NameLock& operator=(NameLock&&) = delete;
  ~NameLock() {
    if (file_.get() >= 0) ::unlink(name_.c_str());
  }

 private:
  NameLock(Descriptor file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  Descriptor file_;
  std::string name_;
};

bool somebody_listens(const sockaddr_un& name) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage storage{};
  std::memcpy(&storage, &name, sizeof name);
  if (::connect(probe.get(), plain(storage), sizeof name) == 0) return true;
  // EAGAIN: it lives, and its backlog is full.
  return errno != ECONNREFUSED && errno != ENOENT;
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  const Error wrong(Code::kInvalidOption, "\"" + std::string(text) +
                                              "\" is no address: write HOST:PORT, for example "
                                              "127.0.0.1:2181 or [::1]:2181");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong;
  }
  const std::string_view digits = text.substr(colon + 1);
  HostPort result{std::string(host), 0};
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), result.port);
  if (host.empty() || error != std::errc() || end != digits.end()) return wrong;
  return result;
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Listener::Listener(Descriptor fd, bool is_unix) : fd_(std::move(fd)), unix_(is_unix) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  ::getsockname(fd_.get(), plain(storage), &size);
  if (unix_) {
    sockaddr_un name{};
    std::memcpy(&name, &storage, sizeof name);
    address_ = std::string("unix:") + name.sun_path;
  } else {
    const NumericAddress own = numeric(storage);
    address_ = to_text(own);
    port_ = own.port;
  }
}

Listener::Listener(Listener&& other) noexcept
    : fd_(std::move(other.fd_)),
      unix_(other.unix_),
      address_(std::move(other.address_)),
      port_(other.port_),
      owned_(std::exchange(other.owned_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

Listener::~Listener() {
  struct stat now {};
  if (!owned_.empty() && ::stat(owned_.c_str(), &now) == 0 && now.st_dev == device_ &&
      now.st_ino == inode_) {
    ::unlink(owned_.c_str());
  }
}

Result<Listener> Listener::open_tcp(const std::string& address) {
  const Result<HostPort> where = parse_host_port(address);
  if (!where) return where.error();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(where->port);
  if (const int error = ::getaddrinfo(where->host.c_str(), port.c_str(), &hints, &found)) {
    return Error(Code::kInvalidOption, "listen on " + address + ": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    Descriptor fd(::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0 &&
        ::listen(fd.get(), kBacklog) == 0) {
      return Listener(std::move(fd), false);
    }
    error = errno;
    if (error == EADDRINUSE) break;
  }
  return listen_error(address, error);
}

Result<Listener> Listener::open_unix(const std::filesystem::path& path) {
  const std::string where = "unix:" + path.string();
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof name.sun_path) {
    return Error(Code::kInvalidOption, "listen on " + where + ": a socket's path has at most " +
                                           std::to_string(sizeof name.sun_path - 1) + " bytes");
  }
  std::memcpy(name.sun_path, path.c_str(), path.native().size());
  // Whoever else finds a stale name there waits until ours is there to be seen.
  const Result<NameLock> lock = NameLock::take(path);
  if (!lock) return lock.error();

  struct stat old {};
  if (::lstat(path.c_str(), &old) == 0) {
    if (!S_ISSOCK(old.st_mode)) {
      return Error(Code::kInUse, "listen on " + where + ": there is a file that is no socket");
    }
    if (somebody_listens(name)) return listen_error(where, EADDRINUSE);
    ::unlink(path.c_str());
  }
  Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Before the bind, so that the name never has other permissions.
  ::fchmod(fd.get(), S_IRUSR | S_IWUSR);
  sockaddr_storage storage{};
  std::memcpy(&storage, &name, sizeof name);
  if (::bind(fd.get(), plain(storage), sizeof name) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return listen_error(where, errno);
  }
  Listener listener(std::move(fd), true);
  struct stat made {};
  if (::stat(path.c_str(), &made) == 0) {
    std::error_code error;
    listener.owned_ = std::filesystem::absolute(path, error);
    if (error) listener.owned_ = path;
    listener.device_ = made.st_dev;
    listener.inode_ = made.st_ino;
  }
  return listener;
}

Result<Listener> Listener::adopt(int fd) {
  Descriptor socket(fd);
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  int listens = 0;
  socklen_t flag_size = sizeof listens;
  if (::getsockname(fd, plain(storage), &size) != 0 ||
      ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag_size) != 0 || listens == 0) {
    return Error(Code::kInvalidOption,
                 "descriptor " + std::to_string(fd) + " is no listening stream socket");
  }
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return Listener(std::move(socket), storage.ss_family == AF_UNIX);
}

Remote remote_from(const sockaddr_storage& address) {
  const NumericAddress peer = numeric(address);
  const bool local = peer.host.starts_with("127.") || peer.host == "::1";
  return {to_text(peer), peer.host, local, local ? "" : network_of(address)};
}

Remote remote_of(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  ::getpeername(fd, plain(storage), &size);
  if (storage.ss_family == AF_INET || storage.ss_family == AF_INET6) return remote_from(storage);
  ucred who{};
  socklen_t who_size = sizeof who;
  ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_size);
  return {"unix:" + std::to_string(who.pid), "127.0.0.1", true, "uid:" + std::to_string(who.uid)};
}

}  // namespace latchkey::server
