// SPDX-License-Identifier: Apache-2.0
// Tables of DRAM parts, and what must hold between their values.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

// What a core's cache asks for at once; a part serves it in whole bursts.
constexpr Bytes kLongestRow = 32_KiB;
constexpr Bytes kLine{64};

struct Order {
  std::string_view small_key;
  ClockedTime DramTiming::*small;
  std::string_view large_key;
  ClockedTime DramTiming::*large;
};

// JEDEC's timings that cannot be the other way round.
constexpr std::array kOrders{
    Order{"tRCD", &DramTiming::tRCD, "tRAS", &DramTiming::tRAS},
    Order{"tRPpb", &DramTiming::tRPpb, "tRPab", &DramTiming::tRPab},
    Order{"tRRD", &DramTiming::tRRD, "tRRD_L", &DramTiming::tRRD_L},
    Order{"tRRD", &DramTiming::tRRD, "tFAW", &DramTiming::tFAW},
    Order{"tCCD", &DramTiming::tCCD, "tCCD_L", &DramTiming::tCCD_L},
    Order{"tCCD_L", &DramTiming::tCCD_L, "tCCD_L_WR", &DramTiming::tCCD_L_WR},
    Order{"tCCD", &DramTiming::tCCD, "tCCDMW", &DramTiming::tCCDMW},
    Order{"tWTR", &DramTiming::tWTR, "tWTR_L", &DramTiming::tWTR_L},
    Order{"write_latency", &DramTiming::write_latency, "read_latency", &DramTiming::read_latency},
    Order{"tRFCpb", &DramTiming::tRFCpb, "tRFCab", &DramTiming::tRFCab},
};

struct NamedTiming {
  std::string_view key;
  ClockedTime DramTiming::*timing;
};

/// What no DRAM does at once.
constexpr std::array kNeverZero{NamedTiming{"read_latency", &DramTiming::read_latency},
                                NamedTiming{"write_latency", &DramTiming::write_latency},
                                NamedTiming{"tRCD", &DramTiming::tRCD},
                                NamedTiming{"tRPpb", &DramTiming::tRPpb},
                                NamedTiming{"tRAS", &DramTiming::tRAS},
                                NamedTiming{"tRRD", &DramTiming::tRRD},
                                NamedTiming{"tFAW", &DramTiming::tFAW},
                                NamedTiming{"tWTR", &DramTiming::tWTR},
                                NamedTiming{"tWR", &DramTiming::tWR},
                                NamedTiming{"tRFCab", &DramTiming::tRFCab},
                                NamedTiming{"tREFI", &DramTiming::tREFI}};

/// What has to end before the next refresh is due.
constexpr std::array kBelowRefresh{NamedTiming{"read_latency", &DramTiming::read_latency},
                                   NamedTiming{"tRPab", &DramTiming::tRPab},
                                   NamedTiming{"tRAS", &DramTiming::tRAS},
                                   NamedTiming{"tRRD_L", &DramTiming::tRRD_L},
                                   NamedTiming{"tFAW", &DramTiming::tFAW},
                                   NamedTiming{"tCCD_L_WR", &DramTiming::tCCD_L_WR},
                                   NamedTiming{"tCCDMW", &DramTiming::tCCDMW},
                                   NamedTiming{"tWTR_L", &DramTiming::tWTR_L},
                                   NamedTiming{"tRTP", &DramTiming::tRTP},
                                   NamedTiming{"tWR", &DramTiming::tWR},
                                   NamedTiming{"tPPD", &DramTiming::tPPD},
                                   NamedTiming{"tRTRS", &DramTiming::tRTRS},
                                   NamedTiming{"tpbR2act", &DramTiming::tpbR2act},
                                   NamedTiming{"tCKE", &DramTiming::tCKE},
                                   NamedTiming{"tXP", &DramTiming::tXP},
                                   NamedTiming{"tXSR", &DramTiming::tXSR},
                                   NamedTiming{"tRFCab", &DramTiming::tRFCab}};

