// SPDX-License-Identifier: Apache-2.0
#include "sim/soak/window.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/spec/dram_rate.h"
#include "configs/spec/dram_refresh.h"
#include "configs/spec/resolve.h"
#include "sim/metrics/summary.h"
#include "sim/run/runner.h"
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

/// Hot memory is refreshed so often that bank by bank would take longer than there is time: then a controller
/// can only refresh all banks at once (assumed; no manual tells).
void refresh_in_time(config::DeviceSpec& device) {
  if (device.controller.refresh == config::RefreshMode::per_bank &&
      config::refresh_problem(device.dram, device.controller)) {
    device.controller.refresh = config::RefreshMode::all_bank;
  }
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
  refresh_in_time(changed.device);
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
  prepare({state});
  if (const auto around = neighbours(state)) {
    const Window fast = at(around->fast);
    const Window slow = at(around->slow);
    windows_.emplace(state, mixed(fast, slow, around->share));
  }
  return windows_.at(state);
}

void WindowTable::prepare(const std::vector<WindowState>& states, const std::vector<WindowState>& likely) {
  std::vector<WindowState> missing;
  for (const WindowState& state : states) {
    add_missing(state, missing);
  }
  if (!missing.empty()) {
    measure(missing, likely);
  }
}

void WindowTable::add_missing(const WindowState& state, std::vector<WindowState>& missing) const {
  if (windows_.contains(state) || std::ranges::find(missing, state) != missing.end()) {
    return;
  }
  if (const auto around = neighbours(state)) {
    add_missing(around->fast, missing);
    add_missing(around->slow, missing);
  } else {
    missing.push_back(state);
  }
}

std::optional<WindowTable::Neighbours> WindowTable::neighbours(const WindowState& state) const {
  for (std::size_t i = 0; i < state.clusters.size() && spec_.soak && spec_.soak->reuse; ++i) {
    const std::vector<Hertz> clocks = knots(i);
    const Hertz clock = state.clusters[i];
    const auto above = std::ranges::lower_bound(clocks, clock);
    if (above == clocks.begin() || above == clocks.end() || *above == clock) {
      continue;  // a measured one, or no operating point of the table
    }
    Neighbours around{.slow = state, .fast = state};
    around.slow.clusters[i] = *std::prev(above);
    around.fast.clusters[i] = *above;
    const auto cycle = [](Hertz of) { return 1 / of.as_double(); };
    around.share = (cycle(clock) - cycle(*above)) / (cycle(around.slow.clusters[i]) - cycle(*above));
    return around;
  }
  return std::nullopt;
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

void WindowTable::measure(const std::vector<WindowState>& states, const std::vector<WindowState>& likely) {
  std::vector<Children::Ticket> tickets;
  for (std::size_t done = 0; done < states.size();) {
    while (tickets.size() < states.size() &&
           (ahead_.contains(states[tickets.size()]) || children_.running() < kAtOnce)) {
      tickets.push_back(start(states[tickets.size()]));
    }
    if (tickets.size() == states.size()) {
      look_ahead(likely);
    }
    children_.listen();
    for (; done < tickets.size() && children_.is_done(tickets[done]); ++done) {
      windows_.emplace(states[done], window_of(children_.take(tickets[done])));
    }
  }
  measured_ += static_cast<std::int64_t>(states.size());
}

/// Or takes over what was begun ahead.
Children::Ticket WindowTable::start(const WindowState& state) {
  if (const auto begun = ahead_.find(state); begun != ahead_.end()) {
    const Children::Ticket ticket = begun->second;
    ahead_.erase(begun);
    return ticket;
  }
  return children_.start([this, state] { return measure_here(at_state(spec_, state)); });
}

void WindowTable::look_ahead(const std::vector<WindowState>& likely) {
  std::vector<WindowState> missing;
  for (const WindowState& state : likely) {
    add_missing(state, missing);
  }
  for (const WindowState& state : missing) {
    if (children_.running() >= kAtOnce) {
      return;
    }
    if (!ahead_.contains(state)) {
      ahead_.emplace(state, start(state));
    }
  }
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
