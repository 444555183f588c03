#include "sim/client.hpp"

#include <algorithm>
#include <utility>

#include "latchkey/multi_lock.hpp"
#include "latchkey/mutex.hpp"
#include "latchkey/name_lock.hpp"
#include "latchkey/semaphore.hpp"
#include "recipes/queue_recipe.hpp"

namespace latchkey::sim {

using namespace std::chrono_literals;

namespace {

/// After a session ended; and the patience of somebody who wants to be sure.
constexpr Duration kBeforeReopening = 20ms;
constexpr Duration kVeryLong = 1h;

}  // namespace

/// Wants one lock after the other. Everything here happens as a part of the process.
class Client::Contender {
 public:
  explicit Contender(Client& client) : client_(client) {}

  void next() {
    if (client_.winding_down_ && !owed_) owed_ = client_.choices_.size();
    if (owed_ && *owed_ == 0) return;
    if (!remedies_.empty()) return want(remedies_.back());
    want(owed_ ? *owed_ - 1 : luck().below(client_.choices_.size()));
  }

  [[nodiscard]] bool is_done() const { return owed_ == 0 && !lease_; }
  [[nodiscard]] std::string waits_for() const { return lease_ ? "holding" : wanted_; }

 private:
  [[nodiscard]] base::Random& luck() { return client_.world_.random(); }
  [[nodiscard]] bool chance(std::uint32_t permille) {
    return client_.world_.timeline().chance(permille);
  }
  [[nodiscard]] Duration draw(testing::Span span) {
    return client_.world_.timeline().draw(span.least, span.most);
  }
  [[nodiscard]] Duration draw_hold() {
    if (!owed_ && chance(client_.plan_.long_hold_permille)) {
      return draw({client_.plan_.timeout / 4, 2 * client_.plan_.timeout});
    }
    return draw(client_.plan_.hold) / 2;
  }
  /// So long that the end comes anywhere between the first request and a grant.
  [[nodiscard]] Duration draw_hurry() {
    return draw({0us, 8 * client_.plan_.world.latency.most + client_.plan_.world.commit.most});
  }
  void later(Duration span, void (Contender::*step)()) {
    client_.world_.post(client_.process_, span, [this, step] { (this->*step)(); });
  }

  void want(std::size_t index) {
    const Choice& choice = client_.choices_[index];
    const bool tries = !owed_ && chance(client_.plan_.try_permille);
    const std::uint32_t hurries = owed_ ? 0 : client_.plan_.hurry_permille;
    const bool is_hurried = hurries > 0 && chance(hurries);
    const Deadline deadline = deadline_in(owed_        ? kVeryLong
                                          : is_hurried ? draw_hurry()
                                          : tries      ? Duration(5s)
                                                       : draw(client_.plan_.patience));
    std::stop_source stop;
    if (!owed_ && chance(client_.plan_.cancel_permille)) {
      client_.world_.post(client_.process_, draw({0us, 20ms}),
                          [stop]() mutable { stop.request_stop(); });
    }
    wanted_ = choice.lock.path();
    shares_ = choice.shares;
    downgrades_ = choice.downgrades;
    goes_on_ = false;
    generation_ = client_.generation_;
    session_ = client_.sessions_.size() - 1;
    const Judge::AskId ask = ask_judge(deadline);
    LockRequest request = tries ? choice.lock.try_lock_async(deadline, stop.get_token())
                                : choice.lock.lock_async(deadline, stop.get_token());
    std::move(request).then(answer(ask));
  }

  [[nodiscard]] Judge::AskId ask_judge(const Deadline& deadline) {
    return client_.judge_.asked({client_.number_, &client_.process_, deadline.at(), shares_});
  }

  [[nodiscard]] LockRequest::Handler answer(Judge::AskId ask) {
    return [this, ask, generation = generation_, session = session_](Result<Lease> lease) {
      client_.judge_.answered(ask, lease ? Judge::Got::kHold : Judge::Got::kNothing,
                              client_.sessions_[session].id());
      client_.leave_if_asked();
      if (lease) return hold(std::move(*lease), client_.sessions_[session]);
      client_.world_.note(static_cast<std::uint64_t>(lease.error().code()));
      client_.lookout_.gave_up(client_.world_.host_of(client_.sessions_[session]),
                               lease.error().code());
      if (is_session_over(lease.error().code())) client_.reopen(generation);
      if (lease.error().code() == Code::kCounterExhausted) do_as_told();
      later(kBeforeReopening + draw(client_.plan_.think), &Contender::next);
    };
  }

