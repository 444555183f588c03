#include "base/process.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <fstream>
#include <iterator>
#include <new>

namespace latchkey::base {
namespace {

/// A page that a forked child finds empty; none if the kernel has no such pages.
std::atomic<pid_t>* make_wiped_page() noexcept {
  const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  // Emulators have been seen to say yes to anything.
  const bool wipes = ::madvise(page, size, MADV_WIPEONFORK) == 0 && ::madvise(page, size, -1) != 0;
  if (wipes) return new (page) std::atomic<pid_t>(0);
  ::munmap(page, size);
  return nullptr;
}

/// Made before there are threads, which a fork could catch making it.
std::atomic<pid_t>* const remembered = make_wiped_page();

}  // namespace

pid_t process_id() noexcept {
  if (remembered == nullptr) return ::getpid();
  pid_t id = remembered->load(std::memory_order_relaxed);
  if (id != 0) return id;
  id = ::getpid();
  remembered->store(id, std::memory_order_relaxed);
  return id;
}

std::optional<std::uint64_t> parse_start_ticks(std::string_view stat) {
  // The second field is the program's name in parentheses, with whatever is in it.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::string_view rest = stat.substr(name_end + 1);
  constexpr int kFieldsBefore = 19;  // State up to the 21st of them all.
  for (int i = 0; i <= kFieldsBefore; ++i) {
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(space + 1);
  }
  std::uint64_t ticks = 0;
  const auto [end, error] = std::from_chars(rest.begin(), rest.end(), ticks);
  if (error != std::errc() || end == rest.begin()) return std::nullopt;
  return ticks;
}

std::optional<std::uint64_t> start_ticks(std::string_view process) {
  std::ifstream file("/proc/" + std::string(process) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return parse_start_ticks(text);
}

}  // namespace latchkey::base
