// SPDX-License-Identifier: Apache-2.0
// Tables of heat: networks, sensors, zones, caps.
#include <fmt/format.h>

#include "configs/spec/board_grammar.h"
#include "configs/spec/schemas.h"
#include "configs/spec/thermal_check.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

constexpr Celsius kColdest{-60};
constexpr Celsius kHottest{250};
constexpr KelvinPerWatt kLeastResistance{1e-6};
constexpr KelvinPerWatt kMostResistance{1e6};
constexpr Picoseconds kHour = 1000_ms * 3600;

}  // namespace

template <>
const Schema<FosterStageSpec>& schema<FosterStageSpec>() {
  using T = FosterStageSpec;
  static const Schema<T> kSchema{
      "a stage of a measured step response",
      {field("resistance", &T::resistance, "its share of the rise for a watt")
           .between(kLeastResistance, kMostResistance),
       field("time_constant", &T::time_constant, "in which 63 % of it comes").between(1_us, kHour * 100)}};
  return kSchema;
}

template <>
const Schema<ThermalNodeSpec>& schema<ThermalNodeSpec>() {
  using T = ThermalNodeSpec;
  static const Schema<T> kSchema{
      "a lump of matter of one temperature; it has a capacity and links, or a Foster chain, its way to "
      "ambient",
      {field("name", &T::name, "what reports and other keys call it"),
       field("capacity", &T::capacity, "heat for a degree")
           .between(JoulesPerKelvin(1e-9), JoulesPerKelvin(1e9))
           .optional(),
       field("foster", &T::foster, "stages of the step response").optional()}};
  return kSchema;
}

template <>
const Schema<ThermalLinkSpec>& schema<ThermalLinkSpec>() {
  using T = ThermalLinkSpec;
  static const Schema<T> kSchema{
      "a way for heat",
      {field("from", &T::from, "a node"), field("to", &T::to, "another node, or ambient").optional(),
       field("resistance", &T::resistance, "degrees for a watt").between(kLeastResistance, kMostResistance)}};
  return kSchema;
}

template <>
const Schema<FanPointSpec>& schema<FanPointSpec>() {
  using T = FanPointSpec;
  static const Schema<T> kSchema{
      "how well the fan cools at a speed",
      {field("speed", &T::speed, "share of the full speed").between(0, 1),
       field("resistance", &T::resistance, "from its node to ambient, beside other ways")
           .between(kLeastResistance, kMostResistance)}};
  return kSchema;
}

template <>
const Schema<FanTripSpec>& schema<FanTripSpec>() {
  using T = FanTripSpec;
  static const Schema<T> kSchema{"an active trip",
                                 {field("at", &T::at, "temperature").between(kColdest, kHottest),
                                  field("speed", &T::speed, "from there on").between(0, 1)}};
  return kSchema;
}

template <>
const Schema<FanSpec>& schema<FanSpec>() {
  using T = FanSpec;
  static const Schema<T> kSchema{
      "a fan; resistances between its points are interpolated",
      {field("node", &T::node, "that it cools"), field("sensor", &T::sensor, "that it follows"),
       field("points", &T::points, "resistance by speed, the slowest first"),
       field("trips", &T::trips, "speed by temperature, the lowest first"),
       field("hysteresis", &T::hysteresis, "it slows down so far below a trip")
           .between(Celsius(0), Celsius(100))
           .by_default(Celsius(5)),
       field("spin_up", &T::spin_up, "time from standstill to full speed").between(0_ps, kHour).optional(),
       field("polling", &T::polling, "it looks so often").between(1_ms, kHour).optional()}};
  return kSchema;
}

template <>
const Schema<ThermalCaseSpec>& schema<ThermalCaseSpec>() {
  using T = ThermalCaseSpec;
  static const Schema<T> kSchema{
      "one way to build the device into its surroundings",
      {field("name", &T::name, "what `case` calls it"),
       field("nodes", &T::nodes, "at most 16 lumps of matter"),
       field("links", &T::links, "ways between them, and to ambient").by_default({}),
       field("fan", &T::fan, "none: still air").by_default(std::nullopt)},
      check_thermal_case};
  return kSchema;
}

template <>
const Schema<SensorSpec>& schema<SensorSpec>() {
  using T = SensorSpec;
  static const Schema<T> kSchema{"a thermometer",
                                 {field("name", &T::name, "what reports and other keys call it"),
                                  field("node", &T::node, "that it is on"),
                                  field("resolution", &T::resolution, "readings are multiples of it")
                                      .between(Celsius(1e-6), Celsius(10))
                                      .optional()}};
  return kSchema;
}

