// SPDX-License-Identifier: Apache-2.0
// Changes to configurations as written: one laid over another (`extends`), and single values set (`--set`).
#pragma once

#include <string_view>

#include "configs/schema/value.h"

namespace kvsim::config {

inline constexpr std::string_view kExtends = "extends";

/// `over` laid over `base`. Maps merge key by key; scalars and lists replace. A map over a name extends what
/// the name stands for; a map whose keys are numbers changes these elements of a list.
[[nodiscard]] Value merge(const Value& base, const Value& over, std::string_view path, Diagnostics& errors);

/// Applies "path.to.key=value", the value in YAML. Steps lead through map keys and list indices (from 0); a
/// name on the way becomes a map that extends it. Throws UserError if the text is malformed.
void apply_override(Value& root, std::string_view text);

}  // namespace kvsim::config
