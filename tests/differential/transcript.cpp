#include "differential/transcript.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace latchkey::differential {
namespace {

using wire::Err;
using wire::Op;

std::string sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string text = "{";
  for (const std::string& name : names) text += printable(name) + " ";
  return text + "}";
}

const std::string& path_of(const Body& body) {
  static const std::string kNone = "?";
  return std::visit(
      [](const auto& request) -> const std::string& {
        if constexpr (requires { request.path; }) {
          return request.path;
        } else {
          return kNone;
        }
      },
      body);
}

/// `auth` becomes the identities of the client in any order.
std::string sorted(std::vector<wire::WireAcl> acl) {
  std::sort(acl.begin(), acl.end(), [](const wire::WireAcl& a, const wire::WireAcl& b) {
    return std::tie(a.scheme, a.id, a.permissions) < std::tie(b.scheme, b.id, b.permissions);
  });
  return printable(acl);
}

std::string text_of(std::size_t actor, const std::vector<Line>& lines) {
  std::string text = "    actor " + std::to_string(actor) + "\n";
  for (const Line& line : lines) text += "      " + line.text + "\n";
  return lines.empty() ? text + "      nothing\n" : text;
}

bool equal(const Line& apache, const Line& ours) {
  if (apache.text == ours.text) return true;
  const auto& known = known_differences();
  return std::any_of(known.begin(), known.end(), [&](const KnownDifference& difference) {
    return difference.accepts != nullptr && difference.accepts(apache, ours);
  });
}

bool equal(const std::vector<Line>& apache, const std::vector<Line>& ours) {
  return std::equal(apache.begin(), apache.end(), ours.begin(), ours.end(),
                    [](const Line& a, const Line& b) { return equal(a, b); });
}

std::vector<Line> stream_of(const Transcript& transcript, std::size_t actor) {
  std::vector<Line> stream;
  for (const Transcript::Lines& lines : transcript.steps) {
    std::copy_if(lines[actor].begin(), lines[actor].end(), std::back_inserter(stream),
                 [](const Line& line) { return line.kind != Line::Kind::kPing; });
  }
  return stream;
}

std::optional<Difference> compare_streams(const Transcript& apache, const Transcript& ours) {
  std::optional<Difference> first;
  for (std::size_t actor = 0; actor < kActors; ++actor) {
    const std::vector<Line> expected = stream_of(apache, actor);
    const std::vector<Line> actual = stream_of(ours, actor);
    const auto [a, b] =
        std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end(),
                      [](const Line& x, const Line& y) { return equal(x, y); });
    if (a == expected.end() && b == actual.end()) continue;
    const std::size_t step = a != expected.end() ? a->step : b->step;
    if (first && first->step <= step) continue;
    const auto rest = [&](auto from, auto end) {
      return text_of(actor, {from, from + std::min<std::ptrdiff_t>(3, end - from)});
    };
    first = Difference{step, rest(a, expected.end()), rest(b, actual.end())};
  }
  return first;
}

}  // namespace

std::string Names::session(std::int64_t id) const {
  if (id == 0) return "-";
  const auto it = sessions_.find(id);
  return it != sessions_.end() ? it->second : "a session of nobody";
}

std::string Names::zxid(std::int64_t zxid) const {
  if (zxid == -1 || zxid == 0) return std::to_string(zxid);
  return zxid <= base_ ? "old" : "+" + std::to_string(zxid - base_);
}

std::string Names::stat(const std::string& path, const wire::WireStat& stat) const {
  wire::WireStat start;
  const auto system = system_.find(path.empty() ? "/" : path);
  const bool is_system = system != system_.end();
  if (is_system) start = system->second;
  const auto since = [this](std::int64_t zxid) { return zxid <= base_ ? "old" : this->zxid(zxid); };
  std::string text =
      "czxid=" + since(stat.czxid) + " mzxid=" + since(stat.mzxid) + " pzxid=" + since(stat.pzxid) +
      " version=" + std::to_string(stat.version - start.version) +
      " cversion=" + std::to_string(stat.cversion - start.cversion) +
      " aversion=" + std::to_string(stat.aversion - start.aversion) +
      " owner=" + session(stat.ephemeral_owner) + " length=" + std::to_string(stat.data_length) +
      " children=" + std::to_string(stat.num_children);
  if (!is_system && stat.mzxid == stat.czxid) {
    text += stat.ctime_ms == stat.mtime_ms ? " untouched" : " mtime differs from ctime";
  }
  return text;
}

std::string Names::reply(const Request& request, const wire::ReplyHeader& header,
                         std::string_view body) const {
  std::string text = name_of(request.op) + " xid=" + std::to_string(header.xid) +
                     " zxid=" + zxid(header.zxid) +
                     " err=" + std::to_string(static_cast<int>(header.err));
  if (body.empty()) return text;
  std::optional<std::string> rest;
  if (header.err == Err::kOk) rest = reply_body(request, body);
  return text + " " + (rest ? *rest : "unexpected body " + printable(body));
}