/// False, with a message each, for timings that are zero or longer than tREFI.
bool check_size(const DramPartSpec& part, const Place& place) {
  const DramTiming& timing = part.timing;
  const auto length = [&](const ClockedTime& time) { return duration(time, command_clock(part)); };
  const std::size_t before = place.errors().count();
  for (const NamedTiming& each : kNeverZero) {
    if (length(timing.*each.timing) == Picoseconds()) {
      place.error(fmt::format("timing.{}", each.key), "is 0, which no part of this standard can do");
    }
  }
  for (const NamedTiming& each : kBelowRefresh) {
    if (place.errors().count() == before && length(timing.*each.timing) >= length(timing.tREFI)) {
      place.error(fmt::format("timing.{}", each.key),
                  fmt::format("'{}' is not below tREFI, {}: nothing could be done between refreshes",
                              to_text(timing.*each.timing), to_text(timing.tREFI)));
    }
  }
  return place.errors().count() == before;
}

void check_timing(const DramPartSpec& part, const Place& place) {
  if (!check_size(part, place)) {
    return;
  }
  const DramTiming& timing = part.timing;
  const auto length = [&](const ClockedTime& time) { return duration(time, command_clock(part)); };
  for (const Order& order : kOrders) {
    if (length(timing.*order.small) <= length(timing.*order.large)) {
      continue;
    }
    place.error(fmt::format("timing.{}", order.large_key),
                fmt::format("'{}' is less than {}, which is {}", to_text(timing.*order.large),
                            order.small_key, to_text(timing.*order.small)));
  }
  const ClockedTime burst{.time = {}, .clocks = part.burst_length / part.transfers_per_clock};
  if (length(timing.tCCD) < length(burst)) {
    place.error("timing.tCCD", fmt::format("'{}' is less than a burst of {} takes, {}", to_text(timing.tCCD),
                                           part.burst_length, to_text(burst)));
  }
  if (length(timing.tRFCpb) * bank_refreshes(part) >= length(timing.tREFI)) {
    place.error("timing.tRFCpb",
                fmt::format("'{}' for each of {} refreshes leaves no time within tREFI, {}",
                            to_text(timing.tRFCpb), bank_refreshes(part), to_text(timing.tREFI)));
  }
}

/// Which tables a part has is its standard's matter.
bool has_its_timings(const DramPartSpec& part, const Place& place) {
  const bool serial = part.standard == DramStandard::psram;
  // A run that is recorded has the empty table of a part that has none.
  const bool has_timing = place.value().find("timing") != nullptr && !(serial && part.timing == DramTiming{});
  if (serial == part.psram.has_value() && serial != has_timing) {
    return true;
  }
  const std::string_view wanted = serial ? "psram" : "timing";
  if (serial ? !part.psram.has_value() : !has_timing) {
    place.error("", fmt::format("missing '{}', which a part of its standard has its timings in", wanted));
  } else {
    place.error(serial ? "timing" : "psram",
                fmt::format("is not for this standard, whose timings are in '{}'", wanted));
  }
  return false;
}

struct StandardShape {
  DramStandard standard;
  std::array<std::int64_t, 3> bank_groups;
  std::array<std::int64_t, 2> burst_lengths;
  std::array<std::int64_t, 2> transfers_per_clock;
};

/// JESD209-3: BL8. JESD209-4: BL16, 32. JESD209-5: WCK at 2 or 4 times CK, four groups or none. JESD79-4:
/// BL8, two or four groups. JESD79-5: BL16 (32 of x4), four or eight groups.
constexpr std::array kShapes{StandardShape{DramStandard::lpddr3, {1, 1, 1}, {8, 8}, {2, 2}},
                             StandardShape{DramStandard::lpddr4, {1, 1, 1}, {16, 32}, {2, 2}},
                             StandardShape{DramStandard::lpddr4x, {1, 1, 1}, {16, 32}, {2, 2}},
                             StandardShape{DramStandard::lpddr5, {1, 4, 4}, {16, 32}, {4, 8}},
                             StandardShape{DramStandard::lpddr5x, {1, 4, 4}, {16, 32}, {4, 8}},
                             StandardShape{DramStandard::ddr4, {2, 4, 4}, {8, 8}, {2, 2}},
                             StandardShape{DramStandard::ddr5, {4, 8, 8}, {16, 32}, {2, 2}}};

