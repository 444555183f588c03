#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "integration/held_disk.hpp"
#include "net/tls.hpp"
#include "server/driver.hpp"
#include "server/words.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"
#include "support/tls_files.hpp"

// More is on its way to a disk that stands still than the server takes up, and somebody comes in a
// way of which the service itself sees nothing: TLS that is not whole, a socket closed for writing.
namespace latchkey::server {
namespace {

using namespace std::chrono_literals;
using test_support::create_request;
using test_support::eventually;
using test_support::Fd;
using test_support::RawClient;
using test_support::receive_some;
using test_support::send_all;
using test_support::wait_ready;
using wire::CreateMode;
using wire::Err;
using wire::Op;

/// Longer than any test takes: nobody is to run out here.
constexpr int kForEverMs = 600'000;

/// A connection whose bytes are ours to cut.
class Line {
 public:
  explicit Line(const std::string& address)
      : fd_(connect_to(test_support::Endpoint(address), deadline_in(20s))) {}

  [[nodiscard]] bool send(std::string_view bytes) {
    return send_all(fd_.get(), bytes, deadline_in(20s));
  }
  /// We send no more.
  void end() { ::shutdown(fd_.get(), SHUT_WR); }
  /// Some bytes; none at the end, or when patience is.
  std::string receive() {
    std::string bytes;
    if (!wait_ready(fd_.get(), POLLIN, deadline_in(20s))) return {};
    static_cast<void>(receive_some(fd_.get(), bytes));
    return bytes;
  }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  Fd fd_;
};

/// The same under TLS: bytes are encrypted and sent in two steps.
class TlsLine {
 public:
  TlsLine(const std::string& address, const std::string& ca)
      : line_(address),
        context_(net::TlsContext::load(TlsOptions{.enabled = true, .ca_file = ca}).value()),
        filter_(*context_, "127.0.0.1") {}

  [[nodiscard]] bool shake_hands() {
    std::string plain;
    while (!filter_.is_ready()) {
      if (!line_.send(filter_.take_output())) return false;
      const std::string bytes = line_.receive();
      if (bytes.empty() || !filter_.receive(bytes, plain)) return false;
    }
    return line_.send(filter_.take_output());
  }
  [[nodiscard]] std::string encrypted(std::string_view plain) {
    EXPECT_TRUE(filter_.send(plain)) << filter_.trouble();
    return filter_.take_output();
  }
  [[nodiscard]] bool send(std::string_view encrypted_bytes) { return line_.send(encrypted_bytes); }
  std::string receive_frame() {
    while (true) {
      if (const auto frame = splitter_.next()) return std::string(*frame);
      const std::string bytes = line_.receive();
      std::string plain;
      if (bytes.empty() || !filter_.receive(bytes, plain)) return {};
      splitter_.feed(plain);
    }
  }
  [[nodiscard]] int fd() const { return line_.fd(); }

 private:
  Line line_;
  std::shared_ptr<const net::TlsContext> context_;
  net::TlsFilter filter_;
  wire::FrameSplitter splitter_{1U << 20U};
};

std::uint16_t port_of(int fd, int (*of)(int, sockaddr*, socklen_t*)) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  of(fd, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.sin_port);
}

/// Has the process at the other end of a TCP connection on this machine read all that we sent?
bool is_read(int fd) {
  int on_the_way = 0;
  if (::ioctl(fd, SIOCOUTQ, &on_the_way) != 0 || on_the_way != 0) return false;
  const auto hex_port = [](const std::string& address) {
    return static_cast<std::uint16_t>(
        std::stoul(address.substr(address.find(':') + 1), nullptr, 16));
  };
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues;
    words >> number >> local >> remote >> state >> queues;
    if (hex_port(local) != port_of(fd, ::getpeername)) continue;
    if (hex_port(remote) != port_of(fd, ::getsockname)) continue;
    return std::stoul(queues.substr(queues.find(':') + 1), nullptr, 16) == 0;
  }
  return false;
}

class ServerOverfull : public testing::Test {
 protected:
  ServerOverfull() : files_(test_support::make_tls_files(folder_.path())) {
    const ServerTls tls{.cert_file = files_.server.certificate, .key_file = files_.server.key};
    ServerOptions options;
    options.words = settle_words({"all"}).value();
    options.max_session_timeout = std::chrono::milliseconds(kForEverMs);
    driver_ = std::make_unique<Driver>(options, net::TlsContext::load(tls).value());
    Doors doors;
    doors.clients.push_back(Listener::open_unix(folder_.path() / "socket").value());
    doors.clients.push_back(Listener::open_tcp("127.0.0.1:0").value());
    EXPECT_TRUE(driver_->start(std::make_unique<DiskJournal>(disk_), CommitOn::kOwnThread,
                               std::move(doors)));
  }
  ~ServerOverfull() override { disk_.let_go(); }

  [[nodiscard]] const std::string& plain_address() const { return driver_->addresses()[0]; }
  [[nodiscard]] const std::string& tls_address() const { return driver_->addresses()[1]; }

