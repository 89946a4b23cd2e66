// SPDX-License-Identifier: Apache-2.0
#include "models/dram/clock_timing.h"

#include <algorithm>

#include "configs/error/error.h"

namespace kvsim::model {

using config::DramStandard;

namespace {

/// Standards differ in how they count from a column command to what may follow it. All counts are between the
/// last edges of the two commands.
struct ColumnRules {
  Cycle prefetch;        ///< RD to PRE: the array's share of the burst that tRTP covers
  bool burst_in_tRTP;    ///< RD to PRE: tRTP is counted from the command, burst and all
  Cycle write_recovery;  ///< clocks between the end of write data and the start of tWR
  Cycle turn;            ///< idle clocks on the data bus between a read's and a write's data
};

/// RD to PRE: LPDDR4 (JESD209-4) has BL/2 + max(8, tRTP) - 8, LPDDR3 (JESD209-3) 4 for its BL8. LPDDR5
/// (JESD209-5) counts tRTP from the end of the burst. DDR4 (JESD79-4) and DDR5 (JESD79-5) count it from the
/// command.
/// WR to PRE and to RD: LPDDR3 and LPDDR4 count tWR and tWTR from WL + 1 + BL/2, whose 1 is tDQSS, which the
/// part's latency holds. LPDDR5 has WL + BL/n_min + 1 + tWR, but tWTR without the 1.
/// RD to WR: RL + tDQSCK + BL/2 - WL and 1 in LPDDR3, tWPRE = 2 in LPDDR4, nothing in LPDDR5 (RL + BL/n_max +
/// tWCK2DQO - WL), 2 in DDR4, 4 in DDR5 with its preambles of two clocks. Where the part's latency holds
/// tDQSS, that clock is idle too.
ColumnRules column_rules(DramStandard standard) {
  switch (standard) {
    case DramStandard::lpddr3:
      return {.prefetch = 4, .burst_in_tRTP = false, .write_recovery = 0, .turn = 2};
    case DramStandard::lpddr4:
    case DramStandard::lpddr4x:
      return {.prefetch = 8, .burst_in_tRTP = false, .write_recovery = 0, .turn = 3};
    case DramStandard::lpddr5:
    case DramStandard::lpddr5x:
      return {.prefetch = 0, .burst_in_tRTP = false, .write_recovery = 1, .turn = 0};
    case DramStandard::ddr4:
      return {.prefetch = 0, .burst_in_tRTP = true, .write_recovery = 0, .turn = 2};
    case DramStandard::ddr5:
    case DramStandard::psram:
      break;
  }
  return {.prefetch = 0, .burst_in_tRTP = true, .write_recovery = 0, .turn = 4};
}

bool is_lpddr5(DramStandard standard) {
  return standard == DramStandard::lpddr5 || standard == DramStandard::lpddr5x;
}

bool is_lpddr4(DramStandard standard) {
  return standard == DramStandard::lpddr4 || standard == DramStandard::lpddr4x;
}

class Cycles {
 public:
  explicit Cycles(const config::DramPartSpec& part) : clock_(command_clock(part)) {}
  Cycle operator()(const config::ClockedTime& t) const { return std::max(clock_.cycles(t.time), t.clocks); }
  [[nodiscard]] Cycle at_most(const config::ClockedTime& t) const {
    return std::max(clock_.whole_cycles(t.time), t.clocks);
  }