template <std::size_t N>
std::string choices(const std::array<std::int64_t, N>& values) {
  std::string text = fmt::format("{}", values[0]);
  for (std::size_t i = 1; i < N && values[i] != values[i - 1]; ++i) {
    text += fmt::format(" or {}", values[i]);
  }
  return text;
}

/// False, with a message each, for what the standard does not have.
bool check_shape(const DramPartSpec& part, const Place& place) {
  const std::size_t before = place.errors().count();
  const auto one_of = [&](std::string_view key, std::int64_t value, const auto& allowed) {
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
      place.error(std::string(key),
                  fmt::format("{} is not what this standard has: {}", value, choices(allowed)));
    }
  };
  for (const StandardShape& shape : kShapes) {
    if (shape.standard == part.standard) {
      one_of("bank_groups", part.bank_groups, shape.bank_groups);
      one_of("burst_length", part.burst_length, shape.burst_lengths);
      one_of("transfers_per_clock", part.transfers_per_clock, shape.transfers_per_clock);
    }
  }
  return place.errors().count() == before;
}

void check_psram(const DramPartSpec& part, const Place& place) {
  const PsramTiming& t = *part.psram;
  const Hertz clock = command_clock(part);
  if (part.banks != 1 || part.bank_groups != 1) {
    place.error("banks", "a serial PSRAM has one bank in one group");
  }
  const Picoseconds burst =
      duration({.time = {}, .clocks = part.burst_length / part.transfers_per_clock}, clock);
  const Picoseconds select = duration(t.setup, clock) + duration(t.command, clock) +
                             std::max(duration(t.read_latency, clock), duration(t.write_latency, clock)) +
                             duration(t.refresh_latency, clock) + burst + duration(t.hold, clock);
  if (select > duration(t.tCEM, clock)) {
    place.error("psram.tCEM", fmt::format("'{}' is less than the {} that a burst of {} takes",
                                          to_text(t.tCEM), to_text(select), part.burst_length));
  }
}

struct Figure {
  std::string_view key;
  double (*of)(const DramEnergy&);
  std::string_view unit;

  [[nodiscard]] std::string text(double value) const {
    return fmt::format("{:.4g} {}", value * (unit == "pJ" ? 1e12 : 1e3), unit);
  }
};
constexpr std::array kFigures{
    Figure{"activate", [](const DramEnergy& e) { return e.activate.count(); }, "pJ"},
    Figure{"read_burst", [](const DramEnergy& e) { return e.read_burst.count(); }, "pJ"},
    Figure{"write_burst", [](const DramEnergy& e) { return e.write_burst.count(); }, "pJ"},
    Figure{"refresh_all", [](const DramEnergy& e) { return e.refresh_all.count(); }, "pJ"},
    Figure{"refresh_bank", [](const DramEnergy& e) { return e.refresh_bank.count(); }, "pJ"},
    Figure{"active_standby", [](const DramEnergy& e) { return e.active_standby.count(); }, "mW"},
    Figure{"precharge_standby", [](const DramEnergy& e) { return e.precharge_standby.count(); }, "mW"},
    Figure{"active_power_down", [](const DramEnergy& e) { return e.active_power_down.count(); }, "mW"},
    Figure{"precharge_power_down", [](const DramEnergy& e) { return e.precharge_power_down.count(); }, "mW"},
    Figure{"self_refresh", [](const DramEnergy& e) { return e.self_refresh.count(); }, "mW"},
};

/// The rails' figures add up to the part's, but for the rounding of tables.
void check_rails(const DramPartSpec& part, const Place& place) {
  if (!part.rails || !part.energy) {
    return;
  }
  for (const Figure& figure : kFigures) {
    double sum = 0;
    for (const auto& rail : {part.rails->VDD1, part.rails->VDD2, part.rails->VDDQ}) {
      sum += rail ? figure.of(*rail) : 0;
    }
    const double whole = figure.of(*part.energy);
    if (std::abs(sum - whole) > 0.005 * whole) {
      return place.error("rails", fmt::format("{} adds up to {} over the rails, but is {} in energy; change "
                                              "both, or use rails: none",
                                              figure.key, figure.text(sum), figure.text(whole)));
    }
  }
}

