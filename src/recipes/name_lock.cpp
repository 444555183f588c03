#include "latchkey/name_lock.hpp"

#include <utility>

#include "recipes/entry_data.hpp"
#include "recipes/misuse.hpp"
#include "recipes/name_attempt.hpp"
#include "recipes/recipe.hpp"

namespace latchkey::inline v0 {
namespace {

class NameRecipe final : public recipes::Recipe {
 public:
  NameRecipe(std::shared_ptr<session::Host> host, Path node, NameLockOptions options)
      : Recipe(std::move(host), node.text()),
        node_(std::move(node)),
        options_(std::move(options)) {}

  [[nodiscard]] Result<void> check() const override {
    if (path() == "/") return Error(Code::kInvalidPath, "path \"/\": the root is always there");
    return recipes::check_place(*host(), node_);
  }

  std::shared_ptr<recipes::Claim> start(
      session::Machine& machine, queue::Wait wait,
      std::shared_ptr<recipes::Claimant> claimant) const override {
    return recipes::NameAttempt::start(host(), machine,
                                       {.contender = {.node = path(), .wait = wait},
                                        .data = recipes::entry_data(options_.reason),
                                        .acl = options_.acl,
                                        .parent = options_.parent},
                                       std::move(claimant));
  }

 private:
  const Path node_;
  const NameLockOptions options_;
};

}  // namespace

NameLock::NameLock(const Session& session, Path node, NameLockOptions options)
    : Lock(std::make_shared<NameRecipe>(session.host(), std::move(node), std::move(options))) {}

}  // namespace latchkey::inline v0
