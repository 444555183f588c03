#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tree/tree.hpp"

namespace latchkey::tree {

/// Is it a request that changes nothing: a read, or one about the connection's own watches?
[[nodiscard]] bool is_read(wire::Op op);

/// What came of a read. The notices are for the connection itself and leave first.
struct ReadAnswer {
  wire::Err err = wire::Err::kOk;
  std::string body;  ///< Of the reply; empty with an error.
  std::vector<Notice> notices;
};

/// Carries out one request for which is_read() is true on what `tree` has applied. `body` is the
/// request without its header; an answer of many names or of several reads that would take more
/// than `most_bytes` is refused before it is built.
[[nodiscard]] ReadAnswer answer_read(Tree& tree, const Caller& caller, PeerId peer, wire::Op op,
                                     std::string_view body, std::size_t most_bytes);

/// What the answer to such a request will take, about, if nobody but those whose decisions are on
/// their way changes anything: for deciding whether more may be asked before it is taken.
/// Permissions that have to be looked at count as well: that takes time, if not memory.
[[nodiscard]] std::size_t expected_size(const Tree& tree, const Caller& caller, wire::Op op,
                                        std::string_view body);

}  // namespace latchkey::tree
