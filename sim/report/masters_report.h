// SPDX-License-Identifier: Apache-2.0
// What other masters moved beside the cores, and how they fared.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/run/run_record.h"

namespace kvsim::sim {

/// A list, empty without masters.
[[nodiscard]] nlohmann::ordered_json masters_json(const std::vector<MasterResult>& masters);
/// Lines for people, empty without masters.
[[nodiscard]] std::string masters_text(const std::vector<MasterResult>& masters);

}  // namespace kvsim::sim
