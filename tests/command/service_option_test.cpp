#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command/invocation.hpp"
#include "latchkey/session.hpp"
#include "support/embedded_server.hpp"
#include "support/fault_proxy.hpp"
#include "support/shared_servers.hpp"
#include "support/sockets.hpp"
#include "support/tls_files.hpp"

/// How a command finds its service, and what it says when it cannot.
namespace latchkey::test_support {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr ExitStatus kNoServer{69, 0};
constexpr ExitStatus kConfiguration{78, 0};

class ServiceOption : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const auto file = user_.home() / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    ::chmod(file.c_str(), mode);
    return file.string();
  }
  static std::string connect() { return shared_embedded().connect_string(); }

  NewUser user_;
};

TEST_F(ServiceOption, TheCommandLineBeatsTheVariableBeatsTheFile) {
  const std::string dead = loopback(free_port());
  write(".config/latchkey.conf", "connect = " + connect() + "\n");
  EXPECT_EQ(user_.run({"ls"}).status, kFine);
  EXPECT_THAT(user_.servers(), testing::IsEmpty()) << "our own server was not asked for";

  const Ran ran = user_.run(
      {"ls", "--config", write("dead.conf", "connect = " + dead + "\n"), "--connect", connect()},
      {"LATCHKEY_CONNECT=" + dead});
  EXPECT_EQ(ran.status, kFine) << ran.err;
}

TEST_F(ServiceOption, AServerThatIsNotThereIsNamedWithWhoSaidSo) {
  const std::string dead = loopback(free_port());

  const Ran ran = user_.run({"ls"}, {"LATCHKEY_CONNECT=" + dead});

  EXPECT_EQ(ran.status, kNoServer);
  EXPECT_THAT(ran.err, HasSubstr(dead));
  EXPECT_THAT(ran.err, HasSubstr("LATCHKEY_CONNECT"));
  EXPECT_THAT(ran.err, HasSubstr("latchkey serve"));
  EXPECT_EQ(ran.out, "");
}

TEST_F(ServiceOption, AConfigurationsMistakeIsFoundByItsLine) {
  const std::string unknown = write("a.conf", "# ours\nconect = zk1\n");
  const Ran ran = user_.run({"ls", "--config", unknown});
  EXPECT_EQ(ran.status, kConfiguration);
  EXPECT_THAT(ran.err, HasSubstr(unknown + ":2: "));
  EXPECT_THAT(ran.err, HasSubstr("conect"));

  const Ran none = user_.run({"ls"}, {"LATCHKEY_CONFIG=/no/such/file"});
  EXPECT_EQ(none.status, kConfiguration);
  EXPECT_THAT(none.err, HasSubstr("/no/such/file"));

  const Ran bad = user_.run({"ls", "--connect", "a:b:c"});
  EXPECT_EQ(bad.status, kConfiguration);
  EXPECT_THAT(bad.err, HasSubstr("a:b:c"));
}

TEST_F(ServiceOption, CredentialsOpenWhatIsClosedToOthers) {
  SessionOptions options;
  options.credentials = {{"digest", "ann:secret"}};
  auto session = Session::open(connect(), options, deadline_in(20s));
  ASSERT_TRUE(session);
  const std::string path = fresh_path();
  ASSERT_TRUE(session->create(path, "", {.acl = creator_acl()}, deadline_in(20s)));
  user_.set("LATCHKEY_CONNECT", connect());

  EXPECT_EQ(user_.run({"ls", path}).status, (ExitStatus{77, 0}));
  const Ran ran = user_.run({"ls", path, "--credentials", write("secret", "ann:secret\n")});
  EXPECT_EQ(ran.status, kFine) << ran.err;
}

TEST_F(ServiceOption, CredentialsThatOthersCanReadAreRefusedAndNeverShown) {
  user_.set("LATCHKEY_CONNECT", connect());
  const Ran open = user_.run({"ls", "--credentials", write("open", "ann:secret\n", 0644)});
  EXPECT_EQ(open.status, kConfiguration);
  EXPECT_THAT(open.err, HasSubstr("chmod 600"));
  EXPECT_THAT(open.err, Not(HasSubstr("secret\n")));

  EXPECT_EQ(user_.run({"ls", "--credentials", write("none", "secret\n")}).status, kConfiguration);
  EXPECT_EQ(user_.run({"ls", "--credentials", "/no/such/file"}).status, kConfiguration);
}

