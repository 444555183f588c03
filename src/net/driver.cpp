#include "net/driver.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>

#include <asio/local/stream_protocol.hpp>

#include "base/random.hpp"
#include "net/callback_pool.hpp"
#include "net/threads.hpp"

namespace latchkey::net {
namespace {

Executor default_executor() {
  return [](std::function<void()> task) { CallbackPool::callbacks().post(std::move(task)); };
}

// A ring that nobody wants any more costs the I/O thread a wake-up, to put it off costs a system
// call. Whoever goes to sleep for longer than one answer leaves no such ring behind; between two
// steps of a thread that is awake only one that is about to come is worth the call.
constexpr std::chrono::milliseconds kSoon(1);
constexpr std::chrono::microseconds kVerySoon(100);

// So much of what many ask for together leaves before the rest is there: some twenty entries, which
// keep the server busy meanwhile.
constexpr std::size_t kEnough = 4096;

std::string system_reason(int error) { return std::generic_category().message(error); }

}  // namespace

std::shared_ptr<session::Host> Driver::start(asio::io_context& context,
                                             session::ConnectString connect, SessionOptions options,
                                             std::shared_ptr<const TlsContext> tls,
                                             session::Linger linger) {
  auto driver = std::make_shared<Driver>(context, std::move(connect), std::move(options),
                                         std::move(tls), linger);
  driver->enter([&](session::Machine& machine, Instant now) LATCHKEY_REQUIRES(driver->mutex_) {
    driver->wait_for_timer();
    machine.start(now);
  });
  session::Host* host = driver.get();
  return {host, [driver = std::move(driver)](session::Host*) mutable {
            if (driver->is_forked()) {
              // Nothing of the parent's may be touched, not even destroyed: its epoll set is
              // shared.
              static_cast<void>(new std::shared_ptr<Driver>(std::move(driver)));
            } else {
              // Taken out: whoever still has a weak pointer to the host keeps this function.
              const std::shared_ptr<Driver> last = std::move(driver);
              last->let_go();
            }
          }};
}

Driver::Driver(asio::io_context& context, session::ConnectString connect, SessionOptions options,
               std::shared_ptr<const TlsContext> tls, session::Linger linger)
    : owner_(process_id()),
      context_(context),
      endpoints_(connect.endpoints),
      options_(std::move(options)),
      tls_context_(std::move(tls)),
      gathers_(linger == session::Linger::kYes),
      view_(std::make_shared<session::View>()),
      executor_(options_.executor ? options_.executor : default_executor()),
      callbacks_(std::make_shared<base::SerialQueue>(executor_)),
      guard_(std::make_shared<session::Guard>(options_,
                                              [callbacks = callbacks_](std::function<void()> task) {
                                                if (callbacks->push(std::move(task)))
                                                  callbacks->start();
                                              })),
      machine_(session::machine_options(connect, options_, linger), base::kernel_random(), view_),
      hooks_(session::user_hooks(*this)),
      timer_(context) {}

Driver::~Driver() {
  // The look-up may hang for longer than the context lives.
  for (const auto& [endpoint, look_up] : look_ups_) look_up->cancel();
}

bool Driver::is_forked() const noexcept { return process_id() != owner_; }

bool Driver::is_own_thread() const noexcept {
  return context_.get_executor().running_in_this_thread();
}

void Driver::let_go() {
  // Long enough to get through a reconnect, so that the locks do not stay taken for a time-out
  // (H25).
  constexpr std::chrono::seconds kPatience(2);
  enter([&](session::Machine& machine, Instant now) { machine.close(now + kPatience, {}, now); });
}

// Around the machine.

void Driver::enter(Step task) {
  After after = go_in(Who::kAnybody, task);
  come_out(after);
}

void Driver::leave(Task& task) {
  left_.put(task);
  do_what_is_left();
}

void Driver::do_what_is_left() {
  After after;
  come_out(after);
}

Driver::After Driver::go_in(Who who, Step task) {
  // Whoever has its answer will want the lock next.
  const base::LateWakes late;
  const base::LocalLock lock(mutex_);
  return work(who, task, late);
}

Driver::After Driver::work(Who who, Step task, const base::LateWakes& late) {
  const Instant now = BootClock::now();
  machine_.advance(now);
  for (Task* left = left_.take_all(); left != nullptr;) {
    // It may be gone when it has run.
    std::exchange(left, left->next)->run(machine_, now);
  }
  task(machine_, now);
  carry_out(now);
  // What it waits for may have come another way than through the socket.
  if (reader_ != nullptr && reader_->thread != std::this_thread::get_id() && reader_->is_there()) {
    reader_->bell->ring();
  }
  After after;
  after.start_callbacks = std::exchange(start_callbacks_, false);
  after.posted.swap(posted_);
  after.spent = machine_.take_spent();
  // Not before user code that may run on this thread and take its time.
  after.gather = who == Who::kIoThread && gathers_ && !after.start_callbacks &&
                 after.posted.empty() && late.count() > 1;
  if (after.gather) gathering_ = true;
  return after;
}

/// Whoever finds the lock taken leaves its task to us, who may have let go of it just now: so look,
/// as long as there is something and nobody else is there to do it. User code comes after that: it
/// may take its time.
void Driver::come_out(After& after) {
  while (!left_.is_empty()) {
    const base::LateWakes late;
    if (!mutex_.try_lock()) break;
    const base::LocalLock lock(mutex_, base::LocalLock::kTaken);
    after.add(work(
        Who::kAnybody, [](session::Machine&, Instant) {}, late));
  }
  if (after.start_callbacks) callbacks_->start();
  for (std::function<void()>& task : after.posted) executor_(std::move(task));
}

void Driver::After::add(After&& more) {
  start_callbacks = start_callbacks || more.start_callbacks;
  std::ranges::move(more.posted, std::back_inserter(posted));
  std::ranges::move(more.spent, std::back_inserter(spent));
}

void Driver::carry_out(Instant now) {
  while (machine_.has_news()) {
    machine_.deliver(hooks_);
    if (machine_.take_hang_up()) hang_up();
    if (const auto endpoint = machine_.take_dial()) dial(*endpoint);
    std::string output = machine_.take_output(std::exchange(spare_, {}));
    if (!output.empty()) write(output, now);
    constexpr std::size_t kOrdinary = 16'384;
    if (output.capacity() <= kOrdinary) spare_ = std::move(output);
    spare_.clear();
  }
  // Whoever rings the timer is awake, and looks at the time when it flushes.
  if (!timer_open_ || (gathering_ && !machine_.is_over())) return;
  if (machine_.is_over()) {
    timer_open_ = false;
    timer_.cancel();
    for (const auto& [endpoint, look_up] : look_ups_) look_up->cancel();
  } else {
    timer_.arm(machine_.next_wake(), now + kVerySoon);
  }
}

void Driver::post_in_order(std::function<void()> task) {
  if (callbacks_->push(std::move(task))) start_callbacks_ = true;
}

void Driver::post(std::function<void()> task) { posted_.push_back(std::move(task)); }

void Driver::post_signal(std::function<void()> task) {
  CallbackPool::signals().post(std::move(task));
}

void Driver::wait_for_timer() {
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error) return;
    self->enter([&](session::Machine& machine, Instant now) LATCHKEY_REQUIRES(self->mutex_) {
      if (!self->timer_open_) return;
      self->timer_.clear();
      machine.tick(now);
      self->wait_for_timer();
    });
  });
}

