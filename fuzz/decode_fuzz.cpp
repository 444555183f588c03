// Feeds any bytes to the decoder of one message type. The first byte picks the type and with it the
// direction. What decodes must settle at once: written again it has the same size, and decoding
// that writes the very same bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "wire/frame.hpp"

namespace latchkey::wire {
namespace {

using Recode = std::optional<std::string> (*)(std::string_view);

template <class Message>
std::optional<std::string> recode(std::string_view bytes) {
  const std::optional<Message> message = decode<Message>(bytes);
  if (!message) return std::nullopt;
  std::string out;
  Writer writer(out);
  writer(*message);
  return out;
}

std::optional<std::string> recode_connect_request(std::string_view bytes) {
  const auto greeting = decode_connect_request(bytes);
  if (!greeting) return std::nullopt;
  std::string out;
  append_connect_request(out, greeting->message, greeting->form);
  return out.substr(4);
}

std::optional<std::string> recode_connect_response(std::string_view bytes) {
  const auto greeting = decode_connect_response(bytes);
  if (!greeting) return std::nullopt;
  std::string out;
  append_connect_response(out, greeting->message, greeting->form);
  return out.substr(4);
}

// The corpus names these by position: add at the end only.
constexpr std::array<Recode, 36> kTypes = {
    // From the client.
    recode_connect_request,   // 0
    recode<RequestHeader>,    // 1
    recode<AuthPacket>,       // 2
    recode<Empty>,            // 3
    recode<Create>,           // 4
    recode<CreateTtl>,        // 5
    recode<PathVersion>,      // 6
    recode<PathWatch>,        // 7
    recode<PathOnly>,         // 8
    recode<SetData>,          // 9
    recode<SetAcl>,           // 10
    recode<AddWatch>,         // 11
    recode<PathWatcherType>,  // 12
    recode<SetWatches>,       // 13
    recode<SetWatches2>,      // 14
    recode<Multi>,            // 15
    // From the server.
    recode_connect_response,      // 16
    recode<ReplyHeader>,          // 17
    recode<WatcherEvent>,         // 18
    recode<CreateReply>,          // 19
    recode<Create2Reply>,         // 20
    recode<StatReply>,            // 21
    recode<GetDataReply>,         // 22
    recode<GetAclReply>,          // 23
    recode<ChildrenReply>,        // 24
    recode<Children2Reply>,       // 25
    recode<SyncReply>,            // 26
    recode<EphemeralsReply>,      // 27
    recode<ChildrenNumberReply>,  // 28
    recode<WhoAmIReply>,          // 29
    recode<ErrorReply>,           // 30
    recode<MultiReply>,           // 31
    // Shared pieces.
    recode<WireStat>,         // 32
    recode<WireAcl>,          // 33
    recode<ConnectRequest>,   // 34, without its optional last byte
    recode<ConnectResponse>,  // 35, the same
};

void require(bool condition) {
  if (!condition) std::abort();
}

void check(std::string_view input) {
  if (input.empty()) return;
  const Recode recode_as = kTypes[static_cast<unsigned char>(input[0]) % kTypes.size()];

  const auto once = recode_as(input.substr(1));

  if (!once) return;
  require(once->size() == input.size() - 1);
  require(recode_as(*once) == once);
}

}  // namespace
}  // namespace latchkey::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  latchkey::wire::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
