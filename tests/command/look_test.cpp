#include <signal.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command/invocation.hpp"
#include "command/terminal_child.hpp"
#include "latchkey/mutex.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/shared_servers.hpp"

/// ls, who, watch, wait, revoke, hold, release, doctor and gc against real servers.
namespace latchkey::test_support {

enum class Service { kApache, kEmbedded };

class LookCommand : public testing::TestWithParam<Service> {
 protected:
  LookCommand() {
    connect_ = GetParam() == Service::kApache ? shared_server().connect_string()
                                              : shared_embedded().connect_string();
    user_.set("LATCHKEY_CONNECT", connect_);
    user_.configure("session-timeout = 40s\n");  // A busy machine takes no lock away.
    SessionOptions options;
    options.timeout = std::chrono::seconds(60);
    auto opened = Session::open(connect_, options, soon());
    session_.emplace(opened.value());
  }
  ~LookCommand() override { static_cast<void>(session_->close(soon())); }

  static Deadline soon() { return deadline_in(std::chrono::seconds(60)); }
  Lease hold(const std::string& path, const std::string& reason = "a test") {
    return std::move(Mutex(*session_, path, {.reason = reason}).lock(soon()).value());
  }
  std::unique_ptr<Child> start(std::vector<std::string> words) {
    ChildOptions options;
    options.environment = user_.environment();
    return std::make_unique<Child>(user_.command(std::move(words)), options);
  }
  /// So many stand in the lock's queue, or will soon.
  bool has_entries(std::size_t count) {
    const auto entries = [&] {
      const auto children = session_->children(path_, soon());
      return children ? children->names.size() : 0;
    };
    return eventually([&] { return entries() == count; }, soon());
  }
  NewUser user_;
  std::string connect_;
  std::optional<Session> session_;
  const std::string path_ = fresh_path();
};

INSTANTIATE_TEST_SUITE_P(Apache, LookCommand, testing::Values(Service::kApache));
INSTANTIATE_TEST_SUITE_P(Embedded, LookCommand, testing::Values(Service::kEmbedded));

namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr ExitStatus kNobody{1, 0};

TEST_P(LookCommand, LsShowsTheQueueInOrder) {
  const Lease holder = hold(path_, "nightly");
  const auto second = start({"hold", path_, "--for", "1h"});
  ASSERT_TRUE(has_entries(2));

  const Ran ran = user_.run({"ls", path_});

  EXPECT_EQ(ran.status, kFine) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("#"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("1 +holds .*nightly"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("2 +waits"));
  EXPECT_THAT(ran.out, Not(HasSubstr("\033"))) << "no colours into a file";
}

TEST_P(LookCommand, LsFindsWhatLivesBelowLocks) {
  const std::string name = "group" + path_;
  const Lease holder = hold("/locks/" + name);

  const Ran table = user_.run({"ls"});
  const Ran names = user_.run({"ls", "--names"});

  EXPECT_THAT(table.out, HasSubstr(name)) << table.err;
  EXPECT_THAT("\n" + names.out, HasSubstr("\n" + name + "\n"));
}

TEST_P(LookCommand, LsFindsLocksInUseBelowAnyPath) {
  const Lease holder = hold(path_ + "/team/held");
  ASSERT_TRUE(session_->create(path_ + "/notes", "not a lock's", {}, soon()));

  const Ran ran = user_.run({"ls", "-r", "--names", path_});
  const Ran hint = user_.run({"ls", path_});

  EXPECT_EQ(ran.out, path_ + "/team/held\n") << ran.err;
  EXPECT_THAT(hint.err, HasSubstr("latchkey ls -r " + path_));
  EXPECT_EQ(hint.status, kFine);
}

TEST_P(LookCommand, LsAsJsonIsOneObjectToALine) {
  const Lease holder = hold(path_);

  const Ran ran = user_.run({"ls", "--json", path_});

  EXPECT_THAT(ran.out, StartsWith(R"({"lock":")" + path_ + R"(","exists":true,"held":true)"));
  EXPECT_THAT(ran.out, HasSubstr(R"("token":")" + to_string(holder.token()) + '"'));
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);
}

TEST_P(LookCommand, ForeignDataCannotControlTheTerminal) {
  const Lease holder = hold(path_);
  ASSERT_TRUE(session_->set(holder.node(), "\033]0;evil\007\033[2J", soon()));

  auto terminal =
      std::make_unique<TerminalChild>(user_.command({"ls", path_}), user_.environment());
  ASSERT_EQ(terminal->wait(soon()), kFine);

  EXPECT_THAT(terminal->output(), Not(HasSubstr("\033]0;evil")));
  EXPECT_THAT(terminal->output(), HasSubstr("\\x1b]0;evil\\x07"));
}

TEST_P(LookCommand, ColoursAreForTerminalsThatWantThem) {
  const Lease holder = hold(path_);
  TerminalChild coloured(user_.command({"ls", path_}), user_.environment());
  std::vector<std::string> environment = user_.environment();
  environment.emplace_back("NO_COLOR=1");
  TerminalChild plain(user_.command({"ls", path_}), environment);

  ASSERT_EQ(coloured.wait(soon()), kFine);
  ASSERT_EQ(plain.wait(soon()), kFine);

  EXPECT_THAT(coloured.output(), HasSubstr("\033[32m"));
  EXPECT_THAT(plain.output(), Not(HasSubstr("\033[")));
}

TEST_P(LookCommand, ANameThatNobodyUsesIsNotTakenForALock) {
  for (const char* look : {"ls", "who"}) {
    EXPECT_THAT(user_.run({look, path_}).err, HasSubstr("There is nothing at " + path_)) << look;
  }
  EXPECT_THAT(user_.run({"doctor", path_}).out, HasSubstr("no lock at or below " + path_));
  const Lease holder = hold(path_);
  EXPECT_EQ(user_.run({"ls", path_}).err, "");
}

TEST_P(LookCommand, APermitIsCountedOnce) {
  const std::string one = "0 of 2 permits are held";
  for (const char* name : {"", "/leases", "/locks"}) {
    ASSERT_TRUE(session_->create(path_ + name, *name == 0 ? "2" : "", {}, soon()));
  }

  const Ran ran = user_.run({"ls", path_});

  EXPECT_THAT(ran.out, HasSubstr(one));
  EXPECT_EQ(ran.err, "");
}

TEST_P(LookCommand, WhoSaysWhetherSomebodyHoldsIt) {
  EXPECT_EQ(user_.run({"who", path_}).status, kNobody);
  const Lease holder = hold(path_, "nightly");

  const Ran ran = user_.run({"who", path_});

  EXPECT_EQ(ran.status, kFine);
  EXPECT_THAT(ran.out, HasSubstr("pid " + std::to_string(::getpid())));
  EXPECT_THAT(ran.out, HasSubstr("nightly"));
}

TEST_P(LookCommand, AWaitOfNothingIsOneTry) {
  // A server that is kept from its answer for longer than a look lasts is asked again.
  const auto looks_free = [&] { return user_.run({"wait", "-w", "0", path_}).status == kFine; };
  EXPECT_TRUE(eventually(looks_free, soon()));
  const Lease holder = hold(path_);

  EXPECT_EQ(user_.run({"wait", "-w", "0", path_}).status, kNobody);
  EXPECT_EQ(user_.run({"hold", "-w", "0", path_, "--for", "1h"}).status, kNobody);
}

TEST_P(LookCommand, AWaitEndsInTimeAlthoughTheServerHasFallenSilent) {
  const Lease holder = hold(path_);
  FaultProxy proxy(connect_);
  const auto waiting =
      start({"wait", "-z", proxy.connect_string(), "--session-timeout", "40s", "-w", "10s", path_});
  // It has seen who holds: what it does now is wait.
  ASSERT_TRUE(
      eventually([&] { return proxy.log().count(requests_of(wire::Op::kGetData)) > 0; }, soon()));
  const Instant before = BootClock::now();
  proxy.hold(Hold::kBoth);

  EXPECT_EQ(waiting->wait(soon()), kNobody);
  EXPECT_LT(BootClock::now() - before, 30s) << "it asked once more";
}

TEST_P(LookCommand, WaitReturnsWhenItIsFree) {
  const auto looks_free = [&] { return user_.run({"wait", "-w", "1ms", path_}).status == kFine; };
  EXPECT_TRUE(eventually(looks_free, soon())) << "it is, however short the time";
  Lease holder = hold(path_);
  const auto is_told = [&] {
    const Ran late = user_.run({"wait", "-w", "50ms", path_});
    EXPECT_EQ(late.status, kNobody);
    return late.err.find("held by") != std::string::npos;
  };
  EXPECT_TRUE(eventually(is_told, soon()));
  const auto waiting = start({"wait", path_});

  EXPECT_EQ(waiting->wait(deadline_in(100ms)), std::nullopt);
  holder.release();

  EXPECT_EQ(waiting->wait(soon()), kFine);
}

TEST_P(LookCommand, RevokeAsksTheHolder) {
  EXPECT_EQ(user_.run({"revoke", path_}).status, kNobody);
  Lease holder = hold(path_);
  const std::stop_token asked = holder.release_requested();

  const Ran ran = user_.run({"revoke", path_});

  EXPECT_EQ(ran.status, kFine) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("asked ")) << "whom, and not which node";
  EXPECT_THAT(ran.err, HasSubstr("pid " + std::to_string(::getpid())));
  EXPECT_TRUE(eventually([&] { return asked.stop_requested(); }, soon()));
  EXPECT_NE(holder.state(), LeaseState::kLost) << "it is a wish";
  const std::string pid = "pid " + std::to_string(::getpid());
  for (const char* look : {"who", "ls"}) {
    const Ran seen = user_.run({look, path_});
    EXPECT_THAT(seen.out, testing::ContainsRegex(pid + ".*asked to let go")) << look;
    EXPECT_THAT(seen.out, Not(HasSubstr("__REVOKE__"))) << look;
  }
  // A server that is kept from its answer for longer than a look lasts is asked again.
  const auto waits_for_it = [&] {
    return user_.run({"wait", "-w", "50ms", path_}).err.find(pid) != std::string::npos;
  };
  EXPECT_TRUE(eventually(waits_for_it, soon()));
  EXPECT_EQ(user_.run({"revoke", "-w", "50ms", path_}).status, kNobody);
}

TEST_P(LookCommand, RevokeByForceTakesItAway) {
  const Lease holder = hold(path_);
  const std::stop_token lost = holder.lost();

  EXPECT_EQ(user_.run({"revoke", "--force", "-w", "60s", path_}).status, kFine);

  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }, soon()));
}

