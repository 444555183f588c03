#include "differential/step.hpp"

#include <map>

namespace latchkey::differential {
namespace {

using wire::Op;

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

std::string list(const std::vector<std::string>& paths) {
  std::string text = "{";
  for (const std::string& path : paths) text += printable(path) + " ";
  return text + "}";
}

std::string number(std::int64_t value) { return std::to_string(value); }

std::string describe_body(const Body& body);

std::string describe_parts(const wire::Multi& multi) {
  std::string text;
  for (const wire::MultiOp& part : multi.ops) {
    const Body body = std::visit([](const auto& value) { return Body(value); }, part.body);
    text += "\n        " + name_of(part.op) + describe_body(body);
  }
  return text;
}

std::string describe_body(const Body& body) {
  return std::visit(
      Overloaded{
          [](const wire::Empty&) { return std::string(); },
          [](const wire::Create& r) {
            return " " + printable(r.path) + " mode=" + number(static_cast<int>(r.mode)) +
                   " data=" + or_null(r.data) + " acl=" + printable(r.acl);
          },
          [](const wire::CreateTtl& r) {
            return " " + printable(r.path) + " mode=" + number(static_cast<int>(r.mode)) +
                   " ttl=" + number(r.ttl_ms) + " data=" + or_null(r.data) +
                   " acl=" + printable(r.acl);
          },
          [](const wire::PathVersion& r) {
            return " " + printable(r.path) + " version=" + number(r.version);
          },
          [](const wire::PathWatch& r) {
            return " " + printable(r.path) + (r.watch ? " watch" : "");
          },
          [](const wire::PathOnly& r) { return " " + printable(r.path); },
          [](const wire::SetData& r) {
            return " " + printable(r.path) + " version=" + number(r.version) +
                   " data=" + or_null(r.data);
          },
          [](const wire::SetAcl& r) {
            return " " + printable(r.path) + " version=" + number(r.version) +
                   " acl=" + printable(r.acl);
          },
          [](const wire::AddWatch& r) {
            return " " + printable(r.path) + " mode=" + number(static_cast<int>(r.mode));
          },
          [](const wire::PathWatcherType& r) {
            return " " + printable(r.path) + " type=" + number(static_cast<int>(r.type));
          },
          [](const wire::SetWatches2& r) {
            return " since=" + number(r.relative_zxid) + " data=" + list(r.data) +
                   " exists=" + list(r.exists) + " children=" + list(r.children) +
                   " persistent=" + list(r.persistent) +
                   " recursive=" + list(r.persistent_recursive);
          },
          [](const wire::Multi& r) { return describe_parts(r); },
          [](const wire::AuthPacket& r) { return " " + r.scheme + " " + or_null(r.auth); },
          [](const Garbage& r) { return " garbage " + printable(r.bytes); },
      },
      body);
}

const char* name_of(Return how) {
  switch (how) {
    case Return::kAfterDrop: return "reconnects";
    case Return::kOldForm: return "reconnects in the old form";
    case Return::kOverLive: return "reconnects over its live connection";
    case Return::kWrongPassword: return "reconnects with a wrong password";
    case Return::kAheadOfServer: return "reconnects ahead of the server";
    case Return::kUnknownSession: return "reconnects to a session that never was";
    case Return::kNewSession: return "drops its connection and opens a new session";
  }
  return "?";
}

}  // namespace

std::string name_of(Op op) {
  static const std::map<Op, const char*> names = {
      {Op::kCreate, "create"},
      {Op::kDelete, "delete"},
      {Op::kExists, "exists"},
      {Op::kGetData, "getData"},
      {Op::kSetData, "setData"},
      {Op::kGetAcl, "getACL"},
      {Op::kSetAcl, "setACL"},
      {Op::kGetChildren, "getChildren"},
      {Op::kSync, "sync"},
      {Op::kPing, "ping"},
      {Op::kGetChildren2, "getChildren2"},
      {Op::kCheck, "check"},
      {Op::kMulti, "multi"},
      {Op::kCreate2, "create2"},
      {Op::kReconfig, "reconfig"},
      {Op::kCheckWatches, "checkWatches"},
      {Op::kRemoveWatches, "removeWatches"},
      {Op::kCreateContainer, "createContainer"},
      {Op::kDeleteContainer, "deleteContainer"},
      {Op::kCreateTtl, "createTTL"},
      {Op::kMultiRead, "multiRead"},
      {Op::kAuth, "auth"},
      {Op::kSetWatches, "setWatches"},
      {Op::kSasl, "sasl"},
      {Op::kGetEphemerals, "getEphemerals"},
      {Op::kGetAllChildrenNumber, "getAllChildrenNumber"},
      {Op::kSetWatches2, "setWatches2"},
      {Op::kAddWatch, "addWatch"},
      {Op::kWhoAmI, "whoAmI"},
      {Op::kCloseSession, "closeSession"}};
  const auto it = names.find(op);
  return it != names.end() ? it->second : "op " + std::to_string(static_cast<int>(op));
}

std::string printable(std::string_view bytes) {
  constexpr std::size_t kLongest = 200;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "'";
  for (const char c : bytes.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      text += c;
    } else {
      text += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  if (bytes.size() > kLongest) text += "... " + std::to_string(bytes.size()) + " bytes";
  return text + "'";
}

std::string or_null(const wire::Buffer& buffer) {
  return buffer ? printable(std::string_view(*buffer)) : "null";
}

std::string printable(const std::vector<wire::WireAcl>& acl) {
  std::string text = "[";
  for (const wire::WireAcl& entry : acl) {
    text += std::to_string(entry.permissions) + "," + printable(entry.scheme) + "," +
            printable(entry.id) + " ";
  }
  return text + "]";
}

std::string describe(const Step& step) {
  const std::string who = "actor " + std::to_string(step.actor) + ": ";
  return who +
         std::visit(Overloaded{
                        [](const Request& r) { return name_of(r.op) + describe_body(r.body); },
                        [](Return how) { return std::string(name_of(how)); },
                        [](const BadFrame& f) { return "bad frame " + printable(f.bytes); },
                    },
                    step.action);
}

std::string describe(const Script& script) {
  std::string text;
  for (std::size_t i = 0; i < script.size(); ++i) {
    text += "  " + std::to_string(i) + "  " + describe(script[i]) + "\n";
  }
  return text;
}

bool takes_turn(const Step& step) {
  const auto* request = std::get_if<Request>(&step.action);
  if (request == nullptr) return false;
  switch (request->op) {
    case Op::kCreate:
    case Op::kCreate2:
    case Op::kCreateContainer:
    case Op::kCreateTtl:
    case Op::kDelete:
    case Op::kSetData:
    case Op::kSetAcl:
    case Op::kMulti:
    case Op::kCheck:
    case Op::kSync: return true;
    default: return false;
  }
}

bool ends_connection(const Step& step) {
  const auto* request = std::get_if<Request>(&step.action);
  if (request == nullptr) return std::holds_alternative<BadFrame>(step.action);
  return request->op == Op::kCloseSession || name_of(request->op).starts_with("op ");
}

}  // namespace latchkey::differential
