#include "scenario/pond.hpp"

#include "scenario/mini_tree.hpp"

namespace latchkey::pond {
namespace {

Answer refusal(Code code) { return {Answer::Kind::kNo, code}; }

bool writes(Request::Kind kind) {
  return kind == Request::Kind::kCreate || kind == Request::Kind::kCreateSequential ||
         kind == Request::Kind::kDelete || kind == Request::Kind::kMake;
}

void fold_pond(const Tree& tree, mini::Fold& fold) {
  fold.texts(tree.directories);
  fold.number(tree.nodes.size());
  for (const auto& [path, node] : tree.nodes) {
    fold.text(path);
    fold.kind(node.actor);
    fold.number(static_cast<std::uint64_t>(node.czxid));
  }
}

}  // namespace

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<std::string> Tree::apply(const Transaction& transaction) {
  std::vector<std::string> deleted;
  for (const Change& change : transaction) {
    switch (change.kind) {
      case Change::Kind::kCreate:
        nodes[change.path] = change.node;
        ++counters[parent_of(change.path)];
        break;
      case Change::Kind::kDelete:
        nodes.erase(change.path);
        deleted.push_back(change.path);
        break;
      case Change::Kind::kMake: directories.insert(change.path); break;
      case Change::Kind::kClose:
        std::erase_if(nodes, [&](const auto& item) {
          if (item.second.session != change.node.session) return false;
          deleted.push_back(item.first);
          return true;
        });
        break;
    }
  }
  return deleted;
}

std::vector<std::string> Tree::children(const std::string& directory) const {
  std::vector<std::string> names;
  for (const auto& [path, node] : nodes) {
    if (parent_of(path) == directory) names.push_back(last_part(path));
  }
  return names;
}

int Pond::add_client(bool lags) {
  Client client;
  client.lags = lags;
  client.view = leader_;
  clients_.push_back(std::move(client));
  return static_cast<int>(clients_.size()) - 1;
}

// ---- Servers ------------------------------------------------------------------------------------

void Pond::commit(Transaction transaction) {
  log_.push_back(transaction);
  leader_.apply(transaction);
  for (Client& client : clients_) {
    while (client.connected && !client.lags && client.position < log_.size()) apply_next(client);
  }
}

void Pond::apply_next(Client& client) {
  for (const std::string& path : client.view.apply(log_[client.position++])) {
    if (!client.connected || client.server_watches.erase(path) == 0) continue;
    Message message;
    message.kind = Message::Kind::kGone;
    message.paths = {path};
    client.inbox.push_back(std::move(message));
  }
}

Message Pond::create_at_leader(int client, const Request& request) {
  Message reply;
  reply.request = request;
  Transaction transaction;
  const auto czxid = static_cast<std::int64_t>(log_.size()) + 1;
  const bool sequential = request.kind == Request::Kind::kCreateSequential;
  for (std::size_t i = 0; i < request.paths.size(); ++i) {
    const std::string directory = parent_of(request.paths[i]);
    const std::int32_t number = leader_.counters[directory];
    const std::string path =
        sequential ? mini::sequential_name(request.paths[i], number) : request.paths[i];
    const bool missing = !leader_.directories.contains(directory);
    if (missing || leader_.nodes.contains(path)) {
      reply.answer = refusal(missing ? Code::kNoNode : Code::kNodeExists);
      reply.culprit = i;
      reply.paths.clear();
      return reply;
    }
    transaction.push_back({Change::Kind::kCreate, path, {client, request.actor, czxid, number}});
    reply.paths.push_back(path);
    reply.node = transaction.back().node;
  }
  commit(std::move(transaction));
  return reply;
}

Message Pond::carry_out_at_leader(int client, const Request& request) {
  Message reply;
  reply.request = request;
  switch (request.kind) {
    case Request::Kind::kCreate:
    case Request::Kind::kCreateSequential: return create_at_leader(client, request);
    case Request::Kind::kDelete: {
      const auto node = leader_.nodes.find(request.paths.front());
      if (node == leader_.nodes.end()) {
        reply.answer = refusal(Code::kNoNode);
        break;
      }
      const bool ours = node->second.session == client &&
                        (request.actor < 0 || node->second.actor == request.actor);
      if (!ours && is_robbed(request.actor)) robbed_.insert(node->second.actor);
      if (!ours && !is_robbed(request.actor)) {
        violate("a stranger's " + request.paths.front() + " is deleted");
      }
      commit({{Change::Kind::kDelete, request.paths.front(), {}}});
      break;
    }
    case Request::Kind::kMake: {
      const std::string& path = request.paths.front();
      if (leader_.directories.contains(path)) {
        reply.answer = refusal(Code::kNodeExists);
      } else {
        commit({{Change::Kind::kMake, path, {}}});
      }
      break;
    }
    default: break;  // sync and proof: to have been there is all.
  }
  return reply;
}

void Pond::serve(int client) {
  Client& self = at(client);
  const Request request = self.sent.front();
  self.sent.pop_front();
  Message reply;
  reply.request = request;
  if (request.kind == Request::Kind::kList) {
    const bool there = self.view.directories.contains(request.paths.front());
    if (!there) reply.answer = refusal(Code::kNoNode);
    if (there) reply.paths = self.view.children(request.paths.front());
  } else if (request.kind == Request::Kind::kRead) {
    const auto node = self.view.nodes.find(request.paths.front());
    if (node == self.view.nodes.end()) {
      reply.answer = refusal(Code::kNoNode);
    } else {
      reply.node = node->second;
      if (request.watch) self.server_watches.insert(node->first);
    }
  } else {
    reply = carry_out_at_leader(client, request);
    // A server answers a write, and a sync, when it has applied everything up to it (G2).
    while (self.position < log_.size()) apply_next(self);
  }
  reply.position = self.position;
  self.inbox.push_back(std::move(reply));
}

void Pond::catch_up(int client) { apply_next(at(client)); }

void Pond::land(int client) {
  Client& self = at(client);
  const Request request = self.ghosts.front();
  self.ghosts.pop_front();
  if (self.session_open) carry_out_at_leader(client, request);
}

void Pond::expire(int client) {
  at(client).session_open = false;
  at(client).ghosts.clear();
  Change close{Change::Kind::kClose, "", {}};
  close.node.session = client;
  commit({close});
}

bool Pond::can_expire(int client) const {
  const Client& self = clients_[static_cast<std::size_t>(client)];
  if (!self.session_open) return false;
  if (self.crashed) return true;
  if (self.lease_fresh) return false;
  // A proof that the leader has given counts from before it was given (P5).
  return std::none_of(self.inbox.begin(), self.inbox.end(), [](const Message& message) {
    return message.request.kind == Request::Kind::kProve;
  });
}

// ---- Clients ------------------------------------------------------------------------------------

void Pond::send(int client, Request request) {
  Client& self = at(client);
  (self.connected ? self.sent : self.unsent).push_back(std::move(request));
}

bool Pond::take_back(int client, int actor, std::size_t member, Ask ask) {
  Client& self = at(client);
  std::erase(self.pauses, std::pair{actor, std::pair{member, ask}});
  return std::erase_if(self.unsent, [&](const Request& one) {
           return one.actor == actor && one.member == member && one.ask == ask;
         }) > 0;
}

void Pond::owe(int client, const std::string& path) {
  at(client).debts.push_back(path);
  Request request;
  request.kind = Request::Kind::kDelete;
  request.paths = {path};
  send(client, std::move(request));
}

bool Pond::is_owed(int client, const std::string& path) {
  const std::vector<std::string>& debts = at(client).debts;
  return std::find(debts.begin(), debts.end(), path) != debts.end();
}

std::vector<Request> Pond::cut_off(int client) {
  Client& self = at(client);
  std::vector<Request> unanswered;
  for (const Message& message : self.inbox) {
    if (message.kind == Message::Kind::kReply) unanswered.push_back(message.request);
  }
  unanswered.insert(unanswered.end(), self.sent.begin(), self.sent.end());
  self.connected = false;
  self.ghosts = std::exchange(self.sent, {});
  // Reads of a connection that is gone bother nobody.
  std::erase_if(self.ghosts, [](const Request& request) { return !writes(request.kind); });
  self.inbox.clear();
  self.server_watches.clear();
  return unanswered;
}

void Pond::restore(Client& self, std::size_t goal) {
  Tree view = leader_;
  view.nodes.clear();
  view.counters.clear();
  for (self.position = 0; self.position < goal; ++self.position) view.apply(log_[self.position]);
  self.view = std::move(view);
  // setWatches: what has gone or changed since is told now, the rest is watched again.
  for (const std::string& path : self.watches) {
    const auto node = self.view.nodes.find(path);
    const bool gone = node == self.view.nodes.end();
    if (!gone && node->second.czxid <= static_cast<std::int64_t>(self.last_seen)) {
      self.server_watches.insert(path);
      continue;
    }
    Message message;
    message.kind = gone ? Message::Kind::kGone : Message::Kind::kTouched;
    message.paths = {path};
    self.inbox.push_back(std::move(message));
  }
  while (!self.unsent.empty()) {
    self.sent.push_back(std::move(self.unsent.front()));
    self.unsent.pop_front();
  }
}

bool Pond::is_idle(int client) const {
  const Client& self = clients_[static_cast<std::size_t>(client)];
  return self.sent.empty() && self.inbox.empty() && self.unsent.empty() && self.pauses.empty();
}

void Pond::check_grant(const Standing& self, int actor, std::int64_t token) {
  for (const std::string& lock : self.locks) {
    std::int64_t& newest = tokens_[lock];
    if (!is_robbed(actor) && token <= newest) violate("the token of " + lock + " does not grow");
    newest = std::max(newest, token);
  }
}

void Pond::fold(mini::Fold& fold) const {
  fold_pond(leader_, fold);
  fold.number(log_.size());
  for (const int actor : robbed_) fold.kind(actor);
  for (const auto& [lock, token] : tokens_) fold.number(static_cast<std::uint64_t>(token));
  for (const auto& [directory, counter] : leader_.counters) {
    fold.number(static_cast<std::uint64_t>(counter));
  }
  for (const Client& client : clients_) {
    fold.flags({client.crashed, client.session_open, client.session_known_over, client.connected,
                client.lease_fresh});
    fold_pond(client.view, fold);
    fold.number(client.position);
    fold.number(client.last_seen);
    fold.texts(client.server_watches);
    fold.texts(client.watches);
    fold.texts(client.debts);
    for (const std::size_t size : {client.unsent.size(), client.sent.size(), client.ghosts.size(),
                                   client.inbox.size(), client.pauses.size()}) {
      fold.number(size);
    }
    for (const Message& message : client.inbox) {
      fold.kind(message.kind);
      fold.kind(message.answer.kind);
      fold.kind(message.answer.code);
      fold.number(message.culprit);
      fold.texts(message.paths);
      fold.number(static_cast<std::uint64_t>(message.node.czxid));
      fold.kind(message.node.actor);
      fold.number(message.position);
    }
  }
}

}  // namespace latchkey::pond
