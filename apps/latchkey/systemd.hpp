#pragma once

#include <string_view>
#include <vector>

namespace latchkey::app {

/// Tells systemd how the service is doing, for example "READY=1"; does nothing if systemd did not
/// ask for it.
void notify_systemd(std::string_view state);

/// The listening sockets systemd has handed to this process; each is given out once.
[[nodiscard]] std::vector<int> take_systemd_sockets();

}  // namespace latchkey::app
