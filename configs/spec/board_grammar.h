// SPDX-License-Identifier: Apache-2.0
// Names of the choices in clocks, heat and power, and lists of names.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "configs/schema/member.h"
#include "configs/spec/clock_spec.h"
#include "configs/spec/power_spec.h"
#include "configs/spec/thermal_spec.h"
#include "configs/units/text.h"

namespace kvsim {

template <>
struct EnumNames<config::ClockKind> {
  static constexpr std::array kAll{
      EnumName{config::ClockKind::cpu, "cpu"}, EnumName{config::ClockKind::gpu, "gpu"},
      EnumName{config::ClockKind::npu, "npu"}, EnumName{config::ClockKind::dram, "dram"}};
};

template <>
struct EnumNames<config::ClockGovernor> {
  static constexpr std::array kAll{EnumName{config::ClockGovernor::performance, "performance"},
                                   EnumName{config::ClockGovernor::powersave, "powersave"},
                                   EnumName{config::ClockGovernor::userspace, "userspace"},
                                   EnumName{config::ClockGovernor::ondemand, "ondemand"},
                                   EnumName{config::ClockGovernor::schedutil, "schedutil"},
                                   EnumName{config::ClockGovernor::dmc_ondemand, "dmc_ondemand"},
                                   EnumName{config::ClockGovernor::tegra_votes, "tegra_votes"},
                                   EnumName{config::ClockGovernor::bwmon, "bwmon"}};
};

template <>
struct EnumNames<config::TripKind> {
  static constexpr std::array kAll{EnumName{config::TripKind::passive, "passive"},
                                   EnumName{config::TripKind::critical, "critical"}};
  /// Active trips are a fan's.
  static std::string_view hint(std::string_view text) {
    return text == "active" ? "; an active trip stands among the trips of a case's fan" : "";
  }
};

template <>
struct EnumNames<config::ThermalGovernor> {
  static constexpr std::array kAll{EnumName{config::ThermalGovernor::none, "none"},
                                   EnumName{config::ThermalGovernor::step_wise, "step_wise"},
                                   EnumName{config::ThermalGovernor::power_allocator, "power_allocator"},
                                   EnumName{config::ThermalGovernor::raspberry_pi, "raspberry_pi"}};
};

template <>
struct EnumNames<config::PowerKind> {
  static constexpr std::array kAll{
      EnumName{config::PowerKind::logic, "logic"}, EnumName{config::PowerKind::dram, "dram"},
      EnumName{config::PowerKind::storage, "storage"}, EnumName{config::PowerKind::board, "board"}};
};

template <>
struct EnumNames<config::PowerLimitKind> {
  static constexpr std::array kAll{EnumName{config::PowerLimitKind::supply, "supply"},
                                   EnumName{config::PowerLimitKind::over_current, "over_current"}};
};

}  // namespace kvsim

namespace kvsim::config {

template <>
struct ListGrammar<std::vector<std::string>> {
  static std::string kind() { return "names"; }
  static std::string pattern() { return "^.+$"; }
  static Parsed<std::vector<std::string>> parse_item(std::string_view text) {
    return accepted(std::vector<std::string>{std::string(text)});
  }
  static std::vector<std::string> to_items(const std::vector<std::string>& names) { return names; }
};

}  // namespace kvsim::config
