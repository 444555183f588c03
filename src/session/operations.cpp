#include "session/operations.hpp"

#include <type_traits>

#include "base/explain.hpp"

namespace latchkey::session {

using wire::Op;

Error make_error(std::string_view verb, const std::string& path, const Outcome& outcome) {
  std::string message(verb);
  if (!path.empty()) message += " " + path;
  message += ": ";
  message += base::explain(outcome.code);
  if (!outcome.detail.empty()) message += " (" + outcome.detail + ")";
  return Error(outcome.code, std::move(message), outcome.effect);
}

std::vector<wire::WireAcl> to_wire(const std::vector<Acl>& acl) {
  std::vector<wire::WireAcl> result;
  for (const Acl& entry : acl) result.push_back({entry});
  return result;
}

namespace {

/// One request about one path: checks the path, encodes header and body.
template <class Body>
Result<Prepared> prepare_one(Op op, const Path& path, Body body, const Machine& machine,
                             Watcher watcher = {}) {
  if (auto valid = path.check(); !valid) return valid.error();
  Prepared prepared{.watcher = std::move(watcher)};
  prepared.call.op = op;
  prepared.call.path = machine.absolute(path.text());
  prepared.call.resend = is_write(op) ? Resend::kNever : Resend::kWithinPolicy;
  body.path = prepared.call.path;
  wire::append_frame(prepared.call.frame, wire::RequestHeader{0, op}, body);
  return prepared;
}

std::vector<Acl> from_wire(std::vector<wire::WireAcl> acl) {
  return {std::make_move_iterator(acl.begin()), std::make_move_iterator(acl.end())};
}

Result<wire::CreateMode> mode_of(const CreateOptions& options) {
  const bool sequential = options.naming == Naming::kSequential;
  switch (options.lifetime) {
    case Lifetime::kPersistent:
      return sequential ? wire::CreateMode::kPersistentSequential : wire::CreateMode::kPersistent;
    case Lifetime::kEphemeral:
      return sequential ? wire::CreateMode::kEphemeralSequential : wire::CreateMode::kEphemeral;
    case Lifetime::kContainer:
      if (sequential) return Error(Code::kInvalidOption, "a container cannot be sequential");
      return wire::CreateMode::kContainer;
    case Lifetime::kTtl:
      if (options.ttl.count() <= 0)
        return Error(Code::kInvalidOption, "Lifetime::kTtl needs a ttl");
      return sequential ? wire::CreateMode::kTtlSequential : wire::CreateMode::kTtl;
  }
  return Error(Code::kInvalidOption, "unknown lifetime");
}

/// A sequential node may be named "/a/" or "/a/.": the server's digits complete it.
Path create_path(const Create& operation) {
  const bool sequential = operation.options.naming == Naming::kSequential;
  return sequential ? Path(operation.path.text() + "0000000000") : operation.path;
}

Op create_op(Lifetime lifetime) {
  switch (lifetime) {
    case Lifetime::kContainer: return Op::kCreateContainer;
    case Lifetime::kTtl: return Op::kCreateTtl;
    default: return Op::kCreate2;
  }
}

/// The value of a reply that has to be of one type; the machine has decoded it by the request's op.
template <class Body>
Body& body_of(Outcome& outcome) {
  return std::get<Body>(outcome.reply);
}

template <class Part>
Result<void> check_part(const Part& part) {
  if constexpr (std::is_same_v<Part, Create>) {
    if (auto mode = mode_of(part.options); !mode) return mode.error();
    return create_path(part).check();
  } else {
    return part.path.check();
  }
}

wire::MultiOp part_to_wire(const Multi::Part& part, bool create_stat, const Machine& machine) {
  return std::visit(
      [&](const auto& op) -> wire::MultiOp {
        using T = std::decay_t<decltype(op)>;
        const std::string path = machine.absolute(op.path.text());
        if constexpr (std::is_same_v<T, Create>) {
          const wire::CreateMode mode = *mode_of(op.options);
          if (op.options.lifetime == Lifetime::kTtl) {
            return {Op::kCreateTtl, wire::CreateTtl{path, op.data, to_wire(op.options.acl), mode,
                                                    op.options.ttl.count()}};
          }
          const bool container = op.options.lifetime == Lifetime::kContainer;
          const Op kind = container     ? Op::kCreateContainer
                          : create_stat ? Op::kCreate2
                                        : Op::kCreate;
          return {kind, wire::Create{path, op.data, to_wire(op.options.acl), mode}};
        } else if constexpr (std::is_same_v<T, Remove>) {
          return {Op::kDelete, wire::PathVersion{path, op.version}};
        } else if constexpr (std::is_same_v<T, Set>) {
          return {Op::kSetData, wire::SetData{path, op.data, op.version}};
        } else {
          return {Op::kCheck, wire::PathVersion{path, op.version}};
        }
      },
      part);
}

Result<Prepared> prepare_multi(const std::vector<Multi::Part>& parts, bool create_stat,
                               const Machine& machine) {
  wire::Multi body;
  for (const Multi::Part& part : parts) {
    auto valid = std::visit([](const auto& op) { return check_part(op); }, part);
    if (!valid) return valid.error();
    body.ops.push_back(part_to_wire(part, create_stat, machine));
  }
  Prepared prepared;
  prepared.call.op = Op::kMulti;
  wire::append_frame(prepared.call.frame, wire::RequestHeader{0, Op::kMulti}, body);
  return prepared;
}

/// The error of one part; in a failed multi 0 stands before the culprit and -2 after it.
Error part_error(wire::Err err, std::string_view verb, const std::string& path) {
  Outcome outcome;
  const bool innocent = err == wire::Err::kOk || err == wire::Err::kRuntimeInconsistency;
  outcome.code = innocent ? Code::kRolledBack : code_of(err);
  return make_error(verb, path, outcome);
}

std::pair<std::string_view, std::string> describe(const Multi::Part& part) {
  return std::visit(
      [](const auto& op) { return std::pair(kVerb<std::decay_t<decltype(op)>>, op.path.text()); },
      part);
}

Error malformed(std::string_view verb) {
  return Error(Code::kServerError, std::string(verb) + ": the server's answer has the wrong parts",
               Effect::kUnknown);
}

/// A part's answer has to be of the kind its question asks for; the server is not trusted with
/// that.
MultiResult finish_part(const Multi::Part& part, wire::MultiResult& result,
                        const Machine& machine) {
  const auto [verb, path] = describe(part);
  if (const auto* error = std::get_if<wire::ErrorReply>(&result.body)) {
    return part_error(error->err, verb, path);
  }
  if (std::holds_alternative<Create>(part)) {
    if (auto* created = std::get_if<wire::CreateReply>(&result.body)) {
      return {Created{machine.relative(created->path), std::nullopt}};
    }
    if (auto* created = std::get_if<wire::Create2Reply>(&result.body)) {
      return {Created{machine.relative(created->path), created->stat}};
    }
  } else if (std::holds_alternative<Set>(part)) {
    if (auto* stat = std::get_if<wire::StatReply>(&result.body)) return {Stat(stat->stat)};
  } else if (std::holds_alternative<wire::Empty>(result.body)) {
    return {std::monostate{}};
  }
  return malformed(verb);
}

}  // namespace

// prepare

Result<Prepared> prepare(const Create& operation, const Machine& machine) {
  const CreateOptions& options = operation.options;
  const auto mode = mode_of(options);
  if (!mode) return mode.error();
  // The check sees the path with its digits, the wire without them.
  if (auto valid = create_path(operation).check(); !valid) return valid.error();
  Prepared prepared;
  Call& call = prepared.call;
  call.op = create_op(options.lifetime);
  call.path = machine.absolute(operation.path.text());
  const wire::RequestHeader header{0, call.op};
  if (options.lifetime == Lifetime::kTtl) {
    wire::append_frame(call.frame, header,
                       wire::CreateTtl{call.path, operation.data, to_wire(options.acl), *mode,
                                       options.ttl.count()});
  } else {
    wire::append_frame(call.frame, header,
                       wire::Create{call.path, operation.data, to_wire(options.acl), *mode});
  }
  return prepared;
}

Result<Prepared> prepare(const Remove& operation, const Machine& machine) {
  return prepare_one(Op::kDelete, operation.path, wire::PathVersion{{}, operation.version},
                     machine);
}

Result<Prepared> prepare(const Exists& operation, const Machine& machine) {
  return prepare_one(Op::kExists, operation.path, wire::PathWatch{{}, bool(operation.watcher)},
                     machine, operation.watcher);
}

Result<Prepared> prepare(const Get& operation, const Machine& machine) {
  return prepare_one(Op::kGetData, operation.path, wire::PathWatch{{}, bool(operation.watcher)},
                     machine, operation.watcher);
}

Result<Prepared> prepare(const Set& operation, const Machine& machine) {
  return prepare_one(Op::kSetData, operation.path,
                     wire::SetData{{}, operation.data, operation.version}, machine);
}

Result<Prepared> prepare(const Children& operation, const Machine& machine) {
  return prepare_one(Op::kGetChildren2, operation.path,
                     wire::PathWatch{{}, bool(operation.watcher)}, machine, operation.watcher);
}

Result<Prepared> prepare(const GetAcl& operation, const Machine& machine) {
  return prepare_one(Op::kGetAcl, operation.path, wire::PathOnly{}, machine);
}

Result<Prepared> prepare(const SetAcl& operation, const Machine& machine) {
  return prepare_one(Op::kSetAcl, operation.path,
                     wire::SetAcl{{}, to_wire(operation.acl), operation.version}, machine);
}

Result<Prepared> prepare(const Sync& operation, const Machine& machine) {
  return prepare_one(Op::kSync, operation.path, wire::PathOnly{}, machine);
}

Result<Prepared> prepare(const Check& operation, const Machine& machine) {
  return prepare_multi({operation}, false, machine);
}

Result<Prepared> prepare(const Multi& operation, const Machine& machine) {
  return prepare_multi(operation.parts, operation.create_stat, machine);
}

Result<Prepared> prepare(const MultiRead& operation, const Machine& machine) {
  wire::Multi body;
  for (const MultiRead::Part& part : operation.parts) {
    const bool watched = std::visit([](const auto& op) { return bool(op.watcher); }, part);
    if (watched) return Error(Code::kInvalidOption, "a multi-read cannot set watches");
    const Path& path = std::visit([](const auto& op) -> const Path& { return op.path; }, part);
    if (auto valid = path.check(); !valid) return valid.error();
    body.ops.push_back({std::holds_alternative<Get>(part) ? Op::kGetData : Op::kGetChildren,
                        wire::PathWatch{machine.absolute(path.text()), false}});
  }
  Prepared prepared;
  prepared.call.op = Op::kMultiRead;
  prepared.call.resend = Resend::kWithinPolicy;
  wire::append_frame(prepared.call.frame, wire::RequestHeader{0, Op::kMultiRead}, body);
  return prepared;
}

Result<Prepared> prepare(const Ephemerals& operation, const Machine& machine) {
  return prepare_one(Op::kGetEphemerals, operation.below, wire::PathOnly{}, machine);
}

Result<Prepared> prepare(const ChildrenCount& operation, const Machine& machine) {
  return prepare_one(Op::kGetAllChildrenNumber, operation.path, wire::PathOnly{}, machine);
}

Result<Prepared> prepare(const WhoAmI&, const Machine&) {
  Prepared prepared;
  prepared.call.op = Op::kWhoAmI;
  prepared.call.resend = Resend::kWithinPolicy;
  wire::append_frame(prepared.call.frame, wire::RequestHeader{0, Op::kWhoAmI});
  return prepared;
}

Result<Prepared> prepare(const AddWatch& operation, const Machine& machine) {
  if (!operation.watcher) return Error(Code::kInvalidOption, "AddWatch needs a watcher");
  const auto mode = operation.mode == WatchMode::kPersistent
                        ? wire::AddWatchMode::kPersistent
                        : wire::AddWatchMode::kPersistentRecursive;
  return prepare_one(Op::kAddWatch, operation.path, wire::AddWatch{{}, mode}, machine,
                     operation.watcher);
}

Result<Prepared> prepare(const RemoveWatches& operation, const Machine& machine) {
  const auto type = operation.kind == WatchKind::kChildren ? wire::WatcherType::kChildren
                    : operation.kind == WatchKind::kData   ? wire::WatcherType::kData
                                                           : wire::WatcherType::kAny;
  auto prepared =
      prepare_one(Op::kRemoveWatches, operation.path, wire::PathWatcherType{{}, type}, machine);
  // Sent once: on a new connection the server has no watch of ours but those we restore.
  if (prepared) prepared->call.resend = Resend::kNever;
  if (prepared) prepared->call.removes = type;
  return prepared;
}

Result<void> check_credential(const Credential& credential) {
  if (credential.scheme.empty()) {
    return Error(Code::kInvalidOption, "a credential needs a scheme, such as \"digest\"");
  }
  if (credential.scheme == "digest" && credential.secret.find(':') == std::string::npos) {
    return Error(Code::kInvalidOption,
                 "a credential of the scheme \"digest\" is USER:PASSWORD, and here is no colon");
  }
  return {};
}

Result<Prepared> prepare(const Authenticate& operation, const Machine&) {
  if (auto valid = check_credential({operation.scheme, operation.secret}); !valid) {
    return valid.error();
  }
  Prepared prepared;
  prepared.call.op = Op::kAuth;
  return prepared;
}

// finish

Result<Created> finish(const Create& operation, Outcome&& outcome, const Machine& machine) {
  if (!outcome.ok) return make_error(operation, outcome);
  auto& reply = body_of<wire::Create2Reply>(outcome);
  return Created{machine.relative(reply.path), reply.stat};
}

Result<void> finish(const Remove& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  return {};
}

Result<std::optional<Stat>> finish(const Exists& operation, Outcome&& outcome, const Machine&) {
  if (outcome.ok) return std::optional<Stat>(body_of<wire::StatReply>(outcome).stat);
  if (outcome.code == Code::kNoNode) return std::optional<Stat>();
  return make_error(operation, outcome);
}

Result<Node> finish(const Get& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  auto& reply = body_of<wire::GetDataReply>(outcome);
  return Node{std::move(reply.data).value_or(std::string{}), reply.stat};
}

Result<Stat> finish(const Set& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  return Stat(body_of<wire::StatReply>(outcome).stat);
}

Result<ChildList> finish(const Children& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  auto& reply = body_of<wire::Children2Reply>(outcome);
  return ChildList{std::move(reply.children), reply.stat};
}

Result<NodeAcl> finish(const GetAcl& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  auto& reply = body_of<wire::GetAclReply>(outcome);
  return NodeAcl{from_wire(std::move(reply.acl)), reply.stat};
}

Result<Stat> finish(const SetAcl& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  return Stat(body_of<wire::StatReply>(outcome).stat);
}

Result<void> finish(const Sync& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  return {};
}

Result<void> finish(const Check& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  const auto& results = body_of<wire::MultiReply>(outcome).results;
  if (results.size() != 1) return malformed("check");
  if (const auto* error = std::get_if<wire::ErrorReply>(&results[0].body)) {
    return part_error(error->err, "check", operation.path.text());
  }
  return {};
}

Result<Multi::Outcome> finish(const Multi& operation, Outcome&& outcome, const Machine& machine) {
  if (!outcome.ok) return make_error(operation, outcome);
  auto& results = body_of<wire::MultiReply>(outcome).results;
  if (results.size() != operation.parts.size()) return malformed("multi");
  Multi::Outcome value{.committed = true, .parts = {}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    value.parts.push_back(finish_part(operation.parts[i], results[i], machine));
    if (!value.parts.back()) value.committed = false;
  }
  return value;
}

Result<MultiRead::Value> finish(const MultiRead& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  auto& results = body_of<wire::MultiReply>(outcome).results;
  if (results.size() != operation.parts.size()) return malformed("multi-read");
  MultiRead::Value value;
  for (std::size_t i = 0; i < results.size(); ++i) {
    using Read = std::variant<Node, std::vector<std::string>>;
    auto& body = results[i].body;
    const bool asked_data = std::holds_alternative<Get>(operation.parts[i]);
    auto* data = std::get_if<wire::GetDataReply>(&body);
    auto* children = std::get_if<wire::ChildrenReply>(&body);
    if (asked_data && data != nullptr) {
      value.emplace_back(Read(Node{std::move(data->data).value_or(std::string{}), data->stat}));
    } else if (!asked_data && children != nullptr) {
      value.emplace_back(Read(std::move(children->children)));
    } else {
      const auto* error = std::get_if<wire::ErrorReply>(&body);
      const std::string path =
          std::visit([](const auto& part) { return part.path.text(); }, operation.parts[i]);
      Outcome failed;
      failed.code = error == nullptr ? Code::kServerError : code_of(error->err);
      value.emplace_back(make_error("read", path, failed));
    }
  }
  return value;
}

Result<std::vector<std::string>> finish(const Ephemerals& operation, Outcome&& outcome,
                                        const Machine& machine) {
  if (!outcome.ok) return make_error(operation, outcome);
  auto& paths = body_of<wire::EphemeralsReply>(outcome).paths;
  for (std::string& path : paths) path = machine.relative(path);
  return std::move(paths);
}

Result<std::int32_t> finish(const ChildrenCount& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  return body_of<wire::ChildrenNumberReply>(outcome).count;
}

Result<std::vector<Identity>> finish(const WhoAmI& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  std::vector<Identity> identities;
  for (wire::ClientInfo& client : body_of<wire::WhoAmIReply>(outcome).clients) {
    identities.push_back({std::move(client.scheme), std::move(client.user)});
  }
  return identities;
}

Result<void> finish(const AddWatch& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  return {};
}

Result<void> finish(const RemoveWatches& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(operation, outcome);
  return {};
}

Result<void> finish(const Authenticate& operation, Outcome&& outcome, const Machine&) {
  if (!outcome.ok) return make_error(kVerb<Authenticate>, operation.scheme, outcome);
  return {};
}

}  // namespace latchkey::session
