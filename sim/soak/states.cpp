// SPDX-License-Identifier: Apache-2.0
#include "sim/soak/states.h"

#include <algorithm>

#include "configs/spec/dram_temperature.h"

namespace kvsim::sim {

namespace {

/// Temperatures that stand for the bands of refresh and timings: half degrees from cold to hot find every
/// step.
constexpr double kColdest = -40;
constexpr double kHottest = 125;
constexpr double kStep = 0.5;

}  // namespace

States::States(const config::RunSpec& spec, std::optional<Celsius> cool)
    : spec_(spec), clocks_(*spec.device.clocks), cool_(cool.value_or(spec.device.controller.temperature)) {
  std::int64_t threads = spec.workload.threads;
  for (const config::ClusterSpec& cluster : spec.device.clusters) {
    const std::int64_t busy = std::min(threads, cluster.count);
    use_.push_back({.busy = busy, .cores = cluster.count});
    threads -= busy;
  }
}

/// A cluster without threads matters if a driver or another program is on it.
bool States::matters(std::size_t cluster) const {
  if (use_[cluster].busy > 0) {
    return true;
  }
  std::int64_t first = 0;
  for (std::size_t i = 0; i < cluster; ++i) {
    first += use_[i].cores;
  }
  return std::ranges::any_of(spec_.device.masters, [&](const config::MasterUse& use) {
    const std::optional<std::int64_t> core = config::core_of(use.master);
    return core && *core >= first && *core < first + use_[cluster].cores;
  });
}

/// A temperature that refreshes and slows the memory as this one does.
Celsius States::band(Celsius temperature) const {
  for (double at = kColdest; at <= kHottest; at += kStep) {
    if (is_one_band(Celsius(at), temperature)) {
      return Celsius(at);
    }
  }
  return temperature;
}

bool States::is_one_band(Celsius a, Celsius b) const {
  const config::DramPartSpec& part = spec_.device.dram;
  return config::refresh_rate(part, a) == config::refresh_rate(part, b) &&
         config::timing_at(part, a) == config::timing_at(part, b);
}

WindowState States::with_clocks(const std::vector<Hertz>& clocks) const {
  WindowState state;
  state.clusters.resize(spec_.device.clusters.size());
  state.dram_temperature = band(cool_);
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    const config::ClockDomainSpec& domain = clocks_.domains[i];
    if (domain.kind == config::ClockKind::dram) {
      state.dram = clocks[i];
    } else if (domain.cluster && matters(static_cast<std::size_t>(*domain.cluster))) {
      Hertz& cluster = state.clusters[static_cast<std::size_t>(*domain.cluster)];
      cluster = cluster == Hertz() ? clocks[i] : std::min(cluster, clocks[i]);
    }
  }
  return state;
}

WindowState States::of(const model::Board& board, const std::vector<std::string>& set) const {
  WindowState state = released(board, [](model::ClockLimit) { return false; });
  state.set = set;
  return state;
}

WindowState States::released(const model::Board& board,
                             const std::function<bool(model::ClockLimit)>& holds) const {
  std::vector<Hertz> clocks;
  for (std::size_t i = 0; i < board.domains(); ++i) {
    const model::ClockDomain& domain = board.domain(i);
    clocks.push_back(holds(domain.limit()) ? domain.table().clock(domain.table().top()) : domain.clock());
  }
  WindowState state = with_clocks(clocks);
  state.dram_temperature = band(board.dram_temperature().value_or(cool_));
  return state;
}

WindowState States::fastest() const {
  std::vector<Hertz> clocks;
  for (const config::ClockDomainSpec& domain : clocks_.domains) {
    clocks.push_back(domain.opps.back().clock);
  }
  return with_clocks(clocks);
}

WindowState States::fastest_alone() const {
  WindowState state = fastest();
  state.masters = spec_.device.masters.empty();
  return state;
}

WindowState States::cool(WindowState state) const {
  state.dram_temperature = band(cool_);
  return state;
}

std::vector<WindowState> States::likely_after(const WindowState& state) const {
  std::vector<WindowState> likely;
  const auto add = [&](const auto& change) {
    WindowState next = state;
    change(next);
    likely.push_back(std::move(next));
  };
  const WindowState top = fastest();
  add([&](WindowState& next) {
    for (std::size_t i = 0; i < use_.size(); ++i) {
      next.clusters[i] = use_[i].busy > 0 ? top.clusters[i] : next.clusters[i];
    }
  });
  add([&](WindowState& next) { next.prefill = !next.prefill; });
  for (const config::ClockDomainSpec& domain : clocks_.domains) {
    const auto here = std::ranges::find(domain.opps, state.dram, &config::OppSpec::clock);
    if (domain.kind != config::ClockKind::dram || here == domain.opps.end()) {
      continue;
    }
    if (here + 1 != domain.opps.end()) {
      add([&](WindowState& next) { next.dram = (here + 1)->clock; });
      add([&](WindowState& next) { next.dram = domain.opps.back().clock; });
    }
    if (here != domain.opps.begin()) {
      add([&](WindowState& next) { next.dram = (here - 1)->clock; });
    }
  }
  double hotter = state.dram_temperature.count();
  while (hotter < kHottest && is_one_band(Celsius(hotter), state.dram_temperature)) {
    hotter += kStep;
  }
  add([&](WindowState& next) { next.dram_temperature = Celsius(hotter); });
  return likely;
}

model::Activity States::activity(const model::Board& board, const PhaseFigures& phase,
                                 double stalled_power) const {
  model::Activity activity = resting(board);
  for (std::size_t i = 0; i < clocks_.domains.size(); ++i) {
    const config::ClockDomainSpec& domain = clocks_.domains[i];
    if (domain.cluster) {
      const Use& use = use_[static_cast<std::size_t>(*domain.cluster)];
      const double busy = static_cast<double>(use.busy) / static_cast<double>(use.cores);
      activity.domains[i] = {.busy = busy,
                             .busiest = use.busy > 0 ? 1.0 : 0.0,
                             .intensity = phase.compute_share + stalled_power * (1 - phase.compute_share)};
    }
    if (domain.kind == config::ClockKind::dram) {
      const double peak = peak_bandwidth(spec_.device).count() * board.domain(i).clock().as_double() * 2 /
                          spec_.device.dram.data_rate.as_double();
      std::ranges::fill(activity.channel_load,
                        std::min(1.0, (phase.read.count() + phase.written.count()) / peak));
    }
  }
  activity.dram = phase.dram;
  activity.storage = phase.storage_share;
  return activity;
}

/// Screens and the like go on; the memory's ranks stand by.
model::Activity States::resting(const model::Board& board) const {
  model::Activity activity;
  activity.domains.resize(clocks_.domains.size());
  double moved = 0;
  for (const config::MasterUse& use : spec_.device.masters) {
    moved += mean_rate(use.master).count();
  }
  double peak = peak_bandwidth(spec_.device).count();
  for (std::size_t i = 0; i < clocks_.domains.size(); ++i) {
    if (clocks_.domains[i].kind == config::ClockKind::dram) {
      peak *= board.domain(i).clock().as_double() * 2 / spec_.device.dram.data_rate.as_double();
    }
  }
  activity.channel_load.assign(static_cast<std::size_t>(spec_.device.controller.channels),
                               std::min(1.0, moved / peak));
  if (const auto& energy = spec_.device.dram.energy) {
    const auto ranks = static_cast<double>(spec_.device.controller.channels * spec_.device.controller.ranks);
    activity.dram = energy->precharge_standby * ranks;
  }
  return activity;
}

}  // namespace kvsim::sim
