#pragma once

#include <filesystem>

namespace latchkey::test_support {

/// A certificate and its private key, PEM each, and both in one file as servers like it.
struct Identity {
  std::filesystem::path certificate;
  std::filesystem::path key;
  std::filesystem::path both;
};

/// Certificates for every way a TLS handshake can go. All names end at the loopback.
struct TlsFiles {
  std::filesystem::path ca;        ///< Signs `server`, `wrong_name` and `client`.
  std::filesystem::path other_ca;  ///< Nobody trusts it. Signs `stranger`.
  Identity server;                 ///< For localhost, 127.0.0.1 and ::1.
  Identity wrong_name;             ///< A server certificate for elsewhere.example only.
  Identity client;                 ///< For the subject CN=client.
  Identity stranger;               ///< Right names, signed by `other_ca`; serves as either end.
};

/// Makes them in `folder` with the openssl program, in about a tenth of a second. Throws
/// std::runtime_error with openssl's own words if that fails.
[[nodiscard]] TlsFiles make_tls_files(const std::filesystem::path& folder);

}  // namespace latchkey::test_support
