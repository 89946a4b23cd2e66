// SPDX-License-Identifier: Apache-2.0
// What a trace file says about itself, and the limits both sides of the codec keep to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "configs/spec/run_spec.h"

namespace kvsim::trace {

/// Same run, same header: it holds no date, host or path beyond those of the inputs.
struct TraceHeader {
  std::string kvsim_version{};
  std::string configuration{};  ///< resolved, as JSON; a replay builds its device from it
  std::int64_t seed = 0;
  std::vector<config::InputFile> inputs{};

  bool operator==(const TraceHeader&) const = default;
};

inline constexpr std::uint32_t kTraceFormatVersion = 1;
inline constexpr std::size_t kBlockRecords = 4096;
/// Largest message before compression. 4096 records need at most 251 kB; the rest is room for the
/// configuration.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 20;

}  // namespace kvsim::trace
