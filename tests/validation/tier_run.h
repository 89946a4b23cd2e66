// SPDX-License-Identifier: Apache-2.0
// Runs of a KV cache in tiers, for lessons.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kvsim::testing {

struct TierRun {
  double p50 = 0, max = 0;             ///< milliseconds
  double read = 0, written = 0;        ///< bytes of storage per token
  double hit = 0, stall = 0;           ///< shares
  double faults = 0;                   ///< per token
  double amplification = 0, days = 0;  ///< 0: nothing was written
  double dram_read = 0;                ///< GB/s
  /// By tier, SRAM first: share of the bytes asked for, and microseconds until a block could be used.
  std::vector<double> shares, latencies;
};

/// Runs a scenario below `scenarios/lessons` with changes. Throws std::runtime_error with what kvsim said if
/// it fails.
[[nodiscard]] TierRun measure_tiers_run(const std::string& scenario, const std::vector<std::string>& changes);

/// So many tokens are in the cache.
[[nodiscard]] std::vector<std::string> at_depth(int tokens);

/// Microseconds that a random read of 4 KiB takes on a storage part: fio's mean at depth 1.
[[nodiscard]] double random_read_us(const std::string& part);

/// Prints the tables of lessons C11 and D1 to D5.
void tell_tier_lesson(const std::string& lesson, const std::function<void(const std::string&)>& say);

}  // namespace kvsim::testing
