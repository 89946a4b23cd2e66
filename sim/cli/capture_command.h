// SPDX-License-Identifier: Apache-2.0
// `kvsim replay` of a trace that was captured from a real program.
#pragma once

#include <string>

#include "sim/cli/options.h"

namespace kvsim::sim {

void add_capture_options(Options& options);
/// Whether `kvsim replay` has been given a capture, and no recording.
[[nodiscard]] bool is_capture(const Options& options, const std::string& path);
int replay_capture(const Options& options, const std::string& path);

}  // namespace kvsim::sim
