// SPDX-License-Identifier: Apache-2.0
// A device over seconds and hours: what it does makes power, power makes heat, heat and load make governors
// change clocks, and clocks make power.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/board/load_sum.h"
#include "models/board/zone.h"
#include "models/clocks/clock_domain.h"
#include "models/power/power_limit.h"
#include "models/power/power_model.h"
#include "models/thermal/fan.h"
#include "models/thermal/firmware_limit.h"
#include "models/thermal/thermal_network.h"

namespace kvsim::model {

/// What a clock domain does, at its present clock.
struct DomainActivity {
  double busy = 0;       ///< mean share of its cores that are busy; waiting for memory is busy
  double busiest = 0;    ///< the same of the busiest core, which governors look at
  double intensity = 1;  ///< power while busy, as a share of what the capacitance says

  bool operator==(const DomainActivity&) const = default;
};

/// What a device does.
struct Activity {
  std::vector<DomainActivity> domains;  ///< in the order of the device file; of DRAM they say nothing
  std::vector<double> channel_load;     ///< by DRAM channel: share of its data bus at the present clock
  Watts dram;                           ///< power of the DRAM
  double storage = 0;                   ///< share of the time that storage works

  bool operator==(const Activity&) const = default;
};

struct ClockChange {
  std::size_t domain = 0;
  Hertz from;
  Hertz to;
  ClockLimit limit = ClockLimit::none;  ///< why it is now not at its fastest
};

/// What happened, up to the first change of what the device's speed depends on.
struct Changes {
  Picoseconds elapsed;                   ///< less than asked for if there is a change
  std::vector<ClockChange> clocks;       ///< all at that time
  std::optional<double> refresh_rate{};  ///< of the DRAM, in multiples of the normal one
  bool went_down = false;                ///< a critical trip
  Picoseconds stall;                     ///< the longest of the domains' switches

  [[nodiscard]] bool any() const { return !clocks.empty() || refresh_rate || went_down; }
};

struct DomainState {
  std::string name;
  Hertz clock;
  ClockLimit limit = ClockLimit::none;
  std::int64_t switches = 0;
};

struct RailState {
  std::string name;
  Watts power;
  Joules energy;
};

struct NamedTemperature {
  std::string name;
  Celsius temperature;
};

struct BoardState {
  Picoseconds time;
  std::vector<NamedTemperature> nodes;
  std::vector<NamedTemperature> sensors;
  std::vector<DomainState> domains;
  std::vector<RailState> rails;
  Watts power;
  Joules energy;
  double refresh_rate = 1;
  std::optional<double> fan_speed{};
  std::size_t over_current_alarms = 0;
  std::optional<Picoseconds> down_at{};  ///< a critical trip: from then on nothing takes power
  bool runaway = false;                  ///< at that time, heat had no equilibrium
};

class Board {
 public:
  /// Everything at ambient. Precondition: the device has clocks.
  explicit Board(const config::DeviceSpec& device);

  /// Puts clocks where governors bring them for this activity, as if it had gone on for long, and then all
  /// temperatures where they come to rest, if that is anywhere. Heat does not slow clocks down here.
  void settle(const Activity& activity);
  void set_ambient(Celsius ambient) { network_.network.set_ambient(ambient); }
  /// Of the system, for the floors of clocks, which may change at once.
  void set_status(const std::string& status);

  /// The device does this for `time`, or up to the first change. Cutting a time into pieces makes no
  /// difference.
  Changes advance(const Activity& activity, Picoseconds time);

  [[nodiscard]] BoardState state() const;
  [[nodiscard]] Picoseconds now() const { return now_; }
  [[nodiscard]] std::size_t domains() const { return domains_.size(); }
  [[nodiscard]] const ClockDomain& domain(std::size_t index) const { return domains_[index]; }
  [[nodiscard]] Celsius temperature(std::size_t node) const { return network_.network.temperature(node); }
  [[nodiscard]] Watts power() const { return meter_.power(); }
  [[nodiscard]] Joules energy() const { return meter_.energy(); }
  [[nodiscard]] double refresh_rate() const { return refresh_rate_; }
  /// None if the device does not say where its DRAM is.
  [[nodiscard]] std::optional<Celsius> dram_temperature() const {
    return dram_node_ ? std::optional(temperature(*dram_node_)) : std::nullopt;
  }
  [[nodiscard]] const RcNetwork& network() const { return network_.network; }

 private:
  struct Cap {
    config::TemperatureCapSpec spec;
    TemperatureCap cap;
    std::size_t domain = 0;
    Picoseconds next;
  };
  struct Limit {
    config::PowerLimitSpec spec;
    PowerLimit limit;
    std::optional<std::size_t> rail;
    std::vector<std::size_t> domains;
    Joules at_start;  ///< of the window
    Picoseconds next;
  };

  [[nodiscard]] std::size_t domain_index(const std::string& name) const;
  [[nodiscard]] std::optional<std::size_t> rail_index(const std::optional<std::string>& name) const;
  [[nodiscard]] Celsius reading(const std::string& sensor) const;
  [[nodiscard]] Joules energy_of(const std::optional<std::size_t>& rail) const;

  [[nodiscard]] std::vector<ClockVote> votes_for(std::size_t domain) const;
  [[nodiscard]] DomainLoad load_of(std::size_t domain) const;

  void add_zones();
  void add_limits();
  void compute_power(const std::vector<Celsius>& nodes, std::vector<Watts>& parts) const;
  void refresh_power();
  void pass(Picoseconds time);
  [[nodiscard]] Picoseconds next_event() const;

  /// What is due now.
  void look(Changes& changes);
  void look_at_grid(Changes& changes);
  void look_at_limits(Changes& changes);
  void look_at_zones(Changes& changes);
  void look_at_caps(Changes& changes);
  void look_at_governors(Changes& changes);
  void apply_heat_caps(Changes& changes);
  void apply_limits_of(config::PowerLimitKind kind, Changes& changes);
  void go_down(Changes& changes);
  void cap(std::size_t domain, ClockLimit cause, std::size_t point, Changes& changes);
  /// Tells a change of a domain that was at `before`.
  void note(std::size_t domain, Hertz before, Changes& changes);

  config::DeviceSpec device_;
  ThermalNetwork network_;
  std::vector<ClockDomain> domains_;
  std::vector<LoadSum> loads_;  ///< by domain, since its governor looked
  std::vector<Picoseconds> next_sample_;
  PowerModel power_;
  EnergyMeter meter_;
  std::vector<Zone> zones_;
  std::vector<Cap> caps_;
  std::vector<Limit> limits_;
  std::optional<Fan> fan_{};
  Picoseconds next_fan_;
  Picoseconds next_grid_;
  std::optional<std::size_t> dram_node_{};
  double refresh_rate_ = 1;

  Picoseconds now_;
  Activity activity_;
  std::vector<Celsius> node_temperatures_;
  std::vector<Watts> parts_;  ///< power by part,
  std::vector<Watts> heat_;   ///< and by node
  bool is_stale_ = true;      ///< of both
  std::optional<Picoseconds> down_at_{};
  bool runaway_ = false;
};

}  // namespace kvsim::model
