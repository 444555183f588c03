#include "recipes/misuse.hpp"

namespace latchkey::recipes {

Result<void> check_place(const session::Host& host, const Path& path) {
  if (auto valid = path.check(); !valid) return valid;
  // Below a chroot everything is the user's.
  const std::string& chroot = host.options().chroot;
  if (!chroot.empty() && chroot != "/") return {};
  const std::string& text = path.text();
  if (text == "/") {
    return Error(Code::kInvalidPath,
                 "lock /: the service's root is no place for a lock, everybody's nodes are there; "
                 "give it a path of its own, such as /locks/a");
  }
  if (text == "/zookeeper" || text.starts_with("/zookeeper/")) {
    return Error(Code::kInvalidPath, "lock " + text +
                                         ": /zookeeper belongs to the service; give the lock a "
                                         "path elsewhere, such as /locks/a");
  }
  return {};
}

Error invalid_option(const std::string& path, const std::string& what, std::string_view allowed) {
  return Error(Code::kInvalidOption,
               "lock " + path + ": " + what + "; it may be " + std::string(allowed));
}

Result<void> check_at_least(const std::string& path, std::string_view name,
                            std::chrono::milliseconds value, std::chrono::milliseconds least) {
  if (value >= least) return {};
  return invalid_option(path, std::string(name) + " is " + std::to_string(value.count()) + " ms",
                        std::to_string(least.count()) + " ms and more");
}

}  // namespace latchkey::recipes
