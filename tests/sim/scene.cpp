#include "sim/scene.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <gtest/gtest.h>

#include "latchkey/mutex.hpp"

namespace latchkey::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::array<const char*, 4> kNames = {"ann", "bob", "cyd", "dan"};

Plan plan_of(Scene::Setup& setup) {
  Plan plan;
  plan.seed = setup.seed;
  plan.world.seed = setup.seed;
  plan.world.followers = setup.followers;
  plan.world.store = setup.store;
  plan.world.fold_bytes = setup.fold_bytes;
  plan.world.segment_bytes = std::min(plan.world.segment_bytes, setup.fold_bytes / 2);
  plan.world.service.tick = 100ms;
  plan.world.service.min_session_timeout = 1s;
  plan.sites = std::move(setup.sites);
  plan.timeout = setup.timeout;
  plan.regrants = setup.regrants;
  return plan;
}

SessionOptions options_of(const Plan& plan) {
  SessionOptions options;
  options.timeout = plan.timeout;
  if (plan.regrants) options.least_timeout = plan.least_timeout();
  return options;
}

}  // namespace

Person::Person(const Stage& stage, std::size_t number, std::vector<std::size_t> servers)
    : process(stage.world.start_process(kNames.at(number))),
      session(stage.world.open(process, options_of(stage.plan), std::move(servers))),
      stage_(stage),
      number_(number) {}

Person::Person(const Person& beside, std::size_t number)
    : process(beside.process), session(beside.session), stage_(beside.stage_), number_(number) {}

void Person::wants(const Lock& lock, Share share, Duration patience) {
  shares_ = {share};
  stop_ = {};
  goes_on_ = false;
  error_.reset();
  const Deadline deadline = deadline_in(patience);
  lock.lock_async(deadline, stop_.get_token()).then(answer(deadline));
}

LockRequest::Handler Person::answer(const Deadline& deadline) {
  waits_ = true;
  const Judge::AskId ask = stage_.judge.asked({number_, &process, deadline.at(), shares_});
  return [this, ask](Result<Lease> lease) {
    stage_.judge.answered(ask, lease ? Judge::Got::kHold : Judge::Got::kNothing, session.id());
    waits_ = false;
    if (leaves_) {
      stage_.lookout.leaves(host());
      host().let_go();
    }
    if (lease) return hold(std::move(*lease));
    error_ = lease.error().code();
    stage_.lookout.gave_up(host(), *error_);
  };
}

void Person::reads_on(const RwLock& lock) {
  stage_.judge.ended(hold_);
  stage_.lookout.reads_on(seen_);
  shares_ = {{shares_.front().site, 1, true}};
  goes_on_ = true;
  const Deadline deadline = deadline_in(std::chrono::seconds(60));
  Lease writing = std::move(*lease_);
  lease_.reset();
  lock.downgrade_async(std::move(writing), deadline).then(answer(deadline));
}

void Person::hold(Lease lease) {
  lease_ = std::make_shared<Lease>(std::move(lease));
  seen_ = {shares_.front().site, process.id(), shares_.front().is_shared, lease_->token(),
           lease_->nodes()};
  stage_.lookout.granted(seen_);
  const auto believes = [held = lease_] {
    return held->state() == LeaseState::kHeld || held->state() == LeaseState::kSuspect;
  };
  hold_ = stage_.judge.granted({number_, &process, session.id(), shares_, lease_->token(),
                                lease_->nodes(), goes_on_, believes, lease_->lost()});
}

void Person::lets_go(Lookout::Ending ending) {
  if (!lease_) return;
  stage_.judge.ended(hold_);
  bool is_lost = false;
  stage_.world.run_as(process, [&] {
    is_lost = lease_->state() == LeaseState::kLost;
    stage_.lookout.lets_go(seen_, host(), is_lost, ending);
    if (ending == Lookout::Ending::kRelease) {
      lease_->release();
      old_ = lease_;
    }
    lease_.reset();
  });
}

