#include "server/committer.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "net/threads.hpp"
#include "tree/tree.hpp"

namespace latchkey::server {
namespace {

/// What a fold fills, until it is cancelled.
class FoldState final : public storage::State {
 public:
  FoldState(const tree::TreeLimits& limits, const std::atomic<bool>& cancelled)
      : tree_(limits), cancelled_(cancelled) {}

  Result<void> load(std::string_view item) override { return tree_.load(item); }
  Result<void> replay(const storage::Entry& entry) override {
    return tree_.replay(entry.zxid, entry.bytes);
  }
  bool is_cancelled() const override { return cancelled_; }
  void save(base::FunctionRef<void(std::string_view item)> sink) const override {
    tree_.save(sink);
  }

 private:
  tree::Tree tree_;
  const std::atomic<bool>& cancelled_;
};

}  // namespace

Committed commit(storage::Journal& journal, const Batch& batch) {
  std::vector<storage::Entry> entries;
  entries.reserve(batch.size());
  for (const tree::Service::Stored& stored : batch) entries.push_back({stored.zxid, stored.bytes});
  const Instant start = BootClock::now();
  Result<void> result = journal.append(entries);
  return {batch.back().zxid, batch.size(), BootClock::now() - start, std::move(result)};
}

Committer::Committer(storage::Journal& journal, std::function<void(Committed)> done)
    : journal_(journal), done_(std::move(done)) {}

Committer::~Committer() {
  if (!thread_.joinable()) return;
  news_.release();
  thread_.join();
}

bool Committer::start() {
  thread_ = net::make_thread("latchkey-commit", [this] { run(); });
  return thread_.joinable();
}

void Committer::submit(Batch batch) {
  next_ = std::move(batch);
  news_.release();
}

void Committer::run() {
  while (true) {
    news_.acquire();
    const Batch batch = std::exchange(next_, {});
    if (batch.empty()) return;
    done_(commit(journal_, batch));
  }
}

void Folding::join() {
  if (thread_.joinable()) thread_.join();
}

bool Folding::start(storage::Journal& journal, const tree::TreeLimits& limits,
                    std::function<void(Result<void>)> done) {
  join();
  thread_ = net::make_thread("latchkey-fold", [this, &journal, limits, done = std::move(done)] {
    constexpr int kLowest = 19;
    // On Linux this is the priority of the calling thread, not of the process.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowest);
    FoldState empty(limits, cancelled_);
    done(journal.fold(empty));
  });
  return thread_.joinable();
}

}  // namespace latchkey::server