TEST_F(ServiceOption, TlsIsForThoseWhoKnowWhoSigns) {
  const TlsFiles files = make_tls_files(user_.home());
  Child server({LATCHKEY_COMMAND, "serve", "--memory", "--listen", "127.0.0.1:0", "--tls-cert",
                files.server.certificate.string(), "--tls-key", files.server.key.string()});
  const std::string line = server.wait_for_line("serves on ", deadline_in(60s)).value_or("");
  const std::size_t from = line.find("127.0.0.1:");
  ASSERT_NE(from, std::string::npos) << line;
  user_.set("LATCHKEY_CONNECT", line.substr(from, line.find(';', from) - from));

  const Ran trusting = user_.run({"ls", "--tls-ca", files.ca.string()});
  EXPECT_EQ(trusting.status, kFine) << trusting.err;
  const Ran under = user_.run({"run", "--tls-ca", files.ca.string(), "x", "--", "echo", "ran"});
  EXPECT_EQ(under.status, kFine) << under.err;
  EXPECT_EQ(under.out, "ran\n");
  const Ran doctor = user_.run({"doctor", "--tls-ca", files.ca.string()});
  EXPECT_EQ(doctor.status, kFine) << doctor.out;
  EXPECT_THAT(doctor.out, HasSubstr("asked over TLS"));
  EXPECT_THAT(user_.run({"ls"}).err, HasSubstr("without --tls"));
  const Ran mistrusting = user_.run({"ls", "--tls-ca", files.other_ca.string()});
  EXPECT_NE(mistrusting.status, kFine);
  EXPECT_THAT(mistrusting.err, HasSubstr("certificate"));
  EXPECT_THAT(mistrusting.err, HasSubstr("The address is from LATCHKEY_CONNECT"));
  const Ran missing = user_.run({"ls", "--tls-ca", "/no/such/file"});
  EXPECT_EQ(missing.status, kConfiguration);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/file"));
  EXPECT_THAT(missing.err, Not(HasSubstr("address"))) << "it has no part in this";
}

TEST_F(ServiceOption, FilesThatAConfigurationNamesAreBesideIt) {
  const TlsFiles files = make_tls_files(user_.home());
  std::filesystem::create_directories(user_.home() / "conf");
  std::filesystem::copy(files.ca, user_.home() / "conf/ca.pem");
  Child server({LATCHKEY_COMMAND, "serve", "--memory", "--listen", "127.0.0.1:0", "--tls-cert",
                files.server.certificate.string(), "--tls-key", files.server.key.string()});
  const std::string line = server.wait_for_line("serves on ", deadline_in(60s)).value_or("");
  const std::size_t from = line.find("127.0.0.1:");
  ASSERT_NE(from, std::string::npos) << line;
  const std::string connect = "connect = " + line.substr(from, line.find(';', from) - from) + "\n";

  const Ran beside =
      user_.run({"ls", "--config", write("conf/good.conf", connect + "tls-ca = ca.pem\n")});
  EXPECT_EQ(beside.status, kFine) << beside.err;
  const std::string bad = write("conf/bad.conf", connect + "tls-ca = none.pem\n");
  const Ran missing = user_.run({"ls", "--config", bad});
  EXPECT_EQ(missing.status, kConfiguration);
  EXPECT_THAT(missing.err, HasSubstr((user_.home() / "conf/none.pem").string()));
  EXPECT_THAT(missing.err, HasSubstr("named in " + bad));
}

TEST_F(ServiceOption, ACertificateAndItsKeyGoTogether) {
  const Ran cert = user_.run({"ls", "-z", connect(), "--tls-cert", "x.pem"});
  EXPECT_EQ(cert.status, kConfiguration);
  EXPECT_THAT(cert.err, HasSubstr("--tls-cert needs --tls-key"));
  const std::string file = write("half.conf", "tls-key = x.pem\n");
  const Ran key = user_.run({"ls", "-z", connect(), "--config", file});
  EXPECT_EQ(key.status, kConfiguration);
  EXPECT_THAT(key.err, HasSubstr(file + ": --tls-key needs --tls-cert"));
}

TEST_F(ServiceOption, AChrootIsTheRootForUs) {
  auto session = Session::open(connect(), {}, deadline_in(20s));
  ASSERT_TRUE(session);
  const std::string root = fresh_path();
  ASSERT_TRUE(session->create(root, "", {}, deadline_in(20s)));
  ASSERT_TRUE(session->create(root + "/locks", "", {}, deadline_in(20s)));
  ASSERT_TRUE(session->create(root + "/locks/inside", "", {}, deadline_in(20s)));
  user_.set("LATCHKEY_CONNECT", connect());

  EXPECT_EQ(user_.run({"ls", "--names", "--chroot", root}).out, "inside\n");
  EXPECT_EQ(user_.run({"ls", "--names"}, {"LATCHKEY_CONNECT=" + connect() + root}).out, "inside\n");
}

TEST_F(ServiceOption, AChrootThatIsNotThereIsToldByEveryCommand) {
  user_.set("LATCHKEY_CONNECT", connect() + "/no/such/root");

  const std::vector<std::vector<std::string>> all = {{"run", "a", "true"},
                                                     {"once", "a", "true"},
                                                     {"elect", "a", "true"},
                                                     {"hold", "a", "--for", "1s"},
                                                     {"release", "a"},
                                                     {"ls"},
                                                     {"who", "a"},
                                                     {"watch", "a"},
                                                     {"wait", "a"},
                                                     {"revoke", "a"},
                                                     {"gc"},
                                                     {"bench"},
                                                     {"resize", "a", "2"}};
  for (const auto& words : all) {
    const Ran ran = user_.run(words);
    EXPECT_EQ(ran.status, kConfiguration) << words[0];
    EXPECT_THAT(ran.err, HasSubstr("there is no node /no/such/root")) << words[0];
    EXPECT_THAT(ran.err, HasSubstr("client: create /no/such/root")) << words[0];
  }
}

