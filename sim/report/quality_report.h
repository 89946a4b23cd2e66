// SPDX-License-Identifier: Apache-2.0
// What `kvsim quality` found, for people and for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/spec/run_spec.h"
#include "traces/llama/quality.h"

namespace kvsim::sim {

struct QualityEntry {
  std::string spec;  ///< as the user wrote it
  trace::KvQuality quality;
};

struct QualityReport {
  std::vector<config::InputFile> inputs;  ///< the model, then the tokens
  std::uint64_t sequences = 0;
  std::uint64_t tokens = 0;
  trace::KvQuality reference;  ///< everything kept in FP32, with attention's profile
  std::vector<QualityEntry> entries;
};

inline constexpr const char* kQualitySchema = "kvsim.quality/1";

[[nodiscard]] std::string quality_text(const QualityReport& report);
[[nodiscard]] std::string quality_json(const QualityReport& report);
[[nodiscard]] std::string quality_csv(const QualityReport& report);

}  // namespace kvsim::sim
