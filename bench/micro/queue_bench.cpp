#include <string>
#include <variant>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/random.hpp"
#include "queue/contender.hpp"

// A contender's decisions, with a service that answers at once.
namespace latchkey::bench {
namespace {

using queue::Contender;
namespace action = queue::action;
namespace event = queue::event;

/// Answers everything that a lone contender asks, until it is done or waits for somebody.
class Service {
 public:
  explicit Service(std::vector<std::string> others) : others_(std::move(others)) {}

  /// Returns how many steps it took.
  int answer(Contender& contender, std::vector<queue::Action> actions) {
    int steps = 0;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (const auto next = reply(actions[i])) {
        ++steps;
        for (queue::Action& more : contender.step(*next)) actions.push_back(std::move(more));
      }
    }
    return steps;
  }

 private:
  std::optional<queue::Event> reply(const queue::Action& action) {
    if (const auto* create = std::get_if<action::Create>(&action)) {
      own_ = create->prefix + "9000000000";
      return event::Created{create->ask, {}, own_, 17};
    }
    if (const auto* list = std::get_if<action::List>(&action)) {
      std::vector<std::string> children = others_;
      children.push_back(own_);
      return event::Listed{list->ask, {}, std::move(children)};
    }
    if (const auto* watch = std::get_if<action::Watch>(&action)) {
      return event::Watched{watch->ask, {}};
    }
    if (const auto* prove = std::get_if<action::Prove>(&action)) {
      return event::Proved{prove->ask, {}};
    }
    return std::nullopt;
  }

  std::vector<std::string> others_;
  std::string own_;
};

queue::GuidSource guids() {
  return [] { return std::string("6b1d5a4e-8c53-4a0b-9a57-0f3d2c1b7e11"); };
}

void uncontended(benchmark::State& state) {
  Service service({});
  for (auto step : state) {
    static_cast<void>(step);
    Contender contender({.directory = "/locks/a"}, guids());
    benchmark::DoNotOptimize(service.answer(contender, contender.step(event::Start{})));
    benchmark::DoNotOptimize(contender.step(event::Release{}));
  }
}
BENCHMARK(uncontended);

void queueing_behind(benchmark::State& state) {
  std::vector<std::string> others;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    std::string number = std::to_string(i);
    number.insert(0, 10 - number.size(), '0');
    others.push_back("_c_0b1d5a4e-8c53-4a0b-9a57-0f3d2c1b7e11-lock-" + number);
  }
  Service service(std::move(others));
  for (auto step : state) {
    static_cast<void>(step);
    Contender contender({.directory = "/locks/a"}, guids());
    benchmark::DoNotOptimize(service.answer(contender, contender.step(event::Start{})));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(queueing_behind)->Arg(1)->Arg(100)->Arg(3'000);

}  // namespace
}  // namespace latchkey::bench
