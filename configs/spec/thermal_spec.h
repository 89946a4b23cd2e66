// SPDX-License-Identifier: Apache-2.0
// Resolved description of where a device's heat goes, what measures it, and what acts upon it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/units/quantity.h"

namespace kvsim::config {

/// What links lead to beside nodes.
inline constexpr std::string_view kAmbient = "ambient";

/// One resistance and capacity in parallel, of several in a row between a node and ambient.
struct FosterStageSpec {
  KelvinPerWatt resistance;
  Picoseconds time_constant;

  bool operator==(const FosterStageSpec&) const = default;
};

/// A lump of matter of one temperature: with a heat capacity and links, or with a measured Foster chain,
/// which is its way to ambient.
struct ThermalNodeSpec {
  std::string name;
  std::optional<JoulesPerKelvin> capacity{};
  std::vector<FosterStageSpec> foster;

  bool operator==(const ThermalNodeSpec&) const = default;
};

struct ThermalLinkSpec {
  std::string from;
  std::string to{kAmbient};
  KelvinPerWatt resistance;

  bool operator==(const ThermalLinkSpec&) const = default;
};

/// The resistance of the fan's way to ambient at a speed, which is a share of the full one.
struct FanPointSpec {
  double speed = 0;
  KelvinPerWatt resistance;

  bool operator==(const FanPointSpec&) const = default;
};

/// An active trip: from this temperature on the fan runs at this speed.
struct FanTripSpec {
  Celsius at;
  double speed = 0;

  bool operator==(const FanTripSpec&) const = default;
};

struct FanSpec {
  std::string node;    ///< that it cools
  std::string sensor;  ///< that it follows
  std::vector<FanPointSpec> points;
  std::vector<FanTripSpec> trips;
  Celsius hysteresis;
  Picoseconds spin_up;  ///< from standstill to full speed, and back
  Picoseconds polling{1'000'000'000'000};

  bool operator==(const FanSpec&) const = default;
};

/// One way to build the device into its surroundings.
struct ThermalCaseSpec {
  std::string name;
  std::vector<ThermalNodeSpec> nodes;
  std::vector<ThermalLinkSpec> links;
  std::optional<FanSpec> fan{};

  bool operator==(const ThermalCaseSpec&) const = default;
};

struct SensorSpec {
  std::string name;
  std::string node;
  Celsius resolution{0.001};  ///< readings are whole multiples of it

  bool operator==(const SensorSpec&) const = default;
};

enum class TripKind { passive, critical };

struct TripSpec {
  TripKind kind = TripKind::passive;
  Celsius at;
  Celsius hysteresis;

  bool operator==(const TripSpec&) const = default;
};

/// A clock domain that a zone slows down.
struct CoolingSpec {
  std::string domain;
  std::int64_t weight = 1024;

  bool operator==(const CoolingSpec&) const = default;
};

enum class ThermalGovernor { none, step_wise, power_allocator, raspberry_pi };

/// Constants of power_allocator's controller, in mW/K; what is left out is estimated as Linux does.
struct PidSpec {
  std::optional<double> k_po{};
  std::optional<double> k_pu{};
  std::optional<double> k_i{};
  double k_d = 0;
  Celsius integral_cutoff{};

  bool operator==(const PidSpec&) const = default;
};

struct ThermalZoneSpec {
  std::string name;
  std::string sensor;
  ThermalGovernor governor = ThermalGovernor::step_wise;
  Picoseconds polling{1'000'000'000'000};        ///< below all passive trips
  Picoseconds passive_polling{100'000'000'000};  ///< above one
  std::vector<TripSpec> trips;                   ///< the lowest first
  std::vector<CoolingSpec> cooling;
  std::optional<Watts> sustainable_power{};  ///< for power_allocator
  PidSpec pid{};

  bool operator==(const ThermalZoneSpec&) const = default;
};

/// A clock that a domain does not pass above a temperature.
struct TemperatureCapSpec {
  std::string sensor;
  std::string domain;
  Celsius above;
  Celsius hysteresis;
  Hertz clock;
  Picoseconds polling{1'000'000'000'000};

  bool operator==(const TemperatureCapSpec&) const = default;
};

struct ThermalSpec {
  Celsius ambient{25};
  std::string case_name;
  std::vector<ThermalCaseSpec> cases;
  std::vector<SensorSpec> sensors;
  std::vector<ThermalZoneSpec> zones;
  std::vector<TemperatureCapSpec> caps;
  std::string dram_node;  ///< whose temperature sets the DRAM's refresh

  bool operator==(const ThermalSpec&) const = default;
};

/// The case that `case_name` names. Precondition: the specification is checked.
[[nodiscard]] const ThermalCaseSpec& chosen_case(const ThermalSpec& thermal);

}  // namespace kvsim::config
