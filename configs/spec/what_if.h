// SPDX-License-Identifier: Apache-2.0
// A question asked of several scenarios at once: one to begin with, and what is changed in each variant.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kvsim::config {

struct WhatIfVariant {
  std::string name;
  std::vector<std::string> set;  ///< changes, as after --set
};

struct WhatIf {
  std::string description;
  std::string base;  ///< a scenario file, seen from the folder of this one
  std::vector<WhatIfVariant> variants;
};

/// Whether the file is a what-if: a map with `variants`. Throws UserError if it cannot be read.
[[nodiscard]] bool is_what_if(const std::filesystem::path& path);

/// Throws UserError with all mistakes.
[[nodiscard]] WhatIf load_what_if(const std::filesystem::path& path);

}  // namespace kvsim::config
