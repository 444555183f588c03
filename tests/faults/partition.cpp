// Two hosts with one lock, and the first is cut off, or its `latchkey run` killed, while its
// command runs: that command has to be dead before the second host's begins. Hosts are network
// namespaces and the cut is an interface that goes down; where no namespace may be made, the run
// says so and a proxy falls silent instead.
//
//     latchkey_partition [--runs N] [--pairs N] [--seed S] [--service NAME] [--fault cut|kill]
//
// Ends with 1 if two commands ran at once. See docs/testing.md.
#include <algorithm>
#include <csignal>
#include <exception>
#include <future>
#include <iostream>
#include <optional>
#include <stdexcept>

#include "base/random.hpp"
#include "command/beats.hpp"
#include "network.hpp"
#include "pause.hpp"
#include "service.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/temp_dir.hpp"

namespace latchkey::faults {
namespace {

using namespace std::chrono_literals;
using test_support::Beats;
using test_support::beats_in;
using test_support::Child;
using test_support::ChildOptions;
using test_support::ExitStatus;
using test_support::FaultProxy;

constexpr const char* kUsage =
    "usage: latchkey_partition [OPTIONS]\n"
    "  --runs N        how often a holder is cut off, in all (default 8)\n"
    "  --pairs N       so many pairs of hosts at the same time (default 4)\n"
    "  --seed S        what the moments are drawn from (default 1)\n"
    "  --service NAME  embedded or standalone (default embedded)\n"
    "  --fault NAME    cut: the host is cut off; kill: SIGKILL for its latchkey (default cut)\n";

constexpr auto kPatience = 60s;
constexpr auto kTimeout = 6s;  // So that two seconds without a processor end no lease.
constexpr ExitStatus kLost{75, 0};
constexpr ExitStatus kTerminated{128 + 15, 0};
constexpr ExitStatus kKilled{-1, SIGKILL};

/// What is done to the first host.
enum class Blow { kCut, kKill };

struct Options {
  int runs = 8;
  int pairs = 4;
  std::uint64_t seed = 1;
  ServiceKind service = ServiceKind::kEmbedded;
  Blow blow = Blow::kCut;
};

/// How the first command behaves: it ends when it is asked to, it does not, or it has left the
/// process group as well.
enum class Manner { kPolite, kStubborn, kEscaped };

const char* name(Manner manner) {
  switch (manner) {
    case Manner::kPolite: return "polite";
    case Manner::kStubborn: return "stubborn";
    case Manner::kEscaped: return "escaped";
  }
  return "";
}

std::vector<std::string> command_of(Manner manner, const std::string& file) {
  if (manner != Manner::kEscaped) return {LATCHKEY_FAULT_BEAT, file, name(manner)};
  return {"sh", "-c", R"(setsid "$0" "$1" stubborn & wait)", LATCHKEY_FAULT_BEAT, file};
}

/// A machine of its own as far as the network goes, with one `latchkey run` on it.
class Host {
 public:
  Host(std::size_t number, const std::string& server, const Network& network)
      : number_(number),
        network_(network),
        own_(network.means().namespaces),
        proxy_(server, {.listen = own_ ? "0.0.0.0:" + port_ : ""}) {}

  void run(const std::string& lock, const std::vector<std::string>& command) {
    const std::string connect =
        own_ ? Network::our_address(number_) + ":" + port_ : proxy_.connect_string();
    std::vector<std::string> words = {LATCHKEY_COMMAND,
                                      "run",
                                      "-z",
                                      connect,
                                      "--session-timeout",
                                      std::to_string(kTimeout.count()) + "s",
                                      lock,
                                      "--"};
    words.insert(words.end(), command.begin(), command.end());
    if (own_) {
      const std::vector<std::string> inside = {
          "unshare",
          "-n",
          "sh",
          "-c",
          "echo ready; read -r go; PATH=$PATH:/usr/sbin:/sbin; address=$1; shift; "
          "ip addr add $address/24 dev latch0 && ip link set latch0 up && exec \"$@\"",
          "sh",
          Network::their_address(number_)};
      words.insert(words.begin(), inside.begin(), inside.end());
    }
    process_ = std::make_unique<Child>(words, ChildOptions{.is_job = true});
    if (!own_) return;
    if (!process_->wait_for_line("ready", deadline_in(kPatience))) {
      throw std::runtime_error("a host did not get a network of its own");
    }
    network_.link(number_, process_->pid());
    process_->write("go\n");
  }

  void cut_off() {
    if (own_) return network_.take_down(number_);
    proxy_.hold(test_support::Hold::kBoth);
  }

  void kill() const { process_->signal(SIGKILL); }
  void stop() const { process_->signal(SIGTERM); }
  [[nodiscard]] bool ends_with(ExitStatus status) const {
    return process_->wait(deadline_in(kPatience)) == status;
  }

