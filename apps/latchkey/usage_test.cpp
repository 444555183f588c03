#include "usage.hpp"

#include <memory>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::app {
namespace {

using testing::HasSubstr;
using testing::Not;

class Usage : public testing::Test {
 protected:
  Usage() {
    root_.formatter(std::make_shared<HelpForm>());
    hold_ = root_.add_subcommand("hold", "Hold it");
    hold_->add_option("NAME", text_, "The lock")->required();
    hold_->add_option("--for", text_, "How long")->required()->option_text("TIME [1h]");
    hold_->add_option("-w,--wait", text_, "How patient")->option_text("TIME");
    CLI::Option* now = hold_->add_flag("-n,--now", flag_, "Now");
    hold_->add_flag("--later", flag_, "Later")->excludes(now);
    hold_->add_flag("--much-later", flag_, "Later still")->needs(now);
    run_ = root_.add_subcommand("run", "Run it");
    run_->add_option("-c,--command", text_, "By a shell");
    run_->add_option("NAME", text_, "The lock");
  }

  /// What is said about these words.
  std::string said(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    try {
      root_.parse(words);
    } catch (const CLI::ParseError& error) {
      return explain(*hold_, error);
    }
    return "nothing";
  }

  CLI::App root_;
  CLI::App* hold_ = nullptr;
  CLI::App* run_ = nullptr;
  std::string text_;
  bool flag_ = false;
};

TEST_F(Usage, NamesTheProgramAndWhatItCannotDoWithout) {
  EXPECT_EQ(usage_of(root_), "latchkey SUBCOMMAND [OPTIONS]");
  EXPECT_EQ(usage_of(*hold_), "latchkey hold [OPTIONS] --for TIME NAME");
  EXPECT_EQ(usage_of(*run_), "latchkey run [OPTIONS] [NAME] [--] COMMAND [ARG...]");
}

TEST_F(Usage, TheHelpBeginsWithItAndSaysWhatIsRequired) {
  const std::string help = hold_->help();

  EXPECT_THAT(help, HasSubstr("Usage: latchkey hold [OPTIONS] --for TIME NAME\n"));
  EXPECT_THAT(help, HasSubstr("How long (required)\n"));
  EXPECT_THAT(help, Not(HasSubstr("TEXT")));
  EXPECT_THAT(help, Not(HasSubstr("Excludes")));
}

TEST_F(Usage, ComplaintsAreSentencesForPeople) {
  EXPECT_EQ(said({"hold", "a", "--for", "1h"}), "nothing");
  EXPECT_EQ(said({"hold", "a"}), "--for is required");
  EXPECT_EQ(said({"hold", "a", "b", "--for", "1h"}), "\"b\" is one word too many");
  EXPECT_EQ(said({"hold", "a", "-x", "5", "--for", "1h"}), "there is no option -x");
  EXPECT_EQ(said({"--wait=5", "hold", "a", "--for", "1h"}),
            "options follow the subcommand: latchkey hold --wait");
  EXPECT_EQ(said({"hold", "a", "--wiat=5", "--for", "1h"}),
            "there is no option --wiat; did you mean --wait?");
  EXPECT_EQ(said({"hold", "a", "--for", "1h", "-w"}), "--wait needs a value: --wait TIME");
  EXPECT_EQ(said({"hold", "a", "--for", "1h", "-n", "--later"}),
            "-n and --later exclude each other");
  EXPECT_EQ(said({"hold", "a", "--for", "1h", "--much-later"}), "--much-later needs --now");
}

TEST_F(Usage, KnowsWhatOthersCallAnOption) {
  EXPECT_THAT(said({"hold", "x", "--for", "1", "--timeout", "3"}),
              HasSubstr("did you mean --wait?"));
  EXPECT_THAT(said({"hold", "x", "--for", "1", "--port", "3"}), Not(HasSubstr("did you mean")))
      << "there is no --listen here";
}

}  // namespace
}  // namespace latchkey::app
