#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "session/machine_rig.hpp"

namespace latchkey::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::Err;
using wire::Op;

/// A server that mostly does as it should, a network that mostly works and users who come and go,
/// all drawn from one seed. Rig itself asserts that there is output only for a transport that is up
/// and that nobody dials over an open one.
class Storm {
 public:
  explicit Storm(std::uint64_t seed)
      : random_(seed),
        rig_({.endpoints = 1 + random_.below(3),
              .retry = {.base = milliseconds(10), .cap = milliseconds(100), .count = 2},
              .max_requests = 8},
             seed) {}

  void run(int steps) {
    rig_.start();
    for (int i = 0; i < steps; ++i) step();
    finish();
  }

  /// Transactions that were answered, and those of them that were refused for one of their parts.
  [[nodiscard]] int joined() const { return joined_; }
  [[nodiscard]] int rolled_back() const { return rolled_back_; }

 private:
  bool chance(std::uint64_t percent) { return random_.below(100) < percent; }
  std::string path() { return "/" + std::string(1, static_cast<char>('a' + random_.below(4))); }

  void step() {
    if (rig_.dialed && chance(50)) return chance(70) ? connect() : rig_.down("refused");
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2: return submit();
      case 3:
      case 4:
      case 5: return serve();
      case 6: return rig_.event(wire::EventType(static_cast<int>(random_.below(6))), path());
      case 7: return tick(milliseconds(random_.below(3'000)));
      case 8: return annoy();
      case 9: return wait();
      case 10: return watch_out();
      default:
        if (chance(10) && rig_.is_up()) return garble();
        if (chance(15) && rig_.is_up()) return rig_.down();
        if (chance(1)) calls_.push_back(rig_.close(milliseconds(random_.below(5'000))));
    }
  }

  void connect() {
    rig_.up();
    if (chance(3)) return rig_.greet(milliseconds(0), 0);
    if (chance(2)) return rig_.greet(seconds(10), 99);
    if (chance(90)) rig_.greet(seconds(2 + random_.below(10)));
  }

  void submit() {
    Call call = create_call(path());
    if (chance(50)) call = get_call(path(), chance(50) ? rig_.watcher() : Watcher{});
    if (chance(10)) call = exists_call(path(), rig_.watcher());
    if (chance(10)) call = children_call(path(), rig_.watcher());
    if (chance(5)) call = add_watch_call(path(), WatchOn::kRecursive, rig_.watcher());
    if (chance(50)) call.deadline = rig_.now + milliseconds(random_.below(4'000));
    if (chance(10)) {
      std::optional<LastWord> word;
      if (chance(30)) word = {"/locks", "left 7", 3};
      calls_.push_back(rig_.owe_delete(path(), word));
      if (chance(70)) come_back();
    } else {
      calls_.push_back(rig_.submit(std::move(call)));
    }
  }

  void come_back() {
    Call call = create_call(path());
    call.joins_delete = true;
    if (chance(50)) call.deadline = rig_.now + milliseconds(random_.below(4'000));
    calls_.push_back(rig_.submit(std::move(call)));
  }

  void serve() {
    for (std::uint64_t i = random_.below(4); i > 0 && !rig_.requests.empty(); --i) {
      Err err = Err::kOk;
      if (chance(20)) err = Err::kNoNode;
      if (chance(3)) err = Err(-static_cast<int>(random_.below(130)));
      const bool is_joined = rig_.requests.front().op == Op::kMulti;
      joined_ += is_joined ? 1 : 0;
      if (is_joined && err != Err::kOk && chance(80)) {
        ++rolled_back_;
        rig_.feed(Rig::refusal_of(rig_.take(), random_.below(2), err, ++zxid_));
        continue;
      }
      rig_.answer(rig_.requests.front().op == Op::kPing ? Err::kOk : err);
    }
  }

  void tick(Duration span) {
    if (chance(5)) span *= 20;
    if (chance(70))
      span = std::min(span, std::max(Duration{}, rig_.machine.next_wake() - rig_.now));
    rig_.leap(span);
    EXPECT_GT(rig_.machine.next_wake(), rig_.now) << "the driver would spin";
  }

  void annoy() {
    if (calls_.empty()) return;
    const Sent& call = calls_[random_.below(calls_.size())];
    switch (random_.below(4)) {
      case 0: rig_.machine.abandon(call.id, Code::kCancelled, rig_.now); break;
      case 1: rig_.machine.withdraw(call.id, rig_.now); break;
      case 2: rig_.machine.unwatch(call.id, rig_.now); break;
      default: rig_.machine.forget_watch(call.id); break;
    }
    rig_.settle();
  }

  void wait() {
    switch (random_.below(3)) {
      case 0: calls_.push_back(rig_.await_room(milliseconds(random_.below(3'000)))); break;
      case 1: calls_.push_back(rig_.await_connection(milliseconds(random_.below(3'000)))); break;
      default:
        calls_.push_back(rig_.add_credential("u:p" + std::to_string(random_.below(2)),
                                             milliseconds(random_.below(3'000))));
    }
  }

  void watch_out() {
    if (members_.empty() || chance(50)) {
      const auto listener = std::make_shared<Listener>();
      members_.emplace(rig_.machine.join(*listener), listener);
    } else {
      rig_.machine.leave(members_.begin()->first);
      members_.erase(members_.begin());
    }
    rig_.settle();
  }

  void garble() {
    std::string bytes(1 + random_.below(40), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_.below(chance(50) ? 256 : 4));
    if (!rig_.requests.empty() && chance(50)) {
      bytes = Rig::reply_to(rig_.take(), Err::kOk, 5);
      bytes[random_.below(bytes.size())] ^= static_cast<char>(1U << random_.below(8));
    }
    rig_.feed(bytes);
  }

  void finish() {
    if (!rig_.machine.is_over()) calls_.push_back(rig_.close(seconds(1)));
    if (!rig_.machine.is_over()) rig_.leap(seconds(1));
    EXPECT_TRUE(rig_.machine.is_over());
    rig_.leap(seconds(10));
    for (const Sent& call : calls_) EXPECT_EQ(call.times(), 1);
    EXPECT_EQ(rig_.machine.watch_count(), 0U);
    for (const char* const one : {"/a", "/b", "/c", "/d"}) {
      EXPECT_FALSE(rig_.machine.is_owed(one)) << one;
    }
    EXPECT_EQ(rig_.machine.next_wake(), Instant::max());
    for (const auto& [id, listener] : members_) {
      const auto& story = listener->story;
      EXPECT_EQ(std::ranges::count_if(
                    story, [](const std::string& one) { return one.starts_with("session over"); }),
                1);
    }
  }

  base::Random random_;
  Rig rig_;
  std::vector<Sent> calls_;
  std::int64_t zxid_ = 1'000'000;
  int joined_ = 0;
  int rolled_back_ = 0;
  std::map<Machine::MemberId, std::shared_ptr<Listener>> members_;
};

TEST(MachineRandom, EveryCallEndsOnceWhateverHappens) {
  int joined = 0;
  int rolled_back = 0;
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Storm storm(seed);
    storm.run(400);
    if (HasFailure()) return;
    joined += storm.joined();
    rolled_back += storm.rolled_back();
  }

  EXPECT_GT(joined, 500) << "a release with the next entry";
  EXPECT_GT(rolled_back, 100);
}

}  // namespace
}  // namespace latchkey::session
