#include "sim/twins.hpp"

#include "wire/frame.hpp"
#include "wire/messages.hpp"

namespace latchkey::sim {

using namespace std::chrono_literals;
using testing::Message;
using testing::Way;

void Twins::on_sent(const Message& message) {
  constexpr std::uint32_t kPermille = 50;
  if (stopped_ || message.op != wire::Op::kCreate2) return;
  if (message.way == Way::kReply) {
    asked_.erase({message.link, message.xid});
    return;
  }
  // An entry, or a permit.
  if (message.body.find("/_c_") == std::string_view::npos) return;
  std::string frame;
  wire::append_frame(frame, wire::RequestHeader{message.xid, message.op});
  frame += message.body;
  wire::write_length(frame, 0);
  asked_.emplace(std::pair(message.link, message.xid), std::move(frame));
  if (!world_.timeline().chance(kPermille)) return;
  testing::Process& process = message.host->process();
  world_.post(process, 0us, [this, &process] {
    if (!stopped_) world_.drop_next(process, Way::kReply, wire::Op::kCreate2);
  });
}

void Twins::on_lost(const Message& message) {
  if (message.way != Way::kReply || message.op != wire::Op::kCreate2) return;
  const auto asked = asked_.extract({message.link, message.xid});
  if (stopped_ || asked.empty()) return;
  world_.post(world_.server(message.server).process(), 0us,
              [this, link = message.link, server = message.server, frame = asked.mapped()] {
                make(link, server, frame);
              });
}

void Twins::on_arrived(std::uint64_t link, Way way, std::size_t messages) {
  if (way != Way::kRequest) return;
  if (messages == 0) {
    halves_.insert(link);
  } else {
    halves_.erase(link);
  }
}

void Twins::make(std::uint64_t link, std::size_t server, const std::string& frame) {
  if (stopped_ || halves_.contains(link)) return;
  ++made_;
  world_.server(server).received(link, frame);
}

}  // namespace latchkey::sim