TEST_P(LookCommand, WatchPrintsALineForEachChange) {
  const auto watch = start({"watch", path_});
  ASSERT_TRUE(watch->wait_for_line("free", soon()));
  Lease holder = hold(path_, "nightly");
  EXPECT_TRUE(watch->wait_for_line("nightly", soon()));
  holder.release();
  EXPECT_TRUE(watch->wait_for_line("free", soon()));

  watch->signal(SIGINT);

  EXPECT_EQ(watch->wait(soon()), (ExitStatus{130, 0}));
}

TEST_P(LookCommand, WatchOfAllSeesLocksComeAndGo) {
  const std::string name = "watched" + path_;
  const auto watch = start({"watch", "--json"});
  // Any lock at all may be there already; ours is not, so the first line about it is news.
  const auto seen = [&](const std::string& part) {
    while (auto line = watch->next_line(soon())) {
      if (line->find(name) != std::string::npos && line->find(part) != std::string::npos)
        return true;
    }
    return false;
  };
  ASSERT_TRUE(eventually([&] { return user_.run({"ls"}).status == kFine; }, soon()));
  Lease holder = hold("/locks/" + name);

  EXPECT_TRUE(seen(R"("held":true)"));
  holder.release();
  EXPECT_TRUE(seen(R"("held":false)"));
}

