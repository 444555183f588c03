#include "readers_writers.hpp"

#include <utility>

namespace latchkey::bench {

namespace {

constexpr int kOneWriteIn = 10;

/// Readers count one each, a writer counts a million.
class Section {
 public:
  void enter(int weight) {
    const int before = inside_.fetch_add(weight);
    if (weight == kWriter ? before != 0 : before >= kWriter) ++violations_;
  }
  void leave(int weight) { inside_.fetch_sub(weight); }
  [[nodiscard]] int violations() const { return violations_; }

  static constexpr int kReader = 1;
  static constexpr int kWriter = 1'000'000;

 private:
  std::atomic<int> inside_{0};
  std::atomic<int> violations_{0};
};

/// Reads or writes as its turn has it; run_pairs sees one lock that many may hold.
class MixedLocker final : public Locker {
 public:
  MixedLocker(ReaderWriter lock, int turn, Section& section, Judge& writers)
      : lock_(std::move(lock)), turn_(turn), section_(section), writers_(writers) {}

  std::int64_t lock() override {
    writing_ = ++turn_ % kOneWriteIn == 0;
    const std::int64_t number = (writing_ ? lock_.write : lock_.read)->lock();
    section_.enter(weight());
    if (writing_) writers_.enter(number);
    return 0;
  }

  void unlock() override {
    if (writing_) writers_.leave();
    section_.leave(weight());
    (writing_ ? lock_.write : lock_.read)->unlock();
  }

 private:
  [[nodiscard]] int weight() const { return writing_ ? Section::kWriter : Section::kReader; }

  ReaderWriter lock_;
  int turn_;
  bool writing_ = false;
  Section& section_;
  Judge& writers_;
};

}  // namespace

void run_readers_writers(const Options& options, const MakeReaderWriter& make, Report& report) {
  Section section;
  Judge writers;
  int turn = 0;
  const int others = run_pairs(
      options,
      [&](int session, const std::string&) {
        return std::make_unique<MixedLocker>(make(session, options.text("path") + "/rw"),
                                             ++turn * 3, section, writers);
      },
      report);
  report.add("violations", others + section.violations() + writers.violations());
}

}  // namespace latchkey::bench
