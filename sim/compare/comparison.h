// SPDX-License-Identifier: Apache-2.0
// Several runs beside each other: where they differ, by what, and which no other beats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "configs/units/quantity.h"

namespace kvsim::sim {

/// Seconds of a mean decode token that go to one mechanism.
struct TokenPart {
  std::string part;
  double milliseconds = 0;
};

/// Of a KV cache's specification, from a run of `kvsim quality`.
struct VariantQuality {
  double perplexity_change_percent = 0;
  std::optional<double> recall;
};

/// What a run's JSON says; optional where the run has no such figure.
struct VariantFigures {
  std::string name;
  bool fits = false;
  bool pages = false;   ///< it fits by reading weights from storage again and again
  std::string message;  ///< of the verdict
  std::optional<double> ttft_ms;
  std::optional<double> tokens_per_second;  ///< mean over decode
  std::optional<double> itl_p50_ms, itl_p95_ms;
  nlohmann::ordered_json throughput;  ///< as in the run; null if it does not fit
  Bytes peak;
  std::optional<double> mj_per_token;  ///< DRAM's
  nlohmann::ordered_json storage;      ///< as in the run; null if there is none
  std::optional<VariantQuality> quality;
  std::vector<TokenPart> parts;  ///< add up to the mean decode token
  double relative_ci = 0;        ///< of the simulated time
  bool pareto = false;           ///< no other that fits is as good in all and better in one
};

/// Reads the output of `kvsim run --format json`.
[[nodiscard]] VariantFigures figures_of(const std::string& name, const nlohmann::ordered_json& run);

/// Sets `pareto`: among those that fit, by TTFT, speed, p95, peak memory, and energy, bytes written to
/// storage and perplexity where all that fit have them.
void mark_pareto(std::vector<VariantFigures>& variants);

/// Who wins, by how much, and why: the fitting variant with most tokens per second (shortest TTFT if nothing
/// is generated), against the first variant, or the runner-up if it is the first itself.
struct Answer {
  std::string winner;   ///< empty if none fits
  std::string against;  ///< empty if no other fits
  std::optional<double> margin_percent;
  std::string mechanism;  ///< the part with the largest share of the difference; empty if there is none
  std::optional<double> mechanism_ms;
  std::string sentence;
};
[[nodiscard]] Answer answer(const std::vector<VariantFigures>& variants);

/// "weights" as people say it: "reading weights".
[[nodiscard]] std::string part_text(const std::string& part);

}  // namespace kvsim::sim
