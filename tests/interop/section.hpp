#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/temp_dir.hpp"

namespace latchkey::test_support {

/// A folder in which processes of several languages leave a mark while they hold, so that two who
/// must not be inside at once are found out.
///
///     SharedSection section;
///     curator.order("load " + section.folder() + " 10 mutex " + directory);
///     Visitor visitor(section, "write", "ours-1");
///     visitor.enter(lease.node());
///     visitor.leave(lease.node());
///     EXPECT_EQ(section.conflicts(), 0);
///
/// Rules, the same in Section.java and kazoo_peer.py: whoever enters makes its file
/// `KIND-WHO`, adds the line "enter WHO NODE NANOSECONDS" to the file `log`, and then looks at the
/// folder. A writer must be alone, a reader must see no writer, and of `semaphore` there may be so
/// many; otherwise it adds a line "CONFLICT ...". To leave it adds "leave ..." and takes its file
/// away, then releases. Everyone makes the mark before looking, so of two who are inside at once
/// one sees the other. The order of the lines is the order of holding, but with several permits;
/// the time is for people.
class SharedSection {
 public:
  [[nodiscard]] std::string folder() const { return folder_.path().string(); }
  [[nodiscard]] std::vector<std::string> log() const;
  [[nodiscard]] int conflicts() const;
  /// Is one of these inside?
  [[nodiscard]] bool holds_mark(const std::vector<std::string>& names) const;
  /// These are dead: their marks go with them.
  void bury(const std::vector<std::string>& names) const;
  /// The nodes of those who entered, in that order.
  [[nodiscard]] std::vector<std::string> entered() const;

 private:
  [[nodiscard]] std::vector<std::filesystem::path> marks_of(
      const std::vector<std::string>& names) const;

  TempDir folder_;
};

/// One who enters from this process. Thread safety: one thread at a time.
class Visitor {
 public:
  Visitor(const SharedSection& section, std::string kind, const std::string& who, int max = 1)
      : Visitor(section.folder(), std::move(kind), who, max) {}
  Visitor(std::filesystem::path folder, std::string kind, const std::string& who, int max = 1);

  void enter(const std::string& node);
  void leave(const std::string& node);

 private:
  void note(const std::string& what, const std::string& node) const;
  [[nodiscard]] bool conflicts() const;

  std::filesystem::path folder_;
  std::string kind_;
  std::string who_;
  int max_;
  std::filesystem::path mark_;
};

}  // namespace latchkey::test_support
