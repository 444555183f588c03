#include "recipes/answer.hpp"

#include <variant>

#include "base/last_slash.hpp"
#include "session/operations.hpp"

namespace latchkey::recipes {

using queue::Answer;

Answer answer_of(const session::Outcome& outcome) {
  if (outcome.ok) return {};
  // A session that moved is re-attached by the machine; the request may be asked again there, after
  // a look at what became of it.
  const bool ambiguous = outcome.effect == Effect::kUnknown ||
                         outcome.code == Code::kConnectionLoss ||
                         outcome.code == Code::kSessionMoved;
  const bool over = is_session_over(outcome.code);
  return {ambiguous && !over ? Answer::Kind::kAmbiguous : Answer::Kind::kNo, outcome.code};
}

Answer answer_of_multi(const session::Outcome& outcome, std::size_t parts, std::size_t* culprit) {
  if (!outcome.ok) return answer_of(outcome);
  const auto* reply = std::get_if<wire::MultiReply>(&outcome.reply);
  if (!reply || reply->results.size() != parts) {
    return {Answer::Kind::kAmbiguous, Code::kServerError};
  }
  bool failed = false;
  for (std::size_t i = 0; i < parts; ++i) {
    const auto* error = std::get_if<wire::ErrorReply>(&reply->results[i].body);
    failed = failed || error;
    // In a failed multi 0 stands before the culprit and -2 after it.
    if (!error || error->err == wire::Err::kOk || error->err == wire::Err::kRuntimeInconsistency) {
      continue;
    }
    if (culprit) *culprit = i;
    return {Answer::Kind::kNo, session::code_of(error->err)};
  }
  if (!failed) return {};
  return {Answer::Kind::kNo, Code::kRolledBack};
}

std::vector<std::string> names_made(const session::Outcome& outcome) {
  std::vector<std::string> names;
  const auto* reply = std::get_if<wire::MultiReply>(&outcome.reply);
  if (!reply) return names;
  for (const wire::MultiResult& result : reply->results) {
    if (const auto* made = std::get_if<wire::CreateReply>(&result.body)) {
      names.emplace_back(last_part(made->path));
    } else if (const auto* too = std::get_if<wire::Create2Reply>(&result.body)) {
      names.emplace_back(last_part(too->path));
    }
  }
  return names;
}

Error lock_error(const std::string& path, Code code, const std::string& why) {
  if (code == Code::kTimedOut && !why.empty()) {
    return Error(code, "lock " + path + ": not granted by the deadline (" + why + ")");
  }
  session::Outcome outcome;
  outcome.code = code;
  outcome.detail = why;
  return session::make_error("lock", path, outcome);
}

std::string_view last_part(std::string_view path) {
  return path.substr(base::last_slash(path) + 1);
}

}  // namespace latchkey::recipes
