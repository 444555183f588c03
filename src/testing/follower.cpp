#include "testing/follower.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "testing/leader.hpp"
#include "tree/answer_read.hpp"
#include "tree/record.hpp"

namespace latchkey::testing {

using wire::Err;
using wire::Op;

Follower::Follower(std::size_t index, Process& process, Leader& leader, Timeline& timeline,
                   Network& network, const WorldOptions& options)
    : Server(index, process),
      leader_(leader),
      timeline_(timeline),
      network_(network),
      options_(options),
      tree_(std::make_unique<tree::Tree>(options.service.limits)),
      up_(timeline, leader.process(), options.link),
      down_(timeline, process, options.link) {}

Follower::Front* Follower::find(LinkId link) {
  const auto found = fronts_.find(link);
  return found == fronts_.end() ? nullptr : &found->second;
}

// Clients.

void Follower::accepted(LinkId link) {
  Front front(options_.service.max_frame);
  front.identities = {{"ip", "10.0.0.1"}};
  fronts_.emplace(link, std::move(front));
}

void Follower::received(LinkId link, std::string_view bytes) {
  Front* front = find(link);
  if (front == nullptr || front->closing) return;
  front->splitter.feed(bytes);
  while (true) {
    const auto frame = front->splitter.next();
    if (!frame) break;
    take_frame(link, *front, *frame);
    front = find(link);
    if (front == nullptr || front->closing) return;
  }
  if (front->splitter.broken()) close(link);
}

void Follower::take_frame(LinkId link, Front& front, std::string_view frame) {
  if (front.state == Front::State::kGreeting) return take_greeting(link, front, frame);
  take_request(link, front, frame);
}

void Follower::take_greeting(LinkId link, Front& front, std::string_view frame) {
  const auto greeting = wire::decode_connect_request(frame);
  if (!greeting || greeting->message.last_zxid_seen > tree_->applied_zxid()) return close(link);
  front.reattaches = greeting->message.session_id != 0;
  front.state = Front::State::kAttaching;
  wire::ConnectRequest request = greeting->message;
  if (request.timeout_ms <= longest_timeout_.count()) return forward(link, frame);
  request.timeout_ms = static_cast<std::int32_t>(longest_timeout_.count());
  std::string limited;
  wire::append_connect_request(limited, request, greeting->form);
  forward(link, std::string_view(limited).substr(4));
}

void Follower::take_request(LinkId link, Front& front, std::string_view frame) {
  constexpr std::size_t kHeaderSize = 8;
  if (frame.size() < kHeaderSize) return close(link);
  Item item;
  wire::Reader reader(frame.substr(0, kHeaderSize));
  reader(item.header);
  // Answered out of turn, and no sign of life.
  if (item.header.op == Op::kAuth) return forward(link, frame);
  front.touched = true;
  touch_later();
  if (deposed_ && item.header.op == Op::kSync) {
    item.forwarded = true;
    answer_sync(item, frame.substr(kHeaderSize));
  } else if (tree::is_read(item.header.op)) {
    item.body = frame.substr(kHeaderSize);
  } else {
    item.forwarded = true;
    if (front.moved) {
      item.answered = true;
      wire::append_frame(item.reply, wire::ReplyHeader{item.header.xid, tree_->applied_zxid(),
                                                       Err::kSessionMoved});
    } else {
      forward(link, frame);
    }
  }
  front.items.push_back(std::move(item));
  advance(link);
}

void Follower::answer_sync(Item& item, std::string_view body) {
  std::string path;
  wire::Reader reader(body);
  reader(path);
  item.answered = true;
  wire::append_frame(item.reply,
                     wire::ReplyHeader{item.header.xid, tree_->applied_zxid(), Err::kOk},
                     wire::CreateReply{path});
}

void Follower::forward(LinkId link, std::string_view frame) {
  std::string bytes;
  wire::Writer{bytes}(static_cast<std::int32_t>(frame.size()));
  bytes += frame;
  if (deposed_) return;  // Nobody follows it.
  up_.put([this, link, bytes = std::move(bytes)] { leader_.take_from(*this, link, bytes); });
}

void Follower::answer(LinkId link, Front& front, const Item& item) {
  const tree::ReadAnswer read =
      tree::answer_read(*tree_, {front.session, front.identities}, link, item.header.op, item.body,
                        options_.service.max_output_per_peer);
  send_notices(read.notices);
  std::string frame;
  wire::append_frame(frame, wire::ReplyHeader{item.header.xid, tree_->applied_zxid(), read.err});
  // The length was written for the header alone.
  const std::size_t length = frame.size() - 4 + read.body.size();
  std::string whole;
  wire::Writer{whole}(static_cast<std::int32_t>(length));
  whole.append(frame, 4);
  whole += read.body;
  network_.send(link, Way::kReply, std::move(whole));
}

void Follower::advance(LinkId link) {
  Front* front = find(link);
  if (front == nullptr) return;
  if (front->state == Front::State::kAttaching) {
    if (front->greeting.empty() || position_ < front->greeting_needs) return;
    front->state = Front::State::kServing;
    network_.send(link, Way::kReply, std::exchange(front->greeting, {}));
  }
  while (front != nullptr && !front->items.empty()) {
    Item& item = front->items.front();
    if (item.forwarded) {
      if (!item.answered) return;
      if (const std::uint64_t needed = needed_for(item.zxid); needed > position_) {
        wanted_ = std::max(wanted_, needed);
        catch_up();
        return;
      }
      if (item.zxid > tree_->applied_zxid()) tree_->show_refusal(item.zxid);
      network_.send(link, Way::kReply, std::move(item.reply));
      if (item.header.op == Op::kCloseSession) return close(link);
    } else {
      answer(link, *front, item);
    }
    front->items.pop_front();
    front = find(link);
  }
  if (front != nullptr && front->closing) close(link);
}

void Follower::advance_all() {
  for (auto it = fronts_.begin(); it != fronts_.end();) {
    const LinkId link = it->first;
    ++it;
    advance(link);
  }
}

void Follower::hung_up(LinkId link) {
  const Front* front = find(link);
  if (front == nullptr) return;
  const bool limited = longest_timeout_ != std::chrono::milliseconds::max();
  if (limited && front->session != 0) {
    late_touches_[front->session] = front->timeout;
    touch_later();
  }
  fronts_.erase(link);
  tree_->drop_watches(link);
  if (deposed_) return;
  up_.put([this, link] { leader_.take_hang_up(link); });
}

void Follower::close(LinkId link) {
  network_.hang_up(link, Way::kReply);
  hung_up(link);
}

void Follower::drop_clients() {
  while (!fronts_.empty()) close(fronts_.begin()->first);
}

// What the leader says.

void Follower::leader_ships(std::uint64_t end) {
  if (!joined_ || deposed_) return;
  down_.put([this, end] {
    known_ = std::max(known_, end);
    catch_up();
  });
}

void Follower::leader_sends(LinkId link, std::string bytes) {
  down_.put([this, link, bytes = std::move(bytes), end = leader_.log().end()] {
    take_bytes_of_leader(link, bytes, end);
  });
}

void Follower::leader_closes(LinkId link, bool moved) {
  down_.put([this, link, moved] { take_close_of_leader(link, moved); });
}

void Follower::take_bytes_of_leader(LinkId link, const std::string& bytes, std::uint64_t end) {
  wire::FrameSplitter splitter(bytes.size());
  splitter.feed(bytes);
  while (const auto frame = splitter.next()) {
    Front* front = find(link);
    if (front == nullptr) return;
    if (front->state == Front::State::kAttaching && front->greeting.empty()) {
      const auto greeting = wire::decode_connect_response(*frame);
      LATCHKEY_ASSERT(greeting.has_value());
      front->session = greeting->message.session_id;
      front->timeout = std::chrono::milliseconds(greeting->message.timeout_ms);
      wire::Writer{front->greeting}(static_cast<std::int32_t>(frame->size()));
      front->greeting += *frame;
      // A new session's first record has to be here; an old one's is, or its client would have
      // been turned away.
      front->greeting_needs = front->reattaches || front->session == 0 ? 0 : end;
      wanted_ = std::max(wanted_, front->greeting_needs);
      catch_up();
    } else {
      take_reply(link, *front, *frame);
    }
    advance(link);
  }
}

void Follower::take_reply(LinkId link, Front& front, std::string_view frame) {
  constexpr std::size_t kHeaderSize = 16;
  wire::ReplyHeader header;
  wire::Reader reader(frame.substr(0, kHeaderSize));
  reader(header);
  std::string whole;
  wire::Writer{whole}(static_cast<std::int32_t>(frame.size()));
  whole += frame;
  if (header.xid == wire::kAuthXid) {
    front.identities = leader_.identities_of(link);
    network_.send(link, Way::kReply, std::move(whole));
    return;
  }
  const auto item = std::ranges::find_if(
      front.items, [](const Item& each) { return each.forwarded && !each.answered; });
  LATCHKEY_ASSERT(item != front.items.end() && item->header.xid == header.xid);
  item->answered = true;
  item->zxid = header.zxid;
  item->reply = std::move(whole);
}

void Follower::take_close_of_leader(LinkId link, bool moved) {
  Front* front = find(link);
  if (front == nullptr) return;
  const bool waits = std::ranges::any_of(
      front->items, [](const Item& each) { return each.forwarded && !each.answered; });
  if (moved && !waits && front->state == Front::State::kServing) {
    front->moved = true;
    return;
  }
  // An expired session: its connection ends when the record of that arrives here.
  if (!moved && tree_->sessions().contains(front->session)) return;
  if (waits) return close(link);
  front->closing = true;
  advance(link);
}

// Records.

std::uint64_t Follower::needed_for(std::int64_t zxid) const {
  std::uint64_t number = position_;
  while (number < known_ && leader_.log()[number].zxid <= zxid) ++number;
  return number;
}

void Follower::catch_up() {
  if (applying_) return;
  applying_ = true;
  while (true) {
    const std::uint64_t target =
        std::max(known_ > lag_ ? known_ - lag_ : 0, std::min(wanted_, known_));
    if (position_ >= target) break;
    apply_next();
  }
  applying_ = false;
  if (position_ < known_ && std::exchange(lag_waits_, false) && struck) struck(Fault::kLag);
}

void Follower::apply_next() {
  const LogEntry& entry = leader_.log()[position_];
  const auto record = tree::decode_record(entry.zxid, entry.bytes);
  LATCHKEY_ASSERT(record.has_value());
  const auto identities_of = [this](tree::PeerId peer) {
    const Front* front = find(peer);
    return front == nullptr ? std::span<const tree::Identity>() : std::span(front->identities);
  };
  const tree::Effects effects = tree_->apply(*record, identities_of);
  ++position_;
  timeline_.note((std::uint64_t{index()} << 48U) ^ static_cast<std::uint64_t>(entry.zxid));
  send_notices(effects.notices);
  advance_all();
  if (record->kind != tree::Record::Kind::kCloseSession) return;
  std::vector<LinkId> over;
  for (const auto& [link, front] : fronts_) {
    if (front.session != record->session) continue;
    const bool asked = std::ranges::any_of(
        front.items, [](const Item& each) { return each.header.op == Op::kCloseSession; });
    if (!asked) over.push_back(link);  // Otherwise its answer comes first.
  }
  for (const LinkId link : over) close(link);
}

void Follower::send_notices(const std::vector<tree::Notice>& notices) {
  for (const tree::Notice& notice : notices) {
    constexpr std::int32_t kSyncConnected = 3;
    std::string frame;
    wire::append_frame(frame, wire::ReplyHeader{wire::kNotificationXid, -1, Err::kOk},
                       wire::WatcherEvent{notice.type, kSyncConnected, notice.path});
    network_.send(notice.peer, Way::kReply, std::move(frame));
  }
}

void Follower::touch_later() {
  if (touching_ || !joined_ || deposed_) return;
  touching_ = true;
  // As the leader asks for it, twice in a tick.
  const Duration interval = options_.service.tick / 2;
  const Duration since = process().now().time_since_epoch() % interval;
  timeline_.in(interval - since, &process(), Happens::kWake, [this] {
    touching_ = false;
    for (auto& [link, front] : fronts_) {
      if (!std::exchange(front.touched, false) || front.moved) continue;
      up_.put([this, touched = link] { leader_.take_touch(touched); });
    }
    for (const auto& late : std::exchange(late_touches_, {})) {
      up_.put([this, late] { leader_.take_late_touch(late.first, late.second); });
    }
  });
}

// With the leader and without.

void Follower::set_lag(std::size_t records) {
  lag_ = records;
  lag_waits_ = records > 0;
  if (joined_) catch_up();
}

bool Follower::part() {
  if (parted_) return false;
  parted_ = true;
  up_.set_silent(true);
  down_.set_silent(true);
  miss_leader([this] { return !parted_; });
  return joined_;
}

void Follower::miss_leader(std::function<bool()> is_back) {
  timeline_.in(options_.sync_limit, &process(), Happens::kWake,
               [this, missing = ++missing_, is_back = std::move(is_back)] {
                 if (missing == missing_ && joined_ && !deposed_ && !is_back()) lose_leader();
               });
}

void Follower::lose_leader() {
  joined_ = false;
  drop_clients();
  up_.drop();
  down_.drop();
  // The leader has missed it for as long, or finds out as soon as it can.
  timeline_.in({}, &leader_.process(), Happens::kWake, [this] {
    leader_.forget(*this);
    join();
  });
}

void Follower::rejoin() {
  if (!parted_) return;
  parted_ = false;
  up_.set_silent(false);
  down_.set_silent(false);
  join();
}

void Follower::leader_started() {
  if (joined_ && !deposed_) {
    // Its connection was to a leader that is no more.
    joined_ = false;
    drop_clients();
    up_.drop();
  }
  join();
}

void Follower::join() {
  if (joined_ || deposed_ || parted_ || !process().is_alive() || !leader_.is_up()) return;
  joined_ = true;
  leader_ships(leader_.log().end());
}

bool Follower::succeed() {
  if (!joined_ || parted_) return false;
  deposed_ = true;
  // All that was applied, and what it has been told of its clients' writes.
  down_.flush();
  known_ = leader_.log().end();
  wanted_ = known_;
  catch_up();
  return true;
}

void Follower::give_way() {
  if (!std::exchange(deposed_, false)) return;
  joined_ = false;
  drop_clients();
  up_.drop();
  join();
}

void Follower::leader_ended(Tell told) {
  up_.drop();
  down_.drop();
  if (!joined_ || deposed_) return;
  if (told == Tell::kNo) return miss_leader([] { return false; });
  joined_ = false;
  drop_clients();
  up_.drop();
}

void Follower::leader_paused() {
  miss_leader([this] { return leader_.process().paused_until <= timeline_.now(); });
}

void Follower::crash(Tell clients_hear) {
  if (!process().is_alive()) return;
  for (const auto& [link, front] : fronts_) tree_->drop_watches(link);
  fronts_.clear();
  joined_ = false;
  deposed_ = false;
  touching_ = false;
  late_touches_.clear();
  up_.drop();
  down_.drop();
  process().die();
  network_.server_ended(*this, clients_hear);
  leader_.forget(*this);
}

void Follower::start() {
  if (process().is_alive()) return;
  process().rise();
  join();
}

void Follower::wipe() {
  tree_ = std::make_unique<tree::Tree>(options_.service.limits);
  position_ = leader_.log().end();
  known_ = position_;
  wanted_ = 0;
}

}  // namespace latchkey::testing
