#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "queue/bundle.hpp"
#include "recipes/attempt.hpp"
#include "recipes/claim.hpp"
#include "session/host.hpp"

namespace latchkey::recipes {

/// Several attempts as one claim: granted when all are, failed when one fails, lost when one is
/// lost. A queue::Bundle decides; this sends the creates of all members as one multi.
///
/// Lives as long as one of its members does. Thread safety: session strand only.
class MultiClaim final : public Claim {
 public:
  /// `plans` must not be empty.
  static std::shared_ptr<MultiClaim> start(const std::shared_ptr<session::Host>& host,
                                           session::Machine& machine, std::vector<Plan> plans,
                                           std::shared_ptr<Claimant> claimant);

  MultiClaim(const std::shared_ptr<session::Host>& host, session::Machine& machine,
             std::size_t size, std::shared_ptr<Claimant> claimant);

  void cancel(Code code) override;
  LetGo release(session::Completion done) override;
  void on_lease_over() override;
  void listen() override;

 private:
  /// An attempt whose contender steps together with the others'.
  class Member final : public Attempt {
   public:
    Member(const std::shared_ptr<session::Host>& host, session::Machine& machine,
           std::shared_ptr<const Plan> plan, std::shared_ptr<MultiClaim> claim, std::size_t index);

    [[nodiscard]] queue::Contender& contender() { return contender_; }
    /// The part of the multi that creates its node.
    [[nodiscard]] wire::MultiOp create(const std::string& prefix) const;
    using Attempt::carry_out_any;
    using Attempt::directory;
    using Errand::begin;

   private:
    void feed(queue::Event event) override { claim_->feed(index_, std::move(event)); }

    const std::shared_ptr<MultiClaim> claim_;
    const std::size_t index_;
  };

  /// What a member says comes here.
  class Ear final : public Claimant {
   public:
    Ear(MultiClaim& claim, std::size_t index) : claim_(claim), index_(index) {}

    void granted(Granted grant) override { claim_.granted(index_, std::move(grant)); }
    void failed(Error error) override { claim_.failed(std::move(error)); }
    void lost(Code code, std::function<void()> told) override {
      claim_.lost(code, std::move(told));
    }
    void asked_to_let_go() override { claim_.asked_to_let_go(); }

   private:
    MultiClaim& claim_;
    const std::size_t index_;
  };

  void feed(std::size_t member, queue::Event event);
  void carry_out(queue::Bundle::Wish& wish);
  [[nodiscard]] std::size_t size_of_multi() const;
  void send_creates();
  void created(const session::Outcome& outcome);

  void granted(std::size_t member, Granted grant);
  void failed(Error error);
  void lost(Code code, std::function<void()> told);
  void loss_is_told();
  void asked_to_let_go();

  session::Host& host_;
  session::Machine& machine_;
  queue::Bundle bundle_;
  std::vector<Ear> ears_;
  std::vector<std::shared_ptr<Member>> members_;  ///< Until all are done.
  std::size_t done_ = 0;
  std::shared_ptr<Claimant> asking_;  ///< Until it has its answer.
  std::weak_ptr<Claimant> claimant_;
  std::vector<HeldNode> nodes_;  ///< By member.
  std::size_t granted_ = 0;

  std::vector<queue::action::Create> creates_;  ///< By member: asked for, or in the multi sent.
  std::optional<session::CallId> multi_;        ///< Unanswered.

  bool losing_ = false;
  bool loss_told_ = false;
  std::vector<std::function<void()>> told_;  ///< To be called once the holder knows.

  Inbox<std::pair<std::size_t, queue::Event>> inbox_;
};

}  // namespace latchkey::recipes
