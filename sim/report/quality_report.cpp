// SPDX-License-Identifier: Apache-2.0
#include "sim/report/quality_report.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/version.h"

namespace kvsim::sim {

using nlohmann::ordered_json;
using trace::AttentionError;
using trace::KvQuality;
using trace::MassProfile;
using trace::Recall;

namespace {

double share(const Recall& recall) {
  return recall.asked == 0 ? 0.0 : static_cast<double>(recall.recalled) / static_cast<double>(recall.asked);
}

/// Relative to the reference, in percent.
double change_percent(const KvQuality& quality, const KvQuality& reference) {
  return 100 * (quality.perplexity / reference.perplexity - 1);
}

ordered_json error_json(const AttentionError& error) {
  return {{"mean", error.mean}, {"p95", error.p95}, {"cosine", error.cosine}};
}

ordered_json recall_json(const Recall& recall) {
  return {{"recalled", recall.recalled}, {"asked", recall.asked}, {"recall", share(recall)}};
}

ordered_json figures_json(const KvQuality& quality, const KvQuality& reference) {
  ordered_json json = {
      {"bytes_per_token", quality.bytes_per_token.count()},
      {"peak_bytes", quality.peak_bytes.count()},
      {"perplexity", quality.perplexity},
      {"perplexity_change_percent", change_percent(quality, reference)},
      {"nll_sum", quality.nll_sum},
      {"predicted", quality.predicted},
      {"recall", quality.recall.asked == 0 ? ordered_json() : ordered_json(share(quality.recall))},
      {"recalled", quality.recall.recalled},
      {"asked", quality.recall.asked},
      {"recall_by_distance", ordered_json::array()},
      {"attention_error", error_json(quality.attention_error)}};
  for (const auto& [distance, recall] : quality.recall_by_distance) {
    ordered_json bin = {{"distance", distance}};
    bin.update(recall_json(recall));
    json["recall_by_distance"].push_back(std::move(bin));
  }
  json["attention_error"]["by_layer"] = ordered_json::array();
  for (const AttentionError& error : quality.error_by_layer) {
    json["attention_error"]["by_layer"].push_back(error_json(error));
  }
  json["attention_error"]["by_position"] = ordered_json::array();
  for (const auto& [position, error] : quality.error_by_position) {
    ordered_json bin = {{"position", position}};
    bin.update(error_json(error));
    json["attention_error"]["by_position"].push_back(std::move(bin));
  }
  return json;
}

/// "3-4": the distances of a bin.
std::string bin_text(std::size_t bin) {
  const std::uint32_t last = trace::profile_bin_end(bin);
  const std::uint32_t first = bin == 0 ? 0 : trace::profile_bin_end(bin - 1) + 1;
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

ordered_json profile_json(const MassProfile& profile) {
  ordered_json json = {{"first_four_tokens", profile.first_four}, {"by_distance", ordered_json::array()}};
  for (std::size_t bin = 0; bin < profile.by_distance.size(); ++bin) {
    json["by_distance"].push_back(
        {{"up_to", trace::profile_bin_end(bin)}, {"share", profile.by_distance[bin]}});
  }
  return json;
}

void add_row(std::string& text, std::string_view spec, const KvQuality& quality, const KvQuality& reference) {
  const Recall& recall = quality.recall;
  fmt::format_to(std::back_inserter(text),
                 "{:<34} {:>8} {:>10} {:>11.6f} {:>+9.3f}% {:>9} {:>10.3g} {:>10.3g} {:>9.6f}\n", spec,
                 quality.bytes_per_token.count(), quality.peak_bytes.count(), quality.perplexity,
                 change_percent(quality, reference),
                 recall.asked == 0 ? "-" : fmt::format("{}/{}", recall.recalled, recall.asked),
                 quality.attention_error.mean, quality.attention_error.p95, quality.attention_error.cosine);
}

/// Recall of each specification by distance, a column each.
void add_recall(std::string& text, const QualityReport& report) {
  if (report.reference.recall.asked == 0) {
    return;
  }
  auto out = std::back_inserter(text);
  fmt::format_to(out, "\nRecalled, by distance to the fact\n{:<34}", "");
  for (const auto& [distance, recall] : report.reference.recall_by_distance) {
    fmt::format_to(out, " {:>7}", fmt::format("{}+", distance));
  }
  const auto add = [&](std::string_view spec, const KvQuality& quality) {
    fmt::format_to(out, "\n{:<34}", spec);
    for (const auto& [distance, recall] : quality.recall_by_distance) {
      fmt::format_to(out, " {:>7}", fmt::format("{}/{}", recall.recalled, recall.asked));
    }
  };
  add("reference", report.reference);
  for (const QualityEntry& entry : report.entries) {
    add(entry.spec, entry.quality);
  }
  text += "\n";
}

void add_profile(std::string& text, const MassProfile& profile) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, "\nAttention mass by distance (reference; {:.1f} % on the first four tokens)\n",
                 100 * profile.first_four);
  for (std::size_t bin = 0; bin < profile.by_distance.size(); ++bin) {
    fmt::format_to(out, "  {:>9} {:>6.2f} %\n", bin_text(bin), 100 * profile.by_distance[bin]);
  }
}

}  // namespace

