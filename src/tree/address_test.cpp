#include "tree/address.hpp"

#include <gtest/gtest.h>

namespace latchkey::tree {
namespace {

TEST(AddressMatches, ByTheLeadingBits) {
  EXPECT_TRUE(address_matches("1.2.3.4", "1.2.3.4"));
  EXPECT_FALSE(address_matches("1.2.3.5", "1.2.3.4"));
  EXPECT_TRUE(address_matches("1.2.3.4", "1.2.3.0/24"));
  EXPECT_FALSE(address_matches("1.2.4.4", "1.2.3.0/24"));
  EXPECT_TRUE(address_matches("1.2.3.129", "1.2.3.200/25"));
  EXPECT_FALSE(address_matches("1.2.3.127", "1.2.3.200/25"));
  EXPECT_TRUE(address_matches("1.2.3.5", "1.2.3.4/31"));
  EXPECT_TRUE(address_matches("1.2.3.4", "9.9.9.9/0"));
  EXPECT_FALSE(address_matches("", "0.0.0.0/0"));
  EXPECT_FALSE(address_matches("1.2.3.4", "1.2.3.4/33"));
}

TEST(AddressMatches, InIpv6Too) {
  EXPECT_TRUE(address_matches("::1", "0:0:0:0:0:0:0:1"));
  EXPECT_TRUE(address_matches("2001:db8::7", "2001:DB8::/32"));
  EXPECT_FALSE(address_matches("2001:db9::7", "2001:db8::/32"));
  EXPECT_TRUE(address_matches("2001:db8:8000::", "2001:db8:ffff::/33"));
  EXPECT_FALSE(address_matches("2001:db8:7fff::", "2001:db8:ffff::/33"));
  EXPECT_TRUE(address_matches("fe80::1%eth0", "fe80::/10"));
  EXPECT_FALSE(address_matches("::1", "0.0.0.0/0"));
}

TEST(AddressMatches, Ipv4ThroughAnIpv6SocketIsIpv4) {
  EXPECT_TRUE(address_matches("::ffff:1.2.3.4", "1.2.3.0/24"));
  EXPECT_TRUE(address_matches("1.2.3.4", "::ffff:1.2.3.0/120"));
  EXPECT_FALSE(address_matches("1.2.3.4", "::/0")) << "all of IPv6 is none of IPv4";
  EXPECT_TRUE(address_matches("2::", "::/0"));
}

}  // namespace
}  // namespace latchkey::tree