 private:
  CommandClock clock_;
};

void set_row_timing(ClockTiming& c, const config::DramTiming& t, const Cycles& cycles) {
  c.tRCD = cycles(t.tRCD);
  c.tRPpb = cycles(t.tRPpb);
  c.tRPab = cycles(t.tRPab);
  c.tRAS = cycles(t.tRAS);
  c.tRRD = cycles(t.tRRD);
  c.tRRD_L = std::max(cycles(t.tRRD_L), c.tRRD);
  c.tFAW = cycles(t.tFAW);
  c.tPPD = cycles(t.tPPD);
  c.tRFCab = cycles(t.tRFCab);
  c.tRFCpb = cycles(t.tRFCpb);
  c.tpbR2pbR = std::max(cycles(t.tpbR2pbR), t.tpbR2pbR == config::ClockedTime{} ? c.tRFCpb : 0);
  c.tpbR2act = std::max(cycles(t.tpbR2act), t.tpbR2act == config::ClockedTime{} ? c.tRRD : 0);
  c.tREFI = cycles.at_most(t.tREFI);  // rounded up, refreshes would come late on average
  c.tCKE = cycles(t.tCKE);
  c.tXP = cycles(t.tXP);
  c.tSR = cycles(t.tSR);
  c.tXSR = cycles(t.tXSR);
}

void set_column_timing(ClockTiming& c, const config::DramPartSpec& part, const Cycles& cycles) {
  const config::DramTiming& t = part.timing;
  const ColumnRules rules = column_rules(part.standard);
  c.burst = part.burst_length / part.transfers_per_clock;
  c.read_latency = cycles(t.read_latency);
  c.write_latency = cycles(t.write_latency);
  c.tCCD = std::max(cycles(t.tCCD), c.burst);
  c.tCCD_L = std::max(cycles(t.tCCD_L), c.tCCD);
  c.tCCD_L_WR = std::max(cycles(t.tCCD_L_WR), c.tCCD_L);
  c.tCCDMW = std::max(cycles(t.tCCDMW), c.tCCD_L_WR);  // JESD209-4: 32 tCK, four bursts
  if (is_lpddr4(part.standard)) {
    c.tCCDMW = std::max(c.tCCDMW, 4 * c.tCCD);
  }
  const Cycle tRTP = cycles(t.tRTP);
  c.read_to_precharge =
      rules.burst_in_tRTP ? tRTP : c.burst + std::max(rules.prefetch, tRTP) - rules.prefetch;
  const Cycle written = c.write_latency + c.burst;
  c.write_to_precharge = written + rules.write_recovery + cycles(t.tWR);
  c.write_to_read = written + cycles(t.tWTR);
  c.write_to_read_L = written + std::max(cycles(t.tWTR), cycles(t.tWTR_L));
  if (is_lpddr5(part.standard) && part.bank_groups > 1) {  // a burst holds its group for BL/n_max, tCCD_L
    c.write_to_read_L += c.tCCD_L - c.burst;
  }
}

}  // namespace

/// LPDDR4's ACT, RD and WR are two two-cycle commands (JESD209-4). LPDDR5's commands take the two edges of
/// one cycle; its ACT is two of them (JESD209-5). DDR5's ACT, RD and WR take two cycles (JESD79-5).
CommandLengths command_lengths(DramStandard standard) {
  switch (standard) {
    case DramStandard::lpddr4:
    case DramStandard::lpddr4x:
      return {.activate = 4, .column = 4, .other = 2, .split_activate = false};
    case DramStandard::lpddr5:
    case DramStandard::lpddr5x:
      return {.activate = 1, .column = 1, .other = 1, .split_activate = true};
    case DramStandard::ddr5:
      return {.activate = 2, .column = 2, .other = 1, .split_activate = false};
    case DramStandard::lpddr3:
    case DramStandard::ddr4:
    case DramStandard::psram:
      break;
  }
  return {.activate = 1, .column = 1, .other = 1, .split_activate = false};
}

ClockTiming clock_timing(const config::DramPartSpec& part, bool turnaround) {
  check(part.standard != DramStandard::psram, "a serial PSRAM has a model of its own");
  ClockTiming c{};
  const Cycles cycles(part);
  set_row_timing(c, part.timing, cycles);
  c.refresh_activates = part.standard == DramStandard::lpddr3 || is_lpddr4(part.standard);
  set_column_timing(c, part, cycles);
  if (turnaround) {
    c.read_to_write = c.read_latency + c.burst + column_rules(part.standard).turn - c.write_latency;
    if (is_lpddr5(part.standard) && part.bank_groups > 1) {  // RL + BL/n_max - WL
      c.read_to_write = c.read_latency + c.tCCD_L - c.write_latency;
    }
    c.rank_switch = cycles(part.timing.tRTRS);
  } else {  // data follows data: with unequal latencies the command of the slower direction would come too
            // late
    c.write_latency = c.read_latency;
    c.read_to_write = c.write_to_read = c.write_to_read_L = c.burst;
    c.rank_switch = 0;
  }
  if (part.bank_groups == 1) {
    c.tRRD_L = c.tRRD;
    c.tCCD_L = c.tCCD_L_WR = c.tCCD;
    c.write_to_read_L = c.write_to_read;
  }
  return c;
}

}  // namespace kvsim::model