  /// A multi-lock does not make a directory anew. Its error says what does.
  void do_as_told() {
    remedies_.clear();
    for (std::size_t i = 0; i < client_.choices_.size(); ++i) {
      const std::vector<Share>& shares = client_.choices_[i].shares;
      const bool is_member = std::ranges::any_of(
          shares_, [&](const Share& one) { return one.site == shares.front().site; });
      if (is_member && shares.size() == 1) remedies_.push_back(i);
    }
  }

  void hold(Lease lease, const Session& session) {
    lease_ = std::make_shared<Lease>(std::move(lease));
    host_ = &client_.world_.host_of(session);
    seen_ = {shares_.front().site, client_.process_.id(), shares_.front().is_shared,
             lease_->token(), lease_->nodes()};
    client_.lookout_.granted(seen_);
    if (old_ && old_->release() == Released::kAlreadyOver) client_.lookout_.releases_again();
    old_.reset();
    client_.world_.note(static_cast<std::uint64_t>(lease_->token().zxid()));
    const auto believes = [lease = lease_] {
      const LeaseState state = lease->state();
      return state == LeaseState::kHeld || state == LeaseState::kSuspect;
    };
    hold_ = client_.judge_.granted({client_.number_, &client_.process_, session.id(), shares_,
                                    lease_->token(), lease_->nodes(), goes_on_, believes,
                                    lease_->lost()});
    const auto hear = [&judge = client_.judge_, hold = hold_] { judge.told_lost(hold); };
    on_loss_.emplace(lease_->lost(), hear);
    const bool is_remedy = !remedies_.empty();
    if (is_remedy) remedies_.pop_back();
    if (owed_ && !goes_on_ && !is_remedy) --*owed_;
    later(draw_hold(), &Contender::use);
  }

  void use() {
    client_.judge_.writes(hold_);
    if (client_.plan_.guards) write_guarded();
    // Who believes goes on working.
    if (chance(300)) return later(draw_hold(), &Contender::use);
    later(draw_hold(), &Contender::let_go);
  }

  /// In the service itself, where nothing may be written once the lock has gone.
  void write_guarded() {
    const Share& share = shares_.front();
    const Sort sort = client_.plan_.sites[share.site].sort;
    if (share.is_shared || sort == Sort::kSemaphore) return;
    Multi multi{
        {Set{Path(kLedger + std::to_string(share.site)), std::to_string(lease_->token().zxid())}}};
    // It refuses a name, and what is handed over.
    if (!lease_->guard(multi)) return;
    Session session = client_.sessions_[session_];
    session.async(std::move(multi), deadline_in(5s), [](const auto&) {});
  }

  void let_go() {
    on_loss_.reset();
    client_.judge_.ended(hold_);
    const bool reads_on = downgrades_ && !goes_on_ && chance(300);
    // Release says when it was lost; destruction does not care.
    const bool releases = !reads_on && chance(500);
    if (reads_on) return read_on();
    const bool is_lost = lease_->state() == LeaseState::kLost;
    client_.lookout_.lets_go(seen_, *host_, is_lost,
                             releases ? Lookout::Ending::kRelease : Lookout::Ending::kDestruction);
    if (releases) {
      lease_->release();
      old_ = lease_;
    }
    lease_.reset();
    later(draw(client_.plan_.think), &Contender::next);
  }

  void read_on() {
    client_.lookout_.reads_on(seen_);
    goes_on_ = true;
    shares_.front() = {shares_.front().site, 1, true};
    const Deadline deadline = deadline_in(draw({100ms, 5s}));
    const Judge::AskId ask = ask_judge(deadline);
    Lease writing = std::move(*lease_);
    lease_.reset();
    downgrades_->downgrade_async(std::move(writing), deadline).then(answer(ask));
  }

