#include <utility>

#include "base/serial_queue.hpp"
#include "latchkey/election.hpp"
#include "queue/candidacy.hpp"
#include "queue/picture.hpp"
#include "queue/succession.hpp"
#include "recipes/reader.hpp"

namespace latchkey::recipes {
namespace {

using Seen = std::optional<Leader>;

/// Looks who leads. With `changed` it keeps one watch, on what a change would show at: the leader's
/// node, the list while nobody leads, or the directory while there is none. So candidates that come
/// and go wake no observer.
///
/// Thread safety: session strand only.
class Lookout final : public std::enable_shared_from_this<Lookout> {
 public:
  using Done = session::Sink<Seen>;

  Lookout(std::shared_ptr<Reader> reader, std::string directory, Reader::Changed changed)
      : reader_(std::move(reader)),
        directory_(std::move(directory)),
        changed_(std::move(changed)) {}

  /// What is read behind a sync is as new as the service's leader was when it answered (H76).
  void look(Done done) {
    const auto synced = std::make_shared<Result<void>>();
    reader_->ask(Sync{directory_}, [synced](Result<void> answer) { *synced = std::move(answer); });
    reader_->ask(Children{directory_}, [self = shared_from_this(), synced,
                                        done = std::move(done)](Result<ChildList> list) {
      if (!*synced) return done(synced->error());
      if (list) return self->listed(list->names, done);
      if (list.error() != Code::kNoNode) return done(list.error());
      if (!self->changed_) return done(Seen());
      self->await_directory(done);
    });
  }

 private:
  void listed(const std::vector<std::string>& names, const Done& done) {
    if (const auto first = queue::first_in_line(names)) return read(*first, done);
    if (!changed_) return done(Seen());
    await_somebody(done);
  }

  void read(const std::string& name, const Done& done) {
    const std::string path = directory_ == "/" ? "/" + name : directory_ + "/" + name;
    reader_->ask(
        Get{path},
        [self = shared_from_this(), name, path, done](Result<Node> node) {
          if (node) return done(Seen(Leader{node->data, Token(node->stat.czxid), name}));
          if (node.error() == Code::kNoNode) return self->look(done);
          if (node.error() != Code::kNotAuthorized) return done(node.error());
          self->look_at(name, path, done);
        },
        changed_);
  }

  /// What may not be read may still be looked at.
  void look_at(const std::string& name, const std::string& path, const Done& done) {
    const auto key = std::make_shared<Reader::Key>(0);
    *key = reader_->ask(
        Exists{path},
        [self = shared_from_this(), name, key, done](Result<std::optional<Stat>> stat) {
          if (!stat) return done(stat.error());
          if (*stat) return done(Seen(Leader{{}, Token((*stat)->czxid), name}));
          self->reader_->forget(*key);
          self->look(done);
        },
        changed_);
  }

  void await_somebody(const Done& done) {
    const auto key = std::make_shared<Reader::Key>(0);
    *key = reader_->ask(
        Children{directory_},
        [self = shared_from_this(), key, done](Result<ChildList> list) {
          if (list && !queue::first_in_line(list->names)) return done(Seen());
          self->reader_->forget(*key);
          if (list || list.error() == Code::kNoNode) return self->look(done);
          done(list.error());
        },
        changed_);
  }

  void await_directory(const Done& done) {
    const auto key = std::make_shared<Reader::Key>(0);
    *key = reader_->ask(
        Exists{directory_},
        [self = shared_from_this(), key, done](Result<std::optional<Stat>> stat) {
          if (!stat) return done(stat.error());
          if (!*stat) return done(Seen());
          self->reader_->forget(*key);
          self->look(done);
        },
        changed_);
  }

  const std::shared_ptr<Reader> reader_;
  const std::string directory_;
  const Reader::Changed changed_;
};

}  // namespace
}  // namespace latchkey::recipes

