#include "latchkey/election.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "base/serial_queue.hpp"
#include "queue/candidacy.hpp"
#include "recipes/inbox.hpp"
#include "recipes/lock_delay.hpp"
#include "recipes/misuse.hpp"
#include "recipes/queue_recipe.hpp"
#include "session/operations.hpp"

namespace latchkey::inline v0 {

namespace candidacy = queue::candidacy;
using session::Machine;

namespace {

/// An option as a span that does not overflow.
Duration span_of(std::chrono::milliseconds option) {
  return std::min<std::chrono::milliseconds>(option, std::chrono::hours(24 * 365));
}

queue::Candidacy::Options rules_of(const ElectionOptions& options) {
  queue::Candidacy::Options rules{.min_pause = span_of(options.min_pause),
                                  .max_pause = span_of(options.max_pause),
                                  .short_term = span_of(options.short_term)};
  if (options.is_healthy) rules.health_period = span_of(options.health_period);
  return rules;
}

/// Entries as those of Curator's LeaderLatch, the id in plain text as their data.
std::shared_ptr<const recipes::Recipe> recipe_of(const std::shared_ptr<session::Host>& host,
                                                 Path directory, const ElectionOptions& options) {
  const bool delayed = options.take_over_delay.count() != 0;
  std::shared_ptr<const recipes::Recipe> recipe = std::make_shared<recipes::QueueRecipe>(
      host, std::move(directory),
      recipes::EntryStyle{.contender = {.tag = queue::Tag::kLatch},
                          .data = options.id,
                          .lock_delay = options.take_over_delay,
                          .acl = options.acl,
                          // As for a mutex with a lock delay.
                          .parent = delayed ? Parent::kPersistent : options.parent});
  if (!delayed) return recipe;
  return std::make_shared<recipes::DelayRecipe>(std::move(recipe), options.take_over_delay, "");
}

Result<void> check(const std::string& directory, const ElectionOptions& options) {
  using std::chrono::milliseconds;
  const std::tuple<const char*, milliseconds, milliseconds> limits[] = {
      {"min_pause", options.min_pause, milliseconds(0)},
      {"max_pause", options.max_pause, options.min_pause},
      {"short_term", options.short_term, milliseconds(0)},
      {"health_period", options.health_period, milliseconds(1)},
      {"take_over_delay", options.take_over_delay, milliseconds(0)}};
  for (const auto& [name, value, least] : limits) {
    if (auto valid = recipes::check_at_least(directory, name, value, least); !valid) return valid;
  }
  return {};
}

}  // namespace

/// Carries out what a Candidacy asks for. Everything happens on the session's strand; user code is
/// posted from there. It keeps itself, and so the session, until the candidacy is done.
class Election::Candidate final : public recipes::Claimant,
                                  public session::Member,
                                  public std::enable_shared_from_this<Candidate> {
 public:
  Candidate(const Session& session, Path directory, ElectionOptions options)
      : host_(session.host()),
        options_(std::move(options)),
        recipe_(recipe_of(host_, std::move(directory), options_)),
        candidacy_(rules_of(options_)) {}

  void start() {
    if (host_->is_forked()) {
      ElectionNews news{.state = ElectionState::kFailed};
      news.error = session::check_blocking(*host_, "lead").error();
      if (options_.on_change) options_.on_change(news);
      return;
    }
    host_->enter([this](Machine& machine, Instant) {
      machine_ = &machine;
      self_ = shared_from_this();
      member_ = machine.join(*this);
      feed(candidacy::Start{});
    });
  }

  void resign() { enter(candidacy::Resign{}); }
  void close() { enter(candidacy::Close{}); }

  [[nodiscard]] ElectionState state() {
    if (host_->is_forked() || machine_ == nullptr) return ElectionState::kFailed;
    ElectionState state{};
    host_->enter([&](Machine& machine, Instant now) {
      check_clock(machine, now);
      state = candidacy_.state();
    });
    return state;
  }

  [[nodiscard]] std::optional<Token> token() {
    if (host_->is_forked() || machine_ == nullptr) return {};
    std::optional<Token> token;
    host_->enter([&](Machine& machine, Instant now) {
      check_clock(machine, now);
      if (candidacy_.state() == ElectionState::kLeading) token = token_;
    });
    return token;
  }

  // Session strand only.

  void granted(recipes::Granted grant) override {
    if (!self_) let_go_outside();
    token_ = grant.token;
    over_ = std::stop_source();
    feed(candidacy::Granted{});
  }
  void failed(Error error) override {
    if (!self_) let_go_outside();
    feed(candidacy::Failed{std::move(error)});
  }
  void lost(Code code, std::function<void()> told) override {
    loss_is_told_ = std::move(told);
    feed(candidacy::Lost{error_of(code)});
  }
  /// That is for locks. Whoever wants a leader to go asks the leader.
  void asked_to_let_go() override {}

  void on_heartbeat() override {}
  void on_lease_over() override {}
  void on_session_over(Code code) override { feed(candidacy::SessionOver{error_of(code)}); }

 private:
  void enter(const candidacy::Event& event) {
    if (host_->is_forked() || machine_ == nullptr) return;
    host_->enter([&](Machine&, Instant) { feed(event); });
  }

  void feed(candidacy::Event event) {
    const auto alive = shared_from_this();
    inbox_.put(std::move(event), [this](const candidacy::Event& next) {
      for (const candidacy::Action& action : candidacy_.step(next, machine_->now())) {
        std::visit([this](const auto& what) { carry_out(what); }, action);
      }
    });
  }

  void carry_out(const candidacy::Stand&) {
    if (auto valid = check(recipe_->path(), options_); !valid) return failed(valid.error());
    if (auto valid = recipe_->check(); !valid) return failed(valid.error());
    claim_ = recipe_->start(*machine_, queue::Wait::kYes, shared_from_this());
  }

  void carry_out(const candidacy::Withdraw&) {
    if (const auto claim = claim_.lock()) claim->cancel(Code::kCancelled);
  }

  /// The lock passes on when the callbacks of `over` and the worker inside on_change have returned.
  /// The callbacks, and after a loss the worker too, have a session's time-out for that: the time
  /// they would have if we were cut off.
  void carry_out(const candidacy::EndTerm& end) {
    ending_ = Ending{over_, end.term};
    term_ended_ = end.term;
    lead_.reset();
    stops_have_returned_ = false;
    host_->post_signal(
        [self = shared_from_this(), ending = *ending_] { self->request_stop(ending); });
    machine_->timers().cancel(std::exchange(timer_, 0));
    if (loss_is_told_ || !worker_) limit_telling();
  }

  void limit_telling() {
    if (term_ended_) set_timer(machine_->timeout(), candidacy::Told{*term_ended_});
  }

  void carry_out(const candidacy::GiveUp&) {
    term_ended_.reset();  // Told, or out of time: what returns late counts no more.
    if (const auto told = std::exchange(loss_is_told_, {})) return told();
    if (const auto claim = claim_.lock()) claim->release({});
  }

  void carry_out(const candidacy::AskHealth&) {
    host_->post([self = shared_from_this()] {
      bool good = false;
      self->host_->guard()->run("is_healthy", [&] { good = self->options_.is_healthy(); });
      self->enter(candidacy::Health{good});
    });
  }

  void carry_out(const candidacy::Wake& wake) {
    set_timer(wake.after, candidacy::Woken{wake.number});
  }

  void carry_out(const candidacy::Tell& tell) {
    const std::optional<Ending> ending = std::exchange(ending_, std::nullopt);
    if (!options_.on_change) return;
    ElectionNews news{.state = tell.state};
    news.error = tell.error;
    if (tell.state == ElectionState::kLeading) {
      news.token = token_;
      news.over = over_.get_token();
    }
    const bool leads = tell.state == ElectionState::kLeading;
    if (leads) lead_ = ++leads_;
    const bool still = news_->push([self = shared_from_this(), news, ending, leads, lead = leads_] {
      // Who hears that a term has ended finds its stop token so.
      if (ending) self->request_stop(*ending);
      if (leads) return self->lead(lead, news);
      self->host_->guard()->run("on_change", [&] { self->options_.on_change(news); });
    });
    if (still) host_->post([queue = news_] { queue->start(); });
  }

  void carry_out(const candidacy::Done&) {
    machine_->leave(member_);
    machine_->timers().cancel(std::exchange(timer_, 0));
    let_go_outside();
    self_.reset();
  }

  /// We may be the last to keep the session open, and it must not be closed from in here.
  void let_go_outside() {
    host_->post([self = shared_from_this()] {});
  }

  void set_timer(Duration after, candidacy::Event event) {
    machine_->timers().cancel(timer_);
    timer_ = machine_->timers().add(machine_->now() + after,
                                    [weak = weak_from_this(), event = std::move(event)] {
                                      if (const auto self = weak.lock()) self->feed(event);
                                    });
  }

  /// Whoever hears of a loss by the clock first ends the term, be it us or the session's timer.
  void check_clock(const Machine& machine, Instant now) {
    if (candidacy_.state() != ElectionState::kLeading || now < machine.lease().deadline()) return;
    if (const auto claim = claim_.lock()) claim->on_lease_over();
  }

  /// A term that is over and whose holder is being told.
  struct Ending {
    std::stop_source over;
    std::uint64_t term;
  };

  /// Any thread. Whoever makes the request runs the callbacks, and so knows when they have
  /// returned.
  void request_stop(const Ending& ending) {
    bool first = false;
    {
      const session::TellingLoss here(*host_);
      first = ending.over.request_stop();
    }
    if (!first) return;
    host_->enter([&](Machine&, Instant) {
      if (term_ended_ != ending.term) return;
      stops_have_returned_ = true;
      end_told();
    });
  }

  /// Any thread. Whoever is told of a lead works inside on_change, or has others work.
  void lead(std::uint64_t lead, const ElectionNews& news) {
    host_->enter([&](Machine&, Instant) {
      // A lead that has ended before it was told is not waited for: its `over` is requested.
      if (lead_ == lead) worker_ = lead;
    });
    bool fine = false;
    {
      const session::TellingLoss here(*host_);
      fine = host_->guard()->run("on_change", [&] { options_.on_change(news); });
    }
    host_->enter([&](Machine&, Instant) {
      if (worker_ == lead) {
        worker_.reset();
        if (!loss_is_told_ && !stops_have_returned_) limit_telling();
        end_told();
      }
      // A worker that has thrown works no more, so it must not lead.
      if (!fine && lead_ == lead) feed(candidacy::Resign{});
    });
  }

  /// Session strand only.
  void end_told() {
    if (!term_ended_ || !stops_have_returned_ || worker_) return;
    feed(candidacy::Told{*std::exchange(term_ended_, std::nullopt)});
  }

  [[nodiscard]] Error error_of(Code code) const {
    session::Outcome outcome;
    outcome.code = code;
    return session::make_error("lead", recipe_->path(), outcome);
  }

  // Constant after construction.
  const std::shared_ptr<session::Host> host_;
  const ElectionOptions options_;
  const std::shared_ptr<const recipes::Recipe> recipe_;
  /// An on_change that leads until the end of its term holds up nobody else's callbacks.
  const std::shared_ptr<base::SerialQueue> news_ =
      std::make_shared<base::SerialQueue>([](const base::SerialQueue::Task& task) { task(); });
  Machine* machine_ = nullptr;

  // Session strand only.
  queue::Candidacy candidacy_;
  std::shared_ptr<Candidate> self_;  ///< Until Done.
  session::Machine::MemberId member_ = 0;
  session::Timers::Id timer_ = 0;
  std::weak_ptr<recipes::Claim> claim_;
  Token token_{0};
  std::stop_source over_;  ///< Of the present term.
  std::optional<Ending> ending_;
  std::optional<std::uint64_t> term_ended_;  ///< Its holder is being told.
  bool stops_have_returned_ = false;         ///< Of that term.
  std::uint64_t leads_ = 0;
  std::optional<std::uint64_t> lead_;    ///< The present one.
  std::optional<std::uint64_t> worker_;  ///< The on_change of that lead runs.
  std::function<void()> loss_is_told_;
  recipes::Inbox<candidacy::Event> inbox_;
};

Election::Election(const Session& session, Path directory, ElectionOptions options)
    : candidate_(std::make_shared<Candidate>(session, std::move(directory), std::move(options))) {
  candidate_->start();
}

Election::Election(Election&&) noexcept = default;

Election& Election::operator=(Election&& other) noexcept {
  if (this != &other) {
    if (candidate_) candidate_->close();
    candidate_ = std::move(other.candidate_);
  }
  return *this;
}

Election::~Election() {
  if (candidate_) candidate_->close();
}

void Election::resign() {
  LATCHKEY_DEMAND(candidate_, "Election::resign(): the election was moved away");
  candidate_->resign();
}

void Election::close() {
  LATCHKEY_DEMAND(candidate_, "Election::close(): the election was moved away");
  candidate_->close();
}

ElectionState Election::state() const {
  LATCHKEY_DEMAND(candidate_, "Election::state(): the election was moved away");
  return candidate_->state();
}

std::optional<Token> Election::token() const {
  LATCHKEY_DEMAND(candidate_, "Election::token(): the election was moved away");
  return candidate_->token();
}

}  // namespace latchkey::inline v0
