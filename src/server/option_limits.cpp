#include "server/option_limits.hpp"

#include <string>

namespace latchkey::server {
namespace {

Error refused(std::string text) { return Error(Code::kInvalidOption, std::move(text)); }

std::string shown(std::size_t count) { return std::to_string(count); }
std::string shown(std::chrono::milliseconds time) { return std::to_string(time.count()) + " ms"; }

template <class Value>
std::string named(std::string_view name, Value value) {
  return std::string(name) + " (" + shown(value) + ")";
}

template <class Value>
Result<void> check_one(std::string_view name, Value value, Value least, Value most, Value usual) {
  if (value >= least && value <= most) return {};
  const std::string advice = value < least ? " is too small: choose at least " + shown(least)
                                           : " is too large: choose at most " + shown(most);
  return refused(named(name, value) + advice + "; the default is " + shown(usual));
}

/// One of two options is for a part of what the other one is for.
template <class Value>
Result<void> check_order(std::string_view part, Value of_part, std::string_view whole,
                         Value of_whole) {
  if (of_part <= of_whole) return {};
  return refused(named(whole, of_whole) + " is less than " + named(part, of_part) +
                 ": raise the first, or lower the second");
}

}  // namespace

Result<void> check_limits(const ServerOptions& options) {
  static const ServerOptions kUsual;
  for (const CountLimit& limit : kCountLimits) {
    const Result<void> checked =
        check_one(limit.name, options.*limit.count, limit.least, limit.most, kUsual.*limit.count);
    if (!checked) return checked;
  }
  for (const TimeLimit& limit : kTimeLimits) {
    const Result<void> checked =
        check_one(limit.name, options.*limit.time, limit.least, limit.most, kUsual.*limit.time);
    if (!checked) return checked;
  }
  if (Result<void> checked = check_order("min_session_timeout", options.min_session_timeout,
                                         "max_session_timeout", options.max_session_timeout);
      !checked) {
    return checked;
  }
  if (Result<void> checked =
          check_order("max_output_per_connection", options.max_output_per_connection,
                      "max_buffered", options.max_buffered);
      !checked) {
    return checked;
  }
  return check_order("max_frame", options.max_frame, "max_buffered", options.max_buffered);
}

}  // namespace latchkey::server
