// SPDX-License-Identifier: Apache-2.0
// What a DRAM's temperature does to it: how often it must be refreshed, and by how much it slows down.
#pragma once

#include "configs/spec/dram_spec.h"

namespace kvsim::config {

/// How many times as often as tREFI says the part must be refreshed. 1 at normal temperature.
[[nodiscard]] double refresh_rate(const DramPartSpec& part, Celsius temperature);

/// The part's timings at a temperature: those of the part, or derated ones.
[[nodiscard]] DramTiming timing_at(const DramPartSpec& part, Celsius temperature);

}  // namespace kvsim::config
