#include "service.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "environment.hpp"
#include "locate.hpp"
#include "net/tls.hpp"
#include "options.hpp"
#include "own_server.hpp"
#include "session/connect_string.hpp"
#include "table.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

using std::chrono::milliseconds;

/// Our own server lives, because it has its lock. Whoever has not heard from it after so long is
/// told that it hangs.
constexpr std::chrono::seconds kOwnPatience(60);
/// How long it may take to answer before we look whether it still lives.
constexpr milliseconds kLookAgain(200);
/// When people begin to wonder.
constexpr std::chrono::seconds kSilence(2);

/// What the first configuration file that is there says.
Result<ServiceOptions> read_configuration(const ServiceOptions& typed,
                                          const Environment& surroundings) {
  ServiceOptions file;
  for (const ConfigFile& candidate : config_files(typed, surroundings)) {
    std::error_code ignored;
    if (!candidate.required && !std::filesystem::exists(candidate.path, ignored)) continue;
    CLI::App reader("", "latchkey ls");
    add_service_options(reader, file);
    try {
      read_config(reader, candidate.path);
    } catch (const CLI::Error& error) {
      return Error(Code::kInvalidOption, error.what());
    }
    file.config_file = candidate.path;
    // What a file names is beside it, wherever somebody stands who uses it.
    const std::filesystem::path folder = std::filesystem::path(candidate.path).parent_path();
    for (std::string* name :
         {&file.tls.ca_file, &file.tls.cert_file, &file.tls.key_file, &file.credentials_file}) {
      if (!name->empty()) *name = (folder / *name).string();
    }
    break;
  }
  return file;
}

Result<Place> find_place(const ServiceOptions& options) {
  const Environment surroundings = environment();
  const Result<ServiceOptions> file = read_configuration(options, surroundings);
  if (!file) return file.error();
  return locate(options, surroundings, *file);
}

Result<Credential> read_credentials(const std::string& file) {
  const auto refuse = [&](const std::string& why) {
    return Error(Code::kInvalidOption, "the credentials in " + file + ": " + why);
  };
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) {
    return refuse(std::generic_category().message(errno));
  }
  if (!S_ISREG(found.st_mode)) return refuse("that is not a file");
  if (found.st_uid != ::geteuid() && found.st_uid != 0) return refuse("the file is another user's");
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return refuse("others may read the file; chmod 600 keeps it yours");
  }
  std::ifstream input(file);
  std::string line;
  if (!std::getline(input, line)) return refuse("the file is empty or cannot be read");
  if (line.ends_with('\r')) line.pop_back();
  if (line.find(':') == std::string::npos) return refuse("the first line is not USER:PASSWORD");
  return Credential{"digest", line};
}

Result<SessionOptions> session_options(const Place& place, SessionOptions more) {
  more.timeout = place.timeout;
  // What works under the lock is another process, which may live on when this one is killed (H95).
  more.after_death = AfterDeath::kTimeout;
  if (!place.chroot.empty()) more.chroot = place.chroot;
  if (!place.own) more.tls = place.tls;
  if (!place.credentials_file.empty()) {
    Result<Credential> credential = read_credentials(place.credentials_file);
    if (!credential) return credential.error();
    more.credentials.push_back(std::move(*credential));
  }
  return more;
}

/// Whoever names a file wants it used.
bool speaks_tls(const TlsOptions& tls) {
  return tls.enabled || !tls.ca_file.empty() || !tls.cert_file.empty() || !tls.key_file.empty();
}

Result<Session> open_at(const std::string& connect, SessionOptions options, Deadline deadline,
                        const OnSilence& on_silence) {
  Result<Session> session = Session::start(connect, std::move(options));
  if (!session) return session;
  const Result<void> soon = session->wait_connected(std::min(deadline, deadline_in(kSilence)));
  if (!soon && on_silence && !deadline.has_passed(BootClock::now())) {
    on_silence(soon.error() == Code::kUnreachable
                   ? "nobody answers at " + connect + " yet; going on to try"
                   : connect + ": " + soon.error().message() + "; going on to try");
  }
  const Result<void> connected = session->wait_connected(deadline);
  if (connected) return session;
  return Error(connected.error().code(), connect + ": " + connected.error().message());
}

Result<Session> open_named(const Place& place, SessionOptions options, Deadline deadline,
                           const OnSilence& on_silence) {
  const TlsOptions tls = options.tls;
  Result<Session> session = open_at(place.connect, std::move(options), deadline, on_silence);
  if (session) return session;
  const Error& error = session.error();
  // Files that cannot be used are named, and have nothing to do with the address.
  if (error == Code::kTls && !net::TlsContext::load(tls)) {
    if (place.tls_source.empty()) return session;
    return Error(error.code(), error.message() + ". It is named in " + place.tls_source);
  }
  const bool silent = error == Code::kUnreachable;
  return Error(
      error.code(),
      fmt::format("{}. The address is from {}{}", error.message(), place.source,
                  error == Code::kTls ? ". Is TLS what is spoken there, and is its signer known "
                                        "(--tls-ca FILE)?"
                  : !silent           ? ""
                  : speaks_tls(tls)   ? ". Does a server run there, may this host reach it, and "
                                        "does it speak TLS?"
                                      : ". Does a server run there, and may this host reach it? "
                                        "One that speaks TLS only is silent without --tls. "
                                        "latchkey serve --help tells how to run one"));
}

