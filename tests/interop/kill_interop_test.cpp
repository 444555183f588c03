#include <algorithm>
#include <csignal>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>

#include "interop/arrival_order.hpp"
#include "interop/interop_fixture.hpp"
#include "interop/turns.hpp"
#include "latchkey/election.hpp"
#include "latchkey/inspect.hpp"

/// Processes of every client that are killed in the middle of it all, holders and waiters: never
/// two holders, and those who are left go on in their order.
namespace latchkey::test_support {
namespace {

constexpr int kManyTimes = 1'000'000;  ///< More than anybody lives to do.

/// Until one of several processes has been inside, or is while we look.
Deadline in_its_turn() { return deadline_in(60s); }

enum class Inside { kNo, kYes };

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

/// A process that takes locks again and again, and the names under which it marks its holds.
class Doomed {
 public:
  Doomed(const SharedSection& section, std::vector<std::string> names)
      : section_(section), names_(std::move(names)) {}
  virtual ~Doomed() = default;

  /// It has held before.
  [[nodiscard]] bool is_busy() const {
    const auto has_held = [&] {
      const auto log = section_.log();
      return std::any_of(log.begin(), log.end(), [&](const std::string& line) {
        return std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
          return line.starts_with("enter " + name + " ");
        });
      });
    };
    return eventually(has_held, in_its_turn());
  }
  /// Kills it while one of its threads is inside, or none.
  [[nodiscard]] bool dies(Inside inside) {
    const auto is_caught = [&] {
      process().pause();
      if (section_.holds_mark(names_) == (inside == Inside::kYes)) return true;
      process().resume();
      return false;
    };
    if (!eventually(is_caught, in_its_turn())) return false;
    // It holds on the server until its session ends; whoever enters then finds no mark of it.
    process().signal(SIGKILL);
    section_.bury(names_);
    return process().wait(soon()).has_value();
  }

 private:
  [[nodiscard]] virtual Child& process() = 0;

  const SharedSection& section_;
  const std::vector<std::string> names_;
};

/// One of Curator's or kazoo's.
class DoomedPeer final : public Doomed {
 public:
  /// A thread for each wish.
  static std::unique_ptr<DoomedPeer> start(const std::vector<std::string>& command,
                                           const std::string& connect, const SharedSection& section,
                                           const std::vector<std::string>& wishes) {
    auto peer = std::make_unique<Peer>(command);
    auto guest = std::make_unique<Guest>(*peer, connect, kDoomedTimeout);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      const std::string thread = "t" + std::to_string(i);
      guest->order("load " + section.folder() + " " + std::to_string(kManyTimes) + " " + wishes[i],
                   thread);
      names.push_back(guest->name(thread));
    }
    return std::make_unique<DoomedPeer>(section, names, std::move(peer), std::move(guest));
  }

  DoomedPeer(const SharedSection& section, std::vector<std::string> names,
             std::unique_ptr<Peer> peer, std::unique_ptr<Guest> guest)
      : Doomed(section, std::move(names)), peer_(std::move(peer)), guest_(std::move(guest)) {}

 private:
  [[nodiscard]] Child& process() override { return peer_->process(); }

  std::unique_ptr<Peer> peer_;
  std::unique_ptr<Guest> guest_;  // Goes first.
};

std::vector<std::string> our_command(const std::string& connect, const std::string& folder,
                                     const std::string& who, const std::string& wish) {
  std::vector<std::string> command{LATCHKEY_OUR_PEER, connect,
                                   std::to_string(kDoomedTimeout.count()), folder, who};
  for (const std::string& word : words_of(wish)) command.push_back(word);
  return command;
}

/// One of ours.
class DoomedOfOurs final : public Doomed {
 public:
  DoomedOfOurs(const std::string& connect, const SharedSection& section, const std::string& who,
               const std::string& wish)
      : Doomed(section, {who}), process_(our_command(connect, section.folder(), who, wish)) {}

 private:
  [[nodiscard]] Child& process() override { return process_; }

  Child process_;
};

