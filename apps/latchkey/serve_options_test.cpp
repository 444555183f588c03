#include "serve_options.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/option_limits.hpp"
#include "storage/temp_folder.hpp"

namespace latchkey::app {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using Options = ServerOptions;

/// An option, a value that is not its default, and how to see that the server is told it.
struct OptionRow {
  std::string name;
  std::string value;  ///< Empty: a flag.
  bool (*told)(const Options&);
};

const OptionRow kRows[] = {
    {"data", "/d", [](const Options& it) { return it.data_folder == "/d"; }},
    {"cut-damage", "",
     [](const Options& it) { return it.on_damage == ServerOptions::Damage::kCut; }},
    {"listen", "h:1",
     [](const Options& it) { return it.listen == std::vector<std::string>{"h:1"}; }},
    {"unix", "/u", [](const Options& it) { return it.unix_path == "/u"; }},
    {"words", "mntr",
     [](const Options& it) { return it.words == std::vector<std::string>{"mntr"}; }},
    {"super-digest", "u:h", [](const Options& it) { return it.super_digest == "u:h"; }},
    {"metrics", "h:2", [](const Options& it) { return it.metrics == "h:2"; }},
    {"tls-cert", "/c", [](const Options& it) { return it.tls && it.tls->cert_file == "/c"; }},
    {"tls-key", "/k", [](const Options& it) { return it.tls && it.tls->key_file == "/k"; }},
    {"tls-client-ca", "/a",
     [](const Options& it) { return it.tls && it.tls->client_ca_file == "/a"; }},
    {"tls-require-client-cert", "",
     [](const Options& it) {
       return it.tls && it.tls->clients == ServerTls::Clients::kMustShowCertificate;
     }},
    {"tick", "7s", [](const Options& it) { return it.tick == 7s; }},
    {"min-session-timeout", "7s", [](const Options& it) { return it.min_session_timeout == 7s; }},
    {"max-session-timeout", "7s", [](const Options& it) { return it.max_session_timeout == 7s; }},
    {"reap-interval", "7s", [](const Options& it) { return it.reap_interval == 7s; }},
    {"handshake-timeout", "7s", [](const Options& it) { return it.handshake_timeout == 7s; }},
    {"idle-stop", "7s", [](const Options& it) { return it.idle_stop == 7s; }},
    {"max-connections", "7", [](const Options& it) { return it.max_connections == 7; }},
    {"max-connections-per-address", "7",
     [](const Options& it) { return it.max_connections_per_address == 7; }},
    {"max-frame", "7K", [](const Options& it) { return it.max_frame == 7'168; }},
    {"max-sessions", "7", [](const Options& it) { return it.max_sessions == 7; }},
    {"max-sessions-per-address", "7",
     [](const Options& it) { return it.max_sessions_per_address == 7; }},
    {"max-nodes", "7", [](const Options& it) { return it.max_nodes == 7; }},
    {"max-bytes", "7K", [](const Options& it) { return it.max_bytes == 7'168; }},
    {"max-ephemeral-bytes-per-session", "7K",
     [](const Options& it) { return it.max_ephemeral_bytes_per_session == 7'168; }},
    {"max-requests-per-connection", "7",
     [](const Options& it) { return it.max_requests_per_connection == 7; }},
    {"max-watches", "7", [](const Options& it) { return it.max_watches == 7; }},
    {"max-watches-per-connection", "7",
     [](const Options& it) { return it.max_watches_per_connection == 7; }},
    {"max-watch-bytes", "7K", [](const Options& it) { return it.max_watch_bytes == 7'168; }},
    {"max-output-per-connection", "70K",
     [](const Options& it) { return it.max_output_per_connection == 71'680; }},
    {"max-buffered", "70K", [](const Options& it) { return it.max_buffered == 71'680; }},
};

/// `latchkey serve` up to the point where it would start.
class Serve {
 public:
  Serve() { add_serve_options(app_, asked_); }

  /// What is wrong with the words; empty if nothing is.
  std::string parse(std::vector<std::string> words) {
    std::ranges::reverse(words);  // As CLI11 has it.
    try {
      app_.parse(words);
    } catch (const CLI::Error& error) {
      return error.what();
    }
    return {};
  }
  [[nodiscard]] bool told(const OptionRow& row) const { return row.told(server_options(asked_)); }
  [[nodiscard]] const ServeOptions& asked() const { return asked_; }
  [[nodiscard]] const CLI::App& app() const { return app_; }

 private:
  CLI::App app_;
  ServeOptions asked_;
};

TEST(ServeOptions, EveryOneStandsInTheTableOfThisTest) {
  const Serve serve;
  std::set<std::string> there;
  for (const CLI::Option* option : serve.app().get_options()) {
    for (const std::string& name : option->get_lnames()) there.insert(name);
  }
  // The last one only says that there is to be no folder.
  std::set<std::string> tested = {"help", "config", "memory"};
  for (const OptionRow& row : kRows) tested.insert(row.name);

  EXPECT_EQ(there, tested) << "add a row for each option";
}

TEST(ServeOptions, EveryOneReachesTheServerFromTheCommandLine) {
  for (const OptionRow& row : kRows) {
    Serve serve;
    EXPECT_FALSE(serve.told(row)) << row.name << ": the value is the default";

    std::vector<std::string> words = {"--" + row.name};
    if (!row.value.empty()) words.push_back(row.value);

    EXPECT_EQ(serve.parse(words), "");
    EXPECT_TRUE(serve.told(row)) << row.name;
  }
}

TEST(ServeOptions, EveryOneReachesTheServerFromAConfigurationFile) {
  const storage::TempFolder folder;
  const std::string file = (folder.path() / "serve.conf").string();
  for (const OptionRow& row : kRows) {
    Serve serve;
    std::ofstream(file) << row.name << " = " << (row.value.empty() ? "yes" : row.value) << '\n';

    EXPECT_EQ(serve.parse({"--config", file}), "");
    EXPECT_TRUE(serve.told(row)) << row.name;
  }
}

TEST(ServeOptions, MemoryIsSaidEitherWay) {
  const storage::TempFolder folder;
  const std::string file = (folder.path() / "serve.conf").string();
  std::ofstream(file) << "memory = yes\n";
  Serve typed;
  Serve written;

  EXPECT_EQ(typed.parse({"--memory"}), "");
  EXPECT_EQ(written.parse({"--config", file}), "");

  EXPECT_TRUE(typed.asked().memory);
  EXPECT_TRUE(written.asked().memory);
  EXPECT_FALSE(Serve().asked().memory);
}

TEST(ServeOptions, ANumberThatMakesNoSenseIsRefusedWithTheOptionTheValueAndWhatWouldDo) {
  for (const server::CountLimit& limit : server::kCountLimits) {
    std::string flag = "--" + std::string(limit.name);
    std::ranges::replace(flag, '_', '-');
    for (const std::string value : {"0", "-5"}) {
      EXPECT_THAT(Serve().parse({flag, value}),
                  AllOf(HasSubstr(flag + ": \"" + value + "\" is too small"),
                        HasSubstr("at least " + std::to_string(limit.least))));
    }
    EXPECT_THAT(Serve().parse({flag, "1e18"}),
                AllOf(HasSubstr(flag + ": \"1e18\" is too large"),
                      HasSubstr("at most " + std::to_string(limit.most))));
  }
  for (const server::TimeLimit& limit : server::kTimeLimits) {
    std::string flag = "--" + std::string(limit.name);
    std::ranges::replace(flag, '_', '-');
    const bool may_be_none = limit.least.count() == 0;
    EXPECT_THAT(Serve().parse({flag, "-5s"}),
                AllOf(HasSubstr(flag + ": \"-5s\""),
                      HasSubstr(may_be_none ? "write 0 or more" : "between 1ms and 24d")));
    EXPECT_THAT(Serve().parse({flag, "100d"}),
                AllOf(HasSubstr(flag + ": \"100d\""), HasSubstr("between 1ms and 24d")));
    EXPECT_EQ(Serve().parse({flag, "0"}).empty(), may_be_none) << flag;
  }
}

TEST(ServeOptions, WhatTheServerSaysOfThemIsSaidAsTheyAreTyped) {
  EXPECT_EQ(as_typed("max_buffered (1) is less than max_frame (2): raise the first"),
            "--max-buffered (1) is less than --max-frame (2): raise the first");
  EXPECT_EQ(as_typed("max_sessions_per_address and max_sessions"),
            "--max-sessions-per-address and --max-sessions");
  EXPECT_EQ(as_typed("cannot open /data/my_max_frame or max_frames"),
            "cannot open /data/my_max_frame or max_frames");
  EXPECT_EQ(as_typed("the tick of a clock"), "the tick of a clock");
}

TEST(ServeOptions, HalfOfTlsIsToldInTheWordsOfTheCommandLine) {
  ServeOptions asked;
  EXPECT_EQ(missing_of_tls(server_options(asked)), "");
  asked.require_client_certificate = true;
  EXPECT_THAT(missing_of_tls(server_options(asked)), testing::HasSubstr("--tls-cert FILE"));
  asked.tls.cert_file = "/c";
  EXPECT_THAT(missing_of_tls(server_options(asked)), testing::HasSubstr("--tls-key FILE"));
  asked.tls.key_file = "/k";
  EXPECT_THAT(missing_of_tls(server_options(asked)), testing::HasSubstr("--tls-client-ca FILE"));
  asked.tls.client_ca_file = "/a";
  EXPECT_EQ(missing_of_tls(server_options(asked)), "");
}

}  // namespace
}  // namespace latchkey::app
