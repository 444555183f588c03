#include <utility>

#include "base/serial_queue.hpp"
#include "latchkey/election.hpp"
#include "queue/delay_note.hpp"
#include "queue/lock_delay.hpp"
#include "queue/picture.hpp"
#include "queue/succession.hpp"
#include "recipes/observer.hpp"

namespace latchkey::recipes {
namespace {

using Seen = std::optional<Leader>;

/// Looks who leads. With `changed` it keeps one watch, on what a change would show at: the leader's
/// node, the list while nobody leads, or the directory while there is none. So candidates that come
/// and go wake no observer. Only while somebody waits out a take-over delay there are two: on its
/// node, and on the directory's data, which says when the delay is over.
///
/// Thread safety: session strand only.
class Lookout final : public std::enable_shared_from_this<Lookout> {
 public:
  using Done = session::Sink<Seen>;

  Lookout(std::shared_ptr<Reader> reader, std::string directory, Reader::Changed changed)
      : reader_(std::move(reader)),
        directory_(std::move(directory)),
        changed_(std::move(changed)) {}

  void look(Done done) {
    forget_both();
    reader_->ask_synced(Children{directory_}, [self = shared_from_this(),
                                               done = std::move(done)](Result<ChildList> list) {
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
    const auto key = std::make_shared<Reader::Key>(0);
    *key = reader_->ask(
        Get{path},
        [self = shared_from_this(), name, path, key, done](Result<Node> node) {
          if (node) {
            const std::string id(queue::without_delay_note(node->data));
            const Leader first{id, Token(node->stat.czxid), name};
            if (!queue::has_delay_note(node->data)) return done(Seen(first));
            self->reader_->forget(*key);
            return self->read_mark(first, path, done);
          }
          if (node.error() == Code::kNoNode) return self->look(done);
          if (node.error() != Code::kNotAuthorized) return done(node.error());
          self->look_at(name, path, done);
        },
        changed_);
  }

  /// Under a take-over delay the first in line leads once the directory's data says so. If that may
  /// not be read it counts for nothing.
  void read_mark(const Leader& first, const std::string& path, const Done& done) {
    looking_ = true;
    mark_watch_ = reader_->ask(
        Get{directory_},
        [self = shared_from_this(), first, path, done](Result<Node> node) {
          const bool hidden = !node && node.error() == Code::kNotAuthorized;
          if (!node && !hidden) {
            self->looking_ = false;
            return node.error() == Code::kNoNode ? self->look(done) : done(node.error());
          }
          const bool leads = hidden || node->data == queue::format_holder(first.token.zxid());
          if (leads) self->reader_->forget(self->mark_watch_);
          self->await_end(path, leads ? Seen(first) : Seen(), done);
        },
        stirs());
  }

  void await_end(const std::string& path, const Seen& seen, const Done& done) {
    if (!changed_) return done(seen);
    node_watch_ = reader_->ask(
        Get{path},
        [self = shared_from_this(), seen, done](Result<Node> node) {
          self->looking_ = false;
          const bool gone = !node && node.error() == Code::kNoNode;
          if (std::exchange(self->stirred_, false) || gone) return self->look(done);
          if (node) return done(seen);
          // There will be another look, and only one: the mark must not call for a second.
          self->forget_both();
          done(node.error());
        },
        stirs());
  }

  /// Whichever of the two watches fires first speaks for both, and never into a look.
  [[nodiscard]] Reader::Changed stirs() {
    if (!changed_) return {};
    return [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->forget_both();
      if (self->looking_) {
        self->stirred_ = true;
      } else {
        self->changed_();
      }
    };
  }

  void forget_both() {
    reader_->forget(mark_watch_);
    reader_->forget(node_watch_);
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

  // Under a take-over delay.
  Reader::Key mark_watch_ = 0;
  Reader::Key node_watch_ = 0;
  bool looking_ = false;
  bool stirred_ = false;  ///< Something has changed during the look.
};

}  // namespace
}  // namespace latchkey::recipes

namespace latchkey::inline v0 {

using recipes::Lookout;
using recipes::Reader;

Result<std::optional<Leader>> leader(Session& session, const Path& directory, Deadline deadline) {
  if (auto valid = directory.check(); !valid) return valid.error();
  return recipes::look_once<std::optional<Leader>>(
      *session.host(), "leader", deadline, [&](std::shared_ptr<Reader> reader, auto done) {
        std::make_shared<Lookout>(std::move(reader), directory.text(), Reader::Changed())
            ->look(std::move(done));
      });
}

class LeaderWatch::State final : public recipes::Observer<std::optional<Leader>> {
 public:
  using Observer::Observer;

 private:
  void begin() override {
    if (auto valid = directory_.check(); !valid) return looked(valid.error());
    lookout_ = std::make_shared<Lookout>(reader_, directory_.text(), [this] { changed(); });
    look();
  }

  /// There is one watch, and it has fired: so one look at a time.
  void changed() override { look(); }
  void look() override {
    lookout_->look([this](Result<std::optional<Leader>> seen) { looked(std::move(seen)); });
  }

  void tell(Result<std::optional<Leader>> seen) override {
    if (seen && !succession_.is_news(*seen)) return;
    const auto self = std::static_pointer_cast<State>(shared_from_this());
    const bool still = calls_->push([self, seen = std::move(seen)] {
      if (!self->is_wanted()) return;
      self->host_->guard()->run("LeaderWatch", [&] { self->handler_(seen); });
    });
    if (still) host_->post([calls = calls_] { calls->start(); });
  }

  /// A handler that takes its time holds up nobody else's.
  const std::shared_ptr<base::SerialQueue> calls_ =
      std::make_shared<base::SerialQueue>([](const base::SerialQueue::Task& task) { task(); });

  // Session strand only.
  std::shared_ptr<Lookout> lookout_;
  queue::Succession succession_;
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
