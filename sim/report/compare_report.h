// SPDX-License-Identifier: Apache-2.0
// Writes a comparison of runs.
#pragma once

#include <string>
#include <vector>

#include "sim/compare/comparison.h"

namespace kvsim::sim {

struct CompareReport {
  std::vector<VariantFigures> variants;           ///< the first is the reference
  std::vector<std::vector<std::string>> changes;  ///< of each variant, as after --set
  std::vector<std::string> scenarios;             ///< file of each variant
  Answer answer;
};

/// Version of the JSON layout. Later versions add and do not rename.
inline constexpr const char* kCompareSchema = "kvsim.compare/1";

[[nodiscard]] std::string compare_text(const CompareReport& report);
[[nodiscard]] std::string compare_json(const CompareReport& report);
/// One row per variant.
[[nodiscard]] std::string compare_csv(const CompareReport& report);
[[nodiscard]] std::string compare_markdown(const CompareReport& report);

}  // namespace kvsim::sim
