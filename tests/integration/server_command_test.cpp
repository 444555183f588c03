#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "latchkey/session.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

/// `latchkey serve` as a process.
namespace latchkey::test_support {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using wire::CreateMode;
using wire::Err;
using wire::Op;

class ServerCommand : public testing::Test {
 protected:
  /// The process with its output, and the line that says where it serves.
  Child& serve(std::vector<std::string> arguments, const ChildOptions& options = {}) {
    arguments.insert(arguments.begin(), {LATCHKEY_COMMAND, "serve"});
    process_ = std::make_unique<Child>(arguments, options);
    line_ = process_->wait_for_line("serves on", deadline_in(20s)).value_or("no start-up line");
    return *process_;
  }
  /// What it says when it does not want to: the end, and the message.
  ExitStatus refuse(std::vector<std::string> arguments, std::string& message) {
    arguments.insert(arguments.begin(), {LATCHKEY_COMMAND, "serve"});
    ChildOptions options;
    options.output_file = folder_.path() / "output";
    std::filesystem::remove(options.output_file);  // It is added to, and this is about one process.
    Child process(arguments, options);
    const ExitStatus status = process.wait(deadline_in(20s)).value_or(ExitStatus{});
    std::ifstream output(options.output_file);
    message.assign(std::istreambuf_iterator<char>(output), {});
    return status;
  }
  [[nodiscard]] std::string data() const { return (folder_.path() / "data").string(); }
  [[nodiscard]] static std::string free_address() { return loopback(free_port()); }

