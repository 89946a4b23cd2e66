// SPDX-License-Identifier: Apache-2.0
#include "models/board/board_parts.h"

#include <algorithm>
#include <cmath>

#include "configs/error/error.h"

namespace kvsim::model {

ThermalNetwork board_network(const config::DeviceSpec& device) {
  if (device.thermal) {
    return make_network(config::chosen_case(*device.thermal), device.thermal->ambient);
  }
  return {{}, RcNetwork({JoulesPerKelvin(1)}, {{0, {}, KelvinPerWatt(1)}}, Celsius(25))};
}

std::vector<ClockDomain> board_domains(const config::DeviceSpec& device) {
  check(device.clocks.has_value(), "the device has clocks");
  std::vector<ClockDomain> domains;
  for (const config::ClockDomainSpec& domain : device.clocks->domains) {
    domains.emplace_back(domain);
  }
  return domains;
}

std::vector<PowerModel::Wiring> board_wiring(const config::DeviceSpec& device,
                                             const ThermalNetwork& network) {
  std::vector<PowerModel::Wiring> wiring;
  if (!device.power) {
    return wiring;
  }
  for (const config::PowerPartSpec& part : device.power->parts) {
    PowerModel::Wiring& wires = wiring.emplace_back();
    wires.node = network.node(part.node);
    if (part.kind == config::PowerKind::logic) {
      const auto& domains = device.clocks->domains;
      const auto found = std::ranges::find(domains, part.domain, &config::ClockDomainSpec::name);
      check(found != domains.end(), "the clock domain exists");
      wires.domain = static_cast<std::size_t>(found - domains.begin());
    }
  }
  return wiring;
}

BytesPerSecond channel_peak(const ClockDomain& domain) {
  return BytesPerSecond(domain.spec().bytes_per_clock.as_double() * domain.clock().as_double());
}

Celsius sensor_reading(const config::SensorSpec& sensor, Celsius temperature) {
  return sensor.resolution * std::round(ratio(temperature, sensor.resolution));
}

std::string_view to_string(ClockLimit limit) {
  switch (limit) {
    case ClockLimit::none:
      return "none";
    case ClockLimit::governor:
      return "governor";
    case ClockLimit::heat:
      return "heat";
    case ClockLimit::temperature_cap:
      return "temperature cap";
    case ClockLimit::over_current:
      return "over-current";
    case ClockLimit::supply:
      return "supply";
    case ClockLimit::critical:
      return "critical temperature";
  }
  return "";
}

}  // namespace kvsim::model
