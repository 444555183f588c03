#include "storage/epoch.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "storage/checksum.hpp"

namespace latchkey::storage {
namespace {

constexpr std::string_view kPrefix = "epoch ";

/// "epoch 7 3f...\n": the number and a checksum.
std::string text_of(std::int64_t epoch) {
  const std::string text = std::string(kPrefix) + std::to_string(epoch);
  char sum[16];
  const auto end = std::to_chars(sum, std::end(sum), checksum(text, 0), 16).ptr;
  return text + " " + std::string(sum, end) + "\n";
}

}  // namespace

Result<std::optional<std::int64_t>> read_epoch(Files& files) {
  const auto names = files.list();
  if (!names) return names.error();
  if (std::ranges::find(*names, kEpochName) == names->end()) return std::optional<std::int64_t>();
  auto file = files.open(kEpochName, Access::kRead);
  if (!file) return file.error();
  std::string text(64, '\0');
  const auto got = (*file)->read(text.data(), text.size(), 0);
  if (!got) return got.error();
  text.resize(*got);
  std::int64_t epoch = 0;
  if (text.starts_with(kPrefix)) {
    std::from_chars(text.data() + kPrefix.size(), text.data() + text.size(), epoch);
  }
  if (epoch <= 0 || text != text_of(epoch)) {
    return Error{Code::kDamaged,
                 files.path_of(kEpochName) +
                     ": the file is not whole, at offset 0. Restore it from a copy of the folder, "
                     "or remove it: while the journal is whole, nothing is lost with it"};
  }
  return std::optional(epoch);
}

Result<void> write_epoch(Files& files, std::int64_t epoch) {
  auto file = files.open(kHalfEpochName, Access::kCreate);
  if (!file) return file.error();
  if (auto written = (*file)->write(text_of(epoch), 0); !written) return written;
  if (auto synced = (*file)->sync(); !synced) return synced;
  if (auto named = files.rename(kHalfEpochName, kEpochName); !named) return named;
  return files.sync_folder();
}

}  // namespace latchkey::storage
