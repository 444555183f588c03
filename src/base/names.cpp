#include "latchkey/election.hpp"
#include "latchkey/lease.hpp"
#include "latchkey/session.hpp"
#include "latchkey/token.hpp"
#include "latchkey/watch.hpp"

namespace latchkey::inline v0 {

std::string_view name(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::kCreated: return "created";
    case EventKind::kDeleted: return "deleted";
    case EventKind::kDataChanged: return "data changed";
    case EventKind::kChildrenChanged: return "children changed";
    case EventKind::kWatchRemoved: return "watch removed";
    case EventKind::kSessionOver: return "session over";
    case EventKind::kUnknown: return "unknown";
  }
  return "unknown";
}

std::string_view name(SessionState state) noexcept {
  switch (state) {
    case SessionState::kConnecting: return "connecting";
    case SessionState::kConnected: return "connected";
    case SessionState::kSuspended: return "suspended";
    case SessionState::kExpired: return "expired";
    case SessionState::kAuthFailed: return "authentication failed";
    case SessionState::kClosed: return "closed";
  }
  return "unknown";
}

std::string_view name(LeaseState state) noexcept {
  switch (state) {
    case LeaseState::kHeld: return "held";
    case LeaseState::kSuspect: return "suspect";
    case LeaseState::kLost: return "lost";
    case LeaseState::kReleased: return "released";
  }
  return "unknown";
}

std::string_view name(ElectionState state) noexcept {
  switch (state) {
    case ElectionState::kQueued: return "queued";
    case ElectionState::kLeading: return "leading";
    case ElectionState::kFailed: return "failed";
    case ElectionState::kClosed: return "closed";
  }
  return "unknown";
}

std::ostream& operator<<(std::ostream& out, EventKind kind) { return out << name(kind); }
std::ostream& operator<<(std::ostream& out, SessionState state) { return out << name(state); }
std::ostream& operator<<(std::ostream& out, LeaseState state) { return out << name(state); }
std::ostream& operator<<(std::ostream& out, ElectionState state) { return out << name(state); }

std::string to_string(Token token) {
  std::string text = std::to_string(token.zxid());
  if (token.hold() > 0) text += "." + std::to_string(token.hold());
  return text;
}

std::ostream& operator<<(std::ostream& out, Token token) { return out << to_string(token); }

}  // namespace latchkey::inline v0
