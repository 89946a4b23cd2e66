// SPDX-License-Identifier: Apache-2.0
// What must hold between where weights are and the rest of a scenario.
#pragma once

#include "configs/schema/place.h"
#include "configs/spec/run_spec.h"

namespace kvsim::config {

void check_memory(const RunSpec& run, const Place& place);

}  // namespace kvsim::config
