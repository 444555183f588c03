#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/mini_world.hpp"

namespace latchkey::mini {

/// Runs the commands of a scenario in a little world and tells what happened.
///
///     client                       a client process with its session: "client 0", "client 1", ...
///     client lagging               its server may be behind the leader
///     contender a 0 [try] [read|write]
///     start a | cancel a | release a
///     serve 0 | receive 0          one request reaches the server, one message the client
///     cut 0 | land 0 | attach 0 [behind] | catch-up 0
///     settle                       serves and receives until nothing is on the wire
///     resume 0 | heartbeat 0 | lease-over 0 | expire 0 | crash 0
///     foreign <prefix> | note <name>    other hands create: a sequential entry, a plain child
///     delete <entry> | touch <entry>
///     remove <path>                other hands remove a directory level
///     counter <number>             the number the next entry gets
///     show                         the directory and the contenders
///
/// An entry is given by its contender's name or by its own. In what is told, `<a>` stands for the
/// guid of contender a, `<a.1>` for the second one it drew.
class Script {
 public:
  Script() { world_.keep_transcript(); }

  /// What one command led to, broken promises included, one line each.
  [[nodiscard]] std::vector<std::string> run(const std::string& command);

 private:
  using Words = std::vector<std::string>;

  void act(const Words& words);
  bool act_on_slot(const std::string& verb, int slot);
  bool act_on_client(const std::string& verb, int client, const Words& words);
  bool act_as_others(const Words& words);
  void add_contender(const Words& words);
  void settle();
  void show();
  [[nodiscard]] std::string entry_of(const std::string& name) const;
  [[nodiscard]] std::string shorten(std::string line) const;

  World world_;
  std::map<std::string, int> slots_;
  std::vector<std::string> told_;
};

/// A scenario file: blocks of commands, a line "----", and what they are expected to tell; blank
/// lines between blocks. Lines before the first command that start with `#` are its story.
struct Block {
  std::vector<std::string> comments;
  std::vector<std::string> commands;
  std::vector<std::string> expected;
};

[[nodiscard]] std::vector<Block> parse_blocks(std::string_view text);
[[nodiscard]] std::string format_blocks(const std::vector<Block>& blocks);

}  // namespace latchkey::mini
