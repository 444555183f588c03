#include "server/metrics.hpp"

#include <cstdio>
#include <map>

#include "latchkey/version.hpp"

namespace latchkey::server {
namespace {

using wire::Op;

/// A request line and headers of a scraper are a few hundred bytes.
constexpr std::size_t kLongestRequest = 8'192;

std::string decimal(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

std::string seconds(std::int64_t us) { return decimal(static_cast<double>(us) / 1e6); }

/// Writes metrics one after the other.
class Page {
 public:
  void head(const std::string& name, const char* type, const char* help) {
    text_ +=
        "# HELP latchkey_" + name + " " + help + "\n# TYPE latchkey_" + name + " " + type + "\n";
  }
  void line(const std::string& name, const std::string& labels, const std::string& value) {
    text_ += "latchkey_" + name;
    if (!labels.empty()) text_ += "{" + labels + "}";
    text_ += " " + value + "\n";
  }
  void gauge(const std::string& name, const char* help, std::uint64_t value) {
    head(name, "gauge", help);
    line(name, {}, std::to_string(value));
  }
  void counter(const std::string& name, const char* help, std::uint64_t value) {
    head(name, "counter", help);
    line(name, {}, std::to_string(value));
  }

  /// `bounds` and `classes` as tree::Latency has them: the last class has no bound.
  template <class Bounds, class Classes, class Print>
  void histogram(const std::string& name, const std::string& label, const Bounds& bounds,
                 const Classes& classes, const std::string& sum, Print print) {
    std::uint64_t so_far = 0;
    const std::string more = label.empty() ? "" : label + ",";
    for (std::size_t i = 0; i < classes.size(); ++i) {
      so_far += classes[i];
      const std::string bound = i < bounds.size() ? print(bounds[i]) : "+Inf";
      line(name + "_bucket", more + "le=\"" + bound + "\"", std::to_string(so_far));
    }
    line(name + "_sum", label, sum);
    line(name + "_count", label, std::to_string(so_far));
  }
  void latency(const std::string& name, const std::string& label, const tree::Latency& latency) {
    histogram(name, label, tree::Latency::kBoundsUs, latency.classes, seconds(latency.total_us),
              seconds);
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write_requests(Page& page, const tree::Statistics& counts) {
  page.head("requests_total", "counter", "Requests by operation.");
  // Operations that nobody knows share a name.
  std::map<std::string, std::uint64_t> requests;
  for (const auto& [op, count] : counts.requests) requests[std::string(name(op))] += count;
  for (const auto& [name, count] : requests) {
    page.line("requests_total", "op=\"" + name + "\"", std::to_string(count));
  }
  page.counter("requests_refused_total", "Requests answered with an error.", counts.refused);
  page.head("request_seconds", "histogram", "From the arrival of a request to its answer.");
  page.latency("request_seconds", "kind=\"read\"", counts.reads);
  page.latency("request_seconds", "kind=\"write\"", counts.writes);
  page.counter("frames_received_total", "Frames, handshakes and words received.", counts.received);
  page.counter("frames_sent_total", "Frames sent.", counts.sent);
  page.counter("notices_total", "Watch events sent.", counts.notices);
}

void write_sessions(Page& page, const Status& status) {
  const tree::Statistics& counts = status.service.statistics();
  page.gauge("sessions", "Sessions that are there.", status.service.tree().sessions().size());
  page.gauge("sessions_bound_to_process", "Sessions that will end with their process.",
             status.bound_sessions);
  page.gauge("processes_watched", "Processes that have such sessions.", status.watched_processes);
  page.counter("bonds_refused_total", "Sessions left to their time-out for want of descriptors.",
               status.bonds_refused);
  page.counter("sessions_opened_total", "Sessions opened.", counts.sessions_opened);
  page.counter("sessions_refused_total", "Sessions refused for their number.",
               counts.sessions_refused);
  page.counter("sessions_closed_total", "Sessions closed by their client.", counts.sessions_closed);
  page.counter("sessions_expired_total", "Sessions that ran out.", counts.sessions_expired);
  page.counter("sessions_ended_with_process_total", "Sessions ended because their process had.",
               status.ended_with_process);
  page.counter("sessions_reattached_total", "Connections that took up a session again.",
               counts.reattached);
  page.counter("attach_refused_total", "Connections that asked for a session they cannot have.",
               counts.attach_refused);
  page.gauge("connections", "Connections that are open.", status.connections);
  page.counter("connections_accepted_total", "Connections accepted.", status.accepted);
  page.counter("connections_turned_away_total", "Connections refused for their number.",
               status.turned_away);
  page.counter("slow_readers_closed_total", "Connections closed because they did not read.",
               counts.slow_readers_closed);
  page.counter("crowded_out_total", "Connections closed because all together held too much.",
               counts.crowded_out);
}

void write_tree(Page& page, const Status& status) {
  const tree::Tree& tree = status.service.tree();
  page.gauge("nodes", "Nodes, those of the system included.", tree.nodes().count());
  page.gauge("ephemeral_nodes", "Ephemeral nodes.", tree.nodes().ephemeral_count());
  page.gauge("data_bytes", "Bytes of paths and data.", tree.nodes().bytes());
  page.gauge("watches", "Watches.", tree.watches().size());
  page.counter("reaped_total", "Containers and TTL nodes removed.",
               status.service.statistics().reaped);
  page.gauge("zxid", "The newest zxid that may be seen.",
             static_cast<std::uint64_t>(tree.applied_zxid()));
}

void write_queues(Page& page, const Status& status) {
  std::size_t output_bytes = 0;
  std::size_t requests = 0;
  for (const auto& [id, peer] : status.service.peers()) {
    output_bytes += peer->output.size() + peer->unwritten;
    requests += peer->requests;
  }
  page.gauge("commit_queue", "Decisions that wait for the disk.", status.service.in_flight());
  page.gauge("requests_in_flight", "Requests accepted and not answered.", requests);
  page.gauge("in_flight_bytes", "Bytes of what was accepted and not answered.",
             status.service.in_flight_bytes());
  page.gauge("output_bytes", "Bytes that wait for a connection to take them.", output_bytes);
  page.gauge("buffered_bytes", "Those, and bytes of requests that are not whole or held back.",
             status.service.buffered_bytes());
}

void write_commits(Page& page, const CommitStatistics& commits) {
  page.head("batch_entries", "histogram", "Decisions made durable together.");
  page.histogram("batch_entries", {}, CommitStatistics::kBounds, commits.classes,
                 std::to_string(commits.entries),
                 [](std::size_t bound) { return std::to_string(bound); });
  page.head("sync_seconds", "histogram", "How long a batch took to become durable.");
  page.latency("sync_seconds", {}, commits.sync);
}

std::string response(const char* status_line, const std::string& body) {
  return std::string("HTTP/1.1 ") + status_line +
         "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
}

}  // namespace

std::string exposition(const Status& status) {
  Page page;
  page.head("build_info", "gauge", "Always 1.");
  page.line("build_info", "version=\"" LATCHKEY_VERSION "\"", "1");
  const auto up =
      std::chrono::duration_cast<std::chrono::microseconds>(status.moment.now - status.started);
  page.head("uptime_seconds", "gauge", "Since the server started.");
  page.line("uptime_seconds", {}, seconds(up.count()));
  page.counter("turns_total",
               "Turns of the loop; answers leave after each, and when a batch is durable.",
               status.turns);
  write_requests(page, status.service.statistics());
  write_queues(page, status);
  write_commits(page, status.commits);
  write_sessions(page, status);
  write_tree(page, status);
  page.counter("folds_total", "Snapshots made.", status.folds);
  page.counter("fold_errors_total", "Snapshots that could not be made.", status.fold_errors);
  page.gauge("journal_damaged", "1: what is stored cannot be read back; see the log.",
             status.journal_damaged ? 1 : 0);
  page.head("stalled_seconds_total", "counter", "Time the server was held up.");
  page.line("stalled_seconds_total", {}, decimal(static_cast<double>(status.stalled_ms) / 1e3));
  return page.take();
}

std::optional<std::string> answer_scrape(std::string_view request, const Status& status) {
  if (request.size() > kLongestRequest) {
    return response("431 Request Header Fields Too Large", "too long\n");
  }
  if (request.find("\r\n\r\n") == std::string_view::npos &&
      request.find("\n\n") == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view line = request.substr(0, request.find_first_of("\r\n"));
  if (!line.starts_with("GET ")) return response("405 Method Not Allowed", "only GET\n");
  const std::string_view target = line.substr(4, line.find_first_of(" ?", 4) - 4);
  if (target != "/metrics") return response("404 Not Found", "look at /metrics\n");
  return response("200 OK", exposition(status));
}

}  // namespace latchkey::server
