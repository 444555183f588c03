#include "support/proxy_link.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "wire/jute.hpp"

namespace latchkey::test_support {

namespace {

constexpr std::size_t kPrefix = 4;
constexpr std::uint32_t kLongestFrame = 64U << 20U;
constexpr std::size_t kFullQueue = 4U << 20U;

std::uint32_t frame_length(std::string_view bytes) {
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < kPrefix; ++i) {
    length = (length << 8U) | static_cast<unsigned char>(bytes[i]);
  }
  return length;
}

bool begins_with_path(wire::Op op) {
  switch (op) {
    case wire::Op::kPing:
    case wire::Op::kMulti:
    case wire::Op::kMultiRead:
    case wire::Op::kAuth:
    case wire::Op::kSasl:
    case wire::Op::kSetWatches:
    case wire::Op::kSetWatches2:
    case wire::Op::kReconfig:
    case wire::Op::kWhoAmI:
    case wire::Op::kCreateSession:
    case wire::Op::kCloseSession: return false;
    default: return true;
  }
}

}  // namespace

ProxyLink::ProxyLink(Context context, int number, Fd client, Fd server)
    : context_(context),
      number_(number),
      client_(std::move(client)),
      server_(std::move(server)),
      opaque_(context.framing == Framing::kOpaque) {}

ProxyLink::Interest ProxyLink::interest(const Holds& holds) const {
  Interest result;
  if (closed()) return result;
  const Instant now = BootClock::now();
  const auto wants_in = [](const Lane& lane) {
    return !lane.ended && lane.queued_bytes < kFullQueue;
  };
  const auto wants_out = [&](const Lane& lane) {
    return !lane.queue.empty() && lane.queue.front().due <= now;
  };
  if (!holds.to_server) {
    if (wants_in(to_server_)) result.client |= POLLIN;
    if (wants_out(to_server_)) result.server |= POLLOUT;
  }
  if (!holds.to_client) {
    if (wants_in(to_client_)) result.server |= POLLIN;
    if (wants_out(to_client_)) result.client |= POLLOUT;
  }
  return result;
}

Instant ProxyLink::next_due() const {
  const Instant now = BootClock::now();
  Instant earliest = Instant::max();
  for (const Lane* lane : {&to_server_, &to_client_}) {
    if (lane->queue.empty() || lane->queue.front().due <= now) continue;
    earliest = std::min(earliest, lane->queue.front().due);
  }
  return earliest;
}

void ProxyLink::serve(Interest reported, const Holds& holds) {
  constexpr short kIn = POLLIN | POLLHUP | POLLERR;
  if (!holds.to_server && (reported.client & kIn) != 0) {
    take_in(client_, to_server_, Direction::kToServer);
  }
  if (!closed() && !holds.to_client && (reported.server & kIn) != 0) {
    take_in(server_, to_client_, Direction::kToClient);
  }
  if (!closed() && !holds.to_server) flush(to_server_, server_);
  if (!closed() && !holds.to_client) flush(to_client_, client_);
  if (!closed()) finish_if_due();
}

void ProxyLink::release() {
  for (Lane* lane : {&to_server_, &to_client_}) {
    for (Segment& segment : lane->queue) segment.due = Instant::min();
  }
}

void ProxyLink::close(Ending ending) {
  if (closed()) return;
  for (Fd* fd : {&client_, &server_}) {
    std::string ignored;
    if (ending == Ending::kReset) close_with_reset(fd->get());
    while (ending == Ending::kOrderly && receive_some(fd->get(), ignored) == Received::kSome) {
    }
    fd->reset();
  }
  if (cut_) context_.log.note_fired(cut_->fault);
}

void ProxyLink::take_in(Fd& from, Lane& lane, Direction direction) {
  if (lane.ended) return;
  const std::size_t before = lane.inbox.size();
  switch (receive_some(from.get(), lane.inbox)) {
    case Received::kNothing: return;
    case Received::kEnd: lane.ended = true; return;
    case Received::kSome: break;
  }
  ++lane.reads;
  context_.log.add_bytes(direction, lane.inbox.size() - before);
  if (opaque_) {
    pass_unread(lane);
  } else {
    split(lane, direction);
  }
}

void ProxyLink::pass_unread(Lane& lane) {
  if (!lane.deaf) enqueue(lane, lane.inbox, std::chrono::milliseconds(0));
  lane.inbox.clear();
}

void ProxyLink::split(Lane& lane, Direction direction) {
  std::string_view rest = lane.inbox;
  while (rest.size() >= kPrefix && !lane.deaf) {
    const std::uint32_t length = frame_length(rest);
    if (length > kLongestFrame) {
      opaque_ = true;
      lane.inbox.erase(0, lane.inbox.size() - rest.size());
      return pass_unread(lane);
    }
    if (rest.size() < kPrefix + length) break;
    const std::string_view frame = rest.substr(0, kPrefix + length);
    if (direction == Direction::kToServer) {
      on_request(frame);
    } else {
      on_reply(frame);
    }
    rest.remove_prefix(frame.size());
  }
  if (lane.deaf) rest = {};
  lane.inbox.erase(0, lane.inbox.size() - rest.size());
}

