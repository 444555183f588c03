#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "command/run_fixture.hpp"

/// Every exit code that is documented, had from a real run: scripts rely on them.
namespace latchkey::test_support {

class ExitCodes : public RunCommand {
 protected:
  using Codes = std::set<std::string>;

  /// The numbers in a text, and "128+n".
  static Codes codes_in(const std::string& text) {
    static const std::regex kCode(R"(\b(128\+n|[0-9]+)\b)");
    Codes codes;
    for (std::sregex_iterator one(text.begin(), text.end(), kCode), end; one != end; ++one) {
      codes.insert(one->str());
    }
    return codes;
  }
  /// From the table in docs/command-line.md: what stands in the first column.
  static Codes documented() {
    std::istringstream guide(contents(LATCHKEY_COMMAND_GUIDE));
    std::string column;
    bool inside = false;
    for (std::string line; std::getline(guide, line);) {
      if (line == "| exit code | |") inside = true;
      if (inside && line.empty()) break;
      if (inside) column += line.substr(2, line.find('|', 2) - 2) + "\n";
    }
    return codes_in(column);
  }

  /// A process that the system denies what it needs: files to open, or, as a sanitizer needs some
  /// for its own checks, room for what it prints.
  ExitStatus denied() const {
#if defined(__SANITIZE_ADDRESS__)
    std::vector<std::string> words = {"sh", "-c", "exec \"$@\" >/dev/full", "sh"};
    const std::vector<std::string> ours = {"ls", "--json", "/"};
#else
    std::vector<std::string> words = {"sh", "-c", "ulimit -n 4; exec \"$@\"", "sh"};
    const std::vector<std::string> ours = {"run", name_, "true"};
#endif
    for (const std::string& word : user_.command(ours)) words.push_back(word);
    ChildOptions options;
    options.environment = user_.environment();
    Child child(words, options);
    return child.wait(soon()).value_or(ExitStatus{});
  }
  /// A command whose entry somebody removes.
  ExitStatus loses_its_lock() const {
    const auto child = start({"run", name_, "--", "sh", "-c", "echo $LATCHKEY_NODE; read x"});
    const auto node = child->next_line(soon());
    Session session = open();
    if (!node || !session.remove(*node, soon())) return {};
    return child->wait(soon()).value_or(ExitStatus{});
  }
  /// Whoever comes with `ours` while somebody holds a new lock with `theirs`.
  ExitStatus beside(std::vector<std::string> theirs, std::vector<std::string> ours) const {
    const std::string path = fresh_path();
    theirs.insert(theirs.begin(), "run");
    theirs.insert(theirs.end(), {path, "--", "sh", "-c", "echo on; read x"});
    ours.insert(ours.begin(), "run");
    ours.insert(ours.end(), {path, "true"});
    const auto holder = start(theirs);
    if (!holder->wait_for_line("on", soon())) return {};
    const ExitStatus status = run(ours).status;
    holder->close_stdin();
    EXPECT_TRUE(holder->wait(soon()));
    return status;
  }
  /// A lock below what only ann may touch.
  ExitStatus not_allowed() const {
    SessionOptions options;
    options.credentials = {{"digest", "ann:secret"}};
    Session ann = open(options);
    const std::string path = fresh_path();
    if (!ann.create(path, "", {.acl = creator_acl()}, soon())) return {};
    return run({"run", path, "true"}).status;
  }
  ExitStatus not_executable() const {
    std::ofstream(file("text")) << "no program";
    return run({"run", name_, file("text")}).status;
  }
};

namespace {

INSTANTIATE_TEST_SUITE_P(Apache, ExitCodes, testing::Values(RunService::kApache));
INSTANTIATE_TEST_SUITE_P(Embedded, ExitCodes, testing::Values(RunService::kEmbedded));

TEST_P(ExitCodes, H100_EveryDocumentedOneIsHadAndNoOther) {
  const std::map<std::string, std::function<ExitStatus()>> ways = {
      {"1", [&] { return beside({}, {"-n"}); }},
      {"64",
       [&] {
         return run({"run", name_}).status;
       }},
      {"69",
       [&] {
         return run({"run", "-n", "-z", "127.0.0.1:1", name_, "true"}).status;
       }},
      {"71", [&] { return denied(); }},
      {"75", [&] { return loses_its_lock(); }},
      {"76",
       [&] {
         return beside({"-N", "2"}, {"-N", "3"});
       }},
      {"77", [&] { return not_allowed(); }},
      {"78",
       [&] {
         return run({"run", "--config", file("none"), name_, "true"}).status;
       }},
      {"126", [&] { return not_executable(); }},
      {"127",
       [&] {
         return run({"run", name_, "/nowhere/x"}).status;
       }},
      {"128+n",
       [&] {
         return run({"run", name_, "sh", "-c", "kill -KILL $$"}).status;
       }},
  };

  Codes had;
  for (const auto& [name, way] : ways) {
    const ExitStatus status = way();
    EXPECT_EQ(status, code(name == "128+n" ? 128 + SIGKILL : std::stoi(name))) << name;
    had.insert(name);
  }

  EXPECT_EQ(documented(), had);
  const std::string help = run({"run", "--help"}).out;
  EXPECT_EQ(codes_in(help.substr(help.find("Exit codes:"))), had);
  ASSERT_EQ(run({"generate", file("generated")}).status, code(0));
  const std::string page = contents(file("generated") + "/man1/latchkey.1");
  const std::size_t from = page.find(".SH EXIT STATUS");
  EXPECT_EQ(codes_in(page.substr(from, page.find(".SH SEE ALSO") - from)), had);
}

}  // namespace
}  // namespace latchkey::test_support
