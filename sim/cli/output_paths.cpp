// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/output_paths.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::sim {

namespace {

/// Of files that exist by device and inode, so that links are seen through; else by where they would come to
/// lie.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) {
    return true;
  }
  const auto whole = [&error](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
  };
  return whole(a) == whole(b) && !error;
}

}  // namespace

void check_outputs(std::span<const OutputPath> outputs, const std::vector<std::string>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    if (path == "-") {
      throw UserError(
          fmt::format("{}: goes into a file, not to standard output; give a name ('./-' for a "
                      "file called '-')",
                      option));
    }
    for (const std::string& input : inputs) {
      std::error_code error;
      if (std::filesystem::equivalent(path, input, error)) {
        throw UserError(
            fmt::format("{} {}: is {}, an input of this run; give another name", option, path, input));
      }
    }
    for (std::size_t other = 0; other < i; ++other) {
      if (same_file(path, outputs[other].path)) {
        throw UserError(fmt::format("{} {}: is the file of {} as well; give another name", option, path,
                                    outputs[other].option));
      }
    }
  }
}

}  // namespace kvsim::sim
