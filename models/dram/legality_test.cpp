// SPDX-License-Identifier: Apache-2.0
// Does the checker see each kind of violation, and only those?
#include "models/dram/legality.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using enum Command;

/// Two commands at their smallest distance, after what has to come before them.
struct Pair {
  std::string rule;
  std::vector<IssuedCommand> before;
  IssuedCommand first;
  IssuedCommand second;  ///< its clock is the distance
};

ClockTiming timing() {
  return clock_timing(testing::lpddr5_device().dram, true);
}

/// LPDDR5, because there a bank group matters: banks 0 to 3 are a group, 4 is in another, 16 in the other
/// rank.
std::vector<Pair> pairs() {
  const ClockTiming t = timing();
  const IssuedCommand act{0, activate, 0, 7};
  const IssuedCommand rd{0, read, 0, 7};
  const IssuedCommand wr{0, write, 0, 7};
  const std::vector<IssuedCommand> open = {
      {0, activate, 0, 7}, {50, activate, 1, 7}, {100, activate, 4, 7}, {150, activate, 16, 7}};
  const Cycle gap = t.burst + t.rank_switch;
  return {
      {"tRCD", {}, act, {t.tRCD, read, 0, 7}},
      {"tRCD", {}, act, {t.tRCD, write, 0, 7}},
      {"tRAS", {}, act, {t.tRAS, precharge, 0, 0}},
      {"tRAS", {}, {0, activate, 3, 7}, {t.tRAS, precharge_all, 0, 0}},
      {"tRRD", {}, act, {t.tRRD, activate, 9, 1}},
      {"tRPpb", open, {0, precharge, 0, 0}, {t.tRPpb, activate, 0, 8}},
      {"tRPpb", open, {0, precharge, 0, 0}, {t.tRPpb, refresh_bank, 0, 0}},
      {"tRPpb", {act}, {0, precharge, 0, 0}, {t.tRPpb, refresh_all, 0, 0}},
      {"tRPab", open, {0, precharge_all, 0, 0}, {t.tRPab, activate, 4, 8}},
      {"tRPab", open, {0, precharge_all, 0, 0}, {t.tRPab, refresh_bank, 2, 0}},
      {"tRPab", open, {0, precharge_all, 0, 0}, {t.tRPab, refresh_all, 0, 0}},
      {"read to precharge", open, rd, {t.read_to_precharge, precharge, 0, 0}},
      {"read to precharge", open, rd, {t.read_to_precharge, precharge_all, 0, 0}},
      {"write to precharge", open, wr, {t.write_to_precharge, precharge, 0, 0}},
      {"write to precharge", open, wr, {t.write_to_precharge, precharge_all, 0, 0}},
      {"tCCD", open, rd, {t.tCCD, read, 4, 7}},
      {"tCCD", open, wr, {t.tCCD, write, 4, 7}},
      {"tCCD_L", open, rd, {t.tCCD_L, read, 1, 7}},
      {"tCCD_L", open, wr, {t.tCCD_L, write, 1, 7}},
      {"read to write", open, rd, {t.read_to_write, write, 4, 7}},
      {"write to read", open, wr, {t.write_to_read, read, 4, 7}},
      {"rank switch", open, rd, {gap, read, 16, 7}},
      {"rank switch", open, wr, {gap, write, 16, 7}},
      {"rank switch", open, rd, {t.read_latency + gap - t.write_latency, write, 16, 7}},
      {"tRFCab", {}, {0, refresh_all, 0, 0}, {t.tRFCab, activate, 5, 1}},
      {"tRFCab", {}, {0, refresh_all, 0, 0}, {t.tRFCab, refresh_all, 0, 0}},
      {"tRFCpb", {}, {0, refresh_bank, 5, 0}, {t.tRFCpb, activate, 5, 1}},
      {"tRFCpb", {}, {0, refresh_bank, 5, 0}, {t.tRFCpb, refresh_bank, 6, 0}},
  };
}

/// The pair's log with the second command moved by `early` cycles.
std::vector<IssuedCommand> log_of(const Pair& pair, Cycle early) {
  constexpr Cycle kStart = 1000;
  std::vector<IssuedCommand> log = pair.before;
  IssuedCommand first = pair.first;
  IssuedCommand second = pair.second;
  first.clock += kStart;
  second.clock += kStart - early;
  log.push_back(first);
  log.push_back(second);
  return log;
}

std::vector<std::string> rules(const std::vector<IssuedCommand>& log, const config::DeviceSpec& device) {
  std::vector<std::string> names;
  for (const Violation& violation : violations(log, device)) {
    names.push_back(violation.rule);
  }
  return names;
}

TEST(Legality, EachPairIsLegalAtItsDistanceAndIllegalOneCycleEarlier) {
  for (const Pair& pair : pairs()) {
    SCOPED_TRACE(pair.rule + " " + std::to_string(static_cast<int>(pair.second.command)));
    EXPECT_THAT(rules(log_of(pair, 0), testing::lpddr5_device()), ::testing::IsEmpty());
    const std::vector<IssuedCommand> early = log_of(pair, 1);
    const std::vector<Violation> found = violations(early, testing::lpddr5_device());
    EXPECT_THAT(found, ::testing::Contains(Violation{early.size() - 1, pair.rule}));
  }
}

