#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>

#include "net/tls.hpp"
#include "server/listener.hpp"
#include "tree/watches.hpp"

namespace latchkey::server {

/// One accepted socket, plain or under TLS, and the bytes that are on their way out. It reads and
/// writes when it is told that it can; what the bytes mean, and when to wait, is the Driver's.
///
/// Thread safety: in a turn of the server's only.
class Connection {
 public:
  enum class Kind { kClient, kMetrics };
  using Socket = asio::generic::stream_protocol::socket;

  /// `tls` may be null. Throws asio::system_error.
  Connection(asio::io_context& context, std::uint64_t id, Descriptor fd, Kind kind,
             const net::TlsContext* tls, Remote remote);

  enum class Read { kSome, kNothing, kEnd, kBroken };
  /// What was read lives in `buffer` or in this object until the next call. kEnd: the client sends
  /// no more, but may still read. kBroken: it is to be dropped.
  Read read(std::span<char> buffer, std::string_view& bytes);
  /// How much of what was read last was for TLS itself: handshakes, new keys, the wrapping.
  [[nodiscard]] std::size_t read_for_tls() const { return read_for_tls_; }

  /// Adds to what has to leave.
  void add(std::string bytes);
  enum class Write { kDone, kBlocked, kBroken };
  /// Writes as much as the socket takes now.
  Write write();

  /// TLS has shaken hands, or there is none.
  [[nodiscard]] bool is_open() const { return !tls_ || tls_->is_ready(); }
  [[nodiscard]] std::string subject() const { return tls_ ? tls_->peer_subject() : std::string(); }
  [[nodiscard]] bool has_unsent() const { return !unsent_.empty(); }
  [[nodiscard]] std::size_t unsent_bytes() const { return unsent_.size() - sent_; }
  [[nodiscard]] Socket& socket() { return socket_; }
  /// Says to the client that nothing more will come.
  void end_output();
  /// Takes what has come off the socket and forgets it: what is unread when a socket is closed
  /// turns the close into a reset, which overtakes answers.
  void discard_input(std::span<char> buffer);

  const std::uint64_t id;
  const Kind kind;
  const Remote remote;
  tree::PeerId peer = 0;  ///< 0 until the service knows of it, and again when it does no more.
  bool reading = false;   ///< Waits to be readable.
  bool writing = false;   ///< Waits to be writable.
  bool ended = false;     ///< The client sends no more.
  bool rests = false;     ///< It is not read from before the others have had their turn.
  bool leaving = false;   ///< Everything is said; waits for the client to hang up.
  std::string request;    ///< Of kMetrics.

 private:
  void add_encrypted(std::string_view bytes);
  /// Adds what TLS itself has to say to what it has heard. False: too much of that is not taken.
  [[nodiscard]] bool answer_for_tls();
  /// Gives back the memory of what has left.
  void forget_sent();

  Socket socket_;
  std::optional<net::TlsFilter> tls_;
  std::string plain_;
  std::size_t read_for_tls_ = 0;
  std::string unsent_;
  std::size_t sent_ = 0;           ///< How much of unsent_ has left.
  std::size_t unsent_of_tls_ = 0;  ///< What TLS itself has added since unsent_ was empty.
};

}  // namespace latchkey::server
