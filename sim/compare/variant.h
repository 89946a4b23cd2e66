// SPDX-License-Identifier: Apache-2.0
// What is compared: scenarios, each with changes.
#pragma once

#include <string>
#include <vector>

#include "configs/spec/resolve.h"

namespace kvsim::sim {

struct Variant {
  std::string name;
  std::string scenario;          ///< file
  std::vector<std::string> set;  ///< changes, as after --set
  config::Scenario resolved;     ///< what comes of them
};

/// Variants of the arguments of `kvsim compare`: scenario files, one scenario file and `vary` ("path=v1,v2",
/// or with semicolons if a value has a comma; all combinations), or one file with variants. `set` is changed
/// in all of them. Throws UserError for a scenario that does not resolve, and if two variants are the same.
[[nodiscard]] std::vector<Variant> variants_of(const std::vector<std::string>& files,
                                               const std::vector<std::string>& vary,
                                               const std::vector<std::string>& set);

}  // namespace kvsim::sim
