#include "sim/operator.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace latchkey::sim {

using namespace std::chrono_literals;

namespace {

/// None of them is a contender's, and some nearly are.
constexpr std::array<const char*, 5> kForeign = {"note", "_c_", "x-lock-000000001",
                                                 "lease-000000000a", "lock-00000000001"};
constexpr Duration kAgain = 50ms;

}  // namespace

Operator::Operator(const Stage& stage)
    : stage_(stage), process_(stage.world.start_process("operator")) {
  stage_.world.post(process_, 0us, [this] {
    open();
    if (!stage_.plan.resizes) return;
    for (const Site& site : stage_.plan.sites) {
      if (site.sort == Sort::kSemaphore) resize(site, site.size);
    }
  });
}

void Operator::open() {
  SessionOptions options;
  options.timeout = 40s;
  session_ = stage_.world.open(process_, std::move(options));
}

template <class Operation>
void Operator::send(Operation operation, std::function<void(const Error*)> done) {
  session_->async(std::move(operation), deadline_in(30s),
                  [this, done = std::move(done)](const auto& result) {
                    if (result) return done(nullptr);
                    if (is_session_over(result.error().code())) open();
                    done(&result.error());
                  });
}

std::function<void(const Error*)> Operator::struck() {
  return [this](const Error* error) {
    if (error == nullptr) stage_.world.counted(testing::Fault::kMeddle);
  };
}

const Site& Operator::any_site() {
  return stage_.plan.sites[stage_.world.random().below(stage_.plan.sites.size())];
}

void Operator::meddle() {
  stage_.world.post(process_, 0us, [this] {
    const auto entry = stage_.judge.any_entry();
    switch (stage_.world.random().below(5)) {
      case 0: return litter();
      case 1:
        if (entry) send(Set{Path(entry->path), "changed by hand"}, struck());
        return;
      case 2:
        if (entry) send(Remove{Path(entry->path)}, struck());
        return;
      case 3: return remove_directory();
      default: {
        const Site& site = any_site();
        if (!stage_.plan.resizes || site.sort != Sort::kSemaphore) return;
        const auto bound = static_cast<std::uint64_t>(site.size);
        return resize(site, static_cast<int>(1 + stage_.world.random().below(bound)));
      }
    }
  });
}

void Operator::litter() {
  const Site& site = any_site();
  if (site.sort == Sort::kName || is_tidying_) return;
  const std::string directory = site.sort == Sort::kSemaphore ? site.path + "/locks" : site.path;
  const std::string path = directory + "/" + kForeign[stage_.world.random().below(kForeign.size())];
  foreign_.insert(path);
  send(Create{Path(path), "", {}}, struck());
}

void Operator::remove_directory() {
  const Site& site = any_site();
  if (site.sort == Sort::kName || site.sort == Sort::kSemaphore) return;
  send(Remove{Path(site.path)}, struck());
}

void Operator::resize(const Site& site, int size) {
  const bool is_tidy = size == site.size;
  // Another size may be on its way behind a tidy one that is answered.
  const std::uint64_t number = ++last_;
  changed_[site.path] = number;
  const auto done = [this, &site, is_tidy, number](const Error* error) {
    if (error == nullptr) {
      if (is_tidy) std::erase_if(changed_, [&](const auto& one) { return one.second == number; });
      if (!is_tidy) struck()(nullptr);
      return;
    }
    if (error->code() == Code::kNoNode) {
      send(Create{Path(site.path), std::to_string(site.size), {}}, [this, &site](const Error* why) {
        // Whoever waits for the size may be the only one who wants something there.
        if (!is_tidying_ || why == nullptr || why->code() != Code::kNoNode) return;
        send(Create{Path(site.path.substr(0, site.path.rfind('/'))), "", {}}, [](const Error*) {});
      });
    }
    stage_.world.post(process_, kAgain, [this, &site] { resize(site, site.size); });
  };
  send(Set{Path(site.path), std::to_string(size)}, done);
}

void Operator::tidy_up() {
  stage_.world.post(process_, 0us, [this] {
    is_tidying_ = true;
    for (const std::string& path : foreign_) take_away(path);
    for (const Site& site : stage_.plan.sites) {
      if (changed_.contains(site.path)) resize(site, site.size);
    }
  });
}

void Operator::take_away(const std::string& path) {
  send(Remove{Path(path)}, [this, path](const Error* error) {
    if (error == nullptr || error->code() == Code::kNoNode) {
      foreign_.erase(path);
      return;
    }
    stage_.world.post(process_, kAgain, [this, path] { take_away(path); });
  });
}

}  // namespace latchkey::sim
