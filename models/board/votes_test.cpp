// SPDX-License-Identifier: Apache-2.0
// Boards of the catalogue whose memory goes by votes, and over-current: from the device file to clocks.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "configs/spec/resolve.h"
#include "models/board/board.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;

constexpr Picoseconds kSecond = 1000_ms;

config::DeviceSpec changed(const std::string& device, const std::string& changes) {
  const auto path = std::filesystem::path(testing::TempDir()) / "votes_test_device.yaml";
  std::ofstream(path) << "extends: " << device << "\n" << changes;
  return config::load_device(path.string());
}

double megahertz(const Board& board, std::size_t domain) {
  return board.domain(domain).clock().as_double() / 1e6;
}

void pass(Board& board, const Activity& activity, Picoseconds time) {
  for (const Picoseconds end = board.now() + time; board.now() < end;) {
    board.advance(activity, end - board.now());
  }
}

// --- Jetson Orin Nano: cpu, gpu, emc
// -----------------------------------------------------------------------------------------------

constexpr std::size_t kCpu = 0, kGpu = 1, kEmc = 2;

Activity orin(double cpu, double gpu, Watts dram) {
  return {.domains = {{cpu, cpu, 1}, {gpu, gpu, 1}, {}},
          .channel_load = std::vector<double>(8, 0.5),
          .dram = dram,
          .storage = 0};
}

TEST(OrinVotes, TheGpusClockKeepsTheMemorysUp) {
  Board board(config::load_device("orin_nano_8gb"));
  pass(board, orin(0, 1, Watts(1)), kSecond);
  EXPECT_EQ(megahertz(board, kGpu), 1020);
  EXPECT_EQ(megahertz(board, kEmc), 3199);
}

/// As tegra234.dtsi has them: 0.816 GB/s of a channel, 4 B a clock, below 1344 MHz, 1.632 from there on. The
/// GPU asks for nothing.
TEST(OrinVotes, TheCpusAreThoseOfItsOperatingPoint) {
  struct Case {
    const char* cpu;
    double emc;
  };
  for (const Case& each :
       {Case{"729.6 MHz", 204}, {"1113.6 MHz", 204}, {"1344 MHz", 665.6}, {"1728 MHz", 665.6}}) {
    Board board(
        changed("orin_nano_8gb", std::string("clocks:\n  domains:\n    0: {governor: userspace, pinned: ") +
                                     each.cpu + "}\n    1: {governor: powersave}\n"));
    pass(board, orin(1, 1, Watts(1)), 100_ms);
    EXPECT_EQ(megahertz(board, kEmc), each.emc) << each.cpu;
  }
}

TEST(OrinOverCurrent, DoesNotFireAtThePowerOfTheSoak) {
  Board board(config::load_device("orin_nano_8gb"));
  pass(board, orin(1, 1, Watts(3.6)), kSecond);
  EXPECT_NEAR(board.power().count(), 20, 1.5);  // tensor, DRAM, FP32 and six workers: 20.0 W
  EXPECT_EQ(board.state().over_current_alarms, 0U);
}

TEST(OrinOverCurrent, SlowsAColdBoardDownAndTheMemoryFollows) {
  Board board(changed("orin_nano_8gb",
                      "power:\n  limits: [{name: oc, limit: 12 W, window: 10 ms, domains: [cpu, gpu]}]\n"));
  pass(board, orin(1, 1, Watts(1)), kSecond);
  EXPECT_GT(board.state().over_current_alarms, 0U);
  EXPECT_EQ(board.domain(kGpu).limit(), ClockLimit::over_current);
  EXPECT_EQ(board.domain(kCpu).limit(), ClockLimit::over_current);
  const Joules before = board.energy();
  pass(board, orin(1, 1, Watts(1)), kSecond);
  EXPECT_LE((board.energy() - before).count(), 12.5) << "the mean of a second; steps up are tried again";
  EXPECT_LT(megahertz(board, kGpu), 1020);
  EXPECT_LE(megahertz(board, kEmc), 2133);
  EXPECT_LT(board.state().sensors.front().temperature.count(), 50);
  // Less to do: back to the top, memory too.
  pass(board, orin(0, 0, Watts(0.2)), kSecond);
  EXPECT_EQ(megahertz(board, kGpu), 1020);
  EXPECT_EQ(megahertz(board, kEmc), 3199);
}

// --- OnePlus 15R: policy0, ddr
// ------------------------------------------------------------------------------------------------------

constexpr std::size_t kDdr = 1;

/// `bandwidth` of each channel, or all that it has at its clock.
Activity phone(const Board& board, double busy, double bandwidth) {
  const double load = std::min(1.0, bandwidth / (4 * board.domain(kDdr).clock().as_double()));
  return {.domains = {{busy, busy, 1}, {}},
          .channel_load = std::vector<double>(4, load),
          .dram = {},
          .storage = 0};
}

void pass_phone(Board& board, double busy, double bandwidth, Picoseconds time) {
  for (const Picoseconds end = board.now() + time; board.now() < end;) {
    board.advance(phone(board, busy, bandwidth), end - board.now());
  }
}

TEST(QualcommVotes, AnIdlePhoneHasTheVoteOfItsSlowestPoint) {
  Board board(config::load_device("oneplus_15r"));
  pass_phone(board, 0, 0, kSecond);
  EXPECT_EQ(megahertz(board, 0), 806.4);
  EXPECT_EQ(megahertz(board, kDdr), 521.5);  // the first at or above 451 MHz
}

TEST(QualcommVotes, TheCpusClockLiftsTheMemorysAtItsNextLook) {
  Board board(config::load_device("oneplus_15r"));
  pass_phone(board, 0, 0, kSecond);
  pass_phone(board, 1, 0, 40_ms);
  EXPECT_EQ(megahertz(board, 0), 2270);
  EXPECT_EQ(megahertz(board, kDdr), 4028.25);
}

/// The CPU is slow, another master moves 10 GB/s of each channel: 2500 MHz, and the next point above it.
TEST(QualcommVotes, TheMonitorHoldsWhatASampleNeedsAndLetsGoAfterSixteenCalmOnes) {
  Board board(config::load_device("oneplus_15r"));
  pass_phone(board, 1, 0, 100_ms);  // up by the CPU's vote
  pass_phone(board, 0, 10e9, 200_ms);
  EXPECT_EQ(megahertz(board, 0), 806.4);
  EXPECT_EQ(megahertz(board, kDdr), 2609.25);
  pass_phone(board, 0, 0, 60_ms);
  EXPECT_EQ(megahertz(board, kDdr), 2609.25);
  pass_phone(board, 0, 0, 20_ms);
  EXPECT_EQ(megahertz(board, kDdr), 521.5);
}

// --- RK3588: a76_0, a76_1, a55, npu, ddr
// -----------------------------------------------------------------------------------------------

/// Lesson E3: "at 70 C the memory clock halves". The cores' do.
TEST(Rk3588Heat, SlowsCoresDownAndLeavesTheMemorysClockAlone) {
  Board board(changed("rk3588", "thermal: {ambient: 70 C, case: bare}\n"));
  const Activity activity{.domains = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}, {}},
                          .channel_load = std::vector<double>(4, 0.8),
                          .dram = Watts(1),
                          .storage = 0};
  pass(board, activity, kSecond * 30);
  EXPECT_GT(board.state().sensors.front().temperature.count(), 75);
  EXPECT_NE(board.domain(0).limit(), ClockLimit::none);
  EXPECT_EQ(board.domain(4).limit(), ClockLimit::none);
  EXPECT_EQ(megahertz(board, 4), 2112);
}

}  // namespace
}  // namespace kvsim::model
