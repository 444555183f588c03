#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "differential/runner.hpp"
#include "differential/service_endpoint.hpp"
#include "net/sha1.hpp"

// Who may do what: every operation, under every permission that is given alone or missing alone, by
// itself and in a multi, asked of Apache and of ours.
namespace latchkey::differential {
namespace {

using wire::CreateMode;
using wire::Op;
using AclList = std::vector<wire::WireAcl>;

constexpr std::size_t kOwner = 0;
constexpr std::size_t kStranger = 1;
constexpr std::size_t kAnn = 2;
constexpr std::size_t kSuper = 3;
constexpr const char* kOwnersCredentials = "owner:pw";
constexpr const char* kAnnsCredentials = "ann:pw";

wire::WireAcl acl_entry(std::int32_t permissions, std::string scheme, std::string id) {
  wire::WireAcl acl;
  acl.permissions = permissions;
  acl.scheme = std::move(scheme);
  acl.id = std::move(id);
  return acl;
}

wire::WireAcl acl_entry(std::int32_t permissions, const std::string& credentials) {
  const std::string user = credentials.substr(0, credentials.find(':') + 1);
  return acl_entry(permissions, "digest", user + net::base64_sha1(credentials));
}

AclList open_list() { return {acl_entry(kAllPermissions, "world", "anyone")}; }

/// Whose list decides, where one does; the nodes are "/c7" and "/c7/node".
enum class Place : std::uint8_t { kNone, kParent, kNode };

/// A row of the table: what is asked about a node, and the rule for it.
struct Operation {
  std::string name;
  Place rules;
  std::int32_t needs;  ///< One of these.
  std::function<std::optional<Request>(const std::string& node)> plain;
  /// Of a multi, or of a multi-read.
  std::function<std::optional<wire::MultiOp>(const std::string& node)> part;
};

Operation reads(Op op, Place rules, std::int32_t needs, bool watch) {
  const bool has_part = op == Op::kGetData || op == Op::kGetChildren;
  return {name_of(op) + (watch ? " with a watch" : ""), rules, needs,
          [=](const std::string& node) {
            return Request{op, wire::PathWatch{node, watch}};
          },
          [=](const std::string& node) {
            return has_part ? std::optional(wire::MultiOp{op, wire::PathWatch{node, watch}})
                            : std::nullopt;
          }};
}

Operation looks(Op op, Place rules, std::int32_t needs) {
  return {name_of(op), rules, needs,
          [=](const std::string& node) {
            return Request{op, wire::PathOnly{node}};
          },
          [](const std::string&) { return std::nullopt; }};
}

template <class Make>
Operation writes(std::string name, Op op, Place rules, std::int32_t needs, Make make) {
  return {std::move(name), rules, needs,
          [=](const std::string& node) {
            return Request{op, make(node)};
          },
          [=](const std::string& node) {
            return wire::MultiOp{op, make(node)};
          }};
}

Operation creates(Op op, CreateMode mode, const std::string& name) {
  return writes(name_of(op) + name, op, Place::kNode, kCreate, [=](const std::string& node) {
    return wire::Create{node + "/new", "x", open_list(), mode};
  });
}

template <class Message>
Operation only_plain(Op op, Place rules, std::int32_t needs,
                     std::function<Message(const std::string&)> make) {
  return {name_of(op), rules, needs,
          [=](const std::string& node) {
            return Request{op, make(node)};
          },
          [](const std::string&) { return std::nullopt; }};
}

std::vector<Operation> operations() {
  std::vector<Operation> all;
  all.push_back(creates(Op::kCreate, CreateMode::kPersistent, ""));
  all.push_back(creates(Op::kCreate, CreateMode::kEphemeral, " ephemeral"));
  all.push_back(creates(Op::kCreate, CreateMode::kPersistentSequential, " sequential"));
  all.push_back(creates(Op::kCreate2, CreateMode::kPersistent, ""));
  all.push_back(creates(Op::kCreateContainer, CreateMode::kContainer, ""));
  all.push_back(writes(
      name_of(Op::kCreateTtl), Op::kCreateTtl, Place::kNode, kCreate, [](const std::string& node) {
        return wire::CreateTtl{node + "/new", "x", open_list(), CreateMode::kTtl, 1'000'000'000};
      }));
  all.push_back(writes(name_of(Op::kDelete), Op::kDelete, Place::kParent, kDelete,
                       [](const std::string& node) {
                         return wire::PathVersion{node, -1};
                       }));
  all.push_back(writes(name_of(Op::kSetData), Op::kSetData, Place::kNode, kWrite,
                       [](const std::string& node) {
                         return wire::SetData{node, "new", -1};
                       }));
  Operation check =
      writes(name_of(Op::kCheck), Op::kCheck, Place::kNode, kRead, [](const std::string& node) {
        return wire::PathVersion{node, 0};
      });
  check.plain = [](const std::string&) { return std::nullopt; };  // Apache leaves it unanswered.
  all.push_back(std::move(check));
  all.push_back(
      only_plain<wire::SetAcl>(Op::kSetAcl, Place::kNode, kAdmin, [](const std::string& node) {
        return wire::SetAcl{node, open_list(), -1};
      }));
  for (const bool watch : {false, true}) {
    all.push_back(reads(Op::kExists, Place::kNone, 0, watch));
    for (const Op op : {Op::kGetData, Op::kGetChildren, Op::kGetChildren2}) {
      all.push_back(reads(op, Place::kNode, kRead, watch));
    }
  }
  all.push_back(looks(Op::kGetAcl, Place::kNode, kRead | kAdmin));
  all.push_back(looks(Op::kGetAllChildrenNumber, Place::kNode, kRead));
  all.push_back(looks(Op::kGetEphemerals, Place::kNone, 0));
  all.push_back(looks(Op::kSync, Place::kNone, 0));
  all.push_back(
      only_plain<wire::AddWatch>(Op::kAddWatch, Place::kNone, 0, [](const std::string& node) {
        return wire::AddWatch{node, wire::AddWatchMode{}};
      }));
  all.push_back(
      only_plain<wire::SetWatches2>(Op::kSetWatches2, Place::kNone, 0, [](const std::string& node) {
        return wire::SetWatches2{0, {node}, {}, {node}};
      }));
  // No members to join or leave, and any version; refused to everybody alike.
  all.push_back(only_plain<Garbage>(Op::kReconfig, Place::kNone, 0, [](const std::string&) {
    return Garbage{std::string(3 * 4 + 8, '\xff')};
  }));
  return all;
}

/// A column: to whom a list gives what, beside its owner, and who asks.
struct Grant {
  std::string name;
  std::size_t asker;
  wire::WireAcl given;

  [[nodiscard]] bool allows(std::int32_t permissions) const {
    if (asker == kSuper) return true;
    const bool is_meant = asker == kAnn || given.scheme == "world";
    return is_meant && (given.permissions & permissions) != 0;
  }
};

std::vector<Grant> grants() {
  const std::pair<std::int32_t, const char*> kOne[] = {{kRead, "read"},
                                                       {kWrite, "write"},
                                                       {kCreate, "create"},
                                                       {kDelete, "delete"},
                                                       {kAdmin, "admin"}};
  std::vector<std::pair<std::int32_t, std::string>> sets = {{0, "nothing"},
                                                            {kAllPermissions, "everything"}};
  for (const auto& [permission, name] : kOne) {
    sets.emplace_back(permission, std::string("only ") + name);
    sets.emplace_back(kAllPermissions & ~permission, std::string("all but ") + name);
  }
  std::vector<Grant> all;
  for (const auto& [set, name] : sets) {
    all.push_back({"anyone has " + name, kStranger, acl_entry(set, "world", "anyone")});
    all.push_back({"ann has " + name, kAnn, acl_entry(set, kAnnsCredentials)});
  }
  all.push_back(
      {"another has everything", kStranger, acl_entry(kAllPermissions, kAnnsCredentials)});
  all.push_back({"super, and nobody has anything", kSuper, acl_entry(0, "world", "anyone")});
  return all;
}

/// The table as a script; what is asked in a cell stands at one step.
struct Table {
  struct Cell {
    std::string name;
    std::size_t step;
    std::size_t asker;
    bool is_allowed;
  };
  Script script;
  std::vector<Cell> cells;
  int trees = 0;

  Table() {
    log_in(kOwner, kOwnersCredentials);
    log_in(kAnn, kAnnsCredentials);
    log_in(kSuper, std::string(kSuperCredentials));
    for (const Operation& operation : operations()) {
      for (const Grant& grant : grants()) {
        for (const Place guarded : {Place::kParent, Place::kNode}) add(operation, grant, guarded);
        add_fresh(operation, grant);
      }
    }
    // What a multi that was refused has left behind.
    script.push_back({kSuper, Request{Op::kGetAllChildrenNumber, wire::PathOnly{"/"}}});
    script.push_back({kSuper, Request{Op::kGetChildren, wire::PathWatch{"/"}}});
  }

 private:
  void log_in(std::size_t actor, std::string credentials) {
    script.push_back({actor, Request{Op::kAuth, wire::AuthPacket{0, "digest", credentials}}});
  }

  static AclList list(const Grant& grant) {
    return {acl_entry(kAllPermissions, kOwnersCredentials), grant.given};
  }

  static wire::MultiOp creation(std::string path, AclList acl) {
    return {Op::kCreate, wire::Create{std::move(path), "x", std::move(acl), CreateMode{}}};
  }

  static Request together(wire::MultiOp before, wire::MultiOp part) {
    return {Op::kMulti, wire::Multi{{std::move(before), std::move(part)}}};
  }

  void ask(Request request, const Operation& operation, const Grant& grant, Place guarded,
           const std::string& how) {
    const bool is_allowed = operation.rules != guarded || grant.allows(operation.needs);
    const std::string place = guarded == Place::kParent ? "parent" : "node";
    cells.push_back({operation.name + how + ", " + grant.name + " at the " + place, script.size(),
                     grant.asker, is_allowed});
    script.push_back({grant.asker, std::move(request)});
  }

  /// The list is at the node or at its parent, and everybody may do everything at the other.
  void add(const Operation& operation, const Grant& grant, Place guarded) {
    const auto make = [&] {
      const std::string parent = "/c" + std::to_string(++trees);
      const bool at_parent = guarded == Place::kParent;
      script.push_back(
          {kOwner, together(creation(parent, at_parent ? list(grant) : open_list()),
                            creation(parent + "/node", at_parent ? open_list() : list(grant)))});
      return parent;
    };
    if (operation.plain("/")) {
      ask(*operation.plain(make() + "/node"), operation, grant, guarded, "");
    }
    if (!operation.part("/")) return;
    const std::string parent = make();
    wire::MultiOp part = *operation.part(parent + "/node");
    if (std::holds_alternative<wire::PathWatch>(part.body)) {
      ask({Op::kMultiRead, wire::Multi{{std::move(part)}}}, operation, grant, guarded,
          " in a multi-read");
    } else {
      ask(together(creation(parent + "-before", open_list()), std::move(part)), operation, grant,
          guarded, " in a multi");
    }
  }

  /// The node is made by the same multi, so that its list is in no tree yet.
  void add_fresh(const Operation& operation, const Grant& grant) {
    const std::string node = "/c" + std::to_string(++trees);
    std::optional<wire::MultiOp> part = operation.part(node);
    if (!part || std::holds_alternative<wire::PathWatch>(part->body)) return;
    ask(together(creation(node, list(grant)), std::move(*part)), operation, grant, Place::kNode,
        " in the multi that makes the node");
  }
};

std::string cell_text(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) {
    if (line.kind != Line::Kind::kPing) text += "  " + line.text + "\n";
  }
  return text;
}

Transcript only(const Transcript& transcript, std::size_t step) {
  return {{transcript.steps[step]}};
}

TEST(DifferentialPermissions, H92_EveryOperationAsksForTheSamePermissionsAsApaches) {
  const Table table;
  const auto server = server_endpoint();
  const Transcript apache = play(table.script, apache_endpoint(), Pace::kStepByStep);
  const Transcript ours = play(table.script, *server, Pace::kStepByStep);
  ASSERT_GT(table.cells.size(), 1'000U);

  for (const Table::Cell& cell : table.cells) {
    const std::string expected = cell_text(apache.steps[cell.step][cell.asker]);
    EXPECT_FALSE(compare(only(apache, cell.step), only(ours, cell.step), Grain::kSteps))
        << cell.name << "\n Apache's:\n"
        << expected << " ours:\n"
        << cell_text(ours.steps[cell.step][cell.asker]);
    EXPECT_EQ(expected.find("err=-102") == std::string::npos, cell.is_allowed)
        << cell.name << " is not as we take it to be:\n"
        << expected;
  }
  const auto difference = compare(apache, ours, Grain::kSteps);
  EXPECT_FALSE(difference) << "step " << difference->step << " "
                           << describe(table.script[difference->step]) << "\n Apache's:\n"
                           << difference->expected << " ours:\n"
                           << difference->actual;
}

}  // namespace
}  // namespace latchkey::differential
