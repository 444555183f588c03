#include "progress.hpp"

#include "history.hpp"

namespace latchkey::faults {

void Progress::begin(Side side, std::string_view fault) {
  const std::lock_guard lock(mutex_);
  present_[side] = fault;
  log_ << now_ns() << " begin " << fault << std::endl;
}

void Progress::end(Side side, bool struck) {
  const std::lock_guard lock(mutex_);
  if (struck) ++faults_[present_[side]];
  log_ << now_ns() << (struck ? " end " : " missed ") << present_[side] << std::endl;
  present_.erase(side);
}

std::map<std::string, int> Progress::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

std::string Progress::present() const {
  const std::lock_guard lock(mutex_);
  std::string result;
  for (const auto& [side, fault] : present_) result += (result.empty() ? "" : ", ") + fault;
  return result.empty() ? "none" : result;
}

std::uint64_t GrantCounter::count() {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::streamoff& at = read_[entry.path().filename()];
    std::ifstream file(entry.path());
    file.seekg(at);
    for (std::string line; std::getline(file, line) && !file.eof();) {
      at += static_cast<std::streamoff>(line.size()) + 1;
      if (line.find(" granted ") != std::string::npos) ++grants_;
    }
  }
  return grants_;
}

}  // namespace latchkey::faults
