#pragma once

#include <mutex>

/// Clang's thread-safety analysis, checked by the `clang` preset; nothing for other compilers.
#if defined(__clang__)
#define LATCHKEY_ANNOTATE(x) __attribute__((x))
#else
#define LATCHKEY_ANNOTATE(x)
#endif

#define LATCHKEY_GUARDED_BY(x) LATCHKEY_ANNOTATE(guarded_by(x))
#define LATCHKEY_REQUIRES(...) LATCHKEY_ANNOTATE(requires_capability(__VA_ARGS__))
#define LATCHKEY_EXCLUDES(...) LATCHKEY_ANNOTATE(locks_excluded(__VA_ARGS__))

namespace latchkey::base {

/// The mutex inside a process, named apart from the distributed one. BasicLockable.
class LATCHKEY_ANNOTATE(capability("mutex")) LocalMutex {
 public:
  void lock() LATCHKEY_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() LATCHKEY_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// Holds a LocalMutex for a scope.
class LATCHKEY_ANNOTATE(scoped_lockable) LocalLock {
 public:
  explicit LocalLock(LocalMutex& mutex) LATCHKEY_ANNOTATE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~LocalLock() LATCHKEY_ANNOTATE(release_capability()) { mutex_.unlock(); }
  LocalLock(const LocalLock&) = delete;
  LocalLock& operator=(const LocalLock&) = delete;

 private:
  LocalMutex& mutex_;
};

}  // namespace latchkey::base
