#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "storage/files.hpp"

namespace latchkey::storage {

/// What happens to one call of a Files or File.
enum class Fault {
  kFailBefore,  ///< An error, and nothing was done.
  kFailAfter,   ///< An error, although it was done.
  kFailPartly,  ///< A write that gets half-way; for other calls the same as kFailBefore.
  kDropDirty,   ///< A sync that fails, after which the system takes the file for clean: what was
                ///< written can be read and will never reach the disk. Else as kFailBefore.
  kLosePower,   ///< The call is done or not, and nothing works until SimDisk::lose_power().
};

/// A disk in memory for tests, with a system's cache in front of it. What was not synced survives a
/// loss of power in any subset of its sectors and of the folder's changes.
///
///     SimDisk disk(seed);
///     disk.fail_at(17, Fault::kLosePower);
///     run(disk.files());
///     disk.lose_power();
///     check(disk.files());
///
/// Thread safety: one thread at a time.
class SimDisk {
 public:
  explicit SimDisk(std::uint64_t seed);
  /// A disk that holds these files.
  explicit SimDisk(const std::map<std::string, std::string>& files);
  ~SimDisk();

  [[nodiscard]] std::unique_ptr<Files> files();

  /// The nth call from now on, counted from 0, meets the fault.
  void fail_at(std::uint64_t nth, Fault fault);
  /// Every call that needs space fails from now on.
  void fill_up();
  void make_room();
  [[nodiscard]] std::uint64_t calls() const;
  /// Whether the fault that was asked for has happened.
  [[nodiscard]] bool has_failed() const;

  /// The machine stops and starts again. Whatever was open is dead, and no fault is left.
  void lose_power();
  /// The same for the process alone: its lock is gone, the system's cache stays.
  void kill_process();

  /// What a reader would see.
  [[nodiscard]] std::map<std::string, std::string> content() const;
  [[nodiscard]] std::uint64_t bytes() const;

  struct Machine;

 private:
  std::shared_ptr<Machine> machine_;
};

}  // namespace latchkey::storage
