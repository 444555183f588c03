// Feeds any bytes to a session machine that has a session, calls of every kind in flight, watches,
// debts and a member. Input: a byte for how many piece sizes follow, the sizes (used in turn, over
// and over), then what the server says. A size of 255 lets a second pass, 254 cuts the connection
// and makes a new one. Whatever comes, every call ends exactly once and nothing is asserted.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "session/machine.hpp"

namespace latchkey::session {
namespace {

using wire::Op;

void require(bool condition) {
  if (!condition) std::abort();
}

struct Bystander : Member {
  void on_heartbeat() override {}
  void on_lease_over() override {}
  void on_session_over(Code) override {}
};

class Client {
 public:
  Client() {
    machine_.advance(now_);
    machine_.start(now_);
    settle();
    greet();
    machine_.join(bystander_);
    ask();
  }

  void feed(std::string_view bytes) {
    machine_.received(bytes, now_);
    settle();
  }
  void pass() {
    now_ += std::chrono::seconds(1);
    machine_.advance(now_);
    machine_.tick(now_);
    settle();
    require(machine_.next_wake() > now_);
  }
  void cut() {
    machine_.transport_down("cut", Code::kUnreachable, now_);
    settle();
    greet();
    if (!machine_.is_over()) ask();
  }
  void finish() {
    machine_.close(now_, count(), now_);
    machine_.tick(now_);
    settle();
    require(machine_.is_over());
    for (const auto& times : told_) require(*times == 1);
    require(machine_.watch_count() == 0);
  }

 private:
  Completion count() {
    told_.push_back(std::make_shared<int>(0));
    return [times = told_.back()](Outcome&&) { ++*times; };
  }
  template <class Body>
  void submit(Op op, const Body& body, Resend resend, std::optional<WatchWish> watch = {}) {
    Call call{.op = op, .path = "/a", .watch = std::move(watch), .resend = resend};
    wire::append_frame(call.frame, wire::RequestHeader{0, op}, body);
    call.done = count();
    machine_.submit(std::move(call), now_);
  }
  void ask() {
    const Watcher ignore = [](const WatchEvent&) {};
    submit(Op::kCreate2, wire::Create{"/a", "", {}, {}}, Resend::kNever);
    submit(Op::kGetData, wire::PathWatch{"/a", true}, Resend::kWithinPolicy,
           WatchWish{.watcher = ignore});
    submit(Op::kExists, wire::PathWatch{"/a", true}, Resend::kNever, WatchWish{.watcher = ignore});
    submit(Op::kGetChildren2, wire::PathWatch{"/a", true}, Resend::kWithinPolicy,
           WatchWish{.on = WatchOn::kChildren, .watcher = ignore});
    submit(Op::kAddWatch, wire::AddWatch{"/a", {}}, Resend::kWithinPolicy,
           WatchWish{.on = WatchOn::kRecursive, .watcher = ignore});
    submit(Op::kMulti, wire::Multi{}, Resend::kNever);
    submit(Op::kGetAcl, wire::PathOnly{"/a"}, Resend::kWithinPolicy);
    submit(Op::kWhoAmI, wire::Empty{}, Resend::kWithinPolicy);
    submit(Op::kGetEphemerals, wire::PathOnly{"/a"}, Resend::kWithinPolicy);
    machine_.owe_delete("/a", count(), now_);
    machine_.add_credential({"digest", "u:p"}, count(), Instant::max(), now_);
    settle();
  }
  void settle() {
    while (machine_.has_news()) {
      machine_.deliver({});
      static_cast<void>(machine_.take_hang_up());
      dialed_ = machine_.take_dial().has_value() || dialed_;
      static_cast<void>(machine_.take_output());
    }
  }
  void greet() {
    for (int i = 0; i < 50 && !dialed_ && !machine_.is_over(); ++i) {
      now_ = std::max(now_, machine_.next_wake());
      machine_.tick(now_);
      settle();
    }
    if (machine_.is_over()) return;
    dialed_ = false;
    machine_.transport_up(now_);
    std::string bytes;
    wire::append_connect_response(bytes, {0, 10'000, 7, std::string(16, 'p')},
                                  wire::Handshake::kWithReadOnly);
    feed(bytes);
  }

  Instant now_{std::chrono::seconds(1'000)};
  Machine machine_{MachineOptions{.max_reply_bytes = 4'096}, 1, std::make_shared<View>()};
  Bystander bystander_;
  bool dialed_ = false;
  std::vector<std::shared_ptr<int>> told_;
};

void check(std::string_view input) {
  if (input.empty()) return;
  const std::size_t count = std::size_t{static_cast<unsigned char>(input[0])} % 16 + 1;
  input.remove_prefix(1);
  if (input.size() < count) return;
  const std::string_view sizes = input.substr(0, count);
  input.remove_prefix(count);
  Client client;
  for (std::size_t turn = 0; !input.empty() && turn < 1'000; ++turn) {
    const auto size = static_cast<unsigned char>(sizes[turn % sizes.size()]);
    if (size == 255) {
      client.pass();
    } else if (size == 254) {
      client.cut();
    } else {
      const std::size_t taken = std::min<std::size_t>(std::max<std::size_t>(size, 1), input.size());
      client.feed(input.substr(0, taken));
      input.remove_prefix(taken);
    }
  }
  client.finish();
}

}  // namespace
}  // namespace latchkey::session

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  latchkey::session::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