void Person::lets_go_again() {
  stage_.world.run_as(process, [&] {
    if (old_->release() == Released::kAlreadyOver) stage_.lookout.releases_again();
  });
}

Candidate::Candidate(const Stage& stage, Person& person, std::size_t site, ElectionOptions options)
    : stage_(stage), person_(person), site_(site) {
  options.id = person.process.name();
  options.on_change = [this](const ElectionNews& news) { hear(news); };
  election_ = std::make_shared<Election>(person.session, Path(stage.plan.sites.at(site).path),
                                         std::move(options));
}

void Candidate::hear(const ElectionNews& news) {
  end();
  if (!election_ || news.state != ElectionState::kLeading) return;
  if (terms_++ > 0) stage_.lookout.led_before();
  const auto believes = [election = election_, token = *news.token] {
    return election->state() == ElectionState::kLeading && election->token() == token;
  };
  hold_ = stage_.judge.granted({.process = &person_.process,
                                .session = person_.session.id(),
                                .shares = {Share{site_}},
                                .token = *news.token,
                                .believes = believes,
                                .lost = news.over});
}

void Candidate::end() {
  if (hold_) stage_.judge.ended(*std::exchange(hold_, std::nullopt));
}

void Candidate::resigns() {
  end();
  stage_.world.run_as(person_.process, [this] { election_->resign(); });
}

void Candidate::closes() {
  end();
  if (election_) stage_.world.run_as(person_.process, [this] { election_->close(); });
  election_.reset();
}

Scene::Scene(Setup setup)
    : plan(plan_of(setup)),
      world(plan.world),
      judge(world, plan),
      lookout(world, plan),
      ann(stage, 0, std::move(setup.servers_of_ann)),
      bob(stage, 1, {0}),
      cyd(stage, 2, {0}),
      dan(stage, 3, {0}) {
  until([this] {
    for (const Person* person : {&ann, &bob, &cyd, &dan}) {
      if (person->session.state() != SessionState::kConnected) return false;
    }
    return true;
  });
}

void Scene::until(base::FunctionRef<bool()> done, Duration limit) {
  EXPECT_TRUE(world.run_until(done, limit));
}

void Scene::until_holds(const Person& person) {
  until([&] { return person.holds(); });
}

Lock Scene::mutex(const Person& person, std::string path) {
  return Mutex(person.session, Path(std::move(path)));
}

LeaseState Scene::state_of(Person& person) {
  LeaseState state = LeaseState::kLost;
  world.run_as(person.process, [&] { state = person.lease().state(); });
  return state;
}

void Scene::lock_out(Person& person) {
  for (std::size_t i = 0; i < world.servers(); ++i) {
    world.refuse(person.process, i, testing::Refusal::kOn);
  }
  world.cut(person.host());
  until([&] { return !person.host().is_connected(); });
}

void Scene::let_back(Person& person) {
  for (std::size_t i = 0; i < world.servers(); ++i) {
    world.refuse(person.process, i, testing::Refusal::kOff);
  }
}

void Scene::restart_server(Duration down) {
  world.crash(0, testing::Crash::kProcess);
  world.run_for(down);
  world.restart(0);
}

void Scene::ends_having_met(std::initializer_list<int> hazards) {
  world.heal_everything();
  world.run_for(3 * plan.timeout + 5s);
  for (Person* person : {&ann, &bob, &cyd, &dan}) {
    EXPECT_FALSE(person->waits()) << person->process.name();
    person->lets_go();
  }
  world.run_for(3 * plan.timeout + 5s);
  judge.check_quiet();
  judge.check_replay();
  const auto& violation = judge.violation();
  EXPECT_FALSE(violation) << name(violation->invariant) << ": " << violation->what;
  for (const int hazard : hazards) {
    EXPECT_GT(lookout.sightings().of(hazard), 0U) << "H" << hazard << " was not met";
  }
}

}  // namespace latchkey::sim