  const TempDir folder_;
  std::unique_ptr<Child> process_;
  std::string line_;
};

TEST_F(ServerCommand, SaysWhereItListensAndWhereTheDataLies) {
  const std::string address = free_address();
  const std::string socket = (folder_.path() / "s.sock").string();

  serve({"--data", data(), "--listen", address, "--unix", socket});

  EXPECT_THAT(line_, HasSubstr(address));
  EXPECT_THAT(line_, HasSubstr("unix:" + socket));
  EXPECT_THAT(line_, HasSubstr("data in " + data()));
  EXPECT_TRUE(RawClient(address).connect(10'000));
  EXPECT_TRUE(RawClient("unix:" + socket).connect(10'000));
}

TEST_F(ServerCommand, EndsInOrderOnSigterm) {
  const std::string address = free_address();
  Child& process = serve({"--data", data(), "--listen", address});
  RawClient client(address);
  ASSERT_TRUE(client.connect(10'000));
  ASSERT_TRUE(client.call(Op::kCreate, create_request("/kept", CreateMode::kPersistent)));

  process.signal(SIGTERM);

  EXPECT_EQ(process.wait(deadline_in(20s)), kFine);
  EXPECT_TRUE(client.ended());
  serve({"--data", data(), "--listen", address});
  EXPECT_THAT(line_, Not(HasSubstr("was cut"))) << line_;
  RawClient again(address);
  ASSERT_TRUE(again.connect(10'000));
  EXPECT_EQ(again.call(Op::kExists, wire::PathWatch{"/kept", false})->header.err, Err::kOk);
}

TEST_F(ServerCommand, EndsInOrderOnSigintAndRemovesItsSocket) {
  const auto socket = folder_.path() / "s.sock";
  Child& process = serve({"--memory", "--unix", socket.string()});
  ASSERT_TRUE(std::filesystem::exists(socket));

  process.signal(SIGINT);

  EXPECT_EQ(process.wait(deadline_in(20s)), kFine);
  EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST_F(ServerCommand, H80_WhatWasAnsweredIsThereAfterAKill) {
  const std::string address = free_address();
  const std::vector<std::string> arguments = {
      "--data", data(), "--listen", address, "--unix", (folder_.path() / "s.sock").string()};
  Child& process = serve(arguments);
  RawClient client(address);
  const auto session = client.connect(30'000);
  ASSERT_TRUE(session);
  ASSERT_TRUE(client.call(Op::kCreate, create_request("/e", CreateMode::kEphemeral)));

  process.signal(SIGKILL);
  ASSERT_EQ(process.wait(deadline_in(20s)), (ExitStatus{-1, SIGKILL}));
  serve(arguments);

  RawClient again(address);
  const auto attached = again.connect(30'000, *session);
  ASSERT_TRUE(attached) << line_;
  EXPECT_EQ(attached->session_id, session->session_id);
  EXPECT_EQ(again.call(Op::kExists, wire::PathWatch{"/e", false})->header.err, Err::kOk);
}

TEST_F(ServerCommand, H85_APausedServerExpiresNobodyWhoSentAHeartbeat) {
  constexpr int kTimeoutMs = 8'000;  // Before the pause and after it only the client's pace counts.
  const std::string address = free_address();
  Child& process =
      serve({"--memory", "--listen", address, "--tick", "20ms", "--min-session-timeout", "50ms"});
  RawClient client(address);
  ASSERT_TRUE(client.connect(kTimeoutMs));

  process.pause();
  const Instant over = BootClock::now() + std::chrono::milliseconds(kTimeoutMs * 3 / 2);
  int sent = 0;
  ASSERT_TRUE(eventually(
      [&] {
        client.add(Op::kPing, wire::Empty{});
        ++sent;
        return !client.flush() || BootClock::now() >= over;
      },
      deadline_in(60s)));
  process.resume();

  for (int i = 0; i < sent; ++i) ASSERT_TRUE(client.receive()) << "heartbeat " << i;
  EXPECT_EQ(client.call(Op::kCreate, create_request("/e", CreateMode::kEphemeral))->header.err,
            Err::kOk);
}

TEST_F(ServerCommand, SaysWhatIsMissing) {
  std::string message;

  EXPECT_EQ(refuse({"--memory", "--data", data()}, message), (ExitStatus{64, 0}));
  EXPECT_THAT(message, HasSubstr("choose one"));
  EXPECT_EQ(refuse({"--memory", "--tick", "soon"}, message), (ExitStatus{64, 0}));
  EXPECT_THAT(message, HasSubstr("write 500ms"));
  EXPECT_EQ(refuse({"--memory", "--words", "kill"}, message), (ExitStatus{64, 0}));
  EXPECT_THAT(message, HasSubstr("\"kill\""));
  EXPECT_EQ(refuse({"--memory", "--unix", ""}, message), (ExitStatus{64, 0}));
  EXPECT_THAT(message, HasSubstr("--unix: the value is empty"));
  EXPECT_EQ(refuse({"--memory", "--max-frame", "1"}, message), (ExitStatus{64, 0}));
  EXPECT_THAT(message, HasSubstr("--max-frame: \"1\" is too small; choose at least 1024"));
  EXPECT_EQ(refuse({"--memory", "--max-buffered", "64K"}, message), (ExitStatus{64, 0}));
  EXPECT_THAT(message, StartsWith("latchkey serve: --max-buffered (65536) is less than "
                                  "--max-output-per-connection (67108864): raise"));
}

TEST_F(ServerCommand, ToldNothingItKeepsItsDataWithTheUsersOwnState) {
  ChildOptions options;
  options.environment = {"STATE_DIRECTORY=", "XDG_STATE_HOME=" + folder_.path().string()};
  serve({"--listen", "127.0.0.1:0"}, options);
  EXPECT_THAT(line_, HasSubstr("data in " + (folder_.path() / "latchkey/serve").string() + ":"));

  options.environment = {"STATE_DIRECTORY=" + data() + ":/other"};
  serve({"--listen", "127.0.0.1:0"}, options);
  EXPECT_THAT(line_, HasSubstr("data in " + data() + ":"));
}

TEST_F(ServerCommand, AWordIsAnsweredAlthoughTheWorkingDirectoryIsGone) {
  const std::string home = folder_.path() / "home";
  std::filesystem::create_directory(home);
  const std::string address = free_address();
  process_ = std::make_unique<Child>(std::vector<std::string>{
      "sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh", home, LATCHKEY_COMMAND, "serve",
      "--data", "../data", "--words", "all", "--listen", address});
  ASSERT_TRUE(process_->wait_for_line("serves on", deadline_in(20s)));
  std::filesystem::remove(home);
  const auto ask = [&](const char* word) {
    return ask_word(Endpoint(address), word, deadline_in(20s));
  };

  for (const char* word : {"conf", "envi", "mntr"}) {
    EXPECT_NE(ask(word), "") << word;
  }
  EXPECT_THAT(ask("conf"), HasSubstr("dataDir=" + data()));
}

TEST_F(ServerCommand, SaysWhichOptionWasMeant) {
  std::string message;

  EXPECT_EQ(refuse({"--memory", "--listn", "127.0.0.1:0"}, message), (ExitStatus{64, 0}));
  EXPECT_THAT(message, HasSubstr("latchkey serve: there is no option --listn"));
  EXPECT_THAT(message, HasSubstr("--listen"));
}

TEST_F(ServerCommand, AnAddressNamedTwiceIsNotSomebodyElses) {
  const std::string address = free_address();
  std::string message;

  EXPECT_EQ(refuse({"--memory", "--listen", address, "--listen", address}, message),
            (ExitStatus{64, 0}));
  EXPECT_THAT(message, HasSubstr("named twice"));
}

TEST_F(ServerCommand, ASecondOneOnTheSameAddressOrFolderSaysSo) {
  const std::string address = free_address();
  serve({"--data", data(), "--listen", address});
  std::string message;

  EXPECT_EQ(refuse({"--memory", "--listen", address}, message), (ExitStatus{1, 0}));
  EXPECT_THAT(message, StartsWith("latchkey serve: listen on " + address));
  EXPECT_EQ(refuse({"--data", data(), "--listen", free_address()}, message), (ExitStatus{1, 0}));
  EXPECT_THAT(message, StartsWith("latchkey serve: "));
  EXPECT_THAT(message, AllOf(HasSubstr(data()), Not(HasSubstr("InUse"))));
}

TEST_F(ServerCommand, ReadsAConfigurationFileAndLetsTheCommandLineWin) {
  const std::string address = free_address();
  const std::string other = free_address();
  const auto file = folder_.path() / "serve.conf";
  std::ofstream(file) << "# A server for tests.\nmemory = true\nlisten = [\"" << address
                      << "\"]\nmax-session-timeout = 5s\nwords = ruok,isro\n";

  serve({"--config", file.string(), "--listen", other});

  EXPECT_THAT(line_, HasSubstr(other));
  EXPECT_THAT(line_, Not(HasSubstr(address)));
  RawClient client(other);
  EXPECT_EQ(client.connect(60'000)->timeout_ms, 5'000);
}

TEST_F(ServerCommand, AConfigurationFileSaysYesAndNoAndNamesAnAddressOnAnyLine) {
  const std::string first = free_address();
  const std::string second = free_address();
  const auto file = folder_.path() / "serve.conf";
  std::ofstream(file) << "listen = " << first << "\ntls-require-client-cert = no\nmemory = on\n"
                      << "listen = \"" << second << "\"\n";

  serve({"--config", file.string()});

  EXPECT_THAT(line_, HasSubstr(first));
  EXPECT_THAT(line_, HasSubstr(second));
}

TEST_F(ServerCommand, AConfigurationFilesMistakeIsFoundByItsLine) {
  const auto file = folder_.path() / "serve.conf";
  std::string message;

  std::ofstream(file) << "# a comment\nmemory = maybe\n";
  EXPECT_EQ(refuse({"--config", file.string()}, message), (ExitStatus{78, 0}));
  EXPECT_THAT(message, HasSubstr(file.string() + ":2: \"maybe\""));
  std::ofstream(file) << "memory = true\n\ntick = soon\n";
  EXPECT_EQ(refuse({"--config", file.string()}, message), (ExitStatus{78, 0}));
  EXPECT_THAT(message, HasSubstr(file.string() + ":3: "));
  EXPECT_EQ(refuse({"--config", folder_.path().string()}, message), (ExitStatus{78, 0}));
  EXPECT_THAT(message, HasSubstr(folder_.path().string()));
}

TEST_F(ServerCommand, AConfigurationFileWithAnUnknownNameIsRefused) {
  const auto file = folder_.path() / "serve.conf";
  std::ofstream(file) << "memory = true\nlisten-on = \"127.0.0.1:0\"\n";
  std::string message;

  EXPECT_EQ(refuse({"--config", file.string()}, message), (ExitStatus{78, 0}));
  EXPECT_THAT(message, HasSubstr("listen-on"));
  EXPECT_EQ(refuse({"--config", "/no/such/file"}, message), (ExitStatus{78, 0}));
  EXPECT_THAT(message, HasSubstr("/no/such/file"));
}

TEST_F(ServerCommand, TellsSystemdWhenItIsReady) {
  const std::string path = (folder_.path() / "notify").string();
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  const Fd systemd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(systemd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  const auto told = [&] {
    std::array<char, 100> text{};
    const bool there = wait_ready(systemd.get(), POLLIN, deadline_in(20s));
    const ssize_t got = there ? ::recv(systemd.get(), text.data(), text.size(), 0) : 0;
    return std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  };
  ChildOptions options;
  options.environment = {"NOTIFY_SOCKET=" + path};
  const std::string address = free_address();

  Child& process = serve({"--memory", "--listen", address}, options);

  EXPECT_EQ(told(), "READY=1");
  EXPECT_TRUE(RawClient(address).connect(10'000));
  process.signal(SIGTERM);
  EXPECT_EQ(told(), "STOPPING=1");
  EXPECT_EQ(process.wait(deadline_in(20s)), kFine);
}

TEST_F(ServerCommand, TakesTheSocketsOfSystemd) {
  const std::uint16_t port = free_port();
  // What systemd does: listens, puts the socket where it is looked for, and becomes the program.
  const std::string systemd =
      "import os, socket\n"
      "listening = socket.create_server(('127.0.0.1', " +
      std::to_string(port) +
      "))\n"
      "os.dup2(listening.fileno(), 3)\n"
      "os.set_inheritable(3, True)\n"
      "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')\n"
      "os.execv('" LATCHKEY_COMMAND "', ['latchkey', 'serve', '--memory'])\n";

  Child process({"python3", "-c", systemd});

  const auto line = process.wait_for_line("serves on", deadline_in(20s));
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, HasSubstr("serves on " + loopback(port) + ";"));
  EXPECT_TRUE(RawClient(loopback(port)).connect(10'000));
}

}  // namespace
}  // namespace latchkey::test_support
