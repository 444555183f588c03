#include "server/metrics.hpp"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/status_rig.hpp"

namespace latchkey::server {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;
using wire::Op;

TEST(Metrics, CountRequestsByOperation) {
  StatusRig rig;
  rig.request(Op::kExists, wire::PathWatch{"/", false});
  rig.request(Op::kExists, wire::PathWatch{"/", false});
  rig.request(Op::kPing, wire::Empty{});

  const std::string text = exposition(rig.status());

  EXPECT_THAT(text, HasSubstr("\nlatchkey_requests_total{op=\"exists\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_requests_total{op=\"ping\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_sessions 1\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_nodes 4\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_uptime_seconds 7.5\n"));
}

TEST(Metrics, ShowWhatWaitsForTheDiskForAnAnswerAndForItsReader) {
  StatusRig rig;
  const std::string before = exposition(rig.status());
  EXPECT_THAT(before, HasSubstr("\nlatchkey_commit_queue 0\n"));
  EXPECT_THAT(before, HasSubstr("\nlatchkey_in_flight_bytes 0\n"));
  rig.request(Op::kExists, wire::PathWatch{"/", false});
  rig.request_unstored(Op::kCreate, wire::Create{"/a", "x", *tree::open_list(), {}});
  rig.request_unstored(Op::kExists, wire::PathWatch{"/a", false});

  const std::string text = exposition(rig.status());

  EXPECT_THAT(text, HasSubstr("\nlatchkey_commit_queue 1\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_requests_in_flight 2\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("\nlatchkey_in_flight_bytes 0\n")));
  EXPECT_THAT(text, testing::Not(HasSubstr("\nlatchkey_output_bytes 0\n")));
}

TEST(Metrics, ShowSnapshotsAndWhetherTheyFailed) {
  const StatusRig rig;
  Status status = rig.status();
  status.folds = 3;
  status.fold_errors = 2;
  status.journal_damaged = true;

  const std::string text = exposition(status);

  EXPECT_THAT(text, HasSubstr("\nlatchkey_folds_total 3\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_fold_errors_total 2\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_journal_damaged 1\n"));
}

TEST(Metrics, HistogramsAddUp) {
  StatusRig rig;
  rig.commits().add(1, 40us);
  rig.commits().add(3, 200us);
  rig.commits().add(3'000, 2s);

  const std::string text = exposition(rig.status());

  EXPECT_THAT(text, HasSubstr("\nlatchkey_batch_entries_bucket{le=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_batch_entries_bucket{le=\"5\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_batch_entries_bucket{le=\"2500\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_batch_entries_bucket{le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_batch_entries_sum 3004\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_sync_seconds_bucket{le=\"5e-05\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_sync_seconds_bucket{le=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_sync_seconds_sum 2.00024\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_sync_seconds_count 3\n"));
  EXPECT_THAT(text, HasSubstr("\nlatchkey_request_seconds_bucket{kind=\"write\",le=\"+Inf\"} "));
}

TEST(Metrics, EveryLineIsAHelpATypeOrASampleWithAValue) {
  std::istringstream text(exposition(StatusRig().status()));
  std::string line;
  std::size_t samples = 0;
  while (std::getline(text, line)) {
    if (line.starts_with("# HELP latchkey_") || line.starts_with("# TYPE latchkey_")) continue;
    ASSERT_TRUE(line.starts_with("latchkey_")) << line;
    const std::string value = line.substr(line.rfind(' ') + 1);
    std::size_t used = 0;
    static_cast<void>(std::stod(value, &used));
    EXPECT_EQ(used, value.size()) << line;
    ++samples;
  }
  EXPECT_GT(samples, 60U);
}

TEST(Metrics, AScrapeIsAnsweredWhenItIsWhole) {
  const StatusRig rig;
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t size = 0; size < request.size(); ++size) {
    EXPECT_FALSE(answer_scrape(request.substr(0, size), rig.status())) << size;
  }

  const std::string answer = answer_scrape(request, rig.status()).value();

  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
  const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
  EXPECT_THAT(answer, HasSubstr("Content-Length: " + std::to_string(body.size()) + "\r\n"));
  EXPECT_EQ(body, exposition(rig.status()));
}

TEST(Metrics, WhateverElseIsAskedGetsAnError) {
  const StatusRig rig;
  const auto answer = [&](const std::string& request) {
    return answer_scrape(request, rig.status()).value();
  };

  EXPECT_THAT(answer("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(answer("GET\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(answer("GET \r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(answer("POST /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(answer(std::string(10'000, 'x')), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(answer("GET /metrics?x=1 HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace latchkey::server