TEST_P(LookCommand, WatchFillsATerminalAndGivesItBack) {
  TerminalChild watch(user_.command({"watch", path_}), user_.environment());
  ASSERT_TRUE(watch.shows("free", soon()));
  Lease holder = hold(path_, "nightly");
  EXPECT_TRUE(watch.shows("nightly", soon()));
  holder.release();
  EXPECT_TRUE(watch.shows("free", soon()));

  watch.type("q");

  EXPECT_EQ(watch.wait(soon()), kFine);
  EXPECT_THAT(watch.output(), StartsWith("\033[?1049h"));
  EXPECT_THAT(watch.output(), testing::EndsWith("\033[?25h\033[?1049l"));
}

TEST_P(LookCommand, WatchPrintsTheFourKindsOfEvents) {
  const auto watch = start({"watch", "--events", path_});
  // Until the watch is there, events of the node are nobody's.
  ASSERT_TRUE(eventually(
      [&] {
        static_cast<void>(session_->create(path_, "", {}, soon()));
        static_cast<void>(session_->remove(path_, soon()));
        return watch->wait_for_line("created " + path_, deadline_in(50ms)).has_value();
      },
      soon()));
  ASSERT_TRUE(session_->create(path_, "", {}, soon()));
  ASSERT_TRUE(session_->set(path_, "x", soon()));
  EXPECT_TRUE(watch->wait_for_line("data changed " + path_, soon()));
  ASSERT_TRUE(session_->create(path_ + "/child", "", {}, soon()));
  EXPECT_TRUE(watch->wait_for_line("children changed " + path_, soon()));
  ASSERT_TRUE(session_->remove(path_ + "/child", soon()));
  ASSERT_TRUE(session_->remove(path_, soon()));

  EXPECT_TRUE(watch->wait_for_line("deleted " + path_, soon()));
}

