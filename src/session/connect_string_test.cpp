#include "session/connect_string.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Endpoint tcp(const std::string& host, std::uint16_t port) { return {host, port, {}}; }
Endpoint local(const std::string& path) { return {{}, 0, path}; }

std::vector<Endpoint> endpoints(std::string_view text) {
  auto parsed = parse_connect_string(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? parsed->endpoints : std::vector<Endpoint>{};
}

std::string chroot(std::string_view text) {
  auto parsed = parse_connect_string(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? parsed->chroot : "?";
}

TEST(ConnectString, HostsAndPorts) {
  EXPECT_THAT(endpoints("zk1"), ElementsAre(tcp("zk1", 2181)));
  EXPECT_THAT(endpoints("zk1:1,zk2,10.0.0.1:65535"),
              ElementsAre(tcp("zk1", 1), tcp("zk2", 2181), tcp("10.0.0.1", 65'535)));
}

TEST(ConnectString, IPv6ComesInBrackets) {
  EXPECT_THAT(endpoints("[::1]"), ElementsAre(tcp("::1", 2181)));
  EXPECT_THAT(endpoints("[fe80::1%eth0]:7,[::2]:8/a"),
              ElementsAre(tcp("fe80::1%eth0", 7), tcp("::2", 8)));
}

TEST(ConnectString, UnixSockets) {
  EXPECT_THAT(endpoints("unix:/run/zk.sock"), ElementsAre(local("/run/zk.sock")));
  EXPECT_THAT(endpoints("unix:/a/b,zk:1"), ElementsAre(local("/a/b"), tcp("zk", 1)));
  EXPECT_EQ(chroot("unix:/a/b"), "");
  EXPECT_THAT(endpoints("unix:/" + std::string(106, 'a')).size(), 1U);
}

TEST(ConnectString, TheChrootComesAfterTheLastHost) {
  EXPECT_EQ(chroot("zk1:1"), "");
  EXPECT_EQ(chroot("zk1:1/"), "");
  EXPECT_EQ(chroot("zk1:1,zk2:2/app/locks"), "/app/locks");
  EXPECT_EQ(chroot("zk1/app"), "/app");
  EXPECT_THAT(endpoints("zk1/app"), ElementsAre(tcp("zk1", 2181)));
}

TEST(ConnectString, WhatIsRefusedAndWhy) {
  const std::pair<std::string, std::string> table[] = {
      {"", "empty"},
      {",", "empty"},
      {"zk1,", "empty"},
      {"zk1,,zk2", "empty"},
      {"/app", "empty"},
      {":2181", "host is missing"},
      {"[]:1", "host is missing"},
      {"[::1", "has no ]"},
      {"[::1]x", "only a port"},
      {"::1", "brackets"},
      {"1:2:3", "brackets"},
      {"zk1:", "not a port"},
      {"zk1:0", "not a port"},
      {"zk1:65536", "not a port"},
      {"zk1:-1", "not a port"},
      {"zk1:+1", "not a port"},
      {"zk1:2181x", "not a port"},
      {"zk1: 2181", "not a port"},
      {"zk1, zk2", "space"},
      {"zk1/a,zk2", "chroot"},
      {"zk1/a,zk2/b", "chroot"},
      {"zk1//a", "a part is empty"},
      {"zk1/a/", "must not end"},
      {"zk1/../a", "relative"},
      {"unix:", "absolute path"},
      {"unix:relative", "absolute path"},
      {"unix:/" + std::string(107, 'a'), "too long"},
  };
  for (const auto& [text, why] : table) {
    const auto parsed = parse_connect_string(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), Code::kInvalidConnectString) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr(why)) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr("\"" + text + "\""));
  }
}

TEST(ConnectString, AnEndpointPrintsAsItIsRead) {
  for (const std::string text : {"zk1:2181", "[::1]:7", "unix:/run/zk.sock"}) {
    const auto parsed = endpoints(text);
    ASSERT_EQ(parsed.size(), 1U);
    EXPECT_EQ(to_string(parsed[0]), text);
  }
}

}  // namespace
}  // namespace latchkey::session
