// SPDX-License-Identifier: Apache-2.0
#include "sim/compare/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace kvsim::sim {
namespace {

using nlohmann::ordered_json;

std::optional<double> number(const ordered_json& json, const std::string& pointer) {
  const ordered_json::json_pointer place(pointer);
  if (!json.contains(place) || !json.at(place).is_number()) {
    return std::nullopt;
  }
  return json.at(place).get<double>();
}

ordered_json part_of(const ordered_json& json, const char* key) {
  return json.contains(key) ? json.at(key) : ordered_json();
}

/// Smaller is better.
using Objectives = std::vector<std::optional<double>>;

Objectives objectives(const VariantFigures& v) {
  const std::optional<double> slowness =
      v.tokens_per_second ? std::optional(-*v.tokens_per_second) : std::nullopt;
  return {v.ttft_ms,
          slowness,
          v.itl_p95_ms,
          static_cast<double>(v.peak.count()),
          v.mj_per_token,
          number(v.storage, "/write_bytes_per_token"),
          v.quality ? std::optional(v.quality->perplexity_change_percent) : std::nullopt};
}

bool beats(const Objectives& a, const Objectives& b, const std::vector<bool>& counts) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!counts[i]) {
      continue;
    }
    if (*a[i] > *b[i]) {
      return false;
    }
    better = better || *a[i] < *b[i];
  }
  return better;
}

/// Milliseconds of a token, or to the first one if none was generated.
double time_of(const VariantFigures& v) {
  return v.tokens_per_second ? 1000 / *v.tokens_per_second : v.ttft_ms.value_or(0);
}

/// The part whose time differs most, in the direction of the whole difference.
std::optional<TokenPart> largest_difference(const VariantFigures& winner, const VariantFigures& other) {
  std::optional<TokenPart> largest;
  for (const TokenPart& theirs : other.parts) {
    const auto ours = std::ranges::find(winner.parts, theirs.part, &TokenPart::part);
    const double difference = theirs.milliseconds - (ours == winner.parts.end() ? 0 : ours->milliseconds);
    if (difference > 0 && (!largest || difference > largest->milliseconds)) {
      largest = TokenPart{theirs.part, difference};
    }
  }
  return largest;
}

std::string speed_text(const VariantFigures& v) {
  return v.tokens_per_second ? fmt::format("{:.2f} tokens/s", *v.tokens_per_second)
                             : fmt::format("{:.0f} ms to the first token", v.ttft_ms.value_or(0));
}

void explain(Answer& answer, const VariantFigures& winner, const VariantFigures& other) {
  const double ours = time_of(winner);
  const double theirs = time_of(other);
  answer.against = other.name;
  answer.margin_percent = 100 * (theirs / ours - 1);
  const double doubt = 100 * (winner.relative_ci + other.relative_ci);
  if (*answer.margin_percent <= doubt) {
    answer.sentence = fmt::format(
        "{} and {} are level: {} and {} differ by {:.2f} %, within the simulation's +-{:.2f} %.", winner.name,
        other.name, speed_text(winner), speed_text(other), *answer.margin_percent, doubt);
    return;
  }
  answer.sentence = fmt::format("{} is fastest: {}, {:.1f} % more than {} ({}).", winner.name,
                                speed_text(winner), *answer.margin_percent, other.name, speed_text(other));
  if (const auto largest = largest_difference(winner, other)) {
    answer.mechanism = largest->part;
    answer.mechanism_ms = largest->milliseconds;
    const double difference = theirs - ours;
    answer.sentence +=
        fmt::format(" Of the {:.2f} ms a token, {} is {:.2f} ms{}.", difference, part_text(largest->part),
                    largest->milliseconds,
                    largest->milliseconds > 1.01 * difference ? ", some of which other parts take back" : "");
  }
}

}  // namespace

VariantFigures figures_of(const std::string& name, const ordered_json& run) {
  VariantFigures figures;
  figures.name = name;
  figures.fits = run.at("verdict").at("fits").get<bool>();
  figures.pages = run.at("verdict").value("pages", false);
  figures.message = run.at("verdict").at("message").get<std::string>();
  figures.ttft_ms = number(run, "/latency/ttft_ms");
  figures.tokens_per_second = number(run, "/throughput/decode_mean_tokens_per_s");
  figures.itl_p50_ms = number(run, "/latency/itl_ms/p50");
  figures.itl_p95_ms = number(run, "/latency/itl_ms/p95");
  figures.throughput = part_of(run, "throughput");
  figures.peak = Bytes(run.at("memory").at("peak_bytes").get<std::int64_t>());
  figures.mj_per_token = number(run, "/dram/energy/mj_per_token");
  figures.storage = part_of(run, "storage");
  figures.relative_ci = number(run, "/fidelity/relative_ci").value_or(0);
  if (figures.tokens_per_second && run.contains("breakdown") && run.at("breakdown").is_array()) {
    for (const ordered_json& part : run.at("breakdown")) {
      figures.parts.push_back(
          {.part = part.at("part").get<std::string>(),
           .milliseconds = part.at("share").get<double>() * 1000 / *figures.tokens_per_second});
    }
  }
  return figures;
}

void mark_pareto(std::vector<VariantFigures>& variants) {
  std::vector<std::pair<VariantFigures*, Objectives>> fitting;
  for (VariantFigures& variant : variants) {
    variant.pareto = false;
    if (variant.fits) {
      fitting.emplace_back(&variant, objectives(variant));
    }
  }
  if (fitting.empty()) {
    return;
  }
  std::vector<bool> counts;
  for (std::size_t i = 0; i < fitting.front().second.size(); ++i) {
    counts.push_back(std::ranges::all_of(fitting, [i](const auto& f) { return f.second[i].has_value(); }));
  }
  for (const auto& [variant, mine] : fitting) {
    variant->pareto = std::ranges::none_of(
        fitting, [&, &own = mine](const auto& other) { return beats(other.second, own, counts); });
  }
}

Answer answer(const std::vector<VariantFigures>& variants) {
  std::vector<const VariantFigures*> fitting;
  for (const VariantFigures& variant : variants) {
    if (variant.fits) {
      fitting.push_back(&variant);
    }
  }
  Answer answer;
  if (fitting.empty()) {
    answer.sentence = "None fits.";
    return answer;
  }
  // Stable: of two that are level the one that was named first.
  std::ranges::stable_sort(fitting, {}, [](const VariantFigures* v) { return time_of(*v); });
  const VariantFigures& winner = *fitting.front();
  answer.winner = winner.name;
  if (fitting.size() == 1) {
    answer.sentence = fmt::format("Only {} fits: {}.", winner.name, speed_text(winner));
    return answer;
  }
  const bool against_first = variants.front().fits && &variants.front() != &winner;
  explain(answer, winner, against_first ? variants.front() : *fitting[1]);
  return answer;
}

std::string part_text(const std::string& part) {
  constexpr std::array kTexts = {
      std::pair{"weights", "reading weights"},       std::pair{"kv_read", "reading the KV cache"},
      std::pair{"kv_write", "writing the KV cache"}, std::pair{"other_traffic", "other traffic"},
      std::pair{"row_conflicts", "row conflicts"},   std::pair{"queue", "waiting in queues"},
      std::pair{"latency", "latency not hidden"},    std::pair{"barrier", "threads meeting"},
      std::pair{"turnaround", "bus turnaround"},     std::pair{"storage", "waiting for storage"}};
  const auto* const found =
      std::ranges::find_if(kTexts, [&](const auto& text) { return text.first == part; });
  return found == kTexts.end() ? part : found->second;
}

}  // namespace kvsim::sim
