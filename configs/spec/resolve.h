// SPDX-License-Identifier: Apache-2.0
// From files to the resolved scenario, and from there to JSON and back.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "configs/schema/edit.h"
#include "configs/schema/value.h"
#include "configs/spec/run_spec.h"
#include "configs/spec/storage_spec.h"

namespace kvsim::config {

/// Changes from the command line.
using Overrides = std::vector<Override>;

struct Scenario {
  RunSpec spec;
  std::vector<InputFile> inputs;  ///< every file read, the scenario first, catalogue entries included
};

/// Reads a scenario file. Throws one UserError that tells all mistakes.
[[nodiscard]] Scenario load_scenario(const std::filesystem::path& path, const Overrides& overrides = {});

/// Reads back what to_json wrote, such as the configuration in a trace; `source` is what messages call it. An
/// override "device=rk3588_4gb" replaces the whole device.
[[nodiscard]] Scenario restore_scenario(std::string_view json, const Overrides& overrides = {},
                                        std::string_view source = "recorded configuration");

/// A scenario as written to one with all names and defaults filled in.
[[nodiscard]] RunSpec resolve(Value root);

/// One entry of the catalogue, or of a file.
[[nodiscard]] DeviceSpec load_device(std::string_view id_or_path);
/// `inputs` gets every file that was read.
[[nodiscard]] DramPartSpec load_dram_part(std::string_view id_or_path,
                                          std::vector<InputFile>* inputs = nullptr);
/// `inputs` gets every file that was read.
[[nodiscard]] StoragePartSpec load_storage_part(std::string_view id_or_path,
                                                std::vector<InputFile>* inputs = nullptr);
[[nodiscard]] CoreSpec load_core(std::string_view id_or_path);
[[nodiscard]] LlmSpec load_llm(std::string_view id_or_path);
[[nodiscard]] WeightFormat load_weight_format(std::string_view id_or_path);
[[nodiscard]] TensorType load_tensor_type(std::string_view id_or_path);

/// The whole configuration, in the order of the tables.
[[nodiscard]] nlohmann::ordered_json to_json(const RunSpec& spec);
[[nodiscard]] RunSpec run_spec_from_json(std::string_view json);

}  // namespace kvsim::config
