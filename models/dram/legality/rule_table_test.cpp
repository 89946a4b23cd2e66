// SPDX-License-Identifier: Apache-2.0
// Is every count of clocks what JEDEC's formula gives, worked out by hand?
#include "models/dram/legality/rule_table.h"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "models/dram/legality/test_parts.h"

namespace kvsim::model::legality {
namespace {

using namespace literals;
using config::DramStandard;
using enum Command;

RuleTable table_of(DramStandard standard) {
  return rule_table(test_part(standard), {});
}

/// The strictest spacing from `from` to `to` in exactly this scope; 0 if there is none.
Cycle spacing(const RuleTable& table, Command from, Command to, Scope scope) {
  Cycle clocks = 0;
  for (const PairRule& rule : table.pairs) {
    if (rule.from == from && rule.to == to && rule.scope == scope) {
      clocks = std::max(clocks, rule.clocks);
    }
  }
  return clocks;
}

// Timings in clocks, so that only the formulas are seen. RL + tDQSCK = 34 and WL + tDQSS = 15.
TEST(RuleTable, Lpddr4) {
  const RuleTable t = table_of(DramStandard::lpddr4);
  EXPECT_EQ(spacing(t, activate, read, Scope::bank), 29);
  EXPECT_EQ(spacing(t, activate, masked_write, Scope::bank), 29);
  EXPECT_EQ(spacing(t, activate, precharge, Scope::bank), 68);
  EXPECT_EQ(spacing(t, activate, precharge_all, Scope::rank), 68);
  EXPECT_EQ(spacing(t, activate, activate, Scope::bank), 97);
  EXPECT_EQ(spacing(t, activate, activate, Scope::rank), 16);
  EXPECT_EQ(spacing(t, activate, refresh_bank, Scope::rank), 16);
  EXPECT_EQ(spacing(t, precharge, activate, Scope::bank), 29);
  EXPECT_EQ(spacing(t, precharge, refresh_all, Scope::rank), 29);
  EXPECT_EQ(spacing(t, precharge_all, activate, Scope::rank), 34);
  EXPECT_EQ(spacing(t, precharge, precharge_all, Scope::rank), 4);
  EXPECT_EQ(spacing(t, read, precharge, Scope::bank), 8 + 12 - 8);
  EXPECT_EQ(spacing(t, write, precharge, Scope::bank), 14 + 1 + 8 + 29);
  EXPECT_EQ(spacing(t, read_auto_precharge, activate, Scope::bank), 12 + 29);
  EXPECT_EQ(spacing(t, write_auto_precharge, activate, Scope::bank), 52 + 29);
  EXPECT_EQ(spacing(t, write, read_auto_precharge, Scope::bank), 52 - 12);
  EXPECT_EQ(spacing(t, read, read, Scope::rank), 8);
  EXPECT_EQ(spacing(t, read, write, Scope::rank), 28 + 6 + 8 + 2 - 14);  // RL + tDQSCK + BL/2 + tWPRE - WL
  EXPECT_EQ(spacing(t, write, read, Scope::rank), 14 + 1 + 8 + 16);
  EXPECT_EQ(spacing(t, write, masked_write, Scope::bank), 32);
  EXPECT_EQ(spacing(t, masked_write, write, Scope::bank), 0);
  EXPECT_EQ(spacing(t, refresh_all, activate, Scope::rank), 448);
  EXPECT_EQ(spacing(t, refresh_bank, activate, Scope::bank), 224);
  EXPECT_EQ(spacing(t, refresh_bank, activate, Scope::rank), 16);       // tRRD, as tpbR2act is not given
  EXPECT_EQ(spacing(t, refresh_bank, refresh_bank, Scope::rank), 224);  // tRFCpb, as tpbR2pbR is not
  EXPECT_EQ(spacing(t, power_down_enter, power_down_exit, Scope::rank), 12);
  EXPECT_EQ(spacing(t, power_down_exit, read, Scope::rank), 13);
  EXPECT_EQ(spacing(t, power_down_exit, power_down_enter, Scope::rank), 12);
  EXPECT_EQ(spacing(t, self_refresh_enter, self_refresh_exit, Scope::rank), 24);
  EXPECT_EQ(spacing(t, self_refresh_exit, activate, Scope::rank), 460);
  EXPECT_EQ(spacing(t, read, power_down_enter, Scope::rank), 34 + 8);
  EXPECT_EQ(spacing(t, write, power_down_enter, Scope::rank), 52);
  EXPECT_EQ(spacing(t, read, self_refresh_enter, Scope::rank), 42);  // longer than 12 + tRPpb
  EXPECT_EQ(t.tFAW, 66);
  EXPECT_TRUE(t.refresh_activates);
  EXPECT_EQ(t.postponed, 8);
}

// 2112 MHz: 473.48 ps, so that nothing comes out even.
TEST(RuleTable, TimesAreRoundedUpToClocks) {
  const RuleTable t = table_of(DramStandard::lpddr4x);
  EXPECT_EQ(spacing(t, activate, read, Scope::bank), 39);       // 18 ns: 38.02
  EXPECT_EQ(spacing(t, activate, precharge, Scope::bank), 89);  // 42 ns: 88.70
  EXPECT_EQ(spacing(t, activate, activate, Scope::bank),
            127);                       // 60 ns: 126.72; rounded apart it would be 128
  EXPECT_DOUBLE_EQ(t.tREFI, 8245.248);  // 3904 ns
}

TEST(RuleTable, AnEvenNumberOfClocksIsNotRoundedUp) {
  config::DramPartSpec part = test_part(DramStandard::lpddr5);
  part.data_rate = Hertz(5'500'000'000);  // 1454.54... ps
  part.timing.tRCD = {16_ns, 0};          // 11 clocks
  EXPECT_EQ(spacing(rule_table(part, {}), activate, read, Scope::bank), 11);
  part.timing.tRCD = {Picoseconds(16'001), 0};
  EXPECT_EQ(spacing(rule_table(part, {}), activate, read, Scope::bank), 12);
}

TEST(RuleTable, Lpddr3) {  // 800 MHz
  const RuleTable t = table_of(DramStandard::lpddr3);
  EXPECT_EQ(spacing(t, activate, read, Scope::bank), 15);
  EXPECT_EQ(spacing(t, read, precharge, Scope::bank), 4 + 6 - 4);
  EXPECT_EQ(spacing(t, write, precharge, Scope::bank), 8 + 4 + 12);
  EXPECT_EQ(spacing(t, read, write, Scope::rank), 15 + 4 + 2 - 8);
  EXPECT_EQ(spacing(t, write, read, Scope::rank), 8 + 4 + 5);
  EXPECT_EQ(spacing(t, write, masked_write, Scope::bank), 0);
}

TEST(RuleTable, Lpddr5InBankGroupMode) {  // 800 MHz, BL/n_min 2, BL/n_max 4
  const RuleTable t = table_of(DramStandard::lpddr5);
  EXPECT_EQ(spacing(t, read, precharge, Scope::bank), 2 + 4);
  EXPECT_EQ(spacing(t, write, precharge, Scope::bank), 9 + 2 + 1 + 28);
  EXPECT_EQ(spacing(t, read, write, Scope::rank), 18 + 4 - 9);
  EXPECT_EQ(spacing(t, write, read, Scope::rank), 9 + 2 + 5);
  EXPECT_EQ(spacing(t, write, read, Scope::group), 9 + 4 + 10);
  EXPECT_EQ(spacing(t, read, read, Scope::rank), 2);
  EXPECT_EQ(spacing(t, read, read, Scope::group), 4);
  EXPECT_EQ(spacing(t, write, write, Scope::group), 5);
  EXPECT_EQ(spacing(t, activate, activate, Scope::group), 6);  // 7 ns: 5.6
  EXPECT_EQ(spacing(t, refresh_bank, refresh_bank, Scope::rank), 72);
  EXPECT_EQ(spacing(t, refresh_bank, refresh_bank, Scope::bank), 112);
  EXPECT_EQ(spacing(t, refresh_bank, activate, Scope::rank), 6);
  EXPECT_TRUE(t.split_activate);
  EXPECT_FALSE(t.refresh_activates);
}

TEST(RuleTable, Lpddr5XWithoutBankGroups) {  // bursts of 32: four clocks, and nothing is held longer
  const RuleTable t = table_of(DramStandard::lpddr5x);
  EXPECT_EQ(spacing(t, read, write, Scope::rank), 18 + 4 - 9);
  EXPECT_EQ(spacing(t, read, read, Scope::rank), 4);
  EXPECT_EQ(spacing(t, read, read, Scope::group), 0);
}

TEST(RuleTable, Ddr4) {
  const RuleTable t = table_of(DramStandard::ddr4);
  EXPECT_EQ(spacing(t, read, precharge, Scope::bank), 12);
  EXPECT_EQ(spacing(t, write, precharge, Scope::bank), 16 + 4 + 27);
  EXPECT_EQ(spacing(t, read, write, Scope::rank), 22 + 4 + 2 - 16);
  EXPECT_EQ(spacing(t, write, read, Scope::rank), 16 + 4 + 4);
  EXPECT_EQ(spacing(t, write, read, Scope::group), 16 + 4 + 12);
  EXPECT_EQ(spacing(t, precharge, precharge, Scope::rank), 0);
  EXPECT_FALSE(t.has_bank_refresh);
  EXPECT_EQ(spacing(t, refresh_all, refresh_bank, Scope::rank), 0);
}

TEST(RuleTable, Ddr5) {
  const RuleTable t = table_of(DramStandard::ddr5);
  EXPECT_EQ(spacing(t, read, write, Scope::rank), 40 + 8 + 4 - 38);
  EXPECT_EQ(spacing(t, write, write, Scope::rank), 8);
  EXPECT_EQ(spacing(t, write, write, Scope::group), 48);
  EXPECT_EQ(spacing(t, refresh_bank, activate, Scope::bank), 312);  // tRFCsb, 130 ns
  EXPECT_EQ(spacing(t, refresh_bank, activate, Scope::rank), 72);   // tREFSBRD, 30 ns
  EXPECT_EQ(t.refresh_sets, 4U);
}

// JESD79-5: same-bank refreshes are of fine granularity: twice as many, and twice as many may be owed.
TEST(RuleTable, Ddr5RefreshesSameBanksTwiceAsOften) {
  const config::DramPartSpec part = test_part(DramStandard::ddr5);
  const RuleTable all = rule_table(part, {.refresh = config::RefreshMode::all_bank});
  EXPECT_DOUBLE_EQ(all.tREFI, 9360);
  EXPECT_EQ(all.postponed, 4);
  const RuleTable same = rule_table(part, {.refresh = config::RefreshMode::per_bank});
  EXPECT_DOUBLE_EQ(same.tREFI, 4680);
  EXPECT_EQ(same.postponed, 8);
}

TEST(RuleTable, CommandsAreAsLongAsTheStandardSays) {
  const auto length = [](DramStandard standard, Command command) {
    return table_of(standard).length[static_cast<std::size_t>(command)];
  };
  for (const DramStandard lpddr4 : {DramStandard::lpddr4, DramStandard::lpddr4x}) {
    EXPECT_EQ(length(lpddr4, activate), 4);
    EXPECT_EQ(length(lpddr4, masked_write), 4);
    EXPECT_EQ(length(lpddr4, precharge), 2);
    EXPECT_EQ(length(lpddr4, refresh_bank), 2);
  }
  EXPECT_EQ(length(DramStandard::ddr5, read_auto_precharge), 2);
  EXPECT_EQ(length(DramStandard::ddr5, precharge_all), 1);
  for (const DramStandard one : {DramStandard::lpddr3, DramStandard::lpddr5, DramStandard::ddr4}) {
    EXPECT_EQ(length(one, activate), 1);
    EXPECT_EQ(length(one, write), 1);
  }
}

TEST(RuleTable, ConditionsChangeIt) {
  const config::DramPartSpec part = test_part(DramStandard::lpddr4);
  const RuleTable free_bus = rule_table(part, {.turnaround = false});
  EXPECT_EQ(spacing(free_bus, read, write, Scope::rank), 8);
  EXPECT_EQ(spacing(free_bus, write, read, Scope::rank), 8);
  EXPECT_EQ(free_bus.write_latency, free_bus.read_latency);
  EXPECT_EQ(spacing(free_bus, write, precharge, Scope::bank), 52);
  const RuleTable hot = rule_table(part, {.postponed = 3, .refresh_rate = 4});
  EXPECT_DOUBLE_EQ(hot.tREFI, 6246.0 / 4);
  EXPECT_EQ(hot.postponed, 3);
}

TEST(RuleTable, TimingsTooLongToCountAreRefused) {
  config::DramPartSpec part = test_part(DramStandard::lpddr4);
  part.timing.tXSR = {Picoseconds(INT64_MAX), 0};
  EXPECT_THROW(static_cast<void>(rule_table(part, {})), UserError);
}

}  // namespace
}  // namespace kvsim::model::legality
