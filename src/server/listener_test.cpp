#include "server/listener.hpp"

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

}  // namespace
}  // namespace latchkey::server
