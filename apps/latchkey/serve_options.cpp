#include "serve_options.hpp"

#include <algorithm>
#include <cctype>

#include <CLI/CLI.hpp>

#include "options.hpp"
#include "server/option_limits.hpp"

namespace latchkey::app {
namespace {

/// "--max-frame" for "max_frame".
std::string flag_of(std::string_view field) {
  std::string flag = "--" + std::string(field);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

template <class Limits, class Member>
const auto& limit_of(const Limits& limits, Member Limits::value_type::*which, Member member) {
  return *std::ranges::find(limits, member, which);
}

void add_limit(CLI::App& command, ServerOptions& options, std::size_t ServerOptions::*count,
               const char* help) {
  const auto& limit = limit_of(server::kCountLimits, &server::CountLimit::count, count);
  add_count(command, flag_of(limit.name), options.*count, help, limit.least, limit.most);
}

void add_limit(CLI::App& command, ServerOptions& options,
               std::chrono::milliseconds ServerOptions::*time, const char* help) {
  const auto& limit = limit_of(server::kTimeLimits, &server::TimeLimit::time, time);
  add_duration(command, flag_of(limit.name), options.*time, help, limit.least);
}

void add_basics(CLI::App& command, ServeOptions& options) {
  ServerOptions& server = options.server;
  add_text(command, "--data", server.data_folder, "DIR [~/.local/state/latchkey/serve]",
           "Folder for the data; made if it is missing");
  command.add_flag("--memory", options.memory, "Keep the data in memory only");
  command.add_flag("--cut-damage", options.cut_damage,
                   "For one start: keep what comes before a damage, lose the rest");
  add_text(command, "--listen", server.listen, "HOST:PORT [127.0.0.1:2181]",
           "TCP address; may be named more than once");
  add_text(command, "--unix", server.unix_path, "PATH [DIR/latchkey.sock]",
           "Unix socket, for this user only; with neither, both defaults");
  command.add_option("--words", server.words, "Four-letter words to answer")
      ->option_text("LIST|all [ruok,srvr]")
      ->allow_extra_args(false)
      ->delimiter(',');
  add_text(command, "--super-digest", server.super_digest, "USER:HASH",
           "Whoever may do everything; HASH is base64(sha1(USER:PASSWORD))");
  add_text(command, "--metrics", server.metrics, "HOST:PORT", "Where Prometheus finds /metrics");
  add_text(command, "--tls-cert", options.tls.cert_file, "FILE",
           "Certificate chain of the server, PEM");
  add_text(command, "--tls-key", options.tls.key_file, "FILE", "Its private key, PEM");
  add_text(command, "--tls-client-ca", options.tls.client_ca_file, "FILE",
           "Who may sign client certificates, PEM");
  command.add_flag("--tls-require-client-cert", options.require_client_certificate,
                   "Refuse clients without a certificate");
}

void add_times(CLI::App& command, ServerOptions& server) {
  add_limit(command, server, &ServerOptions::tick, "How late a session may be found to have ended");
  add_limit(command, server, &ServerOptions::min_session_timeout,
            "Shortest session time-out to grant");
  add_limit(command, server, &ServerOptions::max_session_timeout,
            "Longest session time-out to grant");
  add_limit(command, server, &ServerOptions::reap_interval,
            "Time between looks for unused containers and old TTL nodes");
  add_limit(command, server, &ServerOptions::handshake_timeout,
            "How long a connection may take to begin a session");
  add_limit(command, server, &ServerOptions::idle_stop,
            "End after so long without a session, once nobody is connected [never]");
}

void add_counts(CLI::App& command, ServerOptions& server) {
  add_limit(command, server, &ServerOptions::max_connections, "Connections in all");
  add_limit(command, server, &ServerOptions::max_connections_per_address,
            "Connections from one address other than the loopback");
  add_limit(command, server, &ServerOptions::max_frame, "Bytes of one request");
  add_limit(command, server, &ServerOptions::max_sessions, "Sessions in all");
  add_limit(command, server, &ServerOptions::max_sessions_per_address,
            "Sessions opened from one address other than the loopback");
  add_limit(command, server, &ServerOptions::max_nodes, "Nodes in all");
  add_limit(command, server, &ServerOptions::max_bytes,
            "Bytes of paths, data and each node's permissions");
  add_limit(command, server, &ServerOptions::max_ephemeral_bytes_per_session,
            "Bytes of paths of a session's ephemeral nodes, and 32 for each");
  add_limit(command, server, &ServerOptions::max_requests_per_connection,
            "Requests that may wait for their answer");
  add_limit(command, server, &ServerOptions::max_watches, "Watches in all");
  add_limit(command, server, &ServerOptions::max_watches_per_connection,
            "Watches of one connection");
  add_limit(command, server, &ServerOptions::max_watch_bytes, "Bytes of the watched paths in all");
  add_limit(command, server, &ServerOptions::max_output_per_connection,
            "Bytes that may wait for a slow reader");
  add_limit(command, server, &ServerOptions::max_buffered,
            "Bytes that may wait on both sides of all connections");
}

/// Whole words only: max_sessions is the beginning of max_sessions_per_address.
void replace_word(std::string& text, std::string_view word, std::string_view with) {
  const auto is_part = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 ||
                                text[at] == '_' || text[at] == '-');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if (is_part(at - 1) || is_part(at + word.size())) continue;
    text.replace(at, word.size(), with);
    at += with.size() - 1;
  }
}

}  // namespace

void add_serve_options(CLI::App& command, ServeOptions& options) {
  add_basics(command, options);
  add_times(command, options.server);
  add_counts(command, options.server);
  add_text(command, "--config", options.config_file, "FILE", "More options, see below");
  command.parse_complete_callback([&command, &options] {
    if (!options.config_file.empty()) read_config(command, options.config_file);
  });
}

ServerOptions server_options(const ServeOptions& asked) {
  ServerOptions options = asked.server;
  if (asked.cut_damage) options.on_damage = ServerOptions::Damage::kCut;
  if (!asked.tls.cert_file.empty() || !asked.tls.key_file.empty() ||
      !asked.tls.client_ca_file.empty() || asked.require_client_certificate) {
    options.tls = asked.tls;
    if (asked.require_client_certificate) {
      options.tls->clients = ServerTls::Clients::kMustShowCertificate;
    }
  }
  return options;
}

std::string missing_of_tls(const ServerOptions& options) {
  if (!options.tls) return {};
  const ServerTls& tls = *options.tls;
  if (tls.cert_file.empty() || tls.key_file.empty()) {
    return "TLS needs --tls-cert FILE and --tls-key FILE: the certificate and its private key go "
           "together";
  }
  if (tls.clients == ServerTls::Clients::kMustShowCertificate && tls.client_ca_file.empty()) {
    return "--tls-require-client-cert needs --tls-client-ca FILE: who signs the clients'";
  }
  return {};
}

std::string as_typed(std::string message) {
  // One word alone may be just a word.
  const auto name_flag = [&](std::string_view field) {
    if (field.find('_') != std::string_view::npos) replace_word(message, field, flag_of(field));
  };
  for (const server::CountLimit& limit : server::kCountLimits) name_flag(limit.name);
  for (const server::TimeLimit& limit : server::kTimeLimits) name_flag(limit.name);
  name_flag("super_digest");
  return message;
}

}  // namespace latchkey::app
