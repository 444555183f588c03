#include "net/tls.hpp"

#include <algorithm>
#include <array>
#include <system_error>

#include <asio/ip/address.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/assert.hpp"

namespace latchkey::net {
namespace {

/// OpenSSL's newest complaint, or what the system told it, and an empty queue for the next one.
std::string openssl_reason() {
  unsigned long error = 0;
  while (const unsigned long next = ::ERR_get_error()) {
    error = next;
    if (!ERR_SYSTEM_ERROR(next)) continue;
    ::ERR_clear_error();
    return std::generic_category().message(ERR_GET_REASON(next));
  }
  if (error == 0) return "unknown reason";
  const char* reason = ::ERR_reason_error_string(error);
  if (reason != nullptr) return reason;
  std::array<char, 256> text{};
  ::ERR_error_string_n(error, text.data(), text.size());
  return text.data();
}

Error file_error(const std::string& what, const std::string& file) {
  return Error(Code::kTls, what + " " + file + ": " + openssl_reason());
}

std::shared_ptr<TlsContext> make_context(TlsContext::Side side, const TlsOptions& options = {}) {
  // Our I/O thread goes on while exit() runs (H52), so OpenSSL must not take itself apart then.
  // This has to be its very first call, and comes too late only if the program itself uses OpenSSL.
  ::OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  ::ERR_clear_error();
  auto made = std::make_shared<TlsContext>(side, options);
  SSL_CTX* context = made->get();
  ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  ::SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
  ::SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  // Without this an encrypted key would have OpenSSL ask at the terminal, for as long as it takes.
  ::SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });
  return made;
}

Result<void> use_certificate(SSL_CTX* context, const std::string& whose,
                             const std::string& cert_file, const std::string& key_file) {
  if (::SSL_CTX_use_certificate_chain_file(context, cert_file.c_str()) != 1) {
    return file_error("cannot read the " + whose + " certificate in", cert_file);
  }
  if (::SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return file_error("cannot read the private key in", key_file);
  }
  if (::SSL_CTX_check_private_key(context) != 1) {
    return file_error("the private key does not fit the certificate:", key_file);
  }
  return {};
}

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* context) const { ::SSL_CTX_free(context); }

TlsContext::TlsContext(Side side, TlsOptions options)
    : options_(std::move(options)),
      context_(
          ::SSL_CTX_new(side == Side::kClient ? ::TLS_client_method() : ::TLS_server_method())) {
  LATCHKEY_ASSERT(context_ != nullptr);
}

TlsContext::Loaded TlsContext::load(const TlsOptions& options) {
  std::shared_ptr<TlsContext> made = make_context(Side::kClient, options);
  SSL_CTX* context = made->get();
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (options.ca_file.empty()) {
    ::SSL_CTX_set_default_verify_paths(context);
  } else if (::SSL_CTX_load_verify_locations(context, options.ca_file.c_str(), nullptr) != 1) {
    return file_error("cannot read the CA certificates in", options.ca_file);
  }
  if (options.cert_file.empty() != options.key_file.empty()) {
    return Error(Code::kTls, "a client certificate needs both cert_file and key_file");
  }
  if (!options.cert_file.empty()) {
    const Result<void> used =
        use_certificate(context, "client", options.cert_file, options.key_file);
    if (!used) return used.error();
  }
  return std::shared_ptr<const TlsContext>(std::move(made));
}

TlsContext::Loaded TlsContext::load(const ServerTls& options) {
  if (options.cert_file.empty() || options.key_file.empty()) {
    return Error(Code::kTls,
                 "a server's TLS needs both, a certificate (cert_file) and its key (key_file)");
  }
  const bool demand = options.clients == ServerTls::Clients::kMustShowCertificate;
  if (demand && options.client_ca_file.empty()) {
    return Error(Code::kTls, "to demand client certificates, say in client_ca_file who signs them");
  }
  std::shared_ptr<TlsContext> made = make_context(Side::kServer);
  SSL_CTX* context = made->get();
  const Result<void> used = use_certificate(context, "server", options.cert_file, options.key_file);
  if (!used) return used.error();
  // A session of ours lasts longer than a handshake takes, and a resumed one would have to be
  // checked against the certificate of the first.
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  ::SSL_CTX_set_num_tickets(context, 0);
  if (!options.client_ca_file.empty()) {
    const char* file = options.client_ca_file.c_str();
    STACK_OF(X509_NAME)* names = ::SSL_load_client_CA_file(file);
    if (names == nullptr || ::SSL_CTX_load_verify_locations(context, file, nullptr) != 1) {
      return file_error("cannot read the CA certificates in", options.client_ca_file);
    }
    ::SSL_CTX_set_client_CA_list(context, names);
    ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (demand ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                         nullptr);
  }
  return std::shared_ptr<const TlsContext>(std::move(made));
}

