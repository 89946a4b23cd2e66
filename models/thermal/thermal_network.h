// SPDX-License-Identifier: Apache-2.0
// The network of a device in its case: nodes by name, the fan's way, and where it all comes to rest.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/spec/thermal_spec.h"
#include "models/thermal/rc_network.h"

namespace kvsim::model {

struct ThermalNetwork {
  std::vector<std::string> names;  ///< of the nodes; a Foster chain's further lumps have none and follow them
  RcNetwork network;
  std::optional<std::size_t> fan_link{};

  /// Precondition: there is such a node.
  [[nodiscard]] std::size_t node(std::string_view name) const;
};

/// Everything at ambient, the fan standing still. Precondition: the specification is checked.
[[nodiscard]] ThermalNetwork make_network(const config::ThermalCaseSpec& spec, Celsius ambient);

/// What each node takes when they are this hot.
using PowerAt = std::function<std::vector<Watts>(const std::vector<Celsius>&)>;

/// Temperatures at which a network whose power rises with temperature comes to rest, on its way up from
/// ambient; none if it runs away.
[[nodiscard]] std::optional<std::vector<Celsius>> find_equilibrium(const RcNetwork& network,
                                                                   const PowerAt& power);

}  // namespace kvsim::model
