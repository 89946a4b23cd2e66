// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/dram_temperature.h"

#include <array>
#include <span>

namespace kvsim::config {
namespace {

struct Step {
  Celsius limit;
  double rate;
};

// A LPDDR part tells its controller in MR4 which multiple of tREFI will do: 4, 2, 1, 1/2, 1/4, or 1/4 with
// derated timings (JESD209-4). At which temperature it tells what is its maker's choice. 85 C is JEDEC's end
// of the normal range; 45, 95 and 105 C are the steps that Intel's XPU Manager knows of LPDDR5; 25 C is
// assumed.
constexpr std::array kLpddrBelow{Step{Celsius(25), 0.25}, Step{Celsius(45), 0.5}};
constexpr std::array kLpddrAbove{Step{Celsius(85), 2}, Step{Celsius(95), 4}};
constexpr Celsius kLpddrDerated{105};

// Micron's automotive DDR4 data sheet (MT40A256M16), table 159: 7.8 us, and half of the step before above
// each.
constexpr std::array kDdr4Above{Step{Celsius(85), 2}, Step{Celsius(95), 4}, Step{Celsius(105), 8}};

// gem5's DDR5_4400_4x8, after Micron's data sheet: half of tREFI above 85 C.
constexpr std::array kDdr5Above{Step{Celsius(85), 2}};

// JEDEC's derating of LPDDR2 as in Linux' drivers/memory/emif.c; assumed for its successors.
constexpr Picoseconds kDerating{1875};

bool is_lpddr(DramStandard standard) {
  return standard != DramStandard::ddr4 && standard != DramStandard::ddr5 && standard != DramStandard::psram;
}

std::span<const Step> hot_steps(DramStandard standard) {
  if (is_lpddr(standard)) {
    return kLpddrAbove;
  }
  return standard == DramStandard::ddr4 ? std::span<const Step>(kDdr4Above) : kDdr5Above;
}

}  // namespace

double refresh_rate(const DramPartSpec& part, Celsius temperature) {
  for (const Step& step : kLpddrBelow) {
    if (is_lpddr(part.standard) && temperature < step.limit) {
      return step.rate;
    }
  }
  double rate = 1;
  for (const Step& step : hot_steps(part.standard)) {
    rate = temperature > step.limit ? step.rate : rate;
  }
  return rate;
}

DramTiming timing_at(const DramPartSpec& part, Celsius temperature) {
  DramTiming timing = part.timing;
  if (!is_lpddr(part.standard) || temperature <= kLpddrDerated) {
    return timing;
  }
  for (ClockedTime DramTiming::*member : {&DramTiming::tRCD, &DramTiming::tRPpb, &DramTiming::tRPab,
                                          &DramTiming::tRAS, &DramTiming::tRRD, &DramTiming::tRRD_L}) {
    ClockedTime& time = timing.*member;
    time.time = duration(time, command_clock(part)) + kDerating;
  }
  return timing;
}

}  // namespace kvsim::config
