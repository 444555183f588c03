#include "keep.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <utility>

#include <fmt/core.h>

#include "exit_code.hpp"
#include "latchkey/election.hpp"
#include "session/host.hpp"
#include "session/view.hpp"
#include "status_line.hpp"
#include "table.hpp"
#include "words.hpp"

namespace latchkey::app {
namespace {

using Kind = Channel::Message::Kind;
using keeping::Event;

/// How long we wait in the end for whoever reads what we say.
constexpr std::chrono::seconds kLastWords(1);

/// What other threads have to say to the loop. Shared, because they may speak after its end.
/// Thread safety: any thread.
class Mail {
 public:
  Mail() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~Mail() { ::close(fd_); }
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  [[nodiscard]] int fd() const { return fd_; }

  void put(Tenure::News news) {
    const std::lock_guard lock(mutex_);
    news_.push_back(std::move(news));
    const std::uint64_t one = 1;
    static_cast<void>(!::write(fd_, &one, sizeof one));
  }

  [[nodiscard]] std::optional<Tenure::News> take() {
    const std::lock_guard lock(mutex_);
    std::uint64_t count = 0;
    static_cast<void>(!::read(fd_, &count, sizeof count));
    if (news_.empty()) return std::nullopt;
    Tenure::News first = std::move(news_.front());
    news_.pop_front();
    return first;
  }

 private:
  const int fd_;
  std::mutex mutex_;
  std::deque<Tenure::News> news_;
};

/// The keeper's process: brings a Keeper what happens, and carries out what it decides.
class Loop {
 public:
  Loop(const KeepOptions& options, std::unique_ptr<Tenure> tenure, Channel channel,
       const Origin& origin)
      : options_(options),
        tenure_(std::move(tenure)),
        channel_(channel),
        keeper_(options.rules),
        job_(options.words, origin) {
    const sigset_t watched = watched_signals();
    signals_ = ::signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
    timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    status_.began = BootClock::now();
  }

  int run() {
    carry_out(keeper_.start());
    while (!exit_) {
      set_timer();
      std::array<pollfd, 4> waits{{{signals_, POLLIN, 0},
                                   {front_gone_ ? -1 : channel_.fd(), POLLIN, 0},
                                   {mail_->fd(), POLLIN, 0},
                                   {timer_, POLLIN, 0}}};
      if (::poll(waits.data(), waits.size(), -1) < 0) continue;
      if (waits[0].revents != 0) hear_signals();
      if (waits[1].revents != 0) hear_front();
      if (waits[2].revents != 0) hear_tenure();
      if (waits[3].revents != 0) hear_timer();
    }
    return leave();
  }

 private:
  void hear_signals() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == sizeof info) {
      switch (const auto number = static_cast<int>(info.ssi_signo); number) {
        case SIGCHLD: break;
        case SIGCONT: break;  // Ours alone: the front says when the job goes on.
        case SIGTSTP: tell(keeping::Stop{number}); break;
        default: tell(keeping::Signal{number});
      }
    }
    for (const Event& event : job_.reap()) {
      if (const auto* stopped = std::get_if<keeping::CommandStopped>(&event)) {
        const bool asks = stopped->number == SIGTTIN || stopped->number == SIGTTOU;
        if (asks && job_.claim_terminal()) {
          job_.signal_group(SIGCONT);
          continue;
        }
      }
      if (std::holds_alternative<keeping::AllGone>(event)) tenure_->all_gone();
      if (std::holds_alternative<keeping::StartFailed>(event)) {
        channel_.send({Kind::kEnded});
        not_started(job_.failure());
        continue;
      }
      if (const auto* ended = std::get_if<keeping::CommandEnded>(&event)) {
        channel_.send({Kind::kEnded});
        say(ended->ending.signal != 0
                ? fmt::format("the command was ended by signal {}", ended->ending.signal)
                : fmt::format("the command ended with code {}", ended->ending.code));
      }
      tell(event);
    }
  }

  void hear_front() {
    std::vector<Channel::Message> messages;
    const Channel::State state = channel_.receive(messages);
    for (const auto& [kind, value] : messages) {
      if (kind == Kind::kSignal) tell(keeping::Signal{value});
      if (kind == Kind::kStop) tell(keeping::Stop{value});
      if (kind == Kind::kContinue) tell(keeping::Continue{});
    }
    if (state == Channel::State::kOpen) return;
    front_gone_ = true;
    tell(keeping::FrontGone{});
  }

