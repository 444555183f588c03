#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/status.hpp"

namespace latchkey::server {

/// The server's numbers in Prometheus' text format, version 0.0.4.
[[nodiscard]] std::string exposition(const Status& status);

/// The answer to an HTTP request, once enough of it is there: GET /metrics gets the exposition, and
/// whatever else an error. Nothing: more of it is to come.
[[nodiscard]] std::optional<std::string> answer_scrape(std::string_view request,
                                                       const Status& status);

}  // namespace latchkey::server
