#include "tree/answer_read.hpp"

#include <utility>

#include "tree/parse.hpp"

namespace latchkey::tree {
namespace {

using wire::Err;
using wire::Op;

/// Decodes the body, lets `answer` make a reply of it, and appends that if there is no error.
template <class Body, NullPath null_path = NullPath::kIsRefused, class Answerer>
Err with(std::string_view body, std::string& reply, Answerer answer) {
  const std::optional<Body> request = parse<Body, null_path>(body);
  if (!request) return Err::kMarshallingError;
  const auto result = answer(*request);
  if (result.err == Err::kOk) wire::Writer{reply}(result.value);
  return result.err;
}

Answer<wire::Empty> bare(Err err) { return {err, {}}; }

/// What people call themselves: for a digest the part before the colon.
wire::WhoAmIReply who(std::span<const Identity> identities) {
  wire::WhoAmIReply reply;
  for (const Identity& identity : identities) {
    const bool digest = identity.scheme == "digest";
    reply.clients.push_back(
        {identity.scheme, digest ? identity.id.substr(0, identity.id.find(':')) : identity.id});
  }
  return reply;
}

/// A reply of many names, written straight from the node and into memory of the right size: the
/// largest answer there is, and one copy of it is enough (H89).
std::string list_reply(const Tree::Listing& listing, Op op) {
  constexpr std::size_t kCountAndStat = 72;
  std::string reply;
  reply.reserve(listing.bytes + kCountAndStat);
  wire::Writer writer(reply);
  writer(static_cast<std::int32_t>(listing.node->children.size()));
  for (const std::string_view name : listing.node->children) {
    writer(static_cast<std::int32_t>(name.size()));
    reply += name;
  }
  if (op == Op::kGetChildren2) writer(listing.node->stat());
  return reply;
}

/// A small request can ask for large nodes many times; beyond `most` bytes it is refused (H89).
Answer<wire::MultiReply> read_all(Tree& tree, const Caller& caller, PeerId peer,
                                  const wire::Multi& multi, std::size_t most) {
  Answer<wire::MultiReply> answer;
  std::size_t bytes = 0;
  const std::uint64_t work_before = tree.work();
  for (const wire::MultiOp& part : multi.ops) {
    const auto* asked = std::get_if<wire::PathWatch>(&part.body);
    if (asked == nullptr) return {Err::kMarshallingError, {}};
    // The parts of a multi-read set no watches, whatever they say.
    const wire::PathWatch request{asked->path, false};
    wire::MultiResult& result = answer.value.results.emplace_back();
    Err err = Err::kOk;
    if (part.op == Op::kGetChildren) {
      const auto [outcome, listing] = tree.list(caller, peer, request, most - bytes);
      err = outcome;
      if (err == Err::kQuotaExceeded) return {err, {}};
      wire::ChildrenReply reply;
      if (err == Err::kOk) {
        reply.children.assign(listing.node->children.begin(), listing.node->children.end());
      }
      bytes += listing.bytes;
      result = {part.op, std::move(reply)};
    } else {
      auto data = tree.get_data(caller, peer, request);
      err = data.err;
      bytes += data.value.data ? data.value.data->size() : 0;
      result = {part.op, std::move(data.value)};
    }
    if (err != Err::kOk) result = {Op::kError, wire::ErrorReply{err}};
    if (bytes > most || tree.work() - work_before > Tree::kMostWorkAtOnce) {
      return {Err::kQuotaExceeded, {}};
    }
  }
  return answer;
}

Err answer_watch(Tree& tree, PeerId peer, Op op, std::string_view body, ReadAnswer& answer) {
  if (op == Op::kSetWatches) {
    return with<wire::SetWatches>(body, answer.body, [&](const wire::SetWatches& r) {
      return bare(tree.set_watches(peer, {r.relative_zxid, r.data, r.exists, r.children, {}, {}},
                                   answer.notices));
    });
  }
  if (op == Op::kSetWatches2) {
    return with<wire::SetWatches2>(body, answer.body, [&](const auto& r) {
      return bare(tree.set_watches(peer, r, answer.notices));
    });
  }
  if (op == Op::kAddWatch) {
    return with<wire::AddWatch>(body, answer.body, [&](const auto& r) {
      return Answer<wire::ErrorReply>{tree.add_watch(peer, r), {}};
    });
  }
  return with<wire::PathWatcherType>(body, answer.body, [&](const auto& r) {
    return bare(op == Op::kCheckWatches ? tree.check_watches(peer, r)
                                        : tree.remove_watches(peer, r));
  });
}

}  // namespace

bool is_read(Op op) {
  switch (op) {
    case Op::kPing:
    case Op::kExists:
    case Op::kGetData:
    case Op::kGetAcl:
    case Op::kGetChildren:
    case Op::kGetChildren2:
    case Op::kGetAllChildrenNumber:
    case Op::kGetEphemerals:
    case Op::kMultiRead:
    case Op::kSetWatches:
    case Op::kSetWatches2:
    case Op::kAddWatch:
    case Op::kCheckWatches:
    case Op::kRemoveWatches:
    case Op::kWhoAmI: return true;
    default: return false;
  }
}

ReadAnswer answer_read(Tree& tree, const Caller& caller, PeerId peer, Op op, std::string_view body,
                       std::size_t most_bytes) {
  ReadAnswer answer;
  switch (op) {
    case Op::kPing: break;
    case Op::kExists:
      answer.err = with<wire::PathWatch>(body, answer.body,
                                         [&](const auto& r) { return tree.exists(peer, r); });
      break;
    case Op::kGetData:
      answer.err = with<wire::PathWatch>(
          body, answer.body, [&](const auto& r) { return tree.get_data(caller, peer, r); });
      break;
    case Op::kGetChildren:
    case Op::kGetChildren2:
      answer.err = with<wire::PathWatch>(body, answer.body, [&](const auto& r) {
        const auto [err, listing] = tree.list(caller, peer, r, most_bytes);
        if (err == Err::kOk) answer.body = list_reply(listing, op);
        return bare(err);
      });
      break;
    case Op::kGetAcl:
      answer.err = with<wire::PathOnly>(
          body, answer.body, [&](const auto& r) { return tree.get_acl(caller, r.path); });
      break;
    case Op::kGetAllChildrenNumber:
      answer.err = with<wire::PathOnly>(
          body, answer.body, [&](const auto& r) { return tree.count_below(caller, r.path); });
      break;
    case Op::kGetEphemerals:
      answer.err = with<wire::PathOnly, NullPath::kIsEmpty>(body, answer.body, [&](const auto& r) {
        return tree.ephemerals(caller.session, r.path, most_bytes);
      });
      break;
    case Op::kMultiRead:
      answer.err = with<wire::Multi>(body, answer.body, [&](const auto& r) {
        return read_all(tree, caller, peer, r, most_bytes);
      });
      break;
    case Op::kWhoAmI: wire::Writer{answer.body}(who(caller.identities)); break;
    default: answer.err = answer_watch(tree, peer, op, body, answer); break;
  }
  return answer;
}

std::size_t expected_size(const Tree& tree, const Caller& caller, Op op, std::string_view body) {
  constexpr std::size_t kHeaderAndStat = 100;
  constexpr std::size_t kName = 64;
  const auto of_node = [&](Op what, std::string_view path) {
    const Extent extent = tree.extent(path);
    const std::size_t bytes = kHeaderAndStat + extent.permissions * caller.identities.size();
    if (what == Op::kGetAllChildrenNumber) return bytes;
    return bytes + (what == Op::kGetData ? extent.data_bytes : extent.children * kName);
  };
  switch (op) {
    case Op::kGetData:
    case Op::kGetChildren:
    case Op::kGetChildren2: {
      const auto request = parse<wire::PathWatch>(body);
      return request ? of_node(op, request->path) : kHeaderAndStat;
    }
    case Op::kMultiRead: {
      std::size_t bytes = kHeaderAndStat;
      const auto multi = parse<wire::Multi>(body);
      if (!multi) return bytes;
      for (const wire::MultiOp& part : multi->ops) {
        const auto* asked = std::get_if<wire::PathWatch>(&part.body);
        if (asked != nullptr) bytes += of_node(part.op, asked->path);
      }
      return bytes;
    }
    case Op::kGetAllChildrenNumber:
    case Op::kGetAcl: {
      const auto request = parse<wire::PathOnly>(body);
      if (!request) return kHeaderAndStat;
      const Node* node = op == Op::kGetAcl ? tree.nodes().find(request->path) : nullptr;
      return of_node(Op::kGetAllChildrenNumber, request->path) +
             (node == nullptr ? 0 : size_in_bytes(*node->acl));
    }
    case Op::kGetEphemerals: return kHeaderAndStat + tree.nodes().ephemeral_bytes(caller.session);
    // Watches that fire at once are told with their paths.
    default: return kHeaderAndStat + 2 * body.size();
  }
}

}  // namespace latchkey::tree
