#include "status_line.hpp"

#include "exit_code.hpp"
#include "json.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

const char* outcome_of(const Status& status) {
  if (status.lost) return "lost";
  if (status.ending) return "ended";
  if (!status.token.empty()) return "not_started";
  if (status.code == kOk) return "done_before";
  return status.code == keeping::exit_code_of({-1, status.signal}) ? "interrupted" : "refused";
}

std::int64_t ms_between(Instant from, Instant to) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(to - from).count();
}

}  // namespace

std::string format_status(const Status& status) {
  JsonLine line;
  line.add("outcome", outcome_of(status)).add("exit", status.code);
  if (!status.lock.empty()) line.add("lock", status.lock);
  if (!status.node.empty()) line.add("node", status.node);
  if (!status.token.empty()) line.add("token", status.token);
  if (status.ending && status.ending->signal != 0) line.add("signal", status.ending->signal);
  if (status.ending && status.ending->signal == 0) line.add("code", status.ending->code);
  if (!status.error.empty()) line.add("error", status.error);
  const bool held = status.granted != Instant::min();
  line.add("waited_ms", ms_between(status.began, held ? status.granted : status.ended));
  if (held) line.add("held_ms", ms_between(status.granted, status.ended));
  return line.text();
}

void write_status(int fd, const Status& status) {
  constexpr std::chrono::seconds kLastWord(1);
  const Speaker speaker(1, fd);
  speaker.say(format_status(status) + '\n');
  speaker.finish(kLastWord);
}

}  // namespace latchkey::app
