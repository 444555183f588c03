#pragma once

#include <memory>
#include <string>
#include <utility>

#include "latchkey/result.hpp"
#include "queue/contender.hpp"
#include "recipes/claim.hpp"
#include "session/host.hpp"

namespace latchkey::recipes {

/// A kind of lock on a session: knows how to start a claim, and nothing about how callers wait.
/// Shared by every copy of the public value that stands for it. Immutable, what it shares between
/// its claims aside, which belongs to the session's strand. Thread safety: any thread.
class Recipe {
 public:
  Recipe(std::shared_ptr<session::Host> host, std::string path)
      : host_(std::move(host)), path_(std::move(path)) {}
  virtual ~Recipe() = default;

  [[nodiscard]] const std::shared_ptr<session::Host>& host() const { return host_; }
  /// What messages name, and Lock::path().
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Misuse that is known before anything is sent.
  [[nodiscard]] virtual Result<void> check() const = 0;
  /// Session strand only. May answer before it returns. A claim must not own the host, nor a recipe
  /// that does: it may end with the machine held, and the session must not.
  virtual std::shared_ptr<Claim> start(session::Machine& machine, queue::Wait wait,
                                       std::shared_ptr<Claimant> claimant) const = 0;

 private:
  const std::shared_ptr<session::Host> host_;
  const std::string path_;
};

}  // namespace latchkey::recipes
