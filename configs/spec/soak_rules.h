// SPDX-License-Identifier: Apache-2.0
// What must hold between the rules of a long run and the rest of its scenario.
#pragma once

#include "configs/schema/place.h"
#include "configs/spec/run_spec.h"

namespace kvsim::config {

/// Precondition: all else of the scenario has been checked.
void check_rules(const RunSpec& run, const Place& place);

}  // namespace kvsim::config