void check_part(const DramPartSpec& part, const Place& place) {
  if (!has_its_timings(part, place)) {
    return;
  }
  if (part.bank_groups > part.banks) {
    place.error("bank_groups",
                fmt::format("{} bank groups cannot share {} banks", part.bank_groups, part.banks));
    return;
  }
  if (part.banks_per_refresh > part.banks) {
    place.error("banks_per_refresh",
                fmt::format("a refresh cannot take {} of {} banks", part.banks_per_refresh, part.banks));
    return;
  }
  if (part.columns < part.burst_length) {
    place.error("columns", fmt::format("a row of {} columns is shorter than a burst of {}", part.columns,
                                       part.burst_length));
  }
  if (row_bytes(part) > kLongestRow) {
    place.error("columns", fmt::format("a row of {} is more than the {} that are supported",
                                       to_text(row_bytes(part)), to_text(kLongestRow)));
  }
  if (part.burst_length < part.transfers_per_clock) {
    place.error("burst_length", fmt::format("a burst of {} is shorter than the {} transfers of one clock",
                                            part.burst_length, part.transfers_per_clock));
    return;
  }
  if (kLine.count() % burst_bytes(part).count() != 0) {
    place.error("burst_length",
                fmt::format("a burst of {} on {} data lines is {}, which does not divide a line of {}",
                            part.burst_length, part.width_bits, to_text(burst_bytes(part)), to_text(kLine)));
  }
  if (part.psram) {
    return check_psram(part, place);
  }
  if (check_shape(part, place)) {
    check_timing(part, place);
    check_rails(part, place);
  }
}

/// JESD209-4, "masked write": 32 tCK at a burst of 16, in other words 4 tCCD.
bool delays_masked_writes(DramStandard standard) {
  return standard == DramStandard::lpddr4 || standard == DramStandard::lpddr4x;
}

bool is_lpddr5(DramStandard standard) {
  return standard == DramStandard::lpddr5 || standard == DramStandard::lpddr5x;
}

/// JESD209-5: with 16 banks, in bank groups or not, a per-bank refresh takes two of them. JESD79-5: it takes
/// the same bank of every group.
std::int64_t banks_per_refresh(const DramPartSpec& part) {
  if (part.standard == DramStandard::ddr5) {
    return part.bank_groups;
  }
  return is_lpddr5(part.standard) && part.banks == 16 ? 2 : 1;
}

/// What follows from the rest and from the standard.
void complete_part(DramPartSpec& part, const Place& place) {
  if (place.value().find("banks_per_refresh") == nullptr) {
    part.banks_per_refresh = banks_per_refresh(part);
  }
  if (place.value().find("timing") == nullptr) {
    return;
  }
  DramTiming& timing = part.timing;
  const auto is_left_out = [&](std::string_view key) {
    return place.value().find("timing")->find(key) == nullptr;
  };
  if (is_left_out("tCCDMW")) {
    const std::int64_t times = delays_masked_writes(part.standard) ? 4 : 1;
    timing.tCCDMW = {timing.tCCD.time * times, timing.tCCD.clocks * times};
  }
  if (is_left_out("tXSR")) {
    // JESD209-4 and -5: tRFCab + 7.5 ns, during which the part may finish a refresh of its own.
    timing.tXSR = {duration(timing.tRFCab, command_clock(part)) + 7500_ps, 0};
  }
}

}  // namespace

