#include "interop/section.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "latchkey/deadline.hpp"
#include "support/sockets.hpp"

namespace latchkey::test_support {
namespace {

Fd open_file(const std::filesystem::path& path, int flags) {
  Fd file(::open(path.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file) throw std::system_error(errno, std::generic_category(), path);
  return file;
}

}  // namespace

std::vector<std::string> SharedSection::log() const {
  std::vector<std::string> lines;
  std::ifstream file(folder_.path() / "log");
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

int SharedSection::conflicts() const {
  const auto lines = log();
  return static_cast<int>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with("CONFLICT");
  }));
}

std::vector<std::string> SharedSection::entered() const {
  std::vector<std::string> nodes;
  for (const std::string& line : log()) {
    std::istringstream words(line);
    std::string what;
    std::string who;
    std::string node;
    words >> what >> who >> node;
    if (what == "enter") nodes.push_back(node);
  }
  return nodes;
}

std::vector<std::filesystem::path> SharedSection::marks_of(
    const std::vector<std::string>& names) const {
  std::vector<std::filesystem::path> marks;
  for (const char* kind : {"read", "write", "semaphore", "latch"}) {
    for (const std::string& name : names) {
      const std::filesystem::path mark = folder_.path() / (kind + ("-" + name));
      if (std::filesystem::exists(mark)) marks.push_back(mark);
    }
  }
  return marks;
}

bool SharedSection::holds_mark(const std::vector<std::string>& names) const {
  return !marks_of(names).empty();
}

void SharedSection::bury(const std::vector<std::string>& names) const {
  for (const std::filesystem::path& mark : marks_of(names)) std::filesystem::remove(mark);
}

Visitor::Visitor(std::filesystem::path folder, std::string kind, const std::string& who, int max)
    : folder_(std::move(folder)),
      kind_(std::move(kind)),
      who_(who),
      max_(max),
      mark_(folder_ / (kind_ + "-" + who)) {}

void Visitor::enter(const std::string& node) {
  open_file(mark_, O_EXCL);
  note("enter", node);
  if (conflicts()) note("CONFLICT", node);
}

void Visitor::leave(const std::string& node) {
  note("leave", node);
  std::filesystem::remove(mark_);
}

bool Visitor::conflicts() const {
  int writers = 0;
  int same = 0;
  int all = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name == "log") continue;
    ++all;
    if (name.starts_with("write-")) ++writers;
    if (name.starts_with(kind_ + "-")) ++same;
  }
  if (kind_ == "read") return writers > 0;
  if (kind_ == "write") return all > 1;
  return same > max_;
}

void Visitor::note(const std::string& what, const std::string& node) const {
  const auto now = BootClock::now().time_since_epoch();
  const std::string line =
      what + " " + who_ + " " + node + " " + std::to_string(now.count()) + "\n";
  const Fd log = open_file(folder_ / "log", O_APPEND);
  if (::write(log.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::system_error(errno, std::generic_category(), "log");
  }
}

}  // namespace latchkey::test_support
