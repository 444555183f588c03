#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <asio/system_error.hpp>

#include "server/driver.hpp"
#include "server/metrics.hpp"

// What comes through the doors, and what becomes of it.
namespace latchkey::server {
namespace {

/// Connections accepted in one go: others have news too.
constexpr int kMostAccepts = 64;
constexpr std::chrono::seconds kPartingTime(2);
/// For a client to take the last words.
constexpr std::chrono::seconds kLastWordsTime(30);
constexpr std::size_t kMostMetricsReaders = 64;
/// A handshake takes about a millisecond, as long as so many events.
constexpr std::size_t kEventsOfHandshake = 16;
/// New keys come in some 30 bytes and take some microseconds, so that these take as long as one.
constexpr std::size_t kTlsBytesOfEvent = 256;
constexpr std::size_t kMostTlsBytesInATurn = 4'096;

}  // namespace

void Driver::open_door(Listener listener, Connection::Kind kind) {
  if (kind == Connection::Kind::kMetrics) {
    metrics_address_ = listener.address();
  } else {
    addresses_.push_back(listener.address());
    if (port_ == 0) port_ = listener.port();
  }
  const int fd = listener.release();
  doors_.push_back({std::move(listener), kind, asio::posix::stream_descriptor(context_, fd)});
}

void Driver::wait_to_accept(Door& door) {
  door.socket.async_wait(asio::posix::stream_descriptor::wait_read,
                         in_turn([this, &door](const asio::error_code& error) {
                           // The doors go only when the server stops, and all of them.
                           if (error || stopping_ || finished_) return;
                           accept(door);
                         }));
}

void Driver::accept(Door& door) {
  for (int i = 0; i < kMostAccepts; ++i) {
    const int fd =
        ::accept4(door.socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && fd < most_descriptors_) {
      admit(fd, door);
    } else if (fd >= 0) {
      // The system gives the lowest number that is free: all below are taken. The rest is for the
      // journal, which could not go on without.
      ::close(fd);
      ++turned_away_;
      log_(LogLevel::kWarning, "turned a connection away on " + door.listener.address() +
                                   ": the process has few descriptors left (RLIMIT_NOFILE)");
      door.rests_until = BootClock::now() + kSweep;
      return;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log_(LogLevel::kWarning, "cannot accept a connection on " + door.listener.address() + ": " +
                                   std::generic_category().message(errno));
      // Trying again at once would fail at once.
      door.rests_until = BootClock::now() + kSweep;
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      break;
    }
  }
  wait_to_accept(door);
}

bool Driver::has_room_for(const Remote& remote) const {
  if (connections_.size() >= options_.max_connections) return false;
  const auto same = from_address_.find(remote.origin);
  return remote.is_local || same == from_address_.end() ||
         same->second < options_.max_connections_per_address;
}

void Driver::admit(int fd, const Door& door) {
  const bool for_metrics = door.kind == Connection::Kind::kMetrics;
  const bool secure = tls_ && !for_metrics && !door.listener.is_unix();
  Descriptor descriptor(fd);
  const Remote remote = remote_of(fd);
  if (for_metrics ? metrics_readers_ >= kMostMetricsReaders : !has_room_for(remote)) {
    ++turned_away_;
    return;
  }
  const Instant moment = BootClock::now();
  const std::uint64_t id = ++last_connection_;
  std::unique_ptr<Connection> made;
  try {
    made = std::make_unique<Connection>(context_, id, std::move(descriptor), door.kind,
                                        secure ? tls_.get() : nullptr, remote);
  } catch (const asio::system_error& error) {
    return log_(LogLevel::kWarning, std::string("cannot serve a connection: ") + error.what());
  }
  ++accepted_;
  ++from_address_[remote.origin];
  if (for_metrics) ++metrics_readers_;
  Connection& connection = *connections_.emplace(id, std::move(made)).first->second;
  if (secure || for_metrics) {
    brief_[id] = moment + service_.options().handshake_timeout;
  } else {
    introduce(connection);
  }
  wait_to_read(connection);
}

void Driver::introduce(Connection& connection) {
  tree::Service::PeerInfo info;
  info.address = connection.remote.address;
  info.origin = connection.remote.origin;
  info.identities.push_back({"ip", connection.remote.ip});
  if (std::string subject = connection.subject(); !subject.empty()) {
    info.identities.push_back({"x509", std::move(subject)});
  }
  connection.peer = service_.connect(std::move(info), now());
  peers_[connection.peer] = &connection;
}

Connection* Driver::find(std::uint64_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

// Reading.

void Driver::wait_to_read(Connection& connection) {
  if (connection.reading) return;
  connection.reading = true;
  connection.socket().async_wait(Connection::Socket::wait_read,
                                 in_turn([this, id = connection.id](const asio::error_code& error) {
                                   Connection* readable_one = find(id);
                                   if (error || finished_ || readable_one == nullptr) return;
                                   readable_one->reading = false;
                                   if (!stopping_) readable(*readable_one);
                                 }));
}

void Driver::count_tls(Connection& connection, bool was_open) {
  const std::size_t bytes = connection.read_for_tls();
  if (!was_open) tls_events_ += kEventsOfHandshake;
  tls_events_ += bytes / kTlsBytesOfEvent;
  if (bytes < kMostTlsBytesInATurn || std::exchange(connection.rests, true)) return;
  resting_.push_back(connection.id);
}

void Driver::wake_resting() {
  tls_events_ = 0;
  for (const std::uint64_t id : std::exchange(resting_, {})) {
    Connection* connection = find(id);
    if (connection == nullptr) continue;
    connection->rests = false;
    if (wants_input(*connection)) wait_to_read(*connection);
  }
}

void Driver::readable(Connection& connection) {
  std::string_view bytes;
  const bool was_open = connection.is_open();
  const Connection::Read read = connection.read(buffer_, bytes);
  count_tls(connection, was_open);
  switch (read) {
    case Connection::Read::kBroken: return drop(connection);
    case Connection::Read::kEnd: connection.ended = true; break;
    case Connection::Read::kSome: take(connection, bytes); break;
    case Connection::Read::kNothing: break;
  }
  if (connection.ended && connection.peer == 0) return drop(connection);
  // Answers wait for the end of the turn; a handshake of TLS does not, and after the end of its
  // input a connection may have no other event.
  if (connection.ended || (connection.has_unsent() && !connection.writing)) {
    return serve(connection);
  }
  if (wants_input(connection)) wait_to_read(connection);
}

void Driver::take(Connection& connection, std::string_view bytes) {
  if (connection.leaving) return;
  if (connection.kind == Connection::Kind::kMetrics) return take_metrics_request(connection, bytes);
  if (connection.peer == 0 && connection.is_open()) {
    brief_.erase(connection.id);
    introduce(connection);
  }
  if (!bytes.empty()) service_.receive(connection.peer, bytes, now());
}

bool Driver::wants_input(const Connection& connection) {
  if (connection.ended || connection.rests || stopping_) return false;
  return connection.peer == 0 || service_.wants_input(connection.peer);
}

void Driver::take_metrics_request(Connection& connection, std::string_view bytes) {
  connection.request += bytes;
  const std::optional<std::string> answer = answer_scrape(connection.request, status());
  if (!answer) return;
  connection.add(*answer);
  connection.leaving = true;
}

// Writing, and what follows from it.

void Driver::wait_to_write(Connection& connection) {
  connection.writing = true;
  connection.socket().async_wait(Connection::Socket::wait_write,
                                 in_turn([this, id = connection.id](const asio::error_code& error) {
                                   Connection* writable_one = find(id);
                                   if (error || finished_ || writable_one == nullptr) return;
                                   writable_one->writing = false;
                                   serve(*writable_one);
                                 }));
}

void Driver::serve(Connection& connection) {
  using Closing = tree::Service::Closing;
  const Closing closing = closing_of(connection);
  if (closing == Closing::kNow) return drop(connection);
  if (connection.writing) {
    if (closing != Closing::kNo) hurry(connection);
    // What fits is heard while it does not take its answers, heartbeats above all (H85).
    if (wants_input(connection)) wait_to_read(connection);
    return;
  }
  while (connection.has_unsent() || add_output(connection)) {
    switch (connection.write()) {
      case Connection::Write::kBroken: return drop(connection);
      case Connection::Write::kBlocked:
        service_.left_unwritten(connection.peer, connection.unsent_bytes(), now());
        if (closing != Closing::kNo) hurry(connection);
        wait_to_write(connection);
        if (wants_input(connection)) wait_to_read(connection);
        return;
      case Connection::Write::kDone: break;
    }
  }
  if (is_idle(connection)) {
    if (connection.ended) return drop(connection);
    // Asked again: its last answer may have been given just now.
    if (closing_of(connection) == Closing::kAfterOutput || connection.leaving) {
      return part(connection);
    }
  }
  if (wants_input(connection)) wait_to_read(connection);
}

tree::Service::Closing Driver::closing_of(const Connection& connection) const {
  if (connection.peer == 0) return tree::Service::Closing::kNo;
  return service_.closing(connection.peer);
}

bool Driver::add_output(Connection& connection) {
  if (connection.peer == 0) return false;
  std::string output = service_.take_output(connection.peer, now());
  if (output.empty()) return false;
  connection.add(std::move(output));
  return true;
}

void Driver::hurry(const Connection& connection) {
  brief_.try_emplace(connection.id, BootClock::now() + kLastWordsTime);
}

bool Driver::is_idle(const Connection& connection) const {
  const auto found = service_.peers().find(connection.peer);
  if (found == service_.peers().end()) return true;
  const tree::Peer& peer = *found->second;
  // What stands in line for the disk, or waits for its turn, was sent in time and will be answered.
  const bool waits = (peer.in_line || peer.rests) && peer.state != tree::Peer::State::kLeaving;
  return peer.requests == 0 && peer.output.empty() && !waits;
}

void Driver::part(Connection& connection) {
  forget_peer(connection);
  connection.leaving = true;
  connection.end_output();
  brief_[connection.id] = BootClock::now() + kPartingTime;
  wait_to_read(connection);
}

void Driver::forget_peer(Connection& connection) {
  if (connection.peer == 0) return;
  peers_.erase(connection.peer);
  service_.disconnect(std::exchange(connection.peer, 0), now());
}

void Driver::drop(Connection& connection) {
  forget_peer(connection);
  brief_.erase(connection.id);
  const auto same = from_address_.find(connection.remote.origin);
  if (--same->second == 0) from_address_.erase(same);
  if (connection.kind == Connection::Kind::kMetrics) --metrics_readers_;
  connections_.erase(connection.id);
}

}  // namespace latchkey::server
