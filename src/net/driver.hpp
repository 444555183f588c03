#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>

#include "base/parker.hpp"
#include "base/pile.hpp"
#include "base/serial_queue.hpp"
#include "base/thread_annotations.hpp"
#include "net/bell.hpp"
#include "net/boot_timer.hpp"
#include "net/line.hpp"
#include "net/resolver.hpp"
#include "net/tls.hpp"
#include "session/connect_string.hpp"
#include "session/host.hpp"

namespace latchkey::net {

/// Drives a session's Machine over sockets. A lock lets one thread at a time near the machine: the
/// caller's own or the I/O thread's. So a caller writes its request to the socket itself, and if
/// it is the only one that waits it also reads the answer: no other thread has to wake for it. When
/// several wait, or nobody does, the I/O thread reads.
///
/// A Driver owns itself while its session lives: asio's handlers share it. Users share the Host
/// that start() returns; when the last of them lets go the session is closed in the background.
///
/// Thread safety: any thread.
class Driver final : public session::Host, public std::enable_shared_from_this<Driver> {
 public:
  static std::shared_ptr<session::Host> start(asio::io_context& context,
                                              session::ConnectString connect,
                                              SessionOptions options,
                                              std::shared_ptr<const TlsContext> tls,
                                              session::Linger linger);

  Driver(asio::io_context& context, session::ConnectString connect, SessionOptions options,
         std::shared_ptr<const TlsContext> tls, session::Linger linger);

  ~Driver() override;

  void enter(base::FunctionRef<void(session::Machine&, Instant)> task) override
      LATCHKEY_EXCLUDES(mutex_);
  void leave(Task& task) override LATCHKEY_EXCLUDES(mutex_);
  void post_in_order(std::function<void()> task) override LATCHKEY_REQUIRES(mutex_);
  void post(std::function<void()> task) override LATCHKEY_REQUIRES(mutex_);
  void post_signal(std::function<void()> task) override;
  [[nodiscard]] bool is_forked() const noexcept override;
  [[nodiscard]] bool is_own_thread() const noexcept override;
  bool wait(base::FunctionRef<bool()> is_there, base::FunctionRef<bool(Deadline)> block,
            Deadline deadline) override LATCHKEY_EXCLUDES(mutex_);
  [[nodiscard]] std::shared_ptr<const session::Guard> guard() const override { return guard_; }
  [[nodiscard]] const session::View& view() const noexcept override { return *view_; }
  [[nodiscard]] const SessionOptions& options() const noexcept override { return options_; }

 private:
  using Address = asio::generic::stream_protocol::endpoint;

  /// A caller that reads the socket by itself while it waits.
  struct Reader {
    const Bell* bell;
    base::FunctionRef<bool()> is_there;
    std::thread::id thread;
    bool has_read = false;
  };

  /// Counts the caller, and lets it read unless another waits already, who then reads no longer.
  [[nodiscard]] bool begin_waiting(Reader& reader);
  [[nodiscard]] bool begin_reading(Reader& reader) LATCHKEY_REQUIRES(mutex_);
  void end_reading(const Reader& reader);
  /// The socket that `reader` may wait for; -1 if it is no longer the one to read.
  [[nodiscard]] int socket_of(const Reader& reader);
  void call_reader_off() LATCHKEY_REQUIRES(mutex_);
  /// For whoever goes to sleep for longer: a ring that nobody wants is not to wake the I/O thread.
  void put_ring_off() LATCHKEY_REQUIRES(mutex_);

  /// Nobody wants the session any more.
  void let_go();
  using Spent = std::vector<session::Machine::Spent>;
  enum class Who { kAnybody, kIoThread };
  /// What is to be done without the lock after something was done with it.
  struct After {
    bool gather = false;  ///< The I/O thread has woken several, and has to flush_for_all().
    bool start_callbacks = false;
    std::vector<std::function<void()>> posted;
    /// Destroyed last: a closure of the user's may own the last handle.
    Spent spent;

    void add(After&& more);
  };
  using Step = base::FunctionRef<void(session::Machine&, Instant)>;
  /// Runs what others have left here, then `task`, and sends what all of them have asked for.
  [[nodiscard]] After work(Who who, Step task, const base::LateWakes& late)
      LATCHKEY_REQUIRES(mutex_);
  /// As enter().
  [[nodiscard]] After go_in(Who who, Step task) LATCHKEY_EXCLUDES(mutex_);
  void come_out(After& after) LATCHKEY_EXCLUDES(mutex_);
  /// To be called by whoever has let go of the lock without having come in through go_in().
  void do_what_is_left() LATCHKEY_EXCLUDES(mutex_);

  void carry_out(Instant now) LATCHKEY_REQUIRES(mutex_);
  void wait_for_timer() LATCHKEY_REQUIRES(mutex_);

