#include "server/connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace latchkey::server {
namespace {

asio::generic::stream_protocol protocol_of(int fd) {
  int family = 0;
  socklen_t size = sizeof family;
  ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
  return {family, family == AF_UNIX ? 0 : static_cast<int>(IPPROTO_TCP)};
}

void tune(int fd) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

}  // namespace

Connection::Connection(asio::io_context& context, std::uint64_t number, Descriptor fd, Kind what,
                       const net::TlsContext* tls, Remote who)
    : id(number), kind(what), remote(std::move(who)), socket_(context) {
  const asio::generic::stream_protocol protocol = protocol_of(fd.get());
  if (protocol.family() != AF_UNIX) tune(fd.get());
  socket_.assign(protocol, fd.get());
  static_cast<void>(fd.release());
  if (tls != nullptr) tls_.emplace(*tls);
}

Connection::Read Connection::read(std::span<char> buffer, std::string_view& bytes) {
  read_for_tls_ = 0;
  const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got == 0) return Read::kEnd;
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Read::kNothing : Read::kBroken;
  bytes = {buffer.data(), static_cast<std::size_t>(got)};
  if (!tls_) return Read::kSome;
  plain_.clear();
  if (!tls_->trouble().empty() || !tls_->receive(bytes, plain_)) {
    unsent_ += tls_->take_output();  // The alert that says why.
    write();
    return Read::kBroken;
  }
  if (!answer_for_tls()) return Read::kBroken;
  // What came in pieces may be whole only now, and then more than has been read.
  read_for_tls_ = bytes.size() - std::min(bytes.size(), plain_.size());
  bytes = plain_;
  return tls_->is_closed() && plain_.empty() ? Read::kEnd : Read::kSome;
}

bool Connection::answer_for_tls() {
  // No handshake takes nearly as much. What does is a client that asks for new keys again and again
  // and does not read: each request of a few bytes leaves an answer here (H90).
  constexpr std::size_t kMostOfTls = 65'536;
  const std::string output = tls_->take_output();
  unsent_of_tls_ += output.size();
  unsent_ += output;
  return unsent_of_tls_ <= kMostOfTls;
}

void Connection::add(std::string bytes) {
  if (tls_) return add_encrypted(bytes);
  if (unsent_.empty()) {
    unsent_ = std::move(bytes);
  } else {
    unsent_ += bytes;
  }
}

void Connection::add_encrypted(std::string_view bytes) {
  // In pieces: the memory a long one went through would stay with the connection.
  constexpr std::size_t kPiece = 65'536;
  while (!bytes.empty()) {
    // Into memory it cannot fail, unless the conversation has failed before: then reading tells.
    static_cast<void>(tls_->send(bytes.substr(0, kPiece)));
    unsent_ += tls_->take_output();
    bytes.remove_prefix(std::min(bytes.size(), kPiece));
  }
}

Connection::Write Connection::write() {
  while (sent_ < unsent_.size()) {
    const ssize_t put = ::send(socket_.native_handle(), unsent_.data() + sent_,
                               unsent_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0) {
      sent_ += static_cast<std::size_t>(put);
    } else if (errno == EAGAIN) {
      forget_sent();
      return Write::kBlocked;
    } else if (errno != EINTR) {
      return Write::kBroken;
    }
  }
  // With its memory, which assignment would keep: most connections are idle most of the time.
  std::string().swap(unsent_);
  sent_ = 0;
  unsent_of_tls_ = 0;
  return Write::kDone;
}

void Connection::forget_sent() {
  // Half of it at least, so that no byte is moved often and twice what is left is held at most.
  if (sent_ < unsent_.size() - sent_) return;
  unsent_.erase(0, sent_);
  unsent_.shrink_to_fit();
  sent_ = 0;
}

void Connection::discard_input(std::span<char> buffer) {
  // More than any socket holds; whoever goes on sending is not waited for.
  constexpr std::size_t kMost = std::size_t{16} << 20U;
  for (std::size_t taken = 0; taken < kMost;) {
    const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    taken += static_cast<std::size_t>(got);
  }
}

void Connection::end_output() { ::shutdown(socket_.native_handle(), SHUT_WR); }

}  // namespace latchkey::server
