#include "waiting_line.hpp"

#include <gtest/gtest.h>

namespace latchkey::app {
namespace {

using Standing = QueueEntry::Standing;

QueueEntry entry(Standing standing, std::int64_t session) {
  QueueEntry one;
  one.standing = standing;
  one.session = session;
  one.host = "db1";
  one.pid = 4711;
  return one;
}

TEST(WaitingLine, SaysThePlaceAndWhoHolds) {
  Queue queue;
  queue.directory = "/locks/a";
  queue.entries = {entry(Standing::kHolds, 1), entry(Standing::kWaits, 2),
                   entry(Standing::kWaits, 3)};
  queue.entries[0].reason = "nightly run";

  EXPECT_EQ(format_waiting(queue, 3),
            "waiting for /locks/a, 2nd in line; held by db1 pid 4711: nightly run");
  EXPECT_EQ(format_waiting(queue, 9), "waiting for /locks/a; held by db1 pid 4711: nightly run")
      << "our entry is not in this picture yet";
}

TEST(WaitingLine, CountsThePlacesAsPeopleDo) {
  Queue queue;
  queue.directory = "/a";
  for (std::int64_t i = 1; i <= 23; ++i) queue.entries.push_back(entry(Standing::kWaits, i));

  const auto place = [&](std::int64_t session) { return format_waiting(queue, session); };
  EXPECT_EQ(place(1), "waiting for /a, 1st in line");
  EXPECT_EQ(place(3), "waiting for /a, 3rd in line");
  EXPECT_EQ(place(4), "waiting for /a, 4th in line");
  EXPECT_EQ(place(11), "waiting for /a, 11th in line");
  EXPECT_EQ(place(13), "waiting for /a, 13th in line");
  EXPECT_EQ(place(22), "waiting for /a, 22nd in line");
}

TEST(WaitingLine, SaysHowManyHoldAndWhatAStrangerWrote) {
  Queue queue;
  queue.directory = "/a";
  queue.entries = {entry(Standing::kHolds, 1), entry(Standing::kHolds, 2),
                   entry(Standing::kHolds, 3)};
  queue.entries[0].host.clear();
  queue.entries[0].data = "10.0.0.7";

  EXPECT_EQ(format_waiting(queue, 9), "waiting for /a; held by 10.0.0.7 and 2 more");
}

}  // namespace
}  // namespace latchkey::app
