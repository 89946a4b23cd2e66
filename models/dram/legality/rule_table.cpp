// SPDX-License-Identifier: Apache-2.0
#include "models/dram/legality/rule_table.h"

#include <algorithm>
#include <initializer_list>
#include <span>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::model::legality {

namespace {

using config::ClockedTime;
using config::DramStandard;
using enum Command;

constexpr std::int64_t kPicoseconds = 1'000'000'000'000;  // in a second

/// JEDEC's counts of clocks: a time is rounded up.
class Clocks {
 public:
  explicit Clocks(Hertz clock) : hertz_(clock.count()) {}

  [[nodiscard]] Cycle operator()(const ClockedTime& timing) const {
    return std::max(timing.clocks, whole(timing.time));
  }
  /// Of two timings one after the other: times are added before they are rounded, as tRC = tRAS + tRP.
  [[nodiscard]] Cycle sum(const ClockedTime& a, const ClockedTime& b) const {
    const bool times = whole(a.time) >= a.clocks && whole(b.time) >= b.clocks;
    return times ? whole(a.time + b.time) : (*this)(a) + (*this)(b);
  }
  [[nodiscard]] double exact(const ClockedTime& timing) const {
    return std::max(
        static_cast<double>(timing.clocks),
        timing.time.as_double() * static_cast<double>(hertz_) / static_cast<double>(kPicoseconds));
  }

 private:
  [[nodiscard]] Cycle whole(Picoseconds time) const {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(time.count(), hertz_, &product)) {
      throw UserError(
          fmt::format("a timing of {} ps is too long for a clock of {} Hz", time.count(), hertz_));
    }
    return product / kPicoseconds + (product % kPicoseconds > 0 ? 1 : 0);
  }

  std::int64_t hertz_;
};

/// The part's timings as counts. A timing that a standard does not have takes the place of the one it
/// refines.
struct Counts {
  Cycle burst, read, write;  ///< BL/2 (BL/n_min in LPDDR5), and the latencies
  Cycle tRCD, tRPpb, tRPab, tRAS, tRC, tRRD, tRRD_L, tCCD, tCCD_L, tCCD_L_WR, tCCDMW;
  Cycle tWTR, tWTR_L, tRTP, tWR, tPPD, tRFCab, tRFCpb, tpbR2pbR, tpbR2act, tCKE, tXP, tSR, tXSR;
};

bool is_lpddr5(DramStandard standard) {
  return standard == DramStandard::lpddr5 || standard == DramStandard::lpddr5x;
}
bool is_lpddr4(DramStandard standard) {
  return standard == DramStandard::lpddr4 || standard == DramStandard::lpddr4x;
}
/// JESD79-5, 4.13: a
/// same-bank refresh is one of fine granularity, of which there are two in each tREFI.
double refresh_interval(const config::DramPartSpec& part, const Conditions& conditions,
                        const Clocks& clocks) {
  const bool fine =
      part.standard == DramStandard::ddr5 && conditions.refresh == config::RefreshMode::per_bank;
  return clocks.exact(part.timing.tREFI) / conditions.refresh_rate / (fine ? 2 : 1);
}

/// Eight in JESD209-3 to -5 and JESD79-4. JESD79-5: four, and twice as many of half the interval.
std::int64_t postponed_refreshes(const config::DramPartSpec& part, const Conditions& conditions) {
  const bool halved =
      part.standard == DramStandard::ddr5 && conditions.refresh != config::RefreshMode::per_bank;
  return conditions.postponed.value_or(halved ? 4 : 8);
}

