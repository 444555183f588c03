#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey::queue {

/// What a lock with a delay keeps in its directory's data: who holds it. A holder that lets go
/// wipes it out; one that vanishes cannot, and that is how the next one knows (H73).
///
///     held 4294967321
[[nodiscard]] std::string format_holder(std::int64_t czxid);
inline constexpr std::string_view kNoHolder = "";

/// Has somebody before us, who are `own`, vanished without letting go? Anything we cannot read was
/// put there by another hand and says nothing.
[[nodiscard]] bool has_vanished(std::string_view data, std::int64_t own);

}  // namespace latchkey::queue
