// SPDX-License-Identifier: Apache-2.0
// Resolved description of what takes power on a device, and what limits it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/units/quantity.h"

namespace kvsim::config {

/// logic: clocked by a domain; dram: told by the memory model; storage: by how busy it is; board: always the
/// same.
enum class PowerKind { logic, dram, storage, board };

struct PowerPartSpec {
  std::string name;
  PowerKind kind = PowerKind::logic;
  std::string rail;
  std::string node;           ///< which it heats
  std::string domain{};       ///< which clocks it, of logic
  std::int64_t cores = 1;     ///< of logic
  Farads capacitance{};       ///< of a core; at work it takes this times voltage squared times clock
  Watts leakage{};            ///< of all cores, at 25 C and the domain's highest voltage
  Celsius leakage_doubles{};  ///< with so many degrees more
  Watts idle{};               ///< always
  Watts active{};             ///< beyond that, of storage at work

  bool operator==(const PowerPartSpec&) const = default;
};

/// supply: what the source gives; over_current: what a regulator guards, as Tegra's soctherm does.
enum class PowerLimitKind { supply, over_current };

/// When the average of a rail's power over a window is above the limit, the domains go down a step; when it
/// is below `release` of the limit, up.
struct PowerLimitSpec {
  std::string name;
  PowerLimitKind kind = PowerLimitKind::over_current;
  std::optional<std::string> rail{};  ///< none: all of them
  Watts limit;
  Picoseconds window{};
  double release = 0.9;
  std::vector<std::string> domains;

  bool operator==(const PowerLimitSpec&) const = default;
};

struct PowerSpec {
  std::vector<PowerPartSpec> parts;
  std::vector<PowerLimitSpec> limits;

  bool operator==(const PowerSpec&) const = default;
};

}  // namespace kvsim::config
