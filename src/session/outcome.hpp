#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "latchkey/deadline.hpp"
#include "latchkey/error.hpp"
#include "wire/messages.hpp"

namespace latchkey::session {

/// The body of any reply, as its request's type says.
using Reply = std::variant<std::monostate, wire::CreateReply, wire::Create2Reply, wire::StatReply,
                           wire::GetDataReply, wire::GetAclReply, wire::ChildrenReply,
                           wire::Children2Reply, wire::SyncReply, wire::EphemeralsReply,
                           wire::ChildrenNumberReply, wire::WhoAmIReply, wire::MultiReply>;

/// The one outcome of a request.
struct Outcome {
  bool ok = false;
  Code code = Code::kServerError;  ///< Meaningless if ok.
  Effect effect = Effect::kNone;   ///< Meaningless if ok.
  std::string detail;              ///< For people: why the connection broke, which address.
  Reply reply;
  std::int64_t zxid = 0;
  bool in_place = false;  ///< The node of Call::heir_of was deleted in the same transaction.
  // For OperationReport.
  Instant submitted_at{};
  Instant finished_at{};
  std::size_t bytes_sent = 0;
  std::size_t bytes_received = 0;
  int attempts = 0;
};

/// How far a request had come when it ended.
enum class Progress {
  kUnsent,    ///< Never on any wire.
  kSent,      ///< Perhaps on a wire; no answer.
  kAnswered,  ///< The server's own word.
};

/// Does the request change anything on the server?
[[nodiscard]] bool is_write(wire::Op op) noexcept;

/// The server's number as one of our codes.
[[nodiscard]] Code code_of(wire::Err err) noexcept;

/// THE table of definite and ambiguous failures (H03): whether a request that failed may have been
/// carried out. `err` counts only with Progress::kAnswered; a number we do not know is ambiguous.
[[nodiscard]] Effect effect_of(wire::Op op, Progress progress, wire::Err err) noexcept;

/// Does this answer settle a debt? Otherwise the request has to be repeated until one does.
[[nodiscard]] bool is_final(wire::Err err) noexcept;

/// Does this answer prove that the request passed through the leader (P5)? A server that is cut off
/// from its leader can still refuse a request by itself, for being throttled or read-only.
[[nodiscard]] bool is_proof(wire::Op op, wire::Err err) noexcept;

}  // namespace latchkey::session
