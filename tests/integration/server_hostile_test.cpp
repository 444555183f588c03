#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "support/embedded_server.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"

/// Clients that mean harm, beside one that does not and must not notice.
namespace latchkey::test_support {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using wire::CreateMode;
using wire::Err;
using wire::Op;

constexpr int kAttackTimeoutMs = 60'000;
/// Of the one who must not notice: not so long that it cannot.
constexpr int kBystanderTimeoutMs = 4'000;
constexpr std::chrono::seconds kAttackPatience(60);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kShadow = 6;  // A sanitizer keeps books about every byte.
#else
constexpr std::size_t kShadow = 1;
#endif
/// What the servers here let wait for one connection, and for all of them.
constexpr const char* kMostOutput = "16M";
constexpr const char* kMostBuffered = "64M";
/// Nobody here sends less than this would hold, and most send several times as much. What one
/// connection may cost: 16 MiB of output in a buffer that grows by doubling, 4 MiB of requests as
/// frame, record and journal entry, a frame, 64 MiB of watched paths; and 20 MB for the server.
constexpr std::size_t kMostMemoryMb = 160 * kShadow;
/// What all connections may cost together, on top of what the tree takes: 64 MiB in buffers that
/// grow by doubling or are half written; and as much as 48 MiB for what is being made or carried
/// out.
constexpr std::size_t kMostBuffersMb = (2 * 64 + 48) * kShadow;

/// A client that does its work all the while, and of which every call has to succeed.
/// Thread safety: one thread at a time; the work is done on a thread of its own.
class Bystander {
 public:
  explicit Bystander(const std::string& endpoint) : client_(endpoint, kAttackPatience) {
    EXPECT_TRUE(client_.connect(kBystanderTimeoutMs));
    EXPECT_EQ(
        client_.call(Op::kCreate, create_request("/steady", CreateMode::kPersistent))->header.err,
        Err::kOk);
    thread_ = std::thread([this] {
      while (!over_ && works()) ++calls_;
    });
  }
  ~Bystander() {
    over_ = true;
    thread_.join();
    EXPECT_FALSE(failed_) << "after " << calls_ << " rounds";
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

  /// It gets on, from now on, by so many rounds.
  [[nodiscard]] bool gets_on(int rounds = 20) {
    const int goal = calls_ + rounds;
    return eventually([&] { return calls_ >= goal || failed_; }, deadline_in(120s)) && !failed_;
  }

 private:
  bool works() {
    const auto made =
        client_.call(Op::kCreate, create_request("/steady/a", CreateMode::kEphemeral));
    const auto set = client_.call(Op::kSetData, wire::SetData{"/steady/a", "data", 0});
    const auto read = client_.call(Op::kGetData, wire::PathWatch{"/steady/a", false});
    const auto removed = client_.call(Op::kDelete, wire::PathVersion{"/steady/a", 1});
    for (const auto* reply : {&made, &set, &read, &removed}) {
      if (!*reply || (*reply)->header.err != Err::kOk) failed_ = true;
    }
    if (!failed_ && (*read).as<wire::GetDataReply>()->data != "data") failed_ = true;
    return !failed_;
  }

  RawClient client_;
  std::atomic<bool> over_ = false;
  std::atomic<bool> failed_ = false;
  std::atomic<int> calls_ = 0;
  std::thread thread_;
};

EmbeddedOptions few_connections() {
  EmbeddedOptions options;
  options.arguments = {
      "--max-connections", "300",        "--max-output-per-connection", kMostOutput,
      "--max-buffered",    kMostBuffered};
  const char* asan = std::getenv("ASAN_OPTIONS");
  options.environment = {std::string("ASAN_OPTIONS=quarantine_size_mb=16:") + (asan ? asan : "")};
  return options;
}

class ServerHostile : public testing::Test {
 protected:
  ServerHostile() : server_(LATCHKEY_COMMAND, few_connections()) {
    server_.start();
    bystander_ = std::make_unique<Bystander>(server_.connect_string());
  }
  void TearDown() override {
    EXPECT_TRUE(bystander_->gets_on());
    EXPECT_TRUE(server_.running()) << server_.log();
    EXPECT_LT(server_.most_memory_mb(), most_memory_mb_);
    RecordProperty("memory_mb", static_cast<int>(server_.most_memory_mb()));
  }

  /// From now on, connections may cost what their bounds let them, and no more.
  void expect_no_more_than_buffers() {
    most_memory_mb_ = server_.most_memory_mb() + kMostBuffersMb;
  }

