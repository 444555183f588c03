#include "network.hpp"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace latchkey::faults {

namespace {

bool run(const std::string& command) {
  return std::system(("PATH=$PATH:/usr/sbin:/sbin; exec >/dev/null 2>&1; " + command).c_str()) == 0;
}

void must(const std::string& command) {
  if (!run(command)) throw std::runtime_error("failed: " + command);
}

std::string interface(std::size_t number) { return "latch" + std::to_string(number) + "up"; }

bool move() {
  if (::unshare(CLONE_NEWNET) == 0) return true;
  const std::string user = std::to_string(::getuid());
  const std::string group = std::to_string(::getgid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  return true;
}

}  // namespace

Network Network::enter() {
  Network network;
  if (!run("ip -Version")) {
    network.why_not_ = "no ip command (package iproute2): links are not taken down";
    return network;
  }
  if (!move()) {
    network.why_not_ = std::string("no network namespace may be made (") + std::strerror(errno) +
                       "): links are not taken down";
    return network;
  }
  if (!run("ip link set lo up")) {
    throw std::runtime_error("ip link set lo up failed in a network namespace of our own");
  }
  network.means_.namespaces = run("ip link add probe0 type veth peer name probe1");
  if (!network.means_.namespaces) {
    network.why_not_ = "the kernel has no veth interfaces: links are not taken down";
    return network;
  }
  network.means_.packet_loss = run("tc qdisc replace dev probe0 root netem loss 30%");
  if (!network.means_.packet_loss) {
    network.why_not_ = "the kernel has no netem: links go down and up, but lose no single packets";
  }
  must("ip link del probe0");
  return network;
}

std::string Network::our_address(std::size_t number) {
  return "10.99." + std::to_string(number) + ".1";
}
std::string Network::their_address(std::size_t number) {
  return "10.99." + std::to_string(number) + ".2";
}

void Network::link(std::size_t number, pid_t process) const {
  const std::string ours = interface(number);
  run("ip link del " + ours);
  must("ip link add " + ours + " type veth peer name " + kInterface + " netns " +
       std::to_string(process));
  must("ip addr add " + our_address(number) + "/24 dev " + ours);
  bring_up(number);
}

void Network::take_down(std::size_t number) const {
  must("ip link set " + interface(number) + " down");
}
void Network::bring_up(std::size_t number) const {
  must("ip link set " + interface(number) + " up");
}
void Network::lose_packets(std::size_t number) const {
  must("tc qdisc replace dev " + interface(number) + " root netem loss 30% delay 20ms 10ms");
}
void Network::lose_nothing(std::size_t number) const {
  must("tc qdisc del dev " + interface(number) + " root");
}

}  // namespace latchkey::faults
