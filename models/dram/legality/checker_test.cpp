// SPDX-License-Identifier: Apache-2.0
// Does the checker see each kind of error, say it clearly, and go on afterwards?
#include "models/dram/legality/checker.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/dram/legality/test_parts.h"

namespace kvsim::model::legality {
namespace {

using config::DramStandard;
using config::RefreshMode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using enum Command;

constexpr Conditions kTwoRanks{.ranks = 2, .refresh = RefreshMode::none};

/// Position of each error and what it is.
std::vector<std::pair<std::size_t, std::string>> errors(const std::vector<IssuedCommand>& log,
                                                        DramStandard standard = DramStandard::lpddr4,
                                                        const Conditions& conditions = kTwoRanks) {
  Checker checker(test_part(standard), conditions);
  std::vector<std::pair<std::size_t, std::string>> all;
  for (std::size_t i = 0; i < log.size(); ++i) {
    for (const Violation& violation : checker.check(log[i])) {
      all.emplace_back(i, std::string(violation.rule) + ": " + violation.text);
    }
  }
  return all;
}

IssuedCommand at(Cycle clock, Command command, std::uint16_t bank = 0, std::uint32_t row = 0) {
  return {clock, command, bank, row, 0};
}

TEST(Checker, SaysWhichRuleByHowMuchAndWhere) {
  EXPECT_THAT(errors({at(100, activate, 3, 7), at(127, read, 3)}),
              ElementsAre(Pair(1, "tRCD: RD after ACT to bank 3 of rank 0 after 27 clocks, tRCD is 29")));
  EXPECT_THAT(errors({at(100, activate, 20, 7), at(112, read, 20)}, DramStandard::lpddr5),
              ElementsAre(Pair(
                  1, "tRCD: RD after ACT to bank group 1 bank 0 of rank 1 after 12 clocks, tRCD is 15")));
  EXPECT_THAT(errors({at(100, activate, 8), at(200, write, 8), at(238, read, 8)}),
              ElementsAre(Pair(2, "tWTR: RD after WR to rank 1 after 38 clocks, WL + BL/2 + tWTR is 39")));
}

TEST(Checker, TellsOnlyTheStrictestOfTwoRulesBetweenTwoCommands) {
  // tCCD, tCCD_L and the data bus all forbid it.
  EXPECT_THAT(errors({at(100, activate, 0, 1), at(200, read, 0), at(201, read, 0)}, DramStandard::lpddr5),
              ElementsAre(Pair(2, ::testing::StartsWith("tCCD_L:"))));
}

TEST(Checker, TellsEveryEarlierCommandThatIsTooNear) {
  EXPECT_THAT(
      errors({at(100, activate, 0, 1), at(110, activate, 1, 1), at(137, read, 1), at(138, read, 0)}),
      ElementsAre(Pair(1, ::testing::StartsWith("tRRD:")), Pair(2, ::testing::StartsWith("tRCD:")),
                  Pair(3, ::testing::StartsWith("tCCD:")),
                  Pair(3, ::testing::StartsWith("command bus: RD needs the command bus from clock 135 on"))));
}

// JESD209-5: REFpb to bank n takes n + 8 too, whichever of them it names.
TEST(Checker, ARefreshOfLpddr5TakesTwoBanks) {
  const auto lpddr5 = DramStandard::lpddr5;
  EXPECT_THAT(errors({at(100, activate, 9, 1), at(500, refresh_bank, 1)}, lpddr5),
              ElementsAre(Pair(1, "row state: REFpb to bank group 2 bank 1 of rank 0, where row 1 is open")));
  EXPECT_THAT(errors({at(100, activate, 1, 1), at(500, refresh_bank, 9)}, lpddr5),
              ElementsAre(Pair(1, ::testing::StartsWith("row state: REFpb"))));
  EXPECT_THAT(errors({at(500, refresh_bank, 1), at(611, activate, 9, 1)}, lpddr5),
              ElementsAre(Pair(1, ::testing::StartsWith("tRFCpb: ACT after REFpb to bank group 2 bank 1"))));
  EXPECT_THAT(errors({at(500, refresh_bank, 1), at(612, activate, 9, 1)}, lpddr5), IsEmpty());
  EXPECT_THAT(errors({at(500, refresh_bank, 1), at(505, activate, 8, 1)}, lpddr5),
              ElementsAre(Pair(1, ::testing::StartsWith("tpbR2act"))));
  EXPECT_THAT(errors({at(100, activate, 9, 1), at(200, precharge, 9), at(214, refresh_bank, 1)}, lpddr5),
              ElementsAre(Pair(2, ::testing::StartsWith("tRPpb: REFpb after PRE to bank group 2 bank 1"))));
  EXPECT_THAT(errors({at(1000, refresh_bank, 1), at(2000, refresh_bank, 9)}, lpddr5),
              ElementsAre(Pair(1, ::testing::StartsWith("REFpb set"))));
}

// JESD79-5: REFsb takes the same bank of every group.
TEST(Checker, ARefreshOfDdr5TakesABankOfEveryGroup) {
  const auto ddr5 = DramStandard::ddr5;
  for (const std::uint16_t bank : {1, 5, 29}) {
    EXPECT_THAT(errors({at(100, activate, bank, 1), at(900, refresh_bank, 1)}, ddr5),
                ElementsAre(Pair(1, ::testing::StartsWith("row state: REFpb"))));
    EXPECT_THAT(errors({at(500, refresh_bank, 1), at(811, activate, bank, 1)}, ddr5),
                ElementsAre(Pair(1, ::testing::StartsWith("tRFCpb"))));
    EXPECT_THAT(errors({at(500, refresh_bank, 1), at(812, activate, bank, 1)}, ddr5), IsEmpty());
  }
  EXPECT_THAT(errors({at(500, refresh_bank, 1), at(571, activate, 2, 1)}, ddr5),
              ElementsAre(Pair(1, ::testing::StartsWith("tpbR2act"))));
  EXPECT_THAT(errors({at(500, refresh_bank, 1), at(572, activate, 2, 1)}, ddr5), IsEmpty());
  EXPECT_THAT(errors({at(1000, refresh_bank, 1), at(2000, refresh_bank, 29)}, ddr5),
              ElementsAre(Pair(1, ::testing::StartsWith("REFpb set"))));
}

// Four sets of DDR5's banks in turn, one of them left out: late after nine halves of tREFI, 4680 clocks.
TEST(Checker, ASetOfBanksThatIsLeftOutIsLate) {
  const Conditions same{.ranks = 1, .refresh = RefreshMode::per_bank};
  std::vector<IssuedCommand> log;
  for (Cycle i = 0; i < 40; ++i) {
    const auto bank = static_cast<std::uint16_t>(i % 4);
    if (bank != 2) {
      log.push_back(at(1170 * (i + 1), refresh_bank, bank));
    }
  }
  std::vector<std::string> late;
  for (const auto& [position, text] : errors(log, DramStandard::ddr5, same)) {
    if (text.starts_with("tREFI")) {
      late.push_back(text);
    }
  }
  EXPECT_THAT(late,
              ElementsAre("tREFI: bank group 0 bank 2 is owed more than 8 refreshes of 4680.00 clocks each"));
}

TEST(Checker, RowsHaveToBeOpenAndTheRightOnes) {
  EXPECT_THAT(errors({at(100, activate, 0, 1), at(500, activate, 0, 2)}),
              ElementsAre(Pair(1, "row state: ACT to bank 0 of rank 0, where row 1 is open")));
  EXPECT_THAT(errors({at(100, read, 9)}),
              ElementsAre(Pair(0, "row state: RD to bank 1 of rank 1, where no row is open")));
  EXPECT_THAT(errors({at(100, activate, 0, 1), at(500, precharge, 0), at(600, masked_write, 0)}),
              ElementsAre(Pair(2, ::testing::StartsWith("row state: MWR"))));
  EXPECT_THAT(errors({at(100, activate, 0, 1), at(500, read_auto_precharge, 0), at(600, read, 0)}),
              ElementsAre(Pair(2, ::testing::StartsWith("row state: RD"))));
  EXPECT_THAT(errors({at(100, activate, 2, 1), at(500, precharge_all), at(600, write, 2)}),
              ElementsAre(Pair(2, ::testing::StartsWith("row state: WR"))));
  EXPECT_THAT(errors({at(100, precharge, 0), at(200, precharge_all, 0)}), IsEmpty());
}

TEST(Checker, AColumnForAnotherRowIsFoundWhenItsRowIsKnown) {
  Checker checker(test_part(DramStandard::lpddr4), kTwoRanks);
  EXPECT_THAT(checker.check(at(100, activate, 0, 7)), IsEmpty());
  EXPECT_THAT(checker.check(at(200, read), 7), IsEmpty());
  const auto found = checker.check(at(300, read), 8);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text, "RD to row 8 of bank 0 of rank 0, where row 7 is open");
}

TEST(Checker, RefreshesNeedClosedBanks) {
  EXPECT_THAT(errors({at(100, activate, 9, 1), at(500, refresh_all, 8)}),
              ElementsAre(Pair(1, "row state: REFab to rank 1, where 1 banks are open")));
  EXPECT_THAT(errors({at(100, activate, 9, 1), at(500, refresh_all, 0)}), IsEmpty());
  EXPECT_THAT(errors({at(100, activate, 9, 1), at(500, refresh_bank, 9)}),
              ElementsAre(Pair(1, ::testing::StartsWith("row state: REFpb"))));
  EXPECT_THAT(errors({at(100, activate, 9, 1), at(500, refresh_bank, 10)}), IsEmpty());
  EXPECT_THAT(errors({at(100, activate, 9, 1), at(500, self_refresh_enter, 8)}),
              ElementsAre(Pair(1, ::testing::StartsWith("row state: SRE"))));
  EXPECT_THAT(errors({at(100, refresh_bank, 0)}, DramStandard::ddr4),
              ElementsAre(Pair(0, ::testing::StartsWith("REFpb: "))));
}

TEST(Checker, ABankIsRefreshedAgainOnlyAfterAllOthers) {
  std::vector<IssuedCommand> log;
  for (std::uint16_t i = 0; i < 8; ++i) {
    log.push_back(at(1000 * (i + 1), refresh_bank, static_cast<std::uint16_t>((i * 3) % 8)));
  }
  log.push_back(at(9000, refresh_bank, 5));
  EXPECT_THAT(errors(log), IsEmpty());
  log[4].bank = 3;
  EXPECT_THAT(errors(log),
              ElementsAre(Pair(4, "REFpb set: REFpb to bank 3 of rank 0 again before all other banks"),
                          Pair(8, ::testing::_)));
}

TEST(Checker, ARankThatIsDownTakesNothingButItsExit) {
  const std::vector<IssuedCommand> down = {at(100, power_down_enter, 0)};
  for (const Command command : {activate, precharge, precharge_all, refresh_all, refresh_bank,
                                power_down_enter, self_refresh_enter, self_refresh_exit}) {
    EXPECT_THAT(errors({at(100, power_down_enter), at(500, command, 0, 1)}),
                ::testing::Contains(Pair(1, ::testing::HasSubstr("to rank 0, which is in power-down"))));
    EXPECT_THAT(errors({at(100, power_down_enter, 8), at(500, command, 0, 1)}),
                ::testing::Not(::testing::Contains(Pair(1, ::testing::HasSubstr("which is in power-down")))));
  }
  for (const Command command : {activate, precharge, refresh_all, power_down_enter, power_down_exit}) {
    EXPECT_THAT(errors({at(100, self_refresh_enter), at(900, command, 0, 1)}),
                ::testing::Contains(Pair(1, ::testing::HasSubstr("to rank 0, which is in self-refresh"))));
  }
  EXPECT_THAT(errors({at(100, power_down_exit)}),
              ElementsAre(Pair(0, "power state: PDX to rank 0, which is not in power-down or self-refresh")));
  EXPECT_THAT(errors({at(100, self_refresh_exit)}),
              ElementsAre(Pair(0, ::testing::StartsWith("power state"))));
  EXPECT_THAT(errors({at(100, power_down_enter), at(500, power_down_exit), at(600, activate)}), IsEmpty());
}

TEST(Checker, ARefreshComesBetweenTwoStaysInSelfRefresh) {
  std::vector<IssuedCommand> log = {at(100, self_refresh_enter), at(1000, self_refresh_exit),
                                    at(2000, refresh_all), at(3000, self_refresh_enter)};
  EXPECT_THAT(errors(log), IsEmpty());
  log.erase(log.begin() + 2);
  EXPECT_THAT(errors(log), ElementsAre(Pair(2, ::testing::StartsWith("refresh before SRE"))));
}

TEST(Checker, FourActivatesFillAWindowAndLpddr4CountsRefreshes) {
  for (const Command third : {activate, refresh_bank}) {
    std::vector<IssuedCommand> log = {at(100, activate, 0), at(116, activate, 1), at(132, third, 2),
                                      at(148, activate, 3), at(166, activate, 4)};
    EXPECT_THAT(errors(log), IsEmpty());
    log.back().clock = 165;
    EXPECT_THAT(errors(log),
                ElementsAre(Pair(4, "tFAW: five activates of rank 0 within 65 clocks, tFAW is 66")));
    log.back().bank = 12;
    EXPECT_THAT(errors(log), IsEmpty());
  }
}

TEST(Checker, RefreshesMustNotBeMissing) {
  const Conditions one_rank{.ranks = 1, .refresh = RefreshMode::all_bank};
  EXPECT_THAT(errors({at(9 * 6246, refresh_all)}, DramStandard::lpddr4, one_rank), IsEmpty());
  EXPECT_THAT(errors({at(9 * 6246 + 1, refresh_all)}, DramStandard::lpddr4, one_rank),
              ElementsAre(Pair(0, "tREFI: bank 0 is owed more than 8 refreshes of 6246.00 clocks each")));
  Conditions hot = one_rank;
  hot.refresh_rate = 2;
  EXPECT_THAT(errors({at(9 * 3123 + 1, refresh_all)}, DramStandard::lpddr4, hot),
              ElementsAre(Pair(0, ::testing::StartsWith("tREFI: "))));
  EXPECT_THAT(errors({at(9 * 6246 + 1, refresh_all)}), IsEmpty()) << "unless none are asked for";
}

TEST(Checker, ClocksInDisorderAreToldOnce) {
  EXPECT_THAT(errors({at(1000, activate, 0, 1), at(999'000, read, 0), at(1100, read, 0), at(1108, read, 0),
                      at(1115, read, 0)}),
              ElementsAre(Pair(2, "order of clocks: clock 1100 after clock 999000"),
                          Pair(4, ::testing::StartsWith("tCCD:"))));
}

TEST(Checker, WhatThePartDoesNotHaveIsToldAndPassedOver) {
  EXPECT_THAT(errors({at(100, activate, 16)}),
              ElementsAre(Pair(0, "range: ACT to bank 16, which are 0 to 15")));
  EXPECT_THAT(errors({at(100, activate, 0, 65536)}),
              ElementsAre(Pair(0, "range: ACT to row 65536, which are 0 to 65535")));
  EXPECT_THAT(errors({at(100, activate, 0, 1), {200, read, 0, 0, 1024}}),
              ElementsAre(Pair(1, "range: RD to column 1024, which are 0 to 1023")));
  for (const Command column : {read, write, masked_write, read_auto_precharge, write_auto_precharge}) {
    EXPECT_THAT(errors({at(100, activate, 0, 1), {200, column, 0, 0, 16}}), IsEmpty());
    for (const std::uint32_t inside : {1U, 8U, 15U, 17U}) {
      EXPECT_THAT(errors({at(100, activate, 0, 1), {200, column, 0, 0, inside}}),
                  ElementsAre(Pair(1, ::testing::HasSubstr("which lies within a burst of 16 columns"))));
    }
  }
  EXPECT_THAT(errors({at(-1, activate)}),
              ElementsAre(Pair(0, ::testing::StartsWith("range: ACT to clock -1"))));
  EXPECT_THAT(errors({at(INT64_MAX, activate)}), ElementsAre(Pair(0, ::testing::StartsWith("range: "))));
}

}  // namespace
}  // namespace kvsim::model::legality