std::optional<std::string> Names::reply_body(const Request& request, std::string_view body) const {
  const std::string& path = path_of(request.body);
  switch (request.op) {
    case Op::kCreate:
      if (const auto r = wire::decode<wire::CreateReply>(body)) return printable(r->path);
      break;
    case Op::kCreate2:
    case Op::kCreateContainer:
    case Op::kCreateTtl:
      if (const auto r = wire::decode<wire::Create2Reply>(body)) {
        return printable(r->path) + " " + stat(r->path, r->stat);
      }
      break;
    case Op::kExists:
    case Op::kSetData:
    case Op::kSetAcl:
    case Op::kCheck:
      if (const auto r = wire::decode<wire::StatReply>(body)) return stat(path, r->stat);
      break;
    case Op::kGetData:
      if (const auto r = wire::decode<wire::GetDataReply>(body)) {
        return or_null(r->data) + " " + stat(path, r->stat);
      }
      break;
    case Op::kGetAcl:
      if (const auto r = wire::decode<wire::GetAclReply>(body)) {
        return sorted(r->acl) + " " + stat(path, r->stat);
      }
      break;
    case Op::kGetChildren:
      if (const auto r = wire::decode<wire::ChildrenReply>(body)) return sorted(r->children);
      break;
    case Op::kGetChildren2:
      if (const auto r = wire::decode<wire::Children2Reply>(body)) {
        return sorted(r->children) + " " + stat(path, r->stat);
      }
      break;
    case Op::kSync:
      if (const auto r = wire::decode<wire::SyncReply>(body)) return printable(r->path);
      break;
    case Op::kGetEphemerals:
      if (const auto r = wire::decode<wire::EphemeralsReply>(body)) return sorted(r->paths);
      break;
    case Op::kGetAllChildrenNumber:
      if (const auto r = wire::decode<wire::ChildrenNumberReply>(body)) {
        return std::to_string(r->count);
      }
      break;
    case Op::kWhoAmI:
      if (const auto r = wire::decode<wire::WhoAmIReply>(body)) {
        std::vector<std::string> names;
        for (const wire::ClientInfo& client : r->clients) {
          names.push_back(client.scheme + ":" + client.user);
        }
        return sorted(std::move(names));
      }
      break;
    case Op::kMulti:
    case Op::kMultiRead: return multi_body(request, body);
    default: return printable(body);
  }
  return std::nullopt;
}

std::optional<std::string> Names::multi_body(const Request& request, std::string_view body) const {
  const auto reply = wire::decode<wire::MultiReply>(body);
  const auto* multi = std::get_if<wire::Multi>(&request.body);
  if (!reply || multi == nullptr) return std::nullopt;
  std::string text;
  for (std::size_t i = 0; i < reply->results.size(); ++i) {
    const wire::MultiResult& result = reply->results[i];
    std::string path;
    if (i < multi->ops.size()) {
      const auto find = [](const auto& part) { return part.path; };
      path = std::visit(find, multi->ops[i].body);
    }
    text += "| " + name_of(result.op);
    if (const auto* error = std::get_if<wire::ErrorReply>(&result.body)) {
      text += " err=" + std::to_string(static_cast<int>(error->err));
    } else if (const auto* made = std::get_if<wire::CreateReply>(&result.body)) {
      text += " " + printable(made->path);
    } else if (const auto* made2 = std::get_if<wire::Create2Reply>(&result.body)) {
      text += " " + printable(made2->path) + " " + stat(made2->path, made2->stat);
    } else if (const auto* set = std::get_if<wire::StatReply>(&result.body)) {
      text += " " + stat(path, set->stat);
    } else if (const auto* data = std::get_if<wire::GetDataReply>(&result.body)) {
      text += " " + or_null(data->data) + " " + stat(path, data->stat);
    } else if (const auto* children = std::get_if<wire::ChildrenReply>(&result.body)) {
      text += " " + sorted(children->children);
    }
  }
  return text;
}

std::optional<Difference> compare(const Transcript& apache, const Transcript& ours, Grain grain) {
  if (grain == Grain::kStreams) return compare_streams(apache, ours);
  for (std::size_t step = 0; step < apache.steps.size(); ++step) {
    Difference difference{step, {}, {}};
    for (std::size_t actor = 0; actor < kActors; ++actor) {
      const std::vector<Line>& expected = apache.steps[step][actor];
      const std::vector<Line>& actual = ours.steps[step][actor];
      if (equal(expected, actual)) continue;
      difference.expected += text_of(actor, expected);
      difference.actual += text_of(actor, actual);
    }
    if (!difference.expected.empty()) return difference;
  }
  return std::nullopt;
}

}  // namespace latchkey::differential
