#include "sim/client.hpp"

#include <algorithm>
#include <utility>

#include "latchkey/multi_lock.hpp"
#include "latchkey/mutex.hpp"
#include "latchkey/name_lock.hpp"
#include "latchkey/semaphore.hpp"

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
  void later(Duration span, void (Contender::*step)()) {
    client_.world_.post(client_.process_, span, [this, step] { (this->*step)(); });
  }

  void want(std::size_t index) {
    const Choice& choice = client_.choices_[index];
    const bool tries = !owed_ && chance(client_.plan_.try_permille);
    const Deadline deadline = deadline_in(owed_   ? kVeryLong
                                          : tries ? Duration(5s)
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
    const Judge::AskId ask = client_.judge_.asked(client_.number_, client_.process_, deadline.at());
    LockRequest request = tries ? choice.lock.try_lock_async(deadline, stop.get_token())
                                : choice.lock.lock_async(deadline, stop.get_token());
    std::move(request).then(answer(ask));
  }

  [[nodiscard]] LockRequest::Handler answer(Judge::AskId ask) {
    return [this, ask, generation = client_.generation_,
            session = client_.sessions_.size() - 1](Result<Lease> lease) {
      client_.judge_.answered(ask);
      if (lease) return hold(std::move(*lease), client_.sessions_[session].id());
      client_.world_.note(static_cast<std::uint64_t>(lease.error().code()));
      if (is_session_over(lease.error().code())) client_.reopen(generation);
      later(kBeforeReopening + draw(client_.plan_.think), &Contender::next);
    };
  }

  void hold(Lease lease, std::int64_t session) {
    lease_ = std::make_shared<Lease>(std::move(lease));
    client_.world_.note(static_cast<std::uint64_t>(lease_->token().zxid()));
    const auto believes = [lease = lease_] {
      const LeaseState state = lease->state();
      return state == LeaseState::kHeld || state == LeaseState::kSuspect;
    };
    hold_ = client_.judge_.granted({client_.number_, &client_.process_, session, shares_,
                                    lease_->token(), lease_->nodes(), goes_on_, believes});
    if (owed_ && !goes_on_) --*owed_;
    later(draw_hold(), &Contender::use);
  }

  void use() {
    client_.judge_.writes(hold_);
    // Who believes goes on working.
    if (chance(300)) return later(draw_hold(), &Contender::use);
    later(draw_hold(), &Contender::let_go);
  }

  void let_go() {
    client_.judge_.ended(hold_);
    if (downgrades_ && !goes_on_ && chance(300)) return read_on();
    // Release says when it was lost; destruction does not care.
    if (chance(500)) lease_->release();
    lease_.reset();
    later(draw(client_.plan_.think), &Contender::next);
  }

  void read_on() {
    goes_on_ = true;
    shares_.front() = {shares_.front().site, 1, true};
    const Deadline deadline = deadline_in(draw({100ms, 5s}));
    const Judge::AskId ask = client_.judge_.asked(client_.number_, client_.process_, deadline.at());
    Lease writing = std::move(*lease_);
    lease_.reset();
    downgrades_->downgrade_async(std::move(writing), deadline).then(answer(ask));
  }

  Client& client_;
  std::string wanted_;
  std::vector<Share> shares_;
  std::optional<RwLock> downgrades_;
  bool goes_on_ = false;
  std::shared_ptr<Lease> lease_;
  Judge::HoldId hold_ = 0;
  std::optional<std::size_t> owed_;  ///< Locks still to be taken before it is done.
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
    election_ = std::make_shared<Election>(client_.session(), client_.plan_.sites[site_].path,
                                           std::move(options));
  }
  void stop() {
    ++generation_;
    end();
    election_.reset();
  }

 private:
  void hear(const ElectionNews& news) {
    end();
    if (news.state == ElectionState::kFailed) return client_.reopen(client_.generation_);
    if (news.state != ElectionState::kLeading) return;
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
  std::optional<Judge::HoldId> hold_;
  std::uint64_t generation_ = 0;
};

Client::Client(testing::World& world, Judge& judge, const Plan& plan, std::size_t number)
    : world_(world),
      judge_(judge),
      plan_(plan),
      number_(number),
      process_(world.start_process("client " + std::to_string(number))) {
  for (std::size_t i = 0; i < plan.contenders; ++i) {
    contenders_.push_back(std::make_unique<Contender>(*this));
  }
  for (std::size_t site = 0; site < plan.sites.size(); ++site) {
    if (plan.sites[site].sort == Sort::kElection) {
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
  sessions_.push_back(world_.open(process_, std::move(options)));
  build_locks();
  for (const auto& candidate : candidates_) candidate->run();
}

void Client::reopen(std::uint64_t generation) {
  if (generation != generation_) return;
  ++generation_;
  for (const auto& candidate : candidates_) candidate->stop();
  // What is still held is lost, and its owner finds out by itself.
  open();
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
        choices_.push_back({Mutex(session(), site.path), {one}, {}});
        break;
      case Sort::kHandOver:
        choices_.push_back({Mutex(session(), site.path, {.hand_over = {.count = 3}}), {one}, {}});
        break;
      case Sort::kDelayed:
        choices_.push_back({Mutex(session(), site.path, {.lock_delay = 300ms}), {one}, {}});
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
        const Semaphore pool(session(), site.path, {.size = site.size});
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
