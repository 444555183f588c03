#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tree/acl.hpp"

namespace latchkey::server {

/// The identities that credentials prove. Only the scheme digest has any: "user:password" is
/// {"digest", "user:" + base64(sha1("user:password"))}, and {"super", ""} before it if that is the
/// `super_digest`. Nothing for every other scheme.
///
///     authenticate("digest", "ann:secret", "")  // {{"digest", "ann:bJy..."}}
[[nodiscard]] std::optional<std::vector<tree::Identity>> authenticate(
    std::string_view scheme, std::string_view credentials, std::string_view super_digest);

}  // namespace latchkey::server
