// SPDX-License-Identifier: Apache-2.0
// Tables of the memory controller and its address map, and what must hold between their values.
#include <fmt/format.h>

#include "configs/spec/dram_refresh.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

// JEDEC lets a controller owe eight refreshes of a rank (JESD209-4 and JESD79-4, "refresh command").
constexpr std::int64_t kMostPostponed = 8;

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
  if (controller.page_policy == PagePolicy::adaptive && controller.page_timeout == Picoseconds()) {
    place.error("page_timeout",
                "is 0, but the adaptive policy closes rows after it; give a time, such as 200 ns");
  }
  if (const auto problem = idle_problem(controller)) {
    place.error(problem->key, problem->what);
  }
}

}  // namespace

template <>
const Schema<AddressMapSpec>& schema<AddressMapSpec>() {
  using T = AddressMapSpec;
  static const Schema<T> kSchema{
      "physical address to DRAM coordinates, least significant bit first; together a bijection",
      {field("order", &T::order,
             "masks: the bits below, as written; or a map made from the geometry, which replaces them: "
             "row-bank-column, bank-row-column, row-bank-column-group (bank groups take turns line by line)")
           .optional(),
       field("channel_granule", &T::channel_granule,
             "of a named order: addresses after which the channel changes, from a cache line to a row")
           .between(32_B, 64_KiB)
           .power_of_two()
           .optional(),
       field("hash", &T::hash, "of a named order: bank bits are XORed with the low row bits").optional(),
       field("channel", &T::channel, "bits of the channel").by_default({}),
       field("rank", &T::rank, "bits of the rank").by_default({}),
       field("bank", &T::bank, "bits of the bank within its rank").by_default({}),
       field("row", &T::row, "bits of the row").by_default({}),
       field("column", &T::column, "bits of the byte within the row").by_default({})}};
  return kSchema;
}

template <>
const Schema<MemoryControllerSpec>& schema<MemoryControllerSpec>() {
  using T = MemoryControllerSpec;
  static const Schema<T> kSchema{
      "memory controllers, one per channel, and how the DRAM is wired to them",
      {field("channels", &T::channels, "channels").between(1, 64).power_of_two(),
       field("ranks", &T::ranks, "ranks of each channel").between(1, 8),
       field("refresh", &T::refresh, "how banks are refreshed; none for what-if runs only").optional(),
       field("postponed_refreshes", &T::postponed_refreshes,
             "refreshes of a rank that may wait while requests are queued")
           .between(0, kMostPostponed)
           .optional(),
       field("temperature", &T::temperature, "of the DRAM; the hotter, the more often it is refreshed")
           .between(Celsius(-40), Celsius(125))
           .optional(),
       field("turnaround", &T::turnaround,
             "bus turnaround between reads and writes; false for what-if runs only")
           .optional(),
       field("page_policy", &T::page_policy,
             "when a row is closed: open, for another row of its bank; closed, after each access unless a "
             "queued request hits it; adaptive, when idle for page_timeout")
           .optional(),
       field("page_timeout", &T::page_timeout, "idle time of a row under the adaptive policy")
           .between(0_ps, 1_ms)
           .optional(),
       field("queue", &T::queue, "requests are queued for the channel (shared), or for each bank").optional(),
       field("read_queue", &T::read_queue,
             "reads of a channel, or of a bank, that the scheduler chooses from; assumed")
           .between(1, 4096)
           .optional(),
       field("write_queue", &T::write_queue, "writes that a channel, or a bank, holds back; assumed")
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
       field("power_down", &T::power_down, "idle time of a rank after which it powers down; none: never")
           .between(0_ps, 1000_ms)
           .optional(),
       field("self_refresh", &T::self_refresh, "idle time after which it refreshes itself; none: never")
           .between(0_ps, 1000_ms)
           .optional(),
       field("mapping", &T::mapping, "address map")},
      check_controller};
  return kSchema;
}

}  // namespace kvsim::config
