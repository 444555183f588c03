#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "queue/contender.hpp"
#include "recipes/companions.hpp"
#include "recipes/directory_errand.hpp"

namespace latchkey::recipes {

/// What an attempt needs to know beyond what its contender decides. Attempts may share it.
struct Plan {
  std::shared_ptr<const queue::Contender::Options> contender;
  std::string data;  ///< Of our node: who we are.
  std::vector<Acl> acl;
  Parent parent = Parent::kContainer;
  std::string base = {};       ///< See Ground.
  std::string base_data = {};  ///< See Ground.
  /// For an entry that excludes all others and waits for one queue only: see queue::Company.
  std::shared_ptr<Companions> company = {};
};

/// One contender on one session: carries out what it asks for and tells it what came back.
/// Thread safety: session strand only.
class Attempt : public DirectoryErrand<queue::Event>, private Companion {
 public:
  static std::shared_ptr<Attempt> start(const std::shared_ptr<session::Host>& host,
                                        session::Machine& machine, std::shared_ptr<const Plan> plan,
                                        std::shared_ptr<Claimant> claimant);

  Attempt(const std::shared_ptr<session::Host>& host, session::Machine& machine,
          std::shared_ptr<const Plan> plan, std::shared_ptr<Claimant> claimant);
  ~Attempt() override;

  /// See Contender.
  [[nodiscard]] std::string why_it_waits() const { return contender_.why_it_waits(); }

  void cancel(Code code) override;
  bool downgrade(std::shared_ptr<Claimant> reader, std::function<void()> retire) override;

 protected:
  void carry_out_any(queue::Action& wish) {
    std::visit([this](auto& what) { carry_out(what); }, wish);
  }

  [[nodiscard]] const std::string& directory() const override {
    return contender_.options().directory;
  }

  std::shared_ptr<const Plan> plan_;  ///< As long as nodes may have to be made.
  queue::Contender contender_;

 private:
  [[nodiscard]] const std::string& path() const override { return directory(); }
  [[nodiscard]] Ground ground() const override {
    return {directory(), plan_->acl, plan_->parent, plan_->base, plan_->base_data};
  }
  void step(queue::Event& event) override;
  [[nodiscard]] bool is_own(const std::string& name) const override {
    return contender_.is_own(name);
  }
  [[nodiscard]] session::Completion next_removal() override { return take_on_removed(); }

  void on_listed(const std::vector<std::string>& children) override;
  void on_gone(const std::string& name) override;
  void on_owed(const std::string& name) override;
  void on_loss_told() override;
  [[nodiscard]] const std::vector<std::string>& extra_tags() const override {
    return contender_.options().extra_tags;
  }
  [[nodiscard]] const std::optional<queue::Place>& stands_at() const override {
    return contender_.place();
  }
  void is_due(std::optional<std::vector<std::string>> known) override;
  void companion_left(const std::string& name) override;
  void watch_yourself() override { feed(queue::event::Heartbeat{}); }
  [[nodiscard]] std::string choose_replaced();
  void take_place(std::string_view name, const std::string& replaced);
  void answer_waiting_list(std::optional<queue::Inherited> inherited);
  void leave_company();

  using DirectoryErrand::carry_out;
  void carry_out(queue::action::Create& action);
  void carry_out(queue::action::List& action);
  void carry_out(queue::action::Watch& action);
  void carry_out(queue::action::ReadFarewell& action);
  void carry_out(queue::action::Unwatch& action);
  void carry_out(queue::action::Withdraw& action);
  void carry_out(queue::action::Done& action);
  void carry_out(queue::action::Exchange& action);
  void carry_out(queue::action::Grant& action);
  void carry_out(queue::action::Bequeath& action);

  std::unique_ptr<std::function<void()>> retire_;  ///< While asking for a downgrade.
  /// Kept to the end, for what we leave to the next is there.
  const std::shared_ptr<Companions> companions_;
  Companions* company_;  ///< While it is a member.
  Companions::Id id_ = 0;
  queue::Ask waiting_list_ = 0;               ///< The list that waits until we are due; 0: none.
  base::Box<queue::Estate> estate_;           ///< Until its create is answered.
  base::Box<std::string> watched_companion_;  ///< By its entry.
  bool has_just_come_ = false;  ///< The server's answer to its create is being dealt with.
  bool done_ = false;           ///< Nothing is left but to tell a loss.
};

}  // namespace latchkey::recipes
