#include "latchkey/session.hpp"

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/host.hpp"
#include "session/machine_rig.hpp"

namespace latchkey::session {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::HasSubstr;

/// A host without threads: whoever enters drives the machine, and user code waits to be run by
/// hand.
class HandHost final : public Host {
 public:
  explicit HandHost(SessionOptions options = {})
      : options_(std::move(options)), rig({.max_requests = options_.max_requests}) {
    rig.now = BootClock::now();
    rig.machine.advance(rig.now);
    rig.open();
  }

  void enter(base::FunctionRef<void(Machine&, Instant)> task) override {
    rig.now = BootClock::now();
    rig.machine.advance(rig.now);
    task(rig.machine, rig.now);
    rig.settle();
    if (answers) rig.answer_all();
  }
  void post_in_order(std::function<void()> task) override { posted.push_back(std::move(task)); }
  void post(std::function<void()> task) override { posted.push_back(std::move(task)); }
  [[nodiscard]] bool is_forked() const noexcept override { return forked; }
  [[nodiscard]] bool is_own_thread() const noexcept override { return own_thread; }
  [[nodiscard]] std::shared_ptr<const Guard> guard() const override {
    return std::make_shared<Guard>(options_, [](const std::function<void()>& task) { task(); });
  }
  [[nodiscard]] const View& view() const noexcept override { return *rig.view; }
  [[nodiscard]] const SessionOptions& options() const noexcept override { return options_; }

  void run_posted() {
    while (!posted.empty()) {
      const auto task = std::move(posted.front());
      posted.pop_front();
      task();
    }
  }

 private:
  const SessionOptions options_;

 public:
  Rig rig;
  bool answers = true;
  bool forked = false;
  bool own_thread = false;
  std::deque<std::function<void()>> posted;
};

struct Pair {
  explicit Pair(SessionOptions options = {})
      : host(std::make_shared<HandHost>(std::move(options))), session(host) {}
  std::shared_ptr<HandHost> host;
  Session session;
};

TEST(SessionCalls, ComeBackWithTheirValue) {
  Pair pair;

  const auto node = pair.session.get("/a", deadline_in(hours(1)));

  ASSERT_TRUE(node);
  EXPECT_EQ(node->data, "data");
}

TEST(SessionCalls, EndAtTheirDeadlineWithoutAnyDriver) {
  Pair pair;
  pair.host->answers = false;

  const auto late = pair.session.get("/a", BootClock::now());

  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kTimedOut);
}

TEST(SessionCalls, ABlockedOneGivesUpWaitingForRoomAtItsDeadline) {
  Pair pair({.max_requests = 1});
  pair.host->answers = false;
  pair.session.async(Get{"/a"}, deadline_in(hours(1)), [](const Result<Node>&) {});

  const auto late = pair.session.get("/b", BootClock::now());

  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kTimedOut);
  EXPECT_THAT(late.error().message(), testing::StartsWith("get /b: "));
}

TEST(SessionCalls, WhatCannotBeSentIsRefusedAtOnceHoweverFullItIs) {
  Pair pair({.max_requests = 1});
  pair.host->answers = false;
  pair.session.async(Get{"/a"}, deadline_in(hours(1)), [](const Result<Node>&) {});

  const auto bad = pair.session.get("no slash", deadline_in(hours(1)));

  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code(), Code::kInvalidPath);
}

TEST(SessionCalls, AnAsynchronousOneFailsIfThereIsNoRoom) {
  Pair pair({.max_requests = 1});
  pair.host->answers = false;
  pair.session.async(Get{"/a"}, deadline_in(hours(1)), [](const Result<Node>&) {});
  std::optional<Error> error;

  pair.session.async(Get{"/b"}, deadline_in(hours(1)),
                     [&](const Result<Node>& node) { error = node.error(); });
  EXPECT_FALSE(error) << "not before the executor runs it";
  pair.host->run_posted();

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kOverloaded);
  EXPECT_THAT(error->message(), testing::StartsWith("get /b: "));
}

TEST(SessionCalls, H53_AForkedChildIsToldSoByEverything) {
  Pair pair;
  pair.host->forked = true;
  Code code = Code::kBusy;

  EXPECT_EQ(pair.session.get("/a", deadline_in(hours(1))).error().code(), Code::kForked);
  EXPECT_EQ(pair.session.close(deadline_in(hours(1))).error().code(), Code::kForked);
  EXPECT_EQ(pair.session.wait_connected(deadline_in(hours(1))).error().code(), Code::kForked);
  pair.session.async(Get{"/a"}, deadline_in(hours(1)),
                     [&](const Result<Node>& node) { code = node.error().code(); });

  EXPECT_EQ(code, Code::kForked);
  EXPECT_EQ(pair.session.state(), SessionState::kClosed);
}

TEST(SessionCalls, H60_TheThreadThatWouldHaveToAnswerMayNotWait) {
  Pair pair;
  pair.host->own_thread = true;

  EXPECT_EQ(pair.session.get("/a", deadline_in(hours(1))).error().code(), Code::kWouldDeadlock);
}

TEST(SessionCalls, ARefusalNamesTheOperationAndItsPath) {
  Pair pair;
  const auto message = [](const auto& result) { return result.error().message(); };

  pair.host->own_thread = true;
  EXPECT_THAT(message(pair.session.call(GetAcl{"/a"}, deadline_in(hours(1)))),
              testing::StartsWith("get ACL /a: it would wait for itself"));
  pair.host->forked = true;
  EXPECT_THAT(message(pair.session.call(Ephemerals{"/a"}, deadline_in(hours(1)))),
              testing::StartsWith("ephemerals /a: the session belongs"));
  EXPECT_THAT(message(pair.session.call(WhoAmI{}, deadline_in(hours(1)))),
              testing::StartsWith("who am I: the session belongs"));
}

TEST(SessionCalls, WatchersRunOnTheExecutor) {
  Pair pair;
  int fired = 0;
  ASSERT_TRUE(pair.session.get("/a", deadline_in(hours(1)), [&](const WatchEvent&) { ++fired; }));

  pair.host->rig.event(wire::EventType::kDeleted, "/a");
  EXPECT_EQ(fired, 0);
  pair.host->run_posted();

  EXPECT_EQ(fired, 1);
}

TEST(SessionCalls, EveryFinishedOperationIsReported) {
  std::vector<std::string> reports;
  Pair pair({.on_operation = [&](const OperationReport& report) {
    reports.push_back(std::string(report.operation) + " " + report.path + (report.ok ? " ok" : ""));
  }});

  ASSERT_TRUE(pair.session.get("/a", deadline_in(hours(1))));
  pair.host->run_posted();

  EXPECT_THAT(reports, testing::ElementsAre("getData /a ok"));
}

TEST(SessionCalls, CloseEndsTheSessionForEveryHandle) {
  Pair pair;
  Session other = pair.session;

  EXPECT_TRUE(pair.session.close(deadline_in(hours(1))));

  EXPECT_EQ(other.state(), SessionState::kClosed);
  const auto late = other.get("/a", deadline_in(hours(1)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kClosed);
  EXPECT_THAT(late.error().message(), HasSubstr("closed"));
}

}  // namespace
}  // namespace latchkey::session