  void hear_tenure() {
    while (auto news = mail_->take()) {
      if (auto* grant = std::get_if<Tenure::Grant>(&*news)) {
        grant_ = std::move(*grant);
        status_.granted = BootClock::now();
        status_.error.clear();
        say(fmt::format("holds {} with token {}", grant_.lock, grant_.token));
        tell(keeping::Granted{});
      } else if (auto* refusal = std::get_if<Tenure::Refusal>(&*news)) {
        refused(*refusal);
        tell(keeping::Refused{refusal->code});
      } else if (const auto* remark = std::get_if<Tenure::Remark>(&*news)) {
        remark->said == Tenure::Said::kAlways ? complain(remark->text) : say(remark->text);
      } else if (std::holds_alternative<Tenure::Wish>(*news)) {
        tell(keeping::Revoked{});
        complain(fmt::format("somebody asks for {}; the command is stopped", grant_.lock));
      } else {
        lost_for_good_ = true;
        tell(keeping::Lost{});
      }
    }
  }

  void hear_timer() {
    std::uint64_t count = 0;
    static_cast<void>(!::read(timer_, &count, sizeof count));
    tell(keeping::Tick{});
  }

  void set_timer() const {
    const keeping::LeaseTimes lease = tenure_->lease();
    Instant at = keeper_.wake_at(lease);
    // A server that grants less than before can make the lease end sooner than it was going to.
    if (at != Instant::max()) at = std::min(at, BootClock::now() + lease.timeout / 6);
    itimerspec when{};
    if (at != Instant::max()) {
      const auto ns = std::max<Instant::rep>(1, at.time_since_epoch().count());
      when.it_value.tv_sec = ns / 1'000'000'000;
      when.it_value.tv_nsec = ns % 1'000'000'000;
    }
    ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
  }

  void tell(const Event& event) {
    if (const auto* signal = std::get_if<keeping::Signal>(&event)) status_.signal = signal->number;
    carry_out(keeper_.step(event, BootClock::now(), tenure_->lease()));
  }

  void carry_out(const keeping::Actions& actions) {
    for (const keeping::Action& action : actions) {
      std::visit([this](const auto& what) { carry_out(what); }, action);
    }
  }

  void carry_out(const keeping::Contend&) {
    if (status_.granted != Instant::min()) say_again();
    tenure_->contend([mail = mail_](Tenure::News news) { mail->put(std::move(news)); });
  }
  void carry_out(const keeping::Withdraw&) { tenure_->withdraw(); }

  void carry_out(const keeping::Start&) {
    const auto failure =
        job_.start({"LATCHKEY_LOCK=" + grant_.lock, "LATCHKEY_NODE=" + grant_.node,
                    "LATCHKEY_TOKEN=" + grant_.token, "LATCHKEY_SERVICE=" + options_.service});
    if (failure) return not_started(*failure);
    channel_.send({Kind::kStarted, job_.group()});
  }

  void not_started(const Job::Failure& failure) {
    tenure_->all_gone();
    const std::string& word = options_.words.front();
    status_.error = fmt::format("cannot run {}: {}", word, Job::why(word, failure.error));
    complain(status_.error);
    tell(keeping::StartFailed{failure.code});
  }

  void carry_out(const keeping::SignalGroup& what) const { job_.signal_group(what.number); }

  void carry_out(const keeping::SignalAll& what) {
    job_.signal_all(what.number);
    if (keeper_.is_lost() && !std::exchange(loss_said_, true)) {
      complain(lost_for_good_
                   ? fmt::format("{} is lost; the command is killed", grant_.lock)
                   : fmt::format("{} is about to be lost: no word from the server; the command is "
                                 "stopped",
                                 grant_.lock));
    }
  }

  void carry_out(const keeping::GiveTerminal&) { job_.give_terminal(); }

  void carry_out(const keeping::StopFront& what) const {
    job_.take_terminal();
    channel_.send({Kind::kStopJob, what.number});
  }

