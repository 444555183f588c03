// The rules of Lookout that look at connections and messages.
#include <algorithm>

#include "sim/lookout.hpp"
#include "tree/answer_read.hpp"
#include "wire/frame.hpp"

namespace latchkey::sim {

using testing::Over;
using testing::Way;
using wire::Err;
using wire::Op;

namespace {

bool is_create(Op op) { return op == Op::kCreate || op == Op::kCreate2; }
bool is_list(Op op) { return op == Op::kGetChildren || op == Op::kGetChildren2; }
bool is_write(Op op) {
  return is_create(op) || op == Op::kDelete || op == Op::kSetData || op == Op::kMulti;
}
bool restores(Op op) { return op == Op::kSetWatches || op == Op::kSetWatches2; }

bool has_create(const std::vector<Op>& parts) { return std::ranges::any_of(parts, is_create); }

/// Was a create refused because its directory is not there?
bool lacks_directory(const testing::Message& answer, const std::vector<Op>& parts) {
  if (!has_create(parts)) return false;
  if (answer.err != Err::kOk) return answer.err == Err::kNoNode;
  if (answer.op != Op::kMulti) return false;
  wire::MultiReply reply;
  wire::Reader reader(answer.body);
  reader(reply);
  for (std::size_t i = 0; i < std::min(parts.size(), reply.results.size()); ++i) {
    const auto* error = std::get_if<wire::ErrorReply>(&reply.results[i].body);
    if (is_create(parts[i]) && error != nullptr && error->err == Err::kNoNode) return true;
  }
  return false;
}

std::vector<std::string> creates_of(const wire::Multi& multi) {
  std::vector<std::string> paths;
  for (const wire::MultiOp& op : multi.ops) {
    if (const auto* create = std::get_if<wire::Create>(&op.body)) paths.push_back(create->path);
  }
  return paths;
}

}  // namespace

void Lookout::on_sent(const testing::Message& message) {
  if (message.way == Way::kRequest) return ask(message);
  const auto line = lines_.find(message.link);
  if (line == lines_.end()) return;
  const bool is_event = message.op == Op::kNotification;
  line->second.to_client.push_back(!is_event);
  if (is_event) return notify(message, line->second);
  answer(message, line->second);
}

void Lookout::on_lost(const testing::Message& message) {
  // Its client takes it for sent. An answer that is lost is one that never arrives.
  if (message.way == Way::kRequest) ask(message);
}

void Lookout::ask(const testing::Message& message) {
  Line& line = lines_[message.link];
  line.server = message.server;
  if (message.host != nullptr) line.process = message.host->process().id();
  Asked asked{
      .op = message.op, .path = {}, .parts = {message.op}, .creates = {}, .at = world_.now()};
  wire::Reader reader(message.body);
  switch (message.op) {
    case Op::kCreate:
    case Op::kCreate2:
      reader(asked.path);
      asked.creates = {asked.path};
      break;
    case Op::kMulti: {
      wire::Multi multi;
      reader(multi);
      asked.parts.clear();
      std::ranges::transform(multi.ops, std::back_inserter(asked.parts), &wire::MultiOp::op);
      asked.creates = creates_of(multi);
      break;
    }
    case Op::kGetData:
    case Op::kExists:
    case Op::kGetChildren:
    case Op::kGetChildren2: reader(asked.path, asked.watches); break;
    case Op::kDelete:
    case Op::kRemoveWatches: reader(asked.path); break;
    case Op::kSetWatches:
    case Op::kSetWatches2:
      if (is_lagging(message.server)) sightings_.saw(32);
      break;
    default: break;
  }
  for (const std::string& path : asked.creates)
    doubts_[path] = {message.link, line.session, {}, false};
  line.asked.push_back(std::move(asked));
}

void Lookout::answer(const testing::Message& message, Line& line) {
  const auto asked = std::ranges::find(line.asked, false, &Asked::is_answered);
  if (asked == line.asked.end()) return;
  asked->is_answered = true;
  if (asked->op == Op::kCreateSession) return greet(message, line);
  const bool is_read = tree::is_read(asked->op);
  const bool leader_is_up = world_.leader().is_up();
  if (is_read && message.server > 0 && leader_is_up &&
      !world_.leader().tree().sessions().contains(line.session)) {
    sightings_.saw(11);
  }
  if (is_read && message.server == 0 && leader_is_up && world_.leader().service().in_flight() > 0) {
    sightings_.saw(78);
  }
  if (asked->watches && message.err == Err::kNoNode && asked->op == Op::kGetData) {
    sightings_.saw(26);
    sightings_.saw(28);
  }
  if (lacks_directory(message, asked->parts)) sightings_.saw(39);
  if (asked->op == Op::kRemoveWatches && message.err == Err::kNoWatcher) sightings_.saw(62);
}

void Lookout::greet(const testing::Message& message, Line& line) {
  const auto greeting = wire::decode_connect_response(message.body);
  if (!greeting) return;
  const std::int64_t id = greeting->message.session_id;
  if (id == 0) return sightings_.saw(66);
  line.session = id;
  const std::int32_t timeout_ms = greeting->message.timeout_ms;
  if (const auto known = sessions_.find(id); known != sessions_.end()) {
    if (known->second.timeout_ms != timeout_ms) sightings_.saw(15);
  }
  bool has_open_requests = false;
  std::erase_if(lines_, [&](const auto& each) {
    const Line& old = each.second;
    if (old.session != id || each.first == message.link) return false;
    has_open_requests |= std::ranges::any_of(old.asked, [](const Asked& asked) {
      return asked.has_arrived && !asked.is_answered && is_write(asked.op);
    });
    return old.is_over;
  });
  if (has_open_requests) sightings_.saw(88);
  // Carried out, and this server does not know.
  for (const auto& [prefix, doubt] : doubts_) {
    if (doubt.session != id || doubt.path.empty() || line.server == 0) continue;
    const tree::Tree& seen = world_.follower(line.server - 1).tree();
    if (seen.nodes().find(doubt.path) == nullptr) sightings_.saw(2);
  }
  sessions_[id] = {line.process, message.link, timeout_ms};
}

void Lookout::notify(const testing::Message& message, const Line& line) {
  wire::WatcherEvent event;
  wire::Reader reader(message.body);
  reader(event);
  bool is_unanswered = true;
  for (const Asked& asked : line.asked) {
    const bool is_about_it = asked.path == event.path;
    if (is_about_it && asked.watches && asked.is_answered) sightings_.saw(31);
    if (is_about_it && asked.op == Op::kRemoveWatches) sightings_.saw(30);
    if (asked.is_answered || !std::exchange(is_unanswered, false)) continue;
    if (restores(asked.op) && asked.has_arrived) sightings_.saw(91);
  }
  if (event.type == wire::EventType::kDataChanged && directory_of(event.path) != nullptr) {
    sightings_.saw(34);
  }
  if (woken_by_ != event.path || woken_at_ != world_.events()) woken_ = 0;
  woken_by_ = event.path;
  woken_at_ = world_.events();
  if (++woken_ == 3) sightings_.saw(33);
}

void Lookout::on_arrived(std::uint64_t link, Way way, std::size_t messages) {
  const auto found = lines_.find(link);
  if (found == lines_.end()) return;
  Line& line = found->second;
  for (; messages > 0; --messages) {
    if (way == Way::kRequest) {
      const auto asked = std::ranges::find(line.asked, false, &Asked::has_arrived);
      if (asked != line.asked.end()) asked->has_arrived = true;
      continue;
    }
    const bool is_answer = line.to_client.front();
    line.to_client.pop_front();
    if (!is_answer || line.asked.empty()) continue;
    const Asked asked = std::move(line.asked.front());
    line.asked.pop_front();
    if (world_.now() - asked.at > plan_.timeout / 4) sightings_.saw(10);
    for (const std::string& path : asked.creates) doubts_.erase(path);
    if (has_create(asked.parts)) line.has_unlisted_create = true;
    if (!is_list(asked.op)) continue;
    line.has_unlisted_create = false;
    const auto directory = directories_.find(asked.path);
    if (directory == directories_.end()) continue;
    for (auto& [zxid, entry] : directory->second.queue) {
      if (entry.owner == line.session) entry.is_listed = true;
    }
  }
}

void Lookout::on_over(std::uint64_t link, Over how) {
  const auto found = lines_.find(link);
  if (found == lines_.end()) return;
  Line& line = found->second;
  line.is_over = true;
  if (how != Over::kAbandoned) {
    bool has_list = false;
    for (const Asked& asked : line.asked) {
      end_of(asked, how);
      has_list |= is_list(asked.op);
    }
    if (has_list && line.has_unlisted_create) sightings_.saw(71);
  }
  if (line.session == 0) lines_.erase(found);
}

void Lookout::end_of(const Asked& asked, Over how) {
  if (asked.deletes()) sightings_.saw(21);
  if (how == Over::kGivenUp && is_write(asked.op)) sightings_.saw(3);
  for (const std::string& path : asked.creates) {
    const auto doubt = doubts_.find(path);
    if (doubt == doubts_.end()) continue;
    doubt->second.is_over = true;
    if (!doubt->second.path.empty()) sightings_.saw(1);
  }
}

bool Lookout::is_lagging(std::size_t server) {
  return server > 0 && world_.follower(server - 1).position() < world_.log().end();
}

}  // namespace latchkey::sim
