#pragma once

#include <dirent.h>

namespace latchkey::test_support {

/// How many threads this process has.
inline int threads() {
  DIR* tasks = ::opendir("/proc/self/task");
  int count = 0;
  while (const dirent* task = ::readdir(tasks)) count += task->d_name[0] != '.' ? 1 : 0;
  ::closedir(tasks);
  return count;
}

}  // namespace latchkey::test_support
