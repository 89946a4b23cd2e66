// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/thermal_check.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/error/error.h"
#include "configs/units/text.h"

namespace kvsim::config {
namespace {

template <class T>
std::vector<std::string> names(const std::vector<T>& items) {
  std::vector<std::string> result;
  for (const T& item : items) {
    result.push_back(item.name);
  }
  return result;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

template <class T>
void check_names(const std::vector<T>& items, std::string_view list, const Place& place) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].name.empty()) {
      place.error(fmt::format("{}.{}.name", list, i), "is empty");
    } else if (!seen.insert(items[i].name).second) {
      place.error(fmt::format("{}.{}.name", list, i), fmt::format("'{}' stands there twice", items[i].name));
    }
  }
}

void check_node(const ThermalNodeSpec& node, const std::string& key, const Place& place) {
  if (node.name == kAmbient) {
    place.error(key + ".name", "'ambient' is what surrounds the device");
  }
  if (node.capacity.has_value() != node.foster.empty()) {
    place.error(key + ".capacity", node.foster.empty() ? "is left out, and there is no foster chain either"
                                                       : "stands beside a foster chain, which has its own");
  }
  for (std::size_t i = 0; i < node.foster.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (node.foster[i].time_constant == node.foster[j].time_constant) {
        place.error(fmt::format("{}.foster.{}.time_constant", key, i),
                    "is that of another stage; make one of them");
      }
    }
  }
}

/// From every node heat must find its way to ambient.
void check_ways(const ThermalCaseSpec& spec, const Place& place) {
  std::set<std::string> cooled{std::string(kAmbient)};
  for (const ThermalNodeSpec& node : spec.nodes) {
    if (!node.foster.empty()) {
      cooled.insert(node.name);
    }
  }
  if (spec.fan) {
    cooled.insert(spec.fan->node);
  }
  for (std::size_t round = 0; round < spec.nodes.size(); ++round) {
    for (const ThermalLinkSpec& link : spec.links) {
      if (cooled.contains(link.from) || cooled.contains(link.to)) {
        cooled.insert({link.from, link.to});
      }
    }
  }
  for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
    if (!cooled.contains(spec.nodes[i].name)) {
      place.error(fmt::format("nodes.{}", i),
                  fmt::format("from '{}' no links lead to ambient", spec.nodes[i].name));
    }
  }
}

void check_fan(const FanSpec& fan, const std::vector<std::string>& nodes, const Place& place) {
  if (!has(nodes, fan.node)) {
    place.error("fan.node",
                fmt::format("there is no node '{}'; there are {}", fan.node, fmt::join(nodes, ", ")));
  }
  if (fan.points.empty()) {
    place.error("fan.points", "is empty");
  }
  for (std::size_t i = 1; i < fan.points.size(); ++i) {
    if (fan.points[i].speed <= fan.points[i - 1].speed) {
      place.error(fmt::format("fan.points.{}.speed", i), "is not above the one before");
    }
    if (fan.points[i].resistance > fan.points[i - 1].resistance) {
      place.error(fmt::format("fan.points.{}.resistance", i), "is above that of a slower fan");
    }
  }
  for (std::size_t i = 1; i < fan.trips.size(); ++i) {
    if (fan.trips[i].at <= fan.trips[i - 1].at || fan.trips[i].speed < fan.trips[i - 1].speed) {
      place.error(fmt::format("fan.trips.{}.at", i), "temperatures and speeds must rise from trip to trip");
    }
  }
}

