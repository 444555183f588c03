#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "latchkey/server.hpp"
#include "latchkey/session.hpp"
#include "support/apache_server.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/sockets.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;
using test_support::ApacheServer;
using test_support::connect_to;
using test_support::create_request;
using test_support::Endpoint;
using test_support::Fd;
using test_support::RawClient;
using test_support::Received;
using testing::HasSubstr;
using testing::StartsWith;
using wire::CreateMode;
using wire::Op;

enum class After { kNothing, kHalfClose };

/// Sends the text and returns everything that comes back until the server hangs up.
std::string ask(const std::string& where, std::string_view text, After after = After::kNothing) {
  const Deadline deadline = deadline_in(30s);
  const Fd fd = connect_to(Endpoint(where), deadline);
  if (!fd || !test_support::send_all(fd.get(), text, deadline)) return "no connection";
  if (after == After::kHalfClose) ::shutdown(fd.get(), SHUT_WR);
  std::string answer;
  while (test_support::wait_ready(fd.get(), POLLIN, deadline)) {
    if (test_support::receive_some(fd.get(), answer) == Received::kEnd) return answer;
  }
  return answer + " (and no end)";
}

Server started_for_words(ServerOptions options) {
  Result<Server> server = Server::start(std::move(options));
  if (!server) throw std::runtime_error(server.error().message());
  return std::move(*server);
}

Server with_all_words() {
  ServerOptions options;
  options.words = {"all"};
  return started_for_words(options);
}

TEST(ServerWords, AreAnsweredWithAndWithoutANewline) {
  Server server = with_all_words();

  EXPECT_EQ(ask(server.connect_string(), "ruok"), "imok");
  EXPECT_EQ(ask(server.connect_string(), "ruok\n"), "imok");
  EXPECT_EQ(ask(server.connect_string(), "isro\r\n"), "rw");
}

TEST(ServerWords, AreAnsweredToAClientThatHasClosedItsWritingSide) {
  Server server = with_all_words();

  EXPECT_EQ(ask(server.connect_string(), "ruok", After::kHalfClose), "imok");
  EXPECT_THAT(ask(server.connect_string(), "stat", After::kHalfClose),
              StartsWith("Zookeeper version: 3.8.0-"));
}

TEST(ServerWords, WorkOnAUnixSocket) {
  Result<Server> server = Server::start_in_temp_folder();
  ASSERT_TRUE(server);

  EXPECT_EQ(ask(server->connect_string(), "ruok"), "imok");
}

