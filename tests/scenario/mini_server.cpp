// The servers' half of the little world.
#include <algorithm>

#include "scenario/mini_world.hpp"

namespace latchkey::mini {
namespace {

using queue::Answer;

Answer no(Code code) { return {Answer::Kind::kNo, code}; }

}  // namespace

void World::commit(Change change) {
  if (change.kind == Change::Kind::kCreate || change.kind == Change::Kind::kExchange) {
    change.entry.czxid = static_cast<std::int64_t>(log_.size()) + 1;
  }
  log_.push_back(change);
  leader_.apply(change);
  for (Client& client : clients_) {
    if (client.connected && !client.lags) catch_up_fully(client);
  }
}

void World::apply_next(Client& client) {
  const Effects effects = client.view.apply(log_[client.position]);
  ++client.position;
  fire(client, effects);
}

void World::catch_up_fully(Client& client) {
  while (client.position < log_.size()) apply_next(client);
}

void World::fire(Client& client, const Effects& effects) {
  if (!client.connected) return;
  const auto send_event = [&](Message::Kind kind, const std::string& name) {
    if (client.server_watches.erase(name) == 0) return;
    Message message;
    message.kind = kind;
    message.name = name;
    client.inbox.push_back(std::move(message));
  };
  for (const std::string& name : effects.deleted) send_event(Message::Kind::kGone, name);
  for (const std::string& name : effects.touched) send_event(Message::Kind::kTouched, name);
  if (effects.directory_changed) send_event(Message::Kind::kDirectoryChanged, "");
}

Answer World::delete_at_leader(int client, const Request& request) {
  if (!leader_.entries.contains(request.name)) return no(Code::kNoNode);
  if (request.farewell && request.farewell->version != leader_.data.version) {
    return no(Code::kBadVersion);
  }
  if (leader_.entries.at(request.name).session != client) {
    violate("client " + std::to_string(client) + " deletes a stranger's " + request.name);
  }
  Change change{Change::Kind::kDelete, request.name, {}};
  if (request.farewell) {
    if (!queue::makes_room(leader_.data.text)) violate("what a user wrote is written over");
    change.word = request.farewell->data;
  }
  commit(std::move(change));
  return {};
}

Message World::carry_out_at_leader(int client, const Request& request) {
  Message reply;
  reply.request = request;
  switch (request.kind) {
    case Request::Kind::kCreate: {
      if (!leader_.has_directory()) {
        reply.answer = no(request.to.empty() ? Code::kNoNode : Code::kRolledBack);
        break;
      }
      if (!request.to.empty() && !leader_.entries.contains(request.to)) {
        reply.answer = no(Code::kRolledBack);
        break;
      }
      const std::int32_t number = leader_.counter;
      reply.name = sequential_name(request.name, number);
      if (leader_.entries.contains(reply.name)) {
        reply.answer = no(Code::kNodeExists);
        break;
      }
      commit({Change::Kind::kCreate, reply.name, {client, request.slot, 0, number}, request.to});
      reply.czxid = static_cast<std::int64_t>(log_.size());
      slot_at(request.slot).robbed = false;
      slot_at(request.slot).saw_own_missing = false;
      break;
    }
    case Request::Kind::kDelete: reply.answer = delete_at_leader(client, request); break;
    case Request::Kind::kExchange:
      if (leader_.entries.contains(request.to)) {
        reply.answer = no(Code::kNodeExists);
      } else if (!leader_.entries.contains(request.name)) {
        reply.answer = no(Code::kNoNode);
      } else {
        const std::int32_t number = leader_.entries.at(request.name).number;
        commit(
            {Change::Kind::kExchange, request.to, {client, request.slot, 0, number}, request.name});
        reply.czxid = static_cast<std::int64_t>(log_.size());
      }
      break;
    case Request::Kind::kMake:
      if (leader_.levels.contains(request.name)) {
        reply.answer = no(Code::kNodeExists);
      } else if (!leader_.has_parent_of(request.name)) {
        reply.answer = no(Code::kNoNode);
      } else {
        commit({Change::Kind::kMake, request.name, {}});
      }
      break;
    case Request::Kind::kRemove:
      if (!leader_.has_directory()) {
        reply.answer = no(Code::kNoNode);
      } else if (!leader_.entries.empty()) {
        reply.answer = no(Code::kNotEmpty);
      } else {
        commit({Change::Kind::kRemove, kDirectory, {}});
      }
      break;
    default: break;  // sync and proof: to have been there is all.
  }
  return reply;
}

Message World::read_at(Client& client, int session, const Request& request) {
  Message reply;
  reply.request = request;
  if (request.kind == Request::Kind::kList || request.kind == Request::Kind::kListAndWatch) {
    if (!client.view.has_directory()) {
      reply.answer = no(Code::kNoNode);
      return reply;
    }
    reply.children = client.view.children();
    if (request.kind == Request::Kind::kListAndWatch) client.server_watches.insert("");
    return reply;
  }
  if (request.kind == Request::Kind::kRead) {
    if (!client.view.has_directory()) reply.answer = no(Code::kNoNode);
    reply.data = client.view.data;
    return reply;
  }
  const auto entry = client.view.entries.find(request.name);
  if (entry == client.view.entries.end()) {
    reply.answer = no(Code::kNoNode);
    return reply;
  }
  reply.owned = entry->second.session == session;
  reply.czxid = entry->second.czxid;
  if (request.kind == Request::Kind::kWatch) client.server_watches.insert(request.name);
  return reply;
}

void World::serve(int client) {
  Client& self = at(client);
  const Request request = self.sent.front();
  self.sent.pop_front();
  const bool reads = request.kind == Request::Kind::kList ||
                     request.kind == Request::Kind::kListAndWatch ||
                     request.kind == Request::Kind::kLook ||
                     request.kind == Request::Kind::kWatch || request.kind == Request::Kind::kRead;
  Message reply;
  if (reads) {
    reply = read_at(self, client, request);
  } else {
    reply = carry_out_at_leader(client, request);
    // A server answers a write, and a sync, when it has applied everything up to it (G2).
    catch_up_fully(self);
  }
  reply.position = self.position;
  self.inbox.push_back(std::move(reply));
}

void World::catch_up(int client) { apply_next(at(client)); }

void World::land(int client) {
  Client& self = at(client);
  const Request request = self.ghosts.front();
  self.ghosts.pop_front();
  if (self.session_open) carry_out_at_leader(client, request);
}

void World::expire(int client) {
  Client& self = at(client);
  say("session of client " + std::to_string(client) + " expires");
  self.session_open = false;
  if (self.connected) cut(client);
  self.ghosts.clear();
  commit({Change::Kind::kClose, "", {client, -1, 0, 0}});
}

bool World::can_expire(int client) const {
  const Client& self = clients_[static_cast<std::size_t>(client)];
  if (!self.session_open) return false;
  if (self.crashed) return true;
  if (self.lease_fresh) return false;
  // A proof that the leader has given counts from before it was given (P5): until the client has
  // it, or has lost it, the leader keeps the session.
  return std::none_of(self.inbox.begin(), self.inbox.end(), [](const Message& message) {
    return message.kind == Message::Kind::kReply && message.request.kind == Request::Kind::kProve;
  });
}

void World::delete_entry(const std::string& name) {
  const Entry entry = leader_.entries.at(name);
  if (entry.slot >= 0) slot_at(entry.slot).robbed = true;
  commit({Change::Kind::kDelete, name, {}});
}

void World::touch_entry(const std::string& name) { commit({Change::Kind::kTouch, name, {}}); }

void World::add_entry(const std::string& prefix) {
  const std::int32_t number = leader_.counter;
  const std::string name =
      prefix.ends_with('!') ? prefix.substr(0, prefix.size() - 1) : sequential_name(prefix, number);
  commit({Change::Kind::kCreate, name, {-1, -1, 0, number}});
}

void World::remove_level(const std::string& path) { commit({Change::Kind::kRemove, path, {}}); }

void World::write_data(const std::string& text) {
  Change change{Change::Kind::kSet, kDirectory, {}};
  change.word = text;
  commit(std::move(change));
}

void World::set_counter(std::int32_t counter) {
  leader_.counter = counter;
  for (Client& client : clients_) client.view.counter = counter;
}

}  // namespace latchkey::mini
