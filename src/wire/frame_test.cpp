#include "wire/frame.hpp"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "wire/test_bytes.hpp"

namespace latchkey::wire {
namespace {

constexpr std::size_t kLimit = 1024;

struct Cut {
  std::vector<std::string> frames;
  bool broken = false;
  friend bool operator==(const Cut&, const Cut&) = default;
};

void drain(FrameSplitter& splitter, Cut& cut) {
  while (const auto frame = splitter.next()) cut.frames.emplace_back(*frame);
  cut.broken = splitter.broken();
}

/// Feeds `pieces` and takes frames out after each of them, as a connection does.
Cut split(const std::vector<std::string>& pieces) {
  FrameSplitter splitter(kLimit);
  Cut cut;
  for (const std::string& piece : pieces) {
    splitter.feed(piece);
    drain(splitter, cut);
  }
  return cut;
}

/// Bit i of `cuts` says whether `stream` is cut after byte i.
std::vector<std::string> pieces_of(const std::string& stream, unsigned cuts) {
  std::vector<std::string> pieces(1);
  for (std::size_t i = 0; i < stream.size(); ++i) {
    pieces.back().push_back(stream[i]);
    if ((cuts >> i & 1U) != 0) pieces.emplace_back();
  }
  return pieces;
}

TEST(AppendFrame, PutsTheLengthOfAllPartsFirst) {
  std::string out = "kept";

  append_frame(out, RequestHeader{7, Op::kDelete}, PathVersion{"/a", -1});

  EXPECT_EQ(out, "kept" + bytes("00000012 00000007 00000002 00000002 2f61 ffffffff"));
}

TEST(AppendFrame, WritesAnEventAsApacheDoes) {
  std::string out;

  append_frame(out, ReplyHeader{kNotificationXid, -1, Err::kOk},
               WatcherEvent{EventType::kDataChanged, 3, "/a"});

  EXPECT_EQ(hex(out), "0000001effffffffffffffffffffffff000000000000000300000003000000022f61");
}

TEST(AppendFrame, ManyFramesComeBackInOrder) {
  std::string stream;
  for (std::int32_t xid = 1; xid <= 100; ++xid) append_frame(stream, RequestHeader{xid, Op::kPing});

  const Cut cut = split({stream});

  ASSERT_EQ(cut.frames.size(), 100U);
  for (std::int32_t xid = 1; xid <= 100; ++xid) {
    const auto header = decode<RequestHeader>(cut.frames[static_cast<std::size_t>(xid - 1)]);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->xid, xid);
  }
}

TEST(Decode, RefusesBytesLeftOver) {
  EXPECT_TRUE(decode<RequestHeader>(bytes("00000001 00000002")));
  EXPECT_FALSE(decode<RequestHeader>(bytes("00000001 00000002 00")));
}

TEST(FrameSplitter, H89_CutsTheSameFramesHoweverTheStreamArrives) {
  const std::string stream = bytes("00000002 6162 00000000 00000001 63");  // 15 bytes.
  const Cut expected{{"ab", "", "c"}, false};

  for (unsigned cuts = 0; cuts < 1U << stream.size(); ++cuts) {
    ASSERT_EQ(split(pieces_of(stream, cuts)), expected) << cuts;
  }
}

TEST(FrameSplitter, H89_FindsTheSameBreakHoweverTheStreamArrives) {
  const std::string stream = bytes("00000001 61 80000000 00000001 62");
  const Cut expected{{"a"}, true};

  for (unsigned cuts = 0; cuts < 1U << stream.size(); ++cuts) {
    ASSERT_EQ(split(pieces_of(stream, cuts)), expected) << cuts;
  }
}

TEST(FrameSplitter, YieldsTheSameFramesWhenDrainedLate) {
  const std::string stream = bytes("00000002 6162 00000001 63 00000003 646566");

  for (std::size_t at = 0; at <= stream.size(); ++at) {
    FrameSplitter splitter(kLimit);
    Cut cut;
    splitter.feed(stream.substr(0, at));
    if (const auto first = splitter.next()) cut.frames.emplace_back(*first);
    splitter.feed(stream.substr(at));
    drain(splitter, cut);

    EXPECT_EQ(cut, (Cut{{"ab", "c", "def"}, false})) << at;
  }
}

TEST(FrameSplitter, WaitsForTheRestOfAFrame) {
  FrameSplitter splitter(kLimit);

  splitter.feed(bytes("00000003 6162"));
  EXPECT_EQ(splitter.next(), std::nullopt);
  EXPECT_FALSE(splitter.broken());

  splitter.feed("c");
  EXPECT_EQ(splitter.next(), "abc");
  EXPECT_EQ(splitter.next(), std::nullopt);
}

TEST(FrameSplitter, ShowsWhatItHasNotHandedOut) {
  FrameSplitter splitter(100);
  EXPECT_EQ(splitter.waiting(), "");

  splitter.feed(std::string("\0\0\0\1a\0\0\0\3bc", 11));

  EXPECT_EQ(splitter.waiting(), std::string("\0\0\0\1a\0\0\0\3bc", 11));
  EXPECT_EQ(splitter.next(), "a");
  EXPECT_EQ(splitter.waiting(), std::string("\0\0\0\3bc", 6));
  EXPECT_FALSE(splitter.next());
  splitter.feed("d");
  EXPECT_EQ(splitter.waiting(), std::string("\0\0\0\3bcd", 7));
  EXPECT_EQ(splitter.next(), "bcd");
  EXPECT_EQ(splitter.waiting(), "");
}

TEST(FrameSplitter, LetsTheLargestFramePassAndNoLarger) {
  const auto framed = [](std::size_t size) {
    return encoded(std::string(size, 'x'));  // A string looks just like a frame.
  };

  EXPECT_EQ(split({framed(kLimit)}), (Cut{{std::string(kLimit, 'x')}, false}));
  EXPECT_EQ(split({framed(kLimit + 1)}), (Cut{{}, true}));
}

TEST(FrameSplitter, H89_BreaksOnALengthBeforeTheBytesArrive) {
  for (const char* length : {"ffffffff", "80000000", "7fffffff", "00000401", "72756f6b"}) {
    EXPECT_TRUE(split({bytes(length)}).broken) << length;
  }
}

TEST(FrameSplitter, H89_BreaksOnANegativeLengthWhateverTheLimit) {
  FrameSplitter splitter(std::numeric_limits<std::size_t>::max());

  splitter.feed(bytes("ffffffff"));

  EXPECT_EQ(splitter.next(), std::nullopt);
  EXPECT_TRUE(splitter.broken());
}

TEST(FrameSplitter, H65_StaysBroken) {
  FrameSplitter splitter(kLimit);
  splitter.feed(bytes("80000000"));
  ASSERT_EQ(splitter.next(), std::nullopt);

  splitter.feed(bytes("00000001 61"));

  EXPECT_EQ(splitter.next(), std::nullopt);
  EXPECT_TRUE(splitter.broken());
}

TEST(FrameSplitter, HandsOutTheFramesBeforeTheBreak) {
  EXPECT_EQ(split({bytes("00000001 61 00000001 62 ffffffff")}), (Cut{{"a", "b"}, true}));
}

// The golden bytes are those of Apache's classes; the trailing byte is what its server reads next.
constexpr const char* kConnectRequest =
    "00000000000000010000000900007530102030405060708000000010f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
constexpr const char* kConnectResponse =
    "0000000000000fa0102030405060708000000010f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

const std::string kPassword = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");

TEST(Handshake, WritesEitherFormOfTheRequest) {
  const ConnectRequest request{0, 0x100000009, 30000, 0x1020304050607080, kPassword};
  std::string with_byte;
  std::string without;

  append_connect_request(with_byte, request, Handshake::kWithReadOnly);
  append_connect_request(without, request, Handshake::kOld);

  EXPECT_EQ(hex(with_byte), std::string("0000002d") + kConnectRequest + "00");
  EXPECT_EQ(hex(without), std::string("0000002c") + kConnectRequest);
}

TEST(Handshake, WritesEitherFormOfTheResponse) {
  const ConnectResponse response{0, 4000, 0x1020304050607080, kPassword};
  std::string with_byte;
  std::string without;

  append_connect_response(with_byte, response, Handshake::kWithReadOnly);
  append_connect_response(without, response, Handshake::kOld);

  EXPECT_EQ(hex(with_byte), std::string("00000025") + kConnectResponse + "00");
  EXPECT_EQ(hex(without), std::string("00000024") + kConnectResponse);
}

TEST(Handshake, ReadsEitherFormOfTheRequest) {
  const auto old = decode_connect_request(bytes(kConnectRequest));
  const auto with_byte = decode_connect_request(bytes(kConnectRequest) + '\0');
  const auto read_only = decode_connect_request(bytes(kConnectRequest) + '\1');

  ASSERT_TRUE(old && with_byte && read_only);
  EXPECT_EQ(old->form, Handshake::kOld);
  EXPECT_EQ(with_byte->form, Handshake::kWithReadOnly);
  EXPECT_FALSE(old->read_only);
  EXPECT_FALSE(with_byte->read_only);
  EXPECT_TRUE(read_only->read_only);
  EXPECT_EQ(old->message.last_zxid_seen, 0x100000009);
  EXPECT_EQ(old->message.timeout_ms, 30000);
  EXPECT_EQ(old->message.session_id, 0x1020304050607080);
  EXPECT_EQ(old->message.password, kPassword);
}

TEST(Handshake, ReadsEitherFormOfTheResponse) {
  const auto old = decode_connect_response(bytes(kConnectResponse));
  const auto with_byte = decode_connect_response(bytes(kConnectResponse) + '\0');

  ASSERT_TRUE(old && with_byte);
  EXPECT_EQ(old->form, Handshake::kOld);
  EXPECT_EQ(with_byte->form, Handshake::kWithReadOnly);
  EXPECT_EQ(with_byte->message.timeout_ms, 4000);
  EXPECT_EQ(with_byte->message.session_id, 0x1020304050607080);
  EXPECT_EQ(with_byte->message.password, kPassword);
}

// What Apache 3.8 sends for a session it does not know.
TEST(Handshake, ReadsARefusal) {
  const auto refusal = decode_connect_response(
      bytes("00000000 00000000 0000000000000000 00000010") + std::string(16, '\0') + '\0');

  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->message.timeout_ms, 0);
  EXPECT_EQ(refusal->message.session_id, 0);
}

