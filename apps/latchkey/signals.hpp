#pragma once

namespace latchkey::app {

/// Whoever started us wants nothing to come of this signal: nohup, or a shell's background job.
[[nodiscard]] bool is_ignored(int number);

}  // namespace latchkey::app
