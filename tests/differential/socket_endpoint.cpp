#include <poll.h>

#include <chrono>
#include <stdexcept>
#include <utility>

#include "differential/endpoint.hpp"
#include "support/sockets.hpp"
#include "wire/frame.hpp"

namespace latchkey::differential {
namespace {

using namespace test_support;

/// Far beyond what an answer takes; it passes in full only where two servers differ.
constexpr std::chrono::seconds kPatience(30);

class SocketLink : public Link {
 public:
  explicit SocketLink(const std::string& address)
      : fd_(connect_to(Endpoint(address), deadline_in(kPatience))) {
    if (!fd_) throw std::runtime_error("nobody listens at " + address);
    send_at_once(fd_.get());
  }

  void send(std::string_view bytes) override {
    // A server that has closed the connection is noticed when it is read from.
    if (fd_) static_cast<void>(send_all(fd_.get(), bytes, deadline_in(kPatience)));
  }

  Arrival receive(Wait wait) override {
    const Deadline deadline = deadline_in(wait == Wait::kYes ? kPatience : kPatience.zero());
    while (true) {
      if (const auto frame = splitter_.next()) return {Arrival::Kind::kFrame, std::string(*frame)};
      std::string bytes;
      if (!fd_ || splitter_.broken()) return {Arrival::Kind::kClosed, {}};
      if (!wait_ready(fd_.get(), POLLIN, deadline)) return {Arrival::Kind::kNothing, {}};
      if (receive_some(fd_.get(), bytes) == Received::kEnd) fd_.reset();
      splitter_.feed(bytes);
    }
  }

 private:
  using Endpoint = test_support::Endpoint;

  Fd fd_;
  wire::FrameSplitter splitter_{std::size_t{64} << 20U};
};

class SocketEndpoint : public Endpoint {
 public:
  explicit SocketEndpoint(std::string address) : address_(std::move(address)) {}

  std::unique_ptr<Link> connect() override { return std::make_unique<SocketLink>(address_); }

 private:
  std::string address_;
};

}  // namespace

std::unique_ptr<Endpoint> socket_endpoint(std::string address) {
  return std::make_unique<SocketEndpoint>(std::move(address));
}

}  // namespace latchkey::differential
