#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

// Limits that count addresses, over addresses that are not the loopback's.
namespace latchkey::test_support {
namespace {

using namespace std::chrono_literals;

/// A network namespace with two addresses; whoever connects to one of them comes from it.
class TwoAddresses {
 public:
  TwoAddresses() : holder_(unshare()) {
    const std::string command =
        "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up && ip addr add 10.99.0.1/32 dev lo && "
        "ip addr add 10.99.0.2/32 dev lo && echo done || echo failed\n";
    works_ = holder_.write(command) && holder_.wait_for_line("", deadline_in(60s)) == "done";
  }

  /// False: this system does not let us have one.
  [[nodiscard]] bool works() const { return works_; }
  [[nodiscard]] static std::vector<std::string> addresses() { return {"10.99.0.1", "10.99.0.2"}; }
  /// A program that is started with these words before it lives there.
  [[nodiscard]] std::vector<std::string> prefix() const {
    std::vector<std::string> words = {"nsenter", "--net", "--target",
                                      std::to_string(holder_.pid())};
    if (!is_root()) words.insert(words.end(), {"--user", "--preserve-credentials"});
    words.insert(words.end(), {"setpriv", "--pdeathsig", "KILL"});
    return words;
  }

 private:
  [[nodiscard]] static bool is_root() { return ::geteuid() == 0; }
  /// Root needs no namespace of users, which it may not have either, as in a chroot.
  [[nodiscard]] static std::vector<std::string> unshare() {
    if (is_root()) return {"unshare", "--net", "sh"};
    return {"unshare", "--user", "--map-root-user", "--net", "sh"};
  }

  Child holder_;
  bool works_ = false;
};

/// One of this machine's that is not the loopback's.
std::optional<std::string> own_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(all, ::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const auto* name = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (ntohl(name->sin_addr.s_addr) >> 24U == 127) continue;
    char text[INET_ADDRSTRLEN] = {};
    return ::inet_ntop(AF_INET, &name->sin_addr, text, sizeof text);
  }
  return std::nullopt;
}

class ServerAddresses : public testing::Test {
 protected:
  ServerAddresses() {
    if (network_.works()) {
      prefix_ = network_.prefix();
      addresses_ = TwoAddresses::addresses();
    } else if (const auto own = own_address()) {
      addresses_ = {*own};  // Then there is no second one that must not notice.
    }
  }

  void serve(const std::vector<std::string>& options) {
    // Nobody's session is over before the test is.
    std::vector<std::string> words = {LATCHKEY_COMMAND, "serve", "--memory",
                                      "--max-session-timeout", "600s"};
    port_ = free_port();
    for (const std::string& address : addresses_) {
      words.insert(words.end(), {"--listen", at(address)});
    }
    words.insert(words.end(), options.begin(), options.end());
    server_ = start(words);
    ASSERT_TRUE(server_->wait_for_line("serves on", deadline_in(20s)));
  }
  /// A process with a connection from `address`; nothing if it was turned away.
  std::unique_ptr<Child> connect(const std::string& address) {
    auto peer = start({LATCHKEY_BOUND_PEER, at(address), "600000"});
    return peer->wait_for_line("session ", deadline_in(20s)) ? std::move(peer) : nullptr;
  }
  [[nodiscard]] std::string at(const std::string& address) const {
    return address + ":" + std::to_string(port_);
  }

  std::unique_ptr<Child> start(std::vector<std::string> words) {
    words.insert(words.begin(), prefix_.begin(), prefix_.end());
    return std::make_unique<Child>(words);
  }

  TwoAddresses network_;
  std::vector<std::string> addresses_;

 private:
  std::vector<std::string> prefix_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Child> server_;
};

TEST_F(ServerAddresses, WithoutAnyItListensOnTheLoopbacksZooKeeperPortAndAtAPrivateSocket) {
  const TempDir folder;
  const std::string data = folder.path() / "data";
  const std::string beside_data = data + "/latchkey.sock";
  const std::string of_user = folder.path() / "latchkey/memory.sock";
  const std::vector<std::string> keeping = {"--data", data};
  for (const auto& [where, socket] : {std::pair(keeping, beside_data),
                                      std::pair(std::vector<std::string>{"--memory"}, of_user)}) {
    std::vector<std::string> words = {"env",
                                      "XDG_RUNTIME_DIR=" + folder.path().string(),
                                      "sh",
                                      "-c",
                                      "exec \"$@\" 2>&1",
                                      "sh",
                                      LATCHKEY_COMMAND,
                                      "serve"};
    words.insert(words.end(), where.begin(), where.end());
    const auto server = start(words);
    const auto line = server->wait_for_line("127.0.0.1:2181", deadline_in(20s));
    ASSERT_TRUE(line);
    if (!network_.works()) return;  // There it may be somebody else's, and was named as such.

    EXPECT_THAT(*line, testing::HasSubstr("serves on 127.0.0.1:2181, unix:" + socket + "; "));
    struct stat made {};
    ASSERT_EQ(::stat(socket.c_str(), &made), 0);
    EXPECT_EQ(made.st_mode & 0777U, 0600U);
    for (const std::string& address : {std::string("127.0.0.1:2181"), "unix:" + socket}) {
      const auto peer = start({LATCHKEY_BOUND_PEER, address, "30000"});
      EXPECT_TRUE(peer->wait_for_line("session ", deadline_in(20s))) << address;
    }
    server->signal(SIGTERM);
    EXPECT_EQ(server->wait(deadline_in(20s)), (ExitStatus{0, 0}));
    EXPECT_NE(::stat(socket.c_str(), &made), 0);
  }
}

TEST_F(ServerAddresses, H89_ConnectionsOfOneAddressAreBoundedAndAnotherDoesNotNotice) {
  ASSERT_FALSE(addresses_.empty()) << "no namespace may be made, and there is only the loopback";
  ASSERT_NO_FATAL_FAILURE(serve({"--max-connections-per-address", "2"}));
  const std::string& crowded = addresses_.front();
  const auto first = connect(crowded);
  auto second = connect(crowded);
  ASSERT_TRUE(first && second);

  EXPECT_FALSE(connect(crowded)) << "a third";

  if (addresses_.size() > 1) {
    EXPECT_TRUE(connect(addresses_.back()));
  }
  second.reset();
  EXPECT_TRUE(eventually([&] { return connect(crowded) != nullptr; })) << "there is room again";
}

TEST_F(ServerAddresses, H94_SessionsOfOneAddressAreBoundedAndAnotherDoesNotNotice) {
  ASSERT_FALSE(addresses_.empty()) << "no namespace may be made, and there is only the loopback";
  ASSERT_NO_FATAL_FAILURE(serve({"--max-sessions-per-address", "1"}));
  const std::string& crowded = addresses_.front();
  ASSERT_TRUE(connect(crowded)) << "it is gone again, and its session is not";

  EXPECT_FALSE(connect(crowded));

  if (addresses_.size() > 1) {
    EXPECT_TRUE(connect(addresses_.back()));
  }
}

}  // namespace
}  // namespace latchkey::test_support
