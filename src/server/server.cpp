#include "latchkey/server.hpp"

#include <fcntl.h>
#include <sys/types.h>

#include <cstdlib>
#include <mutex>
#include <system_error>
#include <utility>

#include "net/threads.hpp"
#include "server/driver.hpp"
#include "server/option_limits.hpp"
#include "server/tree_state.hpp"
#include "server/words.hpp"
#include "storage/file_journal.hpp"
#include "storage/memory_journal.hpp"

namespace latchkey::inline v0 {
namespace {

using server::CommitOn;
using server::Doors;
using server::Driver;
using server::Listener;

/// A fresh folder that goes with the object.
class TempFolder {
 public:
  TempFolder() {
    std::error_code error;
    std::string pattern =
        (std::filesystem::temp_directory_path(error) / "latchkey-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

Result<void> check(ServerOptions& options) {
  Result<std::vector<std::string>> words = server::settle_words(options.words);
  if (!words) return words.error();
  options.words = *words;
  if (Result<void> checked = server::check_limits(options); !checked) return checked;
  const std::string& digest = options.super_digest;
  if (!digest.empty() && (digest.find(':') == std::string::npos || digest.size() < 28)) {
    return Error(Code::kInvalidOption,
                 "super_digest is \"user:hash\" with base64(sha1(\"user:password\")) as the hash");
  }
  if (options.listen.empty() && options.unix_path.empty() && options.inherited.empty()) {
    options.listen = {"127.0.0.1:0"};
  }
  // The working directory may change, or go.
  if (!options.data_folder.empty()) {
    std::error_code error;
    std::filesystem::path folder = std::filesystem::absolute(options.data_folder, error);
    if (!error) folder = std::filesystem::weakly_canonical(folder, error);
    if (error) {
      return Error(Code::kStorage, options.data_folder.string() + ": " + error.message());
    }
    options.data_folder = std::move(folder);
  }
  return {};
}

Result<Doors> open_doors(const ServerOptions& options) {
  Doors doors;
  const auto add = [&doors](Result<Listener> opened) -> Result<void> {
    if (!opened) return opened.error();
    doors.clients.push_back(std::move(*opened));
    return {};
  };
  for (const int fd : options.inherited) {
    // Ours stays as it is: while a server restarts, clients queue up there.
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) {
      return Error(Code::kInvalidOption, "descriptor " + std::to_string(fd) + " is not open");
    }
    if (Result<void> added = add(Listener::adopt(copy)); !added) return added.error();
  }
  for (const std::string& address : options.listen) {
    if (Result<void> added = add(Listener::open_tcp(address)); !added) return added.error();
  }
  if (!options.unix_path.empty()) {
    if (Result<void> added = add(Listener::open_unix(options.unix_path)); !added) {
      return added.error();
    }
  }
  if (!options.metrics.empty()) {
    Result<Listener> metrics = Listener::open_tcp(options.metrics);
    if (!metrics) return metrics.error();
    doors.metrics.emplace(std::move(*metrics));
  }
  return doors;
}

/// A state by its items, as memory mode hands it from one run to the next.
using Items = std::vector<std::string>;

struct Started {
  std::shared_ptr<Driver> driver;
  std::string recovered;
};

Result<Started> start_driver(const ServerOptions& options, const Items& memory) {
  std::shared_ptr<const net::TlsContext> tls;
  if (options.tls) {
    auto loaded = net::TlsContext::load(*options.tls);
    if (!loaded) return loaded.error();
    tls = *loaded;
  }
  Started started;
  try {
    started.driver = std::make_shared<Driver>(options, tls);
  } catch (const std::system_error& error) {
    return Error(Code::kServerError, std::string("start the server: ") + error.what());
  }
  server::TreeState state(started.driver->tree(), options.cancel_start);
  std::unique_ptr<storage::Journal> journal;
  if (options.data_folder.empty()) {
    for (const std::string& item : memory) {
      if (Result<void> loaded = state.load(item); !loaded) return loaded.error();
    }
    journal = std::make_unique<storage::MemoryJournal>();
    started.recovered = "in memory";
  } else {
    storage::FileJournalOptions how;
    if (options.on_damage == ServerOptions::Damage::kCut) how.on_damage = storage::OnDamage::kCut;
    auto opened = storage::FileJournal::open(options.data_folder, how, state);
    if (!opened && options.cancel_start.stop_requested() && opened.error() == Code::kClosed) {
      return Error(Code::kCancelled, "start the server: given up while its data were read");
    }
    if (!opened) return opened.error();
    started.recovered = describe((*opened)->recovered());
    started.driver->tree().raise_epoch((*opened)->recovered().epoch);
    journal = std::move(*opened);
  }
  Result<Doors> doors = open_doors(options);
  if (!doors) return doors.error();
  const CommitOn where = options.data_folder.empty() ? CommitOn::kLoop : CommitOn::kOwnThread;
  Result<void> running = started.driver->start(std::move(journal), where, std::move(*doors));
  if (!running) return running.error();
  return started;
}

Error forked() {
  return Error(Code::kForked, "the server belongs to the parent process; start one of your own");
}

}  // namespace

struct Server::Impl {
  explicit Impl(ServerOptions asked) : options(std::move(asked)) {
    for (const int fd : options.inherited) inherited.emplace_back(fd);
  }