TEST_F(ServiceOption, TheDoctorSaysThatTheChrootIsNotThere) {
  const Ran ran = user_.run({"doctor", "-z", connect(), "--chroot", "/no/such/root"});
  EXPECT_EQ(ran.status, kConfiguration);
  EXPECT_THAT(ran.out, HasSubstr("bad: the service: there is no node /no/such/root"));
  EXPECT_THAT(ran.out, HasSubstr("client: create"));
  EXPECT_THAT(ran.out, Not(HasSubstr("Nothing is wrong")));

  const Ran json = user_.run({"doctor", "--json", "-z", connect() + "/no/such/root"});
  EXPECT_EQ(json.status, kConfiguration);
  EXPECT_THAT(json.out, HasSubstr("{\"weight\":\"bad\""));
}

TEST_F(ServiceOption, RunTakesAllOfItFromAConfigurationFile) {
  SessionOptions options;
  options.credentials = {{"digest", "ann:secret"}};
  auto session = Session::open(connect(), options, deadline_in(20s));
  ASSERT_TRUE(session);
  const std::string root = fresh_path();
  ASSERT_TRUE(session->create(root, "", {.acl = creator_acl()}, deadline_in(20s)));
  const std::string secret = write("secret", "ann:secret\n");
  const std::string file = write("all.conf", "connect = " + connect() + "\nchroot = " + root +
                                                 "\ncredentials = secret\nsession-timeout = 1h\n");

  // Also from outside, while it is held: afterwards the server may remove the directory any time.
  const std::string outside =
      "\"$1\" ls -z " + connect() + " --credentials " + secret + " --json " + root + "/job";
  const Ran ran = user_.run({"run", "-v", "--config", file, "/job", "--", "sh", "-c",
                             "echo $LATCHKEY_LOCK; \"$@\" && " + outside, "sh", LATCHKEY_COMMAND,
                             "ls", "--config", file, "--json", "/job"});

  EXPECT_EQ(ran.status, kFine) << ran.err;
  EXPECT_THAT(ran.out, testing::StartsWith("/job\n"));
  const std::string held = R"(","exists":true,"held":true)";
  EXPECT_THAT(ran.out, HasSubstr(R"({"lock":"/job)" + held));
  EXPECT_THAT(ran.out, HasSubstr(R"({"lock":")" + root + "/job" + held)) << "below the chroot";
  EXPECT_THAT(ran.err, HasSubstr("and not 3600000 ms"));
  const Ran bare = user_.run({"run", "-z", connect(), "--chroot", root, "/other", "--", "true"});
  EXPECT_EQ(bare.status, (ExitStatus{77, 0})) << bare.err;
}

TEST_F(ServiceOption, AServerThatIsSlowIsNotALockThatIsTaken) {
  const std::string path = fresh_path();
  FaultProxy proxy(connect());
  std::vector<int> stops;
  std::vector<std::unique_ptr<Child>> asking;
  ChildOptions options{.environment = user_.environment()};
  const auto ask = [&](wire::Op op, std::vector<std::string> words) {
    words.insert(words.begin() + 1, {"-z", proxy.connect_string(), "--session-timeout", "60s"});
    const std::string log = (user_.home() / words[0]).string();
    stops.push_back(proxy.stop_at_reply(Match(op).on(path + words[0])));
    std::vector<std::string> all = {"sh", "-c", "exec \"$@\" 2>" + log, "sh"};
    for (const std::string& word : user_.command(words)) all.push_back(word);
    asking.push_back(std::make_unique<Child>(all, options));
  };
  auto session = Session::open(connect(), {}, deadline_in(20s));
  ASSERT_TRUE(session);
  for (const char* name : {"run", "hold"}) {
    ASSERT_TRUE(session->create(path + name, "", {}, deadline_in(20s)));
  }

  ask(wire::Op::kCreate2, {"run", "-n", path + "run", "--", "true"});
  ask(wire::Op::kCreate2, {"hold", "-n", path + "hold", "--for", "1h"});
  ask(wire::Op::kExists, {"once", path + "once", "--", "true"});
  for (const int stop : stops) ASSERT_TRUE(proxy.wait_until_fired(stop, deadline_in(60s)));
  proxy.hold(Hold::kBoth);

  for (const auto& one : asking) EXPECT_EQ(one->wait(deadline_in(90s)), kNoServer);
  for (const char* name : {"run", "hold", "once"}) {
    EXPECT_THAT(contents(user_.home() / name), HasSubstr("has not answered in time")) << name;
  }
}

TEST_F(ServiceOption, AnAddressWithASchemeGetsAHint) {
  const Ran ran = user_.run({"ls", "-z", "http://" + connect()});

  EXPECT_EQ(ran.status, kConfiguration);
  EXPECT_THAT(ran.err, HasSubstr("leave out http://"));
}

}  // namespace
}  // namespace latchkey::test_support