Counts counts_of(const config::DramPartSpec& part, const Clocks& clocks) {
  const config::DramTiming& t = part.timing;
  Counts c{};
  c.burst = part.burst_length / part.transfers_per_clock;
  c.read = clocks(t.read_latency);
  c.write = clocks(t.write_latency);
  c.tRCD = clocks(t.tRCD);
  c.tRPpb = clocks(t.tRPpb);
  c.tRPab = clocks(t.tRPab);
  c.tRAS = clocks(t.tRAS);
  c.tRC = clocks.sum(t.tRAS, t.tRPpb);
  c.tRRD = clocks(t.tRRD);
  c.tRRD_L = std::max(clocks(t.tRRD_L), c.tRRD);
  c.tCCD = std::max(clocks(t.tCCD), c.burst);
  c.tCCD_L = std::max(clocks(t.tCCD_L), c.tCCD);
  c.tCCD_L_WR = std::max(clocks(t.tCCD_L_WR), c.tCCD_L);
  // JESD209-4: 32 tCK at BL16, where tCCD is 8.
  c.tCCDMW = std::max(clocks(t.tCCDMW), is_lpddr4(part.standard) ? 4 * c.tCCD : 0);
  c.tWTR = clocks(t.tWTR);
  c.tWTR_L = std::max(clocks(t.tWTR_L), c.tWTR);
  c.tRTP = clocks(t.tRTP);
  c.tWR = clocks(t.tWR);
  c.tPPD = clocks(t.tPPD);
  c.tRFCab = clocks(t.tRFCab);
  c.tRFCpb = clocks(t.tRFCpb);
  // JESD209-4 gives neither: refreshes of two banks do not overlap, and an activate keeps tRRD from one.
  const Cycle between_refreshes = clocks(t.tpbR2pbR);
  const Cycle refresh_to_activate = clocks(t.tpbR2act);
  c.tpbR2pbR = between_refreshes > 0 ? between_refreshes : c.tRFCpb;
  c.tpbR2act = refresh_to_activate > 0 ? refresh_to_activate : c.tRRD;
  c.tCKE = clocks(t.tCKE);
  c.tXP = clocks(t.tXP);
  c.tSR = clocks(t.tSR);
  c.tXSR = clocks(t.tXSR);
  return c;
}

/// What differs between the standards: how a command's own latency and burst enter a spacing.
struct Family {
  Cycle read_to_precharge;
  Cycle write_to_precharge;
  Cycle read_to_write;
  Cycle write_to_read;
  Cycle write_to_read_group;  ///< the same within a bank group
  Cycle read_to_down;         ///< RD to PDE or SRE
  std::string_view precharge_formula;
  std::string_view turn_formula;
};

/// Reads and writes leave one clock for the bus to turn and one for the write's preamble between their data
/// (JESD79-4; Ramulator 2: nCL + nBL + 2 - nCWL). The part's latencies hold tDQSCK and tDQSS, so this is
/// JESD209-3's RL + tDQSCK + BL/2 + 1 - WL too. JESD209-3 and -4: tWTR and tWR run from WL + 1 + BL/2, where
/// the 1 is tDQSS (DRAMSys 5.1: tWR and tWTR from WL + 1 + BL/2, tDQSS apart).
Family ddr_family(const Counts& c, Cycle read_to_precharge) {
  return {.read_to_precharge = read_to_precharge,
          .write_to_precharge = c.write + c.burst + c.tWR,
          .read_to_write = c.read + c.burst + 2 - c.write,
          .write_to_read = c.write + c.burst + c.tWTR,
          .write_to_read_group = c.write + c.burst + c.tWTR_L,
          .read_to_down = c.read + c.burst + 1,
          .precharge_formula = "tRTP",
          .turn_formula = "RL + BL/2 + 2 - WL"};
}

/// JESD209-5: a burst in bank-group mode takes BL/n_min on the bus and holds its group for BL/n_max, which is
/// tCCD_L. RD to WR is RL + BL/n_max - WL, as WCK needs no preamble of its own (Ramulator 2: nCL + nBL + 2 -
/// nCWL, the same at BL16); WR to RD of the group WL + BL/n_max + tWTR_L (gem5 counts tBURST_MAX too), of
/// another WL + BL/n_min + tWTR_S; WR to PRE WL + BL/n_min + 1 + tWR; RD to PRE BL/n_min + tRBTP, which is
/// the part's tRTP.
Family lpddr5_family(const Counts& c, bool groups) {
  const Cycle held = groups ? std::max(c.burst, c.tCCD_L) : c.burst;
  return {.read_to_precharge = c.burst + c.tRTP,
          .write_to_precharge = c.write + c.burst + 1 + c.tWR,
          .read_to_write = c.read + held - c.write,
          .write_to_read = c.write + c.burst + c.tWTR,
          .write_to_read_group = c.write + held + c.tWTR_L,
          .read_to_down = c.read + held + 1,
          .precharge_formula = "BL/n_min + tRBTP",
          .turn_formula = "RL + BL/n_max - WL"};
}