// The connection.

void Driver::dial(std::size_t endpoint) {
  ++connection_;
  endpoint_ = &endpoints_[endpoint];
  addresses_.clear();
  trouble_.clear();
  if (!endpoint_->socket_path.empty()) {
    addresses_.emplace_back(asio::local::stream_protocol::endpoint(endpoint_->socket_path));
    return connect_next(BootClock::now());
  }
  resolving_ = true;
  if (look_ups_.contains(endpoint_)) return;  // An earlier try still asks: its answer will do.
  // The handler must not keep the Driver alive: a lookup may hang long after the session has ended.
  look_ups_[endpoint_] =
      resolve(context_, endpoint_->host, endpoint_->port,
              [weak = weak_from_this(), endpoint = endpoint_](const Resolved& resolved) {
                const auto self = weak.lock();
                if (!self) return;
                self->enter([&](session::Machine&, Instant now) LATCHKEY_REQUIRES(self->mutex_) {
                  self->look_ups_.erase(endpoint);
                  if (!self->resolving_ || self->endpoint_ != endpoint) return;
                  self->resolving_ = false;
                  self->addresses_.assign(resolved.endpoints.rbegin(), resolved.endpoints.rend());
                  self->trouble_ = resolved.trouble;
                  self->connect_next(now);
                });
              });
}

