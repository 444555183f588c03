#include "demo_story.hpp"

#include <gtest/gtest.h>

namespace latchkey::app {
namespace {

WorkerStory story(const char* name, std::int64_t held, std::int64_t ended, std::int64_t token,
                  const char* node) {
  return {.name = name, .queued = 1, .held = held, .ended = ended, .token = token, .node = node};
}

std::vector<WorkerStory> good_run() {
  return {story("b", 20, 30, 8, "x-0000000001"), story("a", 10, 20, 7, "y-0000000000"),
          story("c", 35, 40, 9, "a-0000000002")};
}

TEST(DemoStory, ARunInOrderIsGood) {
  const Verdict verdict = judge(good_run());

  EXPECT_TRUE(verdict.good());
  EXPECT_EQ(verdict.arrival, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(verdict.tokens, (std::vector<std::int64_t>{7, 8, 9}));
}

TEST(DemoStory, TwoHoldersAtATimeAreSeen) {
  auto run = good_run();
  run[0].held = 19;

  EXPECT_FALSE(judge(run).exclusive);
}

TEST(DemoStory, AnOvertakenWorkerIsSeen) {
  auto run = good_run();
  std::swap(run[0].node, run[1].node);

  EXPECT_FALSE(judge(run).in_order);
}

TEST(DemoStory, ATokenThatDoesNotGrowIsSeen) {
  auto run = good_run();
  run[2].token = 8;

  EXPECT_FALSE(judge(run).tokens_grow);
}

TEST(DemoStory, AWorkerThatNeverHeldIsSeen) {
  auto run = good_run();
  run[2].held = run[2].ended = 0;

  EXPECT_FALSE(judge(run).everyone_held);
  EXPECT_FALSE(judge(run).good());
}

TEST(DemoStory, WorkersLinesAreRead) {
  WorkerStory heard;

  EXPECT_EQ(read_line("queued 5", heard), "queued");
  EXPECT_EQ(read_line("holding 6 4294967297 /locks/demo/x-0000000004", heard), "holding");
  EXPECT_EQ(read_line("released 7", heard), "released");
  EXPECT_EQ(read_line("lost 7", heard), "lost");

  EXPECT_EQ(heard.queued, 5);
  EXPECT_EQ(heard.held, 6);
  EXPECT_EQ(heard.token, 4294967297);
  EXPECT_EQ(heard.node, "/locks/demo/x-0000000004");
  EXPECT_EQ(heard.ended, 7);
}

TEST(DemoStory, OtherLinesAreIgnored) {
  WorkerStory heard;

  EXPECT_FALSE(read_line("", heard));
  EXPECT_FALSE(read_line("holding 6", heard));
  EXPECT_FALSE(read_line("warning: 7", heard));
  EXPECT_EQ(heard.held, 0);
}

TEST(DemoStory, HearsHowOftenAWorkerWasWoken) {
  WorkerStory story;

  EXPECT_EQ(read_line("woken 17 3", story), "woken");
  EXPECT_EQ(story.woken, 3);
  EXPECT_EQ(read_line("woken 17", story), std::nullopt);
}

TEST(Chronicle, TellsInTheOrderOfWhatHappenedAndOnlyWhatIsCertain) {
  constexpr std::int64_t kPatience = Chronicle::kPatience;
  Chronicle chronicle;
  chronicle.add(20, "second");
  chronicle.add(kPatience + 50, "third");
  chronicle.add(10, "first");
  using Lines = std::vector<std::string>;

  EXPECT_EQ(chronicle.take(kPatience + 5), Lines());
  EXPECT_EQ(chronicle.take(kPatience + 30), (Lines{"first", "second"}));
  EXPECT_EQ(chronicle.take(kPatience + 60), Lines()) << "something from before may still come";
  chronicle.add(kPatience + 40, "late");
  EXPECT_EQ(chronicle.take_all(), (Lines{"late", "third"}));
}

}  // namespace
}  // namespace latchkey::app