Family family_of(const config::DramPartSpec& part, const Counts& c) {
  Family family{};
  switch (part.standard) {
    case DramStandard::lpddr3:  // JESD209-3: BL/2 + max(4, tRTP) - 4
      family = ddr_family(c, c.burst + std::max<Cycle>(4, c.tRTP) - 4);
      family.precharge_formula = "BL/2 + max(4, tRTP) - 4";
      break;
    case DramStandard::lpddr4:
    case DramStandard::lpddr4x:  // JESD209-4: BL/2 + max(8, tRTP) - 8; power-down follows the last beat;
      // RD to WR is RL + tDQSCK + BL/2 + RD(tRPST) - WL + tWPRE, whose WL lacks tDQSS, tRPST is 0.5, tWPRE 2
      family = ddr_family(c, c.burst + std::max<Cycle>(8, c.tRTP) - 8);
      family.read_to_down = c.read + c.burst;
      family.read_to_write += 1;
      family.turn_formula = "RL + BL/2 + tWPRE - (WL - tDQSS)";
      family.precharge_formula = "BL/2 + max(8, tRTP) - 8";
      break;
    case DramStandard::lpddr5:
    case DramStandard::lpddr5x:
      family = lpddr5_family(c, part.bank_groups > 1);
      break;
    case DramStandard::ddr4:
      family = ddr_family(c, c.tRTP);
      break;
    case DramStandard::ddr5:  // JESD79-5: preambles of two clocks; Ramulator 2: nCL + nBL + 2 - nCWL + 2
      family = ddr_family(c, c.tRTP);
      family.read_to_write += 2;
      family.turn_formula = "RL + BL/2 + 4 - WL";
      break;
    case DramStandard::psram:
      throw UserError(
          fmt::format("{} is a serial PSRAM: it has no DRAM commands that could be checked", part.name));
  }
  return family;
}

using Commands = std::initializer_list<Command>;
constexpr std::array kReads{read, read_auto_precharge};
constexpr std::array kWrites{write, write_auto_precharge, masked_write};
constexpr std::array kColumns{read, read_auto_precharge, write, write_auto_precharge, masked_write};
constexpr std::array kPrecharges{precharge, precharge_all};
constexpr std::array kAfterPowerDown{activate,
                                     precharge,
                                     precharge_all,
                                     read,
                                     read_auto_precharge,
                                     write,
                                     write_auto_precharge,
                                     masked_write,
                                     refresh_all,
                                     refresh_bank,
                                     self_refresh_enter};
// No row is open after self-refresh, and a refresh comes before the next.
constexpr std::array kAfterSelfRefresh{activate,    precharge,    precharge_all,
                                       refresh_all, refresh_bank, power_down_enter};

class Builder {
 public:
  struct Name {
    std::string_view name;
    std::string_view formula;

    Name(const char* both) : name(both), formula(both) {}  // NOLINT: a name is most often all there is
    Name(std::string_view n, std::string_view f) : name(n), formula(f) {}
  };

  /// A spacing below one clock demands nothing.
  void add(const Name& name, std::span<const Command> from, std::span<const Command> to, Scope scope,
           Cycle clocks) {
    if (clocks < 1) {
      return;
    }
    for (const Command f : from) {
      for (const Command t : to) {
        rules_.push_back({name.name, name.formula, f, t, scope, clocks});
      }
    }
  }
  void add(const Name& name, Commands from, Commands to, Scope scope, Cycle clocks) {
    add(name, std::span(from.begin(), from.size()), std::span(to.begin(), to.size()), scope, clocks);
  }
  void add(const Name& name, Commands from, std::span<const Command> to, Scope scope, Cycle clocks) {
    add(name, std::span(from.begin(), from.size()), to, scope, clocks);
  }
  void add(const Name& name, std::span<const Command> from, Commands to, Scope scope, Cycle clocks) {
    add(name, from, std::span(to.begin(), to.size()), scope, clocks);
  }
  [[nodiscard]] std::vector<PairRule> take() { return std::move(rules_); }

 private:
  std::vector<PairRule> rules_;
};

