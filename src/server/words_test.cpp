#include "server/words.hpp"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "latchkey/version.hpp"
#include "server/status_rig.hpp"

namespace latchkey::server {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using wire::Op;

class Words : public testing::Test {
 protected:
  Words() {
    rig_.options().words = known_words();
    rig_.request(
        Op::kCreate,
        wire::Create{"/e", "data", {{31, "world", "anyone"}}, wire::CreateMode::kEphemeral});
    rig_.request(Op::kGetData, wire::PathWatch{"/e", true});
    rig_.request(Op::kGetChildren2, wire::PathWatch{"/", true});
  }

  std::string say(std::string_view word) {
    return answer_word(word, rig_.status()).value_or(tree::WordAnswer{"nothing"}).text;
  }

  StatusRig rig_;
};

TEST_F(Words, RuokAndIsroAreFourLettersAndTwo) {
  EXPECT_EQ(say("ruok"), "imok");
  EXPECT_EQ(say("isro"), "rw");
}

TEST_F(Words, SrvrHasTheLinesOfApache) {
  EXPECT_EQ(say("srvr"),
            "Zookeeper version: " + full_version() +
                "\nLatency min/avg/max: 0/0.0/0\nReceived: 4\nSent: 4\nConnections: 1\n"
                "Outstanding: 0\nZxid: 0x100000002\nMode: standalone\nNode count: 6\n");
}

TEST_F(Words, H94_OneThatCouldTakeTooMuchIsRefusedBeforeItIsMade) {
  rig_.options().max_output_per_connection = 5'000;
  for (const char* word : {"wchc", "wchp", "cons", "dump", "stat"}) {
    EXPECT_THAT(say(word), Not(HasSubstr("too long"))) << word;
  }
  const std::string path = "/" + std::string(5'000, 'x');
  rig_.request(Op::kCreate,
               wire::Create{path, "", {{31, "world", "anyone"}}, wire::CreateMode::kEphemeral});
  rig_.request(Op::kExists, wire::PathWatch{path, true});

  for (const std::string word : {"wchc", "wchp", "dump"}) {
    EXPECT_EQ(say(word), word + " is not executed because its answer would be too long.\n");
  }
  EXPECT_THAT(say("cons"), HasSubstr("lop=EXIS"));
  EXPECT_EQ(say("wchs"), "1 connections watching 2 paths\nTotal watches:2\n");
  rig_.options().max_output_per_connection = 500;
  EXPECT_THAT(say("cons"), HasSubstr("too long"));
  EXPECT_THAT(say("stat"), HasSubstr("too long"));
  EXPECT_THAT(say("srvr"), StartsWith("Zookeeper version"));
}

TEST_F(Words, H89_WhatHasToBeLookedUpIsWork) {
  const auto work = [&](std::string_view word) { return answer_word(word, rig_.status())->work; };
  const std::uint64_t base = work("mntr");
  EXPECT_GT(base, 0U);
  EXPECT_GT(work("dump"), 0U);
  EXPECT_GT(work("wchc"), 0U);
  EXPECT_GT(work("wchp"), 0U);
  EXPECT_EQ(work("wchs"), 0U);

  std::vector<int> descriptors;
  for (int i = 0; i < 100; ++i) descriptors.push_back(::dup(0));
  EXPECT_GT(work("mntr"), base);
  for (const int descriptor : descriptors) ::close(descriptor);
}

TEST_F(Words, TheVersionIsTheProtocolsThenAHyphen) {
  EXPECT_THAT(say("stat"), StartsWith("Zookeeper version: 3.8.0-latchkey-" LATCHKEY_VERSION ", "));
  EXPECT_THAT(say("envi"), StartsWith("Environment:\nzookeeper.version=3.8.0-latchkey-"));
  EXPECT_THAT(say("envi"), HasSubstr("\nuser.name=ann\nuser.home=/home/ann\nuser.dir=/srv\n"));
  EXPECT_LT(say("envi").size(), 8'192U);
}

TEST_F(Words, StatListsClientsBriefly) {
  EXPECT_THAT(say("stat"),
              HasSubstr("\nClients:\n /127.0.0.1:4711[1](queued=0,recved=4,sent=4)\n\nLatency "));
}

TEST_F(Words, ConsListsClientsInFull) {
  EXPECT_THAT(say("cons"), testing::MatchesRegex(
                               " /127.0.0.1:4711.1.[(]queued=0,recved=4,sent=4,sid=0x[0-9a-f]+,"
                               "lop=GETC,est=1767225600000,to=10000,lcxid=0x3,lzxid=0x100000002,"
                               "lresp=7500,llat=0,minlat=0,avglat=0,maxlat=0[)]\n\n"));
}

TEST_F(Words, MntrHasAKeyATabAndAValueInEveryLine) {
  const std::string text = say("mntr");

  EXPECT_THAT(text, HasSubstr("zk_server_state\tstandalone\n"));
  EXPECT_THAT(text, HasSubstr("zk_znode_count\t6\n"));
  EXPECT_THAT(text, HasSubstr("zk_ephemerals_count\t1\n"));
  EXPECT_THAT(text, HasSubstr("zk_watch_count\t2\n"));
  EXPECT_THAT(text, HasSubstr("zk_global_sessions\t1\n"));
  EXPECT_THAT(text, HasSubstr("zk_avg_latency\t0.0\n"));
  EXPECT_THAT(text, HasSubstr("zk_uptime\t7500\n"));
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1, ++lines) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    EXPECT_TRUE(line.starts_with("zk_")) << line;
    EXPECT_EQ(std::ranges::count(line, '\t'), 1) << line;
  }
  EXPECT_GT(lines, 15U);
}

TEST_F(Words, ConfSaysWhatWasAskedFor) {
  rig_.options().min_session_timeout = std::chrono::milliseconds(1'234);

  EXPECT_EQ(say("conf"),
            "clientPort=2181\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\n"
            "dataLogSize=0\ntickTime=50\nmaxClientCnxns=2000\nminSessionTimeout=1234\n"
            "maxSessionTimeout=40000\nclientPortListenBacklog=-1\nserverId=0\n");
}

TEST_F(Words, WchsCountsWatchesOnData) {
  EXPECT_EQ(say("wchs"), "1 connections watching 1 paths\nTotal watches:1\n");
}

TEST_F(Words, DumpNamesSessionsAndTheirNodes) {
  std::array<char, 20> id{};
  std::snprintf(id.data(), id.size(), "0x%llx", static_cast<unsigned long long>(rig_.session()));
  const std::string sid = id.data();

  EXPECT_EQ(say("dump"),
            "SessionTracker dump:\nSession Sets (1)/(1):\n"
            "1 expire at Thu Jan 01 00:00:10 UTC 2026:\n\t" +
                sid + "\nephemeral nodes dump:\nSessions with Ephemerals (1):\n" + sid +
                ":\n\t/e\nConnections dump:\nConnections Sets (1)/(1):\n"
                "\tip: /127.0.0.1:4711 sessionId: " +
                sid + "\n");
}

TEST_F(Words, DumpShowsWhenASessionReallyRunsOut) {
  rig_.pass(std::chrono::seconds(4));

  EXPECT_THAT(say("dump"), HasSubstr("1 expire at Thu Jan 01 00:00:10 UTC 2026:\n"));

  rig_.request(wire::Op::kPing, wire::Empty{});
  EXPECT_THAT(say("dump"), HasSubstr("1 expire at Thu Jan 01 00:00:14 UTC 2026:\n"));
}

TEST_F(Words, H94_OnlyTheListIsAnswered) {
  rig_.options().words = ServerOptions().words;

  EXPECT_EQ(say("ruok"), "imok");
  EXPECT_THAT(say("srvr"), StartsWith("Zookeeper version: "));
  for (const char* word : {"dump", "cons", "stat", "envi", "mntr", "conf", "isro", "wchs"}) {
    EXPECT_EQ(say(word),
              std::string(word) + " is not executed because it is not in the whitelist.\n");
  }
}

TEST_F(Words, H94_WordsThatActAreNeverCarriedOut) {
  for (const char* word : {"stmk", "srst", "crst"}) {
    EXPECT_THAT(say(word), HasSubstr("not in the whitelist"));
  }
}

TEST_F(Words, WhatIsNoWordIsLeftToTheHandshake) {
  EXPECT_EQ(say(std::string_view("\0\0\0\x2d", 4)), "nothing");
  EXPECT_EQ(say("GET "), "nothing");
  EXPECT_EQ(say("kill"), "nothing");
}

TEST_F(Words, AllStandsForEveryWordAndAnUnknownOneIsAnError) {
  EXPECT_EQ(settle_words({"ruok", "all"}).value(), known_words());
  EXPECT_EQ(settle_words({"ruok", "mntr"}).value(), (std::vector<std::string>{"ruok", "mntr"}));
  EXPECT_TRUE(settle_words({}).value().empty());
  const auto wrong = settle_words({"ruok", "srst"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error(), Code::kInvalidOption);
  EXPECT_THAT(wrong.error().message(), HasSubstr("\"srst\""));
}

}  // namespace
}  // namespace latchkey::server
