// SPDX-License-Identifier: Apache-2.0
#include "models/dram/legality/test_parts.h"

#include "configs/units/quantity.h"

namespace kvsim::model::legality {

using namespace literals;
using config::ClockedTime;
using config::DramPartSpec;
using config::DramStandard;

namespace {

ClockedTime clocks(std::int64_t count) {
  return {Picoseconds(), count};
}

/// DRAMSys 5.1's JEDEC_8Gb_LPDDR4-3200_16bit, as the catalogue's lpddr4-3200.
DramPartSpec lpddr4() {
  DramPartSpec p;
  p.standard = DramStandard::lpddr4;
  p.data_rate = Hertz(3'200'000'000);
  config::DramTiming& t = p.timing;
  t.read_latency = clocks(34);
  t.write_latency = clocks(15);
  t.tRCD = clocks(29);
  t.tRPpb = clocks(29);
  t.tRPab = clocks(34);
  t.tRAS = clocks(68);
  t.tRRD = clocks(16);
  t.tFAW = clocks(66);
  t.tCCD = clocks(8);
  t.tWTR = clocks(16);
  t.tRTP = clocks(12);
  t.tWR = clocks(29);
  t.tPPD = clocks(4);
  t.tRTRS = clocks(4);
  t.tRFCab = clocks(448);
  t.tRFCpb = clocks(224);
  t.tREFI = clocks(6246);
  t.tCKE = clocks(12);
  t.tXP = clocks(13);
  t.tSR = clocks(24);
  t.tXSR = clocks(460);
  return p;
}

DramPartSpec lpddr3() {
  DramPartSpec p = lpddr4();
  p.timing = {};
  p.standard = DramStandard::lpddr3;
  p.data_rate = Hertz(1'600'000'000);
  p.burst_length = 8;
  p.width_bits = 32;
  config::DramTiming& t = p.timing;
  t.read_latency = clocks(15);
  t.write_latency = clocks(8);
  t.tRCD = {18_ns, 3};
  t.tRPpb = {18_ns, 3};
  t.tRPab = {21_ns, 3};
  t.tRAS = {42_ns, 3};
  t.tRRD = {10_ns, 2};
  t.tFAW = {50_ns, 8};
  t.tCCD = clocks(4);
  t.tWTR = {6_ns, 4};
  t.tRTP = {Picoseconds(7'500), 4};
  t.tWR = {15_ns, 4};
  t.tRTRS = clocks(2);
  t.tRFCab = {210_ns, 0};
  t.tRFCpb = {90_ns, 0};
  t.tREFI = {3900_ns, 0};
  t.tCKE = {Picoseconds(7'500), 3};
  t.tXP = {Picoseconds(8'750), 2};
  t.tSR = {15_ns, 3};
  t.tXSR = {220_ns, 2};
  return p;
}

DramPartSpec lpddr5() {
  DramPartSpec p;
  p.standard = DramStandard::lpddr5;
  p.data_rate = Hertz(6'400'000'000);
  p.transfers_per_clock = 8;
  p.bank_groups = 4;
  p.banks = 16;
  p.banks_per_refresh = 2;
  config::DramTiming& t = p.timing;
  t.read_latency = clocks(18);
  t.write_latency = clocks(9);
  t.tRCD = {18_ns, 2};
  t.tRPpb = {18_ns, 2};
  t.tRPab = {21_ns, 2};
  t.tRAS = {42_ns, 3};
  t.tRRD = {5_ns, 2};
  t.tRRD_L = {7_ns, 2};
  t.tFAW = {24_ns, 0};
  t.tCCD = clocks(2);
  t.tCCD_L = clocks(4);
  t.tCCD_L_WR = clocks(5);
  t.tCCDMW = clocks(16);
  t.tWTR = {Picoseconds(6'250), 4};
  t.tWTR_L = {12_ns, 4};
  t.tRTP = {Picoseconds(5'000), 0};
  t.tWR = {34_ns, 3};
  t.tPPD = clocks(2);
  t.tRTRS = clocks(2);
  t.tRFCab = {280_ns, 0};
  t.tRFCpb = {140_ns, 0};
  t.tpbR2pbR = {90_ns, 0};
  t.tpbR2act = {Picoseconds(7'500), 0};
  t.tREFI = {3906_ns, 0};
  t.tCKE = {Picoseconds(7'500), 3};
  t.tXP = {9_ns, 3};
  t.tSR = {15_ns, 3};
  t.tXSR = {288_ns, 2};
  return p;
}

DramPartSpec ddr4() {
  DramPartSpec p;
  p.standard = DramStandard::ddr4;
  p.data_rate = Hertz(3'200'000'000);
  p.burst_length = 8;
  p.width_bits = 64;
  p.bank_groups = 4;
  p.banks = 16;
  config::DramTiming& t = p.timing;
  t.read_latency = clocks(22);
  t.write_latency = clocks(16);
  t.tRCD = clocks(22);
  t.tRPpb = clocks(22);
  t.tRPab = clocks(22);
  t.tRAS = clocks(52);
  t.tRRD = clocks(4);
  t.tRRD_L = clocks(8);
  t.tFAW = clocks(34);
  t.tCCD = clocks(4);
  t.tCCD_L = clocks(8);
  t.tCCD_L_WR = clocks(8);
  t.tWTR = clocks(4);
  t.tWTR_L = clocks(12);
  t.tRTP = clocks(12);
  t.tWR = clocks(27);
  t.tRTRS = clocks(2);
  t.tRFCab = {360_ns, 0};
  t.tREFI = {7800_ns, 0};
  t.tCKE = {5_ns, 3};
  t.tXP = {6_ns, 4};
  t.tSR = clocks(9);
  t.tXSR = {370_ns, 0};
  return p;
}

DramPartSpec ddr5() {
  DramPartSpec p = ddr4();
  p.timing = {};
  p.standard = DramStandard::ddr5;
  p.data_rate = Hertz(4'800'000'000);
  p.burst_length = 16;
  p.width_bits = 32;
  p.bank_groups = 8;
  p.banks = 32;
  p.banks_per_refresh = 8;
  config::DramTiming& t = p.timing;
  t.read_latency = clocks(40);
  t.write_latency = clocks(38);
  t.tRCD = clocks(39);
  t.tRPpb = clocks(39);
  t.tRPab = clocks(39);
  t.tRAS = clocks(77);
  t.tRRD = clocks(8);
  t.tRRD_L = clocks(12);
  t.tFAW = clocks(40);
  t.tCCD = clocks(8);
  t.tCCD_L = clocks(12);
  t.tCCD_L_WR = clocks(48);
  t.tWTR = clocks(6);
  t.tWTR_L = clocks(24);
  t.tRTP = clocks(18);
  t.tWR = clocks(72);
  t.tPPD = clocks(2);
  t.tRTRS = clocks(2);
  t.tRFCab = {295_ns, 0};
  t.tRFCpb = {130_ns, 0};
  t.tpbR2act = {30_ns, 0};
  t.tREFI = {3900_ns, 0};
  t.tCKE = {Picoseconds(7'500), 8};
  t.tXP = {Picoseconds(8'000), 8};
  t.tSR = clocks(30);
  t.tXSR = {305_ns, 0};
  return p;
}

}  // namespace

DramPartSpec test_part(DramStandard standard) {
  DramPartSpec part;
  switch (standard) {
    case DramStandard::lpddr3:
      return lpddr3();
    case DramStandard::lpddr4:
      return lpddr4();
    case DramStandard::lpddr4x:
      part = lpddr4();
      part.data_rate = Hertz(4'224'000'000);  // a period that is not a whole number of picoseconds
      part.timing.tRCD = {18_ns, 4};
      part.timing.tRPpb = {18_ns, 4};
      part.timing.tRPab = {21_ns, 4};
      part.timing.tRAS = {42_ns, 3};
      part.timing.tREFI = {3904_ns, 0};
      break;
    case DramStandard::lpddr5:
      return lpddr5();
    case DramStandard::lpddr5x:  // 8-bank mode: bursts of 32 and no bank groups
      part = lpddr5();
      part.data_rate = Hertz(8'533'000'000);
      part.burst_length = 32;
      part.bank_groups = 1;
      part.banks = 8;
      part.banks_per_refresh = 1;
      part.timing.tCCD = clocks(4);
      part.timing.tRRD = {10_ns, 2};
      part.timing.tFAW = {42_ns, 0};
      break;
    case DramStandard::ddr4:
      return ddr4();
    case DramStandard::ddr5:
      return ddr5();
    case DramStandard::psram:
      break;
  }
  part.standard = standard;
  return part;
}

std::vector<TestPart> test_parts() {
  using enum DramStandard;
  return {{"lpddr3", test_part(lpddr3)}, {"lpddr4", test_part(lpddr4)},   {"lpddr4x", test_part(lpddr4x)},
          {"lpddr5", test_part(lpddr5)}, {"lpddr5x", test_part(lpddr5x)}, {"ddr4", test_part(ddr4)},
          {"ddr5", test_part(ddr5)}};
}

}  // namespace kvsim::model::legality