void add_rows(Builder& b, const Counts& c, bool groups) {
  b.add("tRCD", {activate}, kColumns, Scope::bank, c.tRCD);
  b.add("tRAS", {activate}, {precharge}, Scope::bank, c.tRAS);
  b.add("tRAS", {activate}, {precharge_all}, Scope::rank, c.tRAS);
  b.add("tRC", {activate}, {activate, refresh_bank}, Scope::bank, c.tRC);
  b.add("tRC", {activate}, {refresh_all, self_refresh_enter}, Scope::rank, c.tRC);
  b.add("tRRD", {activate}, {activate, refresh_bank}, Scope::rank, c.tRRD);
  if (groups) {
    b.add("tRRD_L", {activate}, {activate}, Scope::group, c.tRRD_L);
  }
  b.add("tRPpb", {precharge}, {activate, refresh_bank}, Scope::bank, c.tRPpb);
  b.add("tRPpb", {precharge}, {refresh_all, self_refresh_enter}, Scope::rank, c.tRPpb);
  b.add("tRPab", {precharge_all}, {activate, refresh_bank, refresh_all, self_refresh_enter}, Scope::rank,
        c.tRPab);
  b.add("tPPD", kPrecharges, kPrecharges, Scope::rank, c.tPPD);
}

void add_precharges(Builder& b, const Counts& c, const Family& f) {
  const Builder::Name read_name("tRTP", f.precharge_formula);
  const Builder::Name write_name("tWR", "WL + BL/2 + tWR");
  b.add(read_name, {read}, {precharge}, Scope::bank, f.read_to_precharge);
  b.add(read_name, kReads, {precharge_all}, Scope::rank, f.read_to_precharge);
  b.add(write_name, {write, masked_write}, {precharge}, Scope::bank, f.write_to_precharge);
  b.add(write_name, kWrites, {precharge_all}, Scope::rank, f.write_to_precharge);
  // The precharge that RDA brings with it must wait for the write as any other (DRAMSys 5.1: tWRPRE -
  // tRDPRE).
  b.add({"tWR", "write to precharge less read to precharge"}, {write, masked_write}, {read_auto_precharge},
        Scope::bank, f.write_to_precharge - f.read_to_precharge);

  const Builder::Name read_auto("tRPpb", "RD to precharge + tRPpb");
  const Builder::Name write_auto("tRPpb", "WR to precharge + tRPpb");
  const Cycle read_closed = f.read_to_precharge + c.tRPpb;
  const Cycle write_closed = f.write_to_precharge + c.tRPpb;
  b.add(read_auto, {read_auto_precharge}, {activate, refresh_bank}, Scope::bank, read_closed);
  b.add(read_auto, {read_auto_precharge}, {refresh_all}, Scope::rank, read_closed);
  b.add(write_auto, {write_auto_precharge}, {activate, refresh_bank}, Scope::bank, write_closed);
  b.add(write_auto, {write_auto_precharge}, {refresh_all, self_refresh_enter}, Scope::rank, write_closed);
  // Self-refresh waits for the precharge, which takes longer than the data or not.
  if (f.read_to_down > read_closed) {
    b.add({"tRDPDEN", "RL + BL/2"}, kReads, {self_refresh_enter}, Scope::rank, f.read_to_down);
  } else {
    b.add(read_auto, {read_auto_precharge}, {self_refresh_enter}, Scope::rank, read_closed);
  }
}

void add_columns(Builder& b, const Counts& c, const Family& f, bool groups) {
  b.add("tCCD", kReads, kReads, Scope::rank, c.tCCD);
  b.add("tCCD", kWrites, kWrites, Scope::rank, c.tCCD);
  b.add("tCCDMW", {write, masked_write}, {masked_write}, Scope::bank, c.tCCDMW);
  b.add({"tRTW", f.turn_formula}, kReads, kWrites, Scope::rank, f.read_to_write);
  b.add({"tWTR", "WL + BL/2 + tWTR"}, kWrites, kReads, Scope::rank, f.write_to_read);
  if (groups) {
    b.add("tCCD_L", kReads, kReads, Scope::group, c.tCCD_L);
    b.add("tCCD_L_WR", kWrites, kWrites, Scope::group, c.tCCD_L_WR);
    b.add({"tWTR_L", "WL + BL/n_max + tWTR_L"}, kWrites, kReads, Scope::group, f.write_to_read_group);
  }
}

