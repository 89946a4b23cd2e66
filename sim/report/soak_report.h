// SPDX-License-Identifier: Apache-2.0
// A long run: what came of it, over time and in all.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "sim/soak/soak.h"

namespace kvsim::sim {

/// Adds `soak`, `slowdown` and `timeline` to a run's report.
void add_soak(nlohmann::ordered_json& json, const SoakRecord& soak);
/// Lines for people.
[[nodiscard]] std::string soak_text(const SoakRecord& soak);
/// A row of the timeline each.
[[nodiscard]] std::string timeline_csv(const SoakRecord& soak);

}  // namespace kvsim::sim
