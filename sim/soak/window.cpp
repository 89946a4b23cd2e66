// SPDX-License-Identifier: Apache-2.0
#include "sim/soak/window.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/spec/dram_rate.h"
#include "configs/spec/resolve.h"
#include "sim/metrics/summary.h"
#include "sim/run/runner.h"
#include "sim/soak/child.h"
#include "traces/workload/workload.h"

namespace kvsim::sim {

using nlohmann::json;
using trace::Phase;

namespace {

/// Of an operating point: DMC's and EMC's clocks are half the data rate.
constexpr std::int64_t kTransfersPerClock = 2;
constexpr std::size_t kAtOnce = 2;
/// Operating points at which a cluster is measured.
constexpr std::size_t kKnots = 5;

/// Of the steps that are `phase`.
json phase_json(const config::DeviceSpec& device, const RunRecord& record, Phase phase) {
  Measurement sum;
  std::int64_t steps = 0;
  for (const StepResult& step : record.steps) {
    if (step.mark.phase == phase) {
      sum += step.total;
      ++steps;
    }
  }
  const double time = sum.picoseconds();
  if (steps == 0 || time == 0) {
    return nullptr;
  }
  const double seconds = time / kPicosecondsPerSecond;
  const auto energy = phase_energy(device, sum);
  return {{"picoseconds", phase == Phase::prefill ? time : time / static_cast<double>(steps)},
          {"compute", sum.part(model::Owner::compute) / time},
          {"storage", sum.part(model::Owner::storage) / time},
          {"read", sum.bytes_read() / seconds},
          {"written", sum.bytes_written() / seconds},
          {"dram", energy ? energy->mean.count() : 0}};
}

PhaseFigures phase_of(const json& figures) {
  if (figures.is_null()) {
    return {};
  }
  return {.picoseconds = figures["picoseconds"],
          .compute_share = figures["compute"],
          .storage_share = figures["storage"],
          .read = BytesPerSecond(figures["read"]),
          .written = BytesPerSecond(figures["written"]),
          .dram = Watts(figures["dram"])};
}

PhaseFigures mixed(const PhaseFigures& a, const PhaseFigures& b, double share) {
  const auto mix = [share](double x, double y) { return x + share * (y - x); };
  return {.picoseconds = mix(a.picoseconds, b.picoseconds),
          .compute_share = mix(a.compute_share, b.compute_share),
          .storage_share = mix(a.storage_share, b.storage_share),
          .read = BytesPerSecond(mix(a.read.count(), b.read.count())),
          .written = BytesPerSecond(mix(a.written.count(), b.written.count())),
          .dram = Watts(mix(a.dram.count(), b.dram.count()))};
}

/// `a` at 0, `b` at 1. Both are of the same scenario, so they have the same depths.
Window mixed(const Window& a, const Window& b, double share) {
  Window window = a;
  window.phase = mixed(a.phase, b.phase, share);
  for (std::size_t i = 0; i < window.tokens.size(); ++i) {
    window.tokens[i].picoseconds += share * (b.tokens[i].picoseconds - a.tokens[i].picoseconds);
  }
  window.relative_ci = std::max(a.relative_ci, b.relative_ci);
  return window;
}

/// What a child does and tells.
std::string measure_here(const config::RunSpec& spec) {
  trace::LlmWorkload workload(trace::llm_run(spec));
  const RunRecord record = run_stream(spec, workload, {});
  if (record.broken) {
    throw UserError(record.broken->message);
  }
  json tokens = json::array();
  double time = 0, half_width = 0;
  for (const StepResult& step : record.steps) {
    time += step.total.picoseconds();
    half_width += step.half_width;
    if (step.mark.phase == Phase::decode) {
      tokens.push_back({step.mark.depth, step.total.picoseconds()});
    }
  }
  json masters = json::array();
  for (const MasterResult& master : record.masters) {
    const model::MasterFigures& f = master.figures;
    const Bytes moved = f.read + f.written + f.copied * 2;
    masters.push_back({{"name", master.spec.name},
                       {"moved", master.time > Picoseconds() ? (moved / master.time).count() : 0.0},
                       {"due", f.due},
                       {"missed", f.missed}});
  }
  const Phase phase = spec.workload.generate == 0 ? Phase::prefill : Phase::decode;
  return json{{"phase", phase_json(spec.device, record, phase)},
              {"tokens", tokens},
              {"masters", masters},
              {"relative_ci", time > 0 ? half_width / time : 0}}
      .dump();
}

Window window_of(const std::string& text) {
  const json told = json::parse(text);
  Window window{
      .phase = phase_of(told["phase"]), .tokens = {}, .masters = {}, .relative_ci = told["relative_ci"]};
  for (const json& token : told["tokens"]) {
    window.tokens.push_back({.depth = token[0], .picoseconds = token[1]});
  }
  for (const json& master : told["masters"]) {
    window.masters.push_back({.name = master["name"],
                              .moved = BytesPerSecond(master["moved"]),
                              .due = master["due"],
                              .missed = master["missed"]});
  }
  return window;
}

}  // namespace

double Window::token_picoseconds(std::int64_t depth) const {
  check(!tokens.empty(), "a window has tokens");
  const auto above = std::ranges::lower_bound(tokens, depth, {}, &DepthTime::depth);
  if (above == tokens.begin()) {
    return above->picoseconds;
  }
  if (above == tokens.end()) {
    return tokens.back().picoseconds;
  }
  const auto below = std::prev(above);
  const double share =
      static_cast<double>(depth - below->depth) / static_cast<double>(above->depth - below->depth);
  return below->picoseconds + share * (above->picoseconds - below->picoseconds);
}

config::RunSpec at_state(const config::RunSpec& spec, const WindowState& state) {
  config::RunSpec changed = spec;
  if (!state.set.empty()) {
    config::Overrides overrides;
    for (const std::string& change : state.set) {
      overrides.emplace_back(change);
    }
    changed = config::restore_scenario(config::to_json(spec).dump(), overrides, "soak.rules").spec;
  }
  if (state.dram != Hertz()) {
    const config::DataRate rate(
        std::min<Hertz>(state.dram * kTransfersPerClock, changed.device.dram.data_rate));
    changed.device = config::at_data_rate(changed.device, rate);
  }
  for (std::size_t i = 0; i < state.clusters.size(); ++i) {
    if (state.clusters[i] != Hertz()) {
      changed.device.clusters[i].core.clock = state.clusters[i];
    }
  }
  changed.device.controller.temperature = state.dram_temperature;
  if (!state.masters) {
    changed.device.masters.clear();
  }
  if (state.prefill) {
    changed.workload.generate = 0;
  } else if (changed.engine.kv_cache == config::KvCacheUse::kept) {
    changed.workload.cached = changed.workload.prompt - 1;
  }
  changed.soak.reset();
  return changed;
}

const Window& WindowTable::at(const WindowState& state) {
  if (const auto known = windows_.find(state); known != windows_.end()) {
    return known->second;
  }
  for (std::size_t i = 0; i < state.clusters.size() && spec_.soak && spec_.soak->reuse; ++i) {
    const std::vector<Hertz> clocks = knots(i);
    if (state.clusters[i] != Hertz() && !clocks.empty() &&
        !std::ranges::binary_search(clocks, state.clusters[i])) {
      return windows_.emplace(state, between(state, i, clocks)).first->second;
    }
  }
  measure({state});
  return windows_.at(state);
}

std::vector<Hertz> WindowTable::knots(std::size_t cluster) const {
  if (!spec_.device.clocks) {
    return {};
  }
  for (const config::ClockDomainSpec& domain : spec_.device.clocks->domains) {
    if (domain.cluster == static_cast<std::int64_t>(cluster)) {
      std::vector<Hertz> clocks;
      for (std::size_t i = 0; i < kKnots; ++i) {
        clocks.push_back(domain.opps[i * (domain.opps.size() - 1) / (kKnots - 1)].clock);
      }
      const auto [from, to] = std::ranges::unique(clocks);
      clocks.erase(from, to);
      return clocks;
    }
  }
  return {};
}

Window WindowTable::between(const WindowState& state, std::size_t cluster, const std::vector<Hertz>& knots) {
  const auto above = std::ranges::upper_bound(knots, state.clusters[cluster]);
  if (above == knots.begin() || above == knots.end()) {  // no operating point of the table
    measure({state});
    return windows_.at(state);
  }
  WindowState slow = state;
  WindowState fast = state;
  slow.clusters[cluster] = *std::prev(above);
  fast.clusters[cluster] = *above;
  const auto cycle = [](Hertz clock) { return 1 / clock.as_double(); };
  const double share =
      (cycle(state.clusters[cluster]) - cycle(*above)) / (cycle(*std::prev(above)) - cycle(*above));
  const Window a = at(fast);
  const Window b = at(slow);
  return mixed(a, b, share);
}

void WindowTable::measure(const std::vector<WindowState>& states) {
  std::vector<WindowState> missing;
  for (const WindowState& state : states) {
    if (!windows_.contains(state) && std::ranges::find(missing, state) == missing.end()) {
      missing.push_back(state);
    }
  }
  std::vector<std::function<std::string()>> work;
  for (const WindowState& state : missing) {
    work.emplace_back([this, state] { return measure_here(at_state(spec_, state)); });
  }
  const std::vector<std::string> told = in_children(work, kAtOnce, stop_);
  for (std::size_t i = 0; i < missing.size(); ++i) {
    windows_.emplace(missing[i], window_of(told[i]));
  }
  measured_ += static_cast<std::int64_t>(missing.size());
}

double WindowTable::token(const WindowState& state, std::int64_t depth) {
  const auto work = [&] {
    config::RunSpec one = at_state(spec_, state);
    one.workload.prompt = std::max<std::int64_t>(depth, 1);
    one.workload.cached = one.workload.prompt - 1;
    one.workload.generate = 1;
    return measure_here(one);
  };
  ++measured_;
  return window_of(in_children({work}, 1, stop_).front()).tokens.back().picoseconds;
}

double WindowTable::relative_ci() const {
  double widest = 0;
  for (const auto& [state, window] : windows_) {
    widest = std::max(widest, window.relative_ci);
  }
  return widest;
}

}  // namespace kvsim::sim
