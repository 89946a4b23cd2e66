// SPDX-License-Identifier: Apache-2.0
// Files that a command writes: none of them may be one that it reads, or writes for another option.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvsim::sim {

struct OutputPath {
  std::string_view option;  ///< "--record"
  std::string path;
};

/// Throws UserError for an output that is standard output, is (under whatever name) one of `inputs`, or is
/// another output. Inputs that are no files, such as catalogue entries, are passed over.
void check_outputs(std::span<const OutputPath> outputs, const std::vector<std::string>& inputs);

}  // namespace kvsim::sim
