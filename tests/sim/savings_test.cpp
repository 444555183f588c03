#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "recipes/queue_recipe.hpp"
#include "sim/plan.hpp"
#include "sim/run.hpp"
#include "sim/seeds.hpp"
#include "testing/world.hpp"

/// What spares requests changes when they leave and how many there are, never who holds: the quick
/// set without it, and the same grants in the same order.
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;
using testing::Process;
using testing::World;

struct Savings {
  const char* name;
  /// kNo: a release never leaves with the next entry, and that one inherits nothing (decisions 11
  /// and 16).
  session::Linger linger = session::Linger::kYes;
  /// Nobody goes by who has left, by what others of its session were shown, or by what was
  /// inherited: everybody lists, on arrival and on every wake.
  bool lists = false;
  /// Holders say farewell behind anybody, and not only behind many (decision 14).
  bool farewells = false;
};

void PrintTo(const Savings& savings, std::ostream* out) { *out << savings.name; }

constexpr Savings kUsual{"usual"};
constexpr std::array<Savings, 4> kOthers = {
    Savings{"releases_alone", session::Linger::kNo},
    Savings{"lists", session::Linger::kYes, true},
    Savings{"nothing", session::Linger::kNo, true},
    Savings{"farewells", session::Linger::kYes, false, true},
};

class QuickSet : public ::testing::TestWithParam<std::tuple<std::uint64_t, Savings>> {};

TEST_P(QuickSet, ShowsNoViolationWhateverIsSaved) {
  const auto& [seed, savings] = GetParam();
  Plan plan = draw_plan(seed);
  plan.world.linger = savings.linger;
  plan.relists = savings.lists;
  plan.farewells = savings.farewells;

  const Outcome outcome = play(plan);

  EXPECT_FALSE(outcome.violation) << describe(outcome) << '\n' << describe(plan);
  EXPECT_GT(outcome.holds, 0U);
}

std::string saving_name(const ::testing::TestParamInfo<QuickSet::ParamType>& info) {
  return std::to_string(std::get<0>(info.param)) + '_' + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Saving, QuickSet,
                         ::testing::Combine(::testing::ValuesIn(kQuick),
                                            ::testing::ValuesIn(kOthers)),
                         saving_name);

// ---- The same grants. ---------------------------------------------------------------------------

/// Queues when it is its turn to arrive, holds, and comes back at once until all have had enough.
class Worker {
 public:
  Worker(World& world, Process& process, Lock lock, std::vector<int>& grants, int number)
      : world_(world),
        process_(process),
        lock_(std::move(lock)),
        grants_(grants),
        number_(number) {}

  void queue() {
    lock_.lock_async(deadline_in(60s)).then([this](Result<Lease> lease) {
      ASSERT_TRUE(lease) << lease.error();
      // Until everybody has come.
      const Duration span = grants_.empty() ? Duration(1s) : Duration(2ms);
      grants_.push_back(number_);
      lease_.emplace(std::move(*lease));
      world_.post(process_, span, [this] {
        lease_.reset();
        if (++holds_ < kRounds) queue();
      });
    });
  }

  static constexpr int kRounds = 6;

 private:
  World& world_;
  Process& process_;
  Lock lock_;
  std::vector<int>& grants_;
  const int number_;
  int holds_ = 0;
  std::optional<Lease> lease_;
};

struct Course {
  std::vector<int> grants;  ///< By the worker's number.
  std::int64_t writes = 0;  ///< Of the server.
  std::uint64_t trace = 0;
};

/// Five sessions, each with two who want the same lock.
Course course_of(const Savings& savings) {
  constexpr int kSessions = 5;
  World world({.seed = 1, .linger = savings.linger});
  queue::Contender::Options contender;
  if (savings.lists) contender.relist = queue::Relist::kAlways;
  if (savings.farewells) contender.farewell_from = 1;
  Course course;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<Session> sessions;
  for (int i = 0; i < kSessions; ++i) {
    Process& process = world.start_process("process " + std::to_string(i));
    sessions.push_back(world.open(process));
    for (int beside = 0; beside < 2; ++beside) {
      const int number = i + beside * kSessions;
      const Lock lock(std::make_shared<recipes::QueueRecipe>(
          sessions.back().host(), Path("/locks/a"), recipes::EntryStyle{.contender = contender}));
      workers.push_back(std::make_unique<Worker>(world, process, lock, course.grants, number));
      world.post(process, 100ms + number * 20ms,
                 [worker = workers.back().get()] { worker->queue(); });
    }
  }
  const std::size_t all = workers.size() * Worker::kRounds;
  EXPECT_TRUE(world.run_until([&] { return course.grants.size() == all; }, 60s));
  world.run_for(1s);
  course.writes = world.leader().tree().applied_zxid();
  course.trace = world.trace();
  return course;
}

TEST(Savings, TheSameAreGrantedInTheSameOrderWhateverIsSaved) {
  const Course usual = course_of(kUsual);
  for (std::size_t i = 0; i < usual.grants.size(); ++i) {
    EXPECT_EQ(usual.grants[i], static_cast<int>(i % 10)) << i;
  }

  for (const Savings& savings : kOthers) {
    const Course course = course_of(savings);
    EXPECT_EQ(course.grants, usual.grants) << savings.name;
    EXPECT_NE(course.trace, usual.trace) << savings.name << " changed nothing";
    const std::int64_t more = savings.linger == session::Linger::kNo ? 1 : 0;
    EXPECT_GE(course.writes, usual.writes + more) << savings.name;
  }
}

}  // namespace
}  // namespace latchkey::sim
