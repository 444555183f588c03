#include "store.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace latchkey::faults {

namespace {

using test_support::Fd;

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.string().size() >= sizeof address.sun_path) {
    throw std::invalid_argument("too long for a socket: " + path.string());
  }
  std::strcpy(address.sun_path, path.c_str());
  return address;
}

/// Messages and not a stream: one question, one answer.
Fd open_socket() {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) throw std::system_error(errno, std::generic_category(), "socket");
  return socket;
}

void expect(bool done, const std::filesystem::path& path) {
  if (!done) throw std::system_error(errno, std::generic_category(), "store " + path.string());
}

}  // namespace

StoreService::StoreService(const std::filesystem::path& socket,
                           const std::filesystem::path& history, FencedStore::Check check)
    : history_(history),
      store_(check),
      listener_(open_socket()),
      stopping_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const sockaddr_un address = address_of(socket);
  expect(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
         socket);
  expect(::listen(listener_.get(), SOMAXCONN) == 0, socket);
  thread_ = std::thread([this] { serve(); });
}

StoreService::~StoreService() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(stopping_.get(), &one, sizeof one));
  thread_.join();
}

void StoreService::serve() {
  while (true) {
    std::vector<pollfd> polled = {{stopping_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Fd& client : clients_) polled.push_back({client.get(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[0].revents != 0) return;
    std::size_t next = 2;
    std::erase_if(clients_,
                  [&](const Fd& client) { return polled[next++].revents != 0 && !answer(client); });
    if (polled[1].revents == 0) continue;
    Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client) clients_.push_back(std::move(client));
  }
}

bool StoreService::answer(const Fd& client) {
  std::array<char, 512> buffer;
  const ssize_t size = ::recv(client.get(), buffer.data(), buffer.size(), 0);
  if (size <= 0) return false;
  auto event = from_line({buffer.data(), static_cast<std::size_t>(size)});
  if (!event) return false;
  const bool accepted = store_.write(event->lock, event->number);
  if (accepted) {
    event->at_ns = now_ns();
    event->what = What::kAccepted;
    history_.add(*event);
  }
  const char verdict = accepted ? 'y' : 'n';
  return ::send(client.get(), &verdict, 1, MSG_NOSIGNAL) == 1;
}

StoreClient::StoreClient(const std::filesystem::path& socket) : socket_(open_socket()) {
  const sockaddr_un address = address_of(socket);
  expect(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
         socket);
}

bool StoreClient::write(const Event& event) {
  std::string line = to_line(event);
  line.pop_back();
  char verdict = 0;
  if (::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0 ||
      ::recv(socket_.get(), &verdict, 1, 0) != 1) {
    throw std::system_error(errno, std::generic_category(), "the store does not answer");
  }
  return verdict == 'y';
}

}  // namespace latchkey::faults