  [[nodiscard]] RawClient stranger() const {
    return RawClient(server_.connect_string(), kAttackPatience);
  }
  [[nodiscard]] RawClient client() const {
    RawClient client(server_.connect_string(), kAttackPatience);
    EXPECT_TRUE(client.connect(kAttackTimeoutMs));
    return client;
  }
  static Err create(RawClient& client, const std::string& path, std::string data = {}) {
    wire::Create request = create_request(path, CreateMode::kPersistent);
    request.data = std::move(data);
    const auto reply = client.call(Op::kCreate, request);
    return reply ? reply->header.err : Err::kConnectionLoss;
  }

  EmbeddedServer server_;
  std::unique_ptr<Bystander> bystander_;
  base::Random random_{5};
  std::size_t most_memory_mb_ = kMostMemoryMb;
};

class ServerFlood : public ServerHostile {};

std::string number(std::uint32_t value) {
  std::string bytes(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(value >> (8 * (3 - i)));
  return bytes;
}

std::string frame(const std::string& body) {
  return number(static_cast<std::uint32_t>(body.size())) + body;
}

TEST_F(ServerHostile, H89_NonsenseInPlaceOfAHandshakeEndsTheConnection) {
  std::string noise(70'000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random_.next());
  noise.front() = '\x7F';
  for (const std::string& bytes :
       {number(0xFFFFFFFF), number(0x80000000), number(0x7FFFFFFF), number(0x100000), frame(""),
        frame("x"), frame(std::string(44, '\xFF')), frame(std::string(1'000'000, 'x')), noise,
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03", 11)}) {
    RawClient attacker = stranger();
    // A first connect opens the socket; what is sent then stands where a request is expected.
    ASSERT_TRUE(attacker.connect(kAttackTimeoutMs));
    attacker.send(bytes);
    RawClient unknown = stranger();
    ASSERT_TRUE(unknown.dial());
    unknown.send(bytes);

    EXPECT_TRUE(unknown.ended()) << testing::PrintToString(bytes.substr(0, 16));
    attacker.close();
  }
}

TEST_F(ServerHostile, H89_CountsOfTwoBillionAreNotBelieved) {
  const std::string path = number(2) + "/x";
  const std::string zxid(8, '\0');
  for (const std::uint32_t count : {0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFEU, 0x00FFFFFFU}) {
    const auto many = number(count);
    const auto request = [](Op op, const std::string& body) {
      return frame(number(7) + number(static_cast<std::uint32_t>(op)) + body);
    };
    RawClient attacker = client();
    for (const std::string& bytes :
         {request(Op::kCreate, path + many), request(Op::kCreate, path + number(0) + many),
          request(Op::kSetAcl, path + many), request(Op::kSetWatches, zxid + many),
          request(Op::kSetWatches2, zxid + number(0) + many), request(Op::kGetData, many),
          request(Op::kDelete, many + "/x"), request(Op::kSetData, path + many)}) {
      ASSERT_TRUE(attacker.send(bytes));
      const auto reply = attacker.receive();
      ASSERT_TRUE(reply) << testing::PrintToString(bytes);
      EXPECT_NE(reply->header.err, Err::kOk) << testing::PrintToString(bytes);
    }
  }
}

TEST_F(ServerHostile, H89_RandomRequestsAreAnsweredOrEndTheConnection) {
  for (int i = 0; i < 40; ++i) {
    RawClient attacker = client();
    std::string bytes;
    for (int request = 0; request < 50; ++request) {
      std::string body = number(static_cast<std::uint32_t>(request));
      body += number(static_cast<std::uint32_t>(random_.below(125)) - 15U);
      const std::size_t size = random_.below(60);
      while (body.size() < size) body += static_cast<char>(random_.below(4) * random_.below(64));
      bytes += frame(body);
    }
    attacker.send(bytes);
    attacker.close();
  }
}

TEST_F(ServerHostile, H89_HalfHandshakesKeepNobodyOutOnceTheyAreGone) {
  std::vector<std::unique_ptr<RawClient>> flood;
  for (int i = 0; i < 500; ++i) {
    flood.push_back(std::make_unique<RawClient>(server_.connect_string(), kAttackPatience));
    if (flood.back()->dial()) flood.back()->send(number(44) + "half");
  }
  ASSERT_TRUE(bystander_->gets_on());

  // The last ones came when the house was full.
  for (std::size_t i = 400; i < flood.size(); ++i) EXPECT_TRUE(flood[i]->ended()) << i;
  flood.clear();
  EXPECT_TRUE(eventually([&] { return stranger().connect(kAttackTimeoutMs).has_value(); }));
}

TEST_F(ServerFlood, H89_SessionsThatAreOpenedAndLeftAreJustSessions) {
  for (int i = 0; i < 1'000; ++i) {
    RawClient attacker = stranger();
    ASSERT_TRUE(eventually([&] { return attacker.connect(1'000).has_value(); }));
  }
}

TEST_F(ServerFlood, H90_WhoDoesNotReadAHundredThousandEventsIsClosed) {
  RawClient slow = client();
  RawClient writer = client();
  ASSERT_EQ(create(writer, "/hot"), Err::kOk);
  ASSERT_TRUE(
      slow.call(Op::kAddWatch, wire::AddWatch{"/hot", wire::AddWatchMode::kPersistentRecursive}));
  const std::string path = "/hot/" + std::string(300, 'x');
  ASSERT_EQ(create(writer, path), Err::kOk);
  wire::Multi multi;
  multi.ops.assign(1'000, {Op::kSetData, wire::SetData{path, "x", -1}});

  for (int i = 0; i < 100; ++i) {
    const auto reply = writer.call(Op::kMulti, multi);
    ASSERT_TRUE(reply);
    ASSERT_NE(reply->as<wire::MultiReply>()->results.front().op, Op::kError);
  }

  EXPECT_TRUE(slow.ended());
  EXPECT_TRUE(eventually(
      [&] { return server_.word("wchs").find("Total watches:0") != std::string::npos; }));
}

TEST_F(ServerFlood, H89_WhoAsksWithoutReadingIsNotReadFrom) {
  RawClient writer = client();
  ASSERT_EQ(create(writer, "/large", std::string(900'000, 'x')), Err::kOk);
  RawClient attacker = client();
  for (int i = 0; i < 2'000; ++i) attacker.add(Op::kGetData, wire::PathWatch{"/large", false});
  std::thread sending([&] { attacker.flush(); });

  EXPECT_TRUE(bystander_->gets_on(100));
  sending.join();
}

/// One small request for ten megabytes, many times, from many: a gigabyte if nobody counted.
TEST_F(ServerFlood, H89_ALongListAskedForByManyWhoDoNotReadIsBounded) {
  RawClient writer = client();
  ASSERT_EQ(create(writer, "/many"), Err::kOk);
  constexpr int kChildren = 100'000;
  constexpr int kAtOnce = 5'000;
  for (int i = 0; i < kChildren; i += kAtOnce) {
    wire::Multi multi;
    for (int k = i; k < i + kAtOnce; ++k) {
      multi.ops.push_back({Op::kCreate, create_request("/many/" + std::to_string(1'000'000 + k) +
                                                           std::string(93, 'n'),
                                                       CreateMode::kPersistent)});
    }
    ASSERT_NE(writer.call(Op::kMulti, multi)->as<wire::MultiReply>()->results.front().op,
              Op::kError);
  }
  expect_no_more_than_buffers();

  std::vector<RawClient> attackers;
  for (int i = 0; i < 60; ++i) {
    attackers.push_back(client());
    for (int k = 0; k < 20; ++k) {
      attackers.back().add(Op::kGetChildren, wire::PathWatch{"/many", false});
    }
    ASSERT_TRUE(attackers.back().flush());
    ASSERT_TRUE(writer.call(Op::kPing, wire::Empty{})) << "or its session would run out here";
  }
  ASSERT_TRUE(bystander_->gets_on());

  for (int i = 0; i < 5; ++i) {
    const auto reply = writer.call(Op::kGetChildren2, wire::PathWatch{"/many", false});
    ASSERT_TRUE(reply) << "who reads is served";
    EXPECT_EQ(reply->as<wire::Children2Reply>()->children.size(), std::size_t{kChildren});
  }
}

/// Each of them far below what one alone may leave unread.
TEST_F(ServerFlood, H90_ManyWhoDoNotReadTheirEventsAreBoundedTogether) {
  RawClient writer = client();
  const std::string path = "/" + std::string(1'000, 'x');
  ASSERT_EQ(create(writer, path), Err::kOk);
  std::vector<RawClient> slow;
  for (int i = 0; i < 60; ++i) {
    slow.push_back(client());
    ASSERT_TRUE(
        slow.back().call(Op::kAddWatch, wire::AddWatch{path, wire::AddWatchMode::kPersistent}));
  }
  expect_no_more_than_buffers();
  wire::Multi multi;
  multi.ops.assign(500, {Op::kSetData, wire::SetData{path, "x", -1}});

  // 15 MB for each, a gigabyte in all.
  for (int i = 0; i < 30; ++i) {
    const auto reply = writer.call(Op::kMulti, multi);
    ASSERT_TRUE(reply) << "who reads is served";
    ASSERT_NE(reply->as<wire::MultiReply>()->results.front().op, Op::kError);
  }
}

/// Twenty thousand changes that each fire for everybody: what they fire is never in memory at once.
TEST_F(ServerFlood, H94_ALargeTransactionUnderManyWatchesIsBounded) {
  RawClient writer = client();
  const std::string path = "/hot-and-long-enough-for-the-heap";
  ASSERT_EQ(create(writer, path), Err::kOk);
  std::vector<RawClient> watchers;
  for (int i = 0; i < 200; ++i) {
    watchers.push_back(client());
    ASSERT_TRUE(watchers.back().call(
        Op::kAddWatch, wire::AddWatch{"/", wire::AddWatchMode::kPersistentRecursive}));
  }
  expect_no_more_than_buffers();
  wire::Multi multi;
  multi.ops.assign(15'000, {Op::kSetData, wire::SetData{path, "x", -1}});

  const auto reply = writer.call(Op::kMulti, multi);

  ASSERT_TRUE(reply);
  EXPECT_NE(reply->as<wire::MultiReply>()->results.front().op, Op::kError);
}

TEST_F(ServerFlood, H89_HalfRequestsOfManyAreBoundedTogether) {
  std::vector<RawClient> halves;
  for (int i = 0; i < 250; ++i) {
    halves.push_back(client());
    halves.back().send(number(1'000'000) + std::string(999'999, 'x'));
  }
}

/// A connection that once had a large request or answer does not keep memory for the next one.
TEST_F(ServerFlood, H89_LargeRequestsAndAnswersOfManyLeaveNothingBehind) {
  const std::string data(900'000, 'x');
  std::vector<RawClient> idle;
  idle.push_back(client());
  ASSERT_EQ(create(idle.back(), "/large", data), Err::kOk);
  for (int i = 0; i < 250; ++i) {
    idle.push_back(client());
    EXPECT_EQ(create(idle.back(), "/none/large", data), Err::kNoNode);
    EXPECT_EQ(idle.back().call(Op::kGetData, wire::PathWatch{"/large", false})->body.size(),
              data.size() + 4 + 68);
  }
}

TEST_F(ServerFlood, H89_LargeWritesInOneGoAreTakenOneAfterTheOther) {
  RawClient attacker = client();
  ASSERT_EQ(create(attacker, "/large"), Err::kOk);
  const std::string data(900'000, 'x');
  for (int i = 0; i < 200; ++i) attacker.add(Op::kSetData, wire::SetData{"/large", data, -1});
  std::thread sending([&] { attacker.flush(); });

  for (int i = 0; i < 200; ++i) {
    const auto reply = attacker.receive();
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->header.err, Err::kOk);
  }
  sending.join();
}

/// Every `auth` entry becomes all that the client has proven: 900 times what was sent.
TEST_F(ServerFlood, H94_SmallRequestsThatBecomeLongListsAreTakenOneAfterTheOther) {
  constexpr int kRequests = 100;
  const std::string path = "/mine";
  wire::SetAcl set{path, {}, -1};
  for (int i = 0; i < 64; ++i) {
    wire::WireAcl entry;
    entry.permissions = 31;
    entry.scheme = "auth";
    entry.id = std::to_string(i);
    set.acl.push_back(entry);
  }
  std::vector<RawClient> attackers;
  std::vector<std::thread> sending;
  for (int i = 0; i < 3; ++i) attackers.push_back(client());
  for (RawClient& attacker : attackers) {
    for (int i = 0; i < 4; ++i) {
      const std::string name = std::string(3'900, 'n') + std::to_string(i);
      ASSERT_EQ(attacker.call(Op::kAuth, wire::AuthPacket{0, "digest", name + ":p"})->header.err,
                Err::kOk);
    }
  }
  ASSERT_EQ(create(attackers.front(), path), Err::kOk);
  for (RawClient& attacker : attackers) {
    for (int i = 0; i < kRequests; ++i) attacker.add(Op::kSetAcl, set);
    sending.emplace_back([&attacker] { attacker.flush(); });
  }

  for (RawClient& attacker : attackers) {
    for (int i = 0; i < kRequests; ++i) ASSERT_EQ(attacker.receive()->header.err, Err::kOk);
  }
  for (std::thread& thread : sending) thread.join();
}

TEST_F(ServerFlood, AFloodOfSmallRequestsIsAnsweredInOrder) {
  RawClient attacker = client();
  constexpr int kRequests = 20'000;
  for (int i = 0; i < kRequests; ++i) {
    attacker.add(Op::kSetData, wire::SetData{"/zookeeper/nothing", "x", -1});
  }
  std::thread sending([&] { attacker.flush(); });

  for (int i = 1; i <= kRequests; ++i) {
    const auto reply = attacker.receive();
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->header.xid, i);
    ASSERT_EQ(reply->header.err, Err::kNoNode);
  }
  sending.join();
}

TEST_F(ServerHostile, H89_DataBeyondTheLimitEndsTheConnection) {
  RawClient attacker = client();
  EXPECT_EQ(create(attacker, "/fits", std::string(1'000'000, 'x')), Err::kOk);
  RawClient other = client();

  EXPECT_EQ(create(other, "/does-not", std::string(1'100'000, 'x')), Err::kConnectionLoss);

  RawClient reader = client();
  const auto reply = reader.call(Op::kExists, wire::PathWatch{"/does-not", false});
  EXPECT_EQ(reply->header.err, Err::kNoNode);
}

TEST_F(ServerHostile, InvalidPathsAreRefusedAndTheConnectionGoesOn) {
  RawClient attacker = client();
  for (const std::string& path :
       {std::string(), std::string("a"), std::string("//"), std::string("/a/"),
        std::string("/a//b"), std::string("/."), std::string("/a/.."), std::string("/a\0b", 4),
        std::string("/\x01"), std::string("/\xEF\xBF\xBF"), std::string("/a/./b"),
        std::string(1'000'000, '/')}) {
    EXPECT_NE(create(attacker, path), Err::kOk) << testing::PrintToString(path.substr(0, 20));
  }
  EXPECT_EQ(create(attacker, "/valid"), Err::kOk);
}

TEST_F(ServerHostile, DeepPathsAreJustPaths) {
  RawClient attacker = client();
  RawClient watcher = client();
  ASSERT_TRUE(
      watcher.call(Op::kAddWatch, wire::AddWatch{"/", wire::AddWatchMode::kPersistentRecursive}));
  wire::Multi multi;
  std::string path;
  for (int i = 0; i < 900; ++i) {
    path += "/d";
    multi.ops.push_back({Op::kCreate, create_request(path, CreateMode::kPersistent)});
  }
  const auto reply = attacker.call(Op::kMulti, multi);
  ASSERT_TRUE(reply);
  EXPECT_NE(reply->as<wire::MultiReply>()->results.back().op, Op::kError);
  const auto below = attacker.call(Op::kGetAllChildrenNumber, wire::PathOnly{"/d"});

  EXPECT_EQ(below->as<wire::ChildrenNumberReply>()->count, 899);
  EXPECT_EQ(create(attacker, std::string(500'000, 'x').insert(0, "/")), Err::kOk);
}

TEST_F(ServerHostile, H94_WatchesAreBoundedAndGoWithTheirConnection) {
  {
    RawClient attacker = client();
    constexpr int kMany = 20'000;
    for (int i = 0; i < kMany; ++i) {
      attacker.add(Op::kExists, wire::PathWatch{"/none/" + std::to_string(i), true});
    }
    std::thread sending([&] { attacker.flush(); });
    for (int i = 0; i < kMany; ++i) ASSERT_EQ(attacker.receive()->header.err, Err::kNoNode) << i;
    sending.join();
    // A path of a megabyte each: beyond 64 MiB no more.
    Err last = Err::kOk;
    for (int i = 0; i < 100; ++i) {
      const std::string path = "/" + std::to_string(i) + std::string(900'000, 'x');
      last = attacker.call(Op::kExists, wire::PathWatch{path, true})->header.err;
    }
    EXPECT_EQ(last, Err::kQuotaExceeded);
  }
  EXPECT_TRUE(eventually(
      [&] { return server_.word("wchs").find("Total watches:0") != std::string::npos; }));
}

TEST_F(ServerHostile, H94_IdentitiesAreBounded) {
  RawClient attacker = client();
  Err last = Err::kOk;
  for (int i = 0; i < 1'000 && last == Err::kOk; ++i) {
    const auto reply = attacker.call(
        Op::kAuth, wire::AuthPacket{0, "digest", "user" + std::to_string(i) + ":password"});
    ASSERT_TRUE(reply);
    last = reply->header.err;
  }

  EXPECT_EQ(last, Err::kAuthFailed);
  EXPECT_TRUE(attacker.ended());
}

}  // namespace
}  // namespace latchkey::test_support
