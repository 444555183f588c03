// Feeds one stream to two splitters, whole and in pieces, and requires the same frames and the same
// end from both. Input: a byte for the limit, a byte for how many piece sizes follow, the sizes
// (used in turn, over and over), then the stream.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "wire/frame.hpp"

namespace latchkey::wire {
namespace {

struct Cut {
  std::vector<std::string> frames;
  bool broken = false;
  friend bool operator==(const Cut&, const Cut&) = default;
};

void drain(FrameSplitter& splitter, Cut& cut) {
  while (const auto frame = splitter.next()) cut.frames.emplace_back(*frame);
  cut.broken = splitter.broken();
}

Cut split_whole(std::string_view stream, std::size_t limit) {
  FrameSplitter splitter(limit);
  Cut cut;
  splitter.feed(stream);
  drain(splitter, cut);
  return cut;
}

/// An odd size takes out one frame only after its piece, as a reader under pressure would.
Cut split_pieces(std::string_view stream, std::size_t limit, std::string_view sizes) {
  FrameSplitter splitter(limit);
  Cut cut;
  for (std::size_t turn = 0; !stream.empty(); ++turn) {
    const auto size = static_cast<unsigned char>(sizes[turn % sizes.size()]);
    const std::size_t taken = std::min<std::size_t>(std::max<std::size_t>(size, 1), stream.size());
    splitter.feed(stream.substr(0, taken));
    stream.remove_prefix(taken);
    if (size % 2 == 0) {
      drain(splitter, cut);
    } else if (const auto frame = splitter.next()) {
      cut.frames.emplace_back(*frame);
    }
  }
  drain(splitter, cut);
  return cut;
}

/// What a splitter has to do, said without buffers.
Cut split_by_hand(std::string_view stream, std::size_t limit) {
  Cut cut;
  while (stream.size() >= 4) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i)
      length = length << 8U | static_cast<unsigned char>(stream[i]);
    if (length > limit) {
      cut.broken = true;
      break;
    }
    if (stream.size() - 4 < length) break;
    cut.frames.emplace_back(stream.substr(4, length));
    stream.remove_prefix(4 + length);
  }
  return cut;
}

void require(bool condition) {
  if (!condition) std::abort();
}

void check(std::string_view input) {
  if (input.size() < 3) return;
  const std::size_t limit = std::size_t{static_cast<unsigned char>(input[0])} * 16;
  const std::size_t count = std::size_t{static_cast<unsigned char>(input[1])} % 16 + 1;
  input.remove_prefix(2);
  if (input.size() < count) return;
  const std::string_view sizes = input.substr(0, count);
  const std::string_view stream = input.substr(count);

  const Cut expected = split_by_hand(stream, limit);

  require(split_whole(stream, limit) == expected);
  require(split_pieces(stream, limit, sizes) == expected);
}

}  // namespace
}  // namespace latchkey::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  latchkey::wire::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
