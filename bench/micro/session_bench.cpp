#include <string>

#include <benchmark/benchmark.h>

#include "session/machine_rig.hpp"

// The client's session without a socket: a call from submission to its answer. The scripted server
// of the unit tests decodes the request and encodes the reply, so that is in the figures as well.
namespace latchkey::bench {
namespace {

void one_call(benchmark::State& state) {
  session::Rig rig;
  rig.open();
  for (auto step : state) {
    static_cast<void>(step);
    rig.submit(session::create_call("/locks/a/_c_6b1d5a4e-8c53-4a0b-9a57-0f3d2c1b7e11-lock-"));
    rig.answer();
  }
}
BENCHMARK(one_call);

void many_calls_in_one_flush(benchmark::State& state) {
  session::Rig rig;
  rig.open();
  for (auto step : state) {
    static_cast<void>(step);
    for (std::int64_t i = 0; i < state.range(0); ++i) {
      rig.submit(session::create_call("/locks/a/_c_6b1d5a4e-8c53-4a0b-9a57-0f3d2c1b7e11-lock-"));
    }
    rig.answer_all();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(many_calls_in_one_flush)->Arg(3)->Arg(64)->Arg(1'000);

void a_watch_that_fires(benchmark::State& state) {
  session::Rig rig;
  rig.open();
  for (auto step : state) {
    static_cast<void>(step);
    rig.submit(session::get_call("/locks/a/x", [](const WatchEvent&) {}));
    rig.answer();
    rig.event(wire::EventType::kDeleted, "/locks/a/x");
  }
}
BENCHMARK(a_watch_that_fires);

}  // namespace
}  // namespace latchkey::bench
