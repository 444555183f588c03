#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "latchkey/result.hpp"
#include "latchkey/server.hpp"
#include "latchkey/session.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace latchkey::net {

/// Certificates, key and trust of a session or of a server, read once. Thread safety: immutable.
class TlsContext {
 public:
  using Loaded = Result<std::shared_ptr<const TlsContext>>;

  /// Errors: kTls, with the file and OpenSSL's reason.
  static Loaded load(const TlsOptions& options);
  static Loaded load(const ServerTls& options);

  enum class Side { kClient, kServer };
  explicit TlsContext(Side side, TlsOptions options = {});

  [[nodiscard]] ssl_ctx_st* get() const { return context_.get(); }
  [[nodiscard]] const TlsOptions& options() const { return options_; }

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };

  TlsOptions options_;
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

/// One TLS conversation as a filter between byte strings: what the socket brought goes in, what the
/// socket has to carry comes out. So a secured connection differs from a plain one in nothing else.
/// Thread safety: one thread at a time.
class TlsFilter {
 public:
  /// A session's end. `host` is checked against the certificate and named to the server. Look at
  /// trouble() first.
  TlsFilter(const TlsContext& context, const std::string& host);
  /// A server's end. Look at trouble() first.
  explicit TlsFilter(const TlsContext& context);

  /// Feeds bytes from the socket; plain text is appended to `plain`. False on trouble().
  [[nodiscard]] bool receive(std::string_view bytes, std::string& plain);
  /// Encrypts; only once the handshake is done. False on trouble().
  [[nodiscard]] bool send(std::string_view plain);
  /// Bytes for the socket.
  [[nodiscard]] std::string take_output();

  [[nodiscard]] bool is_ready() const { return ready_; }
  /// The peer has ended the conversation in good order.
  [[nodiscard]] bool is_closed() const { return closed_; }
  /// "CN=ann,O=example" (RFC 2253) of the certificate the peer has shown; empty without one.
  [[nodiscard]] std::string peer_subject() const;
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  struct Free {
    void operator()(ssl_st* ssl) const;
  };

  /// Says whom we expect to meet. False if that cannot be checked: then nothing may be sent.
  bool name_host(const std::string& host, TlsOptions::Verify verify);
  bool shake_hands();
  bool fail(int result, const char* doing);

  std::unique_ptr<ssl_st, Free> ssl_;
  bool ready_ = false;
  bool closed_ = false;
  std::string trouble_;
};

}  // namespace latchkey::net
