#include "base/serial_queue.hpp"

#include <deque>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace latchkey::base {
namespace {

/// An executor the test runs by hand.
class SerialQueueTest : public testing::Test {
 protected:
  void push(SerialQueue::Task task) {
    if (queue->push(std::move(task))) queue->start();
  }
  void push(char what) {
    push([this, what] { done += what; });
  }
  void run_posted() {
    while (!posted.empty()) {
      const SerialQueue::Task task = std::move(posted.front());
      posted.pop_front();
      task();
    }
  }

  std::deque<SerialQueue::Task> posted;
  std::shared_ptr<SerialQueue> queue = std::make_shared<SerialQueue>(
      [this](SerialQueue::Task task) { posted.push_back(std::move(task)); });
  std::string done;
};

TEST_F(SerialQueueTest, RunsInOrderInOneGo) {
  push('a');
  push('b');
  EXPECT_EQ(posted.size(), 1U);
  EXPECT_EQ(done, "");

  run_posted();

  EXPECT_EQ(done, "ab");
}

TEST_F(SerialQueueTest, StartsAgainOnceItHasStoodStill) {
  push('a');
  run_posted();

  push('b');
  EXPECT_EQ(posted.size(), 1U);
  run_posted();

  EXPECT_EQ(done, "ab");
}

TEST_F(SerialQueueTest, ATaskMayPushAnother) {
  push([this] {
    done += 'a';
    push('b');
    done += 'c';
  });

  run_posted();

  EXPECT_EQ(done, "acb");
}

TEST_F(SerialQueueTest, AnExceptionDoesNotStopTheOthers) {
  push([] { throw std::runtime_error("user code"); });
  push('a');

  run_posted();

  EXPECT_EQ(done, "a");
}

TEST_F(SerialQueueTest, ARunningQueueOutlivesItsOwner) {
  push([this] { queue.reset(); });
  push('a');

  run_posted();

  EXPECT_EQ(done, "a");
}

TEST_F(SerialQueueTest, ATaskIsGoneBeforeTheNextRuns) {
  auto token = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = token;
  push([token = std::move(token)] {});
  push([&] { done = watched.expired() ? "gone" : "alive"; });

  run_posted();

  EXPECT_EQ(done, "gone");
}

}  // namespace
}  // namespace latchkey::base
