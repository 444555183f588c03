#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace latchkey::wire {

/// Bytes that may be null, which ZooKeeper tells apart from empty.
using Buffer = std::optional<std::string>;

/// A message names its fields once, in wire order; Writer and Reader walk that list:
///
///     struct Delete {
///       std::string path;
///       std::int32_t version = -1;
///       template <class Self, class Archive>
///       static void fields(Self& self, Archive& archive) { archive(self.path, self.version); }
///     };
template <class T, class Archive>
concept Message = requires(T& message, Archive& archive) {
  T::fields(message, archive);
};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

/// Appends values in Jute's encoding (big-endian, length-prefixed) to a string it does not own.
/// Thread safety: one thread at a time.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }

 private:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      out_.push_back(value ? '\1' : '\0');
    } else if constexpr (std::is_enum_v<T>) {
      put(static_cast<std::int32_t>(value));
    } else if constexpr (std::is_integral_v<T>) {
      static_assert(sizeof(T) == 4 || sizeof(T) == 8);
      put_integer(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      put_bytes(value);
    } else if constexpr (std::is_same_v<T, Buffer>) {
      if (value) {
        put_bytes(*value);
      } else {
        put_integer(std::int32_t{-1});
      }
    } else if constexpr (IsVector<T>::value) {
      put_integer(static_cast<std::int32_t>(value.size()));
      for (const auto& item : value) put(item);
    } else {
      T::fields(value, *this);
    }
  }

  template <class Integer>
  void put_integer(Integer value) {
    static_assert(std::endian::native == std::endian::little);
    std::conditional_t<sizeof(Integer) == 4, std::uint32_t, std::uint64_t> swapped = 0;
    if constexpr (sizeof(Integer) == 4) {
      swapped = __builtin_bswap32(static_cast<std::uint32_t>(value));
    } else {
      swapped = __builtin_bswap64(static_cast<std::uint64_t>(value));
    }
    out_.append(reinterpret_cast<const char*>(&swapped), sizeof swapped);
  }

  void put_bytes(std::string_view bytes) {
    put_integer(static_cast<std::int32_t>(bytes.size()));
    out_.append(bytes);
  }

  std::string& out_;
};

/// Reads what Writer writes, from a peer that is not trusted: every length and count is checked
/// against the bytes that are left before anything is allocated. After the first fault `ok()` is
/// false, every further value comes back empty, and nothing more is read.
/// Thread safety: one thread at a time.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
  }

  [[nodiscard]] bool ok() const { return ok_; }
  /// No fault so far and nothing left over.
  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }
  void fail() {
    ok_ = false;
    rest_ = {};
  }

 private:
  template <class T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      const std::string_view byte = take(1);
      value = ok_ && byte[0] != '\0';
    } else if constexpr (std::is_enum_v<T>) {
      std::int32_t number = 0;
      get_integer(number);
      value = static_cast<T>(number);
    } else if constexpr (std::is_integral_v<T>) {
      get_integer(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      Buffer buffer;
      get_bytes(buffer);
      value = std::move(buffer).value_or(std::string{});
    } else if constexpr (std::is_same_v<T, Buffer>) {
      get_bytes(value);
    } else if constexpr (IsVector<T>::value) {
      get_vector(value);
    } else {
      T::fields(value, *this);
    }
  }

  template <class Integer>
  void get_integer(Integer& value) {
    static_assert(sizeof(Integer) == 4 || sizeof(Integer) == 8);
    const std::string_view bytes = take(sizeof value);
    value = 0;
    if (!ok_) return;
    if constexpr (sizeof(Integer) == 4) {
      std::uint32_t raw = 0;
      std::memcpy(&raw, bytes.data(), sizeof raw);
      value = static_cast<Integer>(__builtin_bswap32(raw));
    } else {
      std::uint64_t raw = 0;
      std::memcpy(&raw, bytes.data(), sizeof raw);
      value = static_cast<Integer>(__builtin_bswap64(raw));
    }
  }

  void get_bytes(Buffer& buffer) {
    std::int32_t length = 0;
    get_integer(length);
    buffer.reset();
    if (!ok_ || length == -1) return;
    if (length < 0 || static_cast<std::size_t>(length) > rest_.size()) return fail();
    buffer.emplace(take(static_cast<std::size_t>(length)));
  }

  template <class Item>
  void get_vector(std::vector<Item>& items) {
    std::int32_t count = 0;
    get_integer(count);
    items.clear();
    if (!ok_ || count == -1) return;
    // Every item takes at least four bytes, so a count beyond this cannot be honest.
    if (count < 0 || static_cast<std::size_t>(count) > rest_.size() / 4) return fail();
    items.reserve(static_cast<std::size_t>(count));
    for (std::int32_t i = 0; i < count && ok_; ++i) get(items.emplace_back());
  }

  std::string_view take(std::size_t size) {
    if (size > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace latchkey::wire