  Client& client_;
  std::string wanted_;
  std::vector<Share> shares_;
  std::optional<RwLock> downgrades_;
  std::uint64_t generation_ = 0;  ///< Of the client's sessions, and which of them it asked with.
  std::size_t session_ = 0;
  bool goes_on_ = false;
  std::shared_ptr<Lease> lease_;
  std::shared_ptr<Lease> old_;  ///< Released once, and soon once more (H24).
  testing::SimHost* host_ = nullptr;
  Lookout::Hold seen_;
  Judge::HoldId hold_ = 0;
  std::optional<std::stop_callback<std::function<void()>>> on_loss_;
  std::optional<std::size_t> owed_;    ///< Locks still to be taken before it is done.
  std::vector<std::size_t> remedies_;  ///< Choices to be taken first, and once.
};

/// Runs for leadership on a site.
class Client::Candidate {
 public:
  Candidate(Client& client, std::size_t site) : client_(client), site_(site) {}

  void run() {
    if (client_.winding_down_) return;
    ElectionOptions options;
    options.id = client_.process_.name();
    options.min_pause = 1ms;
    options.max_pause = 200ms;
    options.short_term = 10ms;
    options.on_change = [this, generation = ++generation_](const ElectionNews& news) {
      if (generation == generation_) hear(news);
    };
    if (client_.plan_.sick_permille > 0) {
      options.health_period = 5ms;
      options.is_healthy = [this] { return is_healthy(); };
    }
    if (client_.plan_.observes) observe();
    election_ = std::make_shared<Election>(client_.session(), client_.plan_.sites[site_].path,
                                           std::move(options));
  }
  void stop() {
    ++generation_;
    end();
    election_.reset();
    watch_.reset();
  }

 private:
  bool is_healthy() {
    if (!client_.world_.timeline().chance(client_.plan_.sick_permille)) return true;
    client_.lookout_.found_sick();
    return false;
  }
  void observe() {
    testing::SimHost& host = client_.host();
    const auto see = [this, &host](const Result<std::optional<latchkey::Leader>>& leader) {
      if (!leader || !*leader) return;
      client_.lookout_.shown_leader(host);
      client_.judge_.shown(site_, shown_, (*leader)->token);
      shown_ = (*leader)->token;
    };
    shown_ = Token(0);
    watch_.emplace(client_.session(), client_.plan_.sites[site_].path, see);
  }
  void hear(const ElectionNews& news) {
    end();
    if (news.state == ElectionState::kFailed) return client_.reopen(client_.generation_);
    if (news.state != ElectionState::kLeading) return;
    if (std::exchange(has_led_, true)) client_.lookout_.led_before();
    client_.world_.note(static_cast<std::uint64_t>(news.token->zxid()));
    const auto believes = [election = election_, token = *news.token] {
      return election->state() == ElectionState::kLeading && election->token() == token;
    };
    hold_ = client_.judge_.granted({.client = client_.number_,
                                    .process = &client_.process_,
                                    .session = client_.session_id(),
                                    .shares = {Share{site_, 1, false}},
                                    .token = *news.token,
                                    .believes = believes});
    client_.world_.post(client_.process_, client_.world_.timeline().draw(0us, 20ms),
                        [this, hold = *hold_, election = election_] {
                          if (hold_ != hold) return;
                          client_.judge_.writes(hold);
                          end();
                          election->resign();
                        });
  }
  void end() {
    if (hold_) client_.judge_.ended(*std::exchange(hold_, std::nullopt));
  }