template <>
const Schema<DramTiming>& schema<DramTiming>() {
  using T = DramTiming;
  static const Schema<T> kSchema{
      "timings of a part, named as JEDEC does: 18 ns, 8 tCK, or 10 ns min 4 tCK for the larger of both",
      {field("read_latency", &T::read_latency, "RL plus tDQSCK: read command to first data beat"),
       field("write_latency", &T::write_latency, "WL plus tDQSS: write command to first data beat"),
       field("tRCD", &T::tRCD, "activate to read or write"),
       field("tRPpb", &T::tRPpb, "precharge of one bank to activate"),
       field("tRPab", &T::tRPab, "precharge of all banks to activate or refresh"),
       field("tRAS", &T::tRAS, "activate to precharge, same bank"),
       field("tRRD", &T::tRRD, "activate to activate, same rank, other bank group"),
       field("tRRD_L", &T::tRRD_L, "the same within a bank group").same_as("tRRD", &T::tRRD),
       field("tFAW", &T::tFAW, "window with at most four activates of a rank"),
       field("tCCD", &T::tCCD, "read to read or write to write, other bank group"),
       field("tCCD_L", &T::tCCD_L, "the same within a bank group").same_as("tCCD", &T::tCCD),
       field("tCCD_L_WR", &T::tCCD_L_WR, "write to write within a bank group").same_as("tCCD_L", &T::tCCD_L),
       field("tCCDMW", &T::tCCDMW, "write to masked write, same bank").by_rule("4 tCCD of LPDDR4, else tCCD"),
       field("tWTR", &T::tWTR, "end of write data to read, same rank, other bank group"),
       field("tWTR_L", &T::tWTR_L, "the same within a bank group").same_as("tWTR", &T::tWTR),
       field("tRTP", &T::tRTP, "read to precharge, without the burst"),
       field("tWR", &T::tWR, "end of write data to precharge"),
       field("tPPD", &T::tPPD, "precharge to precharge, same rank").optional(),
       field("tRTRS", &T::tRTRS, "gap on the bus when the rank changes"),
       field("tRFCab", &T::tRFCab, "refresh of all banks"),
       field("tRFCpb", &T::tRFCpb, "refresh of one bank; 0 where the standard has none").optional(),
       field(
           "tpbR2pbR", &T::tpbR2pbR,
           "per-bank refresh to per-bank refresh of another bank; as long as one where they may not overlap")
           .same_as("tRFCpb", &T::tRFCpb),
       field("tpbR2act", &T::tpbR2act, "per-bank refresh to activate of another bank")
           .same_as("tRRD", &T::tRRD),
       field("tREFI", &T::tREFI, "average interval between refreshes of all banks, at normal temperature"),
       field("tCKE", &T::tCKE, "shortest time in power-down").by_default({7500_ps, 4}),
       field("tXP", &T::tXP, "power-down exit to any command").by_default({7500_ps, 5}),
       field("tSR", &T::tSR, "shortest time in self-refresh").by_default({15_ns, 3}),
       field("tXSR", &T::tXSR, "self-refresh exit to any command").by_rule("tRFCab + 7.5 ns")}};
  return kSchema;
}

template <>
const Schema<PsramTiming>& schema<PsramTiming>() {
  using T = PsramTiming;
  static const Schema<T> kSchema{
      "a serial PSRAM's commands: chip select, command and address, latency, data",
      {field("command", &T::command, "command and address on the bus"),
       field("read_latency", &T::read_latency, "end of the address to the first data of a read"),
       field("write_latency", &T::write_latency, "end of the address to the first data of a write"),
       field("refresh_latency", &T::refresh_latency,
             "added if a hidden refresh is under way (variable latency); 0: the latencies hold it (fixed)")
           .optional(),
       field("tREFI", &T::tREFI, "average interval between hidden refreshes").optional(),
       field("setup", &T::setup, "start of chip select to the command").optional(),
       field("hold", &T::hold, "last data to the end of chip select").optional(),
       field("tCPH", &T::tCPH, "end of chip select to the next one"),
       field("tCEM", &T::tCEM, "longest chip select"),
       field("controller", &T::controller, "what the controller adds to each command")
           .between(0_ps, 1_ms)
           .optional()}};
  return kSchema;
}

