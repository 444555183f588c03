#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "integration/session_fixture.hpp"
#include "support/child.hpp"

namespace latchkey::test_support {

/// A process that runs another library's locks and is told by lines what to do with them. It may
/// serve many tests: starting a JVM is slow, and a connection to another server is one line.
///
///     c1 connect HOSTS TIMEOUT_MS     ->  c1 connected
///     c1.a mutex PATH                 ->  c1.a held NODE
///     c1.a unlock                     ->  c1.a released
///     c1 close                        ->  c1 closed
///
/// `c1` is a connection with a session of its own, `c1.a` a thread on it, which carries out one
/// order after the other. Orders to take something are "KIND PATH [NUMBER]...", and "held NODE" is
/// the answer; with "try-" before the kind it may be "busy". Kinds: mutex, read, write and
/// `latch PATH ID`; of Curator also `semaphore PATH MAX COUNT` and `revocable PATH`, which says
/// "revoked" when it is asked to let go; of kazoo also stock-mutex, stock-read, stock-write and
/// `stock-semaphore PATH MAX`. "load FOLDER COUNT KIND PATH ..." takes and releases it COUNT times
/// with the marks of section.hpp, and says "done". Whatever goes wrong is answered by "failed:
/// ...".
///
/// The rest is in the programs: curator_peer/Slot.java and kazoo_peer.py.
///
/// Thread safety: one thread at a time.
class Peer {
 public:
  explicit Peer(const std::vector<std::string>& command);

  void order(const std::string& who, const std::string& what);
  /// The next answer of a connection or thread. Throws std::runtime_error if it is silent.
  [[nodiscard]] std::string answer(const std::string& who, Deadline deadline = deadline_in(60s));
  [[nodiscard]] bool has_answer(const std::string& who);
  [[nodiscard]] Child& process() { return process_; }

 private:
  bool collect(Deadline deadline);

  Child process_;
  std::map<std::string, std::deque<std::string>> answers_;
};

/// The command line of a Java program of ours that uses Curator.
[[nodiscard]] std::vector<std::string> curator_program(const std::string& main_class);

/// The command lines of the two programs.
[[nodiscard]] std::vector<std::string> curator_command();
[[nodiscard]] std::vector<std::string> kazoo_command();

/// The program's one process of each, started at the first call.
[[nodiscard]] Peer& shared_curator();
[[nodiscard]] Peer& shared_kazoo();

/// A client in such a process: one connection, closed when the object goes. Its threads are named;
/// most tests need only one.
///
///     Guest curator(shared_curator(), service().connect_string());
///     curator.order("mutex " + directory);
///     EXPECT_FALSE(curator.has_answer());
///     lease.release();
///     EXPECT_TRUE(curator.holds());
///
/// Thread safety: as Peer's, for all guests of one peer together.
class Guest {
 public:
  Guest(Peer& peer, const std::string& connect, std::chrono::milliseconds timeout = 10s);
  ~Guest();
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  void order(const std::string& what, const std::string& thread = "a");
  [[nodiscard]] std::string answer(const std::string& thread = "a");
  [[nodiscard]] bool has_answer(const std::string& thread = "a");
  /// order(), then answer().
  std::string ask(const std::string& what, const std::string& thread = "a");

  /// Waits for an answer that says "held", and keeps the node's path.
  [[nodiscard]] testing::AssertionResult holds(const std::string& thread = "a");
  /// Of the thread that held last.
  [[nodiscard]] const std::string& node() const { return node_; }
  /// What a thread is called, also in the marks of section.hpp.
  [[nodiscard]] std::string name(const std::string& thread) const { return name_ + "." + thread; }

 private:
  Peer& peer_;
  std::string name_;
  std::string node_;
};

}  // namespace latchkey::test_support
