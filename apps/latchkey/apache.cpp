#include "apache.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string_view>

#include "latchkey/session.hpp"

namespace latchkey::app {
namespace {

constexpr std::string_view kJars =
    "/usr/share/java/zookeeper.jar:/usr/share/java/zookeeper-jute.jar:"
    "/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-simple.jar";

/// A port nobody listens on. Somebody may take it before the server does; then start() fails.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ::bind(fd, generic, size);
  ::getsockname(fd, generic, &size);
  ::close(fd);
  return ::ntohs(address.sin_port);
}

std::filesystem::path make_folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "latchkey-demo-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return {};
  return pattern;
}

std::string last_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::string last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

Apache::Apache(std::filesystem::path folder, int port, Process process)
    : folder_(std::move(folder)), port_(port), process_(std::move(process)) {}

Apache::~Apache() {
  if (folder_.empty()) return;
  process_.kill_and_reap();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Apache::connect_string() const { return "127.0.0.1:" + std::to_string(port_); }

Result<Apache> Apache::start() {
  using std::chrono::seconds;
  const std::filesystem::path folder = make_folder();
  if (folder.empty()) return Error(Code::kUnreachable, "cannot make a temporary folder");
  const int port = free_port();
  std::ofstream(folder / "zoo.cfg")
      << "tickTime=500\nclientPortAddress=127.0.0.1\nclientPort=" << port
      << "\ndataDir=" << (folder / "data").string() << "\nadmin.enableServer=false\n";
  const std::filesystem::path log = folder / "log";
  Apache apache(
      folder, port,
      Process({"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               "-Dorg.slf4j.simpleLogger.logFile=" + log.string(), "-cp", std::string(kJars),
               "org.apache.zookeeper.server.ZooKeeperServerMain", (folder / "zoo.cfg").string()},
              Process::Output::kDevNull));
  const Deadline deadline = deadline_in(seconds(60));
  while (!deadline.has_passed(BootClock::now())) {
    if (apache.process_.has_ended()) break;
    if (Session::open(apache.connect_string(), {}, deadline_in(seconds(1)))) return apache;
  }
  return Error(Code::kUnreachable,
               "Apache ZooKeeper did not start (is java installed? run ./dev "
               "setup): " +
                   last_line(log));
}

}  // namespace latchkey::app
