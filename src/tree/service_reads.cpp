#include "base/mutant.hpp"
#include "tree/answer_read.hpp"
#include "tree/service.hpp"

namespace latchkey::tree {

void Service::take_read(Peer& peer, wire::RequestHeader header, std::string_view body,
                        Moment moment) {
  if (peer.last_turn > released_ || !peer.deferred.empty()) {
    const Peer::Deferred& read = peer.deferred.emplace_back(
        Peer::Deferred{peer.last_turn, header, std::string(body), moment.now,
                       expected_size(tree_, {peer.session, peer.identities}, header.op, body)});
    ++peer.requests;
    peer.request_bytes += read.bytes();
    peer.expected += read.expected;
    take_on(read.bytes());
    return;
  }
  answer_read(peer, header, body);
  count_answer(peer, header, moment.now, moment, statistics_.reads);
}

void Service::answer_read(Peer& peer, wire::RequestHeader header, std::string_view body) {
  const Caller caller{peer.session, peer.identities};
  const std::uint64_t before = tree_.work();
  ReadAnswer answer =
      tree::answer_read(tree_, caller, peer.id, header.op, body, options_.max_output_per_peer);
  // To copy is the least of it.
  peer.work += tree_.work() - before + answer.body.size() / 8;
  send_notices(answer.notices);
  std::int64_t shown = tree_.applied_zxid();
  if (base::mutated(base::Mutant::kDirtyReads) && !pipeline_.empty()) {
    Tree ahead(options_.limits);
    tree_.save([&](std::string_view item) { static_cast<void>(ahead.load(item)); });
    for (const Turn& turn : pipeline_) {
      if (turn.record) static_cast<void>(ahead.replay(turn.zxid, encode(*turn.record)));
    }
    answer =
        tree::answer_read(ahead, caller, peer.id, header.op, body, options_.max_output_per_peer);
    shown = ahead.applied_zxid();
  }
  if (answer.err != wire::Err::kOk) ++statistics_.refused;
  if (!opens_frame(peer)) return;
  constexpr std::size_t kHeaderSize = 16;
  wire::Writer writer(peer.output);
  writer(static_cast<std::int32_t>(kHeaderSize + answer.body.size()),
         wire::ReplyHeader{header.xid, shown, answer.err});
  peer.output += answer.body;
  recount(peer);
}

void Service::run_deferred(Peer& peer, Which which, Moment moment) {
  // From here on they wait for their own client and not for the disk: nobody else is to be held up.
  for (; peer.due < peer.deferred.size() && peer.deferred[peer.due].after <= released_;
       ++peer.due) {
    const std::size_t bytes = peer.deferred[peer.due].bytes();
    peer.input += bytes;
    let_go(bytes);
  }
  while (peer.due > 0 && (which == Which::kAll || may_answer(peer))) {
    if (which == Which::kThatHaveRoom && had_its_turn(peer.work)) return rest(peer);
    const Peer::Deferred read = std::move(peer.deferred.front());
    peer.deferred.pop_front();
    --peer.due;
    --peer.requests;
    peer.request_bytes -= read.bytes();
    peer.input -= read.bytes();
    peer.expected -= read.expected;
    answer_read(peer, read.header, read.body);
    count_answer(peer, read.header, read.since, moment, statistics_.reads);
  }
}

}  // namespace latchkey::tree
