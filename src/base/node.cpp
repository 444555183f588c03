#include "latchkey/node.hpp"

namespace latchkey::inline v0 {

std::vector<Acl> open_acl() { return {{kAllPermissions, "world", "anyone"}}; }

std::vector<Acl> creator_acl() { return {{kAllPermissions, "auth", ""}}; }

}  // namespace latchkey::inline v0
