#include "server/listener.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

#include <gtest/gtest.h>

namespace latchkey::server {
namespace {

TEST(HostPort, ReadsNamesAndAddresses) {
  const auto read = [](const char* text) {
    const HostPort where = parse_host_port(text).value();
    return where.host + " " + std::to_string(where.port);
  };

  EXPECT_EQ(read("127.0.0.1:2181"), "127.0.0.1 2181");
  EXPECT_EQ(read("[::1]:0"), "::1 0");
  EXPECT_EQ(read("localhost:65535"), "localhost 65535");
}

TEST(HostPort, RefusesWhatIsNoAddress) {
  for (const char* text :
       {"", "2181", ":2181", "a:", "a:b", "a:65536", "a:-1", "::1:2181", "a:1x"}) {
    const auto where = parse_host_port(text);
    ASSERT_FALSE(where) << text;
    EXPECT_EQ(where.error(), Code::kInvalidOption) << text;
  }
}

Remote from_ipv6(const char* text) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(4711);
  EXPECT_EQ(::inet_pton(AF_INET6, text, &address.sin6_addr), 1) << text;
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof address);
  return remote_from(storage);
}

TEST(Remote, H94_WhoHasHalfAnIpv6AddressHasTheRestAndCountsAsOne) {
  const Remote one = from_ipv6("2001:db8:0:1::5");
  const Remote other = from_ipv6("2001:db8:0:1:ffff:0:7:8");
  const Remote stranger = from_ipv6("2001:db8:0:2::5");

  EXPECT_EQ(one.origin, "2001:db8:0:1::/64");
  EXPECT_EQ(other.origin, one.origin);
  EXPECT_NE(stranger.origin, one.origin);
  EXPECT_EQ(one.ip, "2001:db8:0:1::5") << "an identity is the whole of it";
  EXPECT_EQ(one.address, "[2001:db8:0:1::5]:4711");
}

TEST(Remote, AnIpv4AddressCountsWhole) {
  EXPECT_EQ(from_ipv6("::ffff:192.0.2.7").origin, "192.0.2.7");
  EXPECT_EQ(from_ipv6("::ffff:127.0.0.1").origin, "");
  EXPECT_TRUE(from_ipv6("::1").is_local);
  EXPECT_EQ(from_ipv6("::1").origin, "");
}

}  // namespace
}  // namespace latchkey::server
