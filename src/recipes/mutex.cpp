#include "latchkey/mutex.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <string>

#include "queue/owner.hpp"
#include "recipes/attempt.hpp"
#include "session/host.hpp"
#include "session/operations.hpp"

namespace latchkey::inline v0 {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

std::string owner_data(const std::string& reason) {
  return queue::format_owner({.host = host_name(),
                              .pid = ::getpid(),
                              .program = ::program_invocation_short_name,
                              .since = utc_now(),
                              .reason = reason});
}

}  // namespace

struct Mutex::Parts {
  std::shared_ptr<session::Host> host;
  Path directory;
  MutexOptions options;

  [[nodiscard]] Result<void> check() const;
  [[nodiscard]] Result<Lease> acquire(queue::Wait wait, Deadline deadline,
                                      const std::stop_token& stop) const;
};

Result<void> Mutex::Parts::check() const {
  if (auto valid = directory.check(); !valid) return valid;
  if (!options.name.empty() && !queue::is_lock_name(options.name)) {
    return Error(Code::kInvalidOption,
                 "lock name \"" + options.name +
                     "\": it must not contain / or _lock_ or control characters");
  }
  return session::check_blocking(*host, "lock " + directory.text());
}

Result<Lease> Mutex::Parts::acquire(queue::Wait wait, Deadline deadline,
                                    const std::stop_token& stop) const {
  if (auto valid = check(); !valid) return valid.error();
  // Nothing is asked of the server for somebody who has given up already.
  session::Outcome given_up;
  given_up.code = stop.stop_requested() ? Code::kCancelled : Code::kTimedOut;
  if (stop.stop_requested() || deadline.has_passed(BootClock::now())) {
    return session::make_error("lock", directory.text(), given_up);
  }
  recipes::Plan plan{.contender = {.directory = directory.text(),
                                   .lock_name = options.name,
                                   .extra_tags = options.extra_tags,
                                   .wait = wait},
                     .data = owner_data(options.reason),
                     .acl = options.acl,
                     .parent = options.parent};
  base::Slot<Result<std::shared_ptr<recipes::Hold>>> slot;
  std::weak_ptr<recipes::Attempt> attempt;
  host->enter([&](session::Machine& machine, Instant) {
    attempt = recipes::Attempt::start(host, machine, std::move(plan), deadline,
                                      [&](auto result) { slot.set(std::move(result)); });
  });
  const std::stop_callback on_stop(stop, [&] {
    host->enter([&](session::Machine&, Instant) {
      if (const auto contending = attempt.lock()) contending->cancel(Code::kCancelled);
    });
  });
  auto result = session::wait_for(*host, slot, deadline);
  if (!result) return result.error();
  return Lease(std::move(*result));
}

Mutex::Mutex(const Session& session, Path directory, MutexOptions options)
    : parts_(std::make_shared<const Parts>(
          Parts{session.host(), std::move(directory), std::move(options)})) {}
Mutex::Mutex(const Mutex&) = default;
Mutex::Mutex(Mutex&&) noexcept = default;
Mutex& Mutex::operator=(const Mutex&) = default;
Mutex& Mutex::operator=(Mutex&&) noexcept = default;
Mutex::~Mutex() = default;

Result<Lease> Mutex::lock(Deadline deadline, std::stop_token stop) {
  return parts_->acquire(queue::Wait::kYes, deadline, stop);
}

Result<Lease> Mutex::try_lock(Deadline deadline, std::stop_token stop) {
  return parts_->acquire(queue::Wait::kNo, deadline, stop);
}

const Path& Mutex::directory() const noexcept { return parts_->directory; }

}  // namespace latchkey::inline v0
