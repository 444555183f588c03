#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

namespace latchkey::net {

/// Addresses of a host, or why there are none.
struct Resolved {
  std::vector<asio::ip::tcp::endpoint> endpoints;
  std::string trouble;
};

/// A lookup under way. Once cancelled, or destroyed, its handler will not be posted any more.
class LookUp {
 public:
  explicit LookUp(asio::io_context& context) : context_(&context) {}

  void cancel();
  void finish(std::function<void(Resolved)> handler, Resolved result);

 private:
  std::mutex mutex_;
  asio::io_context* context_;  ///< Null once cancelled.
};

/// Looks a name up on a thread of its own, so that a name service that hangs holds up neither the
/// I/O thread nor anybody's destructor (H68); `handler` runs on `context`. A numeric address takes
/// no thread and comes back through `context` too.
[[nodiscard]] std::shared_ptr<LookUp> resolve(asio::io_context& context, const std::string& host,
                                              std::uint16_t port,
                                              std::function<void(Resolved)> handler);

}  // namespace latchkey::net
