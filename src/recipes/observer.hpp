#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "latchkey/session.hpp"
#include "queue/candidacy.hpp"
#include "recipes/reader.hpp"

namespace latchkey::recipes {

/// Somebody who looks, tells a handler what there is to see, and looks again when it has changed,
/// for as long as there is a session: what LeaderWatch and QueueWatch have in common. A subclass
/// knows how to look, and when to tell.
///
/// Lives until the last call of the handler has returned. Thread safety: what is public: any
/// thread.
template <class Seen>
class Observer : public std::enable_shared_from_this<Observer<Seen>> {
 public:
  using Handler = std::function<void(Result<Seen>)>;

  Observer(const Session& session, Path directory, Handler handler)
      : host_(session.host()), directory_(std::move(directory)), handler_(std::move(handler)) {}
  virtual ~Observer() = default;

  void start() {
    if (host_->is_forked()) return handler_(session::check_blocking(*host_, "watch").error());
    host_->enter([this](session::Machine& machine, Instant) {
      // Whatever is asked is asked again until there is an answer or no session.
      reader_ = std::make_shared<Reader>(*host_, machine, Deadline::never(),
                                         session::Resend::kUntilAnswered, [this] { changed(); });
      begin();
    });
  }

  void stop() {
    if (host_->is_forked()) return;
    host_->enter([this](session::Machine&, Instant) {
      stopped_ = true;
      close();
    });
  }

 protected:
  // Session strand only.

  /// There is a reader; the first look is due.
  virtual void begin() = 0;
  virtual void look() = 0;
  /// What was looked at has changed, or the session has ended.
  virtual void changed() = 0;
  virtual void tell(Result<Seen> seen) = 0;

  /// What a look has come to. A failure is told if it is the last: otherwise there is another look.
  void looked(Result<Seen> seen) {
    if (!seen && queue::is_worth_another_try(seen.error().code())) {
      return reader_->pause(round_++, [this] { look(); });
    }
    round_ = 0;
    if (!seen) close();
    tell(std::move(seen));
  }

  /// Is anything asked any more?
  [[nodiscard]] bool is_closed() const { return closed_; }

  // Any thread.

  /// Asked right before the handler is called: it may be stopped while that is on its way.
  [[nodiscard]] bool is_wanted() {
    bool wanted = false;
    host_->enter([&](session::Machine&, Instant) { wanted = !stopped_; });
    return wanted;
  }

  const std::shared_ptr<session::Host> host_;
  const Path directory_;
  const Handler handler_;

  // Session strand only.
  std::shared_ptr<Reader> reader_;

 private:
  void close() {
    closed_ = true;
    reader_->close();
  }

  bool stopped_ = false;
  bool closed_ = false;
  int round_ = 0;  ///< Failed looks in a row.
};

}  // namespace latchkey::recipes
