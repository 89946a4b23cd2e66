// SPDX-License-Identifier: Apache-2.0
// What stands in a GGUF file before its tensor data: metadata and the tensor table. Everything is checked
// when it is read; what is wrong throws UserError with the byte where it stands.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "configs/gguf/ggml_type.h"
#include "configs/units/quantity.h"

namespace kvsim::config {

/// Types of metadata values, by GGUF's numbers.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

/// Elements as they stand in the file.
struct GgufArray {
  GgufType type{};
  std::size_t size = 0;
  std::span<const std::byte> data;

  [[nodiscard]] std::vector<std::int64_t> integers() const;   ///< precondition: whole numbers or truth values
  [[nodiscard]] std::vector<std::string_view> texts() const;  ///< precondition: texts
};

struct GgufValue {
  std::string_view key;
  std::size_t at = 0;  ///< byte of the file where the entry begins
  GgufType type{};
  std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray> value;
};

struct GgufTensor {
  std::string_view name;
  GgmlType type;
  std::vector<std::int64_t> dims;  ///< 1 to 4; the first is the length of a row
  Bytes offset;                    ///< from the start of the tensor data
  Bytes bytes;
};

struct GgufContent {
  std::uint32_t version = 0;
  Bytes alignment{32};
  std::vector<GgufValue> metadata;  ///< in the order of the file; texts point into it
  std::vector<GgufTensor> tensors;
  std::size_t data_start = 0;  ///< byte of the file where the tensor data begins
};

/// Reads GGUF version 2 or 3, little-endian. `name` is what messages call the file. The result points into
/// `file`.
[[nodiscard]] GgufContent read_gguf(std::string_view name, std::span<const std::byte> file);

/// "u32", "text".
[[nodiscard]] std::string_view type_name(GgufType type);

}  // namespace kvsim::config