  [[nodiscard]] std::shared_ptr<Driver> current() {
    const std::lock_guard lock(mutex);
    return driver;
  }
  [[nodiscard]] bool is_forked() const { return net::process_id() != owner; }

  // Constant after start().
  const pid_t owner = net::process_id();
  std::unique_ptr<TempFolder> folder;
  ServerOptions options;
  std::vector<server::Descriptor> inherited;  ///< Closes what the options name.

  std::mutex restart_mutex;
  std::mutex mutex;
  std::shared_ptr<Driver> driver;  // Guarded by mutex, never null.
  std::string recovered;           // Guarded by mutex.
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::Server(Server&&) noexcept = default;

Server& Server::operator=(Server&& other) noexcept {
  if (this != &other) {
    const Server old(std::move(*this));
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Server::~Server() {
  if (!impl_) return;
  if (impl_->is_forked()) {
    // Nothing of the parent's may be touched, not even destroyed: its threads are not here, its
    // epoll set and its files are shared.
    static_cast<void>(impl_.release());
    return;
  }
  static_cast<void>(stop());
}

Result<Server> Server::start(ServerOptions options) {
  if (Result<void> fine = check(options); !fine) return fine.error();
  auto impl = std::make_unique<Impl>(std::move(options));
  Result<Started> started = start_driver(impl->options, {});
  if (!started) return started.error();
  impl->driver = started->driver;
  impl->recovered = started->recovered;
  return Server(std::move(impl));
}

Result<Server> Server::start_in_temp_folder(ServerOptions options) {
  auto folder = std::make_unique<TempFolder>();
  if (folder->path().empty()) {
    return Error(Code::kStorage, "no temporary folder: " + std::generic_category().message(errno));
  }
  options.unix_path = folder->path() / "server.sock";
  Result<Server> server = start(std::move(options));
  if (server) server->impl_->folder = std::move(folder);
  return server;
}

std::vector<std::string> Server::addresses() const { return impl_->current()->addresses(); }

std::string Server::connect_string() const {
  const std::vector<std::string> all = addresses();
  const auto is_tcp = [](const std::string& address) { return !address.starts_with("unix:"); };
  const auto tcp = std::ranges::find_if(all, is_tcp);
  return tcp == all.end() ? all.front() : *tcp;
}

std::uint16_t Server::port() const { return impl_->current()->port(); }

std::string Server::metrics_address() const { return impl_->current()->metrics_address(); }

std::filesystem::path Server::unix_path() const { return impl_->options.unix_path; }

std::string Server::recovered() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->recovered;
}

Result<void> Server::stop() {
  if (impl_->is_forked()) return forked();
  return impl_->current()->stop();
}

Result<void> Server::restart() {
  if (impl_->is_forked()) return forked();
  // Before the mutex: whoever has it may be waiting for this very thread to end.
  if (impl_->current()->is_own_thread()) {
    return Error(Code::kWouldDeadlock, "restart() from a thread of the server's own");
  }
  const std::lock_guard one_at_a_time(impl_->restart_mutex);
  const std::shared_ptr<Driver> old = impl_->current();
  ServerOptions options = impl_->options;
  // What a folder holds is whole, whatever has ended the server; what memory holds may not be.
  const Result<void> stopped = old->stop();
  const bool in_memory = options.data_folder.empty();
  if (!stopped && in_memory) return stopped;

  // These were for the first start.
  options.on_damage = ServerOptions::Damage::kRefuse;
  options.cancel_start = {};
  // In the order of the doors: the inherited ones come first and the Unix socket last.
  const auto first =
      old->addresses().begin() + static_cast<std::ptrdiff_t>(options.inherited.size());
  options.listen.assign(first, first + static_cast<std::ptrdiff_t>(options.listen.size()));
  if (!options.metrics.empty()) options.metrics = old->metrics_address();
  Items memory;
  if (in_memory) {
    old->tree().save([&memory](std::string_view item) { memory.emplace_back(item); });
  }
  Result<Started> started = start_driver(options, memory);
  if (!started) return started.error();
  const std::lock_guard lock(impl_->mutex);
  impl_->driver = started->driver;
  impl_->recovered = started->recovered;
  return {};
}

Result<void> Server::expire_session(std::int64_t session_id) {
  if (impl_->is_forked()) return forked();
  return impl_->current()->expire(session_id);
}

Result<void> Server::wait() {
  if (impl_->is_forked()) return forked();
  return impl_->current()->wait();
}

}  // namespace latchkey::inline v0
