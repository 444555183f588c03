#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "environment.hpp"
#include "service.hpp"

/// Where the service is, as a function of what was said and where. No file is looked at here.
namespace latchkey::app {

/// A configuration file that may be there, or has to because somebody named it.
struct ConfigFile {
  std::string path;
  bool required = false;

  friend bool operator==(const ConfigFile&, const ConfigFile&) = default;
};

/// Where to look for a configuration, best first; the first that is there is the one.
[[nodiscard]] std::vector<ConfigFile> config_files(const ServiceOptions& typed,
                                                   const Environment& environment);

/// The user's own server: its folder, and names for its socket, best first. A socket's name may not
/// be long, and not every folder can be used: the one who starts the server chooses, and writes the
/// name down in the folder.
struct OwnServer {
  std::string folder;
  std::vector<std::string> sockets;
  std::chrono::milliseconds idle_stop{600'000};
};

/// Where `latchkey serve` keeps its data when it is told nothing about it; empty: nowhere.
[[nodiscard]] std::string default_data_folder(const Environment& environment);

/// Names for the socket of `latchkey serve` when it is told nothing of where to listen, best first;
/// `data_folder` is empty for a server in memory. None if they would all be too long.
[[nodiscard]] std::vector<std::string> default_sockets(const std::string& data_folder,
                                                       const Environment& environment);

/// Whom to ask and how.
struct Place {
  std::string connect;           ///< Empty: our own server.
  std::string source;            ///< Who says so: "--connect", "LATCHKEY_CONNECT", a file.
  std::optional<OwnServer> own;  ///< Set if `connect` is empty.
  std::string chroot;
  std::chrono::milliseconds timeout{10'000};
  std::string credentials_file;
  TlsOptions tls;
  std::string tls_source;  ///< The configuration file that names files for TLS, if one does.
};

/// The command line before the environment before the file before our own server; every setting for
/// itself. `file` is what the configuration says, with its name in config_file if there is one.
/// Errors: kInvalidOption if there is neither a service nor a folder to keep one's own in.
[[nodiscard]] Result<Place> locate(const ServiceOptions& typed, const Environment& environment,
                                   const ServiceOptions& file);

}  // namespace latchkey::app
