#include "tree/answer_read.hpp"
#include "tree/service.hpp"

namespace latchkey::tree {

void Service::take_read(Peer& peer, wire::RequestHeader header, std::string_view body,
                        Moment moment) {
  if (peer.last_turn > released_) {
    ++peer.requests;
    peer.request_bytes += body.size();
    take_on(body.size(), moment);
    peer.deferred.push_back({peer.last_turn, header, std::string(body), moment.now});
    return;
  }
  answer_read(peer, header, body);
  count_answer(peer, header, moment.now, moment, statistics_.reads);
}

void Service::answer_read(Peer& peer, wire::RequestHeader header, std::string_view body) {
  const ReadAnswer answer = tree::answer_read(tree_, {peer.session, peer.identities}, peer.id,
                                              header.op, body, options_.max_output_per_peer);
  send_notices(answer.notices);
  if (answer.err != wire::Err::kOk) ++statistics_.refused;
  if (!opens_frame(peer)) return;
  constexpr std::size_t kHeaderSize = 16;
  wire::Writer writer(peer.output);
  writer(static_cast<std::int32_t>(kHeaderSize + answer.body.size()),
         wire::ReplyHeader{header.xid, tree_.applied_zxid(), answer.err});
  peer.output += answer.body;
}

}  // namespace latchkey::tree
