#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "crash_client.hpp"
#include "support/child.hpp"
#include "support/embedded_server.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/temp_dir.hpp"

/// `latchkey serve` killed, and given disks that lose, damage or refuse.
namespace latchkey::test_support {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using wire::CreateMode;
using wire::Err;
using wire::Op;

constexpr ExitStatus kFailed{1, 0};

/// "... data in DIR: zxid 0x300000007: 0 items ..." as the start-up line has it.
std::int64_t recovered_zxid(const std::string& log) {
  const std::string before = ": zxid 0x";
  const std::size_t at = log.find(before);
  return at == std::string::npos ? -1 : std::stoll(log.substr(at + before.size()), nullptr, 16);
}

// Killed at random moments.

class ServerKilled : public testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr int kCrowd = 4;
  static constexpr int kRounds = 10;

  ServerKilled() : random_(GetParam()), server_(LATCHKEY_COMMAND) {
    for (int i = 0; i < kCrowd; ++i) {
      crowd_.push_back(
          std::make_unique<CrashClient>(server_.connect_string(), i, kCrowd, random_.next()));
    }
  }

  /// Everybody works until the server dies of it.
  void work_until_killed() {
    Fuse fuse(server_.pid(), static_cast<int>(1 + random_.below(1'500)));
    std::vector<std::thread> threads;
    for (const auto& client : crowd_) {
      threads.emplace_back([&client, &fuse] { client->run(fuse); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  /// By the number of the folder.
  std::vector<std::vector<History::Seen>> all_seen() {
    std::vector<std::vector<History::Seen>> result(kCrowd);
    for (const auto& client : crowd_) {
      for (auto& [owner, seen] : client->take_seen()) {
        result.at(static_cast<std::size_t>(owner)).push_back(seen);
      }
    }
    return result;
  }

  [[nodiscard]] std::int64_t newest_zxid() const {
    std::int64_t newest = 0;
    for (const auto& client : crowd_) newest = std::max(newest, client->seen_zxid());
    return newest;
  }

  base::Random random_;
  EmbeddedServer server_;
  std::vector<std::unique_ptr<CrashClient>> crowd_;
};

INSTANTIATE_TEST_SUITE_P(Seed, ServerKilled, testing::Values(1, 2, 3));

TEST_P(ServerKilled, H78_H80_H82_NothingAcknowledgedOrObservedIsLostAndNothingIsHalfDone) {
  server_.start();
  for (const auto& client : crowd_) ASSERT_TRUE(client->set_up());

  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(GetParam()) + ", kill " + std::to_string(round));
    work_until_killed();
    ASSERT_EQ(server_.wait(deadline_in(60s)), kKilled);
    for (const auto& client : crowd_) {
      ASSERT_THAT(client->trouble(), testing::IsEmpty());
    }

    server_.start();

    ASSERT_TRUE(eventually([&] { return recovered_zxid(server_.log()) != -1; }));
    EXPECT_GE(recovered_zxid(server_.log()), newest_zxid()) << server_.log();
    const auto seen = all_seen();
    const std::int64_t newest = newest_zxid();
    for (std::size_t i = 0; i < crowd_.size(); ++i) {
      ASSERT_EQ(crowd_[i]->come_back(seen[i], newest), "") << "client " << i;
    }
  }
}

// Damaged between two runs.

/// The journal's batches, by their headers (docs/storage.md).
struct Batch {
  std::size_t offset = 0;
  std::size_t size = 0;
};

class ServerDamaged : public testing::Test {
 protected:
  static constexpr int kNodes = 40;
  static constexpr std::size_t kSector = 512;

  /// One batch for each node, then the end; the folder is kept aside.
  ServerDamaged() : server_(LATCHKEY_COMMAND) {
    server_.start();
    RawClient client(server_.connect_string(), 60s);
    session_ = client.connect(60'000).value();
    for (int i = 0; i < kNodes; ++i) {
      const auto made =
          client.call(Op::kCreate, create_request("/" + std::to_string(i), CreateMode::kEphemeral));
      EXPECT_EQ(made->header.err, Err::kOk);
    }
    server_.kill();
    std::filesystem::rename(server_.data(), folder_.path() / "whole");
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "whole")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("journal-")) segment_ = std::max(segment_, name);
    }
    std::ifstream file(folder_.path() / "whole" / segment_, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    for (std::size_t at = kSector; at < bytes_.size(); at += kSector) {
      if (bytes_.compare(at, 4, "LKBT") != 0) continue;
      std::uint32_t sectors = 0;
      std::memcpy(&sectors, bytes_.data() + at + 24, sizeof sectors);
      batches_.push_back({at, sectors * kSector});
    }
  }

  /// The server finds the folder with these bytes in its newest segment.
  void put_back(const std::string& bytes) {
    server_.kill();
    std::filesystem::remove_all(server_.data());
    std::filesystem::copy(folder_.path() / "whole", server_.data());
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
  }
  [[nodiscard]] std::filesystem::path path() const { return server_.data() / segment_; }

  /// How many of the nodes are there: the first ones, all of the same session.
  int count_nodes() {
    RawClient client(server_.connect_string(), 60s);
    const auto attached = client.connect(60'000, session_);
    EXPECT_TRUE(attached && attached->session_id == session_.session_id);
    int there = 0;
    for (int i = 0; i < kNodes; ++i) {
      const auto answer = client.call(Op::kExists, wire::PathWatch{"/" + std::to_string(i), false});
      if (!answer || answer->header.err != Err::kOk) break;
      ++there;
    }
    return there;
  }

  const TempDir folder_;
  EmbeddedServer server_;
  wire::ConnectResponse session_;
  std::string segment_;
  std::string bytes_;
  std::vector<Batch> batches_;
  base::Random random_{4};
};

TEST_F(ServerDamaged, H77_ATailThatWasNotWrittenToItsEndIsCutOff) {
  ASSERT_GT(batches_.size(), static_cast<std::size_t>(kNodes));
  const Batch last = batches_.back();

  for (int i = 0; i < 6; ++i) {
    const std::size_t at = last.offset + (i == 0 ? 0 : 1 + random_.below(last.size - 1));
    SCOPED_TRACE("zeros from " + std::to_string(at) + " of " + segment_);
    put_back(bytes_.substr(0, at) + std::string(bytes_.size() - at, '\0'));

    server_.start();

    EXPECT_EQ(count_nodes(), kNodes - 1);
    const std::string_view said = i == 0 ? "was not closed" : "torn tail";
    // It may serve before it has said so.
    EXPECT_TRUE(eventually([&] { return server_.log().find(said) != std::string::npos; }))
        << server_.log();
  }
}

/// Segments have their full length before they are used, so this is no crash's doing.
TEST_F(ServerDamaged, H77_ATruncatedSegmentIsRefused) {
  for (const std::size_t size : {std::size_t{4'096}, batches_.back().offset, bytes_.size() - 1}) {
    put_back(bytes_.substr(0, size));

    server_.launch();

    EXPECT_EQ(server_.wait(deadline_in(60s)), kFailed) << size;
    EXPECT_THAT(server_.log(), HasSubstr("shorter than it was made"));
    EXPECT_EQ(std::filesystem::file_size(path()), size);
  }
}

TEST_F(ServerDamaged, H77_AByteThatChangedInTheMiddleIsRefusedAndNothingIsTouched) {
  ASSERT_GT(batches_.size(), static_cast<std::size_t>(kNodes));

  for (int i = 0; i < 4; ++i) {
    const Batch batch = batches_[random_.below(batches_.size() - 1)];
    const std::size_t at = batch.offset + random_.below(batch.size);
    SCOPED_TRACE("byte " + std::to_string(at) + " of " + segment_);
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random_.below(8)));
    put_back(damaged);

    server_.launch();

    EXPECT_EQ(server_.wait(deadline_in(60s)), kFailed);
    EXPECT_THAT(server_.log(), HasSubstr(path().string()));
    EXPECT_THAT(server_.log(), HasSubstr("at offset " + std::to_string(batch.offset)));
    EXPECT_THAT(server_.log(), HasSubstr("Restore the folder from a copy; or start once"));
    std::ifstream file(path(), std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), damaged);
  }
  put_back(bytes_);
  server_.start();
  EXPECT_EQ(count_nodes(), kNodes);
}

// Disks that refuse.

/// Writes nodes until there are no more answers.
class Filler {
 public:
  explicit Filler(const std::string& endpoint) : client_(endpoint, 60s) {
    session_ = client_.connect(60'000).value_or(wire::ConnectResponse{});
  }

  /// False: no answer.
  bool add(std::size_t size) {
    wire::Create request =
        create_request("/" + std::to_string(acknowledged_), CreateMode::kEphemeral);
    request.data = std::string(size, 'x');
    const auto reply = client_.call(Op::kCreate, request);
    if (!reply) return false;
    EXPECT_EQ(reply->header.err, Err::kOk);
    ++acknowledged_;
    return true;
  }
  [[nodiscard]] int acknowledged() const { return acknowledged_; }

  /// What was acknowledged, and at most the one that was on its way, is there, whole.
  void expect_all_on(const std::string& endpoint, std::size_t size) const {
    RawClient reader(endpoint, 60s);
    const auto attached = reader.connect(60'000, session_);
    ASSERT_TRUE(attached);
    // It may have ended before it had a session.
    if (session_.session_id != 0) {
      EXPECT_EQ(attached->session_id, session_.session_id);
    }
    for (int i = 0; i <= acknowledged_; ++i) {
      const auto reply = reader.call(Op::kGetData, wire::PathWatch{"/" + std::to_string(i), false});
      ASSERT_TRUE(reply);
      if (i == acknowledged_ && reply->header.err == Err::kNoNode) continue;
      ASSERT_EQ(reply->header.err, Err::kOk) << i;
      EXPECT_EQ(reply->as<wire::GetDataReply>()->data->size(), size) << i;
    }
  }

 private:
  RawClient client_;
  wire::ConnectResponse session_;
  int acknowledged_ = 0;
};

/// A file system of a few megabytes in a mount namespace of its own, which anybody may make where
/// the system allows it.
class SmallDisk {
 public:
  explicit SmallDisk(const std::filesystem::path& folder)
      : folder_(folder), holder_({"unshare", "--user", "--map-root-user", "--mount", "sh"}) {
    std::filesystem::create_directory(folder_);
    works_ = run("mount -t tmpfs -o size=20m none " + folder_.string());
  }

  /// False: this system does not let us have one.
  [[nodiscard]] bool works() const { return works_; }
  bool grow() { return run("mount -o remount,size=200m none " + folder_.string()); }
  /// A program that is started with these words before it sees the disk.
  [[nodiscard]] std::vector<std::string> prefix() const {
    return {"nsenter",  "--user",
            "--mount",  "--preserve-credentials",
            "--target", std::to_string(holder_.pid()),
            "setpriv",  "--pdeathsig",
            "KILL"};
  }

 private:
  bool run(const std::string& command) {
    return holder_.write(command + " && echo done || echo failed\n") &&
           holder_.wait_for_line("", deadline_in(60s)) == "done";
  }

  const std::filesystem::path folder_;
  Child holder_;
  bool works_ = false;
};

class ServerDisk : public testing::Test {
 protected:
  static constexpr std::size_t kLarge = 200'000;

  const TempDir folder_;
};

/// No file of the process may grow any more, from now on.
void forbid_growth(pid_t process) {
  const rlimit limit{4'096, RLIM_INFINITY};
  ASSERT_EQ(::prlimit(process, RLIMIT_FSIZE, &limit, nullptr), 0);
}

TEST_F(ServerDisk, H83_AFullDiskEndsTheServerAndNothingAcknowledgedIsLost) {
  SmallDisk disk(folder_.path() / "disk");
  EmbeddedOptions options;
  options.data = folder_.path() / "disk" / "data";
  if (disk.works()) options.prefix = disk.prefix();
  EmbeddedServer server(LATCHKEY_COMMAND, options);
  server.start();
  Filler filler(server.connect_string());
  ASSERT_TRUE(filler.add(kLarge));
  // Where no small disk can be had, the process is not allowed to write further: the same path.
  if (!disk.works()) forbid_growth(server.pid());

  while (filler.add(kLarge)) {
  }

  EXPECT_EQ(server.wait(deadline_in(60s)), kFailed);
  EXPECT_THAT(server.log(), HasSubstr(disk.works() ? "No space left on device" : "File too large"));
  EXPECT_THAT(server.log(), HasSubstr(options.data.string()));
  if (disk.works()) {
    EXPECT_GT(filler.acknowledged(), 10);
    ASSERT_TRUE(disk.grow());
  }
  server.start();
  filler.expect_all_on(server.connect_string(), kLarge);
}

TEST_F(ServerDisk, H83_AWriteErrorEndsTheServerAndNothingAcknowledgedIsLost) {
  EmbeddedServer server(LATCHKEY_COMMAND);
  server.start();
  Filler filler(server.connect_string());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(filler.add(1'000));
  forbid_growth(server.pid());

  EXPECT_FALSE(filler.add(1'000));

  EXPECT_EQ(server.wait(deadline_in(60s)), kFailed);
  EXPECT_THAT(server.log(), HasSubstr("File too large"));
  server.start();
  filler.expect_all_on(server.connect_string(), 1'000);
}

TEST_F(ServerDisk, H84_TheFirstFailedSyncEndsTheServerAndIsNotTriedAgain) {
  int ended_while_serving = 0;
  for (int call = 1; call <= 16; ++call) {
    SCOPED_TRACE("call " + std::to_string(call) + " of fdatasync fails");
    EmbeddedOptions options;
    options.data = folder_.path() / std::to_string(call);
    const char* sanitizer = std::getenv("ASAN_OPTIONS");
    options.environment = {
        "LD_PRELOAD=" LATCHKEY_FDATASYNC_SHIM, "FAIL_FDATASYNC=" + std::to_string(call),
        std::string("ASAN_OPTIONS=verify_asan_link_order=0:") + (sanitizer ? sanitizer : "")};
    EmbeddedServer server(LATCHKEY_COMMAND, options);

    server.launch();
    const bool serves =
        eventually([&] { return server.word("ruok") == "imok" || !server.running(); },
                   deadline_in(60s)) &&
        server.running();
    std::optional<Filler> filler;
    if (serves) {
      ++ended_while_serving;
      filler.emplace(server.connect_string());
      while (filler->add(1'000)) {
      }
    }

    EXPECT_EQ(server.wait(deadline_in(60s)), kFailed);
    EXPECT_THAT(server.log(), HasSubstr("Input/output error"));
    EXPECT_THAT(server.log(), Not(HasSubstr("synced again")));
    if (!filler) continue;
    options.environment.clear();
    EmbeddedServer again(LATCHKEY_COMMAND, options);
    again.start();
    filler->expect_all_on(again.connect_string(), 1'000);
  }
  EXPECT_GT(ended_while_serving, 5);
}

}  // namespace
}  // namespace latchkey::test_support
