// SPDX-License-Identifier: Apache-2.0
#include "sim/report/soak_report.h"

#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/metrics/human.h"

namespace kvsim::sim {

using nlohmann::ordered_json;

namespace {

std::string_view name_of(model::ClockLimit limit) {
  switch (limit) {
    case model::ClockLimit::none:
      return "none";
    case model::ClockLimit::governor:
      return "governor";
    case model::ClockLimit::heat:
      return "heat";
    case model::ClockLimit::temperature_cap:
      return "temperature_cap";
    case model::ClockLimit::over_current:
      return "over_current";
    case model::ClockLimit::supply:
      return "supply";
    case model::ClockLimit::critical:
      return "critical";
  }
  return "";
}

double megahertz(Hertz clock) {
  return clock.as_double() / 1e6;
}

ordered_json row_json(const TimelineRow& row) {
  ordered_json json = {{"t_s", seconds(row.at)},
                       {"tokens_per_s", row.tokens_per_second},
                       {"dram_gbs", (row.read.count() + row.written.count()) / 1e9}};
  for (const model::NamedTemperature& node : row.board.nodes) {
    json["temperature_c"][node.name] = node.temperature.count();
  }
  for (const model::DomainState& domain : row.board.domains) {
    json["clock_mhz"][domain.name] = megahertz(domain.clock);
    json["limit"][domain.name] = name_of(domain.limit);
  }
  for (std::size_t i = 0; i < row.rails.size(); ++i) {
    json["power_w"][row.board.rails[i].name] = row.rails[i].count();
  }
  json["masters_gbs"] = ordered_json::object();
  for (const MasterRate& master : row.masters) {
    json["masters_gbs"][master.name] = master.moved.count() / 1e9;
  }
  json["refresh_rate"] = row.board.refresh_rate;
  json["rules"] = row.rules;
  return json;
}

double joules_per_token(const SoakRecord& soak) {
  return soak.tokens > 0 ? soak.energy.count() / static_cast<double>(soak.tokens) : 0;
}

}  // namespace

void add_soak(ordered_json& json, const SoakRecord& soak) {
  ordered_json itl = nullptr;
  if (soak.inter_token) {
    itl = {{"p50", milliseconds(soak.inter_token->p50)},
           {"p95", milliseconds(soak.inter_token->p95)},
           {"p99", milliseconds(soak.inter_token->p99)},
           {"max", milliseconds(soak.inter_token->max)}};
  }
  json["soak"] = {
      {"duration_s", seconds(soak.time)},
      {"answers", soak.answers},
      {"tokens", soak.tokens},
      {"first_minute_tokens_per_s", soak.first_minute},
      {"steady_tokens_per_s", soak.steady},
      {"itl_ms", std::move(itl)},
      {"energy_j", soak.energy.count()},
      {"energy_per_token_j", joules_per_token(soak)},
      {"paused_share", soak.paused_share},
      {"windows", soak.windows},
      {"relative_ci", soak.relative_ci},
      {"over_current_alarms", soak.end.over_current_alarms},
      {"runaway", soak.end.runaway},
      {"down_at_s", soak.end.down_at ? ordered_json(seconds(*soak.end.down_at)) : ordered_json(nullptr)}};
  ordered_json causes = ordered_json::array();
  for (const SlowdownCause& cause : soak.causes) {
    causes.push_back(
        {{"cause", cause.cause}, {"share", cause.share}, {"first_at_s", seconds(cause.first_at)}});
  }
  json["slowdown"] = {{"causes", std::move(causes)}};
  json["timeline"] = ordered_json::array();
  for (const TimelineRow& row : soak.timeline) {
    json["timeline"].push_back(row_json(row));
  }
}

std::string soak_text(const SoakRecord& soak) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "Long run of {}: {} answers, {} tokens, from {} windows (widest interval +-{})\n",
                 human(soak.time), soak.answers, soak.tokens, soak.windows, percent(soak.relative_ci));
  if (soak.inter_token) {
    fmt::format_to(out, "  {:<32} {:.2f} tokens/s in the first minute, {:.2f} in the last quarter\n",
                   "decode", soak.first_minute, soak.steady);
    fmt::format_to(out, "  {:<32} {} p50, {} p95, {} p99, {} max\n", "inter-token latency",
                   human(soak.inter_token->p50), human(soak.inter_token->p95), human(soak.inter_token->p99),
                   human(soak.inter_token->max));
    fmt::format_to(out, "  {:<32} {:.2f} J per token, {:.2f} W on average\n", "energy, whole device",
                   joules_per_token(soak), soak.energy.count() / seconds(soak.time));
  }
  for (const SlowdownCause& cause : soak.causes) {
    fmt::format_to(out, "  {:<32} {} of the tokens' time, first at {}\n", "slowed down by " + cause.cause,
                   percent(cause.share), human(cause.first_at));
  }
  for (const model::NamedTemperature& node : soak.end.nodes) {
    fmt::format_to(out, "  {:<32} {:.1f} C at the end\n", node.name, node.temperature.count());
  }
  for (const model::DomainState& domain : soak.end.domains) {
    fmt::format_to(
        out, "  {:<32} {:.0f} MHz at the end, {} switches{}\n", domain.name, megahertz(domain.clock),
        domain.switches,
        domain.limit == model::ClockLimit::none ? "" : fmt::format(", held by {}", name_of(domain.limit)));
  }
  if (soak.paused_share > 0) {
    fmt::format_to(out, "  {:<32} {} of the time\n", "paused by rules", percent(soak.paused_share));
  }
  if (soak.end.down_at) {
    fmt::format_to(out, "  {:<32} at {}: a critical trip{}\n", "switched itself off",
                   human(*soak.end.down_at), soak.end.runaway ? "; the heat had no equilibrium" : "");
  }
  return text + "\n";
}

std::string timeline_csv(const SoakRecord& soak) {
  std::string text = "t_s,tokens_per_s,dram_gbs";
  const auto out = std::back_inserter(text);
  if (!soak.timeline.empty()) {
    const TimelineRow& first = soak.timeline.front();
    for (const model::NamedTemperature& node : first.board.nodes) {
      fmt::format_to(out, ",{}_c", node.name);
    }
    for (const model::DomainState& domain : first.board.domains) {
      fmt::format_to(out, ",{0}_mhz,{0}_limit", domain.name);
    }
    for (const model::RailState& rail : first.board.rails) {
      fmt::format_to(out, ",{}_w", rail.name);
    }
    for (const MasterRate& master : first.masters) {
      fmt::format_to(out, ",{}_gbs", master.name);
    }
  }
  text += ",refresh_rate,rules\n";
  for (const TimelineRow& row : soak.timeline) {
    fmt::format_to(out, "{:.6f},{:.4f},{:.4f}", seconds(row.at), row.tokens_per_second,
                   (row.read.count() + row.written.count()) / 1e9);
    for (const model::NamedTemperature& node : row.board.nodes) {
      fmt::format_to(out, ",{:.3f}", node.temperature.count());
    }
    for (const model::DomainState& domain : row.board.domains) {
      fmt::format_to(out, ",{:.1f},{}", megahertz(domain.clock), name_of(domain.limit));
    }
    for (const Watts rail : row.rails) {
      fmt::format_to(out, ",{:.4f}", rail.count());
    }
    for (const MasterRate& master : row.masters) {
      fmt::format_to(out, ",{:.4f}", master.moved.count() / 1e9);
    }
    fmt::format_to(out, ",{},{}\n", row.board.refresh_rate, fmt::join(row.rules, " "));
  }
  return text;
}

}  // namespace kvsim::sim
