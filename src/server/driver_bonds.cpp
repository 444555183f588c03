#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/process.hpp"
#include "server/bond.hpp"
#include "server/driver.hpp"

// Sessions that end with their process, so that its locks need not wait for a time-out.
namespace latchkey::server {
namespace {

/// 0 if that cannot be known.
pid_t who_connected(int socket) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return 0;
  return who.pid;
}

Descriptor open_process(pid_t pid) {
  if (pid <= 0) return {};
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool has_ended(int process) {
  pollfd end{.fd = process, .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, 0) != 0;
}

}  // namespace

void Driver::bind(tree::PeerId peer, tree::SessionId session, std::int32_t asked) {
  const auto connection = peers_.find(peer);
  const pid_t pid =
      connection == peers_.end() ? 0 : who_connected(connection->second->socket().native_handle());
  const std::optional<Process> before = bonds_.process_of(session);
  // It took the session up again and has ended since: we are about to hear of that.
  if (before && before->pid == pid && has_ended(watches_.at(*before).process.native_handle())) {
    return;
  }
  // Whoever has taken it up is the one that counts from now on.
  unbind(session);
  if (asked == 0 || pid == 0) return;
  const std::optional<Process> process = find_process(pid, asked);
  if (process) bonds_.add(session, *process);
}

void Driver::unbind(tree::SessionId session) {
  if (const std::optional<Process> idle = bonds_.remove(session)) watches_.erase(*idle);
}

std::optional<Process> Driver::find_process(pid_t pid, std::int32_t asked) {
  const std::string name = std::to_string(pid);
  Evidence evidence{.pid = pid, .start_ticks = base::start_ticks(name)};
  if (!evidence.start_ticks) return std::nullopt;
  Process process{pid, *evidence.start_ticks};
  if (const auto known = watches_.find(process); known != watches_.end()) {
    // As long as it lives nobody else can have its number, and so nobody had when we looked.
    evidence.is_watched = !has_ended(known->second.process.native_handle());
    return is_bound(asked, evidence) ? std::optional(process) : std::nullopt;
  }
  if (!has_room_for_watch()) {
    evidence.is_watched = true;
    if (is_bound(asked, evidence)) ++bonds_refused_;
    return std::nullopt;
  }
  Descriptor descriptor = open_process(pid);
  evidence.is_watched = descriptor.get() >= 0 && descriptor.get() < most_descriptors_;
  evidence.start_ticks = base::start_ticks(name);
  if (!is_bound(asked, evidence)) return std::nullopt;
  process.start_ticks = *evidence.start_ticks;
  return watch(process, std::move(descriptor)) ? std::optional(process) : std::nullopt;
}

bool Driver::has_room_for_watch() const {
  // Whoever starts many processes takes at most so many descriptors from connections.
  return watches_.size() < static_cast<std::size_t>(most_descriptors_) / 4;
}

bool Driver::watch(const Process& process, Descriptor descriptor) {
  asio::posix::stream_descriptor waiting(context_);
  asio::error_code error;
  static_cast<void>(waiting.assign(descriptor.get(), error));
  if (error) return false;
  static_cast<void>(descriptor.release());
  const std::uint64_t number = ++last_watch_;
  Watch& watch =
      watches_.insert_or_assign(process, Watch{number, std::move(waiting)}).first->second;
  wait_for_end(process, watch);
  return true;
}

void Driver::wait_for_end(const Process& process, Watch& watch) {
  watch.process.async_wait(
      asio::posix::stream_descriptor::wait_read,
      in_turn([this, process, number = watch.number](const asio::error_code& trouble) {
        if (!trouble) process_ended(process, number);
      }));
}

void Driver::process_ended(const Process& process, std::uint64_t number) {
  const auto watch = watches_.find(process);
  // Its sessions may have gone elsewhere before we came to hear of its end.
  if (finished_ || stopping_ || watch == watches_.end() || watch->second.number != number) return;
  // An event that was meant for a descriptor before this one ends a wait as well.
  if (!has_ended(watch->second.process.native_handle())) {
    return wait_for_end(process, watch->second);
  }
  watches_.erase(watch);
  for (const tree::SessionId session : bonds_.end(process)) {
    if (!service_.expire(session, now())) continue;
    ++ended_with_process_;
    log_(LogLevel::kInfo, "ended session " + std::to_string(session) + ": its process " +
                              std::to_string(process.pid) + " has ended");
  }
}

}  // namespace latchkey::server
