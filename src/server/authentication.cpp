#include "server/authentication.hpp"

#include "net/sha1.hpp"

namespace latchkey::server {

std::optional<std::vector<tree::Identity>> authenticate(std::string_view scheme,
                                                        std::string_view credentials,
                                                        std::string_view super_digest) {
  if (scheme != "digest") return std::nullopt;
  std::string user(credentials.substr(0, credentials.find(':')));
  std::string digest = std::move(user) + ":" + net::base64_sha1(credentials);
  std::vector<tree::Identity> identities;
  if (digest == super_digest) identities.push_back({"super", ""});
  identities.push_back({"digest", std::move(digest)});
  return identities;
}

}  // namespace latchkey::server