  void carry_out(const keeping::Warn&) const {
    complain(fmt::format("{} is lost; the command runs on, as --on-lost=warn says", grant_.lock));
  }

  void carry_out(const keeping::SayTooLate&) {
    status_.error = fmt::format("{} was lost before the command could start", grant_.lock);
    complain(status_.error);
  }

  void carry_out(const keeping::Release&) {
    const bool by_itself = !keeper_.is_lost();
    if (auto refusal = tenure_->release(by_itself ? keeper_.ending() : std::nullopt)) {
      refused(*refusal);
      return tell(keeping::Released{refusal->code});
    }
    tell(keeping::Released{});
  }

  void carry_out(const keeping::Exit& what) { exit_ = what.code; }

  void refused(const Tenure::Refusal& refusal) {
    status_.error = refusal.text;
    if (refusal.text.empty()) return;
    if (refusal.said == Tenure::Said::kAlways || options_.verbose) complain(refusal.text);
  }

  void say_again() const {
    const bool rests = options_.rules.afterwards == keeping::Rules::Afterwards::kContendAgain &&
                       BootClock::now() - status_.granted < ElectionOptions().short_term;
    say(rests ? "queues again; the last term was short, so it rests first" : "queues again");
  }

  int leave() {
    tenure_->close();
    status_.code = *exit_;
    status_.lock = grant_.lock;
    status_.node = grant_.node;
    status_.token = grant_.token;
    status_.lost = keeper_.is_lost();
    status_.ending = keeper_.ending();
    status_.ended = BootClock::now();
    if (options_.status_fd) write_status(*options_.status_fd, status_);
    speaker_.finish(kLastWords);
    end_as_the_terminal_meant();
    return *exit_;
  }

  /// A shell script ends with Ctrl-C only if the program in front of it does so by that signal, and
  /// if the signal comes to the shell as well. A command that only returns 130 means its own.
  void end_as_the_terminal_meant() const {
    if (exit_ != keeping::exit_code_of({-1, SIGINT})) return;
    const bool passed_on = status_.signal == SIGINT;  // It came to us, and so to our group.
    if (keeper_.ending()) {
      if (keeper_.ending()->signal != SIGINT) return;
      if (job_.was_in_foreground() && !passed_on) return channel_.send({Kind::kEndJobBy, SIGINT});
      if (passed_on && job_.is_ours_to_give()) channel_.send({Kind::kEndBy, SIGINT});
    } else if (job_.is_ours_to_give()) {
      channel_.send({Kind::kEndBy, SIGINT});
    }
  }

  void complain(const std::string& text) const {
    speaker_.say(fmt::format("latchkey {}: {}\n", options_.command, printable(text)));
  }
  void say(const std::string& text) const {
    if (options_.verbose) complain(text);
  }

  const KeepOptions& options_;
  const Speaker speaker_;
  const std::shared_ptr<Mail> mail_ = std::make_shared<Mail>();
  const std::unique_ptr<Tenure> tenure_;
  const Channel channel_;
  keeping::Keeper keeper_;
  Job job_;
  int signals_ = -1;
  int timer_ = -1;
  bool front_gone_ = false;
  bool lost_for_good_ = false;
  bool loss_said_ = false;
  Tenure::Grant grant_;
  Status status_;
  std::optional<int> exit_;
};

}  // namespace

keeping::LeaseTimes lease_of(const Session& session) {
  const session::View& view = session.host()->view();
  const auto instant = [](const std::atomic<Instant::rep>& at) {
    return Instant(Duration(at.load(std::memory_order_acquire)));
  };
  return {instant(view.suspect_at), instant(view.lease_deadline), session.timeout()};
}

int keep(const KeepOptions& options, const std::function<std::unique_ptr<Tenure>()>& make) {
  // Ours, and not the command's.
  if (options.status_fd && *options.status_fd > STDERR_FILENO) {
    ::fcntl(*options.status_fd, F_SETFD, FD_CLOEXEC);
  }
  return stand_in_front([&](Channel channel, const Origin& origin) {
    // Never destroyed: the process ends, and the threads of the session need not be waited for.
    auto* const loop = new Loop(options, make(), channel, origin);
    return loop->run();
  });
}

}  // namespace latchkey::app
