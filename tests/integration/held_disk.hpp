#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>

#include "latchkey/error.hpp"
#include "storage/journal.hpp"

namespace latchkey::server {

/// What the disk does, as the test wishes. Thread safety: any thread.
class Disk {
 public:
  void fail_from_now_on() { failing_ = true; }
  /// Appends wait until let_go().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void let_go() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    news_.notify_all();
  }
  [[nodiscard]] int waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }
  [[nodiscard]] int appends() {
    const std::lock_guard lock(mutex_);
    return appends_;
  }

  enum class Folds { kNever, kWithDamage, kForEver };
  void fold_from_now_on(Folds how) { folds_ = how; }
  [[nodiscard]] bool folds() const { return folds_ != Folds::kNever; }
  [[nodiscard]] bool is_folding() const { return folding_; }
  Result<void> fold(const storage::State& state) {
    if (folds_ == Folds::kWithDamage) return Error(Code::kDamaged, "segment 7 is not whole");
    folding_ = true;
    while (!state.is_cancelled()) std::this_thread::yield();
    return Error(Code::kClosed, "cancelled");
  }

  Result<void> append() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    news_.wait(lock, [this] { return !held_; });
    --waiting_;
    ++appends_;
    if (failing_) return Error(Code::kStorage, "append: no space left on device");
    return {};
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  bool held_ = false;
  int waiting_ = 0;
  int appends_ = 0;
  std::atomic<bool> failing_ = false;
  std::atomic<Folds> folds_ = Folds::kNever;
  std::atomic<bool> folding_ = false;
};

class DiskJournal final : public storage::Journal {
 public:
  explicit DiskJournal(Disk& disk) : disk_(disk) {}
  Result<void> append(std::span<const storage::Entry>) override { return disk_.append(); }
  [[nodiscard]] bool needs_folding() const override { return disk_.folds(); }
  Result<void> fold(storage::State& state) override { return disk_.fold(state); }
  Result<void> close() override { return {}; }

 private:
  Disk& disk_;
};

}  // namespace latchkey::server