std::string quality_text(const QualityReport& report) {
  std::string text = fmt::format("{} on {}: {} sequences, {} tokens\n\n", report.inputs[0].path,
                                 report.inputs[1].path, report.sequences, report.tokens);
  fmt::format_to(std::back_inserter(text), "{:<34} {:>8} {:>10} {:>11} {:>10} {:>9} {:>10} {:>10} {:>9}\n",
                 "KV", "B/token", "peak B", "perplexity", "change", "recalled", "att. error", "p95",
                 "cosine");
  add_row(text, "reference (f32, all kept)", report.reference, report.reference);
  for (const QualityEntry& entry : report.entries) {
    add_row(text, entry.spec, entry.quality, report.reference);
  }
  add_recall(text, report);
  add_profile(text, *report.reference.profile);
  return text;
}

std::string quality_json(const QualityReport& report) {
  ordered_json json = {{"schema", kQualitySchema}, {"version", kVersion}, {"inputs", ordered_json::array()}};
  for (const config::InputFile& input : report.inputs) {
    json["inputs"].push_back({{"path", input.path}, {"hash", input.hash}});
  }
  json["sequences"] = report.sequences;
  json["tokens"] = report.tokens;
  json["reference"] = figures_json(report.reference, report.reference);
  json["attention_mass"] = profile_json(*report.reference.profile);
  json["kv"] = ordered_json::array();
  for (const QualityEntry& entry : report.entries) {
    ordered_json figures = {{"spec", entry.spec}, {"resolved", name(entry.quality.spec)}};
    figures.update(figures_json(entry.quality, report.reference));
    json["kv"].push_back(std::move(figures));
  }
  return json.dump(2) + "\n";
}

std::string quality_csv(const QualityReport& report) {
  std::string text =
      "spec,bytes_per_token,peak_bytes,perplexity,perplexity_change_percent,recalled,asked,attention_error_"
      "mean,"
      "attention_error_p95,attention_cosine\n";
  const auto add = [&](const std::string& spec, const KvQuality& q) {
    fmt::format_to(std::back_inserter(text), "\"{}\",{},{},{:.9g},{:.6g},{},{},{:.6g},{:.6g},{:.9g}\n", spec,
                   q.bytes_per_token.count(), q.peak_bytes.count(), q.perplexity,
                   change_percent(q, report.reference), q.recall.recalled, q.recall.asked,
                   q.attention_error.mean, q.attention_error.p95, q.attention_error.cosine);
  };
  add("reference", report.reference);
  for (const QualityEntry& entry : report.entries) {
    add(entry.spec, entry.quality);
  }
  return text;
}

}  // namespace kvsim::sim