/// Threads of this process that take turns until they are told to stop.
class Survivors {
 public:
  void add(const SharedSection& section, const Session& session, const std::string& wish) {
    const std::string who = "ours-" + std::to_string(threads_.size());
    holds_.push_back(std::make_unique<std::atomic<int>>(0));
    threads_.emplace_back([folder = section.folder(), session, who, wish,
                           holds = holds_.back().get()](const std::stop_token& stop) {
      try {
        *holds = take_turns(session, folder, who, words_of(wish), stop);
      } catch (const std::exception& error) {
        ADD_FAILURE() << who << ": " << error.what();
      }
    });
  }
  void stop() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
  }
  /// After stop().
  [[nodiscard]] bool all_held() const {
    return std::all_of(holds_.begin(), holds_.end(), [](const auto& holds) { return *holds > 0; });
  }

 private:
  std::vector<std::unique_ptr<std::atomic<int>>> holds_;
  std::vector<std::jthread> threads_;
};

class KillInteropTest : public InteropTest {
 protected:
  enum class Kazoo { kNo, kYes };

  /// Everybody takes what is wished for; of each client two processes die, one while it holds, one
  /// while it does not. Then those who are left are to hold again.
  void survive(const std::vector<std::string>& wishes, Kazoo with_kazoo) {
    const std::string connect = service().connect_string();
    std::vector<std::unique_ptr<Doomed>> holders;
    std::vector<std::unique_ptr<Doomed>> waiters;
    for (auto* doomed : {&holders, &waiters}) {
      doomed->push_back(DoomedPeer::start(curator_command(), connect, section, wishes));
      for (const std::string& wish : wishes) {
        const std::string who = "doomed-" + std::to_string(holders.size() + 10 * waiters.size());
        doomed->push_back(std::make_unique<DoomedOfOurs>(connect, section, who, wish));
      }
      if (with_kazoo == Kazoo::kYes) {
        doomed->push_back(DoomedPeer::start(kazoo_command(), connect, section, wishes));
      }
    }
    Survivors ours;
    for (const std::string& wish : wishes) ours.add(section, open(), wish);
    for (const auto& one : holders) ASSERT_TRUE(one->is_busy());
    for (const auto& one : waiters) ASSERT_TRUE(one->is_busy());

    for (const auto& one : waiters) ASSERT_TRUE(one->dies(Inside::kNo));
    for (const auto& one : holders) ASSERT_TRUE(one->dies(Inside::kYes));

    const auto theirs = curator();
    for (const std::string& wish : wishes) {
      EXPECT_EQ(theirs->ask("load " + section.folder() + " 3 " + wish), "done");
    }
    if (with_kazoo == Kazoo::kYes) {
      const auto pythons = kazoo();
      EXPECT_EQ(pythons->ask("load " + section.folder() + " 3 " + wishes.front()), "done");
    }
    ours.stop();
    EXPECT_TRUE(ours.all_held());
    EXPECT_EQ(section.conflicts(), 0) << testing::PrintToString(section.log());
  }

  /// Four stand in line for `wish`, of all three clients, but that the second has a wish of its
  /// own. It is killed while it waits: nobody behind it comes too early, or waits for ever.
  void skip(const std::vector<std::string>& doomed_command, const std::string& wish,
            const std::string& doomed_wish) {
    const auto first = curator();
    first->order(wish);
    ASSERT_TRUE(first->holds());
    Peer doomed(doomed_command);
    Guest second(doomed, service().connect_string(), kDoomedTimeout);
    second.order(doomed_wish);
    ASSERT_TRUE(is_watched(first->node()));
    Child third(our_command(service().connect_string(), "-", "ours", wish));
    ASSERT_TRUE(is_watched(entry(1)));
    const auto fourth = kazoo();
    fourth->order(wish);
    ASSERT_TRUE(is_watched(entry(2)));

    doomed.process().signal(SIGKILL);

    ASSERT_TRUE(witness.queue_reaches(directory, 3));
    ASSERT_TRUE(is_watched(first->node()));
    EXPECT_FALSE(third.next_line(deadline_in(0ms)));
    EXPECT_FALSE(fourth->has_answer());
    EXPECT_EQ(first->ask("unlock"), "released");
    ASSERT_TRUE(third.wait_for_line("held", soon()));
    EXPECT_FALSE(fourth->has_answer());
    third.close_stdin();
    EXPECT_TRUE(fourth->holds());
  }

  /// One of ours waits between two of Curator's and is killed: the last is not let in too early,
  /// and is let in.
  void skip_ours(const std::string& wish, const std::string& doomed_wish) {
    const auto first = curator();
    first->order(wish);
    ASSERT_TRUE(first->holds());
    Child doomed(our_command(service().connect_string(), "-", "ours", doomed_wish));
    ASSERT_TRUE(is_watched(first->node()));
    const auto last = curator();
    last->order(wish);
    ASSERT_TRUE(is_watched(entry(1)));

    doomed.signal(SIGKILL);

    ASSERT_TRUE(witness.queue_reaches(directory, 2));
    ASSERT_TRUE(is_watched(first->node()));
    EXPECT_FALSE(last->has_answer());
    EXPECT_EQ(first->ask("unlock"), "released");
    EXPECT_TRUE(last->holds());
  }