Error silent(const OwnServer& own, const std::string& address) {
  const std::optional<pid_t> pid = listener_at(address);
  const std::string which = pid ? fmt::format(", process {},", *pid) : "";
  const std::string advice =
      pid ? fmt::format(". Is it stopped? kill {} ends it, and the next command starts another",
                        *pid)
          : "";
  return Error(Code::kUnreachable,
               fmt::format("your own server{} has not answered at {} for {} s; its log is "
                           "{}/server.log{}",
                           which, address, kOwnPatience.count(), own.folder, advice));
}

Result<Session> open_own(const OwnServer& own, SessionOptions options, OnSilence on_silence) {
  const Deadline deadline = deadline_in(kOwnPatience);
  const Deadline silence = deadline_in(kSilence);
  options.on_state = [own, tell = std::move(options.on_state)](SessionState state) {
    if (tell) tell(state);
    // It lives as long as a session does, so it was killed. What it has is on the disk.
    if (state == SessionState::kSuspended) {
      static_cast<void>(revive_own_server(own, deadline_in(kOwnPatience)));
    }
  };
  // A server that just began is met soon, but many who wait for it must not keep it from beginning.
  options.retry.base = milliseconds(5);
  options.retry.cap = kLookAgain;
  std::string address;
  Result<Session> session = Error(Code::kUnreachable, "your own server was not tried");
  do {
    const Result<std::string> found = find_own_server(own, deadline);
    if (!found) return found.error();
    if (*found != address) {
      address = *found;
      session = Session::start(address, options);
      if (!session) return session;
    }
    const Deadline soon = std::min(deadline, deadline_in(kLookAgain));
    const Result<void> connected = session->wait_connected(soon);
    if (connected) return session;
    if (connected.error() != Code::kUnreachable) return connected.error();
    if (on_silence && silence.has_passed(BootClock::now())) {
      std::exchange(on_silence, {})("your own server does not answer yet; going on to try");
    }
  } while (!deadline.has_passed(BootClock::now()));
  return silent(own, address);
}

/// As it stands if there is no working directory: then it is not to be found either.
std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

/// Our root, if it is not the service's.
std::string chroot_of(const Place& place) {
  if (!place.chroot.empty() || place.own) return place.chroot == "/" ? "" : place.chroot;
  const auto parsed = session::parse_connect_string(place.connect);
  return parsed ? parsed->chroot : std::string();
}

/// A root that is not there has no locks either: looking would find every one free.
Result<Session> with_root(Result<Session> session, const Place& place) {
  const std::string chroot = chroot_of(place);
  if (!session || chroot.empty()) return session;
  const Deadline deadline = deadline_in(kAnswerPatience);
  Result<std::optional<Stat>> root = session->exists("/", deadline);
  if (root && !*root) {
    // Perhaps it is new, and the server we are at has not heard of it yet.
    if (const auto synced = session->sync("/", deadline); !synced) return synced.error();
    root = session->exists("/", deadline);
  }
  if (!root) return root.error();
  if (*root) return session;
  return Error(Code::kInvalidOption,
               place.own
                   ? fmt::format("your own server has no node {0}, which is to be our root; leave "
                                 "out the chroot",
                                 chroot)
                   : fmt::format("there is no node {0} at {1}, and it is to be our root, the "
                                 "chroot. Is it spelled right? It has to be made first, with "
                                 "any ZooKeeper client: create {0}",
                                 chroot, place.connect));
}

}  // namespace

