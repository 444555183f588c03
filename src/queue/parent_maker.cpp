#include "queue/parent_maker.hpp"

#include <utility>

namespace latchkey::queue {

ParentMaker::ParentMaker(std::string directory)
    : directory_(std::move(directory)), end_(directory_.size()) {}

ParentMaker::Next ParentMaker::present() {
  if (end_ >= directory_.size()) return Next::kAllThere;
  going_down_ = true;
  end_ = directory_.find('/', end_ + 1);
  if (end_ == std::string::npos) end_ = directory_.size();
  return Next::kMake;
}

ParentMaker::Next ParentMaker::missing() {
  const std::size_t slash = end_ == 0 ? std::string::npos : directory_.rfind('/', end_ - 1);
  if (slash == std::string::npos || slash == 0) return Next::kNoRoot;
  end_ = slash;
  return std::exchange(going_down_, false) ? Next::kPulledAway : Next::kMake;
}

}  // namespace latchkey::queue
