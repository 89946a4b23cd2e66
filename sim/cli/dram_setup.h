// SPDX-License-Identifier: Apache-2.0
// The part, the controller and the mapping that `kvsim dram run` and `bench` are asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "models/dram/request_player.h"
#include "sim/cli/options.h"

namespace kvsim::sim {

struct DramSetup {
  std::string part_id;
  config::DramPartSpec part;
  config::MemoryControllerSpec controller;  ///< one channel, one rank
  model::Decisions decisions = model::Decisions::bursts;
  std::string queue;
  std::string mapping;
  std::vector<std::string> inputs;  ///< files that were read
  bool json = false;
};

/// Adds --part, --fidelity, --queue, --mapping, --refresh, --postponed-refreshes, --page-policy,
/// --power-down,
/// --self-refresh, --temperature and --format.
void add_dram_options(Options& options);
/// --temperature, as `run`, `bench` and `check` have it.
void add_temperature_option(Options& options);
[[nodiscard]] Celsius temperature_option(const Options& options);
/// Reads them. Throws UserError.
[[nodiscard]] DramSetup dram_setup(const Options& options);
/// A whole number of an option.
[[nodiscard]] std::int64_t number_option(const Options& options, const char* name, std::int64_t least,
                                         std::int64_t most);

/// A time of an option. Throws UserError if it is none or not above `least`.
[[nodiscard]] Picoseconds time_option(const Options& options, const char* name, Picoseconds least);

}  // namespace kvsim::sim
