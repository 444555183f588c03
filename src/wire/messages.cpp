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