namespace latchkey::inline v0 {

using recipes::Lookout;
using recipes::Reader;
using session::Machine;

Result<std::optional<Leader>> leader(Session& session, const Path& directory, Deadline deadline) {
  session::Host& host = *session.host();
  if (auto allowed = session::check_blocking(host, "leader"); !allowed) return allowed.error();
  if (auto valid = directory.check(); !valid) return valid.error();
  base::Slot<Result<std::optional<Leader>>> slot;
  host.enter([&](Machine& machine, Instant) {
    auto reader = std::make_shared<Reader>(host, machine, deadline, session::Resend::kWithinPolicy);
    std::make_shared<Lookout>(std::move(reader), directory.text(), Reader::Changed())
        ->look([&slot](auto seen) { slot.set(std::move(seen)); });
  });
  return session::wait_for(host, slot, deadline);
}

/// Lives until the last call of the handler has returned.
class LeaderWatch::State : public std::enable_shared_from_this<State> {
 public:
  State(const Session& session, Path directory, Handler handler)
      : host_(session.host()), directory_(std::move(directory)), handler_(std::move(handler)) {}

  void start() {
    if (host_->is_forked()) return handler_(session::check_blocking(*host_, "watch").error());
    host_->enter([this](Machine& machine, Instant) {
      // Whatever is asked is asked again until there is an answer or no session.
      reader_ = std::make_shared<Reader>(*host_, machine, Deadline::never(),
                                         session::Resend::kUntilAnswered, [this] { look(); });
      if (auto valid = directory_.check(); !valid) return end(valid.error());
      lookout_ = std::make_shared<Lookout>(reader_, directory_.text(), [this] { look(); });
      look();
    });
  }

  void stop() {
    if (host_->is_forked()) return;
    host_->enter([this](Machine&, Instant) {
      destroyed_ = true;
      reader_->close();
    });
  }

 private:
  // Session strand only.

  /// There is one watch, and it has fired: so one look at a time.
  void look() {
    lookout_->look([this](Result<std::optional<Leader>> seen) {
      if (!seen && queue::is_worth_another_try(seen.error().code())) {
        return reader_->pause(round_++, [this] { look(); });
      }
      if (!seen) return end(seen.error());
      round_ = 0;
      if (succession_.is_news(*seen)) tell(std::move(seen));
    });
  }

  void end(Error error) {
    reader_->close();
    tell(std::move(error));
  }

  void tell(Result<std::optional<Leader>> seen) {
    const bool still = calls_->push([self = shared_from_this(), seen = std::move(seen)] {
      bool wanted = false;
      self->host_->enter([&](Machine&, Instant) { wanted = !self->destroyed_; });
      if (wanted) self->handler_(seen);
    });
    if (still) host_->post([calls = calls_] { calls->start(); });
  }

  const std::shared_ptr<session::Host> host_;
  const Path directory_;
  const Handler handler_;
  /// A handler that takes its time holds up nobody else's.
  const std::shared_ptr<base::SerialQueue> calls_ =
      std::make_shared<base::SerialQueue>([](const base::SerialQueue::Task& task) { task(); });

  // Session strand only.
  std::shared_ptr<Reader> reader_;
  std::shared_ptr<Lookout> lookout_;
  queue::Succession succession_;
  bool destroyed_ = false;
  int round_ = 0;
};

LeaderWatch::LeaderWatch(const Session& session, Path directory, Handler handler)
    : state_(std::make_shared<State>(session, std::move(directory), std::move(handler))) {
  state_->start();
}

LeaderWatch::LeaderWatch(LeaderWatch&&) noexcept = default;

LeaderWatch& LeaderWatch::operator=(LeaderWatch&& other) noexcept {
  if (this != &other) {
    if (state_) state_->stop();
    state_ = std::move(other.state_);
  }
  return *this;
}

LeaderWatch::~LeaderWatch() {
  if (state_) state_->stop();
}

}  // namespace latchkey::inline v0
