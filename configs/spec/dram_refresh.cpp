// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/dram_refresh.h"

#include <cmath>

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
  const Picoseconds interval(std::llround(duration(part.timing.tREFI, clock).as_double() / rate));
  if (busy < interval) {
    return std::nullopt;
  }
  const std::string divided =
      rate == 1 ? "" : fmt::format(" (tREFI, {}, by {})", to_text(part.timing.tREFI), rate);
  return RefreshProblem{
      rate == 1 ? "refresh" : "temperature",
      fmt::format("at {} the DRAM is refreshed every {}{}, and refreshes of {} in all do not fit into that{}",
                  to_text(controller.temperature), to_text(interval), divided, to_text(busy),
                  per_bank ? "; use refresh: all_bank" : "")};
}

std::optional<RefreshProblem> idle_problem(const MemoryControllerSpec& controller) {
  if (!controller.self_refresh) {
    return std::nullopt;
  }
  if (controller.refresh == RefreshMode::none) {
    return RefreshProblem{"self_refresh",
                          "a rank that is not refreshed (refresh is none) does not refresh itself either"};
  }
  if (controller.power_down && *controller.self_refresh <= *controller.power_down) {
    return RefreshProblem{"self_refresh",
                          fmt::format("'{}' is not above the {} after which a rank powers down; it would "
                                      "never power down",
                                      to_text(*controller.self_refresh), to_text(*controller.power_down))};
  }
  return std::nullopt;
}

}  // namespace kvsim::config
