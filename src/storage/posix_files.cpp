#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "storage/files.hpp"

namespace latchkey::storage {
namespace {

Error failed(const std::string& what, int error) {
  std::string message = what + ": " + std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT) message += "; make room on the disk and start again";
  return Error{Code::kStorage, message};
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ != -1) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  [[nodiscard]] int operator*() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ != -1; }

 private:
  int number_;
};

class PosixFile final : public File {
 public:
  PosixFile(Descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<std::size_t> read(char* to, std::size_t size, std::uint64_t offset) override {
    std::size_t done = 0;
    while (done < size) {
      const ssize_t got =
          ::pread(*file_, to + done, size - done, static_cast<off_t>(offset + done));
      if (got == -1 && errno == EINTR) continue;
      if (got == -1) return failed("read " + path_, errno);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  Result<void> write(std::string_view bytes, std::uint64_t offset) override {
    while (!bytes.empty()) {
      const ssize_t put = ::pwrite(*file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (put == -1 && errno == EINTR) continue;
      if (put == -1) return failed("write " + path_, errno);
      bytes.remove_prefix(static_cast<std::size_t>(put));
      offset += static_cast<std::uint64_t>(put);
    }
    return {};
  }

  Result<void> reserve(std::uint64_t size) override {
    int done = 0;
    do {
      done = ::fallocate(*file_, 0, 0, static_cast<off_t>(size));
    } while (done == -1 && errno == EINTR);
    // Where the file system cannot, the zeros that follow will meet the full disk.
    if (done == -1 && errno != EOPNOTSUPP && errno != ENOSYS) {
      return failed("reserve space for " + path_, errno);
    }
    return {};
  }

  Result<void> sync() override {
    if (::fdatasync(*file_) == -1) return failed("sync " + path_, errno);
    return {};
  }

  Result<std::uint64_t> size() override {
    struct stat status {};
    if (::fstat(*file_, &status) == -1) return failed("look at " + path_, errno);
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  Descriptor file_;
  std::string path_;
};

class PosixLock final : public FolderLock {
 public:
  explicit PosixLock(Descriptor file) : file_(std::move(file)) {}

 private:
  Descriptor file_;
};

std::string holder_of(int lock_file) {
  char text[32];
  const ssize_t got = ::pread(lock_file, text, sizeof text, 0);
  std::string pid(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  pid.resize(std::min(pid.find_first_not_of("0123456789"), pid.size()));
  return pid.empty() ? "another process" : "process " + pid;
}

class PosixFiles final : public Files {
 public:
  PosixFiles(std::string folder, Descriptor self)
      : folder_(std::move(folder)), self_(std::move(self)) {}

  Result<std::unique_ptr<FolderLock>> lock() override {
    Descriptor file(::openat(*self_, kLockName, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file.is_open()) return failed("open " + path_of(kLockName), errno);
    if (::flock(*file, LOCK_EX | LOCK_NB) == -1) {
      if (errno != EWOULDBLOCK) return failed("lock " + path_of(kLockName), errno);
      return Error{Code::kInUse, folder_ + " is in use by " + holder_of(*file) +
                                     ". Stop it first, or take another folder"};
    }
    // The number is for people only; a full disk is no reason not to start.
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(*file, 0) == 0) (void)!::pwrite(*file, pid.data(), pid.size(), 0);
    return std::unique_ptr<FolderLock>(std::make_unique<PosixLock>(std::move(file)));
  }

  Result<std::vector<std::string>> list() override {
    std::vector<std::string> names;
    DIR* folder = ::opendir(folder_.c_str());
    if (folder == nullptr) return failed("list " + folder_, errno);
    errno = 0;
    while (const dirent* entry = ::readdir(folder)) names.emplace_back(entry->d_name);
    const int error = errno;
    ::closedir(folder);
    if (error != 0) return failed("list " + folder_, error);
    return names;
  }

  Result<std::unique_ptr<File>> open(const std::string& name, Access access) override {
    const int how = access == Access::kRead        ? O_RDONLY
                    : access == Access::kReadWrite ? O_RDWR
                                                   : O_RDWR | O_CREAT | O_TRUNC;
    Descriptor file(::openat(*self_, name.c_str(), how | O_CLOEXEC, 0600));
    if (!file.is_open()) return failed("open " + path_of(name), errno);
    return std::unique_ptr<File>(std::make_unique<PosixFile>(std::move(file), path_of(name)));
  }

  Result<void> rename(const std::string& from, const std::string& to) override {
    if (::renameat(*self_, from.c_str(), *self_, to.c_str()) == -1) {
      return failed("rename " + path_of(from) + " to " + to, errno);
    }
    return {};
  }

  Result<void> remove(const std::string& name) override {
    if (::unlinkat(*self_, name.c_str(), 0) == -1) return failed("remove " + path_of(name), errno);
    return {};
  }

  Result<void> sync_folder() override {
    if (::fsync(*self_) == -1) return failed("sync " + folder_, errno);
    return {};
  }

  std::string path_of(const std::string& name) const override { return folder_ + "/" + name; }

 private:
  const std::string folder_;
  const Descriptor self_;
};

enum class Origin { kMade, kFound };

/// The folder's own name has to survive a crash as well. One that was found may have been made by a
/// start that got no further; if its parent is not for us to read, or of a file system that syncs
/// no folders, that was for whoever made it to see to.
Result<void> sync_parent(const std::filesystem::path& folder, Origin origin) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::absolute(folder, error).parent_path();
  if (error) return failed("sync the parent of " + folder.string(), error.value());
  const Descriptor file(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.is_open() && ::fsync(*file) == 0) return {};
  if (origin == Origin::kFound && errno != EIO) return {};
  return failed("sync " + parent.string(), errno);
}

}  // namespace

Result<std::unique_ptr<Files>> open_folder(const std::filesystem::path& folder) {
  // "a/b/" would be made as b and have itself as its parent.
  const std::filesystem::path path = folder.has_filename() ? folder : folder.parent_path();
  const Origin origin = ::mkdir(path.c_str(), 0700) == 0 ? Origin::kMade : Origin::kFound;
  if (origin == Origin::kFound && errno != EEXIST) {
    return failed("make the folder " + path.string(), errno);
  }
  if (auto synced = sync_parent(path, origin); !synced) return synced.error();
  Descriptor self(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!self.is_open()) return failed("open the folder " + path.string(), errno);
  return std::unique_ptr<Files>(std::make_unique<PosixFiles>(path.string(), std::move(self)));
}

}  // namespace latchkey::storage
