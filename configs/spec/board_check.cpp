// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/board_check.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/units/text.h"

namespace kvsim::config {
namespace {

struct Names {
  std::vector<std::string> domains;
  const Place* place;

  void domain(const std::string& name, const std::string& key) const {
    if (std::ranges::find(domains, name) == domains.end()) {
      place->error(
          key, fmt::format("there is no clock domain '{}'; there are {}", name, fmt::join(domains, ", ")));
    }
  }
};

void check_clock_names(const DeviceSpec& device, const Names& names) {
  const std::vector<ClockDomainSpec>& domains = device.clocks->domains;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const std::string key = fmt::format("clocks.domains.{}", i);
    for (std::size_t j = 0; j < domains[i].votes.size(); ++j) {
      names.domain(domains[i].votes[j].domain, fmt::format("{}.votes.{}.domain", key, j));
    }
  }
}

void check_coefficient(const std::vector<ClockDomainSpec>& domains, const CoolingSpec& cooling,
                       const std::string& key, const Place& place) {
  const auto found = std::ranges::find(domains, cooling.domain, &ClockDomainSpec::name);
  if (found != domains.end() && found->power_coefficient.count() == 0) {
    place.error(key,
                fmt::format("'{}' has no power_coefficient, which power_allocator goes by", cooling.domain));
  }
}

void check_thermal_names(const DeviceSpec& device, const Names& names) {
  const ThermalSpec& thermal = *device.thermal;
  for (std::size_t i = 0; i < thermal.zones.size(); ++i) {
    const std::vector<CoolingSpec>& cooling = thermal.zones[i].cooling;
    for (std::size_t j = 0; j < cooling.size(); ++j) {
      const std::string key = fmt::format("thermal.zones.{}.cooling.{}.domain", i, j);
      names.domain(cooling[j].domain, key);
      if (thermal.zones[i].governor == ThermalGovernor::power_allocator) {
        check_coefficient(device.clocks->domains, cooling[j], key, *names.place);
      }
    }
  }
  for (std::size_t i = 0; i < thermal.caps.size(); ++i) {
    names.domain(thermal.caps[i].domain, fmt::format("thermal.caps.{}.domain", i));
  }
}

void check_power_names(const DeviceSpec& device, const Names& names) {
  const PowerSpec& power = *device.power;
  for (std::size_t i = 0; i < power.parts.size(); ++i) {
    const PowerPartSpec& part = power.parts[i];
    if (part.kind == PowerKind::logic) {
      names.domain(part.domain, fmt::format("power.parts.{}.domain", i));
    }
    for (const ThermalCaseSpec& each : device.thermal->cases) {
      if (std::ranges::find(each.nodes, part.node, &ThermalNodeSpec::name) == each.nodes.end()) {
        names.place->error(fmt::format("power.parts.{}.node", i),
                           fmt::format("there is no node '{}' in the case '{}'", part.node, each.name));
        break;
      }
    }
  }
  for (std::size_t i = 0; i < power.limits.size(); ++i) {
    for (const std::string& domain : power.limits[i].domains) {
      names.domain(domain, fmt::format("power.limits.{}.domains", i));
    }
  }
}

}  // namespace

void check_board(const DeviceSpec& device, const Place& place) {
  if (device.thermal.has_value() != device.power.has_value()) {
    return place.error(device.power ? "power" : "thermal",
                       device.power ? "needs `thermal`: what takes power heats something"
                                    : "needs `power`: something must heat it");
  }
  if (device.thermal && !device.clocks) {
    return place.error("thermal", "needs `clocks`: heat acts on clocks");
  }
  if (!device.clocks) {
    return;
  }
  Names names{.domains = {}, .place = &place};
  for (const ClockDomainSpec& domain : device.clocks->domains) {
    names.domains.push_back(domain.name);
  }
  check_clock_names(device, names);
  if (device.thermal) {
    check_thermal_names(device, names);
    check_power_names(device, names);
  }
}

}  // namespace kvsim::config
