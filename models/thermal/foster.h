// SPDX-License-Identifier: Apache-2.0
// Measured step responses are sums of exponentials (Foster chains), whose parts are no matter anywhere. The
// ladder with the same response (Cauer's form) is: its capacities hold the heat.
#pragma once

#include <span>
#include <vector>

#include "configs/spec/thermal_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::model {

/// A lump, and the resistance to the next one, or from the last to ambient.
struct LadderStep {
  JoulesPerKelvin capacity;
  KelvinPerWatt resistance;
};

/// The ladder whose first lump answers as the chain does. Precondition: there is a stage, and no two have one
/// time constant.
[[nodiscard]] std::vector<LadderStep> ladder_of(std::span<const config::FosterStageSpec> stages);

}  // namespace kvsim::model
