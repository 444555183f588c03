#include "support/eventually.hpp"

#include <condition_variable>
#include <mutex>

namespace latchkey::test_support {

void pause_between_looks() {
  std::mutex mutex;
  std::condition_variable never_signalled;
  std::unique_lock lock(mutex);
  never_signalled.wait_for(lock, std::chrono::milliseconds(5));
}

}  // namespace latchkey::test_support
