#include "net/sha1.hpp"

#include <array>

#include <openssl/evp.h>

#include "base/assert.hpp"

namespace latchkey::net {

std::string base64_sha1(std::string_view text) {
  constexpr std::size_t kDigestBytes = 20;
  constexpr std::size_t kTextBytes = 28;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  LATCHKEY_ASSERT(
      ::EVP_Digest(text.data(), text.size(), digest.data(), &size, ::EVP_sha1(), nullptr) == 1);
  LATCHKEY_ASSERT(size == kDigestBytes);
  std::array<unsigned char, kTextBytes + 1> encoded{};
  ::EVP_EncodeBlock(encoded.data(), digest.data(), kDigestBytes);
  return {encoded.begin(), encoded.begin() + kTextBytes};
}

}  // namespace latchkey::net
