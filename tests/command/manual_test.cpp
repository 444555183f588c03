#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command/invocation.hpp"
#include "command/terminal_child.hpp"

/// Manual pages and completions, as man and the shells see them.
namespace latchkey::test_support {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class GeneratedManual : public testing::Test {
 protected:
  GeneratedManual() {
    generated_ = user_.run({"generate", folder().string()});
    user_.set("LATCHKEY_COMPLETION_WAIT", "60");  // However slow this machine is.
  }

  [[nodiscard]] std::filesystem::path folder() const { return user_.home() / "generated"; }
  /// What another program says to a script, on both streams.
  Ran shell(const std::string& script) {
    const auto file = user_.home() / "script";
    const auto out = user_.home() / "script.out";
    std::ofstream(file) << script;
    std::filesystem::remove(out);
    ChildOptions options;
    options.environment = user_.environment();
    options.output_file = out;
    Child child({"bash", file.string()}, options);
    Ran ran;
    ran.status = child.wait(deadline_in(std::chrono::seconds(60))).value_or(ExitStatus{});
    ran.out = contents(out);
    return ran;
  }
  /// What bash offers behind these words.
  std::string offered(const std::string& words) {
    const std::string here = std::filesystem::path(LATCHKEY_COMMAND).parent_path().string();
    return shell("PATH=" + here + ":$PATH; source " + (folder() / "bash/latchkey").string() +
                 "; COMP_WORDS=(" + words +
                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _latchkey; echo \" ${COMPREPLY[*]} \"")
        .out;
  }

  NewUser user_;
  Ran generated_;
};

TEST_F(GeneratedManual, EveryPageIsRenderedWithoutAWarning) {
  ASSERT_EQ(generated_.status, kFine) << generated_.err;
  int pages = 0;
  for (const auto& page : std::filesystem::directory_iterator(folder() / "man1")) {
    const std::string name = page.path().string();
    const Ran ran = shell("man --warnings=w -E UTF-8 -l " + name + " 2>&1 >/dev/null");
    EXPECT_EQ(ran.status, kFine) << name;
    EXPECT_EQ(ran.out, "") << name;
    ++pages;
  }
  EXPECT_GT(pages, 10);
}

TEST_F(GeneratedManual, APageSaysWhatTheHelpSays) {
  const Ran page =
      shell("MANWIDTH=200 man -E UTF-8 -l " + (folder() / "man1/latchkey-hold.1").string());

  EXPECT_THAT(page.out, AllOf(HasSubstr("latchkey-hold - Hold a lock by hand"),
                              HasSubstr("--reason TEXT"), HasSubstr("EXAMPLES"),
                              HasSubstr("latchkey hold deploy --for 2h --reason \"moving")));
  const std::string root = contents(folder() / "man1/latchkey.1");
  EXPECT_THAT(root, AllOf(HasSubstr("EXIT STATUS"), HasSubstr("LATCHKEY_CONNECT")));
  EXPECT_THAT(root, Not(HasSubstr("hold-keeper"))) << "that is not for people";
}

TEST_F(GeneratedManual, BashCompletesSubcommandsOptionsAndLocks) {
  EXPECT_THAT(offered("latchkey re"), AllOf(HasSubstr(" release "), HasSubstr(" revoke ")));
  EXPECT_THAT(offered("latchkey ho"), Not(HasSubstr("hold-keeper")));
  EXPECT_THAT(offered("latchkey hold --r"), HasSubstr(" --reason "));
  EXPECT_THAT(offered("latchkey hold --reason x"), Not(HasSubstr("--")));

  ASSERT_EQ(user_.run({"hold", "deploy", "--for", "1h"}).status, kFine);
  EXPECT_THAT(offered("latchkey who d"), HasSubstr(" deploy "));
}

TEST_F(GeneratedManual, FishCompletesSubcommandsOptionsAndLocks) {
  ASSERT_EQ(user_.run({"hold", "deploy", "--for", "1h"}).status, kFine);
  const std::string here = std::filesystem::path(LATCHKEY_COMMAND).parent_path().string();
  const auto offers = [&](const std::string& words) {
    return shell("PATH=" + here + ":$PATH fish -c \"source " +
                 (folder() / "fish/latchkey.fish").string() + "; complete -C '" + words + "'\"")
        .out;
  };

  EXPECT_THAT(offers("latchkey re"), AllOf(HasSubstr("release\t"), HasSubstr("revoke\t")));
  EXPECT_THAT(offers("latchkey hold --r"), HasSubstr("--reason\t"));
  EXPECT_THAT(offers("latchkey who d"), HasSubstr("deploy"));
}

TEST_F(GeneratedManual, ZshCompletesSubcommandsOptionsAndLocks) {
  const auto soon = [] { return deadline_in(std::chrono::seconds(60)); };
  ASSERT_EQ(user_.run({"hold", "deploy", "--for", "1h"}).status, kFine);
  const std::string here = std::filesystem::path(LATCHKEY_COMMAND).parent_path().string();
  TerminalChild zsh({"zsh", "-f", "-i"}, user_.environment());
  zsh.type("PS1=; PATH=" + here + ":$PATH; fpath=(" + (folder() / "zsh").string() +
           " $fpath); autoload -U compinit; compinit -u -D; echo rea''dy\n");
  ASSERT_TRUE(zsh.shows("ready", soon())) << zsh.output();

  zsh.type("latchkey rel\t");
  EXPECT_TRUE(zsh.shows("latchkey release", soon())) << zsh.output();
  zsh.type("\x15latchkey hold --rea\t");
  EXPECT_TRUE(zsh.shows("--reason", soon())) << zsh.output();
  zsh.type("\x15latchkey who dep\t");
  EXPECT_TRUE(zsh.shows("deploy", soon())) << zsh.output();
}

TEST_F(GeneratedManual, NoShellWaitsLongForAServerThatDoesNotAnswer) {
  user_.set("LATCHKEY_COMPLETION_WAIT", "0.01");
  user_.set("LATCHKEY_CONNECT", "127.0.0.1:1");
  EXPECT_EQ(offered("latchkey who d"), "  \n");
  for (const char* file : {"bash/latchkey", "zsh/_latchkey", "fish/latchkey.fish"}) {
    const std::string text = contents(folder() / file);
    const std::size_t at = text.find("latchkey ls --names");
    ASSERT_NE(at, std::string::npos) << file;
    EXPECT_THAT(text.substr(text.rfind('\n', at), at), HasSubstr("timeout ")) << file;
  }
}

TEST_F(GeneratedManual, TheOtherShellsKnowEverySubcommandToo) {
  const std::string zsh = contents(folder() / "zsh/_latchkey");
  const std::string fish = contents(folder() / "fish/latchkey.fish");
  EXPECT_THAT(zsh, testing::StartsWith("#compdef latchkey\n"));
  for (const char* name : {"run", "hold", "release", "ls", "watch", "doctor", "gc", "serve"}) {
    EXPECT_THAT(zsh, HasSubstr("    " + std::string(name) + ")\n"));
    EXPECT_THAT(fish, HasSubstr("-a " + std::string(name) + " -d"));
  }
}

}  // namespace
}  // namespace latchkey::test_support
