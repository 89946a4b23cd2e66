// SPDX-License-Identifier: Apache-2.0
// What to know of a run besides its result.
#pragma once

#include <string>
#include <vector>

#include "configs/spec/run_spec.h"

namespace kvsim::sim {

/// What a scenario asks for and the run does not do as one might think: tokens past the model's context,
/// bursts where trains are asked for, keys that say nothing here. A sentence each.
[[nodiscard]] std::vector<std::string> notes_of(const config::RunSpec& spec);

}  // namespace kvsim::sim
