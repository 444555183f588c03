#include "queue/parent_maker.hpp"

#include <utility>

namespace latchkey::queue {

ParentMaker::ParentMaker(std::string directory)
    : directory_(std::move(directory)), end_(directory_.size()) {}

ParentMaker::Next ParentMaker::begin() {
  end_ = directory_.size();
  going_down_ = false;
  if (directory_.empty()) return missing();
  // A second time means that somebody takes the directory away as fast as we make it (H39).
  return std::exchange(begun_, true) ? Next::kMakeLater : Next::kMake;
}

ParentMaker::Next ParentMaker::made(const Answer& answer) {
  if (answer.kind == Answer::Kind::kAmbiguous) {
    // A lost connection paces itself; a server that answers with a fault of its own does not.
    return answer.code == Code::kServerError ? Next::kMakeLater : Next::kMake;
  }
  if (answer.kind == Answer::Kind::kOk || answer.code == Code::kNodeExists) return present();
  if (answer.code == Code::kNoNode) return missing();
  refused_with_ = answer.code;
  return Next::kRefused;
}

Refusal ParentMaker::refusal() const {
  const bool no_root = refused_with_ == Code::kNoNode;
  return {refused_with_, "create " + (path().empty() ? "/" : path()) +
                             (no_root ? ": the root of this session does not exist" : "")};
}

ParentMaker::Next ParentMaker::present() {
  if (end_ >= directory_.size()) return Next::kAllThere;
  going_down_ = true;
  end_ = directory_.find('/', end_ + 1);
  if (end_ == std::string::npos) end_ = directory_.size();
  return Next::kMake;
}

ParentMaker::Next ParentMaker::missing() {
  const std::size_t slash = end_ == 0 ? std::string::npos : directory_.rfind('/', end_ - 1);
  if (slash == std::string::npos || slash == 0) {
    refused_with_ = Code::kNoNode;
    return Next::kRefused;
  }
  end_ = slash;
  return std::exchange(going_down_, false) ? Next::kMakeLater : Next::kMake;
}

}  // namespace latchkey::queue
