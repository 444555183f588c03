#include "latchkey/multi_lock.hpp"

#include <set>
#include <utility>

#include "recipes/entry_data.hpp"
#include "recipes/misuse.hpp"
#include "recipes/multi_claim.hpp"
#include "recipes/recipe.hpp"

namespace latchkey::inline v0 {
namespace {

std::string joined(const std::vector<Path>& directories) {
  std::string text;
  for (const Path& one : directories) text += (text.empty() ? "" : ", ") + one.text();
  return text;
}

class MultiRecipe final : public recipes::Recipe {
 public:
  MultiRecipe(std::shared_ptr<session::Host> host, std::vector<Path> directories,
              MultiLockOptions options)
      : Recipe(std::move(host), joined(directories)),
        directories_(std::move(directories)),
        options_(std::move(options)) {}

  [[nodiscard]] Result<void> check() const override {
    if (directories_.empty()) {
      return Error(Code::kInvalidOption, "lock: a multi-lock needs at least one directory");
    }
    std::set<std::string> seen;
    for (const Path& directory : directories_) {
      if (auto valid = recipes::check_place(*host(), directory); !valid) return valid;
      if (seen.insert(directory.text()).second) continue;
      return Error(Code::kInvalidOption, "lock " + path() + ": " + directory.text() +
                                             " is named twice, and would wait for itself");
    }
    return {};
  }

  std::shared_ptr<recipes::Claim> start(
      session::Machine& machine, queue::Wait wait,
      std::shared_ptr<recipes::Claimant> claimant) const override {
    const std::string data = recipes::entry_data(options_.reason);
    std::vector<recipes::Plan> plans;
    for (const Path& directory : directories_) {
      queue::Contender::Options options{
          .directory = directory.text(), .wait = wait, .spent = queue::Spent::kFail};
      plans.push_back(
          {.contender = std::make_shared<const queue::Contender::Options>(std::move(options)),
           .data = data,
           .acl = options_.acl,
           .parent = options_.parent});
    }
    return recipes::MultiClaim::start(host(), machine, std::move(plans), std::move(claimant));
  }

 private:
  const std::vector<Path> directories_;
  const MultiLockOptions options_;
};

}  // namespace

MultiLock::MultiLock(const Session& session, std::vector<Path> directories,
                     MultiLockOptions options)
    : Lock(std::make_shared<MultiRecipe>(session.host(), std::move(directories),
                                         std::move(options))) {}

}  // namespace latchkey::inline v0
