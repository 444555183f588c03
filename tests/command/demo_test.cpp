#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command/invocation.hpp"
#include "command/terminal_child.hpp"

/// What `latchkey demo` shows; that it keeps its promises it judges itself.
namespace latchkey::test_support {
namespace {

/// Which of the read-write lock's turns somebody has part in: readers hold together.
const std::map<std::string, int> kTurns = {{"writer 1", 1}, {"reader 1", 2}, {"reader 2", 2},
                                           {"reader 3", 2}, {"writer 2", 3}, {"reader 4", 4},
                                           {"reader 5", 4}, {"writer 3", 5}};

TEST(DemoCommand, TellsEverythingInTheOrderInWhichItHappened) {
  const NewUser ann;

  const Ran ran = ann.run({"demo", "--workers", "3", "--hold", "500ms"});

  ASSERT_EQ(ran.status, (ExitStatus{0, 0})) << ran.out << ran.err;
  std::vector<double> times;
  std::set<std::string> asked;
  std::vector<int> left;
  std::vector<int> right;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" s  ") == 6) {
      const std::string what = line.substr(10);
      const std::string who = what.substr(0, what.find(' ', std::string("worker ").size()));
      // The one who asks and the one who lets go do not wait for each other with their words; what
      // is certain is that this comes before its turn.
      if (what == who + " asks for the lock") {
        asked.insert(who);
        continue;
      }
      if (what.starts_with(who + " HOLDS")) {
        EXPECT_TRUE(asked.contains(who)) << ran.out;
      }
      times.push_back(std::stod(line));
    }
    if (!line.ends_with(" holds")) continue;
    const std::size_t from = line.find_first_not_of(' ');
    const std::string name = line.substr(from, line.size() - from - 6);
    ASSERT_TRUE(kTurns.contains(name)) << line;
    (from == 2 ? left : right).push_back(kTurns.at(name));
  }
  EXPECT_EQ(asked.size(), 3U) << ran.out;
  EXPECT_GT(times.size(), 7U);
  EXPECT_TRUE(std::ranges::is_sorted(times)) << ran.out;
  EXPECT_EQ(left, (std::vector{1, 2, 2, 2, 3, 4, 4, 5})) << ran.out;
  EXPECT_EQ(right, left) << ran.out;
  EXPECT_GT(ran.out.find("What was promised"), ran.out.rfind("wake-ups\n")) << "it ends with that";
}

TEST(DemoCommand, HasColoursOnATerminalThatWantsThem) {
  const NewUser ann;
  std::vector<std::string> plain = ann.environment();
  plain.emplace_back("NO_COLOR=1");
  const auto words = ann.command({"demo", "--workers", "3", "--hold", "200ms"});
  // One after the other: a terminal that nobody reads holds up whoever writes to it.
  TerminalChild coloured(words, ann.environment());
  EXPECT_EQ(coloured.wait(deadline_in(std::chrono::seconds(120))), (ExitStatus{0, 0}));
  TerminalChild quiet(words, plain);
  EXPECT_EQ(quiet.wait(deadline_in(std::chrono::seconds(120))), (ExitStatus{0, 0}));

  EXPECT_THAT(coloured.output(), testing::HasSubstr("\033[1;32m"));
  EXPECT_THAT(quiet.output(), testing::Not(testing::HasSubstr("\033[")));
  EXPECT_THAT(quiet.output(), testing::HasSubstr("What was promised"));
}

}  // namespace
}  // namespace latchkey::test_support
