// SPDX-License-Identifier: Apache-2.0
// Tables of DRAM parts and of the controller, and what must hold between their values.
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

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
    Order{"tRRD", &DramTiming::tRRD, "tFAW", &DramTiming::tFAW},
    Order{"tCCD", &DramTiming::tCCD, "tCCD_L", &DramTiming::tCCD_L},
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
  if (burst_bytes(part) > 64_B) {
    place.error(
        "burst_length",
        fmt::format("a burst moves {}, more than a cache line of 64 B; at {} bits a burst of {} would",
                    to_text(burst_bytes(part)), part.width_bits, 64 * 8 / part.width_bits));
  }
  if (row_bytes(part) > 32_KiB) {
    place.error("columns", fmt::format("a row of {} is more than the 32 KiB that are supported",
                                       to_text(row_bytes(part))));
  }
  if (part.burst_length < part.transfers_per_clock) {
    place.error("burst_length", fmt::format("a burst of {} is shorter than the {} transfers of one clock",
                                            part.burst_length, part.transfers_per_clock));
    return;
  }
  check_timing(part, place);
}

void check_controller(const MemoryControllerSpec& controller, const Place& place) {
  if (controller.write_high > controller.write_queue) {
    place.error("write_high", fmt::format("{} is above write_queue, {}; writes would never be drained",
                                          controller.write_high, controller.write_queue));
  }
  if (controller.write_low >= controller.write_high) {
    place.error("write_low",
                fmt::format("{} is not below write_high, {}; draining would stop before it starts",
                            controller.write_low, controller.write_high));
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
       field("tRRD", &T::tRRD, "activate to activate, other bank of the rank"),
       field("tFAW", &T::tFAW, "window with at most four activates of a rank"),
       field("tCCD", &T::tCCD, "read to read or write to write, other bank group"),
       field("tCCD_L", &T::tCCD_L, "the same within a bank group; equal to tCCD where there are none"),
       field("tWTR", &T::tWTR, "end of write data to read, same rank"),
       field("tRTP", &T::tRTP, "read to precharge, without the burst"),
       field("tWR", &T::tWR, "end of write data to precharge"),
       field("tRTRS", &T::tRTRS, "gap on the bus when the rank changes"),
       field("tRFCab", &T::tRFCab, "refresh of all banks"),
       field("tRFCpb", &T::tRFCpb, "refresh of one bank"),
       field("tREFI", &T::tREFI, "average interval between refreshes of all banks")}};
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
       field("rows", &T::rows, "rows of a bank").between(1, 1 << 22).power_of_two(),
       field("columns", &T::columns, "columns of a row, each as wide as the channel")
           .between(1, 65536)
           .power_of_two(),
       field("timing", &T::timing, "timings")},
      check_part};
  return kSchema;
}

template <>
const Schema<AddressMapSpec>& schema<AddressMapSpec>() {
  using T = AddressMapSpec;
  static const Schema<T> kSchema{
      "physical address to DRAM coordinates, least significant bit first; together a bijection",
      {field("channel", &T::channel, "bits of the channel").by_default({}),
       field("rank", &T::rank, "bits of the rank").by_default({}),
       field("bank", &T::bank, "bits of the bank within its rank").by_default({}),
       field("row", &T::row, "bits of the row").by_default({}),
       field("column", &T::column, "bits of the byte within the row")}};
  return kSchema;
}

template <>
const Schema<MemoryControllerSpec>& schema<MemoryControllerSpec>() {
  using T = MemoryControllerSpec;
  static const Schema<T> kSchema{
      "memory controllers, one per channel, and how the DRAM is wired to them",
      {field("channels", &T::channels, "channels").between(1, 64).power_of_two(),
       field("ranks", &T::ranks, "ranks of each channel").between(1, 4).power_of_two(),
       field("refresh", &T::refresh, "how banks are refreshed; none for what-if runs only").optional(),
       field("turnaround", &T::turnaround,
             "bus turnaround between reads and writes; false for what-if runs only")
           .optional(),
       field("read_queue", &T::read_queue, "reads of a channel that the scheduler chooses from; assumed")
           .between(1, 4096)
           .optional(),
       field("write_queue", &T::write_queue, "writes that a channel holds back; assumed")
           .between(1, 4096)
           .optional(),
       field("write_high", &T::write_high, "fill of the write queue that starts its draining; assumed")
           .between(1, 4096)
           .optional(),
       field("write_low", &T::write_low, "fill of the write queue that ends its draining; assumed")
           .between(0, 4096)
           .optional(),
       field("age_cap", &T::age_cap, "a request this old goes before younger row hits; assumed")
           .between(1_ns, 1_ms)
           .by_default(2_us),
       field("mapping", &T::mapping, "address map")},
      check_controller};
  return kSchema;
}

}  // namespace kvsim::config
