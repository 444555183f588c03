#include "server/bond.hpp"

#include "base/process.hpp"

namespace latchkey::server {

bool is_bound(std::int32_t asked, const Evidence& evidence) {
  if (asked == 0 || evidence.pid <= 0 || !evidence.is_watched || !evidence.start_ticks) {
    return false;
  }
  return asked == base::process_mark(evidence.pid, *evidence.start_ticks);
}

}  // namespace latchkey::server
