#include "support/ensemble.hpp"

#include <stdexcept>
#include <utility>

#include "support/eventually.hpp"
#include "support/sockets.hpp"

namespace latchkey::test_support {

Ensemble::Ensemble(const EnsembleOptions& options) {
  std::vector<std::uint16_t> election_ports;
  for (std::size_t i = 0; i < options.members; ++i) {
    quorum_ports_.push_back(free_port());
    election_ports.push_back(free_port());
  }
  // A follower may call before its leader listens. It copes with a refusal, but would take a
  // connection that breaks at once for the end of the leader and start a new election.
  FaultProxyOptions quorum_link;
  quorum_link.framing = Framing::kOpaque;
  quorum_link.dial = Dial::kPatiently;
  for (std::size_t from = 0; from < options.members; ++from) {
    for (std::size_t to = 0; to < options.members; ++to) {
      if (from == to || options.links == QuorumLinks::kDirect) continue;
      links_.push_back({from, to,
                        std::make_unique<FaultProxy>(loopback(quorum_ports_[to]), quorum_link),
                        false});
    }
  }
  for (std::size_t i = 0; i < options.members; ++i) {
    ApacheOptions server = options.server;
    server.my_id = static_cast<int>(i) + 1;
    server.config_lines.push_back("initLimit=" + std::to_string(options.init_limit));
    server.config_lines.push_back("syncLimit=" + std::to_string(options.sync_limit));
    for (std::size_t j = 0; j < options.members; ++j) {
      server.config_lines.push_back("server." + std::to_string(j + 1) + '=' + quorum_address(i, j) +
                                    ':' + std::to_string(election_ports[j]));
    }
    members_.push_back(std::make_unique<ApacheServer>(std::move(server)));
  }
}

std::string Ensemble::quorum_address(std::size_t seen_by, std::size_t of) const {
  for (const Link& link : links_) {
    if (link.from == seen_by && link.to == of) return link.proxy->connect_string();
  }
  return loopback(quorum_ports_[of]);
}

void Ensemble::start(Deadline deadline) {
  for (const auto& server : members_) server->launch();
  wait_for_quorum(deadline);
}

bool Ensemble::settled() {
  std::size_t leaders = 0;
  std::size_t serving = 0;
  for (const auto& server : members_) {
    if (!server->running()) continue;
    const ApacheMode mode = server->mode();
    if (mode != ApacheMode::kLeader && mode != ApacheMode::kFollower) return false;
    ++serving;
    if (mode == ApacheMode::kLeader) ++leaders;
  }
  return leaders == 1 && serving > members_.size() / 2;
}

void Ensemble::wait_for_quorum(Deadline deadline) {
  if (eventually([&] { return settled(); }, deadline)) return;
  std::string message = "no quorum";
  for (const auto& server : members_) {
    message += "\n" + server->connect_string() + ":\n" + server->log_tail();
  }
  throw std::runtime_error(message);
}

ApacheMode Ensemble::mode_of(std::size_t index) {
  // A busy machine may keep a member from answering for a while.
  ApacheMode mode = ApacheMode::kDown;
  const auto answers = [&] {
    if (!members_[index]->running()) return true;
    mode = members_[index]->mode();
    return mode != ApacheMode::kDown;
  };
  static_cast<void>(eventually(answers, deadline_in(std::chrono::seconds(30))));
  return mode;
}

std::size_t Ensemble::leader() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (mode_of(i) == ApacheMode::kLeader) return i;
  }
  throw std::runtime_error("the ensemble has no leader");
}

std::vector<std::size_t> Ensemble::followers() {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (mode_of(i) == ApacheMode::kFollower) result.push_back(i);
  }
  return result;
}

void Ensemble::rolling_restart() {
  std::vector<std::size_t> order = followers();
  order.push_back(leader());
  for (const std::size_t index : order) {
    member(index).stop();
    wait_for_quorum();
    start();
  }
}

void Ensemble::cut_from_leader(std::size_t follower) {
  if (links_.empty()) throw std::logic_error("the ensemble's links are not cuttable");
  for (Link& link : links_) {
    if (link.from != follower) continue;
    link.proxy->hold(Hold::kBoth);
    link.cut = true;
  }
}

void Ensemble::heal(std::size_t follower) {
  for (Link& link : links_) {
    if (link.from != follower || !std::exchange(link.cut, false)) continue;
    // Connections from before the cut are stale on one side at least.
    link.proxy->cut_all();
    link.proxy->release();
  }
}

std::string Ensemble::connect_string() const {
  std::string result;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    result += (i == 0 ? "" : ",") + connect_string(i);
  }
  return result;
}

std::string Ensemble::connect_string(std::size_t index) const {
  return members_.at(index)->connect_string();
}

}  // namespace latchkey::test_support