void check_sensor(const std::string& sensor, const std::string& key, const ThermalSpec& thermal,
                  const Place& place) {
  const std::vector<std::string> known = names(thermal.sensors);
  if (!has(known, sensor)) {
    place.error(key,
                fmt::format("there is no sensor '{}'; there {} {}", sensor, known.size() == 1 ? "is" : "are",
                            known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }
}

void check_node_name(const std::string& node, const std::string& key, const ThermalSpec& thermal,
                     const Place& place) {
  for (const ThermalCaseSpec& each : thermal.cases) {
    if (!has(names(each.nodes), node)) {
      return place.error(key, fmt::format("there is no node '{}' in the case '{}'; there are {}", node,
                                          each.name, fmt::join(names(each.nodes), ", ")));
    }
  }
}

void check_trips(const ThermalSpec& thermal, const Place& place) {
  for (std::size_t i = 0; i < thermal.zones.size(); ++i) {
    const std::vector<TripSpec>& trips = thermal.zones[i].trips;
    for (std::size_t j = 0; j < trips.size(); ++j) {
      if (trips[j].at <= thermal.ambient) {
        place.error(
            fmt::format("zones.{}.trips.{}.at", i, j),
            fmt::format("'{}' is not above ambient, {}", to_text(trips[j].at), to_text(thermal.ambient)));
      }
    }
  }
  for (std::size_t i = 0; i < thermal.caps.size(); ++i) {
    if (thermal.caps[i].above <= thermal.ambient) {
      place.error(fmt::format("caps.{}.above", i),
                  fmt::format("'{}' is not above ambient, {}", to_text(thermal.caps[i].above),
                              to_text(thermal.ambient)));
    }
  }
}

}  // namespace

const ThermalCaseSpec& chosen_case(const ThermalSpec& thermal) {
  const auto found = std::ranges::find(thermal.cases, thermal.case_name, &ThermalCaseSpec::name);
  check(found != thermal.cases.end(), "the case exists");
  return *found;
}

void check_thermal_case(const ThermalCaseSpec& spec, const Place& place) {
  check_names(spec.nodes, "nodes", place);
  std::size_t lumps = 0;
  for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
    check_node(spec.nodes[i], fmt::format("nodes.{}", i), place);
    lumps += std::max<std::size_t>(1, spec.nodes[i].foster.size());
  }
  if (lumps == 0 || lumps > kMostThermalNodes) {
    place.error("nodes", fmt::format("{} nodes and stages; allowed is 1 to {}", lumps, kMostThermalNodes));
  }
  const std::vector<std::string> nodes = names(spec.nodes);
  for (std::size_t i = 0; i < spec.links.size(); ++i) {
    const ThermalLinkSpec& link = spec.links[i];
    for (const auto& [key, name] : {std::pair{"from", link.from}, std::pair{"to", link.to}}) {
      if (!has(nodes, name) && !(key == std::string_view("to") && name == kAmbient)) {
        place.error(fmt::format("links.{}.{}", i, key),
                    fmt::format("there is no node '{}'; there are {}", name, fmt::join(nodes, ", ")));
      }
    }
    if (link.from == link.to) {
      place.error(fmt::format("links.{}.to", i), "is where the link begins");
    }
  }
  if (spec.fan) {
    check_fan(*spec.fan, nodes, place);
  }
  check_ways(spec, place);
}

void check_thermal_zone(const ThermalZoneSpec& zone, const Place& place) {
  std::size_t passive = 0;
  for (std::size_t i = 0; i < zone.trips.size(); ++i) {
    passive += zone.trips[i].kind == TripKind::passive ? 1 : 0;
    if (i > 0 && zone.trips[i].at <= zone.trips[i - 1].at) {
      place.error(fmt::format("trips.{}.at", i),
                  fmt::format("'{}' is not above the trip before, {}", to_text(zone.trips[i].at),
                              to_text(zone.trips[i - 1].at)));
    }
    if (i > 0 && zone.trips[i - 1].kind == TripKind::critical) {
      place.error(fmt::format("trips.{}.at", i), "is above the critical trip, which ends it all");
    }
  }
  if (zone.governor == ThermalGovernor::power_allocator && passive != 2) {
    place.error("trips",
                fmt::format("has {} passive trips; power_allocator has two: where it begins, and its target",
                            passive));
  }
  if (zone.governor == ThermalGovernor::raspberry_pi && passive != 2) {
    place.error("trips",
                fmt::format("has {} passive trips; raspberry_pi has two: where it begins to slow down, and "
                            "where it goes to the slowest clock",
                            passive));
  }
  if (zone.governor != ThermalGovernor::none && zone.cooling.empty()) {
    place.error("cooling", "is empty; the governor has nothing to slow down");
  }
  if (zone.governor != ThermalGovernor::power_allocator &&
      (zone.sustainable_power || zone.pid != PidSpec{})) {
    place.error(zone.sustainable_power ? "sustainable_power" : "pid", "is for power_allocator only");
  }
}

void check_thermal(const ThermalSpec& thermal, const Place& place) {
  check_names(thermal.cases, "cases", place);
  check_names(thermal.sensors, "sensors", place);
  check_names(thermal.zones, "zones", place);
  if (!has(names(thermal.cases), thermal.case_name)) {
    return place.error("case", fmt::format("there is no case '{}'; there are {}", thermal.case_name,
                                           fmt::join(names(thermal.cases), ", ")));
  }
  for (std::size_t i = 0; i < thermal.sensors.size(); ++i) {
    check_node_name(thermal.sensors[i].node, fmt::format("sensors.{}.node", i), thermal, place);
  }
  for (std::size_t i = 0; i < thermal.zones.size(); ++i) {
    check_sensor(thermal.zones[i].sensor, fmt::format("zones.{}.sensor", i), thermal, place);
  }
  for (std::size_t i = 0; i < thermal.caps.size(); ++i) {
    check_sensor(thermal.caps[i].sensor, fmt::format("caps.{}.sensor", i), thermal, place);
  }
  for (std::size_t i = 0; i < thermal.cases.size(); ++i) {
    if (thermal.cases[i].fan) {
      check_sensor(thermal.cases[i].fan->sensor, fmt::format("cases.{}.fan.sensor", i), thermal, place);
    }
  }
  check_node_name(thermal.dram_node, "dram_node", thermal, place);
  check_trips(thermal, place);
}

}  // namespace kvsim::config
