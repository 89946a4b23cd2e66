// SPDX-License-Identifier: Apache-2.0
// What is done at the times when somebody looks: governors, zones, limits.
#include <algorithm>

#include "configs/spec/dram_temperature.h"
#include "models/board/board.h"
#include "models/board/board_parts.h"

namespace kvsim::model {

void Board::cap(std::size_t domain, ClockLimit cause, std::size_t point, Changes& changes) {
  const Hertz before = domains_[domain].clock();
  if (domains_[domain].cap(cause, point)) {
    note(domain, before, changes);
  }
}

void Board::note(std::size_t domain, Hertz before, Changes& changes) {
  const ClockDomain& changed = domains_[domain];
  changes.clocks.push_back({domain, before, changed.clock(), changed.limit()});
  changes.stall = std::max(changes.stall, changed.spec().switch_stall);
  is_stale_ = true;
}

void Board::look(Changes& changes) {
  if (now_ == next_grid_) {
    look_at_grid(changes);
  }
  if (down_at_) {
    return;
  }
  look_at_limits(changes);
  look_at_zones(changes);
  if (!down_at_) {
    look_at_caps(changes);
    look_at_governors(changes);
  }
}

void Board::look_at_grid(Changes& changes) {
  next_grid_ += kBoardGrid;
  is_stale_ = true;
  if (fan_) {
    if (now_ >= next_fan_) {
      const config::FanSpec& spec = *config::chosen_case(*device_.thermal).fan;
      fan_->poll(reading(spec.sensor));
      next_fan_ += spec.polling;
    }
    fan_->advance(kBoardGrid);
    network_.network.set_resistance(*network_.fan_link, fan_->resistance());
  }
  if (dram_node_) {
    const double rate = config::refresh_rate(device_.dram, temperature(*dram_node_));
    if (rate != refresh_rate_) {
      refresh_rate_ = rate;
      changes.refresh_rate = rate;
    }
  }
  for (std::size_t i = 0; i < network_.network.size() && !down_at_; ++i) {
    if (temperature(i) >= kDestroyed) {
      go_down(changes);
    }
  }
}

void Board::look_at_limits(Changes& changes) {
  for (Limit& limit : limits_) {
    if (now_ != limit.next) {
      continue;
    }
    const Joules energy = energy_of(limit.rail);
    limit.limit.window(Watts((energy - limit.at_start).count() / seconds(limit.spec.window)));
    limit.at_start = energy;
    limit.next += limit.spec.window;
    apply_limits_of(limit.spec.kind, changes);
  }
}

void Board::apply_limits_of(config::PowerLimitKind kind, Changes& changes) {
  const ClockLimit cause =
      kind == config::PowerLimitKind::supply ? ClockLimit::supply : ClockLimit::over_current;
  std::vector<std::size_t> steps(domains_.size());
  for (const Limit& limit : limits_) {
    for (const std::size_t domain : limit.domains) {
      steps[domain] = std::max(steps[domain], limit.spec.kind == kind ? limit.limit.steps() : 0);
    }
  }
  for (std::size_t domain = 0; domain < domains_.size(); ++domain) {
    const std::size_t top = domains_[domain].table().top();
    cap(domain, cause, top - std::min(top, steps[domain]), changes);
  }
}

void Board::look_at_zones(Changes& changes) {
  bool polled = false;
  for (Zone& zone : zones_) {
    if (now_ != zone.next()) {
      continue;
    }
    const Celsius temperature = reading(zone.spec().sensor);
    zone.poll(temperature, domains_);
    polled = true;
    if (zone.is_critical(temperature)) {
      return go_down(changes);
    }
  }
  if (polled) {
    apply_heat_caps(changes);
  }
}

void Board::apply_heat_caps(Changes& changes) {
  for (std::size_t domain = 0; domain < domains_.size(); ++domain) {
    std::size_t point = domains_[domain].table().top();
    for (const Zone& zone : zones_) {
      for (std::size_t i = 0; i < zone.cooled().size(); ++i) {
        point = zone.cooled()[i] == domain ? std::min(point, zone.points()[i]) : point;
      }
    }
    cap(domain, ClockLimit::heat, point, changes);
  }
}

void Board::look_at_caps(Changes& changes) {
  bool polled = false;
  for (Cap& each : caps_) {
    if (now_ == each.next) {
      each.cap.poll(reading(each.spec.sensor));
      each.next += each.spec.polling;
      polled = true;
    }
  }
  for (std::size_t domain = 0; polled && domain < domains_.size(); ++domain) {
    const OppTable& table = domains_[domain].table();
    std::size_t point = table.top();
    for (const Cap& each : caps_) {
      const bool acts = each.domain == domain && each.cap.holds();
      point = acts ? std::min(point, table.at_most(each.spec.clock)) : point;
    }
    cap(domain, ClockLimit::temperature_cap, point, changes);
  }
}

std::vector<ClockVote> Board::votes_for(std::size_t domain) const {
  std::vector<ClockVote> votes;
  for (const config::ClockVoteSpec& vote : domains_[domain].spec().votes) {
    votes.push_back({domains_[domain_index(vote.domain)].clock(), vote.from, vote.clock});
  }
  return votes;
}

void Board::look_at_governors(Changes& changes) {
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    if (!domains_[i].is_sampled() || now_ != next_sample_[i]) {
      continue;
    }
    const Hertz before = domains_[i].clock();
    if (domains_[i].sample({.busiest = loads_[i].busiest(), .bandwidth = loads_[i].bandwidth()},
                           votes_for(i))) {
      note(i, before, changes);
    }
    loads_[i].clear();
    next_sample_[i] += domains_[i].spec().sampling;
  }
}

void Board::go_down(Changes& changes) {
  std::vector<Watts> parts;
  std::vector<Watts> nodes(network_.network.size());
  runaway_ = !find_equilibrium(network_.network, [&](const std::vector<Celsius>& at) {
                compute_power(at, parts);
                power_.heat(parts, nodes);
                return nodes;
              }).has_value();
  down_at_ = now_;
  changes.went_down = true;
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    cap(i, ClockLimit::critical, 0, changes);
  }
  is_stale_ = true;
}

}  // namespace kvsim::model
