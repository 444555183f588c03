// Text that people and programs write: paths, connect strings, times, counts, configuration files,
// permissions and admin words. Whatever it is, it is read or refused, and what is read keeps what
// its header promises.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/path.hpp"
#include "server/status_rig.hpp"
#include "server/words.hpp"
#include "session/connect_string.hpp"
#include "tree/acl.hpp"
#include "values.hpp"

namespace latchkey {
namespace {

void require(bool it_holds) {
  if (!it_holds) std::abort();
}

void read_path(const std::string& text) {
  const Path path(text);
  require(path.is_valid() == path.check().has_value());
  require(path.text() == text);
  if (!path.is_valid()) return;
  require(text.front() == '/' && (text.size() == 1 || text.back() != '/'));
  for (const char* const wrong : {"//", "/./", "/../"}) {
    require(text.find(wrong) == std::string::npos);
  }
}

void read_connect_string(const std::string& text) {
  const auto read = session::parse_connect_string(text);
  if (!read) return;
  require(!read->endpoints.empty());
  require(read->chroot.empty() || (Path(read->chroot).is_valid() && read->chroot != "/"));
  std::string written;
  for (const session::Endpoint& endpoint : read->endpoints) {
    require(endpoint.socket_path.empty() != endpoint.host.empty());
    // A host of that name cannot be written with a port.
    if (endpoint.host == "unix") return;
    written += (written.empty() ? "" : ",") + to_string(endpoint);
  }
  const auto again = session::parse_connect_string(written + read->chroot);
  require(again && again->endpoints == read->endpoints && again->chroot == read->chroot);
}

void read_values(const std::string& text) {
  constexpr std::int64_t kDay = std::int64_t{24} * 60 * 60 * 1'000;
  if (const auto time = app::parse_duration(text)) require(*time >= 1 && *time <= 24 * kDay);
  if (const auto time = app::parse_duration_or_zero(text)) require(*time >= 0);
  if (const auto count = app::parse_count(text, 3, 5'000)) require(*count >= 3 && *count <= 5'000);
  if (const auto number = app::parse_number(text, -2, 7)) require(*number >= -2 && *number <= 7);
  static_cast<void>(app::parse_bool(text));
  static_cast<void>(app::closest(text.substr(0, 100), {"listen", "data", "memory"}));
  const auto settings = app::parse_settings(text);
  if (!settings) return;
  int line = 0;
  for (const app::Setting& setting : *settings) {
    require(setting.line > line && !setting.name.empty());
    line = setting.line;
  }
}

/// Lines of "scheme:id".
tree::AclList list_of(std::string_view text) {
  tree::AclList list;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t colon = std::min(line.find(':'), line.size());
    list.push_back({static_cast<std::int32_t>(list.size()), std::string(line.substr(0, colon)),
                    std::string(line.substr(std::min(line.size(), colon + 1)))});
  }
  return list;
}

void read_permissions(const std::string& text) {
  const std::vector<tree::Identity> somebody = {{"digest", "u:hash"}, {"ip", "10.0.0.1"}};
  const auto settled = tree::settle(list_of(text), somebody);
  if (!settled) return;
  require(!settled->empty());
  // What is stored is a list that could have been asked for.
  require(tree::settle(*settled, {}) == settled);
  require(tree::masked(*settled).size() == settled->size());
  static_cast<void>(tree::permits(*settled, 1, somebody));
}

void read_words(const std::string& text) {
  static server::StatusRig rig;
  const auto& known = server::known_words();
  if (const auto words = server::settle_words({text})) {
    for (const std::string& word : *words) require(std::ranges::find(known, word) != known.end());
  }
  const std::string word = text.substr(0, 4);
  const bool is_known = std::ranges::find(known, word) != known.end();
  require(!is_known || server::answer_word(word, rig.status()).has_value());
  static_cast<void>(server::answer_word(word, rig.status()));
}

}  // namespace
}  // namespace latchkey

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  latchkey::read_path(text);
  latchkey::read_connect_string(text);
  latchkey::read_values(text);
  latchkey::read_permissions(text);
  latchkey::read_words(text);
  return 0;
}
