// SPDX-License-Identifier: Apache-2.0
// Tables of clocks, and what must hold between their values.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "configs/spec/board_grammar.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

constexpr Picoseconds kSecond = 1000_ms;

void check_opps(const ClockDomainSpec& domain, const Place& place) {
  if (domain.opps.empty()) {
    return place.error("opps", "is empty; a domain has at least one operating point");
  }
  for (std::size_t i = 1; i < domain.opps.size(); ++i) {
    const OppSpec& slower = domain.opps[i - 1];
    const OppSpec& faster = domain.opps[i];
    if (faster.clock <= slower.clock) {
      place.error(fmt::format("opps.{}.clock", i),
                  fmt::format("'{}' is not above the one before, {}; list them with rising clocks",
                              to_text(faster.clock), to_text(slower.clock)));
    }
    if (faster.voltage < slower.voltage) {
      place.error(fmt::format("opps.{}.voltage", i),
                  fmt::format("'{}' is below that of the slower {}, {}", to_text(faster.voltage),
                              to_text(slower.clock), to_text(slower.voltage)));
    }
  }
}

bool is_opp(const ClockDomainSpec& domain, Hertz clock) {
  return std::ranges::find(domain.opps, clock, &OppSpec::clock) != domain.opps.end();
}

void check_governor(const ClockDomainSpec& domain, const Place& place) {
  if ((domain.governor == ClockGovernor::userspace) != domain.pinned.has_value()) {
    place.error("pinned", domain.pinned ? "is for the governor userspace only"
                                        : "is left out, and the governor userspace needs it");
  }
  if (domain.pinned && !is_opp(domain, *domain.pinned)) {
    place.error("pinned", fmt::format("'{}' is no operating point", to_text(*domain.pinned)));
  }
  if (domain.governor == ClockGovernor::dmc_ondemand && domain.down_differential >= domain.up_threshold) {
    place.error("down_differential", fmt::format("{} is not below up_threshold, {}", domain.down_differential,
                                                 domain.up_threshold));
  }
  if (domain.governor == ClockGovernor::tegra_votes && domain.votes.empty()) {
    place.error("votes", "is empty, and the governor tegra_votes goes by them");
  }
  if (domain.governor == ClockGovernor::bwmon && domain.bytes_per_clock.count() == 0) {
    place.error("bytes_per_clock", "is 0 B, and the governor bwmon needs it");
  }
}

void check_floors(const ClockDomainSpec& domain, const Place& place) {
  bool known = domain.status.empty();
  for (const ClockFloorSpec& floor : domain.floors) {
    known = known || floor.status == domain.status;
  }
  if (!known) {
    place.error("status", fmt::format("'{}' is none of the floors' statuses", domain.status));
  }
  for (std::size_t i = 0; i < domain.floors.size(); ++i) {
    if (!is_opp(domain, domain.floors[i].clock)) {
      place.error(fmt::format("floors.{}.clock", i),
                  fmt::format("'{}' is no operating point", to_text(domain.floors[i].clock)));
    }
  }
}

void check_domain(const ClockDomainSpec& domain, const Place& place) {
  if (domain.name.empty()) {
    place.error("name", "is empty");
  }
  if (domain.cluster && domain.kind != ClockKind::cpu && domain.kind != ClockKind::gpu) {
    place.error("cluster", "is of domains of the kinds cpu and gpu");
  }
  check_opps(domain, place);
  check_governor(domain, place);
  check_floors(domain, place);
}

void check_clocks(const ClocksSpec& clocks, const Place& place) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < clocks.domains.size(); ++i) {
    if (!names.insert(clocks.domains[i].name).second) {
      place.error(fmt::format("domains.{}.name", i),
                  fmt::format("'{}' is the name of two domains", clocks.domains[i].name));
    }
  }
}

}  // namespace

template <>
const Schema<OppSpec>& schema<OppSpec>() {
  using T = OppSpec;
  static const Schema<T> kSchema{
      "an operating point",
      {field("clock", &T::clock, "frequency").between(1_MHz, 20_GHz),
       field("voltage", &T::voltage, "of the domain's supply").between(Volts(0.1), Volts(5))}};
  return kSchema;
}

template <>
const Schema<ClockVoteSpec>& schema<ClockVoteSpec>() {
  using T = ClockVoteSpec;
  static const Schema<T> kSchema{
      "a clock that another domain asks for",
      {field("domain", &T::domain, "that asks"),
       field("from", &T::from, "its clock, from which the vote counts").between(0_MHz, 20_GHz),
       field("clock", &T::clock, "that it asks for").between(1_MHz, 20_GHz)}};
  return kSchema;
}

template <>
const Schema<ClockFloorSpec>& schema<ClockFloorSpec>() {
  using T = ClockFloorSpec;
  static const Schema<T> kSchema{
      "the least clock in a status of the system",
      {field("status", &T::status, "its name"),
       field("clock", &T::clock, "the domain does not go below it").between(1_MHz, 20_GHz)}};
  return kSchema;
}

template <>
const Schema<ClockDomainSpec>& schema<ClockDomainSpec>() {
  using T = ClockDomainSpec;
  static const Schema<T> kSchema{
      "what shares a clock and a voltage",
      {field("name", &T::name, "what reports and other keys call it"),
       field("kind", &T::kind, "what it clocks"),
       field("cluster", &T::cluster,
             "of the device, from 0, whose cores it clocks; one that is not there has none")
           .between(0, 63)
           .optional(),
       field("cores", &T::cores, "that it clocks; of a DRAM, channels").between(1, 1024).by_default(1),
       field("opps", &T::opps, "operating points, the slowest first"),
       field("governor", &T::governor, "what chooses the operating point")
           .by_default(ClockGovernor::performance),
       field("pinned", &T::pinned, "the clock, for the governor userspace").between(1_MHz, 20_GHz).optional(),
       field("sampling", &T::sampling,
             "the governor looks so often (schedutil: changes so often at most; Linux' rate_limit_us)")
           .between(1_us, kSecond * 10)
           .optional(),
       field("up_threshold", &T::up_threshold, "percent of load above which it goes to the top")
           .between(1, 100)
           .optional(),
       field("down_differential", &T::down_differential,
             "dmc_ondemand: percent below up_threshold down to which the clock stays")
           .between(0, 100)
           .optional(),
       field("down_samples", &T::down_samples, "bwmon: calm samples before it goes down")
           .between(1, 1000)
           .optional(),
       field("switch_stall", &T::switch_stall, "what the domain clocks stands still while it changes")
           .between(0_ps, kSecond)
           .optional(),
       field("status", &T::status, "of the system, which chooses among the floors").by_default(""),
       field("floors", &T::floors, "least clocks by status").optional(),
       field("votes", &T::votes,
             "least clocks by other domains' clocks, for the governors tegra_votes and bwmon")
           .optional(),
       field("bytes_per_clock", &T::bytes_per_clock, "bwmon: that a channel moves at most")
           .between(0_B, 1_KiB)
           .optional(),
       field("power_coefficient", &T::power_coefficient,
             "what the kernel believes of a core's power, for power_allocator: this x voltage^2 x clock "
             "(dynamic-power-coefficient of a device tree, in pF)")
           .between(Farads(0), Farads(1e-3))
           .optional()},
      check_domain};
  return kSchema;
}

template <>
const Schema<ClocksSpec>& schema<ClocksSpec>() {
  using T = ClocksSpec;
  static const Schema<T> kSchema{"clock domains and their governors",
                                 {field("domains", &T::domains, "of cores, NPU, GPU, DRAM")},
                                 check_clocks};
  return kSchema;
}

}  // namespace kvsim::config
