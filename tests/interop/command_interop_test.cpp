#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "interop/interop_fixture.hpp"
#include "support/eventually.hpp"

/// The command beside programs that take the lock with another library.
namespace latchkey::test_support {
namespace {

/// `latchkey` with these words, and the service to go to.
std::vector<std::string> command(std::vector<std::string> words, const std::string& connect) {
  words.insert(words.begin(), LATCHKEY_COMMAND);
  words.insert(words.begin() + 2, {"--connect", connect});
  return words;
}

TEST_P(InspectInteropTest, TheCommandWaitsForOtherLibrariesAndShowsThem) {
  const std::string connect = service().connect_string();
  const auto code = [&](const std::vector<std::string>& words) {
    Child child(command(words, connect));
    return child.wait(soon()).value_or(ExitStatus{}).code;
  };
  const std::vector<std::string> attempt = {"run", "-n", "-E", "99", directory, "--", "true"};
  for (const bool python : {false, true}) {
    const auto theirs = python ? kazoo() : curator();
    theirs->order("mutex " + directory);
    ASSERT_TRUE(theirs->holds());

    EXPECT_EQ(code(attempt), 99) << python;
    EXPECT_EQ(code({"who", directory}), 0) << python;
    Child list(command({"ls", directory}, connect));
    EXPECT_TRUE(list.wait_for_line("holds", soon())) << python;

    EXPECT_EQ(theirs->ask("unlock"), "released");
    EXPECT_TRUE(eventually([&] { return code(attempt) == 0; }, soon())) << python;
  }
}

TEST_P(InspectInteropTest, OtherLibrariesWaitForACommand) {
  const std::string connect = service().connect_string();
  Child holder(command({"run", directory, "--", "sh", "-c", "echo on; read x"}, connect));
  ASSERT_TRUE(holder.wait_for_line("on", soon()));
  const auto java = curator();
  java->order("mutex " + directory);
  ASSERT_TRUE(witness.queue_reaches(directory, 2));
  const auto python = kazoo();
  python->order("mutex " + directory);
  ASSERT_TRUE(witness.queue_reaches(directory, 3));
  EXPECT_FALSE(java->has_answer());
  EXPECT_FALSE(python->has_answer());

  ASSERT_TRUE(holder.write("go\n"));

  EXPECT_EQ(holder.wait(soon()), (ExitStatus{0, 0}));
  ASSERT_TRUE(java->holds());
  EXPECT_EQ(java->ask("unlock"), "released");
  EXPECT_TRUE(python->holds());
}

}  // namespace
}  // namespace latchkey::test_support
