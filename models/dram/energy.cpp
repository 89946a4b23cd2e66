// SPDX-License-Identifier: Apache-2.0
#include "models/dram/energy.h"

#include <algorithm>
#include <numeric>

namespace kvsim::model {

// --- the state of a rank
// -----------------------------------------------------------------------------------------------------

void RankBackground::settle(std::int64_t time) {
  const auto add = [this](Background state, std::int64_t end) {
    times_[static_cast<std::size_t>(state)] += end - since_;
    since_ = end;
  };
  if (asleep_) {
    add(*asleep_, time);
  } else if (open_banks_ > 0) {
    add(Background::active_standby, time);
  } else {
    add(Background::active_standby, std::clamp(closed_, std::min(since_, time), time));
    add(Background::precharge_standby, time);
  }
}

BackgroundTimes RankBackground::times(std::int64_t until) const {
  RankBackground copy = *this;
  copy.settle(until);
  return copy.times_;
}

// --- activity
// ----------------------------------------------------------------------------------------------------------------

DramActivity& DramActivity::operator+=(const DramActivity& other) {
  activates += other.activates;
  reads += other.reads;
  writes += other.writes;
  refreshes_all += other.refreshes_all;
  refreshes_bank += other.refreshes_bank;
  for (std::size_t i = 0; i < kBackgrounds; ++i) {
    background[i] += other.background[i];
  }
  return *this;
}

DramActivity operator-(const DramActivity& a, const DramActivity& b) {
  DramActivity difference{.activates = a.activates - b.activates,
                          .reads = a.reads - b.reads,
                          .writes = a.writes - b.writes,
                          .refreshes_all = a.refreshes_all - b.refreshes_all,
                          .refreshes_bank = a.refreshes_bank - b.refreshes_bank,
                          .background = a.background};
  for (std::size_t i = 0; i < kBackgrounds; ++i) {
    difference.background[i] -= b.background[i];
  }
  return difference;
}

// --- energy
// ------------------------------------------------------------------------------------------------------------------

std::string_view to_string(EnergyPart part) {
  static constexpr std::array<std::string_view, kEnergyParts> kNames = {"activate",
                                                                        "read",
                                                                        "write",
                                                                        "refresh",
                                                                        "active_standby",
                                                                        "precharge_standby",
                                                                        "active_power_down",
                                                                        "precharge_power_down",
                                                                        "self_refresh"};
  return kNames.at(static_cast<std::size_t>(part));
}

Joules EnergyAccount::commands() const {
  return std::accumulate(parts.begin(), parts.begin() + kCommandParts, Joules());
}

Joules EnergyAccount::background() const {
  return std::accumulate(parts.begin() + kCommandParts, parts.end(), Joules());
}

EnergyAccount energy_of(const config::DramEnergy& energy, const DramActivity& activity) {
  const auto times = [](Joules each, std::int64_t count) { return each * static_cast<double>(count); };
  EnergyAccount account;
  account.parts = {times(energy.activate, activity.activates), times(energy.read_burst, activity.reads),
                   times(energy.write_burst, activity.writes),
                   times(energy.refresh_all, activity.refreshes_all) +
                       times(energy.refresh_bank, activity.refreshes_bank)};
  const std::array power = {energy.active_standby, energy.precharge_standby, energy.active_power_down,
                            energy.precharge_power_down, energy.self_refresh};
  static_assert(power.size() == kBackgrounds);
  for (std::size_t i = 0; i < kBackgrounds; ++i) {
    account.parts[kCommandParts + i] = Joules(power[i].count() * seconds(activity.background[i]));
  }
  return account;
}

std::vector<Rail> rails_of(const config::DramPartSpec& part) {
  std::vector<Rail> rails;
  if (part.rails) {
    const auto add = [&](std::string_view name, const std::optional<config::DramEnergy>& energy) {
      if (energy) {
        rails.push_back({.name = name, .energy = *energy});
      }
    };
    add("VDD1", part.rails->VDD1);
    add("VDD2", part.rails->VDD2);
    add("VDDQ", part.rails->VDDQ);
  } else if (part.energy) {
    rails.push_back({.name = "total", .energy = *part.energy});
  }
  return rails;
}

}  // namespace kvsim::model