template <>
const Schema<TripSpec>& schema<TripSpec>() {
  using T = TripSpec;
  static const Schema<T> kSchema{
      "a temperature at which something happens",
      {field("kind", &T::kind, "passive: clocks go down; critical: the system goes down")
           .by_default(TripKind::passive),
       field("at", &T::at, "temperature").between(kColdest, kHottest),
       field("hysteresis", &T::hysteresis, "it ends so far below")
           .between(Celsius(0), Celsius(100))
           .optional()}};
  return kSchema;
}

template <>
const Schema<CoolingSpec>& schema<CoolingSpec>() {
  using T = CoolingSpec;
  static const Schema<T> kSchema{
      "a clock domain that a zone slows down",
      {field("domain", &T::domain, "its name"),
       field("weight", &T::weight, "power_allocator: its wishes count so much; 1024 is once")
           .between(1, 1 << 20)
           .optional()}};
  return kSchema;
}

template <>
const Schema<PidSpec>& schema<PidSpec>() {
  using T = PidSpec;
  static const Schema<T> kSchema{
      "power_allocator's controller, in mW for a degree; what is left out is estimated as Linux does",
      {field("k_po", &T::k_po, "proportional term above the target").between(0, 1e6).optional(),
       field("k_pu", &T::k_pu, "proportional term below it").between(0, 1e6).optional(),
       field("k_i", &T::k_i, "integral term, for each poll").between(0, 1e6).optional(),
       field("k_d", &T::k_d, "differential term, for each ms of the poll").between(0, 1e6).optional(),
       field("integral_cutoff", &T::integral_cutoff, "errors below it are summed up")
           .between(Celsius(-100), Celsius(100))
           .optional()}};
  return kSchema;
}

template <>
const Schema<ThermalZoneSpec>& schema<ThermalZoneSpec>() {
  using T = ThermalZoneSpec;
  static const Schema<T> kSchema{
      "a sensor, its trips, and what acts upon them",
      {field("name", &T::name, "what reports call it"), field("sensor", &T::sensor, "that it follows"),
       field("governor", &T::governor, "what slows clocks down").by_default(ThermalGovernor::step_wise),
       field("polling", &T::polling, "it looks so often below all passive trips")
           .between(1_ms, kHour)
           .optional(),
       field("passive_polling", &T::passive_polling, "and so often above one")
           .between(1_ms, kHour)
           .optional(),
       field("trips", &T::trips, "the lowest first"),
       field("cooling", &T::cooling, "clock domains that it slows down").optional(),
       field("sustainable_power", &T::sustainable_power,
             "power_allocator: what the zone bears at its target; none: estimated as Linux does")
           .between(Watts(0.001), Watts(10'000))
           .optional(),
       field("pid", &T::pid, "power_allocator: its controller").optional()},
      check_thermal_zone};
  return kSchema;
}

template <>
const Schema<TemperatureCapSpec>& schema<TemperatureCapSpec>() {
  using T = TemperatureCapSpec;
  static const Schema<T> kSchema{
      "a clock that a domain does not pass above a temperature",
      {field("sensor", &T::sensor, "that it follows"), field("domain", &T::domain, "that it caps"),
       field("above", &T::above, "temperature").between(kColdest, kHottest),
       field("hysteresis", &T::hysteresis, "it ends so far below")
           .between(Celsius(0), Celsius(100))
           .optional(),
       field("clock", &T::clock, "the domain's highest then").between(1_MHz, 20_GHz),
       field("polling", &T::polling, "it looks so often").between(1_ms, kHour).optional()}};
  return kSchema;
}

template <>
const Schema<ThermalSpec>& schema<ThermalSpec>() {
  using T = ThermalSpec;
  static const Schema<T> kSchema{
      "where heat goes, what measures it, and what acts upon it",
      {field("ambient", &T::ambient, "temperature around the device")
           .between(kColdest, Celsius(125))
           .by_default(Celsius(25)),
       field("case", &T::case_name, "which of the cases it is in"),
       field("cases", &T::cases, "ways to build it into its surroundings"),
       field("sensors", &T::sensors, "thermometers").optional(),
       field("zones", &T::zones, "thermal zones").optional(),
       field("caps", &T::caps, "clocks capped above temperatures").optional(),
       field("dram_node", &T::dram_node, "whose temperature sets the DRAM's refresh")},
      check_thermal};
  return kSchema;
}

}  // namespace kvsim::config
