#include "latchkey/inspect.hpp"

#include <utility>

#include "queue/candidacy.hpp"
#include "queue/owner.hpp"
#include "recipes/survey.hpp"

namespace latchkey::inline v0 {

using recipes::Reader;
using recipes::Survey;
using session::Machine;

Result<Queue> inspect(Session& session, const Path& directory, Deadline deadline) {
  session::Host& host = *session.host();
  if (auto allowed = session::check_blocking(host, "inspect"); !allowed) return allowed.error();
  base::Slot<Result<Queue>> slot;
  host.enter([&](Machine& machine, Instant) {
    auto reader = std::make_shared<Reader>(host, machine, deadline, session::Resend::kWithinPolicy);
    std::make_shared<Survey>(std::move(reader), directory.text(), Reader::Changed())
        ->look([&slot](Result<Queue> queue) { slot.set(std::move(queue)); });
  });
  return session::wait_for(host, slot, deadline);
}

Result<void> revoke(Session& session, const Path& node, Deadline deadline) {
  const auto entry = session.exists(node, deadline);
  if (!entry) return entry.error();
  if (*entry && (*entry)->ephemeral_owner == 0) {
    return Error(Code::kInvalidOption,
                 "revoke " + node.text() + ": not a holder's node; give the entry, not the lock");
  }
  const auto asked = session.set(node, std::string(queue::kRevokeData), deadline);
  if (!asked) return asked.error();
  return {};
}

/// Lives until the last call of the handler has returned. One picture is under way at a time: what
/// changes while the handler runs is looked at when it has returned.
class QueueWatch::State : public std::enable_shared_from_this<State> {
 public:
  State(const Session& session, Path directory, Handler handler)
      : host_(session.host()), directory_(std::move(directory)), handler_(std::move(handler)) {}

  void start() {
    if (host_->is_forked()) return handler_(session::check_blocking(*host_, "watch").error());
    host_->enter([this](Machine& machine, Instant) {
      // Whatever is asked is asked again until there is an answer or no session.
      reader_ = std::make_shared<Reader>(*host_, machine, Deadline::never(),
                                         session::Resend::kUntilAnswered, [this] { changed(); });
      survey_ = std::make_shared<Survey>(reader_, directory_.text(), [this] { changed(); });
      look();
    });
  }

  void stop() {
    if (host_->is_forked()) return;
    host_->enter([this](Machine&, Instant) {
      destroyed_ = true;
      close();
    });
  }

 private:
  // Session strand only.

  void changed() {
    changed_ = true;
    if (!busy_) look();
  }

  void look() {
    busy_ = true;
    changed_ = false;
    survey_->look([this](Result<Queue> queue) {
      if (queue) {
        round_ = 0;
      } else if (queue::is_worth_another_try(queue.error().code())) {
        return reader_->pause(round_++, [this] { look(); });
      } else {
        close();
      }
      show(std::move(queue));
    });
  }

  void show(Result<Queue> queue) {
    host_->post([self = shared_from_this(), queue = std::move(queue)]() mutable {
      bool wanted = false;
      self->host_->enter([&](Machine&, Instant) { wanted = !self->destroyed_; });
      if (wanted) self->tell(std::move(queue));
    });
  }

  void close() {
    ended_ = true;
    reader_->close();
  }

  // Any thread.

  void tell(Result<Queue> queue) {
    try {
      handler_(std::move(queue));
    } catch (...) {  // NOLINT(bugprone-empty-catch): user code; there is nobody left to tell.
    }
    host_->enter([this](Machine&, Instant) {
      busy_ = false;
      if (changed_ && !ended_) look();
    });
  }

  const std::shared_ptr<session::Host> host_;
  const Path directory_;
  const Handler handler_;

  // Session strand only.
  std::shared_ptr<Reader> reader_;
  std::shared_ptr<Survey> survey_;
  bool busy_ = false;  ///< Looking, or the handler has not returned.
  bool changed_ = false;
  bool ended_ = false;  ///< Nothing is asked any more.
  bool destroyed_ = false;
  int round_ = 0;
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
