#pragma once

#include <string>
#include <string_view>

namespace latchkey::net {

/// base64(sha1(text)): how ZooKeeper's digest scheme hides a password. Too weak to guard a secret
/// that is worth much; it is what every client and every stored ACL has.
///
///     base64_sha1("super:secret")  // the part behind "super:" in an ACL
[[nodiscard]] std::string base64_sha1(std::string_view text);

}  // namespace latchkey::net
