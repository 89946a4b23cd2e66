// SPDX-License-Identifier: Apache-2.0
// What the parts of a device take, and the account of it by rail.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "configs/spec/power_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::model {

/// Capacitance x voltage squared x clock, of so many cores at work.
[[nodiscard]] Watts dynamic_power(Farads capacitance, Volts voltage, Hertz clock, double cores);

/// In proportion to the voltage, and doubling with so many degrees more. `at_25` is for `full` volts.
[[nodiscard]] Watts leakage_power(Watts at_25, double share_of_full_voltage, Celsius doubles,
                                  Celsius temperature);

/// A clock domain as its power goes.
struct DomainPower {
  Hertz clock;
  Volts voltage;
  Volts highest_voltage;
  double busy = 0;       ///< mean share of its cores that work
  double intensity = 1;  ///< power at work, as a share of what the capacitance says
};

/// What the parts' power follows.
struct PowerInputs {
  std::span<const DomainPower> domains;
  std::span<const Celsius> nodes;
  Watts dram;
  double storage = 0;  ///< share of the time that it works
};

class PowerModel {
 public:
  /// Where each part's domain and node stand in PowerInputs. Precondition: each part of logic has a domain.
  struct Wiring {
    std::size_t domain = 0;
    std::size_t node = 0;
  };

  PowerModel(const config::PowerSpec& spec, std::vector<Wiring> wiring);

  /// Puts each part's power into `parts`.
  void compute(const PowerInputs& inputs, std::vector<Watts>& parts) const;
  /// The parts' power by node.
  void heat(std::span<const Watts> parts, std::vector<Watts>& nodes) const;

  [[nodiscard]] const std::vector<std::string>& rails() const { return rails_; }
  [[nodiscard]] std::size_t rail_of(std::size_t part) const { return rail_of_[part]; }

 private:
  std::vector<config::PowerPartSpec> parts_;
  std::vector<Wiring> wiring_;
  std::vector<std::string> rails_;  ///< in the order of their first parts
  std::vector<std::size_t> rail_of_;
};

/// Power over time, by rail and in sum.
class EnergyMeter {
 public:
  explicit EnergyMeter(std::size_t rails) : power_(rails), energy_(rails) {}

  /// From now on.
  void set(const PowerModel& model, std::span<const Watts> parts);
  void advance(Picoseconds time);

  [[nodiscard]] Watts power(std::size_t rail) const { return power_[rail]; }
  [[nodiscard]] Joules energy(std::size_t rail) const { return energy_[rail]; }
  [[nodiscard]] Watts power() const { return total_power_; }
  [[nodiscard]] Joules energy() const { return total_; }

 private:
  std::vector<Watts> power_;
  std::vector<Joules> energy_;
  Watts total_power_;
  Joules total_;
};

}  // namespace kvsim::model
