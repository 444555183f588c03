#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "wire/messages.hpp"

namespace latchkey::differential {

/// Clients that take part in a script, numbered from 0. Each has one session at a time.
inline constexpr std::size_t kActors = 4;

/// Bytes in the place of a request's body.
struct Garbage {
  std::string bytes;
};

using Body =
    std::variant<wire::Empty, wire::Create, wire::CreateTtl, wire::PathVersion, wire::PathWatch,
                 wire::PathOnly, wire::SetData, wire::SetAcl, wire::AddWatch, wire::PathWatcherType,
                 wire::SetWatches2, wire::Multi, wire::AuthPacket, Garbage>;

/// One request. A zxid in it (setWatches) counts from the start of the script.
struct Request {
  wire::Op op = wire::Op::kPing;
  Body body;
};

/// The actor's connection is lost, or still there, and it comes back.
enum class Return : std::uint8_t {
  kAfterDrop,
  kOldForm,        ///< The same without the read-only byte.
  kOverLive,       ///< The old connection is still there and must be closed by the server.
  kWrongPassword,  ///< After a drop.
  kAheadOfServer,  ///< It has seen a zxid that the server has not reached.
  kUnknownSession,
  kNewSession,  ///< Leaves the old one behind, with its nodes.
};

/// Bytes that are no frame a server could take; it closes the connection.
struct BadFrame {
  std::string bytes;
};

struct Step {
  std::size_t actor = 0;
  std::variant<Request, Return, BadFrame> action;
};

using Script = std::vector<Step>;

/// For people: `2: create /a/b [3] ephemeral`.
[[nodiscard]] std::string describe(const Step& step);
[[nodiscard]] std::string describe(const Script& script);
[[nodiscard]] std::string name_of(wire::Op op);
/// Printable: other bytes as \xNN; long text is cut.
[[nodiscard]] std::string printable(std::string_view bytes);
[[nodiscard]] std::string or_null(const wire::Buffer& buffer);
[[nodiscard]] std::string printable(const std::vector<wire::WireAcl>& acl);

/// Whether the server gives it a place in the order of writes; anything else only looks.
[[nodiscard]] bool takes_turn(const Step& step);
/// Whether the server is expected to end the connection over it.
[[nodiscard]] bool ends_connection(const Step& step);

}  // namespace latchkey::differential
