// SPDX-License-Identifier: Apache-2.0
// What a run asked of storage, as text and JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "sim/metrics/storage_figures.h"

namespace kvsim::sim {

[[nodiscard]] nlohmann::ordered_json storage_json(const StorageFigures& figures);
[[nodiscard]] std::string storage_text(const StorageFigures& figures, std::int64_t context);

}  // namespace kvsim::sim
