// SPDX-License-Identifier: Apache-2.0
#include "models/power/power_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

constexpr double kReference = 25;  // C

Watts power_of(const config::PowerPartSpec& part, const PowerModel::Wiring& wiring,
               const PowerInputs& inputs) {
  switch (part.kind) {
    case config::PowerKind::logic: {
      const DomainPower& domain = inputs.domains[wiring.domain];
      const double cores = static_cast<double>(part.cores) * domain.busy * domain.intensity;
      return part.idle + dynamic_power(part.capacitance, domain.voltage, domain.clock, cores) +
             leakage_power(part.leakage, ratio(domain.voltage, domain.highest_voltage), part.leakage_doubles,
                           inputs.nodes[wiring.node]);
    }
    case config::PowerKind::dram:
      return part.idle + inputs.dram;
    case config::PowerKind::storage:
      return part.idle + part.active * inputs.storage;
    case config::PowerKind::board:
      return part.idle;
  }
  check(false, "every kind has its power");
  return {};
}

}  // namespace

Watts dynamic_power(Farads capacitance, Volts voltage, Hertz clock, double cores) {
  return Watts(capacitance.count() * voltage.count() * voltage.count() * clock.as_double() * cores);
}

Watts leakage_power(Watts at_25, double share_of_full_voltage, Celsius doubles, Celsius temperature) {
  if (at_25.count() == 0) {
    return {};
  }
  return at_25 * (share_of_full_voltage * std::exp2((temperature.count() - kReference) / doubles.count()));
}

PowerModel::PowerModel(const config::PowerSpec& spec, std::vector<Wiring> wiring)
    : parts_(spec.parts), wiring_(std::move(wiring)) {
  check(wiring_.size() == parts_.size(), "each part is wired");
  for (const config::PowerPartSpec& part : parts_) {
    const auto found = std::ranges::find(rails_, part.rail);
    rail_of_.push_back(static_cast<std::size_t>(found - rails_.begin()));
    if (found == rails_.end()) {
      rails_.push_back(part.rail);
    }
  }
}

void PowerModel::compute(const PowerInputs& inputs, std::vector<Watts>& parts) const {
  parts.resize(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts[i] = power_of(parts_[i], wiring_[i], inputs);
  }
}

void PowerModel::heat(std::span<const Watts> parts, std::vector<Watts>& nodes) const {
  std::ranges::fill(nodes, Watts());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    nodes[wiring_[i].node] += parts[i];
  }
}

void EnergyMeter::set(const PowerModel& model, std::span<const Watts> parts) {
  std::ranges::fill(power_, Watts());
  total_power_ = Watts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    power_[model.rail_of(i)] += parts[i];
    total_power_ += parts[i];
  }
}

void EnergyMeter::advance(Picoseconds time) {
  for (std::size_t rail = 0; rail < power_.size(); ++rail) {
    energy_[rail] += Joules(power_[rail].count() * seconds(time));
  }
  total_ += Joules(total_power_.count() * seconds(time));
}

}  // namespace kvsim::model