TEST_P(LookCommand, WatchPrintsWhatHappensBelowAsWell) {
  ASSERT_TRUE(session_->create(path_, "", {}, soon()));
  const auto watch = start({"watch", "--events", path_, "-r"});
  // Until the watch is there, events are nobody's.
  ASSERT_TRUE(eventually(
      [&] {
        static_cast<void>(session_->create(path_ + "/a", "", {}, soon()));
        static_cast<void>(session_->remove(path_ + "/a", soon()));
        return watch->wait_for_line("created " + path_ + "/a", deadline_in(50ms)).has_value();
      },
      soon()));
  ASSERT_TRUE(session_->create(path_ + "/b", "", {}, soon()));
  ASSERT_TRUE(session_->create(path_ + "/b/c", "", {}, soon()));

  EXPECT_TRUE(watch->wait_for_line("created " + path_ + "/b/c", soon()));
}

TEST_P(LookCommand, WatchPrintsEventsAsJson) {
  const auto watch = start({"watch", "--events", path_, "--json"});
  std::optional<std::string> line;
  ASSERT_TRUE(eventually(
      [&] {
        static_cast<void>(session_->create(path_, "", {}, soon()));
        static_cast<void>(session_->remove(path_, soon()));
        line = watch->next_line(deadline_in(50ms));
        return line.has_value();
      },
      soon()));

  EXPECT_THAT(*line, StartsWith("{"));
  EXPECT_THAT(*line, testing::EndsWith("}"));
  EXPECT_THAT(*line, HasSubstr('"' + path_ + '"'));
}

