#include "interop/peer.hpp"

#include <stdexcept>
#include <utility>

namespace latchkey::test_support {

Peer::Peer(const std::vector<std::string>& command) : process_(command) {}

void Peer::order(const std::string& who, const std::string& what) {
  if (!process_.write(who + " " + what + "\n")) throw std::runtime_error("the peer is gone");
}

bool Peer::collect(Deadline deadline) {
  const std::optional<std::string> line = process_.next_line(deadline);
  if (!line) return false;
  const std::size_t space = line->find(' ');
  if (space == std::string::npos) throw std::runtime_error("the peer says: " + *line);
  answers_[line->substr(0, space)].push_back(line->substr(space + 1));
  return true;
}

bool Peer::has_answer(const std::string& who) {
  while (collect(deadline_in(0ms))) {
  }
  return !answers_[who].empty();
}

std::string Peer::answer(const std::string& who, Deadline deadline) {
  std::deque<std::string>& answers = answers_[who];
  while (answers.empty()) {
    if (!collect(deadline)) throw std::runtime_error(who + " is silent");
  }
  std::string first = std::move(answers.front());
  answers.pop_front();
  return first;
}

std::vector<std::string> curator_program(const std::string& main_class) {
  // The jar's manifest names what it needs, but for a logger. The flags are for a quick start.
  return {"java",
          "-Xshare:auto",
          "-XX:TieredStopAtLevel=1",
          "-XX:+UseSerialGC",
          "-Xmx128m",
          "-XX:-UsePerfData",
          "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
          "-cp",
          std::string(LATCHKEY_CURATOR_CLASSES) +
              ":/usr/share/java/curator-recipes.jar:/usr/share/java/slf4j-simple.jar",
          main_class};
}

std::vector<std::string> curator_command() { return curator_program("latchkey.peer.Peer"); }

std::vector<std::string> kazoo_command() {
  // Debian's own interpreter, which finds Debian's kazoo. -B: no compiled files in the tree.
  return {"/usr/bin/python3", "-B", LATCHKEY_KAZOO_PEER, LATCHKEY_KAZOO_FOLDER};
}

Peer& shared_curator() {
  static Peer peer(curator_command());
  return peer;
}

Peer& shared_kazoo() {
  static Peer peer(kazoo_command());
  return peer;
}

Guest::Guest(Peer& peer, const std::string& connect, std::chrono::milliseconds timeout)
    : peer_(peer) {
  static int last = 0;
  name_ = "c" + std::to_string(++last);
  peer_.order(name_, "connect " + connect + " " + std::to_string(timeout.count()));
  const std::string answer = peer_.answer(name_);
  if (answer != "connected") throw std::runtime_error(name_ + ": " + answer);
}

Guest::~Guest() {
  try {
    if (!peer_.process().running()) return;  // Killed by the test.
    peer_.order(name_, "close");
    static_cast<void>(peer_.answer(name_));
  } catch (const std::exception& error) {
    ADD_FAILURE() << name_ << " does not close: " << error.what();
  }
}

void Guest::order(const std::string& what, const std::string& thread) {
  peer_.order(name(thread), what);
}

std::string Guest::answer(const std::string& thread) { return peer_.answer(name(thread)); }

bool Guest::has_answer(const std::string& thread) { return peer_.has_answer(name(thread)); }

std::string Guest::ask(const std::string& what, const std::string& thread) {
  order(what, thread);
  return answer(thread);
}

testing::AssertionResult Guest::holds(const std::string& thread) {
  const std::string text = answer(thread);
  if (!text.starts_with("held ")) return testing::AssertionFailure() << text;
  node_ = text.substr(5);
  return testing::AssertionSuccess();
}

}  // namespace latchkey::test_support