// The read's latency is the longer: it may be asked for before the other rank's write if its data come
// behind.
TEST(Legality, DataOfTwoRanksKeepTheirDistanceWhateverTheCommandsOrder) {
  const config::DeviceSpec device = testing::lpddr5_device();
  const ClockTiming t = timing();
  const Cycle ahead = t.read_latency - t.write_latency - t.burst - t.rank_switch;
  ASSERT_GT(ahead, 0);
  std::vector<IssuedCommand> log = {
      {0, activate, 0, 7}, {50, activate, 16, 7}, {1000, read, 16, 7}, {1000 + ahead, write, 0, 7}};
  EXPECT_THAT(rules(log, device), ::testing::IsEmpty());
  log.back().clock += 1;
  EXPECT_THAT(rules(log, device), ::testing::ElementsAre("rank switch"));
}

TEST(Legality, FourActivatesFillAWindow) {
  config::DeviceSpec device = testing::device();
  device.dram.timing.tRRD = {4_ns, 0};
  const ClockTiming t = clock_timing(device.dram, true);
  std::vector<IssuedCommand> log;
  for (std::uint16_t bank = 0; bank < 4; ++bank) {
    log.push_back({bank * t.tRRD, activate, bank, 0});
  }
  log.push_back({t.tFAW, activate, 4, 0});
  EXPECT_THAT(rules(log, device), ::testing::IsEmpty());
  log.back().clock -= 1;
  EXPECT_THAT(rules(log, device), ::testing::ElementsAre("tFAW"));
  log.back().bank = 12;  // the other rank has a window of its own
  EXPECT_THAT(rules(log, device), ::testing::IsEmpty());
}

TEST(Legality, DataMayNotOverlap) {
  config::DeviceSpec device = testing::device();
  device.dram.timing.tCCD = {Picoseconds(), 8};
  const std::vector<IssuedCommand> log = {
      {0, activate, 0, 1}, {50, activate, 8, 1}, {200, read, 0, 1}, {207, read, 8, 1}};
  EXPECT_THAT(rules(log, device), ::testing::ElementsAre("data bus"));
}

TEST(Legality, BanksHaveStates) {
  const config::DeviceSpec device = testing::device();
  EXPECT_THAT(rules({{0, activate, 0, 1}, {500, activate, 0, 2}}, device),
              ::testing::ElementsAre("activate of an open bank"));
  EXPECT_THAT(rules({{0, read, 0, 1}}, device), ::testing::ElementsAre("column of a row that is not open"));
  EXPECT_THAT(rules({{0, activate, 0, 1}, {500, write, 0, 2}}, device),
              ::testing::ElementsAre("column of a row that is not open"));
  EXPECT_THAT(rules({{0, activate, 0, 1}, {500, precharge, 0, 0}, {600, read, 0, 1}}, device),
              ::testing::ElementsAre("column of a row that is not open"));
  EXPECT_THAT(rules({{0, activate, 0, 1}, {500, refresh_bank, 0, 0}}, device),
              ::testing::ElementsAre("refresh of an open bank"));
  EXPECT_THAT(rules({{0, activate, 9, 1}, {500, refresh_all, 8, 0}}, device),
              ::testing::ElementsAre("refresh of an open bank"));
  EXPECT_THAT(rules({{0, activate, 9, 1}, {500, refresh_all, 0, 0}}, device), ::testing::IsEmpty());
}

TEST(Legality, NineIntervalsAreTheLongestWithoutRefresh) {
  config::DeviceSpec device = testing::device();
  device.controller.refresh = config::RefreshMode::all_bank;
  device.controller.ranks = 1;
  const Cycle tREFI = clock_timing(device.dram, true).tREFI;
  EXPECT_THAT(rules({{9 * tREFI, refresh_all, 0, 0}}, device), ::testing::IsEmpty());
  EXPECT_THAT(rules({{9 * tREFI + 1, refresh_all, 0, 0}}, device), ::testing::Contains("tREFI"));
  EXPECT_THAT(rules({{9 * tREFI, refresh_all, 0, 0}, {18 * tREFI + 1, activate, 0, 0}}, device),
              ::testing::Contains("tREFI"));
}

TEST(Legality, CommandsDoNotOverlapOnTheirBus) {
  const config::DeviceSpec device = testing::device();
  const std::vector<IssuedCommand> log = {{0, activate, 0, 1}, {4, activate, 8, 1}, {6, precharge, 2, 0}};
  EXPECT_TRUE(bus_violations(log, device).empty());
  EXPECT_EQ(bus_violations({{0, activate, 0, 1}, {3, activate, 8, 1}}, device).size(), 1U);
  EXPECT_EQ(bus_violations({{0, activate, 0, 1}, {1, precharge, 8, 0}}, device).size(), 1U);
}

}  // namespace
}  // namespace kvsim::model
