#include "locate.hpp"

#include <sys/un.h>

#include <cstdint>

#include <fmt/core.h>

namespace latchkey::app {
namespace {

/// XDG's rule: a relative path there is to be ignored.
bool is_usable(const std::string& folder) { return folder.starts_with('/'); }

const std::string& first(const std::string& a, const std::string& b) { return a.empty() ? b : a; }

/// Tells the sockets of different folders apart (FNV-1a).
std::string short_hash(const std::string& text) {
  std::uint32_t hash = 2'166'136'261U;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16'777'619U;
  }
  return fmt::format("{:08x}", hash);
}

bool is_short_enough(const std::string& socket) {
  return socket.size() < sizeof(sockaddr_un::sun_path);
}

/// Where the user's programs keep what they want to find again; empty: nowhere.
std::string state_home(const Environment& environment) {
  if (is_usable(environment.state_home)) return environment.state_home;
  return is_usable(environment.home) ? environment.home + "/.local/state" : "";
}

std::optional<OwnServer> own_server(const Environment& environment) {
  const std::string state = state_home(environment);
  if (state.empty()) return std::nullopt;
  OwnServer own;
  own.folder = state + "/latchkey";
  const std::string name = "/" + short_hash(own.folder) + ".sock";
  std::vector<std::string> wanted;
  if (is_usable(environment.runtime_dir))
    wanted.push_back(environment.runtime_dir + "/latchkey" + name);
  wanted.push_back(own.folder + "/server.sock");
  wanted.push_back(fmt::format("/tmp/latchkey-{}{}", environment.user, name));
  for (std::string& path : wanted) {
    if (is_short_enough(path)) own.sockets.push_back(std::move(path));
  }
  return own;
}

}  // namespace

std::string default_data_folder(const Environment& environment) {
  const std::string& service = environment.service_state;
  if (is_usable(service)) return service.substr(0, service.find(':'));
  const std::string state = state_home(environment);
  return state.empty() ? "" : state + "/latchkey/serve";
}

std::vector<std::string> default_sockets(const std::string& data_folder,
                                         const Environment& environment) {
  std::vector<std::string> wanted;
  if (!data_folder.empty()) {
    wanted.push_back(data_folder + "/latchkey.sock");
  } else {
    if (is_usable(environment.runtime_dir)) {
      wanted.push_back(environment.runtime_dir + "/latchkey/memory.sock");
    }
    wanted.push_back(fmt::format("/tmp/latchkey-{}/memory.sock", environment.user));
  }
  std::erase_if(wanted, [](const std::string& path) { return !is_short_enough(path); });
  return wanted;
}

std::vector<ConfigFile> config_files(const ServiceOptions& typed, const Environment& environment) {
  if (!typed.config_file.empty()) return {{typed.config_file, true}};
  if (!environment.config.empty()) return {{environment.config, true}};
  std::vector<ConfigFile> files;
  if (is_usable(environment.config_home)) {
    files.push_back({environment.config_home + "/latchkey.conf"});
  } else if (is_usable(environment.home)) {
    files.push_back({environment.home + "/.config/latchkey.conf"});
  }
  files.push_back({"/etc/latchkey.conf"});
  return files;
}

Result<Place> locate(const ServiceOptions& typed, const Environment& environment,
                     const ServiceOptions& file) {
  Place place;
  if (!typed.connect.empty()) {
    place.connect = typed.connect;
    place.source = "--connect";
  } else if (!environment.connect.empty()) {
    place.connect = environment.connect;
    place.source = "LATCHKEY_CONNECT";
  } else if (!file.connect.empty()) {
    place.connect = file.connect;
    place.source = file.config_file;
  } else if (place.own = own_server(environment); !place.own) {
    return Error(Code::kInvalidOption,
                 "where is the service? There is neither --connect nor LATCHKEY_CONNECT, and no "
                 "HOME or XDG_STATE_HOME to keep a server of your own in");
  }
  if (const std::size_t scheme = place.connect.find("://"); scheme != std::string::npos) {
    return Error(Code::kInvalidOption,
                 fmt::format("{}: \"{}\" is no address: leave out {}://, and write zk1:2181 or "
                             "zk1:2181,zk2:2181/chroot or unix:/run/zk.sock",
                             place.source, place.connect, place.connect.substr(0, scheme)));
  }
  place.chroot = first(typed.chroot, file.chroot);
  if (!place.chroot.empty() && !is_usable(place.chroot)) {
    return Error(Code::kInvalidOption,
                 fmt::format("the chroot \"{0}\" is no path: write /{0}", place.chroot));
  }
  place.credentials_file = first(typed.credentials_file, file.credentials_file);
  if (const std::int64_t ms = typed.timeout_ms != 0 ? typed.timeout_ms : file.timeout_ms; ms != 0) {
    place.timeout = std::chrono::milliseconds(ms);
  }
  const std::int64_t idle_ms = typed.idle_stop_ms != 0 ? typed.idle_stop_ms : file.idle_stop_ms;
  if (place.own && idle_ms != 0) place.own->idle_stop = std::chrono::milliseconds(idle_ms);
  if (place.own) return place;  // A Unix socket of this user's: there is nothing to encrypt.
  // Whoever says which certificate will do wants one to be shown.
  place.tls.enabled =
      typed.tls.enabled || file.tls.enabled || typed.tls_any_name || file.tls_any_name;
  place.tls.ca_file = first(typed.tls.ca_file, file.tls.ca_file);
  place.tls.cert_file = first(typed.tls.cert_file, file.tls.cert_file);
  place.tls.key_file = first(typed.tls.key_file, file.tls.key_file);
  if (typed.tls_any_name || file.tls_any_name) place.tls.verify = TlsOptions::Verify::kChainOnly;
  const auto from_file = [](const std::string& said, const std::string& in_file) {
    return said.empty() && !in_file.empty();
  };
  if (from_file(typed.tls.ca_file, file.tls.ca_file) ||
      from_file(typed.tls.cert_file, file.tls.cert_file) ||
      from_file(typed.tls.key_file, file.tls.key_file)) {
    place.tls_source = file.config_file;
  }
  if (place.tls.cert_file.empty() != place.tls.key_file.empty()) {
    const bool has_key = place.tls.cert_file.empty();
    return Error(Code::kInvalidOption,
                 fmt::format("{}--tls-{} needs --tls-{} beside it: our certificate and its private "
                             "key go together",
                             place.tls_source.empty() ? "" : place.tls_source + ": ",
                             has_key ? "key" : "cert", has_key ? "cert" : "key"));
  }
  return place;
}

}  // namespace latchkey::app
