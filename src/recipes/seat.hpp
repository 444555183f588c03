#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "recipes/claim.hpp"

namespace latchkey::recipes {

/// One of several claims that share a claim below them: passes on what its caller wants to the
/// keeper of that claim, under its number, and what the keeper has to say to its claimant. It keeps
/// the keeper alive, and the keeper keeps the seats that are taken.
///
/// Keeper has the type Number, cancel(Number, Code), release(Number, Completion), on_lease_over()
/// and listen(). Thread safety: session strand only.
template <class Keeper>
class Seat final : public Claim {
 public:
  Seat(std::shared_ptr<Keeper> keeper, typename Keeper::Number number,
       std::shared_ptr<Claimant> claimant)
      : keeper_(std::move(keeper)),
        number_(number),
        asking_(std::move(claimant)),
        claimant_(asking_) {}

  void cancel(Code code) override { keeper()->cancel(number_, code); }
  LetGo release(session::Completion done) override {
    return keeper()->release(number_, std::move(done));
  }
  void on_lease_over() override { keeper()->on_lease_over(); }
  void listen() override { keeper()->listen(); }

  void grant(Granted grant) { std::exchange(asking_, {})->granted(std::move(grant)); }
  void fail(Error error) { std::exchange(asking_, {})->failed(std::move(error)); }
  /// Calls `told` at once if nobody is left to hear it.
  void lose(Code code, std::function<void()> told) {
    const auto claimant = claimant_.lock();
    claimant ? claimant->lost(code, std::move(told)) : told();
  }
  void ask_to_let_go() {
    if (const auto claimant = claimant_.lock()) claimant->asked_to_let_go();
  }

 private:
  /// A copy: the seat may go while the keeper is at work.
  [[nodiscard]] std::shared_ptr<Keeper> keeper() const { return keeper_; }

  const std::shared_ptr<Keeper> keeper_;
  const typename Keeper::Number number_;
  std::shared_ptr<Claimant> asking_;  ///< Until it has its answer.
  const std::weak_ptr<Claimant> claimant_;
};

}  // namespace latchkey::recipes
