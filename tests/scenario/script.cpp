#include "scenario/script.hpp"

#include <algorithm>
#include <sstream>

#include "queue/node_name.hpp"

namespace latchkey::mini {

std::vector<std::string> Script::run(const std::string& command) {
  told_.clear();
  std::istringstream in(command);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  const std::size_t broken_before = world_.violations().size();
  if (!words.empty()) act(words);
  for (std::string& line : world_.take_transcript()) told_.push_back(std::move(line));
  if (words[0] == "show") show();
  world_.check();
  for (std::size_t i = broken_before; i < world_.violations().size(); ++i) {
    told_.push_back("BROKEN: " + world_.violations()[i]);
  }
  for (std::string& line : told_) line = shorten(std::move(line));
  return told_;
}

void Script::act(const Words& words) {
  const std::string& verb = words[0];
  if (verb == "show") return;
  if (verb == "settle") return settle();
  if (verb == "client") {
    const int id = world_.add_client(words.size() > 1 && words[1] == "lagging");
    told_.push_back("client " + std::to_string(id));
    return;
  }
  if (verb == "contender") return add_contender(words);
  if (words.size() > 1) {
    const auto slot = slots_.find(words[1]);
    if (slot != slots_.end() && act_on_slot(verb, slot->second)) return;
    if (act_as_others(words)) return;
    const auto id = static_cast<std::size_t>(words[1][0] - '0');
    if (id < world_.clients().size() && act_on_client(verb, static_cast<int>(id), words)) return;
  }
  told_.push_back("what is \"" + verb + "\"?");
}

void Script::add_contender(const Words& words) {
  queue::Contender::Options options;
  for (const std::string& word : words) {
    if (word == "try") options.wait = queue::Wait::kNo;
    if (word == "read") options.tag = queue::Tag::kRead;
    if (word == "write") options.tag = queue::Tag::kWrite;
  }
  slots_[words.at(1)] = world_.add_slot(words[1], words.at(2)[0] - '0', options);
}

bool Script::act_on_slot(const std::string& verb, int slot) {
  if (verb == "start") return world_.start(slot), true;
  if (verb == "cancel") return world_.cancel(slot, Code::kTimedOut), true;
  if (verb == "release") return world_.release(slot), true;
  return false;
}

bool Script::act_on_client(const std::string& verb, int client, const Words& words) {
  const Client& self = world_.clients()[static_cast<std::size_t>(client)];
  const bool behind = words.size() > 2 && words[2] == "behind";
  const auto possible = [this](bool it_is) {
    if (!it_is) told_.push_back("nothing to do");
    return it_is;
  };
  if (verb == "serve") {
    if (possible(!self.sent.empty())) world_.serve(client);
  } else if (verb == "receive") {
    if (possible(!self.inbox.empty())) world_.receive(client);
  } else if (verb == "land") {
    if (possible(!self.ghosts.empty())) world_.land(client);
  } else if (verb == "resume") {
    if (possible(!self.timers.empty())) world_.resume(client);
  } else if (verb == "catch-up") {
    if (possible(self.position < world_.log_size())) world_.catch_up(client);
  } else if (verb == "cut") {
    world_.cut(client);
  } else if (verb == "attach") {
    world_.attach(client, behind ? World::Attach::kOldestAllowed : World::Attach::kNewest);
  } else if (verb == "heartbeat") {
    world_.heartbeat(client);
  } else if (verb == "lease-over") {
    world_.lease_over(client);
  } else if (verb == "expire") {
    world_.expire(client);
  } else if (verb == "crash") {
    world_.crash(client);
  } else {
    return false;
  }
  return true;
}

bool Script::act_as_others(const Words& words) {
  const std::string& verb = words[0];
  if (verb == "foreign") return world_.add_entry(words[1]), true;
  if (verb == "note") return world_.add_entry(words[1] + "!"), true;
  if (verb == "delete") return world_.delete_entry(entry_of(words[1])), true;
  if (verb == "touch") return world_.touch_entry(entry_of(words[1])), true;
  if (verb == "remove") return world_.remove_level(words[1]), true;
  if (verb == "counter") return world_.set_counter(std::stoi(words[1])), true;
  return false;
}

void Script::settle() {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < world_.clients().size(); ++i) {
      const Client& client = world_.clients()[i];
      if (client.connected && !client.sent.empty()) {
        world_.serve(static_cast<int>(i));
        moved = true;
      }
      if (client.connected && !client.inbox.empty()) {
        world_.receive(static_cast<int>(i));
        moved = true;
      }
    }
  }
}

void Script::show() {
  const Tree& tree = world_.leader();
  if (!tree.has_directory()) told_.push_back(kDirectory + " does not exist");
  if (tree.has_directory() && tree.entries.empty()) told_.push_back(kDirectory + " is empty");
  for (const auto& [name, entry] : tree.entries) told_.push_back("| " + name);
  for (const Slot& slot : world_.slots()) {
    const Client& client = world_.clients()[static_cast<std::size_t>(slot.client)];
    told_.push_back(slot.name + ": " + (client.crashed ? "crashed" : slot.machine.describe()));
  }
}

std::string Script::entry_of(const std::string& name) const {
  const auto slot = slots_.find(name);
  if (slot == slots_.end()) return name;
  for (const auto& [entry, info] : world_.leader().entries) {
    if (info.slot == slot->second) return entry;
  }
  return name;
}

std::string Script::shorten(std::string line) const {
  for (const auto& [name, slot] : slots_) {
    for (std::uint64_t draw = 0; draw < 4; ++draw) {
      const std::string guid = queue::format_guid(static_cast<std::uint64_t>(slot) + 1, draw);
      const std::string label = draw == 0 ? name : name + "." + std::to_string(draw);
      for (std::size_t at = 0; (at = line.find(guid, at)) != std::string::npos;) {
        line.replace(at, guid.size(), "<" + label + ">");
      }
    }
  }
  return line;
}

std::vector<Block> parse_blocks(std::string_view text) {
  std::vector<Block> blocks(1);
  bool expecting = false;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    Block& block = blocks.back();
    if (line.empty()) {
      if (!block.commands.empty() || !block.comments.empty()) blocks.emplace_back();
      expecting = false;
    } else if (line == "----") {
      expecting = true;
    } else if (expecting) {
      block.expected.push_back(line);
    } else {
      (line[0] == '#' ? block.comments : block.commands).push_back(line);
    }
  }
  if (blocks.back().commands.empty() && blocks.back().comments.empty()) blocks.pop_back();
  return blocks;
}

std::string format_blocks(const std::vector<Block>& blocks) {
  std::string text;
  for (const Block& block : blocks) {
    if (!text.empty()) text += '\n';
    for (const std::string& line : block.comments) text += line + '\n';
    for (const std::string& line : block.commands) text += line + '\n';
    if (block.commands.empty()) continue;
    text += "----\n";
    for (const std::string& line : block.expected) text += line + '\n';
  }
  return text;
}

}  // namespace latchkey::mini