void TlsFilter::Free::operator()(ssl_st* ssl) const { ::SSL_free(ssl); }

TlsFilter::TlsFilter(const TlsContext& context, const std::string& host)
    : ssl_(::SSL_new(context.get())) {
  if (ssl_ == nullptr) {
    // No memory, or the process is ending and OpenSSL has ended already.
    trouble_ = "TLS: " + openssl_reason();
    return;
  }
  ::SSL_set_bio(ssl_.get(), ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
  ::SSL_set_connect_state(ssl_.get());
  if (name_host(host, context.options().verify)) {
    shake_hands();
  } else {
    trouble_ = "TLS: " + host + " is no name a certificate could have";
  }
}

TlsFilter::TlsFilter(const TlsContext& context) : ssl_(::SSL_new(context.get())) {
  if (ssl_ == nullptr) {
    trouble_ = "TLS: " + openssl_reason();
    return;
  }
  ::SSL_set_bio(ssl_.get(), ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
  ::SSL_set_accept_state(ssl_.get());
}

std::string TlsFilter::peer_subject() const {
  const std::unique_ptr<X509, void (*)(X509*)> certificate(::SSL_get1_peer_certificate(ssl_.get()),
                                                           ::X509_free);
  if (certificate == nullptr) return {};
  const std::unique_ptr<BIO, int (*)(BIO*)> text(::BIO_new(::BIO_s_mem()), ::BIO_free);
  ::X509_NAME_print_ex(text.get(), ::X509_get_subject_name(certificate.get()), 0, XN_FLAG_RFC2253);
  std::string subject(::BIO_ctrl_pending(text.get()), '\0');
  if (!subject.empty()) ::BIO_read(text.get(), subject.data(), static_cast<int>(subject.size()));
  return subject;
}

bool TlsFilter::name_host(const std::string& host, TlsOptions::Verify verify) {
  const bool check_name = verify == TlsOptions::Verify::kHostName;
  asio::error_code not_numeric;
  asio::ip::address address = asio::ip::make_address(host, not_numeric);
  if (not_numeric) {
    // What the macro SSL_set_tlsext_host_name does, without its C cast.
    ::SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
               const_cast<char*>(host.c_str()));
    return !check_name || (!host.empty() && ::SSL_set1_host(ssl_.get(), host.c_str()) == 1);
  }
  if (!check_name) return true;
  // A certificate knows no scope: fe80::1%eth0 is fe80::1 to it.
  if (address.is_v6()) address = asio::ip::make_address_v6(address.to_v6().to_bytes());
  const std::string text = address.to_string();
  return ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl_.get()), text.c_str()) == 1;
}

bool TlsFilter::shake_hands() {
  ::ERR_clear_error();  // Somebody else's, left on this thread, would be taken for ours.
  const int result = ::SSL_do_handshake(ssl_.get());
  if (result != 1) return fail(result, "handshake");
  ready_ = true;
  return true;
}

bool TlsFilter::fail(int result, const char* doing) {
  switch (::SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return true;
    case SSL_ERROR_ZERO_RETURN: closed_ = true; return true;
    default: break;
  }
  const long verdict = ::SSL_get_verify_result(ssl_.get());
  trouble_ = std::string("TLS ") + doing + ": " + openssl_reason();
  if (verdict != X509_V_OK) {
    trouble_ += std::string(" (") + ::X509_verify_cert_error_string(verdict) + ")";
  }
  return false;
}

bool TlsFilter::receive(std::string_view bytes, std::string& plain) {
  ::ERR_clear_error();
  ::BIO_write(::SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
  if (!ready_ && !shake_hands()) return false;
  if (!ready_) return true;
  std::array<char, 16'384> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below.
  while (true) {
    const int got = ::SSL_read(ssl_.get(), chunk.data(), static_cast<int>(chunk.size()));
    if (got <= 0) return fail(got, "read");
    plain.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

bool TlsFilter::send(std::string_view plain) {
  ::ERR_clear_error();
  while (!plain.empty()) {
    const std::size_t most = std::min<std::size_t>(plain.size(), 1U << 20U);
    const int put = ::SSL_write(ssl_.get(), plain.data(), static_cast<int>(most));
    // Into memory, and without renegotiation, there is nothing to wait for.
    if (put <= 0) return fail(put, "write") && put > 0;
    plain.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

std::string TlsFilter::take_output() {
  if (ssl_ == nullptr) return {};
  BIO* bio = ::SSL_get_wbio(ssl_.get());
  std::string output(::BIO_ctrl_pending(bio), '\0');
  if (!output.empty()) ::BIO_read(bio, output.data(), static_cast<int>(output.size()));
  return output;
}

}  // namespace latchkey::net
