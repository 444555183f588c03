#pragma once

#include <pthread.h>

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

/// The mutex inside a process, named apart from the distributed one. BasicLockable. It is held for
/// microseconds, so whoever finds it taken looks again for a moment before going to sleep.
class LATCHKEY_ANNOTATE(capability("mutex")) LocalMutex {
 public:
  LocalMutex() = default;
  ~LocalMutex() { ::pthread_mutex_destroy(&mutex_); }
  LocalMutex(const LocalMutex&) = delete;
  LocalMutex& operator=(const LocalMutex&) = delete;

  void lock() LATCHKEY_ANNOTATE(acquire_capability()) { ::pthread_mutex_lock(&mutex_); }
  void unlock() LATCHKEY_ANNOTATE(release_capability()) { ::pthread_mutex_unlock(&mutex_); }
  [[nodiscard]] bool try_lock() LATCHKEY_ANNOTATE(try_acquire_capability(true)) {
    return ::pthread_mutex_trylock(&mutex_) == 0;
  }

 private:
  pthread_mutex_t mutex_ = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
};

/// Holds a LocalMutex for a scope.
class LATCHKEY_ANNOTATE(scoped_lockable) LocalLock {
 public:
  explicit LocalLock(LocalMutex& mutex) LATCHKEY_ANNOTATE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  enum Taken { kTaken };
  /// Of one that the calling thread has locked already.
  LocalLock(LocalMutex& mutex, Taken) LATCHKEY_REQUIRES(mutex) : mutex_(mutex) {}
  ~LocalLock() LATCHKEY_ANNOTATE(release_capability()) { mutex_.unlock(); }
  LocalLock(const LocalLock&) = delete;
  LocalLock& operator=(const LocalLock&) = delete;

 private:
  LocalMutex& mutex_;
};

}  // namespace latchkey::base