template <>
const Schema<DramEnergy>& schema<DramEnergy>() {
  using T = DramEnergy;
  constexpr Joules kMost(1e-3);
  constexpr Watts kMostPower(100);
  static const Schema<T> kSchema{
      "energy of one rank of one channel: what its dies take together",
      {field("activate", &T::activate, "one activate with its precharge, above standby")
           .between(Joules(), kMost),
       field("read_burst", &T::read_burst, "one burst read, array and bus, above standby")
           .between(Joules(), kMost),
       field("write_burst", &T::write_burst, "one burst written, array and bus, above standby")
           .between(Joules(), kMost),
       field("refresh_all", &T::refresh_all, "one refresh of all banks, above standby")
           .between(Joules(), kMost),
       field("refresh_bank", &T::refresh_bank, "one refresh of one bank, above standby")
           .between(Joules(), kMost)
           .optional(),
       field("active_standby", &T::active_standby, "some bank open").between(Watts(), kMostPower),
       field("precharge_standby", &T::precharge_standby, "all banks closed").between(Watts(), kMostPower),
       field("active_power_down", &T::active_power_down, "some bank open, clock off")
           .between(Watts(), kMostPower),
       field("precharge_power_down", &T::precharge_power_down, "all banks closed, clock off")
           .between(Watts(), kMostPower),
       field("self_refresh", &T::self_refresh, "in self-refresh").between(Watts(), kMostPower)}};
  return kSchema;
}

template <>
const Schema<DramRails>& schema<DramRails>() {
  using T = DramRails;
  static const Schema<T> kSchema{
      "the same figures by supply, which add up to those of energy",
      {field("VDD1", &T::VDD1, "of VDD1; none: the part has none, or no source gives it").optional(),
       field("VDD2", &T::VDD2, "of VDD2; none: the part has none, or no source gives it").optional(),
       field("VDDQ", &T::VDDQ, "of VDDQ; none: the part has none, or no source gives it").optional()}};
  return kSchema;
}

template <>
const Schema<DramPartSpec>& schema<DramPartSpec>() {
  using T = DramPartSpec;
  static const Schema<T> kSchema{
      "a DRAM part: one rank of one channel",
      {field("name", &T::name, "what reports call it").by_default("custom"),
       field("description", &T::description, "one line about it").by_default(""),
       field("standard", &T::standard, "JEDEC standard, whose rules the timings follow"),
       field("data_rate", &T::data_rate, "transfers per second on each data line").between(100_MHz, 20_GHz),
       field("transfers_per_clock", &T::transfers_per_clock,
             "data beats per CK cycle: 2 in LPDDR4, 8 in LPDDR5")
           .between(1, 32)
           .power_of_two(),
       field("burst_length", &T::burst_length, "beats of a read or write").between(1, 64).power_of_two(),
       field("width_bits", &T::width_bits, "data lines of a channel").between(8, 64).power_of_two(),
       field("bank_groups", &T::bank_groups, "bank groups of a rank; 1: none").between(1, 16).power_of_two(),
       field("banks", &T::banks, "banks of a rank, over all bank groups").between(1, 64).power_of_two(),
       field(
           "banks_per_refresh", &T::banks_per_refresh,
           "banks that a per-bank refresh takes together, evenly apart: two of LPDDR5's 16 (JESD209-5: n and "
           "n + 8), one of each group of DDR5 (JESD79-5: same-bank refresh)")
           .between(1, 64)
           .power_of_two()
           .by_rule("as its standard has it, else 1"),
       field("rows", &T::rows, "rows of a bank; 3/4 of a power of two in dies of 6 and 12 Gb")
           .between(1, 1 << 22),
       field("columns", &T::columns, "columns of a row, each as wide as the channel")
           .between(1, 65536)
           .power_of_two(),
       field("timing", &T::timing, "timings; required but for psram").by_rule("none of psram"),
       field("psram", &T::psram, "timings of a serial PSRAM").optional(),
       field("energy", &T::energy, "energy; none: no source gives it").optional(),
       field("rails", &T::rails, "energy by supply; none: no source splits it").optional()},
      check_part,
      complete_part};
  return kSchema;
}

}  // namespace kvsim::config
