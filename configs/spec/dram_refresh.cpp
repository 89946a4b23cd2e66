// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/dram_refresh.h"

#include <fmt/format.h>

#include "configs/spec/dram_temperature.h"
#include "configs/spec/grammar.h"
#include "configs/units/text.h"

namespace kvsim::config {

std::optional<RefreshProblem> refresh_problem(const DramPartSpec& part,
                                              const MemoryControllerSpec& controller) {
  const bool per_bank = controller.refresh == RefreshMode::per_bank;
  if (per_bank && part.timing.tRFCpb == ClockedTime()) {
    return RefreshProblem{
        "refresh",
        fmt::format("is per_bank, but {} has no refresh of one bank (tRFCpb is 0); use all_bank", part.name)};
  }
  if (controller.refresh == RefreshMode::none || part.psram) {  // a serial PSRAM refreshes itself
    return std::nullopt;
  }
  if (controller.postponed_refreshes > most_postponed(part)) {
    return RefreshProblem{"postponed_refreshes",
                          fmt::format("{} is more than the {} that {} lets wait",
                                      controller.postponed_refreshes, most_postponed(part), part.name)};
  }
  const Hertz clock = command_clock(part);
  const Picoseconds busy = per_bank ? duration(part.timing.tpbR2pbR, clock) * bank_refreshes(part)
                                    : duration(part.timing.tRFCab, clock);
  const double rate = refresh_rate(part, controller.temperature);
  if (busy.as_double() * rate < duration(part.timing.tREFI, clock).as_double()) {
    return std::nullopt;
  }
  return RefreshProblem{
      "temperature", fmt::format("at {} the DRAM is refreshed {} times as often, and refreshes of {} in all "
                                 "do not fit into tREFI, {}, any more{}",
                                 to_text(controller.temperature), rate, to_text(busy),
                                 to_text(part.timing.tREFI), per_bank ? "; use refresh: all_bank" : "")};
}

}  // namespace kvsim::config