  /// From now on nobody's write is taken up.
  void overfill() {
    for (int i = 0; i < 80; ++i) {
      ASSERT_TRUE(flood_.emplace_back(plain_address(), 120s).connect(kForEverMs));
    }
    disk_.hold();
    for (std::size_t i = 0; i < flood_.size(); ++i) {
      wire::Create request = create_request("/" + std::to_string(i), CreateMode::kPersistent);
      request.data = std::string(900'000, 'x');
      flood_[i].add(Op::kCreate, request);
      senders_.emplace_back([this, i] { EXPECT_TRUE(flood_[i].flush()); });
    }
    ASSERT_TRUE(eventually([this] { return outstanding() >= 70; }, deadline_in(60s)));
    ASSERT_LT(outstanding(), 80);
  }
  void drain() {
    disk_.let_go();
    for (std::jthread& sender : senders_) sender.join();
    for (RawClient& writer : flood_) EXPECT_EQ(writer.receive()->header.err, Err::kOk);
  }
  /// Asking also means that whatever was read before has been dealt with.
  [[nodiscard]] int outstanding() const {
    const std::string lines =
        ask_word(test_support::Endpoint(plain_address()), "mntr", deadline_in(20s));
    const std::string name = "zk_outstanding_requests\t";
    const std::size_t at = lines.find(name);
    return at == std::string::npos ? -1 : std::stoi(lines.substr(at + name.size()));
  }

  const test_support::TempDir folder_;
  const test_support::TlsFiles files_;
  Disk disk_;
  std::unique_ptr<Driver> driver_;
  std::vector<RawClient> flood_;
  std::vector<std::jthread> senders_;
};

std::string handshake() {
  std::string bytes;
  wire::append_connect_request(bytes, {.timeout_ms = kForEverMs}, wire::Handshake::kWithReadOnly);
  return bytes;
}

/// The server reads the half record and gets nothing out of it that it could take up or refuse.
TEST_F(ServerOverfull, H85_WhoHasSentHalfARecordOfTlsIsHeardWhenTheDiskGoesOn) {
  TlsLine victim(tls_address(), files_.ca);
  ASSERT_TRUE(victim.shake_hands());
  ASSERT_TRUE(victim.send(victim.encrypted(handshake())));
  ASSERT_FALSE(victim.receive_frame().empty());
  wire::Create request = create_request("/victim", CreateMode::kPersistent);
  request.data = std::string(20'000, 'v');
  std::string frame;
  wire::append_frame(frame, wire::RequestHeader{1, Op::kCreate}, request);
  ASSERT_TRUE(victim.send(victim.encrypted(frame.substr(0, 8'000))));
  ASSERT_TRUE(eventually([&] { return is_read(victim.fd()); }));
  ASSERT_NO_FATAL_FAILURE(overfill());
  const std::string record = victim.encrypted(frame.substr(8'000, 6'000));
  ASSERT_TRUE(victim.send(record.substr(0, 3'000)));
  ASSERT_TRUE(eventually([&] { return is_read(victim.fd()); }));
  ASSERT_LT(outstanding(), 80) << "it was read, and there is no room yet";

  drain();
  ASSERT_TRUE(victim.send(record.substr(3'000)));
  ASSERT_TRUE(victim.send(victim.encrypted(frame.substr(14'000))));

  const std::string answer = victim.receive_frame();
  ASSERT_GE(answer.size(), 16U);
  wire::ReplyHeader header;
  wire::Reader(std::string_view(answer).substr(0, 16))(header);
  EXPECT_EQ(header.xid, 1);
  EXPECT_EQ(header.err, Err::kOk);
}

/// Its answers keep the write back at first, then the disk does: there is nothing left to write to
/// it, and nothing under way.
TEST_F(ServerOverfull, AWriteInLineIsAnsweredThoughItsSenderSendsNoMore) {
  RawClient maker(plain_address());
  ASSERT_TRUE(maker.connect(kForEverMs));
  wire::Create large = create_request("/large", CreateMode::kPersistent);
  large.data = std::string(900'000, 'x');
  ASSERT_TRUE(maker.call(Op::kCreate, large));
  Line sender(plain_address());
  ASSERT_TRUE(sender.send(handshake()));
  wire::FrameSplitter frames(1U << 20U);
  const auto receive_frame = [&] {
    auto frame = frames.next();
    for (std::string bytes; !frame && !(bytes = sender.receive()).empty(); frame = frames.next()) {
      frames.feed(bytes);
    }
    return frame.has_value();
  };
  ASSERT_TRUE(receive_frame());
  std::string requests;
  for (std::int32_t xid = 1; xid <= 3; ++xid) {
    wire::append_frame(requests, wire::RequestHeader{xid, Op::kGetData},
                       wire::PathWatch{"/large", false});
  }
  wire::append_frame(requests, wire::RequestHeader{4, Op::kCreate},
                     create_request("/last", CreateMode::kPersistent));
  ASSERT_TRUE(sender.send(requests));
  sender.end();
  ASSERT_NO_FATAL_FAILURE(overfill());

  for (int i = 0; i < 3; ++i) ASSERT_TRUE(receive_frame());
  ASSERT_LT(outstanding(), 80);
  drain();

  EXPECT_TRUE(receive_frame()) << "the answer to the write, and not only the end";
  EXPECT_EQ(maker.call(Op::kExists, wire::PathWatch{"/last", false})->header.err, Err::kOk);
}

}  // namespace
}  // namespace latchkey::server
