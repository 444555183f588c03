#include "session/connect_string.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "latchkey/path.hpp"

namespace latchkey::session {
namespace {

constexpr std::uint16_t kDefaultPort = 2181;
constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kMaxSocketPath = 107;  // sockaddr_un::sun_path, less its final NUL.

Error refuse(std::string_view text, const std::string& why) {
  return Error(Code::kInvalidConnectString, "connect string \"" + std::string(text) + "\": " + why);
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

/// An entry without its chroot; the message says what is wrong with it, empty if nothing is.
std::string parse_entry(std::string_view entry, Endpoint& endpoint) {
  if (entry.empty()) return "an entry is empty";
  const bool clean = std::none_of(entry.begin(), entry.end(),
                                  [](unsigned char byte) { return byte < 0x20 || byte == 0x7F; });
  if (!clean) return "an entry has a control character in it";
  if (entry.starts_with(kUnix)) {
    endpoint.socket_path = entry.substr(kUnix.size());
    if (!endpoint.socket_path.starts_with('/')) return "unix: needs an absolute path";
    if (endpoint.socket_path.size() > kMaxSocketPath) return "the socket's path is too long";
    return {};
  }
  std::string_view port;
  bool has_port = false;
  if (entry.front() == '[') {
    const std::size_t close = entry.find(']');
    if (close == std::string_view::npos) return "a [ has no ]";
    endpoint.host = entry.substr(1, close - 1);
    const std::string_view rest = entry.substr(close + 1);
    has_port = !rest.empty();
    if (has_port && rest.front() != ':') return "only a port may follow ]";
    if (has_port) port = rest.substr(1);
  } else {
    const std::size_t colon = entry.find(':');
    endpoint.host = entry.substr(0, colon);
    has_port = colon != std::string_view::npos;
    if (has_port) port = entry.substr(colon + 1);
    if (port.find(':') != std::string_view::npos)
      return "put IPv6 addresses in brackets: [::1]:2181";
  }
  if (endpoint.host.empty()) return "a host is missing";
  if (endpoint.host.find_first_of(" \t\r\n") != std::string::npos)
    return "a host has a space in it";
  if (endpoint.host.find_first_of("[]") != std::string::npos) return "a host has a bracket in it";
  endpoint.port = kDefaultPort;
  if (has_port) {
    const auto number = parse_port(port);
    if (!number) return "\"" + std::string(port) + "\" is not a port (1 to 65535)";
    endpoint.port = *number;
  }
  return {};
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  if (!endpoint.socket_path.empty()) return std::string(kUnix) + endpoint.socket_path;
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  const std::string host = is_ipv6 ? "[" + endpoint.host + "]" : endpoint.host;
  return host + ":" + std::to_string(endpoint.port);
}

Result<ConnectString> parse_connect_string(std::string_view text) {
  ConnectString result;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    std::string_view entry = rest.substr(0, comma);
    const bool is_last = comma == std::string_view::npos;
    const std::size_t slash = entry.starts_with(kUnix) ? std::string_view::npos : entry.find('/');
    if (slash != std::string_view::npos) {
      if (!is_last) return refuse(text, "the chroot comes once, after the last host");
      const Path chroot(entry.substr(slash));
      if (!chroot.is_valid())
        return refuse(text, "chroot \"" + chroot.text() + "\": " + chroot.problem() +
                                "; write it as host:2181/app/locks");
      if (chroot.text() != "/") result.chroot = chroot.text();
      entry = entry.substr(0, slash);
    }
    Endpoint endpoint;
    if (const std::string problem = parse_entry(entry, endpoint); !problem.empty()) {
      return refuse(text, problem);
    }
    result.endpoints.push_back(std::move(endpoint));
    if (is_last) return result;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace latchkey::session
