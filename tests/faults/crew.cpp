#include "crew.hpp"

#include <csignal>
#include <stdexcept>
#include <utility>

#include "pause.hpp"
#include "support/sockets.hpp"

namespace latchkey::faults {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test_support::Child;
using test_support::ExitStatus;
using test_support::FaultProxy;
using test_support::Hold;
using test_support::kForever;
using test_support::Match;

constexpr auto kCrewPatience = 180s;  // Longer than a client's own.

std::string orders_text(const std::optional<ExitStatus>& status) {
  if (!status) return "runs on";
  if (status->signal != 0) return "was ended by signal " + std::to_string(status->signal);
  return "ended with status " + std::to_string(status->code);
}

}  // namespace

Crew::Crew(CrewOptions options, const Network& network)
    : options_(std::move(options)), network_(network), seeds_(options_.seed) {
  for (std::size_t i = 0; i < options_.size; ++i) {
    Member member;
    member.number = i;
    member.own_network = network_.means().namespaces && i % 2 == 1;
    add_links(member);
    launch(member);
    members_.push_back(std::move(member));
  }
}

void Crew::add_links(Member& member) const {
  for (const std::string& server : options_.addresses) {
    const std::string port = ':' + std::to_string(test_support::free_port());
    const std::string seen_as =
        member.own_network ? Network::our_address(member.number) : "127.0.0.1";
    // The interface comes and goes with the process behind it.
    member.links.push_back(std::make_unique<FaultProxy>(
        server, test_support::FaultProxyOptions{
                    .listen = (member.own_network ? "0.0.0.0" : seen_as) + port}));
    member.connect += (member.connect.empty() ? "" : ",") + seen_as + port;
  }
}

void Crew::launch(Member& member) {
  const std::string who =
      'w' + std::to_string(member.number) + '.' + std::to_string(member.starts++);
  std::vector<std::string> words = {options_.program, who, member.connect,
                                    std::to_string(options_.timeout.count()),
                                    std::to_string(seeds_.next())};
  if (member.own_network) {
    words.insert(words.end(), {Network::kInterface, Network::their_address(member.number)});
  }
  member.process = std::make_unique<Child>(words);
  if (!member.own_network) return;
  if (!member.process->wait_for_line("ready", deadline_in(60s))) {
    throw std::runtime_error(who + " has no network of its own");
  }
  network_.link(member.number, member.process->pid());
  member.process->write("linked\n");
}

void Crew::set_to_work(Member& member) const {
  member.process->write("work " + folder_.string() + '\n');
}

void Crew::work(std::filesystem::path folder) {
  folder_ = std::move(folder);
  for (Member& member : members_) {
    // Nobody asks what passed; over hours it would be much.
    for (const auto& link : member.links) link->log().clear();
    set_to_work(member);
  }
}

Crew::Member& Crew::choose(ClientFault fault, base::Random& random) {
  std::vector<Member*> able;
  for (Member& member : members_) {
    if (fault == ClientFault::kKill && member.number < members_.size() / 2) continue;
    if (fault < ClientFault::kLinkDown || member.own_network) able.push_back(&member);
  }
  return *able.at(random.below(able.size()));
}

bool Crew::strike(ClientFault fault, milliseconds length, base::Random& random) {
  Member& member = choose(fault, random);
  switch (fault) {
    case ClientFault::kKill:
      // Who has ended by itself stays where it is: settle() tells.
      if (!member.process->running()) return false;
      member.process->signal(SIGKILL);
      static_cast<void>(member.process->wait(deadline_in(60s)));
      pause_for(length);
      launch(member);
      set_to_work(member);
      return true;
    case ClientFault::kStopShort:
    case ClientFault::kStopLong:
      if (!member.process->running()) return false;
      member.process->pause();
      pause_for(length);
      member.process->resume();
      return true;
    case ClientFault::kLinkDown:
    case ClientFault::kLinkFlaps:
    case ClientFault::kPacketLoss: strike_network(fault, member, length); return true;
    default: return strike_link(fault, member, length, random);
  }
}

bool Crew::strike_link(ClientFault fault, Member& member, milliseconds length,
                       base::Random& random) const {
  const int nth = 1 + static_cast<int>(random.below(20));
  const milliseconds delay(1 + random.below(static_cast<std::uint64_t>(length.count()) / 2));
  std::vector<std::pair<const FaultProxy*, int>> armed;
  bool met = false;
  for (const auto& link : member.links) {
    // Messages strike, and not the arming; a connection is struck as it is.
    const auto arm = [&](int number) { armed.emplace_back(link.get(), number); };
    const bool for_messages = fault == ClientFault::kDelay || fault == ClientFault::kDropRequests ||
                              fault == ClientFault::kDropReplies;
    met = met || (!for_messages && link->connections_open() > 0);
    switch (fault) {
      case ClientFault::kCut: link->cut_all(); break;
      case ClientFault::kReset:
        link->refuse();
        link->reset_all();
        break;
      case ClientFault::kDelay:
        arm(link->delay_request(Match::any(1, kForever), delay));
        arm(link->delay_reply(Match::any(1, kForever), delay));
        break;
      case ClientFault::kDropRequests: arm(link->cut_before_request(Match::any(nth, 3))); break;
      case ClientFault::kDropReplies: arm(link->cut_after_request(Match::any(nth, 3))); break;
      case ClientFault::kSilenceToServer: link->hold(Hold::kToServer); break;
      case ClientFault::kSilenceToClient: link->hold(Hold::kToClient); break;
      case ClientFault::kSilenceLong: link->hold(Hold::kBoth); break;
      default: throw std::logic_error("not a fault of a link: " + std::string(name(fault)));
    }
  }
  pause_for(length);
  for (const auto& [link, number] : armed) met = met || link->fired(number) > 0;
  for (const auto& link : member.links) {
    link->disarm_all();
    link->release();
    link->accept();
  }
  return met;
}

void Crew::strike_network(ClientFault fault, const Member& member, milliseconds length) const {
  if (fault == ClientFault::kPacketLoss) {
    network_.lose_packets(member.number);
    pause_for(length);
    return network_.lose_nothing(member.number);
  }
  const int times = fault == ClientFault::kLinkFlaps ? 8 : 1;
  for (int i = 0; i < times; ++i) {
    network_.take_down(member.number);
    pause_for(length / times);
    network_.bring_up(member.number);
    if (times > 1) pause_for(length / times);
  }
}

std::vector<std::string> Crew::settle() {
  for (Member& member : members_) member.process->write("settle\n");
  std::vector<std::string> troubles;
  for (Member& member : members_) {
    if (member.process->wait_for_line("settled", deadline_in(kCrewPatience))) continue;
    troubles.push_back('w' + std::to_string(member.number) + " does not settle: it " +
                       orders_text(member.process->wait(deadline_in(1s))));
  }
  return troubles;
}

std::vector<std::string> Crew::leave() {
  std::vector<std::string> troubles;
  for (Member& member : members_) {
    member.process->write("leave\n");
    const auto status = member.process->wait(deadline_in(kCrewPatience));
    if (status == ExitStatus{0, 0}) continue;
    troubles.push_back('w' + std::to_string(member.number) + " does not leave: it " +
                       orders_text(status));
  }
  return troubles;
}

std::vector<std::string> Crew::names() const {
  std::vector<std::string> result;
  for (const Member& member : members_) result.push_back('w' + std::to_string(member.number));
  return result;
}

std::vector<pid_t> Crew::processes() const {
  std::vector<pid_t> result;
  for (const Member& member : members_) result.push_back(member.process->pid());
  return result;
}

}  // namespace latchkey::faults
