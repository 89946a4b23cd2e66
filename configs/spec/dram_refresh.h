// SPDX-License-Identifier: Apache-2.0
// Can a controller refresh a part as it is told to?
#pragma once

#include <optional>
#include <string>

#include "configs/spec/dram_spec.h"

namespace kvsim::config {

struct RefreshProblem {
  std::string key;  ///< of MemoryControllerSpec
  std::string what;
};

/// What keeps the controller from refreshing the part: it has no such refresh, fewer may wait, or refreshes
/// would take longer than the time they come after. None: nothing does.
[[nodiscard]] std::optional<RefreshProblem> refresh_problem(const DramPartSpec& part,
                                                            const MemoryControllerSpec& controller);

/// What keeps ranks that nothing is asked of from going to sleep as the controller is told. None: nothing
/// does.
[[nodiscard]] std::optional<RefreshProblem> idle_problem(const MemoryControllerSpec& controller);

}  // namespace kvsim::config
