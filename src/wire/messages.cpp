#include "wire/messages.hpp"

namespace latchkey::wire {
namespace {

struct MultiHeader {
  Op op = Op::kError;
  bool done = false;
  Err err = Err::kOk;

  template <class Self, class Archive>
  static void fields(Self& self, Archive& archive) {
    archive(self.op, self.done, self.err);
  }
};

const MultiHeader kEnd{Op::kError, true, Err{-1}};

/// Chooses the alternative that `op` is written as; false for an op that has no place in a multi.
bool choose_body(MultiOp& part) {
  switch (part.op) {
    case Op::kCreate:
    case Op::kCreate2:
    case Op::kCreateContainer: part.body.emplace<Create>(); return true;
    case Op::kCreateTtl: part.body.emplace<CreateTtl>(); return true;
    case Op::kDelete:
    case Op::kCheck: part.body.emplace<PathVersion>(); return true;
    case Op::kSetData: part.body.emplace<SetData>(); return true;
    case Op::kGetData:
    case Op::kGetChildren: part.body.emplace<PathWatch>(); return true;
    default: return false;
  }
}

bool choose_body(MultiResult& part) {
  switch (part.op) {
    case Op::kError: part.body.emplace<ErrorReply>(); return true;
    case Op::kDelete:
    case Op::kCheck: part.body.emplace<Empty>(); return true;
    case Op::kCreate: part.body.emplace<CreateReply>(); return true;
    case Op::kCreate2: part.body.emplace<Create2Reply>(); return true;
    case Op::kSetData: part.body.emplace<StatReply>(); return true;
    case Op::kGetData: part.body.emplace<GetDataReply>(); return true;
    case Op::kGetChildren: part.body.emplace<ChildrenReply>(); return true;
    default: return false;
  }
}

/// Clients know one number for a result with a path and a Stat: Java's refuses the whole reply if a
/// container or TTL node is answered with the number it was asked by.
Op op_as_sent(const MultiResult& part) {
  return std::holds_alternative<Create2Reply>(part.body) ? Op::kCreate2 : part.op;
}

template <class Part>
void read_parts(std::vector<Part>& parts, Reader& reader) {
  parts.clear();
  parts.reserve(2);  // A delete and the next entry, mostly.
  while (true) {
    MultiHeader header;
    reader(header);
    if (!reader.ok() || header.done) return;
    Part& part = parts.emplace_back();
    part.op = header.op;
    if (!choose_body(part)) return reader.fail();
    std::visit([&](auto& body) { reader(body); }, part.body);
    if (!reader.ok()) return;
  }
}

}  // namespace

std::string_view name(Op op) noexcept {
  switch (op) {
    case Op::kNotification: return "notification";
    case Op::kCreate: return "create";
    case Op::kDelete: return "delete";
    case Op::kExists: return "exists";
    case Op::kGetData: return "getData";
    case Op::kSetData: return "setData";
    case Op::kGetAcl: return "getACL";
    case Op::kSetAcl: return "setACL";
    case Op::kGetChildren: return "getChildren";
    case Op::kSync: return "sync";
    case Op::kPing: return "ping";
    case Op::kGetChildren2: return "getChildren2";
    case Op::kCheck: return "check";
    case Op::kMulti: return "multi";
    case Op::kCreate2: return "create2";
    case Op::kReconfig: return "reconfig";
    case Op::kCheckWatches: return "checkWatches";
    case Op::kRemoveWatches: return "removeWatches";
    case Op::kCreateContainer: return "createContainer";
    case Op::kDeleteContainer: return "deleteContainer";
    case Op::kCreateTtl: return "createTTL";
    case Op::kMultiRead: return "multiRead";
    case Op::kAuth: return "auth";
    case Op::kSetWatches: return "setWatches";
    case Op::kSasl: return "sasl";
    case Op::kGetEphemerals: return "getEphemerals";
    case Op::kGetAllChildrenNumber: return "getAllChildrenNumber";
    case Op::kSetWatches2: return "setWatches2";
    case Op::kAddWatch: return "addWatch";
    case Op::kWhoAmI: return "whoAmI";
    case Op::kCreateSession: return "createSession";
    case Op::kCloseSession: return "closeSession";
    case Op::kError: return "error";
  }
  return "unknown";
}

void Multi::fields(const Multi& self, Writer& writer) {
  for (const MultiOp& part : self.ops) {
    writer(MultiHeader{part.op, false, Err{-1}});
    std::visit([&](const auto& body) { writer(body); }, part.body);
  }
  writer(kEnd);
}

void Multi::fields(Multi& self, Reader& reader) { read_parts(self.ops, reader); }

void MultiReply::fields(const MultiReply& self, Writer& writer) {
  for (const MultiResult& part : self.results) {
    Err err = Err::kOk;
    if (const auto* error = std::get_if<ErrorReply>(&part.body)) err = error->err;
    writer(MultiHeader{op_as_sent(part), false, err});
    std::visit([&](const auto& body) { writer(body); }, part.body);
  }
  writer(kEnd);
}

void MultiReply::fields(MultiReply& self, Reader& reader) { read_parts(self.results, reader); }

}  // namespace latchkey::wire
