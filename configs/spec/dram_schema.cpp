// SPDX-License-Identifier: Apache-2.0
// Tables of DRAM parts, and what must hold between their values.
#include <array>
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
    Order{"tRFCpb", &DramTiming::tRFCpb, "tRFCab", &DramTiming::tRFCab},
    Order{"tRFCab", &DramTiming::tRFCab, "tREFI", &DramTiming::tREFI},
};

void check_timing(const DramPartSpec& part, const Place& place) {
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
  if (length(timing.tRFCpb) * part.banks >= length(timing.tREFI)) {
    place.error("timing.tRFCpb", fmt::format("'{}' for each of {} banks leaves no time within tREFI, {}",
                                             to_text(timing.tRFCpb), part.banks, to_text(timing.tREFI)));
  }
}

void check_part(const DramPartSpec& part, const Place& place) {
  if (part.bank_groups > part.banks) {
    place.error("bank_groups",
                fmt::format("{} bank groups cannot share {} banks", part.bank_groups, part.banks));
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
  check_timing(part, place);
}

/// JESD209-4, "masked write": 32 tCK at a burst of 16, in other words 4 tCCD.
bool delays_masked_writes(DramStandard standard) {
  return standard == DramStandard::lpddr4 || standard == DramStandard::lpddr4x;
}

/// Timings that follow from others and from the standard.
void complete_part(DramPartSpec& part, const Place& place) {
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
       field("width_bits", &T::width_bits, "data lines of a channel").between(8, 1024).power_of_two(),
       field("bank_groups", &T::bank_groups, "bank groups of a rank; 1: none").between(1, 16).power_of_two(),
       field("banks", &T::banks, "banks of a rank, over all bank groups").between(1, 64).power_of_two(),
       field("rows", &T::rows, "rows of a bank; 3/4 of a power of two in dies of 6 and 12 Gb")
           .between(1, 1 << 22),
       field("columns", &T::columns, "columns of a row, each as wide as the channel")
           .between(1, 65536)
           .power_of_two(),
       field("timing", &T::timing, "timings"),
       field("energy", &T::energy, "energy; none: no source gives it").optional()},
      check_part,
      complete_part};
  return kSchema;
}

}  // namespace kvsim::config