  /// One of ours holds and is killed: Curator, which waits, comes after it.
  void make_way(const std::string& doomed_wish, const std::string& wish) {
    Child doomed(our_command(service().connect_string(), "-", "ours", doomed_wish));
    ASSERT_TRUE(doomed.wait_for_line("held", soon()));
    const auto next = curator();
    next->order(wish);
    ASSERT_TRUE(is_watched(entry(0)));
    EXPECT_FALSE(next->has_answer());

    doomed.signal(SIGKILL);

    EXPECT_TRUE(next->holds());
  }

  const SharedSection section;
};

INSTANTIATE_TEST_SUITE_P(Standalone, KillInteropTest, testing::Values(ServiceKind::kStandalone));
INSTANTIATE_TEST_SUITE_P(Ensemble, KillInteropTest, testing::Values(ServiceKind::kEnsemble));
INSTANTIATE_TEST_SUITE_P(Embedded, KillInteropTest, testing::Values(ServiceKind::kEmbedded));

TEST_P(KillInteropTest, AMutexUnderLoad) {
  make_node(witness.session(), directory);  // So that its numbers do not begin anew.
  survive({"mutex " + directory}, Kazoo::kYes);
  EXPECT_TRUE(in_order_of_arrival(section.entered())) << testing::PrintToString(section.log());
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(KillInteropTest, AReadWriteLockUnderLoad) {
  make_node(witness.session(), directory);
  survive({"read " + directory, "write " + directory}, Kazoo::kYes);
  EXPECT_TRUE(in_order_of_arrival(section.entered())) << testing::PrintToString(section.log());
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(KillInteropTest, ASemaphoreUnderLoad) {
  constexpr std::size_t kSize = 2;
  make_node(witness.session(), directory, std::to_string(kSize));
  make_node(witness.session(), directory + "/locks");
  make_node(witness.session(), directory + "/leases");
  Events events;
  ASSERT_TRUE(ok(witness.session().call(
      AddWatch{directory, WatchMode::kPersistentRecursive, note(events)}, soon())));

  survive({"semaphore " + directory + " 2 1"}, Kazoo::kNo);

  const auto leases = [&] {
    const auto all = events.all();
    return std::count_if(all.begin(), all.end(), [&](const std::string& event) {
      return event.starts_with("created " + directory + "/leases/");
    });
  };
  EXPECT_TRUE(eventually([&] { return leases() >= std::ssize(section.entered()); }));
  EXPECT_TRUE(permits_in_order_of_arrival(events.all(), kSize))
      << testing::PrintToString(events.all());
  EXPECT_TRUE(witness.is_quiet(directory + "/locks"));
  EXPECT_TRUE(witness.is_quiet(directory + "/leases"));
}

TEST_P(KillInteropTest, ALeaderLatchUnderLoad) {
  make_node(witness.session(), directory);
  survive({"latch " + directory + " somebody"}, Kazoo::kYes);
  EXPECT_TRUE(in_order_of_arrival(section.entered())) << testing::PrintToString(section.log());
  EXPECT_TRUE(witness.is_quiet(directory));
}

TEST_P(KillInteropTest, AKazooThatWaitsForAMutexIsSkipped) {
  skip(kazoo_command(), "mutex " + directory, "mutex " + directory);
}

TEST_P(KillInteropTest, AKazooThatWaitsToReadIsSkipped) {
  skip(kazoo_command(), "write " + directory, "read " + directory);
}

TEST_P(KillInteropTest, AKazooThatWaitsToWriteIsSkipped) {
  skip(kazoo_command(), "write " + directory, "write " + directory);
}

TEST_P(KillInteropTest, AKazooThatWaitsForTheLeadIsSkipped) {
  skip(kazoo_command(), "latch " + directory + " somebody", "latch " + directory + " somebody");
}

TEST_P(KillInteropTest, ACuratorThatWaitsForAMutexIsSkipped) {
  skip(curator_command(), "mutex " + directory, "mutex " + directory);
}

TEST_P(KillInteropTest, ACuratorThatWaitsToReadIsSkipped) {
  skip(curator_command(), "write " + directory, "read " + directory);
}

TEST_P(KillInteropTest, ACuratorThatWaitsToWriteIsSkipped) {
  skip(curator_command(), "write " + directory, "write " + directory);
}

TEST_P(KillInteropTest, ACuratorThatWaitsForTheLeadIsSkipped) {
  skip(curator_command(), "latch " + directory + " somebody", "latch " + directory + " somebody");
}

TEST_P(KillInteropTest, CuratorsThatWaitForAPermitAreSkipped) {
  const std::string permit = "semaphore " + directory + " 1 1";
  const std::string line = directory + "/locks";
  const auto first = curator();
  first->order(permit);
  ASSERT_TRUE(first->holds());
  // One at the head of the line, with a lease that does not count yet; one behind it.
  Peer doomed(curator_command());
  Guest theirs(doomed, service().connect_string(), kDoomedTimeout);
  theirs.order(permit, "head");
  ASSERT_TRUE(witness.queue_reaches(directory + "/leases", 2));
  theirs.order(permit, "behind");
  ASSERT_TRUE(witness.queue_reaches(line, 2));
  Child ours(our_command(service().connect_string(), "-", "ours", permit));
  ASSERT_TRUE(witness.queue_reaches(line, 3));
  const auto last = curator();
  last->order(permit);
  ASSERT_TRUE(witness.queue_reaches(line, 4));

  doomed.process().signal(SIGKILL);

  ASSERT_TRUE(witness.queue_reaches(line, 2));
  EXPECT_FALSE(ours.next_line(deadline_in(0ms)));
  EXPECT_FALSE(last->has_answer());
  EXPECT_EQ(first->ask("unlock"), "released");
  ASSERT_TRUE(ours.wait_for_line("held", soon()));
  EXPECT_FALSE(last->has_answer());
  ours.close_stdin();
  EXPECT_TRUE(last->holds());
}

TEST_P(KillInteropTest, OneOfOursThatWaitsForAMutexIsSkipped) {
  skip_ours("mutex " + directory, "mutex " + directory);
}

TEST_P(KillInteropTest, OneOfOursThatWaitsToReadIsSkipped) {
  skip_ours("write " + directory, "read " + directory);
}

TEST_P(KillInteropTest, OneOfOursThatWaitsToWriteIsSkipped) {
  skip_ours("write " + directory, "write " + directory);
}

TEST_P(KillInteropTest, AReaderOfOursMakesWayForAWriterOfCurators) {
  make_way("read " + directory, "write " + directory);
}

TEST_P(KillInteropTest, AWriterOfOursMakesWayForAReaderOfCurators) {
  make_way("write " + directory, "read " + directory);
}

TEST_P(KillInteropTest, AHolderOfOursGivesItsPermitsBackToCurator) {
  const std::string permit = "semaphore " + directory + " 2 ";
  Child ours(our_command(service().connect_string(), "-", "ours", permit + "2"));
  ASSERT_TRUE(ours.wait_for_line("held", soon()));
  const auto theirs = curator();
  theirs->order(permit + "1");
  ASSERT_TRUE(witness.queue_reaches(directory + "/leases", 3));
  EXPECT_FALSE(theirs->has_answer());

  ours.signal(SIGKILL);

  EXPECT_TRUE(theirs->holds());
  EXPECT_TRUE(witness.queue_reaches(directory + "/leases", 1));
}

TEST_P(KillInteropTest, ALeaderOfOursMakesWayForCurator) {
  Child ours(our_command(service().connect_string(), "-", "ours", "latch " + directory));
  ASSERT_TRUE(ours.wait_for_line("held", soon()));
  const auto theirs = curator();
  theirs->order("latch " + directory + " theirs");
  ASSERT_TRUE(is_watched(entry(0)));

  ours.signal(SIGKILL);

  EXPECT_TRUE(theirs->holds());
}

TEST_P(KillInteropTest, ALeaderOfKazoosMakesWayForUs) {
  Peer doomed(kazoo_command());
  Guest pythons(doomed, service().connect_string(), kDoomedTimeout);
  pythons.order("latch " + directory + " pythons");
  ASSERT_TRUE(pythons.holds());
  const Election ours(open(), directory, {.id = "ours"});
  ASSERT_TRUE(is_watched(pythons.node()));

  doomed.process().signal(SIGKILL);

  EXPECT_TRUE(eventually([&] { return ours.state() == ElectionState::kLeading; }));
}

}  // namespace
}  // namespace latchkey::test_support
