#include "folders.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace latchkey::app {

void make_folders(const std::filesystem::path& folder) {
  std::filesystem::path made;
  for (const std::filesystem::path& part : folder) {
    made /= part;
    if (!part.empty() && ::mkdir(made.c_str(), S_IRWXU | S_IRWXG | S_IRWXO) == 0) {
      sync_name_of(made);
    }
  }
}

void sync_name_of(const std::filesystem::path& folder) {
  const std::filesystem::path parent = folder.parent_path();
  const int file =
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

}  // namespace latchkey::app
