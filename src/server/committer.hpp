#pragma once

#include <atomic>
#include <functional>
#include <semaphore>
#include <thread>
#include <vector>

#include "latchkey/deadline.hpp"
#include "latchkey/result.hpp"
#include "storage/journal.hpp"
#include "tree/service.hpp"

namespace latchkey::server {

using Batch = std::vector<tree::Service::Stored>;

/// What became of a batch.
struct Committed {
  std::int64_t zxid = 0;  ///< The newest one in it.
  std::size_t entries = 0;
  Duration span{};
  Result<void> result;
  Committed* next = nullptr;  ///< For a base::Pile.
};

/// Appends to the journal and says how it went.
[[nodiscard]] Committed commit(storage::Journal& journal, const Batch& batch);

/// A thread that appends batches to a journal, one at a time, so that the event loop never waits
/// for the disk. While one batch is under way the caller gathers the next.
///
/// Thread safety: one thread at a time. `done` runs on the committer's thread.
class Committer {
 public:
  Committer(storage::Journal& journal, std::function<void(Committed)> done);
  /// Waits for the batch that is under way.
  ~Committer();
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  /// False: the system has no thread to give.
  [[nodiscard]] bool start();
  /// Only when the last batch is done.
  void submit(Batch batch);

 private:
  void run();

  // Constant after construction.
  storage::Journal& journal_;
  const std::function<void(Committed)> done_;

  // Handed over with `news_`: the caller's until it is released, then the thread's until done_().
  Batch next_;                          ///< Empty: it is over.
  std::counting_semaphore<2> news_{0};  ///< A batch, and the end.

  std::thread thread_;
};

/// Folds old entries of a journal into a snapshot, on a thread of low priority that lives only as
/// long as it is needed.
///
/// Thread safety: one thread at a time. `done` runs on the folding thread.
class Folding {
 public:
  ~Folding() { join(); }

  /// Only when the last one is done. False: the system has no thread to give.
  [[nodiscard]] bool start(storage::Journal& journal, const tree::TreeLimits& limits,
                           std::function<void(Result<void>)> done);
  /// The one that is under way ends before long.
  void cancel() { cancelled_ = true; }
  /// Waits for the one that is under way.
  void join();

 private:
  std::atomic<bool> cancelled_ = false;
  std::thread thread_;
};

}  // namespace latchkey::server
