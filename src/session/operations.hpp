#pragma once

#include <string>
#include <string_view>

#include "latchkey/operations.hpp"
#include "session/machine.hpp"

/// Between the public operations (latchkey/operations.hpp) and the machine's calls: prepare()
/// checks and encodes one, finish() turns its outcome into the value or the error the user sees.
namespace latchkey::session {

/// A checked and encoded request, without deadline and completion. `watch` is not set yet: whoever
/// submits wraps the user's watcher first.
struct Prepared {
  Call call;
  Watcher watcher;
};

/// Errors: kInvalidPath, kInvalidOption.
[[nodiscard]] Result<Prepared> prepare(const Create& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const Remove& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const Exists& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const Get& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const Set& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const Children& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const GetAcl& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const SetAcl& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const Sync& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const Check& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const Multi& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const MultiRead& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const Ephemerals& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const ChildrenCount& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const WhoAmI& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const AddWatch& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const RemoveWatches& operation, const Machine& machine);
[[nodiscard]] Result<Prepared> prepare(const Authenticate& operation, const Machine& machine);

/// Could this be an identity? Errors: kInvalidOption, which does not tell the secret.
[[nodiscard]] Result<void> check_credential(const Credential& credential);

[[nodiscard]] Result<Created> finish(const Create& operation, Outcome&& outcome,
                                     const Machine& machine);
[[nodiscard]] Result<void> finish(const Remove& operation, Outcome&& outcome,
                                  const Machine& machine);
[[nodiscard]] Result<std::optional<Stat>> finish(const Exists& operation, Outcome&& outcome,
                                                 const Machine& machine);
[[nodiscard]] Result<Node> finish(const Get& operation, Outcome&& outcome, const Machine& machine);
[[nodiscard]] Result<Stat> finish(const Set& operation, Outcome&& outcome, const Machine& machine);
[[nodiscard]] Result<ChildList> finish(const Children& operation, Outcome&& outcome,
                                       const Machine& machine);
[[nodiscard]] Result<NodeAcl> finish(const GetAcl& operation, Outcome&& outcome,
                                     const Machine& machine);
[[nodiscard]] Result<Stat> finish(const SetAcl& operation, Outcome&& outcome,
                                  const Machine& machine);
[[nodiscard]] Result<void> finish(const Sync& operation, Outcome&& outcome, const Machine& machine);
[[nodiscard]] Result<void> finish(const Check& operation, Outcome&& outcome,
                                  const Machine& machine);
[[nodiscard]] Result<Multi::Outcome> finish(const Multi& operation, Outcome&& outcome,
                                            const Machine& machine);
[[nodiscard]] Result<MultiRead::Value> finish(const MultiRead& operation, Outcome&& outcome,
                                              const Machine& machine);
[[nodiscard]] Result<std::vector<std::string>> finish(const Ephemerals& operation,
                                                      Outcome&& outcome, const Machine& machine);
[[nodiscard]] Result<std::int32_t> finish(const ChildrenCount& operation, Outcome&& outcome,
                                          const Machine& machine);
[[nodiscard]] Result<std::vector<Identity>> finish(const WhoAmI& operation, Outcome&& outcome,
                                                   const Machine& machine);
[[nodiscard]] Result<void> finish(const AddWatch& operation, Outcome&& outcome,
                                  const Machine& machine);
[[nodiscard]] Result<void> finish(const RemoveWatches& operation, Outcome&& outcome,
                                  const Machine& machine);
[[nodiscard]] Result<void> finish(const Authenticate& operation, Outcome&& outcome,
                                  const Machine& machine);

/// "get /config: no such node", with the effect and whatever detail the outcome has.
[[nodiscard]] Error make_error(std::string_view verb, const std::string& path,
                               const Outcome& outcome);

[[nodiscard]] std::vector<wire::WireAcl> to_wire(const std::vector<Acl>& acl);

/// The user-facing word for an operation, and its path, for messages and reports.
template <class Operation>
inline constexpr std::string_view kVerb;
template <>
inline constexpr std::string_view kVerb<Create> = "create";
template <>
inline constexpr std::string_view kVerb<Remove> = "remove";
template <>
inline constexpr std::string_view kVerb<Exists> = "exists";
template <>
inline constexpr std::string_view kVerb<Get> = "get";
template <>
inline constexpr std::string_view kVerb<Set> = "set";
template <>
inline constexpr std::string_view kVerb<Children> = "children";
template <>
inline constexpr std::string_view kVerb<GetAcl> = "get ACL";
template <>
inline constexpr std::string_view kVerb<SetAcl> = "set ACL";
template <>
inline constexpr std::string_view kVerb<Sync> = "sync";
template <>
inline constexpr std::string_view kVerb<Check> = "check";
template <>
inline constexpr std::string_view kVerb<Multi> = "multi";
template <>
inline constexpr std::string_view kVerb<MultiRead> = "multi-read";
template <>
inline constexpr std::string_view kVerb<Ephemerals> = "ephemerals";
template <>
inline constexpr std::string_view kVerb<ChildrenCount> = "children count";
template <>
inline constexpr std::string_view kVerb<WhoAmI> = "who am I";
template <>
inline constexpr std::string_view kVerb<AddWatch> = "add watch";
template <>
inline constexpr std::string_view kVerb<RemoveWatches> = "remove watches";
template <>
inline constexpr std::string_view kVerb<Authenticate> = "authenticate";

template <class Operation>
[[nodiscard]] std::string path_text(const Operation& operation) {
  if constexpr (requires { operation.path; }) {
    return operation.path.text();
  } else if constexpr (requires { operation.below; }) {
    return operation.below.text();
  } else {
    return {};
  }
}

template <class Operation>
[[nodiscard]] Error make_error(const Operation& operation, const Outcome& outcome) {
  return make_error(kVerb<Operation>, path_text(operation), outcome);
}

}  // namespace latchkey::session