  void dial(std::size_t endpoint) LATCHKEY_REQUIRES(mutex_);
  void connect_next(Instant now) LATCHKEY_REQUIRES(mutex_);
  void end_connecting(Instant now) LATCHKEY_REQUIRES(mutex_);
  /// False: there is none to be had, and trouble_ says why.
  bool open_socket(const asio::generic::stream_protocol& protocol) LATCHKEY_REQUIRES(mutex_);
  void connected(Instant now) LATCHKEY_REQUIRES(mutex_);
  void hang_up() LATCHKEY_REQUIRES(mutex_);
  /// Has the I/O thread woken for what is to be done next, and by nothing else.
  void watch_line() LATCHKEY_REQUIRES(mutex_);
  void wait_for_line() LATCHKEY_REQUIRES(mutex_);
  void serve_line(Instant now) LATCHKEY_REQUIRES(mutex_);
  void read(Instant now) LATCHKEY_REQUIRES(mutex_);
  void received(std::string_view bytes, Instant now) LATCHKEY_REQUIRES(mutex_);
  /// Leaves `bytes` with memory that may be used again.
  void write(std::string& bytes, Instant now) LATCHKEY_REQUIRES(mutex_);
  void flush(Instant now) LATCHKEY_REQUIRES(mutex_);
  /// By the I/O thread, after it has woken several: gives them the processor, and sends in one
  /// flush what they asked for meanwhile, as far as it has not left in larger pieces. They cannot
  /// have an answer before it reads on anyway.
  void flush_for_all();
  void down(const std::string& why, Code kind, Instant now) LATCHKEY_REQUIRES(mutex_);

  // Constant after construction.
  const pid_t owner_;
  asio::io_context& context_;
  const std::vector<session::Endpoint> endpoints_;
  const SessionOptions options_;
  const std::shared_ptr<const TlsContext> tls_context_;
  const bool gathers_;  ///< See flush_for_all(); not where others use the I/O thread as well.
  const std::shared_ptr<session::View> view_;
  const Executor executor_;
  const std::shared_ptr<base::SerialQueue> callbacks_;
  const std::shared_ptr<const session::Guard> guard_;

  base::Pile<Task> left_;  ///< For whoever has the lock.

  base::LocalMutex mutex_;
  session::Machine machine_ LATCHKEY_GUARDED_BY(mutex_);
  session::Machine::Hooks hooks_ LATCHKEY_GUARDED_BY(mutex_);
  BootTimer timer_ LATCHKEY_GUARDED_BY(mutex_);
  bool timer_open_ LATCHKEY_GUARDED_BY(mutex_) = true;

  // The present connection, or the attempt at one.
  std::uint64_t connection_ LATCHKEY_GUARDED_BY(mutex_) = 0;
  const session::Endpoint* endpoint_ LATCHKEY_GUARDED_BY(mutex_) = nullptr;
  bool resolving_ LATCHKEY_GUARDED_BY(mutex_) = false;  ///< It waits for its endpoint's lookup.
  std::vector<Address> addresses_ LATCHKEY_GUARDED_BY(mutex_);  ///< Still to be tried, last first.
  std::string trouble_ LATCHKEY_GUARDED_BY(mutex_);
  std::optional<Line> line_ LATCHKEY_GUARDED_BY(mutex_);
  std::uint64_t lines_ LATCHKEY_GUARDED_BY(mutex_) = 0;  ///< How often one was waited for.
  bool connecting_ LATCHKEY_GUARDED_BY(mutex_) = false;
  bool up_ LATCHKEY_GUARDED_BY(mutex_) = false;
  std::optional<TlsFilter> tls_ LATCHKEY_GUARDED_BY(mutex_);
  std::string unsent_ LATCHKEY_GUARDED_BY(mutex_);
  std::string spare_ LATCHKEY_GUARDED_BY(mutex_);  ///< Empty: memory for the next output.
  bool waiting_to_write_ LATCHKEY_GUARDED_BY(mutex_) = false;
  bool gathering_ LATCHKEY_GUARDED_BY(mutex_) = false;  ///< The I/O thread is about to flush.
  std::array<char, 65'536> buffer_ LATCHKEY_GUARDED_BY(mutex_);

  std::atomic<int> waiting_ = 0;  ///< Threads in wait().
  Reader* reader_ LATCHKEY_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> has_reader_ = false;  ///< reader_ is there; to be asked without the lock.

  /// Lookups under way, one for each name at most: a name service that hangs would otherwise get
  /// another thread with every try.
  std::map<const session::Endpoint*, std::shared_ptr<LookUp>> look_ups_ LATCHKEY_GUARDED_BY(mutex_);

  // User code to get going once the lock is let go.
  bool start_callbacks_ LATCHKEY_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> posted_ LATCHKEY_GUARDED_BY(mutex_);
};

}  // namespace latchkey::net
