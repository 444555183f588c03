#include "net/threads.hpp"

#include <pthread.h>

#include <array>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace latchkey::net {
namespace {

TEST(Threads, AThreadHasItsNameFromTheStart) {
  std::array<char, 16> name{};

  std::thread thread = make_thread(
      "latchkey-test", [&] { ::pthread_getname_np(::pthread_self(), name.data(), name.size()); });
  thread.join();

  EXPECT_EQ(std::string(name.data()), "latchkey-test");
}

}  // namespace
}  // namespace latchkey::net
