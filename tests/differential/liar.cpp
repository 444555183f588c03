#include "differential/liar.hpp"

#include <deque>
#include <utility>

#include "wire/frame.hpp"

namespace latchkey::differential {
namespace {

using Kind = Arrival::Kind;

/// A getData's answer is the only one that is so long and begins with a buffer of the right length:
/// for a lie it is enough that most of what is taken for one is one.
bool is_data(std::string_view frame) {
  return wire::decode<wire::GetDataReply>(frame.substr(16)).has_value();
}

class Liar : public Endpoint {
 public:
  Liar(std::unique_ptr<Endpoint> honest, Lie lie, int which)
      : honest_(std::move(honest)), lie_(lie), left_(which) {}

  std::unique_ptr<Link> connect() override;
  void settle() override { honest_->settle(); }

  /// Whether this is the occasion to lie.
  bool now(const Arrival& arrival);
  [[nodiscard]] Lie lie() const { return lie_; }

 private:
  std::unique_ptr<Endpoint> honest_;
  Lie lie_;
  int left_;
};

class LyingLink : public Link {
 public:
  LyingLink(Liar& liar, std::unique_ptr<Link> honest) : liar_(liar), honest_(std::move(honest)) {}

  void send(std::string_view bytes) override { honest_->send(bytes); }

  Arrival receive(Wait wait) override {
    if (ended_) return {Kind::kClosed, {}};
    Arrival arrival;
    if (!said_.empty()) {
      arrival = std::move(said_.front());
      said_.pop_front();
      return arrival;
    }
    arrival = honest_->receive(wait);
    return liar_.now(arrival) ? falsify(std::move(arrival), wait) : arrival;
  }

 private:
  Arrival falsify(Arrival arrival, Wait wait) {
    switch (liar_.lie()) {
      case Lie::kVersion: {
        auto data = wire::decode<wire::GetDataReply>(std::string_view(arrival.frame).substr(16));
        ++data->stat.version;
        arrival.frame.resize(16);
        wire::Writer{arrival.frame}(*data);
        return arrival;
      }
      case Lie::kZxid: --arrival.frame[11]; return arrival;
      case Lie::kNoEvent: return honest_->receive(wait);
      case Lie::kTwice: said_.push_back(arrival); return arrival;
      case Lie::kEventAfter: said_.push_back(std::move(arrival)); return honest_->receive(wait);
      case Lie::kSilentEnd: ended_ = true; return {Kind::kClosed, {}};
    }
    return arrival;
  }

  Liar& liar_;
  std::unique_ptr<Link> honest_;
  std::deque<Arrival> said_;
  bool ended_ = false;
};

std::unique_ptr<Link> Liar::connect() {
  return std::make_unique<LyingLink>(*this, honest_->connect());
}

bool Liar::now(const Arrival& arrival) {
  if (arrival.kind != Kind::kFrame || arrival.frame.size() < 16) return false;
  wire::ReplyHeader header;
  wire::Reader{arrival.frame}(header);
  const bool is_event = header.xid == wire::kNotificationXid;
  const bool is_answer = header.xid > 1 && header.err == wire::Err::kOk && header.zxid > 0;
  bool occasion = false;
  switch (lie_) {
    case Lie::kVersion: occasion = is_answer && is_data(arrival.frame); break;
    case Lie::kZxid:
    case Lie::kSilentEnd: occasion = is_answer; break;
    case Lie::kNoEvent:
    case Lie::kTwice:
    case Lie::kEventAfter: occasion = is_event; break;
  }
  return occasion && left_-- == 0;
}

}  // namespace

std::unique_ptr<Endpoint> lying_endpoint(std::unique_ptr<Endpoint> honest, Lie lie, int which) {
  return std::make_unique<Liar>(std::move(honest), lie, which);
}

}  // namespace latchkey::differential