TEST_P(LookCommand, AHoldOutlivesItsShellAndIsShownWithOwnerReasonAndEnd) {
  const Ran held = user_.run({"hold", path_, "--for", "1h", "--reason", "the big move"});
  ASSERT_EQ(held.status, kFine) << held.err;

  EXPECT_EQ(Mutex(*session_, path_).try_lock(soon()).error().code(), Code::kBusy);
  const Ran shown = user_.run({"ls", "--json", path_});
  EXPECT_THAT(shown.out, HasSubstr(R"("reason":"the big move","owner":")"));
  EXPECT_THAT(shown.out, HasSubstr(R"("until":"20)"));
  EXPECT_EQ(user_.run({"hold", "-n", path_, "--for", "1h"}).status, kNobody);

  EXPECT_EQ(user_.run({"release", path_}).status, kFine);
  EXPECT_TRUE(Mutex(*session_, path_).try_lock(soon()));
  EXPECT_TRUE(eventually([&] { return user_.processes().empty(); }, soon()));
}

TEST_P(LookCommand, AHoldLeavesWhenWhatAndWhyInItsLog) {
  ASSERT_EQ(user_.run({"hold", path_, "--for", "1h"}).status, kFine);
  ASSERT_EQ(user_.run({"hold", "-n", path_, "--for", "1h"}).status, kNobody);
  ASSERT_EQ(user_.run({"release", path_}).status, kFine);
  ASSERT_TRUE(eventually([&] { return user_.processes().empty(); }, soon()));

  std::ifstream log(user_.state() / "hold.log");
  std::string all;
  for (std::string line; std::getline(log, line);) {
    EXPECT_THAT(line, testing::MatchesRegex("20[0-9-]+T[0-9:]+Z " + path_ + " .pid [0-9]+.: .+"));
    all += line + "\n";
  }
  EXPECT_THAT(all, HasSubstr("held for "));
  EXPECT_THAT(all, HasSubstr("let go, as somebody asked for it"));
}

TEST_P(LookCommand, AHoldThatHadToWaitEndsAsLongAfterItsBeginning) {
  constexpr std::time_t kHour = 3'600;
  Lease holder = hold(path_);
  const auto waiting = start({"hold", path_, "--for", "1h"});
  ASSERT_TRUE(has_entries(2));
  const std::time_t since = std::time(nullptr);
  ASSERT_TRUE(eventually([&] { return std::time(nullptr) >= since + 2; }));
  const std::time_t least = std::time(nullptr) + kHour;

  holder.release();
  ASSERT_EQ(waiting->wait(soon()), kFine);

  std::tm parts{};
  ::gmtime_r(&least, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  const std::string shown = user_.run({"ls", "--json", path_}).out;
  const std::string key = R"("until":")";
  ASSERT_THAT(shown, HasSubstr(key));
  EXPECT_GE(shown.substr(shown.find(key) + key.size(), 20), text.data());
  EXPECT_EQ(user_.run({"release", path_}).status, kFine) << "a wish is still heard";
}

TEST_P(LookCommand, AHoldEndsByItself) {
  ASSERT_EQ(user_.run({"hold", path_, "--for", "100ms"}).status, kFine);

  EXPECT_TRUE(Mutex(*session_, path_).lock(soon()));
}

TEST_P(LookCommand, AHoldThatNobodyWaitsForAnyMoreIsNotTaken) {
  Lease holder = hold(path_);
  const auto hold_command = start({"hold", path_, "--for", "1h"});
  ASSERT_TRUE(has_entries(2));

  hold_command->signal(SIGINT);
  EXPECT_EQ(hold_command->wait(soon()), (ExitStatus{-1, SIGINT}));

  EXPECT_TRUE(has_entries(1));
}

TEST_P(LookCommand, AHoldThatTriesOnceIsNotTakenForSomebodyWhoHasGone) {
  ASSERT_TRUE(session_->create(path_, "", {}, soon()));
  FaultProxy proxy(connect_);
  const int stop = proxy.stop_at_reply(Match(wire::Op::kCreate2).on(path_));
  const auto hold_command =
      start({"hold", "-n", "-z", proxy.connect_string(), path_, "--for", "1h"});
  ASSERT_TRUE(proxy.wait_until_fired(stop, soon()));
  ASSERT_TRUE(has_entries(1));

  hold_command->signal(SIGINT);
  EXPECT_EQ(hold_command->wait(soon()), (ExitStatus{-1, SIGINT}));
  proxy.release();

  EXPECT_TRUE(has_entries(0));
  EXPECT_TRUE(eventually([&] { return user_.processes().empty(); }, soon()));
}

TEST_P(LookCommand, ReleaseIsForOnesOwnHold) {
  Lease other = hold(path_, "x (hold: somebody@else until 2030-01-01T00:00:00Z)");
  const Ran refused = user_.run({"release", path_});
  EXPECT_EQ(refused.status, (ExitStatus{77, 0}));
  EXPECT_THAT(refused.err, HasSubstr("somebody@else"));

  const std::stop_token asked = other.release_requested();
  const auto forced = start({"release", "--force", path_});
  EXPECT_TRUE(eventually([&] { return asked.stop_requested(); }, soon()));
  other.release();
  EXPECT_EQ(forced->wait(soon()), kFine);

  const Ran nobody = user_.run({"release", path_ + "-other"});
  EXPECT_EQ(nobody.status, kNobody);
  EXPECT_THAT(nobody.err, HasSubstr("latchkey revoke"));
}

TEST_P(LookCommand, DoctorIsSilentAboutTheHealthyAndNamesTheSick) {
  const Lease holder = hold(path_ + "/well");
  Ran well;
  const auto is_well = [&] {
    well = user_.run({"doctor", path_ + "/well"});  // A slow answer is a finding, too.
    return well.status == kFine;
  };
  EXPECT_TRUE(eventually(is_well, soon()));
  EXPECT_EQ(well.status, kFine) << well.out;
  EXPECT_THAT(well.out, HasSubstr("Nothing is wrong."));
  EXPECT_THAT(well.out, HasSubstr("1 lock at or below"));
  EXPECT_THAT(well.out,
              HasSubstr(GetParam() == Service::kApache ? ": ZooKeeper 3." : ": Latchkey 0."));

  const Lease sick = hold(path_ + "/sick");
  CreateOptions sequential{.naming = Naming::kSequential};
  ASSERT_TRUE(session_->create(path_ + "/sick/x__lock__", "", sequential, soon()));
  const Ran ran = user_.run({"doctor", path_ + "/sick"});
  EXPECT_EQ(ran.status, (ExitStatus{1, 0}));
  EXPECT_THAT(ran.out, HasSubstr("do not all see each other"));
  EXPECT_THAT(ran.out, HasSubstr("belongs to no session"));
  EXPECT_THAT(ran.out, HasSubstr("try: "));
}

TEST_P(LookCommand, GcRemovesWhatIsEmptyAndNothingElse) {
  const std::string root = "/locks" + path_;
  const auto make = [&](const std::string& path, const std::string& data = "") {
    ASSERT_TRUE(session_->create(path, data, {}, soon()));
  };
  // What is there may be a container that the server is about to remove.
  const auto make_root = [&] {
    static_cast<void>(session_->create("/locks", "", {}, soon()));
    return session_->create(root, "", {}, soon()).has_value();
  };
  ASSERT_TRUE(eventually(make_root, soon()));
  for (const char* name : {"/used", "/marked", "/empty", "/left", "/fresh"}) {
    // A farewell is of no use to anybody any more.
    const std::string data = name == "/marked"s ? "who vanished" : name == "/left"s ? "left 7" : "";
    make(root + name, data);
    if (std::string(name) == "/fresh") continue;
    make(root + name + "/x");
    ASSERT_TRUE(session_->remove(root + name + "/x", soon()));
  }
  const Lease holder = hold(root + "/used");

  const Ran dry = user_.run({"gc", "--dry-run"});
  EXPECT_THAT(dry.out, HasSubstr(path_.substr(1) + "/empty\n"));
  EXPECT_TRUE(session_->exists(root + "/empty", soon()).value());
  EXPECT_EQ(user_.run({"gc"}).status, kFine);

  EXPECT_FALSE(session_->exists(root + "/empty", soon()).value());
  EXPECT_FALSE(session_->exists(root + "/left", soon()).value());
  for (const char* name : {"/used", "/marked", "/fresh"}) {
    EXPECT_TRUE(session_->exists(root + name, soon()).value()) << name;
  }
}

/// Without its leases another kind of lock would be let in, where its size still says otherwise.
TEST_P(LookCommand, GcTakesNoSemaphoreApart) {
  const std::string pool = path_ + "/pool";
  // By hand, for good: the server itself takes containers away when nobody uses them.
  for (const char* name : {"", "/pool", "/pool/leases", "/pool/locks"}) {
    ASSERT_TRUE(session_->create(path_ + name, name == "/pool"s ? "2" : "", {}, soon()));
  }
  ASSERT_EQ(user_.run({"run", "-N", "2", pool, "--", "true"}).status, kFine);

  for (const std::string& where : {path_, pool}) {
    EXPECT_EQ(user_.run({"gc", where}).out, "") << where;
  }

  EXPECT_EQ(user_.run({"run", pool, "--", "true"}).status, (ExitStatus{76, 0}));
}

TEST_P(LookCommand, GcCleansUpBelowAPathOfOnesOwn) {
  for (const char* name : {"", "/lock", "/lock/x"}) {
    ASSERT_TRUE(session_->create(path_ + name, "", {}, soon()));
  }
  ASSERT_TRUE(session_->remove(path_ + "/lock/x", soon()));

  EXPECT_EQ(user_.run({"gc"}).status, kFine);
  EXPECT_TRUE(session_->exists(path_ + "/lock", soon()).value()) << "it is not below /locks";
  EXPECT_EQ(user_.run({"gc", path_}).out, path_ + "/lock\n");

  EXPECT_FALSE(session_->exists(path_ + "/lock", soon()).value());
  EXPECT_TRUE(session_->exists(path_, soon()).value()) << "only what is below";
  EXPECT_EQ(user_.run({"gc", "/"}).status, (ExitStatus{64, 0}));
}

}  // namespace
}  // namespace latchkey::test_support
