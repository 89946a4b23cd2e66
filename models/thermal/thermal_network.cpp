// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/thermal_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "configs/error/error.h"
#include "models/thermal/foster.h"

namespace kvsim::model {
namespace {

struct Builder {
  std::vector<std::string> names;
  std::vector<JoulesPerKelvin> capacities;
  std::vector<RcLink> links;

  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const {
    const auto found = std::ranges::find(names, name);
    return found == names.end() ? std::nullopt
                                : std::optional(static_cast<std::size_t>(found - names.begin()));
  }

  void add_chain(std::size_t node, const std::vector<config::FosterStageSpec>& stages) {
    const std::vector<LadderStep> ladder = ladder_of(stages);
    capacities[node] = ladder.front().capacity;
    std::size_t from = node;
    for (std::size_t i = 0; i < ladder.size(); ++i) {
      const bool is_last = i + 1 == ladder.size();
      const std::size_t next = capacities.size();
      links.push_back({from, is_last ? std::nullopt : std::optional(next), ladder[i].resistance});
      if (!is_last) {
        capacities.push_back(ladder[i + 1].capacity);
      }
      from = next;
    }
  }
};

}  // namespace

std::size_t ThermalNetwork::node(std::string_view name) const {
  const auto found = std::ranges::find(names, name);
  check(found != names.end(), "the node exists");
  return static_cast<std::size_t>(found - names.begin());
}

ThermalNetwork make_network(const config::ThermalCaseSpec& spec, Celsius ambient) {
  Builder builder;
  for (const config::ThermalNodeSpec& node : spec.nodes) {
    builder.names.push_back(node.name);
    builder.capacities.push_back(node.capacity.value_or(JoulesPerKelvin(1)));
  }
  for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
    if (!spec.nodes[i].foster.empty()) {
      builder.add_chain(i, spec.nodes[i].foster);
    }
  }
  for (const config::ThermalLinkSpec& link : spec.links) {
    const std::optional<std::size_t> from = builder.find(link.from);
    check(from.has_value(), "links begin at nodes");
    builder.links.push_back({*from, builder.find(link.to), link.resistance});
  }
  std::optional<std::size_t> fan_link;
  if (spec.fan) {
    fan_link = builder.links.size();
    const std::optional<std::size_t> node = builder.find(spec.fan->node);
    check(node.has_value(), "the fan cools a node");
    builder.links.push_back({*node, std::nullopt, spec.fan->points.front().resistance});
  }
  return {std::move(builder.names),
          RcNetwork(std::move(builder.capacities), std::move(builder.links), ambient), fan_link};
}

std::optional<std::vector<Celsius>> find_equilibrium(const RcNetwork& network, const PowerAt& power) {
  constexpr Celsius kMolten{1000};
  constexpr double kClose = 1e-9;
  constexpr int kMostRounds = 100'000;
  std::vector<Celsius> now(network.size(), network.ambient());
  // Power rises with temperature, so each round lies above the one before and below the first equilibrium.
  for (int round = 0; round < kMostRounds; ++round) {
    const std::vector<Celsius> next = network.steady(power(now));
    double change = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      change = std::max(change, std::abs((next[i] - now[i]).count()));
      if (!(next[i] < kMolten)) {
        return std::nullopt;
      }
    }
    now = next;
    if (change < kClose) {
      return now;
    }
  }
  return std::nullopt;
}

}  // namespace kvsim::model
