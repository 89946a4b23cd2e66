// SPDX-License-Identifier: Apache-2.0
#include "models/train/row_state.h"

#include <gtest/gtest.h>

#include "configs/spec/resolve.h"
#include "models/testing/channel_bench.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using config::RefreshMode;

config::DeviceSpec device(RefreshMode refresh) {
  config::DeviceSpec device = testing::plain_device();
  device.controller.refresh = refresh;
  return device;
}

struct Fixture {
  explicit Fixture(RefreshMode refresh)
      : spec(device(refresh)),
        t(train_timing(spec.dram, spec.controller)),
        rows(t, spec.dram, spec.controller) {}
  config::DeviceSpec spec;
  TrainTiming t;
  ChannelRows rows;
};

TEST(ChannelRows, AClosedRowIsAMissAnotherOneAConflict) {
  Fixture f(RefreshMode::none);
  EXPECT_EQ(f.rows.open(0, 7, 1000).ready, 1000 + f.t.tRCD);
  EXPECT_EQ(f.rows.open(0, 7, 500'000).ready, 500'000) << "a hit";
  f.rows.use(0, 500'000, f.t.read_to_precharge);
  const ChannelRows::Opening conflict = f.rows.open(0, 8, 600'000);
  EXPECT_EQ(conflict.ready, 600'000 + f.t.tRPpb + f.t.tRCD);
  EXPECT_EQ(conflict.held_by, Owner::row);
  EXPECT_EQ(f.rows.misses(), 1);
  EXPECT_EQ(f.rows.conflicts(), 1);
}

TEST(ChannelRows, ARowStaysOpenForItsTime) {
  Fixture f(RefreshMode::none);
  f.rows.open(0, 1, 0);
  EXPECT_EQ(f.rows.open(0, 2, 0).ready, f.t.tRAS + f.t.tRPpb + f.t.tRCD);
  f.rows.use(0, 300'000, f.t.write_to_precharge);
  EXPECT_EQ(f.rows.open(0, 3, 0).ready, 300'000 + f.t.write_to_precharge + f.t.tRPpb + f.t.tRCD);
}

TEST(ChannelRows, ActivatesOfARankKeepTheirDistance) {
  Fixture f(RefreshMode::none);
  for (std::uint32_t bank = 0; bank < 8; ++bank) {
    EXPECT_EQ(f.rows.open(bank, 1, 0).ready, f.t.tRCD + bank * f.t.activate);
  }
}

TEST(ChannelRows, HitsGoBeforeTheRequestThatClosesTheirRow) {
  Fixture f(RefreshMode::none);
  f.rows.open(0, 1, 0);
  f.rows.use(0, 200'000, f.t.read_to_precharge);
  f.rows.open(0, 2, 100'000);  // waits for the use of row 1
  EXPECT_EQ(f.rows.open(0, 1, 150'000).ready, 150'000);
  EXPECT_GT(f.rows.open(0, 1, 500'000).ready, 500'000) << "closed by then";
}

TEST(ChannelRows, ARefreshClosesTheRowAndKeepsItsBank) {
  Fixture f(RefreshMode::per_bank);
  const std::int64_t due = f.t.tREFI / f.spec.dram.banks;  // of bank 0
  f.rows.open(0, 1, 0);
  const std::int64_t asked = due + 1;
  const ChannelRows::Opening again = f.rows.open(0, 1, asked);
  EXPECT_EQ(again.ready, due + f.t.tRPpb + f.t.tRFCpb + f.t.tRCD);
  EXPECT_EQ(again.held_by, Owner::refresh);
  EXPECT_EQ(f.rows.refreshes(), 1);
  EXPECT_EQ(f.rows.open(1, 1, asked).ready, asked + f.t.tRCD) << "other banks go on";
}

TEST(ChannelRows, ARefreshOfLpddr5KeepsTwoBanks) {
  config::DeviceSpec spec = testing::lpddr5_device();
  spec.controller.ranks = 1;
  const TrainTiming t = train_timing(spec.dram, spec.controller);
  ChannelRows rows(t, spec.dram, spec.controller);
  const std::int64_t due = t.tREFI / 8;  // of banks 0 and 8
  rows.open(0, 1, 0);
  rows.open(8, 1, 0);
  rows.open(9, 1, 0);
  EXPECT_EQ(rows.open(9, 1, due + 1).ready, due + 1) << "a hit";
  EXPECT_EQ(rows.open(8, 1, due + 1).ready, due + t.tRPpb + t.tRFCpb + t.tRCD);
  EXPECT_EQ(rows.open(0, 1, due + 1).held_by, Owner::refresh);
  EXPECT_EQ(rows.refreshes(), 1) << "of both";
}

TEST(ChannelRows, ARefreshOfDdr5ComesTwiceInEachInterval) {
  config::DeviceSpec spec = testing::plain_device();
  spec.dram = config::load_dram_part("ddr5_4800");
  const TrainTiming t = train_timing(spec.dram, spec.controller);
  ChannelRows rows(t, spec.dram, spec.controller);
  for (std::uint32_t bank = 0; bank < 32; ++bank) {
    rows.open(bank, 1, 100 * t.tREFI + 1);
  }
  EXPECT_NEAR(static_cast<double>(rows.refreshes()), 100 * 8, 4);
}

TEST(ChannelRows, AnAllBankRefreshKeepsTheRank) {
  Fixture f(RefreshMode::all_bank);
  f.rows.open(0, 1, 0);
  const std::int64_t due = f.t.tREFI;
  EXPECT_EQ(f.rows.open(5, 1, due + 1).ready, due + f.t.tRPab + f.t.tRFCab + f.t.tRCD);
}

TEST(ChannelRows, RefreshesOfAnIdleTimeAreMadeUpFor) {
  Fixture f(RefreshMode::all_bank);
  f.rows.open(0, 1, 100 * f.t.tREFI + f.t.tREFI / 2);
  EXPECT_EQ(f.rows.refreshes(), 100);
  EXPECT_TRUE(f.rows.refresh_comes_before(0, 101 * f.t.tREFI));
  EXPECT_FALSE(f.rows.refresh_comes_before(0, 101 * f.t.tREFI - 1));
}

// --- what costs energy
// -----------------------------------------------------------------------------------------------------------

std::int64_t active(const Fixture& f, std::int64_t until) {
  return f.rows.activity(Picoseconds(until)).background[0].count();
}

TEST(ChannelRows, ARankIsActiveUntilARefreshClosesItsLastRow) {
  for (const RefreshMode mode : {RefreshMode::all_bank, RefreshMode::per_bank}) {
    Fixture f(mode);
    const std::int64_t due = mode == RefreshMode::all_bank ? f.t.tREFI : 3 * (f.t.tREFI / 8);  // of bank 2
    f.rows.open(2, 1, 100'000);
    EXPECT_EQ(active(f, 200'000), 100'000);
    // Nobody asks for the bank for a hundred intervals, then somebody does.
    EXPECT_EQ(active(f, 100 * f.t.tREFI), due - 100'000);
    const DramActivity idle = f.rows.activity(Picoseconds(100 * f.t.tREFI - 100));
    EXPECT_EQ(idle.refreshes_all + idle.refreshes_bank, mode == RefreshMode::all_bank ? 99 : 8 * 100 - 1);
    const std::int64_t asked = 100 * f.t.tREFI + f.t.tREFI * 9 / 10;
    const std::int64_t opened = f.rows.open(2, 1, asked).ready - f.t.tRCD;
    EXPECT_EQ(active(f, opened + 1000), due - 100'000 + 1000);
  }
}

TEST(ChannelRows, ARankIsActiveFromItsFirstRowToItsLast) {
  for (const std::int64_t second : {500'000, 2'000'000}) {  // before bank 1 is refreshed, and after
    Fixture f(RefreshMode::per_bank);
    const std::int64_t interval = f.t.tREFI / 8;
    f.rows.open(1, 1, 1'000);
    f.rows.open(6, 1, second);
    const std::int64_t opened = f.rows.open(3, 1, 2 * f.t.tREFI).ready - f.t.tRCD;
    const std::int64_t gap = std::max<std::int64_t>(0, second - 2 * interval);
    EXPECT_EQ(active(f, opened + 5), 7 * interval - 1'000 - gap + 5);
  }
}

TEST(ChannelRows, AConflictLeavesItsRankClosedForTheRowsSake) {
  Fixture f(RefreshMode::none);
  f.rows.open(0, 1, 0);
  const std::int64_t opened = f.rows.open(0, 2, 100'000).ready - f.t.tRCD;
  EXPECT_EQ(opened, 100'000 + f.t.tRPpb);
  EXPECT_EQ(active(f, 500'000), 500'000 - f.t.tRPpb);
  f.rows.open(1, 1, 500'000);
  f.rows.open(0, 3, 600'000);
  EXPECT_EQ(active(f, 900'000), 900'000 - f.t.tRPpb) << "bank 1 stays open";
}

}  // namespace
}  // namespace kvsim::model
