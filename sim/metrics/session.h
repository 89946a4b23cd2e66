// SPDX-License-Identifier: Apache-2.0
// A session's KV cache saved to storage and restored, beside computing it again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/spec/run_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::sim {

struct SessionPoint {
  std::int64_t tokens = 0;                  ///< of the prefix
  Bytes bytes = {};                         ///< of its KV cache
  std::optional<Picoseconds> save = {};     ///< none: the device did not take it
  std::optional<Picoseconds> restore = {};  ///< none: it does not fit the device
  std::optional<Picoseconds> compute = {};  ///< prefill; none: it does not fit into memory
};

/// KV that is there after a prompt of so many tokens.
[[nodiscard]] Bytes session_bytes(const config::RunSpec& spec, std::int64_t tokens);

/// A file of so many bytes, past the page cache, in requests of 1 MiB of which four are under way. None: the
/// device refuses. Precondition: the device has storage.
[[nodiscard]] std::optional<Picoseconds> save_time(const config::RunSpec& spec, Bytes bytes);
[[nodiscard]] std::optional<Picoseconds> restore_time(const config::RunSpec& spec, Bytes bytes);

/// Tokens from which on restoring is faster than computing, on lines between the points, which are in order.
/// None: computing is faster at the last.
[[nodiscard]] std::optional<std::int64_t> break_even(const std::vector<SessionPoint>& points);

}  // namespace kvsim::sim