// Connecting and reading are done by hand, and asio only waits: it compares error codes on the way,
// and while exit() runs their categories may be gone already (H52).

void Driver::connect_next(Instant now) {
  while (!addresses_.empty()) {
    const Address address = addresses_.back();
    addresses_.pop_back();
    if (!open_socket(address.protocol())) continue;
    wait_for_line();
    if (::connect(line_->socket(), address.data(), static_cast<socklen_t>(address.size())) == 0) {
      return connected(now);
    }
    if (errno == EINPROGRESS) {
      connecting_ = true;
      return watch_line();
    }
    trouble_ = system_reason(errno);
    line_.reset();
  }
  down(trouble_, Code::kUnreachable, now);
}

void Driver::end_connecting(Instant now) {
  connecting_ = false;
  int trouble = 0;
  socklen_t size = sizeof trouble;
  ::getsockopt(line_->socket(), SOL_SOCKET, SO_ERROR, &trouble, &size);
  if (trouble == 0) return connected(now);
  trouble_ = system_reason(trouble);
  line_.reset();
  connect_next(now);
}

bool Driver::open_socket(const asio::generic::stream_protocol& protocol) {
  // Close-on-exec from birth (H54), which asio's own open() does not do.
  const int fd = ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC | SOCK_NONBLOCK,
                          protocol.protocol());
  if (fd < 0) {
    trouble_ = "no socket: " + system_reason(errno);
    return false;
  }
  const int yes = 1;
  if (protocol.family() != AF_UNIX) {
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  line_.emplace(context_);
  const std::error_code error = line_->open(fd);
  if (!error) return true;
  line_.reset();
  trouble_ = "no socket: " + system_reason(error.value());
  return false;
}

void Driver::connected(Instant now) {
  addresses_.clear();
  watch_line();
  if (!tls_context_) {
    up_ = true;
    return machine_.transport_up(now);
  }
  tls_.emplace(*tls_context_, endpoint_->host);
  if (!tls_->trouble().empty()) return down(tls_->trouble(), Code::kTls, now);
  unsent_ += tls_->take_output();
  flush(now);
}

void Driver::hang_up() {
  ++connection_;
  resolving_ = false;
  addresses_.clear();
  call_reader_off();
  line_.reset();
  tls_.reset();
  unsent_.clear();
  connecting_ = false;
  up_ = false;
  waiting_to_write_ = false;
}

void Driver::down(const std::string& why, Code kind, Instant now) {
  machine_.transport_down(why, kind, now);
}

void Driver::watch_line() {
  if (connecting_) return line_->watch(EPOLLOUT);
  std::uint32_t events = 0;
  if (reader_ == nullptr) events |= EPOLLIN;
  if (waiting_to_write_) events |= EPOLLOUT;
  line_->watch(events);
}

void Driver::wait_for_line() {
  line_->async_wait([self = shared_from_this(), connection = connection_,
                     line = ++lines_](const asio::error_code& error) {
    if (error) return;
    const auto serve = [&](session::Machine&, Instant now) LATCHKEY_REQUIRES(self->mutex_) {
      if (connection == self->connection_ && line == self->lines_) self->serve_line(now);
    };
    After after = self->go_in(Who::kIoThread, serve);
    if (after.gather) self->flush_for_all();
    self->come_out(after);
  });
}

void Driver::flush_for_all() {
  std::this_thread::yield();
  enter([&](session::Machine&, Instant now) LATCHKEY_REQUIRES(mutex_) {
    carry_out(now);  // What was left meanwhile leaves with the rest.
    gathering_ = false;
    if (line_) flush(now);
  });
}

void Driver::serve_line(Instant now) {
  wait_for_line();
  if (connecting_) return end_connecting(now);
  if (waiting_to_write_) {
    waiting_to_write_ = false;
    flush(now);
  }
  if (line_) read(now);
}

