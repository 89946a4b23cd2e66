// SPDX-License-Identifier: Apache-2.0
#include "models/board/board.h"

#include <algorithm>

#include "configs/error/error.h"
#include "configs/spec/dram_temperature.h"
#include "models/board/board_parts.h"

namespace kvsim::model {

Board::Board(const config::DeviceSpec& device)
    : device_(device),
      network_(board_network(device)),
      domains_(board_domains(device)),
      loads_(domains_.size()),
      power_(device.power.value_or(config::PowerSpec{}), board_wiring(device, network_)),
      meter_(power_.rails().size()),
      next_grid_(kBoardGrid),
      node_temperatures_(network_.network.size()),
      heat_(network_.network.size()) {
  for (const ClockDomain& domain : domains_) {
    next_sample_.push_back(domain.spec().sampling);
  }
  if (device_.thermal) {
    add_zones();
    dram_node_ = network_.node(device_.thermal->dram_node);
    refresh_rate_ = config::refresh_rate(device_.dram, temperature(*dram_node_));
    if (const auto& fan = config::chosen_case(*device_.thermal).fan) {
      fan_.emplace(*fan);
      next_fan_ = fan->polling;
    }
  }
  add_limits();
}

std::size_t Board::domain_index(const std::string& name) const {
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    if (domains_[i].spec().name == name) {
      return i;
    }
  }
  check(false, "the clock domain exists");
  return 0;
}

std::optional<std::size_t> Board::rail_index(const std::optional<std::string>& name) const {
  if (!name) {
    return std::nullopt;
  }
  const auto found = std::ranges::find(power_.rails(), *name);
  check(found != power_.rails().end(), "the rail exists");
  return static_cast<std::size_t>(found - power_.rails().begin());
}

void Board::add_zones() {
  for (const config::ThermalZoneSpec& zone : device_.thermal->zones) {
    std::vector<std::size_t> cooled;
    for (const config::CoolingSpec& cooling : zone.cooling) {
      cooled.push_back(domain_index(cooling.domain));
    }
    zones_.emplace_back(zone, domains_, std::move(cooled));
  }
  for (const config::TemperatureCapSpec& cap : device_.thermal->caps) {
    caps_.push_back({cap, TemperatureCap(cap.above, cap.hysteresis), domain_index(cap.domain), cap.polling});
  }
}

void Board::add_limits() {
  if (!device_.power) {
    return;
  }
  for (const config::PowerLimitSpec& limit : device_.power->limits) {
    std::vector<std::size_t> slowed;
    std::size_t most = 0;
    for (const std::string& name : limit.domains) {
      slowed.push_back(domain_index(name));
      most = std::max(most, domains_[slowed.back()].table().top());
    }
    limits_.push_back(
        {limit, PowerLimit(limit, most), rail_index(limit.rail), std::move(slowed), Joules(), limit.window});
  }
}

Celsius Board::reading(const std::string& sensor) const {
  const auto found = std::ranges::find(device_.thermal->sensors, sensor, &config::SensorSpec::name);
  check(found != device_.thermal->sensors.end(), "the sensor exists");
  return sensor_reading(*found, temperature(network_.node(found->node)));
}

Joules Board::energy_of(const std::optional<std::size_t>& rail) const {
  return rail ? meter_.energy(*rail) : meter_.energy();
}

void Board::compute_power(const std::vector<Celsius>& nodes, std::vector<Watts>& parts) const {
  std::vector<DomainPower> domains;
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    const ClockDomain& domain = domains_[i];
    domains.push_back({.clock = domain.clock(),
                       .voltage = domain.voltage(),
                       .highest_voltage = domain.table().voltage(domain.table().top()),
                       .busy = activity_.domains[i].busy,
                       .intensity = activity_.domains[i].intensity});
  }
  power_.compute({.domains = domains, .nodes = nodes, .dram = activity_.dram, .storage = activity_.storage},
                 parts);
}

void Board::refresh_power() {
  for (std::size_t i = 0; i < node_temperatures_.size(); ++i) {
    node_temperatures_[i] = network_.network.temperature(i);
  }
  compute_power(node_temperatures_, parts_);
  if (down_at_) {
    std::ranges::fill(parts_, Watts());
  }
  power_.heat(parts_, heat_);
  meter_.set(power_, parts_);
  is_stale_ = false;
}