TEST(ServerWords, ALongAnswerArrivesWhole) {
  Server server = with_all_words();
  RawClient client(server.connect_string());
  ASSERT_TRUE(client.connect(30'000));
  for (int i = 0; i < 5'000; ++i) {
    client.add(Op::kCreate, create_request("/" + std::string(200, 'n') + std::to_string(i),
                                           CreateMode::kEphemeral));
  }
  ASSERT_TRUE(client.flush());
  for (int i = 0; i < 5'000; ++i) ASSERT_TRUE(client.receive());

  const std::string dump = ask(server.connect_string(), "dump", After::kHalfClose);

  EXPECT_GT(dump.size(), 1'000'000U);
  EXPECT_THAT(dump, HasSubstr("Connections dump:\n"));
}

TEST(ServerWords, H94_AreRefusedBeyondTheList) {
  Server server = started_for_words({});

  EXPECT_EQ(ask(server.connect_string(), "ruok"), "imok");
  EXPECT_EQ(ask(server.connect_string(), "dump"),
            "dump is not executed because it is not in the whitelist.\n");
  EXPECT_EQ(ask(server.connect_string(), "nope"), "");
}

TEST(ServerWords, ConsShowsWhatAConnectionDoes) {
  Server server = with_all_words();
  RawClient client(server.connect_string());
  const auto session = client.connect(10'000);
  ASSERT_TRUE(client.call(Op::kExists, wire::PathWatch{"/", false}));

  const std::string cons = ask(server.connect_string(), "cons");

  EXPECT_THAT(cons, HasSubstr("lop=EXIS"));
  EXPECT_THAT(cons, HasSubstr("to=10000"));
}

/// The part of each line in front of the first separator, which is what monitors look for.
std::set<std::string> keys(const std::string& text, std::string_view separators) {
  std::set<std::string> result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) result.insert(line.substr(0, line.find_first_of(separators)));
  }
  return result;
}

/// Numbers, ids and dates blotted out.
std::string shape(const std::string& text) {
  static const std::regex kDates("(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \\w{3} \\d\\d [0-9:]+ \\w+ \\d{4}");
  static const std::regex kHex("0x[0-9a-f]+");
  static const std::regex kNumbers("[0-9]+");
  static const std::regex kInterest("\\[[0-9]\\]");
  std::string blotted = std::regex_replace(text, kDates, "DATE");
  blotted = std::regex_replace(blotted, kHex, "HEX");
  blotted = std::regex_replace(blotted, kInterest, "[I]");
  return std::regex_replace(blotted, kNumbers, "N");
}

TEST(ServerWords, HaveTheLinesOfApaches) {
  ApacheServer apache;
  apache.start();
  Server server = with_all_words();
  std::vector<RawClient> clients;
  for (const std::string& where : {apache.connect_string(), server.connect_string()}) {
    RawClient& client = clients.emplace_back(where);
    ASSERT_TRUE(client.connect(40'000));
    ASSERT_TRUE(client.call(Op::kCreate, create_request("/e", CreateMode::kEphemeral)));
    ASSERT_TRUE(client.call(Op::kGetData, wire::PathWatch{"/e", true}));
    ASSERT_TRUE(client.call(Op::kGetChildren2, wire::PathWatch{"/", true}));
  }
  const auto both = [&](std::string_view word, auto look) {
    return std::pair(look(ask(apache.connect_string(), word)),
                     look(ask(server.connect_string(), word)));
  };
  const auto same = [](const auto& pair) { EXPECT_EQ(pair.second, pair.first); };

  for (const char* word : {"ruok", "isro", "wchs", "wchp", "wchc"}) same(both(word, shape));
  same(both("cons", [](const std::string& text) { return keys(shape(text), "\n"); }));
  for (const char* word : {"srvr", "stat"}) {
    same(both(word, [](const std::string& text) { return keys(shape(text), ":"); }));
  }
  same(both("conf", [](const std::string& text) { return keys(text, "="); }));
  same(both("dump", [](const std::string& text) { return keys(shape(text), "\t"); }));
  const auto [theirs, ours] =
      both("mntr", [](const std::string& text) { return keys(text, "\t"); });
  EXPECT_TRUE(std::ranges::includes(theirs, ours)) << testing::PrintToString(ours);
  const auto [all, some] = both("envi", [](const std::string& text) { return keys(text, "="); });
  EXPECT_TRUE(std::ranges::includes(all, some)) << testing::PrintToString(some);
}

TEST(ServerMetrics, AreScrapedWithHttp) {
  ServerOptions options;
  options.metrics = "127.0.0.1:0";
  Server server = started_for_words(options);
  RawClient client(server.connect_string());
  ASSERT_TRUE(client.connect(10'000));

  const std::string answer =
      ask(server.metrics_address(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");

  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\nlatchkey_sessions 1\n"));
  EXPECT_THAT(answer, HasSubstr("\nlatchkey_batch_entries_count "));
  EXPECT_THAT(ask(server.metrics_address(), "GET /x HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 404"));
}

TEST(ServerMetrics, WhoOnlyLooksDoesNotKeepAnIdleServer) {
  ServerOptions options;
  options.metrics = "127.0.0.1:0";
  options.idle_stop = 1s;
  options.handshake_timeout = 1ms;
  Server server = started_for_words(options);

  EXPECT_TRUE(test_support::eventually([&] {
    return ask(server.metrics_address(), "GET /metrics HTTP/1.0\r\n\r\n") == "no connection" ||
           ask(server.connect_string(), "ruok") == "no connection";
  }));
}

TEST(ServerMetrics, AreNotServedUnlessAskedFor) {
  Server server = started_for_words({});

  EXPECT_EQ(server.metrics_address(), "");
  EXPECT_EQ(ask(server.connect_string(), "GET /metrics HTTP/1.1\r\n\r\n"), "");
}

TEST(ServerLimits, H89_ConnectionsBeyondTheLimitAreTurnedAwayAndTheOthersServed) {
  ServerOptions options;
  options.max_connections = 3;
  Server server = started_for_words(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(clients.emplace_back(server.connect_string()).connect(10'000));
  }

  RawClient one_too_many(server.connect_string());
  EXPECT_FALSE(one_too_many.connect(10'000));
  EXPECT_TRUE(clients[0].call(Op::kExists, wire::PathWatch{"/", false}));

  clients.pop_back();
  EXPECT_TRUE(test_support::eventually(
      [&] { return RawClient(server.connect_string()).connect(10'000).has_value(); }));
}

TEST(ServerLimits, H89_ALengthThatIsTooLargeEndsTheConnectionAndNothingElse) {
  ServerOptions options;
  options.max_frame = 1'024;
  Server server = started_for_words(options);
  RawClient good(server.connect_string());
  RawClient bad(server.connect_string());
  ASSERT_TRUE(good.connect(10'000));
  ASSERT_TRUE(bad.connect(10'000));

  bad.add(Op::kCreate, wire::Create{"/large", std::string(1'024, 'x'), {}, CreateMode::kEphemeral});
  ASSERT_TRUE(bad.flush());

  EXPECT_TRUE(bad.ended());
  EXPECT_TRUE(good.call(Op::kExists, wire::PathWatch{"/", false}));
}

TEST(ServerLimits, ASessionThatHasClosedItsWritingSideStillGetsItsAnswers) {
  Server server = started_for_words({});
  std::string bytes;
  wire::append_connect_request(bytes, {.timeout_ms = 10'000, .password = std::string(16, '\0')},
                               wire::Handshake::kWithReadOnly);
  wire::append_frame(bytes, wire::RequestHeader{1, Op::kCreate},
                     create_request("/a", CreateMode::kPersistent));
  wire::append_frame(bytes, wire::RequestHeader{2, Op::kSync}, wire::PathOnly{"/"});

  const std::string answers = ask(server.connect_string(), bytes, After::kHalfClose);

  wire::FrameSplitter frames(1'000);
  frames.feed(answers);
  EXPECT_TRUE(frames.next());  // The handshake's.
  for (std::int32_t xid : {1, 2}) {
    const auto frame = frames.next();
    ASSERT_TRUE(frame) << "no answer to request " << xid;
    EXPECT_EQ(wire::decode<wire::ReplyHeader>(frame->substr(0, 16))->xid, xid);
  }
}

}  // namespace
}  // namespace latchkey
