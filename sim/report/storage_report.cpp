// SPDX-License-Identifier: Apache-2.0
#include "sim/report/storage_report.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "sim/metrics/human.h"

namespace kvsim::sim {
namespace {

using nlohmann::ordered_json;

Bytes whole(double bytes) {
  return Bytes(std::llround(bytes));
}

std::string cliff_text(const StorageFigures& s, std::int64_t context) {
  if (s.cliff == 0) {
    return fmt::format("{} are read at any context", s.what);
  }
  return fmt::format("nothing is read up to {} tokens of context; this run has {}", s.cliff, context);
}

ordered_json experts_json(const std::optional<ExpertFigures>& e) {
  if (!e) {
    return nullptr;
  }
  return {{"cache_bytes", e->cache.count()},
          {"hit_share", e->hit_share},
          {"misses_per_token", e->misses},
          {"requests_per_token", e->requests}};
}

ordered_json layers_json(const std::optional<LayerFigures>& l) {
  if (!l) {
    return nullptr;
  }
  return {{"locked_bytes", l->locked.count()},
          {"buffer_bytes", l->buffers.count()},
          {"requests_per_token", l->requests}};
}

}  // namespace

ordered_json storage_json(const StorageFigures& s) {
  const auto or_null = [](const std::optional<double>& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
  };
  ordered_json tiers = ordered_json::array();
  for (const TierFigures& t : s.tiers) {
    tiers.push_back(
        {{"tier", t.tier}, {"hit_share", t.share}, {"latency_us", milliseconds(t.latency) * 1e3}});
  }
  return {{"part", s.part},
          {"of", s.what},
          {"read_bytes_per_token", s.read_bytes},
          {"write_bytes_per_token", s.written_bytes},
          {"hit_share", s.hit_share},
          {"major_faults_per_token", s.major_faults},
          {"stall_share", s.stall_share},
          {"waf", or_null(s.amplification)},
          {"erases", s.erases},
          {"days_to_endurance", or_null(s.days_to_endurance)},
          {"cliff_tokens", s.cliff},
          {"others_read_bytes_per_token", s.others_bytes},
          {"experts", experts_json(s.experts)},
          {"layers", layers_json(s.layers)},
          {"tiers", std::move(tiers)}};
}

std::string storage_text(const StorageFigures& s, std::int64_t context) {
  std::string text = fmt::format(
      "Storage ({})   {} read per token, {:.0f} major faults; {} of the {} {} in memory; {} of "
      "the time\n",
      s.part, human(whole(s.read_bytes)), s.major_faults, percent(s.hit_share), s.what,
      s.what == "KV" || s.what == "memory" ? "was" : "were", percent(s.stall_share));
  const auto out = std::back_inserter(text);
  if (s.experts) {
    fmt::format_to(out, "  expert cache of {}: {} of the experts were in it; {:.1f} per token were read\n",
                   human(s.experts->cache), percent(s.experts->hit_share), s.experts->misses);
  }
  if (s.layers) {
    fmt::format_to(out, "  layers     read into buffers of {} while others are computed; {} stay in memory\n",
                   human(s.layers->buffers), human(s.layers->locked));
  }
  if (s.others_bytes > 0) {
    fmt::format_to(out, "  others     {} per token are read for other programs\n",
                   human(whole(s.others_bytes)));
  }
  for (const TierFigures& t : s.tiers) {
    if (t.share > 0) {
      fmt::format_to(out, "  {:<10} {:>8} of KV   {:>10} for a block\n", t.tier, percent(t.share),
                     human(t.latency));
    }
  }
  if (s.written_bytes > 0) {
    fmt::format_to(out, "  written    {} per token, amplified {:.2f} times, {} erases",
                   human(whole(s.written_bytes)), s.amplification.value_or(0), s.erases);
    fmt::format_to(
        out, "{}\n",
        s.days_to_endurance ? fmt::format("; {:.0f} days to the rated endurance", *s.days_to_endurance) : "");
  }
  fmt::format_to(out, "  cliff      {}\n\n", cliff_text(s, context));
  return text;
}

}  // namespace kvsim::sim