void Board::pass(Picoseconds time) {
  network_.network.advance(heat_, time);
  meter_.advance(time);
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    const DomainActivity& activity = activity_.domains[i];
    if (domains_[i].spec().kind == config::ClockKind::dram) {
      loads_[i].add_channels(activity_.channel_load, channel_peak(domains_[i]), time);
    } else {
      loads_[i].add_cores(activity.busy, std::max(activity.busy, activity.busiest), time);
    }
  }
  for (Zone& zone : zones_) {
    for (std::size_t i = 0; i < zone.cooled().size(); ++i) {
      zone.add_load(i, activity_.domains[zone.cooled()[i]].busy, time);
    }
  }
  now_ += time;
}

Picoseconds Board::next_event() const {
  Picoseconds next = next_grid_;
  if (down_at_) {
    return next;
  }
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    next = domains_[i].is_sampled() ? std::min(next, next_sample_[i]) : next;
  }
  for (const Zone& zone : zones_) {
    next = std::min(next, zone.next());
  }
  for (const Cap& cap : caps_) {
    next = std::min(next, cap.next);
  }
  for (const Limit& limit : limits_) {
    next = std::min(next, limit.next);
  }
  return next;
}

Changes Board::advance(const Activity& activity, Picoseconds time) {
  check(activity.domains.size() == domains_.size(), "each clock domain has its activity");
  check(time.count() >= 0, "time goes on");
  if (activity != activity_) {
    activity_ = activity;
    is_stale_ = true;
  }
  const Picoseconds start = now_;
  const Picoseconds end = start + time;
  Changes changes;
  while (now_ < end && !changes.any()) {
    if (is_stale_) {
      refresh_power();
    }
    const Picoseconds event = next_event();
    pass(std::min(event, end) - now_);
    if (now_ == event) {
      look(changes);
    }
  }
  changes.elapsed = now_ - start;
  return changes;
}

DomainLoad Board::load_of(std::size_t domain) const {
  if (domains_[domain].spec().kind != config::ClockKind::dram) {
    return {.busiest = std::max(activity_.domains[domain].busy, activity_.domains[domain].busiest)};
  }
  double most = 0;
  for (const double load : activity_.channel_load) {
    most = std::max(most, load);
  }
  return {.busiest = most, .bandwidth = channel_peak(domains_[domain]) * most};
}

void Board::settle(const Activity& activity) {
  constexpr int kLooks = 256;  // more than any governor waits for
  check(activity.domains.size() == domains_.size(), "each clock domain has its activity");
  activity_ = activity;
  for (int look = 0; look < kLooks; ++look) {
    for (std::size_t i = 0; i < domains_.size(); ++i) {
      if (domains_[i].is_sampled()) {
        domains_[i].sample(load_of(i), votes_for(i));
      }
    }
  }
  std::vector<Watts> parts;
  std::vector<Watts> nodes(network_.network.size());
  const auto rest = find_equilibrium(network_.network, [&](const std::vector<Celsius>& at) {
    compute_power(at, parts);
    power_.heat(parts, nodes);
    return nodes;
  });
  for (std::size_t i = 0; rest && i < rest->size(); ++i) {
    network_.network.set_temperature(i, (*rest)[i]);
  }
  if (dram_node_) {
    refresh_rate_ = config::refresh_rate(device_.dram, temperature(*dram_node_));
  }
  is_stale_ = true;
}

void Board::set_status(const std::string& status) {
  for (ClockDomain& domain : domains_) {
    is_stale_ = domain.set_status(status) || is_stale_;
  }
}

BoardState Board::state() const {
  BoardState state;
  state.time = now_;
  for (std::size_t i = 0; i < network_.names.size(); ++i) {
    state.nodes.push_back({network_.names[i], temperature(i)});
  }
  for (std::size_t i = 0; device_.thermal && i < device_.thermal->sensors.size(); ++i) {
    const std::string& name = device_.thermal->sensors[i].name;
    state.sensors.push_back({name, reading(name)});
  }
  for (const ClockDomain& domain : domains_) {
    state.domains.push_back({domain.spec().name, domain.clock(), domain.limit(), domain.switches()});
  }
  for (std::size_t i = 0; i < power_.rails().size(); ++i) {
    state.rails.push_back({power_.rails()[i], meter_.power(i), meter_.energy(i)});
  }
  state.power = meter_.power();
  state.energy = meter_.energy();
  state.refresh_rate = refresh_rate_;
  state.fan_speed = fan_ ? std::optional(fan_->speed()) : std::nullopt;
  for (const Limit& limit : limits_) {
    state.over_current_alarms +=
        limit.spec.kind == config::PowerLimitKind::over_current ? limit.limit.alarms() : 0;
  }
  state.down_at = down_at_;
  state.runaway = runaway_;
  return state;
}

}  // namespace kvsim::model
