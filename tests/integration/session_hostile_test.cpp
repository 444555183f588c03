#include <gmock/gmock.h>

#include "integration/fake_server.hpp"
#include "integration/session_fixture.hpp"

/// Servers that break the protocol. Each costs a connection, never the process or the session.
namespace latchkey::test_support {
namespace {

using testing::Each;
using testing::ElementsAre;
using wire::Err;
using wire::Op;
using Guest = FakeServer::Guest;

/// What the server does after a misdeed: wait for the client to leave, or leave itself.
enum class Then { kStay, kLeave };
using Misdeed = std::function<Then(Guest&, std::int32_t xid)>;

/// A server that commits `misdeed` at the first request of its first connections, and behaves
/// after.
Result<std::optional<Stat>> ask_after(const Misdeed& misdeed, int times = 3) {
  FakeServer server([&](Guest& guest, int connection) {
    if (!guest.greet(0x1234, 60'000)) return;
    if (connection > times) return guest.refuse_everything();
    const auto request = guest.next_request();
    if (!request) return;
    if (misdeed(guest, request->xid) == Then::kStay) guest.refuse_everything();
  });
  // A long time-out: no connection is left because the server is slow.
  Session session = open_session(server.connect_string(), quick(60s));
  auto answer = session.exists("/x", soon());
  EXPECT_EQ(server.connections(), times + 1);
  EXPECT_EQ(session.id(), 0x1234);
  return answer;
}

class H65_ABadReply : public testing::TestWithParam<std::pair<const char*, Misdeed>> {};

TEST_P(H65_ABadReply, EndsTheConnectionAndNotTheProcess) {
  const auto answer = ask_after(GetParam().second);

  ASSERT_TRUE(ok(answer));
  EXPECT_EQ(*answer, std::nullopt);
}

std::string raw(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

/// A frame of this length prefix and nothing else.
Misdeed length(std::initializer_list<int> bytes) {
  return [frame = raw(bytes)](Guest& guest, std::int32_t) {
    guest.send(frame);
    return Then::kStay;
  };
}

Misdeed answer_with(const std::function<std::string(std::int32_t xid)>& make) {
  return [make](Guest& guest, std::int32_t xid) {
    guest.send(make(xid));
    return Then::kStay;
  };
}

const std::vector<std::pair<const char*, Misdeed>> kMisdeeds = {
    {"NegativeLength", length({0xFF, 0xFF, 0xFF, 0xFF})},
    {"HugeLength", length({0x7F, 0xFF, 0xFF, 0xFF})},
    {"LengthOverOurLimit", length({0x01, 0x00, 0x00, 0x01})},
    {"EmptyFrame", length({0, 0, 0, 0})},
    {"FrameWithoutHeader", length({0, 0, 0, 3, 1, 2, 3})},
    {"Noise", answer_with([](std::int32_t) { return std::string(5'000, '\x5A'); })},
    {"AnswerToNobody", answer_with([](std::int32_t) { return reply_frame(999, Err::kOk); })},
    {"WrongXid", answer_with([](std::int32_t xid) { return reply_frame(xid + 1, Err::kNoNode); })},
    {"ReservedXid", answer_with([](std::int32_t) { return reply_frame(-9, Err::kOk); })},
    {"SetWatchesNeverAsked",
     answer_with([](std::int32_t) { return reply_frame(wire::kSetWatchesXid, Err::kOk); })},
    {"AuthNeverAsked",
     answer_with([](std::int32_t) { return reply_frame(wire::kAuthXid, Err::kOk); })},
    {"PingNeverAsked",
     answer_with([](std::int32_t) { return reply_frame(wire::kPingXid, Err::kOk); })},
    {"BodyMissing", answer_with([](std::int32_t xid) { return reply_frame(xid, Err::kOk); })},
    {"BodyCutShort", answer_with([](std::int32_t xid) {
       return reply_frame(xid, Err::kOk, std::int64_t{1}, std::int64_t{2});
     })},
    {"BodyTooLong", answer_with([](std::int32_t xid) {
       return reply_frame(xid, Err::kOk, wire::StatReply{}, std::int32_t{1});
     })},
    {"HalfAFrameAndGone",
     [](Guest& guest, std::int32_t xid) {
       guest.send(reply_frame(xid, Err::kOk, wire::StatReply{}).substr(0, 20));
       return Then::kLeave;
     }},
};

INSTANTIATE_TEST_SUITE_P(All, H65_ABadReply, testing::ValuesIn(kMisdeeds),
                         [](const auto& which) { return std::string(which.param.first); });

TEST(SessionHostile, H65_AReplySentTwiceCostsOnlyTheConnection) {
  FakeServer server([](Guest& guest, int) {
    if (!guest.greet()) return;
    while (const auto request = guest.next_request()) {
      const std::string reply = reply_frame(request->xid, Err::kNoNode);
      guest.send(reply + reply);
    }
  });
  Session session = open_session(server.connect_string());

  for (int i = 0; i < 5; ++i) EXPECT_TRUE(ok(session.exists("/x", soon())));
}

TEST(SessionHostile, H65_EventsOfEveryShapeAreSurvived) {
  const auto event = [](auto... parts) {
    return reply_frame(wire::kNotificationXid, Err::kOk, parts...);
  };
  FakeServer server([&](Guest& guest, int connection) {
    if (!guest.greet()) return;
    if (connection == 1) guest.send(event());
    if (connection == 2) guest.send(event(std::int32_t{1}));
    guest.send(event(wire::WatcherEvent{static_cast<wire::EventType>(77), 3, "/watched"}));
    guest.send(event(wire::WatcherEvent{wire::EventType::kDeleted, 3, ""}));
    guest.send(event(wire::WatcherEvent{wire::EventType::kNone, 3, ""}));
    guest.send(event(wire::WatcherEvent{wire::EventType::kDeleted, 3, "//"}));
    guest.send(event(wire::WatcherEvent{wire::EventType::kCreated, 3, "no slash"}));
    guest.refuse_everything();
  });
  Session session = open_session(server.connect_string());
  const auto ignore = [](const WatchEvent&) {};

  EXPECT_TRUE(ok(session.exists("/x", soon(), ignore)));
  EXPECT_TRUE(ok(session.exists("/x", soon())));
}

TEST(SessionHostile, H65_AnswersOfTheWrongKindAreRefusedForEveryOperation) {
  // A body that fits none of these: a vector that claims more entries than there are bytes.
  FakeServer server([](Guest& guest, int) {
    if (!guest.greet()) return;
    while (const auto request = guest.next_request()) {
      if (request->op == Op::kExists) {
        guest.send(reply_frame(request->xid, Err::kNoNode));
      } else {
        guest.send(reply_frame(request->xid, Err::kOk, std::int32_t{0x7FFFFFFF}));
      }
    }
  });
  SessionOptions options = quick();
  options.retry.count = 0;
  Session session = open_session(server.connect_string(), options);
  const auto expect_loss = [&](const auto& result) {
    EXPECT_TRUE(fails_with(result, Code::kConnectionLoss));
    EXPECT_TRUE(ok(session.exists("/x", soon())));
  };

  expect_loss(session.get("/x", soon()));
  expect_loss(session.children("/x", soon()));
  expect_loss(session.create("/x", {}, {}, soon()));
  expect_loss(session.set("/x", {}, soon()));
  expect_loss(session.multi({Remove{"/x"}}, soon()));
  expect_loss(session.call(MultiRead{{Get{"/x"}}}, soon()));
  expect_loss(session.call(GetAcl{"/x"}, soon()));
  expect_loss(session.call(Ephemerals{}, soon()));
  expect_loss(session.call(WhoAmI{}, soon()));
}

TEST(SessionHostile, H65_UnknownErrorsOnWritesAreAmbiguous) {
  FakeServer server([](Guest& guest, int) {
    if (!guest.greet()) return;
    while (const auto request = guest.next_request()) {
      guest.send(reply_frame(request->xid, static_cast<Err>(-4'711)));
    }
  });
  Session session = open_session(server.connect_string());

  const auto write = session.set("/x", "y", soon());
  const auto read = session.get("/x", soon());

  ASSERT_TRUE(fails_with(write, Code::kServerError, "-4711"));
  EXPECT_EQ(write.error().effect(), Effect::kUnknown);
  ASSERT_TRUE(fails_with(read, Code::kServerError, "/x"));
  EXPECT_EQ(read.error().effect(), Effect::kNone);
}

TEST(SessionHostile, H65_BadGreetingsAreTriedAgainUntilTheDeadline) {
  FakeServer server([](Guest& guest, int connection) {
    static_cast<void>(guest.receive());
    std::string answer;
    switch (connection) {
      case 1: guest.send(raw({0, 0, 0, 2, 1, 1})); return;
      case 2: guest.send(raw({0x7F, 0, 0, 0})); return;
      case 3: guest.send("HTTP/1.1 400 Bad Request\r\n\r\n"); return;
      case 4:
        wire::append_connect_response(answer, {.timeout_ms = -5, .session_id = 9}, {});
        guest.send(answer);
        return;
      case 5:
        wire::append_connect_response(answer, {.timeout_ms = 10'000, .session_id = 0}, {});
        guest.send(answer);
        return;
      default: break;
    }
    wire::append_connect_response(answer, {.timeout_ms = 10'000, .session_id = 77}, {});
    guest.send(answer);
    guest.refuse_everything();
  });

  const auto session = Session::open(server.connect_string(), quick(60s), soon());

  ASSERT_TRUE(ok(session));
  EXPECT_EQ(session->id(), 77);
  EXPECT_EQ(server.connections(), 6);
}

TEST(SessionHostile, H66_AFreshSessionInPlaceOfTheOldOneIsAnExpiry) {
  FakeServer server([](Guest& guest, int connection) {
    const auto frame = guest.receive();
    if (!frame) return;
    std::string answer;
    wire::append_connect_response(
        answer, {.timeout_ms = 10'000, .session_id = 100 + connection, .password = {}}, {});
    guest.send(answer);
    const auto request = guest.next_request();
    if (request) guest.send(reply_frame(request->xid, Err::kNoNode));
  });
  States states;
  Session session = open_session(server.connect_string(), watched(states));

  EXPECT_TRUE(ok(session.exists("/x", soon())));

  ASSERT_TRUE(reaches(states, SessionState::kExpired));
  EXPECT_THAT(states.all(), ElementsAre(SessionState::kConnected, SessionState::kSuspended,
                                        SessionState::kExpired));
  EXPECT_TRUE(fails_with(session.exists("/x", soon()), Code::kSessionLost));
}

TEST(SessionHostile, AServerThatAcceptsAndNeverAnswersDoesNotCostTheSession) {
  FakeServer server([](Guest& guest, int connection) {
    if (connection == 2) {
      while (guest.receive()) {
      }
      return;
    }
    if (!guest.greet(0x1234, 30'000)) return;
    if (connection > 1) guest.refuse_everything();
  });
  Session session = open_session(server.connect_string(), quick(30s));
  const Instant start = BootClock::now();

  EXPECT_TRUE(ok(session.exists("/x", soon())));

  EXPECT_EQ(server.connections(), 3);
  EXPECT_LT(BootClock::now() - start, 29s);
}

TEST(SessionHostile, H67_NeverAsksForReadOnlyService) {
  Recorder<bool> asked;
  FakeServer server([asked](Guest& guest, int connection) {
    const auto frame = guest.receive();
    const auto greeting = frame ? wire::decode_connect_request(*frame) : std::nullopt;
    if (!greeting) return;
    asked.add(greeting->read_only);
    std::string answer;
    wire::append_connect_response(answer, {.timeout_ms = 10'000, .session_id = 5}, greeting->form);
    guest.send(answer);
    if (connection > 1) guest.refuse_everything();
  });
  Session session = open_session(server.connect_string());

  EXPECT_TRUE(ok(session.exists("/x", soon())));

  EXPECT_GE(asked.size(), 2U);
  EXPECT_THAT(asked.all(), Each(false));
}

TEST(SessionHostile, H15_ATimeOutGrantedAnewReplacesTheOldOne) {
  FakeServer server([](Guest& guest, int connection) {
    if (!guest.greet(0x1234, connection == 1 ? 8'000 : 3'000)) return;
    const auto request = guest.next_request();
    if (request) guest.send(reply_frame(request->xid, Err::kNoNode));
    if (connection > 1) guest.refuse_everything();
  });
  Session session = open_session(server.connect_string(), quick(8s));
  EXPECT_EQ(session.timeout(), 8s);

  EXPECT_TRUE(ok(session.exists("/x", soon())));
  EXPECT_TRUE(ok(session.exists("/x", soon())));

  EXPECT_EQ(session.timeout(), 3s);
}

}  // namespace
}  // namespace latchkey::test_support
