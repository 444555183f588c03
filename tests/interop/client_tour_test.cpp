// Tours through everything that other clients offer, the same against Apache ZooKeeper and against
// the embedded server at the same time: the transcripts must be equal. The tours themselves are
// scripts and programs beside this file; ids and times are not in what they print.
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "interop/peer.hpp"
#include "support/child.hpp"
#include "support/shared_servers.hpp"

namespace latchkey::test_support {
namespace {

struct Transcripts {
  std::string apache;
  std::string ours;
};

/// All that it prints, to a good end.
std::string transcript(Child& tour) {
  const Deadline deadline = deadline_in(300s);
  std::string text;
  while (const std::optional<std::string> line = tour.next_line(deadline)) text += *line + '\n';
  const std::optional<ExitStatus> status = tour.wait(deadline);
  if (status != ExitStatus{.code = 0}) throw std::runtime_error("the tour breaks off:\n" + text);
  return text;
}

/// Takes the tour through both servers. `host_at` is where in the command the server belongs.
Transcripts run_tour(const std::vector<std::string>& command, std::size_t host_at) {
  const auto with_host = [&](const std::string& host) {
    std::vector<std::string> words = command;
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(host_at), host);
    return words;
  };
  Child apache(with_host(shared_server().connect_string()));
  Child ours(with_host(shared_embedded().connect_string()));
  return {transcript(apache), transcript(ours)};
}

std::string file(const std::string& name) { return std::string(LATCHKEY_TOURS) + "/" + name; }

/// Debian's own interpreter, which finds Debian's kazoo. -B: no compiled files in the tree.
std::vector<std::string> python(const std::string& script) {
  return {"/usr/bin/python3", "-B", file(script)};
}

std::string read(const std::string& name) {
  std::ifstream stream(file(name));
  if (!stream) throw std::runtime_error("cannot read " + file(name));
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A command line client, with the tour of what it is told and what it should say.
void type(const std::string& client, const std::string& tour) {
  std::vector<std::string> command = python("shell_tour.py");
  command.insert(command.end(), {client, file(tour)});

  const Transcripts said = run_tour(command, command.size() - 1);

  EXPECT_EQ(said.apache, read(tour));
  EXPECT_EQ(said.ours, read(tour));
}

/// A program that checks what it is told itself.
void run(const std::vector<std::string>& command) {
  const Transcripts said = run_tour(command, command.size());

  EXPECT_EQ(said.ours, said.apache);
}

TEST(ClientTourTest, KazoosCallsAndRecipesDoTheSame) { run(python("kazoo_tour.py")); }

TEST(ClientTourTest, CuratorsCallsAndRecipesDoTheSame) {
  run(curator_program("latchkey.tour.Tour"));
}

TEST(ClientTourTest, TheCLibraryDoesTheSame) { run(python("c_library_tour.py")); }

TEST(ClientTourTest, ZkCliSaysTheSame) { type("zkcli", "zkcli_tour.txt"); }

TEST(ClientTourTest, TheCommandLineClientOfTheCLibrarySaysTheSame) {
  type("cli_mt", "cli_mt_tour.txt");
}

}  // namespace
}  // namespace latchkey::test_support