void Driver::read(Instant now) {
  const ssize_t got = ::recv(line_->socket(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (got > 0) {
    received({buffer_.data(), static_cast<std::size_t>(got)}, now);
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    const Code kind = tls_ && !up_ ? Code::kTls : Code::kUnreachable;
    down(got == 0 ? "the server closed the connection" : system_reason(errno), kind, now);
  }
}

void Driver::received(std::string_view bytes, Instant now) {
  if (!tls_) return machine_.received(bytes, now);
  std::string plain;
  const bool fine = tls_->receive(bytes, plain);
  unsent_ += tls_->take_output();
  flush(now);
  if (!fine) return down(tls_->trouble(), Code::kTls, now);
  if (tls_->is_ready() && !up_) {
    up_ = true;
    machine_.transport_up(now);
  }
  if (!plain.empty()) machine_.received(plain, now);
  if (tls_->is_closed()) down("the server closed the connection", Code::kUnreachable, now);
}

void Driver::write(std::string& bytes, Instant now) {
  if (!line_ || !up_) return;
  if (tls_) {
    if (!tls_->send(bytes)) return down(tls_->trouble(), Code::kTls, now);
    unsent_ += tls_->take_output();
  } else if (unsent_.empty()) {
    unsent_.swap(bytes);
  } else {
    unsent_ += bytes;
  }
  flush(now);
}

void Driver::flush(Instant now) {
  // The last words of a session do not wait for others: the process may be about to end.
  const bool gathers = gathering_ && unsent_.size() < kEnough && !machine_.is_ending();
  if (waiting_to_write_ || gathers) return;
  std::size_t sent = 0;
  while (sent < unsent_.size() && !waiting_to_write_) {
    const ssize_t put = ::send(line_->socket(), unsent_.data() + sent, unsent_.size() - sent,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0) {
      sent += static_cast<std::size_t>(put);
    } else if (errno == EAGAIN) {
      waiting_to_write_ = true;
    } else if (errno != EINTR) {
      return down(system_reason(errno), Code::kUnreachable, now);
    }
  }
  unsent_.erase(0, sent);
  watch_line();
}

// Callers that wait.

bool Driver::wait(base::FunctionRef<bool()> is_there, base::FunctionRef<bool(Deadline)> block,
                  Deadline deadline) {
  Reader self{Bell::of_this_thread(), is_there, std::this_thread::get_id()};
  const bool alone = begin_waiting(self);
  while (alone && !deadline.has_passed(BootClock::now())) {
    const int socket = socket_of(self);
    // It may have come by what was left to us.
    if (socket < 0 || is_there()) break;
    self.bell->wait(socket, deadline);
    enter([&](session::Machine&, Instant now) LATCHKEY_REQUIRES(mutex_) {
      if (reader_ != &self) return;
      read(now);
      self.has_read = true;
    });
  }
  const bool there = block(deadline);
  if (alone) end_reading(self);
  --waiting_;
  return there;
}

bool Driver::begin_waiting(Reader& reader) {
  const bool first = ++waiting_ == 1;
  // Either we see the reader here, or it sees us there.
  if (!first && !has_reader_) return false;
  bool reads = false;
  {
    const base::LocalLock lock(mutex_);
    if (first) {
      reads = begin_reading(reader);
    } else {
      call_reader_off();
    }
  }
  do_what_is_left();
  return reads;
}

bool Driver::begin_reading(Reader& reader) {
  if (reader.bell == nullptr || !line_ || !up_) return false;
  has_reader_ = true;
  if (waiting_ > 1) {
    has_reader_ = false;
    return false;
  }
  reader_ = &reader;
  watch_line();
  return true;
}

void Driver::end_reading(const Reader& reader) {
  {
    const base::LocalLock lock(mutex_);
    if (reader_ == &reader) {
      reader_ = nullptr;
      has_reader_ = false;
      watch_line();
    }
  }
  do_what_is_left();
}

int Driver::socket_of(const Reader& reader) {
  int socket = -1;
  {
    const base::LocalLock lock(mutex_);
    if (reader_ == &reader) socket = line_->socket();
    // Whoever has its answer with the first read is back before the ring.
    if (reader.has_read && !reader.is_there()) put_ring_off();
  }
  do_what_is_left();
  return socket;
}

void Driver::put_ring_off() {
  if (timer_open_) timer_.arm(machine_.next_wake(), BootClock::now() + kSoon);
}

void Driver::call_reader_off() {
  if (reader_ == nullptr) return;
  put_ring_off();
  reader_->bell->ring();
  reader_ = nullptr;
  has_reader_ = false;
  watch_line();
}

}  // namespace latchkey::net
