#include "server/words.hpp"

#include <pwd.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "latchkey/version.hpp"
#include "tree/work.hpp"

namespace latchkey::server {
namespace {

using tree::Latency;
using tree::Peer;
using wire::Op;

/// Other words of ZooKeeper's: known, so that they are refused politely, and never answered.
constexpr std::array<std::string_view, 6> kRefused = {"crst", "dirs", "gtmk",
                                                      "hash", "srst", "stmk"};

std::string hex(std::int64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%llx", static_cast<unsigned long long>(number));
  return std::string("0x") + text.data();
}

std::int64_t whole_ms(std::int64_t us) { return us / 1'000; }

std::int64_t min_ms(const Latency& latency) {
  return latency.count == 0 ? 0 : whole_ms(latency.min_us);
}

/// As Java prints a double that was rounded to four places: "8.625", "0.0".
std::string average_ms(std::int64_t total_us, std::uint64_t count) {
  const double average =
      count == 0 ? 0 : static_cast<double>(total_us) / 1'000 / static_cast<double>(count);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.4f", average);
  std::string result = text.data();
  while (result.ends_with('0') && !result.ends_with(".0")) result.pop_back();
  return result;
}

/// Of reads and writes together.
struct Latencies {
  explicit Latencies(const tree::Statistics& statistics)
      : min(std::min(min_ms(statistics.reads), min_ms(statistics.writes))),
        max(whole_ms(std::max(statistics.reads.max_us, statistics.writes.max_us))),
        average(average_ms(statistics.reads.total_us + statistics.writes.total_us,
                           statistics.reads.count + statistics.writes.count)) {
    if (statistics.reads.count == 0) min = min_ms(statistics.writes);
    if (statistics.writes.count == 0) min = min_ms(statistics.reads);
  }

  std::int64_t min;
  std::int64_t max;
  std::string average;
};

/// Apache counts the root under both of its names.
std::size_t node_count(const Status& status) { return status.service.tree().nodes().count() + 1; }

const char* name_of(Op op) {
  switch (op) {
    case Op::kPing: return "PING";
    case Op::kCreateSession: return "SESS";
    case Op::kMulti: return "MULT";
    case Op::kMultiRead: return "MLTR";
    case Op::kCreate:
    case Op::kCreate2:
    case Op::kCreateTtl:
    case Op::kCreateContainer: return "CREA";
    case Op::kDelete:
    case Op::kDeleteContainer: return "DELE";
    case Op::kSetData: return "SETD";
    case Op::kReconfig: return "RECO";
    case Op::kSetAcl: return "SETA";
    case Op::kCloseSession: return "CLOS";
    case Op::kSync: return "SYNC";
    case Op::kCheck: return "CHEC";
    case Op::kExists: return "EXIS";
    case Op::kGetData: return "GETD";
    case Op::kSetWatches: return "SETW";
    case Op::kSetWatches2: return "STW2";
    case Op::kAddWatch: return "ADDW";
    case Op::kGetAcl: return "GETA";
    case Op::kGetChildren:
    case Op::kGetChildren2: return "GETC";
    case Op::kGetAllChildrenNumber: return "GETACN";
    case Op::kCheckWatches: return "CHKW";
    case Op::kRemoveWatches: return "REMW";
    case Op::kWhoAmI: return "HOMI";
    case Op::kGetEphemerals: return "GETE";
    default: return "NA";
  }
}

std::string session_details(const Peer& peer, const Status& status) {
  const tree::PeerStatistics& counts = peer.statistics;
  const auto since_boot = [](Instant at) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
  };
  const std::int64_t age_ms = since_boot(status.moment.now) - since_boot(peer.since);
  std::string text = ",sid=" + hex(peer.session) + ",lop=" + name_of(counts.last_op) +
                     ",est=" + std::to_string(status.moment.wall_ms - age_ms) +
                     ",to=" + std::to_string(peer.timeout_ms);
  if (counts.last_xid >= 0) text += ",lcxid=" + hex(counts.last_xid);
  return text + ",lzxid=" + hex(counts.last_zxid) +
         ",lresp=" + std::to_string(since_boot(counts.last_response)) +
         ",llat=" + std::to_string(counts.last_latency_ms) +
         ",minlat=" + std::to_string(min_ms(counts.latency)) + ",avglat=" +
         std::to_string(counts.latency.count == 0
                            ? 0
                            : whole_ms(counts.latency.total_us) /
                                  static_cast<std::int64_t>(counts.latency.count)) +
         ",maxlat=" + std::to_string(whole_ms(counts.latency.max_us));
}

enum class Detail { kBrief, kFull };

std::string connections(const Status& status, Detail detail) {
  std::string text;
  // In the order of arrival.
  std::map<tree::PeerId, const Peer*> peers;
  for (const auto& [id, peer] : status.service.peers()) peers[id] = peer.get();
  for (const auto& [id, peer] : peers) {
    text += " /" + peer->address + "[1](queued=" + std::to_string(peer->requests) +
            ",recved=" + std::to_string(peer->statistics.received) +
            ",sent=" + std::to_string(peer->statistics.sent);
    if (detail == Detail::kFull && peer->session != 0) text += session_details(*peer, status);
    text += ")\n";
  }
  return text + "\n";
}

std::string srvr(const Status& status, std::string_view clients = {}) {
  const tree::Statistics& counts = status.service.statistics();
  const Latencies latency(counts);
  std::string text = "Zookeeper version: " + full_version() + "\n";
  text += clients;
  text += "Latency min/avg/max: " + std::to_string(latency.min) + "/" + latency.average + "/" +
          std::to_string(latency.max) + "\n";
  text += "Received: " + std::to_string(counts.received) + "\n";
  text += "Sent: " + std::to_string(counts.sent) + "\n";
  text += "Connections: " + std::to_string(status.connections) + "\n";
  text += "Outstanding: " + std::to_string(status.service.in_flight()) + "\n";
  text += "Zxid: " + hex(status.service.tree().applied_zxid()) + "\n";
  text += "Mode: standalone\n";
  text += "Node count: " + std::to_string(node_count(status)) + "\n";
  if (status.journal_damaged) text += "Journal: DAMAGED, see the log\n";
  return text;
}

std::string stat(const Status& status) {
  return srvr(status, "Clients:\n" + connections(status, Detail::kBrief));
}

/// Visits what is in a folder; a folder that cannot be read on ends there.
template <class Visit>
void visit_folder(const std::filesystem::path& folder, Visit visit) {
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) visit(*at);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  visit_folder("/proc/self/fd", [&](const auto&) { ++count; });
  return count;
}

std::uint64_t most_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

std::string mntr(const Status& status, std::size_t descriptors) {
  const tree::Statistics& counts = status.service.statistics();
  const tree::Tree& tree = status.service.tree();
  const Latencies latency(counts);
  const auto uptime =
      std::chrono::duration_cast<std::chrono::milliseconds>(status.moment.now - status.started);
  std::string text;
  const auto line = [&text](const char* key, const std::string& value) {
    text += std::string("zk_") + key + "\t" + value + "\n";
  };
  const auto number = [&line](const char* key, auto value) { line(key, std::to_string(value)); };
  line("version", full_version());
  line("server_state", "standalone");
  number("ephemerals_count", tree.nodes().ephemeral_count());
  line("avg_latency", latency.average);
  number("num_alive_connections", status.connections);
  number("outstanding_requests", status.service.in_flight());
  number("znode_count", node_count(status));
  number("global_sessions", tree.sessions().size());
  number("packets_sent", counts.sent);
  number("packets_received", counts.received);
  number("min_latency", latency.min);
  number("max_latency", latency.max);
  number("watch_count", tree.watches().size());
  number("approximate_data_size", tree.nodes().bytes());
  number("open_file_descriptor_count", descriptors);
  number("max_file_descriptor_count", most_descriptors());
  number("local_sessions", 0);
  number("uptime", uptime.count());
  number("connection_rejected", status.turned_away);
  number("connection_request_count", counts.sessions_opened + counts.reattached);
  number("stale_sessions_expired", counts.sessions_expired);
  number("snap_count", status.folds);
  // Apache has no such lines, so they are there only when there is something to say.
  if (status.fold_errors > 0) number("snap_error_count", status.fold_errors);
  if (status.journal_damaged) number("journal_damaged", 1);
  number("commit_count", status.commits.entries);
  return text;
}

std::uintmax_t folder_bytes(const std::filesystem::path& folder) {
  std::uintmax_t bytes = 0;
  visit_folder(folder, [&](const std::filesystem::directory_entry& entry) {
    std::error_code error;
    const std::uintmax_t size = entry.file_size(error);
    if (!error) bytes += size;
  });
  return bytes;
}

std::string conf(const Status& status) {
  const ServerOptions& options = status.options;
  const std::string port = status.port == 0 ? "-1" : std::to_string(status.port);
  const std::filesystem::path& folder = options.data_folder;
  const std::string& where = folder.native();
  const std::string bytes = std::to_string(folder.empty() ? 0 : folder_bytes(folder));
  return "clientPort=" + (options.tls ? "-1" : port) +
         "\nsecureClientPort=" + (options.tls ? port : "-1") + "\ndataDir=" + where +
         "\ndataDirSize=" + bytes + "\ndataLogDir=" + where + "\ndataLogSize=" + bytes +
         "\ntickTime=" + std::to_string(options.tick.count()) +
         "\nmaxClientCnxns=" + std::to_string(options.max_connections_per_address) +
         "\nminSessionTimeout=" + std::to_string(options.min_session_timeout.count()) +
         "\nmaxSessionTimeout=" + std::to_string(options.max_session_timeout.count()) +
         "\nclientPortListenBacklog=-1\nserverId=0\n";
}

std::string envi(const Surroundings& around) {
  utsname system{};
  ::uname(&system);
  return "Environment:\nzookeeper.version=" + full_version() + "\nhost.name=" + system.nodename +
         "\nos.name=" + system.sysname + "\nos.arch=" + system.machine +
         "\nos.version=" + system.release + "\nuser.name=" + around.user +
         "\nuser.home=" + around.home + "\nuser.dir=" + around.folder + "\n";
}

/// Of the watches on data only, as Apache.
std::string wchs(const Status& status) {
  const tree::Watches::DataCounts& counts = status.service.tree().watches().data_counts();
  return std::to_string(counts.peers) + " connections watching " + std::to_string(counts.paths) +
         " paths\nTotal watches:" + std::to_string(counts.watches) + "\n";
}

/// Watches on data, as Apache lists them: a line for each group, then its members, indented.
std::string grouped(const std::map<std::string, std::set<std::string>>& groups) {
  std::string text;
  for (const auto& [group, members] : groups) {
    text += group + "\n";
    for (const std::string& member : members) text += "\t" + member + "\n";
  }
  return text + "\n";
}

std::string session_of(const Status& status, tree::PeerId peer) {
  const auto found = status.service.peers().find(peer);
  return hex(found == status.service.peers().end() ? 0 : found->second->session);
}

std::string wchc(const Status& status) {
  std::map<std::string, std::set<std::string>> paths;
  status.service.tree().watches().visit_data([&](tree::PeerId peer, std::string_view path) {
    paths[session_of(status, peer)].emplace(path);
  });
  return grouped(paths);
}

std::string wchp(const Status& status) {
  std::map<std::string, std::set<std::string>> sessions;
  status.service.tree().watches().visit_data([&](tree::PeerId peer, std::string_view path) {
    sessions[std::string(path)].insert(session_of(status, peer));
  });
  return grouped(sessions);
}

/// "Sun Nov 15 16:37:46 UTC 2026".
std::string date(std::int64_t wall_ms) {
  const time_t seconds = wall_ms / 1'000;
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%a %b %d %H:%M:%S UTC %Y", &parts);
  return text.data();
}

/// When a session runs out unless it is heard of; one that is ending does so now.
std::int64_t end_of(tree::SessionId session, const Status& status) {
  const Instant now = status.moment.now;
  const Duration left = status.service.deadline_of(session).value_or(now) - now;
  const auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  return (status.moment.wall_ms + left_ms) / 1'000;
}

std::string dump(const Status& status) {
  const tree::Tree& tree = status.service.tree();
  // By the moment at which they run out unless they are heard of, in seconds as it is shown.
  std::map<std::int64_t, std::vector<tree::SessionId>> by_end;
  std::map<tree::SessionId, std::string> ephemerals;
  for (const auto& [id, session] : tree.sessions()) {
    by_end[end_of(id, status)].push_back(id);
    for (const std::string_view path : tree.nodes().ephemerals(id)) {
      ephemerals[id] += "\t" + std::string(path) + "\n";
    }
  }
  std::string text = "SessionTracker dump:\nSession Sets (" + std::to_string(by_end.size()) +
                     ")/(" + std::to_string(tree.sessions().size()) + "):\n";
  for (auto& [second, ids] : by_end) {
    text += std::to_string(ids.size()) + " expire at " + date(second * 1'000) + ":\n";
    std::ranges::sort(ids);
    for (const tree::SessionId id : ids) text += "\t" + hex(id) + "\n";
  }
  text += "ephemeral nodes dump:\nSessions with Ephemerals (" + std::to_string(ephemerals.size()) +
          "):\n";
  for (const auto& [id, paths] : ephemerals) text += hex(id) + ":\n" + paths;
  const std::string peers = std::to_string(status.service.peers().size());
  text += "Connections dump:\nConnections Sets (1)/(" + peers + "):\n";
  for (const auto& [id, peer] : status.service.peers()) {
    text += "\tip: /" + peer->address + " sessionId: " + hex(peer->session) + "\n";
  }
  return text;
}

/// What an answer that grows with what is there can take at most, about.
std::size_t most_bytes(std::string_view word, const Status& status) {
  constexpr std::size_t kNameBytes = 32;
  constexpr std::size_t kConnectionBytes = 512;
  const tree::Tree& tree = status.service.tree();
  const tree::Watches& watches = tree.watches();
  std::size_t bytes = 0;
  if (word == "stat" || word == "cons" || word == "dump") {
    bytes += kConnectionBytes * status.service.peers().size();
  }
  if (word == "dump") {
    bytes += 3 * kNameBytes * tree.sessions().size() + tree.nodes().ephemeral_bytes();
  }
  if (word == "wchp") bytes += watches.bytes() + kNameBytes * watches.size();
  if (word == "wchc") bytes += watches.bytes_of_peers() + kNameBytes * watches.size();
  return bytes;
}

/// What an answer takes beyond its bytes: who is sorted, and looked up.
std::uint64_t work_of(std::string_view word, const Status& status) {
  constexpr std::uint64_t kSortWork = 4 * tree::kLookWork;
  const tree::Tree& tree = status.service.tree();
  const std::size_t peers = status.service.peers().size();
  if (word == "stat" || word == "cons") return kSortWork * peers;
  if (word == "wchc" || word == "wchp") return kSortWork * tree.watches().data_counts().watches;
  if (word != "dump") return 0;
  return kSortWork * (tree.sessions().size() + tree.nodes().ephemeral_count() + peers);
}

tree::WordAnswer answer(std::string_view word, const Status& status) {
  if (most_bytes(word, status) > status.options.max_output_per_connection) {
    return {std::string(word) + " is not executed because its answer would be too long.\n"};
  }
  if (word == "mntr") {
    // The system makes up a line for each.
    const std::size_t descriptors = open_descriptors();
    return {mntr(status, descriptors), 2 * tree::kLookWork * descriptors};
  }
  const std::uint64_t work = work_of(word, status);
  if (word == "ruok") return {"imok", work};
  if (word == "isro") return {"rw", work};
  if (word == "srvr") return {srvr(status), work};
  if (word == "stat") return {stat(status), work};
  if (word == "conf") return {conf(status), work};
  if (word == "cons") return {connections(status, Detail::kFull), work};
  if (word == "envi") return {envi(status.around), work};
  if (word == "wchs") return {wchs(status), work};
  if (word == "wchc") return {wchc(status), work};
  if (word == "wchp") return {wchp(status), work};
  return {dump(status), work};
}

}  // namespace

std::string full_version() {
  return "3.8.0-latchkey-" LATCHKEY_VERSION ", built on " LATCHKEY_BUILT;
}

Surroundings look_around(const ServerOptions& options) {
  Surroundings around;
  if (std::ranges::find(options.words, "envi") == options.words.end()) return around;
  passwd entry{};
  passwd* user = nullptr;
  std::array<char, 1'024> strings{};
  ::getpwuid_r(::getuid(), &entry, strings.data(), strings.size(), &user);
  if (user != nullptr) around = {user->pw_name, user->pw_dir, {}};
  std::error_code error;
  around.folder = std::filesystem::current_path(error).string();
  return around;
}

const std::vector<std::string>& known_words() {
  static const std::vector<std::string> kWords = {"ruok", "srvr", "stat", "mntr", "conf", "cons",
                                                  "envi", "isro", "wchs", "wchc", "wchp", "dump"};
  return kWords;
}

Result<std::vector<std::string>> settle_words(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "all") return known_words();
    if (std::ranges::find(known_words(), word) != known_words().end()) continue;
    std::string list;
    for (const std::string& known : known_words()) list += " " + known;
    return Error(Code::kInvalidOption,
                 "\"" + word + "\" is no word to answer; choose from" + list + ", or say all");
  }
  return words;
}

std::optional<tree::WordAnswer> answer_word(std::string_view word, const Status& status) {
  const std::vector<std::string>& allowed = status.options.words;
  if (std::ranges::find(allowed, word) != allowed.end()) return answer(word, status);
  if (std::ranges::find(known_words(), word) != known_words().end() ||
      std::ranges::find(kRefused, word) != kRefused.end()) {
    return tree::WordAnswer{std::string(word) +
                            " is not executed because it is not in the whitelist.\n"};
  }
  return std::nullopt;
}

}  // namespace latchkey::server
