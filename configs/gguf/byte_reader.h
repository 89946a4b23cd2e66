// SPDX-License-Identifier: Apache-2.0
// Reads little-endian values one after the other out of bytes that nobody vouches for.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::config {

static_assert(std::endian::native == std::endian::little, "values are copied as they stand in the file");

class ByteReader {
 public:
  ByteReader(std::string_view file, std::span<const std::byte> bytes) : file_(file), bytes_(bytes) {}

  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }

  /// `what` names the value in messages.
  template <class T>
  requires std::integral<T> || std::floating_point<T>
  [[nodiscard]] T read(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

  [[nodiscard]] std::span<const std::byte> take(std::size_t size, std::string_view what) {
    if (size > left()) {
      fail(at_,
           fmt::format("the file ends within {}, which takes {} bytes of the {} left", what, size, left()));
    }
    const auto result = bytes_.subspan(at_, size);
    at_ += size;
    return result;
  }

  /// A text: its length in 64 bits, then its bytes.
  [[nodiscard]] std::string_view text(std::string_view what) {
    const std::size_t start = at_;
    const auto length = read<std::uint64_t>(what);
    if (length > left()) {
      fail(start, fmt::format("{} is said to be {} bytes long, and {} are left", what, length, left()));
    }
    const auto bytes = take(static_cast<std::size_t>(length), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  [[noreturn]] void fail(std::size_t at, std::string_view what) const {
    throw UserError(fmt::format("{}: byte {}: {}", file_, at, what));
  }

 private:
  std::string_view file_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace kvsim::config