  Client& client_;
  const std::size_t site_;
  std::shared_ptr<Election> election_;
  std::optional<LeaderWatch> watch_;
  Token shown_{0};  ///< The newest leader that it was shown.
  bool has_led_ = false;
  std::optional<Judge::HoldId> hold_;
  std::uint64_t generation_ = 0;
};

Client::Client(const Stage& stage, std::size_t number)
    : world_(stage.world),
      judge_(stage.judge),
      lookout_(stage.lookout),
      plan_(stage.plan),
      number_(number),
      process_(world_.start_process("client " + std::to_string(number))) {
  if (plan_.drifts) world_.set_clock_rate(process_, draw_drift(world_.random()));
  for (std::size_t i = 0; i < plan_.contenders; ++i) {
    contenders_.push_back(std::make_unique<Contender>(*this));
  }
  for (std::size_t site = 0; site < plan_.sites.size(); ++site) {
    if (plan_.sites[site].sort == Sort::kElection) {
      candidates_.push_back(std::make_unique<Candidate>(*this, site));
    }
  }
}

Client::~Client() = default;

void Client::start() {
  world_.post(process_, 0us, [this] {
    open();
    for (const auto& contender : contenders_) {
      world_.post(process_, world_.timeline().draw(0us, 5ms),
                  [contender = contender.get()] { contender->next(); });
    }
  });
}

void Client::open() {
  ++generation_;
  SessionOptions options;
  options.timeout = plan_.timeout;
  if (plan_.least_timeout() < plan_.timeout) options.least_timeout = plan_.least_timeout();
  options.max_requests = plan_.max_requests;
  options.max_request_bytes = plan_.max_request_bytes;
  sessions_.push_back(world_.open(process_, std::move(options)));
  build_locks();
  for (std::size_t site = 0; plan_.guards && site < plan_.sites.size(); ++site) {
    sessions_.back().async(Create{Path(kLedger + std::to_string(site)), "0", {}}, deadline_in(5s),
                           [](const auto&) {});
  }
  for (const auto& candidate : candidates_) candidate->run();
}

void Client::reopen(std::uint64_t generation) {
  if (generation != generation_) return;
  ++generation_;
  for (const auto& candidate : candidates_) candidate->stop();
  // What is still held is lost, and its owner finds out by itself.
  open();
}

void Client::leave_if_asked() {
  if (!std::exchange(leaves_, false)) return;
  world_.counted(testing::Fault::kLeave, &process_);
  lookout_.leaves(host());
  host().let_go();
  reopen(generation_);
}

Lock Client::mutex_at(const std::string& path) const {
  if (!plan_.relists && !plan_.farewells) return Mutex(session(), path, {.reason = plan_.reason});
  queue::Contender::Options contender;
  if (plan_.relists) contender.relist = queue::Relist::kAlways;
  if (plan_.farewells) contender.farewell_from = 1;
  return Lock(std::make_shared<recipes::QueueRecipe>(
      session().host(), Path(path),
      recipes::EntryStyle{.contender = std::move(contender), .reason = plan_.reason}));
}

void Client::build_locks() {
  choices_.clear();
  std::vector<Path> mutexes;
  std::vector<Share> all;
  for (std::size_t i = 0; i < plan_.sites.size(); ++i) {
    const Site& site = plan_.sites[i];
    const Share one{i, 1, false};
    switch (site.sort) {
      case Sort::kMutex:
        mutexes.emplace_back(site.path);
        all.push_back(one);
        choices_.push_back({mutex_at(site.path), {one}, {}});
        break;
      case Sort::kHandOver:
        choices_.push_back({Mutex(session(), site.path, {.hand_over = {.count = 3}}), {one}, {}});
        break;
      case Sort::kDelayed:
        choices_.push_back({Mutex(session(), site.path, {.lock_delay = kLockDelay}), {one}, {}});
        break;
      case Sort::kRw:
      case Sort::kRwHerd: {
        RwLockOptions options;
        if (site.sort == Sort::kRwHerd) options.watch = WatchPolicy::kDirectory;
        const RwLock lock(session(), site.path, options);
        choices_.push_back({lock.read(), {Share{i, 1, true}}, {}});
        choices_.push_back({lock.write(), {Share{i, kAllSeats, false}}, lock});
        break;
      }
      case Sort::kSemaphore: {
        SemaphoreOptions options;
        if (!plan_.resizes) options.size = site.size;
        const Semaphore pool(session(), site.path, options);
        for (int count = 1; count <= site.size; ++count) {
          choices_.push_back({pool.permits(count), {Share{i, count, false}}, {}});
        }
        break;
      }
      case Sort::kMulti: choices_.push_back({MultiLock(session(), mutexes), all, {}}); break;
      case Sort::kName: choices_.push_back({NameLock(session(), site.path), {one}, {}}); break;
      case Sort::kElection: break;
    }
  }
}

void Client::wind_down() {
  world_.post(process_, 0us, [this] {
    winding_down_ = true;
    for (const auto& candidate : candidates_) candidate->stop();
  });
}

bool Client::is_done() const {
  return !is_alive() ||
         std::ranges::all_of(contenders_, [](const auto& one) { return one->is_done(); });
}

std::string Client::waits_for() const {
  std::string text = process_.name() + ":";
  for (const auto& contender : contenders_) {
    if (!contender->is_done()) text += " " + contender->waits_for();
  }
  return text;
}

void Client::bury() { judge_.died(number_); }

}  // namespace latchkey::sim
