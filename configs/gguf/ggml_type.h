// SPDX-License-Identifier: Apache-2.0
// The tensor types that GGUF files number, and their sizes (ggml.h, ggml-common.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "configs/units/quantity.h"

namespace kvsim::config {

struct GgmlType {
  std::uint32_t id = 0;
  std::string_view name;
  std::int64_t block = 1;  ///< elements
  Bytes bytes;             ///< of a block
};

/// Null if no type has that number, or only a withdrawn one had.
[[nodiscard]] const GgmlType* find_ggml_type(std::uint32_t id);

/// llama.cpp's name of what `general.file_type` numbers ("Q4_K_M"); empty if unknown.
[[nodiscard]] std::string_view file_type_name(std::int64_t file_type);

}  // namespace kvsim::config
