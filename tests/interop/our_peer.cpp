// A process of ours that contends for locks until it is killed, as the peers of other languages do.
//
//     our_peer CONNECT TIMEOUT_MS FOLDER WHO KIND PATH [NUMBER]...
//
// With "-" for FOLDER it takes the lock or the lead once, says "held" and keeps it until its input
// ends.
#include <iostream>
#include <string>
#include <vector>

#include "interop/turns.hpp"
#include "latchkey/election.hpp"

namespace latchkey {
namespace {

void say_held() { std::cout << "held" << std::endl; }

void keep(const Session& session, const std::string& who, const std::vector<std::string>& wish) {
  if (wish.at(0) == "latch") {
    const Election election(session, wish.at(1), {.id = who, .on_change = [](const auto& news) {
                                                    if (news.token) say_held();
                                                  }});
    std::cin.get();
  } else {
    const auto lease = test_support::lock_of(session, wish).lock(Deadline::never());
    if (lease) say_held();
    std::cin.get();
  }
}

int run(const std::vector<std::string>& words) {
  SessionOptions options;
  options.timeout = std::chrono::milliseconds(std::stoi(words.at(1)));
  auto session = Session::open(words.at(0), options, deadline_in(std::chrono::seconds(20)));
  if (!session) {
    std::cerr << session.error() << '\n';
    return 1;
  }
  const std::vector<std::string> wish(words.begin() + 4, words.end());
  if (words.at(2) == "-") {
    keep(*session, words.at(3), wish);
    static_cast<void>(session->close(deadline_in(std::chrono::seconds(20))));
  } else {
    test_support::take_turns(*session, words.at(2), words.at(3), wish, {});
  }
  return 0;
}

}  // namespace
}  // namespace latchkey

int main(int argc, char** argv) {
  try {
    return latchkey::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
