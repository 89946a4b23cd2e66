// SPDX-License-Identifier: Apache-2.0
// What `kvsim session` writes.
#pragma once

#include <string>
#include <vector>

#include "sim/metrics/session.h"

namespace kvsim::sim {

[[nodiscard]] std::string session_json(const config::RunSpec& spec, const std::vector<SessionPoint>& points);
[[nodiscard]] std::string session_text(const config::RunSpec& spec, const std::vector<SessionPoint>& points);

}  // namespace kvsim::sim
