#include "integration/session_fixture.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <stdexcept>

namespace latchkey::test_support {
namespace {

class Standalone final : public Service {
 public:
  std::vector<std::string> servers() override { return {shared_server().connect_string()}; }
  std::string word(std::string_view word) override { return shared_server().word(word); }
  void kill_all() override { shared_server().kill(); }
  void start_all() override { shared_server().start(); }
  std::string follower() override { return shared_server().connect_string(); }
};

class ThreeServers final : public Service {
 public:
  std::vector<std::string> servers() override {
    std::vector<std::string> all;
    Ensemble& ensemble = shared_ensemble();
    for (std::size_t i = 0; i < ensemble.size(); ++i) all.push_back(ensemble.connect_string(i));
    return all;
  }
  std::string word(std::string_view word) override {
    std::string answers;
    Ensemble& ensemble = shared_ensemble();
    for (std::size_t i = 0; i < ensemble.size(); ++i) answers += ensemble.member(i).word(word);
    return answers;
  }
  void kill_all() override {
    Ensemble& ensemble = shared_ensemble();
    for (std::size_t i = 0; i < ensemble.size(); ++i) ensemble.member(i).kill();
  }
  void start_all() override { shared_ensemble().wait_for_quorum(); }
  std::string follower() override {
    Ensemble& ensemble = shared_ensemble();
    return ensemble.connect_string(ensemble.followers().at(0));
  }
};

class Embedded final : public Service {
 public:
  std::vector<std::string> servers() override { return {shared_embedded().connect_string()}; }
  std::string word(std::string_view word) override { return shared_embedded().word(word); }
  void kill_all() override { shared_embedded().kill(); }
  void start_all() override { shared_embedded().start(); }
  std::string follower() override { return shared_embedded().connect_string(); }
};

std::string hex(std::int64_t number) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                 static_cast<std::uint64_t>(number), 16);
  return "0x" + std::string(digits.data(), end.ptr);
}

}  // namespace

std::string Service::connect_string() {
  std::string all;
  for (const std::string& server : servers()) all += (all.empty() ? "" : ",") + server;
  return all;
}

int Service::connections_of(std::int64_t session) {
  const std::string wanted = "sid=" + hex(session) + ",";
  const std::string answer = word("cons");
  int count = 0;
  for (std::size_t at = answer.find(wanted); at != std::string::npos;
       at = answer.find(wanted, at + 1)) {
    ++count;
  }
  return count;
}

int Service::watches_of(std::int64_t session) {
  // One line with the session, then one with each path, indented.
  std::istringstream answer(word("wchc"));
  const std::string wanted = hex(session);
  int count = 0;
  bool ours = false;
  for (std::string line; std::getline(answer, line);) {
    if (!line.starts_with('\t')) {
      ours = line == wanted;
    } else if (ours) {
      ++count;
    }
  }
  return count;
}

std::ostream& operator<<(std::ostream& out, ServiceKind kind) {
  switch (kind) {
    case ServiceKind::kStandalone: return out << "Standalone";
    case ServiceKind::kEnsemble: return out << "Ensemble";
    case ServiceKind::kEmbedded: break;
  }
  return out << "Embedded";
}

Service& shared_service(ServiceKind kind) {
  static Standalone standalone;
  static ThreeServers ensemble;
  static Embedded embedded;
  switch (kind) {
    case ServiceKind::kStandalone: return standalone;
    case ServiceKind::kEnsemble: return ensemble;
    case ServiceKind::kEmbedded: break;
  }
  return embedded;
}

SessionOptions quick(std::chrono::milliseconds timeout) {
  SessionOptions options;
  options.timeout = timeout;
  return options;
}

Session open_session(const std::string& connect, SessionOptions options) {
  auto session = Session::open(connect, std::move(options), soon());
  if (!session) throw std::runtime_error("open: " + session.error().message());
  return *session;
}

void make_node(Session& session, const std::string& path, const std::string& data,
               Lifetime lifetime) {
  const auto made = session.create(path, data, {.lifetime = lifetime}, soon());
  if (!made) throw std::runtime_error("make_node: " + made.error().message());
}

Watcher note(const Events& events) {
  return [events](const WatchEvent& event) {
    events.add(std::string(name(event.kind)) + " " + event.path);
  };
}

SessionOptions watched(const States& states, SessionOptions options) {
  options.on_state = states.adder();
  return options;
}

bool reaches(const States& states, SessionState state, Deadline deadline) {
  return eventually(
      [&] {
        const std::vector<SessionState> all = states.all();
        return std::find(all.begin(), all.end(), state) != all.end();
      },
      deadline);
}

}  // namespace latchkey::test_support
