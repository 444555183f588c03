#include "tree/answer_read.hpp"

#include <utility>

#include "tree/parse.hpp"

namespace latchkey::tree {
namespace {

using wire::Err;
using wire::Op;

/// Decodes the body, lets `answer` make a reply of it, and appends that if there is no error.
template <class Body, class Answerer>
Err with(std::string_view body, std::string& reply, Answerer answer) {
  const std::optional<Body> request = parse<Body>(body);
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

std::size_t size_of(const std::vector<std::string>& names) {
  std::size_t bytes = 0;
  for (const std::string& name : names) bytes += name.size() + sizeof(std::int32_t);
  return bytes;
}

/// A small request can ask for large nodes many times; beyond `most` bytes it is refused (H89).
Answer<wire::MultiReply> read_all(Tree& tree, const Caller& caller, PeerId peer,
                                  const wire::Multi& multi, std::size_t most) {
  Answer<wire::MultiReply> answer;
  std::size_t bytes = 0;
  for (const wire::MultiOp& part : multi.ops) {
    const auto* asked = std::get_if<wire::PathWatch>(&part.body);
    if (asked == nullptr) return {Err::kMarshallingError, {}};
    // The parts of a multi-read set no watches, whatever they say.
    const wire::PathWatch request{asked->path, false};
    wire::MultiResult& result = answer.value.results.emplace_back();
    Err err = Err::kOk;
    if (part.op == Op::kGetChildren) {
      auto children = tree.get_children(caller, peer, request);
      err = children.err;
      bytes += size_of(children.value.children);
      result = {part.op, wire::ChildrenReply{std::move(children.value.children)}};
    } else {
      auto data = tree.get_data(caller, peer, request);
      err = data.err;
      bytes += data.value.data ? data.value.data->size() : 0;
      result = {part.op, std::move(data.value)};
    }
    if (err != Err::kOk) result = {Op::kError, wire::ErrorReply{err}};
    if (bytes > most) return {Err::kQuotaExceeded, {}};
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
      answer.err = with<wire::PathWatch>(body, answer.body, [&](const auto& r) {
        auto children = tree.get_children(caller, peer, r);
        return Answer<wire::ChildrenReply>{children.err, {std::move(children.value.children)}};
      });
      break;
    case Op::kGetChildren2:
      answer.err = with<wire::PathWatch>(
          body, answer.body, [&](const auto& r) { return tree.get_children(caller, peer, r); });
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
      answer.err = with<wire::PathOnly>(body, answer.body, [&](const auto& r) {
        return Answer<wire::EphemeralsReply>{Err::kOk, tree.ephemerals(caller.session, r.path)};
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

}  // namespace latchkey::tree
