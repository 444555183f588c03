#include "latchkey/semaphore.hpp"

#include <utility>

#include "queue/picture.hpp"
#include "recipes/entry_data.hpp"
#include "recipes/misuse.hpp"
#include "recipes/reader.hpp"
#include "recipes/recipe.hpp"
#include "recipes/semaphore_claim.hpp"

namespace latchkey::inline v0 {

struct Semaphore::Parts {
  std::shared_ptr<session::Host> host;
  Path path;
  SemaphoreOptions options;
  std::shared_ptr<bool> warned = std::make_shared<bool>(false);  ///< Session strand only.

  /// Reads the semaphore's node, or lists what is below it, behind a sync.
  template <class Operation>
  [[nodiscard]] Result<typename Operation::Value> look(const char* what, Deadline deadline) const {
    return recipes::look_once<typename Operation::Value>(
        *host, what, deadline, [&](const std::shared_ptr<recipes::Reader>& reader, auto done) {
          reader->ask_synced(Operation{path}, std::move(done));
        });
  }
};

namespace {

class SemaphoreRecipe final : public recipes::Recipe {
 public:
  SemaphoreRecipe(std::shared_ptr<session::Host> host, Path path, SemaphoreOptions options,
                  int count, std::shared_ptr<bool> warned)
      : Recipe(std::move(host), path.text()),
        path_(std::move(path)),
        options_(std::move(options)),
        count_(count),
        warned_(std::move(warned)) {}

  [[nodiscard]] Result<void> check() const override {
    if (auto valid = recipes::check_place(*host(), path_); !valid) return valid;
    if (options_.size && *options_.size < 1) return refuse("its size has to be at least 1");
    if (count_ < 1) return refuse("at least 1 permit has to be asked for");
    if (options_.size && count_ > *options_.size) {
      return refuse(std::to_string(count_) + " permits are asked for, its size is " +
                    std::to_string(*options_.size));
    }
    return {};
  }

  std::shared_ptr<recipes::Claim> start(
      session::Machine& machine, queue::Wait wait,
      std::shared_ptr<recipes::Claimant> claimant) const override {
    return recipes::SemaphoreClaim::start(
        host(), machine,
        {.permits = {.path = path(), .count = count_, .size = options_.size, .wait = wait},
         .data = recipes::entry_data(options_.reason),
         .acl = options_.acl,
         .parent = options_.parent,
         .warned = warned_},
        std::move(claimant));
  }

 private:
  [[nodiscard]] Error refuse(const std::string& why) const {
    return Error(Code::kInvalidOption, "semaphore " + path() + ": " + why);
  }

  const Path path_;
  const SemaphoreOptions options_;
  const int count_;
  const std::shared_ptr<bool> warned_;
};

}  // namespace

Semaphore::Semaphore(const Session& session, Path path, SemaphoreOptions options)
    : parts_(std::make_shared<const Parts>(
          Parts{.host = session.host(), .path = std::move(path), .options = std::move(options)})) {}

Lock Semaphore::permits(int count) const {
  return Lock(std::make_shared<SemaphoreRecipe>(parts_->host, parts_->path, parts_->options, count,
                                                parts_->warned));
}

Result<void> Semaphore::resize(int size, Deadline deadline) const {
  if (auto valid = recipes::check_place(*parts_->host, parts_->path); !valid) return valid;
  if (size < 1) {
    return Error(Code::kInvalidOption, "resize " + parts_->path.text() + " to " +
                                           std::to_string(size) + ": it has to be at least 1");
  }
  const std::string what = "resize " + parts_->path.text() + ": ";
  auto done = [&]() -> Result<void> {
    const auto node = parts_->look<Get>("resize", deadline);
    if (!node) return node.error();
    if (!queue::parse_size(node->data)) {
      const auto below = parts_->look<Children>("resize", deadline);
      if (!below) return below.error();
      if (!queue::is_semaphore(below->names)) {
        return Error(Code::kInvalidOption,
                     what + "what is there is not a semaphore, and its data stays as it is");
      }
    }
    const auto set = Session(parts_->host).set(parts_->path, std::to_string(size), deadline);
    return set ? Result<void>() : set.error();
  }();
  if (done || done.error() != Code::kNoNode) return done;
  return Error(Code::kNoNode, what +
                                  "there is no such semaphore; whoever takes its first permit "
                                  "makes it, with SemaphoreOptions::size");
}

Result<std::optional<int>> Semaphore::size(Deadline deadline) const {
  if (auto valid = recipes::check_place(*parts_->host, parts_->path); !valid) return valid.error();
  const auto node = parts_->look<Get>("size", deadline);
  if (node) return queue::parse_size(node->data);
  if (node.error() == Code::kNoNode) return std::optional<int>();
  return node.error();
}

}  // namespace latchkey::inline v0
