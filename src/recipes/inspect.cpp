#include "latchkey/inspect.hpp"

#include <string_view>
#include <utility>

#include "queue/node_name.hpp"
#include "queue/owner.hpp"
#include "recipes/observer.hpp"
#include "recipes/survey.hpp"

namespace latchkey::inline v0 {

using recipes::Reader;
using recipes::Survey;

Result<Queue> inspect(Session& session, const Path& directory, Deadline deadline) {
  return recipes::look_once<Queue>(
      *session.host(), "inspect", deadline, [&](std::shared_ptr<Reader> reader, auto done) {
        std::make_shared<Survey>(std::move(reader), directory.text(), Reader::Changed())
            ->look(std::move(done));
      });
}

Result<void> revoke(Session& session, const Path& node, Deadline deadline) {
  const std::string_view entry_name =
      std::string_view(node.text()).substr(node.text().rfind('/') + 1);
  if (queue::is_candidate(entry_name)) {
    return Error(Code::kInvalidOption,
                 "revoke " + node.text() +
                     ": a candidate of an election cannot be asked: its data is its name, which "
                     "the request would overwrite; let it resign, or remove the entry");
  }
  // The server we are at may not have heard of the entry yet.
  if (const auto synced = session.sync(node, deadline); !synced) return synced.error();
  while (true) {
    const auto entry = session.get(node, deadline);
    if (!entry) return entry.error();
    if (entry->stat.ephemeral_owner == 0) {
      return Error(Code::kInvalidOption,
                   "revoke " + node.text() + ": not a holder's node; give the entry, not the lock");
    }
    const auto asked =
        session.set(node, queue::asking_to_let_go(entry->data), deadline, entry->stat.version);
    if (asked) return {};
    if (asked.error() != Code::kBadVersion) return asked.error();  // Else somebody was quicker.
  }
}

/// One picture is under way at a time: what changes while the handler runs is looked at when it has
/// returned.
class QueueWatch::State final : public recipes::Observer<Queue> {
 public:
  using Observer::Observer;

 private:
  void begin() override {
    survey_ = std::make_shared<Survey>(reader_, directory_.text(), [this] { changed(); });
    look();
  }

  void changed() override {
    changed_ = true;
    if (!busy_) look();
  }

  void look() override {
    busy_ = true;
    changed_ = false;
    survey_->look([this](Result<Queue> queue) { looked(std::move(queue)); });
  }

  /// What is seen again is no news: a change may be undone before it is looked at, and a semaphore
  /// goes in pieces, each of which is watched.
  void tell(Result<Queue> queue) override {
    if (queue && told_ == *queue) return shown();
    told_.reset();
    if (queue) told_ = *queue;
    const auto self = std::static_pointer_cast<State>(shared_from_this());
    host_->post([self, queue = std::move(queue)]() mutable {
      if (self->is_wanted()) self->show(std::move(queue));
    });
  }

  /// Any thread.
  void show(Result<Queue> queue) {
    host_->guard()->run("QueueWatch", [&] { handler_(std::move(queue)); });
    host_->enter([this](session::Machine&, Instant) { shown(); });
  }

  /// Session strand only.
  void shown() {
    busy_ = false;
    if (changed_ && !is_closed()) look();
  }

  // Session strand only.
  std::shared_ptr<Survey> survey_;
  bool busy_ = false;  ///< Looking, or the handler has not returned.
  bool changed_ = false;
  std::optional<Queue> told_;  ///< The last picture.
};

QueueWatch::QueueWatch(const Session& session, Path directory, Handler handler)
    : state_(std::make_shared<State>(session, std::move(directory), std::move(handler))) {
  state_->start();
}

QueueWatch::QueueWatch(QueueWatch&&) noexcept = default;

QueueWatch& QueueWatch::operator=(QueueWatch&& other) noexcept {
  if (this != &other) {
    if (state_) state_->stop();
    state_ = std::move(other.state_);
  }
  return *this;
}

QueueWatch::~QueueWatch() {
  if (state_) state_->stop();
}

}  // namespace latchkey::inline v0
