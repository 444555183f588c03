#include "net/resolver.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <cstring>

#include <asio/ip/address.hpp>
#include <asio/post.hpp>

#include "net/threads.hpp"

namespace latchkey::net {
namespace {

Resolved ask_system(const std::string& host, std::uint16_t port) {
  Resolved result;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  int error = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
  if (error == EAI_NONAME || error == EAI_ADDRFAMILY) {
    // On a machine with nothing but loopback AI_ADDRCONFIG may hide the very address we need.
    hints.ai_flags = 0;
    error = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
  }
  if (error != 0) {
    result.trouble = ::gai_strerror(error);
    return result;
  }
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (entry->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
    endpoint.resize(entry->ai_addrlen);
    result.endpoints.push_back(endpoint);
  }
  ::freeaddrinfo(found);
  if (result.endpoints.empty()) result.trouble = "no address";
  return result;
}

}  // namespace

void LookUp::cancel() {
  const std::lock_guard lock(mutex_);
  context_ = nullptr;
}

void LookUp::finish(std::function<void(Resolved)> handler, Resolved result) {
  const std::lock_guard lock(mutex_);
  if (context_ == nullptr) return;
  asio::post(*context_,
             [handler = std::move(handler), result = std::move(result)] { handler(result); });
}

std::shared_ptr<LookUp> resolve(asio::io_context& context, const std::string& host,
                                std::uint16_t port, std::function<void(Resolved)> handler) {
  auto look_up = std::make_shared<LookUp>(context);
  asio::error_code not_numeric;
  const asio::ip::address address = asio::ip::make_address(host, not_numeric);
  if (!not_numeric) {
    look_up->finish(std::move(handler), Resolved{.endpoints = {{address, port}}, .trouble = {}});
    return look_up;
  }
  const bool started = start_thread("latchkey-dns", [look_up, host, port, handler] {
    look_up->finish(handler, ask_system(host, port));
  });
  if (!started) look_up->finish(handler, Resolved{{}, "no thread for the name lookup"});
  return look_up;
}

}  // namespace latchkey::net