TEST(Handshake, TakesANullPassword) {
  const auto greeting =
      decode_connect_request(bytes("00000000 0000000000000000 00000000 0000000000000000 ffffffff"));

  ASSERT_TRUE(greeting);
  EXPECT_EQ(greeting->message.password, std::nullopt);
}

TEST(Handshake, H65_RefusesEveryPrefixOfTheOldForm) {
  const std::string request = bytes(kConnectRequest);
  const std::string response = bytes(kConnectResponse);

  for (std::size_t size = 0; size < request.size(); ++size) {
    EXPECT_FALSE(decode_connect_request(request.substr(0, size))) << size;
  }
  for (std::size_t size = 0; size < response.size(); ++size) {
    EXPECT_FALSE(decode_connect_response(response.substr(0, size))) << size;
  }
}

TEST(Handshake, H89_RefusesMoreThanOneByteAfterTheOldForm) {
  EXPECT_FALSE(decode_connect_request(bytes(kConnectRequest) + std::string(2, '\0')));
  EXPECT_FALSE(decode_connect_response(bytes(kConnectResponse) + std::string(2, '\0')));
}

TEST(Handshake, H89_RefusesAPasswordLongerThanTheFrame) {
  const std::string head = bytes("00000000 00000fa0 1020304050607080");

  for (const char* length : {"00000011", "7fffffff", "fffffffe", "80000000"}) {
    EXPECT_FALSE(decode_connect_response(head + bytes(length) + kPassword)) << length;
  }
}

}  // namespace
}  // namespace latchkey::wire
