#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/error.hpp"
#include "latchkey/result.hpp"

namespace latchkey::storage {

/// An open file. Errors are kStorage and name the call, the file and what the system said.
/// Thread safety: one thread at a time.
class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  /// Fills `size` bytes, or as many as there are before the end of the file; returns how many.
  [[nodiscard]] virtual Result<std::size_t> read(char* to, std::size_t size,
                                                 std::uint64_t offset) = 0;
  /// Writes all of it, past the end if need be. After an error any part of it may be there.
  [[nodiscard]] virtual Result<void> write(std::string_view bytes, std::uint64_t offset) = 0;
  /// Asks for disk space, so that a full disk is met here. What can be read stays as it is.
  [[nodiscard]] virtual Result<void> reserve(std::uint64_t size) = 0;
  /// Returns once everything written through this file is durable. After an error nobody can say
  /// what is, and asking again would lie (H84).
  [[nodiscard]] virtual Result<void> sync() = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() = 0;
};

enum class Access {
  kRead,       ///< An existing file.
  kReadWrite,  ///< An existing file.
  kCreate,     ///< A new and empty one, in place of an old one of that name.
};

/// The file that is locked to lock a folder.
inline constexpr const char* kLockName = "lock";

/// Held as long as it lives.
class FolderLock {
 public:
  FolderLock() = default;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  virtual ~FolderLock() = default;
};

/// One folder and the files in it: all that the journal asks of an operating system. Names are
/// those of files in the folder, without a path. What create, rename and remove did to the folder
/// is durable after sync_folder().
///
/// Thread safety: any thread.
class Files {
 public:
  Files() = default;
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  virtual ~Files() = default;

  /// Errors: kInUse, which names the folder and the process that has it; kStorage.
  [[nodiscard]] virtual Result<std::unique_ptr<FolderLock>> lock() = 0;
  [[nodiscard]] virtual Result<std::vector<std::string>> list() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<File>> open(const std::string& name,
                                                           Access access) = 0;
  /// Takes the place of a file that has the new name already.
  [[nodiscard]] virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  [[nodiscard]] virtual Result<void> remove(const std::string& name) = 0;
  [[nodiscard]] virtual Result<void> sync_folder() = 0;
  /// How messages call the file.
  [[nodiscard]] virtual std::string path_of(const std::string& name) const = 0;
};

/// A folder of the file system; made if it is missing, for its owner only (0700). Its parent has
/// to be there.
[[nodiscard]] Result<std::unique_ptr<Files>> open_folder(const std::filesystem::path& folder);

}  // namespace latchkey::storage
