#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>

/// beat FILE polite|stubborn [RIVAL]: appends the time of CLOCK_MONOTONIC in nanoseconds to FILE, a
/// line for each, until it is killed. A stubborn one does not listen to SIGTERM. Its process id is
/// in FILE.pid; of a RIVAL, which is the FILE of another, it says in FILE.rival before the first
/// beat whether that one is "alive" or "dead".

namespace {

/// A process that has ended and that nobody has asked for yet is dead.
bool is_alive(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  std::string line;
  std::getline(stat, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  return line[name_end + 2] != 'Z' && line[name_end + 2] != 'X';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const std::string name = argv[1];
  if (argc > 3) {
    std::string rival;
    std::ifstream(std::string(argv[3]) + ".pid") >> rival;
    std::ofstream(name + ".rival") << (is_alive(rival) ? "alive\n" : "dead\n");
  }
  if (std::strcmp(argv[2], "stubborn") == 0) ::signal(SIGTERM, SIG_IGN);
  std::ofstream(name + ".pid") << ::getpid() << std::endl;
  const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file < 0) return 1;
  while (true) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    std::array<char, 32> line{};
    char* end = std::to_chars(line.data(), line.data() + line.size() - 1,
                              static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec)
                    .ptr;
    *end++ = '\n';
    // One call for each line, so that a kill leaves whole lines.
    if (::write(file, line.data(), static_cast<std::size_t>(end - line.data())) < 0) return 1;
    ::poll(nullptr, 0, 1);
  }
}