 private:
  const std::size_t number_;
  const Network& network_;
  const bool own_;
  const std::string port_ = std::to_string(test_support::free_port());
  FaultProxy proxy_;
  std::unique_ptr<Child> process_;
};

struct Outcome {
  Manner manner = Manner::kPolite;
  long long gap_ns = 0;  ///< From the last sign of life of the first to the first of the second.
  std::string wrong;     ///< Empty if all is well.
};

Outcome play(std::size_t pair, Manner manner, const std::string& server, const Network& network,
             Duration before_blow, Blow blow) {
  const test_support::TempDir folder;
  const std::string first_file = (folder.path() / "first").string();
  const std::string second_file = (folder.path() / "second").string();
  const std::string lock = "partition-" + std::to_string(pair);
  Host first(2 * pair, server, network);
  Host second(2 * pair + 1, server, network);
  const auto beats = [](const std::string& file) {
    return test_support::eventually([&] { return beats_in(file).last != 0; },
                                    deadline_in(kPatience));
  };
  Outcome outcome{manner, 0, {}};
  const auto wrong = [&](const char* what) {
    outcome.wrong = what;
    return outcome;
  };

  first.run(lock, command_of(manner, first_file));
  if (!beats(first_file)) return wrong("the first command did not begin");
  second.run(lock, {LATCHKEY_FAULT_BEAT, second_file, "polite", first_file});
  pause_for(before_blow);
  blow == Blow::kCut ? first.cut_off() : first.kill();
  if (!first.ends_with(blow == Blow::kCut ? kLost : kKilled)) {
    return wrong("the first did not end as one that lost its lock, or was killed");
  }
  if (!beats(second_file)) return wrong("the second command did not begin");

  const Beats before = beats_in(first_file);
  const Beats after = beats_in(second_file);
  outcome.gap_ns = after.first - before.last;
  if (outcome.gap_ns <= 0) outcome.wrong = "both commands ran at once";
  std::string rival;
  std::ifstream(second_file + ".rival") >> rival;
  if (rival != "dead") outcome.wrong = "the second began while the first was alive";
  second.stop();
  if (!second.ends_with(kTerminated)) return wrong("the second did not end by its signal");
  return outcome;
}

Options parse(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size()) throw std::invalid_argument(words[i] + " needs a value");
    const std::string& value = words[i + 1];
    if (words[i] == "--runs") {
      options.runs = std::stoi(value);
    } else if (words[i] == "--pairs") {
      options.pairs = std::stoi(value);
    } else if (words[i] == "--seed") {
      options.seed = std::stoull(value);
    } else if (words[i] == "--service" && value == "standalone") {
      options.service = ServiceKind::kStandalone;
    } else if (words[i] == "--fault" && (value == "kill" || value == "cut")) {
      options.blow = value == "kill" ? Blow::kKill : Blow::kCut;
    } else if (words[i] != "--service" || value != "embedded") {
      throw std::invalid_argument("no option " + words[i] + " " + value);
    }
  }
  if (options.runs < 1 || options.pairs < 1) throw std::invalid_argument("numbers start at 1");
  return options;
}

int run(const Options& options, const Network& network) {
  std::cout << "partition: " << options.runs << " runs, seed " << options.seed << ", "
            << name(options.service) << ", session time-out " << kTimeout.count() << " s; "
            << (network.means().namespaces ? "hosts are network namespaces"
                                           : network.why_not() + "; hosts are behind a proxy")
            << (options.blow == Blow::kCut ? ", their links go down\n" : ", latchkey is killed\n")
            << std::flush;
  const auto service = make_service(options.service, {LATCHKEY_COMMAND, LATCHKEY_DISK_SHIM});
  service->start();
  const std::string server = service->addresses().front();
  base::Random random(options.seed);
  std::vector<long long> gaps;
  int violations = 0;
  for (int done = 0; done < options.runs;) {
    const int now = std::min(options.pairs, options.runs - done);
    // The links are made by this thread, the one that is in the namespace, and by those it starts.
    std::vector<std::future<Outcome>> pairs;
    for (int pair = 0; pair < now; ++pair) {
      const auto manner = static_cast<Manner>((done + pair) % 3);
      const auto before_blow = std::chrono::milliseconds(random.below(2'000));
      pairs.push_back(std::async(std::launch::async, [&, pair, manner, before_blow] {
        return play(static_cast<std::size_t>(pair), manner, server, network, before_blow,
                    options.blow);
      }));
    }
    for (auto& pair : pairs) {
      const Outcome outcome = pair.get();
      std::cout << "run " << ++done << ", " << name(outcome.manner) << ": dead "
                << outcome.gap_ns / 1'000'000 << " ms before the next began"
                << (outcome.wrong.empty() ? "" : "; VIOLATION: " + outcome.wrong) << '\n'
                << std::flush;
      violations += outcome.wrong.empty() ? 0 : 1;
      gaps.push_back(outcome.gap_ns / 1'000'000);
    }
  }
  std::sort(gaps.begin(), gaps.end());
  std::cout << "least " << gaps.front() << " ms, median " << gaps[gaps.size() / 2] << " ms, "
            << violations << " violations in " << gaps.size() << " runs\n";
  return violations == 0 ? 0 : 1;
}

}  // namespace
}  // namespace latchkey::faults

int main(int argc, char** argv) {
  using namespace latchkey::faults;
  try {
    const Options options = parse({argv + 1, argv + argc});
    const Network network = Network::enter();
    return run(options, network);
  } catch (const std::invalid_argument& error) {
    std::cerr << "latchkey_partition: " << error.what() << '\n' << kUsage;
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "latchkey_partition: " << error.what() << '\n';
    return 1;
  }
}