void add_refreshes(Builder& b, const Counts& c) {
  b.add("tRFCab", {refresh_all}, {activate, refresh_bank, refresh_all, self_refresh_enter}, Scope::rank,
        c.tRFCab);
  b.add("tRFCpb", {refresh_bank}, {activate}, Scope::bank, c.tRFCpb);
  b.add("tRFCpb", {refresh_bank}, {refresh_all, precharge_all, self_refresh_enter}, Scope::rank, c.tRFCpb);
  b.add("tpbR2pbR", {refresh_bank}, {refresh_bank}, Scope::rank, c.tpbR2pbR);
  if (c.tRFCpb > c.tpbR2pbR) {
    b.add("tRFCpb", {refresh_bank}, {refresh_bank}, Scope::bank, c.tRFCpb);
  }
  b.add("tpbR2act", {refresh_bank}, {activate}, Scope::rank, c.tpbR2act);
}

void add_power(Builder& b, const Counts& c, const Family& f) {
  b.add("tCKE", {power_down_enter}, {power_down_exit}, Scope::rank, c.tCKE);
  b.add("tCKE", {power_down_exit}, {power_down_enter}, Scope::rank, c.tCKE);
  b.add("tXP", {power_down_exit}, kAfterPowerDown, Scope::rank, c.tXP);
  b.add("tSR", {self_refresh_enter}, {self_refresh_exit}, Scope::rank, c.tSR);
  b.add("tXSR", {self_refresh_exit}, kAfterSelfRefresh, Scope::rank, c.tXSR);
  b.add({"tRDPDEN", "RL + BL/2"}, kReads, {power_down_enter}, Scope::rank, f.read_to_down);
  b.add({"tWRPDEN", "WL + BL/2 + tWR"}, kWrites, {power_down_enter}, Scope::rank, f.write_to_precharge);
}

/// JESD209-4: ACT, RD and WR are two commands of two clocks each. JESD79-5: the same three take two clocks.
/// JESD209-5: one clock each, but ACT is ACT-1 and ACT-2.
std::array<Cycle, kCommands> lengths_of(DramStandard standard) {
  std::array<Cycle, kCommands> lengths{};
  const bool lpddr4 = is_lpddr4(standard);
  lengths.fill(lpddr4 ? 2 : 1);
  const Cycle with_address = lpddr4 ? 4 : standard == DramStandard::ddr5 ? 2 : 1;
  lengths[static_cast<std::size_t>(activate)] = with_address;
  for (const Command column : kColumns) {
    lengths[static_cast<std::size_t>(column)] = with_address;
  }
  return lengths;
}

}  // namespace

RuleTable rule_table(const config::DramPartSpec& part, const Conditions& conditions) {
  const Clocks clocks(config::command_clock(part));
  const Counts counts = counts_of(part, clocks);
  Family family = family_of(part, counts);
  RuleTable table;
  table.burst = counts.burst;
  table.read_latency = counts.read;
  table.write_latency = counts.write;
  table.tRTRS = clocks(part.timing.tRTRS);
  if (!conditions.turnaround) {
    table.write_latency = counts.read;
    table.tRTRS = 0;
    family.read_to_write = family.write_to_read = family.write_to_read_group = counts.burst;
  }
  Builder builder;
  const bool groups = part.bank_groups > 1;
  add_rows(builder, counts, groups);
  add_precharges(builder, counts, family);
  add_columns(builder, counts, family, groups);
  add_refreshes(builder, counts);
  add_power(builder, counts, family);
  table.pairs = builder.take();
  table.has_bank_refresh = counts.tRFCpb > 0;
  if (!table.has_bank_refresh) {
    std::erase_if(table.pairs,
                  [](const PairRule& rule) { return rule.from == refresh_bank || rule.to == refresh_bank; });
  }
  table.tFAW = clocks(part.timing.tFAW);
  // JESD209-3 and -4: "activated (or refreshed, in the case of REFpb)"; DRAMSys 5.1 counts so too.
  table.refresh_activates = part.standard == DramStandard::lpddr3 || is_lpddr4(part.standard);
  table.refresh_once_a_set = true;  // JESD209-3 to -5, JESD79-5
  table.refresh_sets = static_cast<std::size_t>(part.banks / part.banks_per_refresh);
  table.tREFI = refresh_interval(part, conditions, clocks);
  table.postponed = postponed_refreshes(part, conditions);
  table.length = lengths_of(part.standard);
  table.split_activate = is_lpddr5(part.standard);
  return table;
}

}  // namespace kvsim::model::legality
