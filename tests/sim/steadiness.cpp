#include "sim/steadiness.hpp"

#include "wire/frame.hpp"

namespace latchkey::sim {
namespace {

using testing::Way;
using wire::Op;

}  // namespace

void Steadiness::sent(const testing::Message& message, Instant now) {
  if (message.way == Way::kRequest) {
    Line& line = lines_[message.link];
    if (now - line.last_sent > line.timeout / 5) line.since = now;
    line.last_sent = now;
    line.unanswered.push_back(now);
    return;
  }
  const auto line = lines_.find(message.link);
  if (line == lines_.end()) return;
  line->second.to_client.push_back(message.op != Op::kNotification);
  if (message.op != Op::kCreateSession) return;
  const auto greeting = wire::decode_connect_response(message.body);
  if (greeting) line->second.timeout = std::chrono::milliseconds(greeting->message.timeout_ms);
}

void Steadiness::arrived(std::uint64_t link, Way way, std::size_t messages, Instant now) {
  const auto found = lines_.find(link);
  if (way == Way::kRequest || found == lines_.end()) return;
  Line& line = found->second;
  for (; messages > 0 && !line.to_client.empty(); --messages) {
    const bool is_answer = line.to_client.front();
    line.to_client.pop_front();
    if (!is_answer || line.unanswered.empty()) continue;
    if (now - line.unanswered.front() > line.timeout / 10) line.since = now;
    line.unanswered.pop_front();
  }
}

bool Steadiness::is_well(std::uint64_t link, Instant now) const {
  const auto found = lines_.find(link);
  if (found == lines_.end()) return false;
  const Line& line = found->second;
  if (line.timeout == Duration{} || now - line.since < line.timeout * 3 / 4) return false;
  if (now - line.last_sent > line.timeout / 5) return false;
  return line.unanswered.empty() || now - line.unanswered.front() <= line.timeout / 10;
}

}  // namespace latchkey::sim
