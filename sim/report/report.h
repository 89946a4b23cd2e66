// SPDX-License-Identifier: Apache-2.0
// Writes a run's summary as text, JSON or CSV.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "configs/spec/run_spec.h"
#include "sim/metrics/summary.h"
#include "sim/run/run_record.h"
#include "sim/soak/soak.h"

namespace kvsim::sim {

/// Everything a report is made from.
struct Report {
  config::RunSpec spec;
  std::vector<config::InputFile> inputs;
  RunRecord record;
  Summary summary;
  std::optional<SoakRecord> soak{};
};

/// Version of the JSON layout. Later versions add and do not rename.
inline constexpr const char* kSchema = "kvsim.run/1";

/// For people: the verdict first, every number with its unit.
[[nodiscard]] std::string text_report(const Report& report);
/// The same facts for programs. Equal runs give equal bytes.
[[nodiscard]] std::string json_report(const Report& report);
/// One row per generated token.
[[nodiscard]] std::string csv_report(const Report& report);

}  // namespace kvsim::sim