void add_service_options(CLI::App& command, ServiceOptions& options) {
  constexpr const char* kGroup = "The service";
  add_text(command, "-z,--connect", options.connect, "HOST:PORT,...[/CHROOT]|unix:PATH",
           "Where it is; else LATCHKEY_CONNECT, the configuration, or a server of your own")
      ->group(kGroup);
  add_text(command, "--chroot", options.chroot, "PATH", "The path that is the root for us")
      ->group(kGroup);
  add_duration(command, "--session-timeout", options.timeout_ms,
               "How soon a dead process's locks pass on [10s]")
      ->group(kGroup);
  add_text(command, "--credentials", options.credentials_file, "FILE",
           "USER:PASSWORD in a file that nobody else can read")
      ->group(kGroup);
  command.add_flag("--tls", options.tls.enabled, "Encrypt, and trust the system's certificates")
      ->group(kGroup);
  add_text(command, "--tls-ca", options.tls.ca_file, "FILE", "Who signs the server's, PEM")
      ->group(kGroup);
  add_text(command, "--tls-cert", options.tls.cert_file, "FILE", "Our certificate chain, PEM")
      ->group(kGroup);
  add_text(command, "--tls-key", options.tls.key_file, "FILE", "Its private key, PEM")
      ->group(kGroup);
  command
      .add_flag("--tls-any-name", options.tls_any_name,
                "Encrypt, and accept a certificate that is for another host")
      ->group(kGroup);
  add_text(command, "--config", options.config_file, "FILE",
           "Configuration; else LATCHKEY_CONFIG, ~/.config/latchkey.conf, /etc/latchkey.conf")
      ->group(kGroup);
  add_duration(command, "--own-idle-stop", options.idle_stop_ms, "When our own server ends")
      ->group("");  // For the configuration.
}

Result<Session> open_aloud(const ServiceOptions& options, Deadline deadline) {
  if (::isatty(STDERR_FILENO) == 0) return open_service(options, deadline);
  return open_service(options, deadline, {},
                      [](const std::string& text) { say("latchkey: {}\n", printable(text)); });
}

Result<Session> open_service(const ServiceOptions& options, Deadline deadline, SessionOptions more,
                             const OnSilence& on_silence) {
  const Result<Place> place = find_place(options);
  if (!place) return place.error();
  Result<SessionOptions> complete = session_options(*place, std::move(more));
  if (!complete) return complete.error();
  return with_root(place->own ? open_own(*place->own, std::move(*complete), on_silence)
                              : open_named(*place, std::move(*complete), deadline, on_silence),
                   *place);
}

Result<std::string> service_address(const ServiceOptions& options) {
  const Result<Place> place = find_place(options);
  if (!place) return place.error();
  return place->own ? find_own_server(*place->own, deadline_in(kOwnPatience))
                    : Result(place->connect);
}

Result<std::string> service_name(const ServiceOptions& options) {
  const Result<Place> place = find_place(options);
  if (!place) return place.error();
  return (place->own ? place->own->folder : place->connect) + place->chroot;
}

Error unanswered(const Error& error) {
  if (error != Code::kTimedOut) return error;
  return Error(Code::kUnreachable,
               "the server has not answered in time: " + std::string(error.message()));
}

Error in_our_words(const Error& error, const ServiceOptions& options) {
  if (error != Code::kSessionLost) return error;
  const Result<Place> place = find_place(options);
  if (!place) return error;
  const std::string where =
      place->own ? "your own server (its log is " + place->own->folder + "/server.log)"
                 : place->connect + ", the address from " + place->source;
  return Error(error.code(),
               fmt::format("the session is over: nothing was heard in time from {}. Does the "
                           "server run, and may this host reach it? latchkey doctor looks; then "
                           "start this again",
                           where));
}

Result<milliseconds> wanted_timeout(const ServiceOptions& options) {
  const Result<Place> place = find_place(options);
  if (!place) return place.error();
  return place->timeout;
}

Result<bool> is_encrypted(const ServiceOptions& options) {
  const Result<Place> place = find_place(options);
  if (!place) return place.error();
  return !place->own && speaks_tls(place->tls);
}

std::vector<std::string> service_words(const ServiceOptions& options) {
  std::vector<std::string> words;
  const auto text = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name, value});
  };
  const auto file = [&](const char* name, const std::string& value) {
    if (!value.empty()) text(name, absolute(value));
  };
  constexpr std::string_view kUnix = "unix:";
  const std::string& connect = options.connect;
  const bool socket = connect.starts_with(kUnix);
  text("--connect", socket ? std::string(kUnix) + absolute(connect.substr(kUnix.size())) : connect);
  text("--chroot", options.chroot);
  if (options.timeout_ms != 0) text("--session-timeout", fmt::format("{}ms", options.timeout_ms));
  file("--credentials", options.credentials_file);
  if (options.tls.enabled) words.emplace_back("--tls");
  file("--tls-ca", options.tls.ca_file);
  file("--tls-cert", options.tls.cert_file);
  file("--tls-key", options.tls.key_file);
  if (options.tls_any_name) words.emplace_back("--tls-any-name");
  file("--config", options.config_file.empty() ? environment().config : options.config_file);
  return words;
}

Result<std::string> state_folder() {
  // Whatever the service is: without one that was named it would be our own.
  Environment alone = environment();
  alone.connect.clear();
  const Result<Place> place = locate({}, alone, {});
  if (!place) return place.error();
  if (const Result<void> made = make_private_folder(place->own->folder); !made) {
    return made.error();
  }
  return place->own->folder;
}

}  // namespace latchkey::app