void ProxyLink::on_request(std::string_view frame) {
  TrafficRecord record;
  record.connection = number_;
  record.direction = Direction::kToServer;
  record.flush = to_server_.reads;
  record.bytes = frame.size();
  record.at = BootClock::now();
  if (std::exchange(to_server_.greeted, true)) {
    wire::RequestHeader header;
    wire::Reader reader(frame.substr(kPrefix));
    reader(header);
    if (begins_with_path(header.op)) reader(record.path);
    record.op = header.op;
    record.xid = header.xid;
  } else {
    record.op = wire::Op::kCreateSession;
  }

  const std::optional<Fault> fault = context_.plan.strike_request(record.op, record.path);
  Awaited awaited{record.xid, record.op, record.path, std::nullopt};
  std::chrono::milliseconds delay{0};
  if (fault && fault->kind == FaultKind::kCutBeforeRequest) {
    cut_ = Cut{fault->id, CutWhen::kAnswered};
    to_server_.deaf = true;
    record.fate = Fate::kDropped;
  } else if (fault && fault->kind == FaultKind::kCutAfterRequest) {
    awaited.cut_instead = fault->id;
    to_server_.deaf = true;
  } else if (fault) {
    delay = fault->delay;
    context_.log.note_fired(fault->id);
  }
  if (record.fate == Fate::kForwarded) {
    awaited_.push_back(std::move(awaited));
    enqueue(to_server_, frame, delay);
  }
  context_.log.append(std::move(record));
}

void ProxyLink::on_reply(std::string_view frame) {
  TrafficRecord record;
  record.connection = number_;
  record.direction = Direction::kToClient;
  record.flush = to_client_.reads;
  record.bytes = frame.size();
  record.at = BootClock::now();
  wire::Reader reader(frame.substr(kPrefix));
  wire::ReplyHeader header;
  if (std::exchange(to_client_.greeted, true)) {
    reader(header);
  }
  record.xid = header.xid;
  record.err = header.err;
  Awaited awaited;
  if (header.xid == wire::kNotificationXid) {
    wire::WatcherEvent event;
    reader(event);
    awaited.path = std::move(event.path);
  } else {
    awaited = take_awaited(header.xid);
  }
  record.op = awaited.op;
  record.path = std::move(awaited.path);

  const std::optional<Fault> fault = context_.plan.strike_reply(record.op, record.path);
  const bool before_reply = fault && fault->kind == FaultKind::kCutBeforeReply;
  std::chrono::milliseconds delay{0};
  if (before_reply || awaited.cut_instead) {
    cut_ = Cut{awaited.cut_instead ? *awaited.cut_instead : fault->id, CutWhen::kDelivered};
    record.fate = Fate::kDropped;
  } else if (fault && fault->kind == FaultKind::kCutAfterReply) {
    cut_ = Cut{fault->id, CutWhen::kDelivered};
  } else if (fault) {
    delay = fault->delay;
    context_.log.note_fired(fault->id);
  }
  if (cut_ && cut_->when == CutWhen::kDelivered) to_server_.deaf = to_client_.deaf = true;
  if (record.fate == Fate::kForwarded) enqueue(to_client_, frame, delay);
  context_.log.append(std::move(record));
}

ProxyLink::Awaited ProxyLink::take_awaited(std::int32_t xid) {
  const auto found = std::find_if(awaited_.begin(), awaited_.end(),
                                  [&](const Awaited& awaited) { return awaited.xid == xid; });
  if (found == awaited_.end()) return {xid, wire::Op::kError, {}, std::nullopt};
  Awaited taken = std::move(*found);
  awaited_.erase(found);
  return taken;
}

void ProxyLink::enqueue(Lane& lane, std::string_view bytes, std::chrono::milliseconds delay) {
  // Whatever follows a delayed message waits behind it: the order on a connection never changes.
  const bool until_released = delay == std::chrono::milliseconds::max();
  const Instant due = until_released ? Instant::max() : BootClock::now() + delay;
  lane.queue.push_back({std::string(bytes), due});
  lane.queued_bytes += bytes.size();
}

void ProxyLink::flush(Lane& lane, Fd& to) {
  std::string batch;
  const Instant now = BootClock::now();
  while (!lane.queue.empty() && lane.queue.front().due <= now && batch.size() < kFullQueue) {
    batch += lane.queue.front().bytes;
    lane.queue.pop_front();
  }
  std::string_view rest = batch;
  while (!rest.empty()) {
    const ssize_t sent = ::send(to.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
      lane.queued_bytes -= static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == ENOTCONN) {
      break;
    } else if (errno != EINTR) {
      return close(Ending::kReset);
    }
  }
  if (!rest.empty()) lane.queue.push_front({std::string(rest), Instant::min()});
  if (lane.ended && lane.queue.empty() && !std::exchange(lane.passed_end, true)) {
    ::shutdown(to.get(), SHUT_WR);
  }
}

void ProxyLink::finish_if_due() {
  const bool server_gone = to_client_.ended;
  if (to_client_.passed_end && (to_server_.passed_end || cut_)) return close(Ending::kOrderly);
  if (!cut_ || !to_client_.queue.empty()) return;
  const bool answered = server_gone || (awaited_.empty() && to_server_.queue.empty());
  if (cut_->when == CutWhen::kDelivered || answered) close(Ending::kOrderly);
}

}  // namespace latchkey::test_support
