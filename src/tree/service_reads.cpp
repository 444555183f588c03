#include <utility>

#include "tree/parse.hpp"
#include "tree/service.hpp"

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
wire::WhoAmIReply who(const std::vector<Identity>& identities) {
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

}  // namespace

void Service::take_read(Peer& peer, wire::RequestHeader header, std::string_view body,
                        Moment moment) {
  if (peer.last_turn > released_) {
    ++peer.requests;
    peer.request_bytes += body.size();
    peer.deferred.push_back({peer.last_turn, header, std::string(body), moment.now});
    return;
  }
  answer_read(peer, header, body);
  count_answer(peer, header, moment.now, moment, statistics_.reads);
}

void Service::answer_read(Peer& peer, wire::RequestHeader header, std::string_view body) {
  const Caller caller{peer.session, peer.identities};
  std::string reply;
  Err err = Err::kOk;
  switch (header.op) {
    case Op::kPing: break;
    case Op::kExists:
      err = with<wire::PathWatch>(body, reply,
                                  [&](const auto& r) { return tree_.exists(peer.id, r); });
      break;
    case Op::kGetData:
      err = with<wire::PathWatch>(
          body, reply, [&](const auto& r) { return tree_.get_data(caller, peer.id, r); });
      break;
    case Op::kGetChildren:
      err = with<wire::PathWatch>(body, reply, [&](const auto& r) {
        auto children = tree_.get_children(caller, peer.id, r);
        return Answer<wire::ChildrenReply>{children.err, {std::move(children.value.children)}};
      });
      break;
    case Op::kGetChildren2:
      err = with<wire::PathWatch>(
          body, reply, [&](const auto& r) { return tree_.get_children(caller, peer.id, r); });
      break;
    case Op::kGetAcl:
      err = with<wire::PathOnly>(body, reply,
                                 [&](const auto& r) { return tree_.get_acl(caller, r.path); });
      break;
    case Op::kGetAllChildrenNumber:
      err = with<wire::PathOnly>(body, reply,
                                 [&](const auto& r) { return tree_.count_below(caller, r.path); });
      break;
    case Op::kGetEphemerals:
      err = with<wire::PathOnly>(body, reply, [&](const auto& r) {
        return Answer<wire::EphemeralsReply>{Err::kOk, tree_.ephemerals(peer.session, r.path)};
      });
      break;
    case Op::kMultiRead:
      err = with<wire::Multi>(body, reply, [&](const auto& r) {
        return read_all(tree_, caller, peer.id, r, options_.max_output_per_peer);
      });
      break;
    case Op::kWhoAmI: wire::Writer{reply}(who(peer.identities)); break;
    default: err = answer_watch(peer, header.op, body, reply); break;
  }
  if (err != Err::kOk) ++statistics_.refused;
  if (!opens_frame(peer)) return;
  constexpr std::size_t kHeaderSize = 16;
  wire::Writer writer(peer.output);
  writer(static_cast<std::int32_t>(kHeaderSize + reply.size()),
         wire::ReplyHeader{header.xid, tree_.applied_zxid(), err});
  peer.output += reply;
}

wire::Err Service::answer_watch(Peer& peer, Op op, std::string_view body, std::string& reply) {
  std::vector<Notice> notices;
  Err err = Err::kOk;
  if (op == Op::kSetWatches) {
    err = with<wire::SetWatches>(body, reply, [&](const wire::SetWatches& r) {
      return bare(tree_.set_watches(
          peer.id, {r.relative_zxid, r.data, r.exists, r.children, {}, {}}, notices));
    });
  } else if (op == Op::kSetWatches2) {
    err = with<wire::SetWatches2>(
        body, reply, [&](const auto& r) { return bare(tree_.set_watches(peer.id, r, notices)); });
  } else if (op == Op::kAddWatch) {
    err = with<wire::AddWatch>(body, reply, [&](const auto& r) {
      return Answer<wire::ErrorReply>{tree_.add_watch(peer.id, r), {}};
    });
  } else {
    err = with<wire::PathWatcherType>(body, reply, [&](const auto& r) {
      return bare(op == Op::kCheckWatches ? tree_.check_watches(peer.id, r)
                                          : tree_.remove_watches(peer.id, r));
    });
  }
  send_notices(notices);
  return err;
}

}  // namespace latchkey::tree
