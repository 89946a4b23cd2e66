// SPDX-License-Identifier: Apache-2.0
// A long run: answers one after the other, while clocks, power and heat follow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "configs/units/quantity.h"

namespace kvsim::config {

/// What the software does about a temperature: from `above` on, until the sensor is below `below` again.
struct SoakRule {
  std::string sensor;
  Celsius above;
  Celsius below;
  std::string set;     ///< "engine.kv=f16+window=512", a change of the scenario; empty: none
  bool pause = false;  ///< no token is begun

  bool operator==(const SoakRule&) const = default;
};

struct SoakSpec {
  Picoseconds duration;
  Picoseconds pause{};                    ///< from an answer's end to the next prompt
  Picoseconds sample{1'000'000'000'000};  ///< rows of the timeline are so far apart
  double stalled_power = 0.6;  ///< of a core that waits for memory, as a share of one that computes
  bool reuse = true;  ///< windows are measured once per state; false: each token in a window of its own
  std::vector<SoakRule> rules;

  bool operator==(const SoakSpec&) const = default;
};

}  // namespace kvsim::config
