#include <string>

#include <benchmark/benchmark.h>

#include "latchkey/server.hpp"
#include "tree/tree.hpp"

// The server's state: what a lock and unlock costs it without journal and network.
namespace latchkey::bench {
namespace {

constexpr tree::SessionId kSession = 7;

wire::Create create_of(const std::string& path, wire::CreateMode mode) {
  wire::WireAcl open;
  open.permissions = 31;
  open.scheme = "world";
  open.id = "anyone";
  wire::Create request;
  request.path = path;
  request.data = std::string(60, 'x');
  request.acl = {open};
  request.mode = mode;
  return request;
}

/// A tree with a session, a lock's directory and `others` further nodes.
class Grown {
 public:
  explicit Grown(std::int64_t others) {
    apply(tree.open_session(kSession, 10'000, "password", 1));
    write(wire::Op::kCreate, create_of("/locks", wire::CreateMode::kPersistent));
    for (std::int64_t i = 0; i < others; ++i) {
      write(wire::Op::kCreate,
            create_of("/node-" + std::to_string(i), wire::CreateMode::kPersistent));
    }
  }

  template <class Body>
  tree::Record write(wire::Op op, Body body) {
    tree::Verdict verdict = tree.decide({kSession, {}}, {op, std::move(body)}, 1);
    apply(verdict.record.value());
    return *std::move(verdict.record);
  }

  tree::Tree tree;

 private:
  tree::Effects apply(const tree::Record& record) {
    return tree.apply(record, [](tree::PeerId) { return std::span<const tree::Identity>{}; });
  }
};

void create_and_delete(benchmark::State& state) {
  Grown grown(state.range(0));
  for (auto step : state) {
    static_cast<void>(step);
    const tree::Record record = grown.write(
        wire::Op::kCreate2, create_of("/locks/_c_6b1d5a4e-8c53-4a0b-9a57-0f3d2c1b7e11-lock-",
                                      wire::CreateMode::kEphemeralSequential));
    grown.write(wire::Op::kDelete, wire::PathVersion{record.changes.front().path, -1});
  }
}
BENCHMARK(create_and_delete)->Arg(0)->Arg(1'000)->Arg(100'000);

void encode_record(benchmark::State& state) {
  Grown grown(0);
  const tree::Verdict verdict = grown.tree.decide(
      {kSession, {}},
      {wire::Op::kCreate, create_of("/locks/a-", wire::CreateMode::kEphemeralSequential)}, 1);
  for (auto step : state) {
    static_cast<void>(step);
    benchmark::DoNotOptimize(tree::encode(*verdict.record));
  }
}
BENCHMARK(encode_record);

void start_a_server(benchmark::State& state) {
  for (auto step : state) {
    static_cast<void>(step);
    if (!Server::start()) state.SkipWithError("it does not start");
  }
}
BENCHMARK(start_a_server)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace latchkey::bench
