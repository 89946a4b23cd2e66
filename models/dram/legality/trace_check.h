// SPDX-License-Identifier: Apache-2.0
// Checks a command trace in a file, each channel for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "models/dram/command_csv.h"
#include "models/dram/legality/rule_table.h"

namespace kvsim::model::legality {

struct TraceFindings {
  struct Found {
    std::uint64_t line = 0;
    std::uint32_t channel = 0;
    std::string_view rule;
    std::string text;
  };
  std::uint64_t commands = 0;
  std::size_t channels = 0;        ///< that have a command
  std::uint32_t highest_rank = 0;  ///< that a command names, whether there is such a rank or not
  std::uint64_t violations = 0;
  std::vector<Found> first;                                         ///< as many as were asked for
  std::vector<std::pair<std::string_view, std::uint64_t>> by_rule;  ///< the most frequent first
};

/// Reads the trace to its end. `keep` is how many violations are told one by one. Throws UserError if the
/// file is not a command trace.
[[nodiscard]] TraceFindings check_trace(CommandCsvReader& reader, const config::DramPartSpec& part,
                                        const Conditions& conditions, std::size_t keep);

}  // namespace kvsim::model::legality
