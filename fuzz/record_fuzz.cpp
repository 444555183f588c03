// What stands in a journal and in a snapshot once checksums are right: any bytes as records and as
// items. They are refused, or make a tree that can be saved and loaded again. Input: pieces, each
// with a byte for what it is and two for its length.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "tree/record.hpp"
#include "tree/tree.hpp"

namespace latchkey::tree {
namespace {

void require(bool it_holds) {
  if (!it_holds) std::abort();
}

std::string saved(const Tree& tree) {
  std::string bytes;
  tree.save([&](std::string_view item) { bytes += item; });
  return bytes;
}

void read_record(std::string_view bytes) {
  const auto record = decode_record(7, bytes);
  if (record) require(decode_record(7, encode(*record)) == record);
}

/// The same tree, out of its own snapshot.
void check_snapshot(const Tree& tree) {
  Tree other;
  bool loads = true;
  tree.save([&](std::string_view item) { loads = loads && other.load(item).has_value(); });
  require(loads && saved(other) == saved(tree));
  require(other.nodes().bytes() == tree.nodes().bytes());
}

void read(std::string_view input) {
  auto tree = std::make_unique<Tree>();
  bool is_whole = true;
  for (std::int64_t zxid = 1; input.size() > 3; ++zxid) {
    const auto kind = static_cast<unsigned char>(input[0]);
    const std::size_t wanted =
        static_cast<unsigned char>(input[1]) * 256U + static_cast<unsigned char>(input[2]);
    input.remove_prefix(3);
    const std::string_view piece = input.substr(0, wanted);
    input.remove_prefix(piece.size());
    read_record(piece);
    // What a refused piece has left behind is thrown away by whoever loads, as here.
    const bool is_item = kind % 2 == 1;
    is_whole = is_item ? tree->load(piece).has_value() : tree->replay(zxid, piece).has_value();
    if (!is_whole) tree = std::make_unique<Tree>();
  }
  check_snapshot(*tree);
}

}  // namespace
}  // namespace latchkey::tree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  latchkey::tree::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
