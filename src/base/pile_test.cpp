#include "base/pile.hpp"

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace latchkey::base {
namespace {

struct Thing {
  char name = ' ';
  Thing* next = nullptr;
};

std::string taken(Pile<Thing>& pile) {
  std::string names;
  for (const Thing* thing = pile.take_all(); thing != nullptr; thing = thing->next) {
    names += thing->name;
  }
  return names;
}

TEST(Pile, GivesWhatWasPutInTheOrderItCame) {
  Pile<Thing> pile;
  Thing a{'a'};
  Thing b{'b'};
  Thing c{'c'};

  pile.put(a);
  pile.put(b);
  pile.put(c);

  EXPECT_FALSE(pile.is_empty());
  EXPECT_EQ(taken(pile), "abc");
  EXPECT_TRUE(pile.is_empty());
  EXPECT_EQ(taken(pile), "");
}

TEST(Pile, AThingThatWasTakenMayBePutAgain) {
  Pile<Thing> pile;
  Thing a{'a'};
  Thing b{'b'};
  pile.put(a);
  pile.put(b);
  EXPECT_EQ(taken(pile), "ab");

  pile.put(b);
  pile.put(a);

  EXPECT_EQ(taken(pile), "ba");
}

/// What net::Driver does with it: whoever does not get the lock relies on whoever has it.
TEST(Pile, WhatIsLeftToTheOneWhoHasALockIsDoneByItOrNotLeft) {
  struct Chore {
    std::atomic<int>* done = nullptr;
    Chore* next = nullptr;
  };
  constexpr int kThreads = 4;
  constexpr int kRounds = 5'000;
  Pile<Chore> pile;
  std::mutex mutex;
  std::atomic<int> done = 0;
  std::vector<Chore> chores(std::size_t{kThreads} * kRounds);
  const auto look = [&] {
    while (!pile.is_empty()) {
      const std::unique_lock lock(mutex, std::try_to_lock);
      if (!lock) return;
      for (Chore* chore = pile.take_all(); chore != nullptr; chore = chore->next) ++*chore->done;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::size_t round = 0; round < kRounds; ++round) {
          Chore& chore = chores[thread * kRounds + round];
          chore.done = &done;
          pile.put(chore);
          look();
        }
      });
    }
  }

  EXPECT_EQ(done, kThreads * kRounds) << "nothing is left behind when nobody is there any more";
}

}  // namespace
}  // namespace latchkey::base
