// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/dram_rate.h"

#include <gtest/gtest.h>

#include "configs/spec/resolve.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

DataRate megatransfers(std::int64_t count) {
  return DataRate(Hertz(count * 1'000'000));
}

TEST(DramRate, ItsOwnRateChangesNothing) {
  const DramPartSpec part = load_dram_part("lpddr4x_4224_8gb");
  EXPECT_EQ(at_data_rate(part, part.data_rate), part);
}

TEST(DramRate, LatenciesInClocksFollowTheStandardsTable) {
  const DramPartSpec part = load_dram_part("lpddr4x_4224_8gb");  // RL 36 + tDQSCK 4, WL 18 + tDQSS 1
  const DramPartSpec slow = at_data_rate(part, megatransfers(1056));
  EXPECT_EQ(slow.timing.read_latency.clocks, 10 + 1);  // 4 clocks at 2112 MHz are one at 528
  EXPECT_EQ(slow.timing.write_latency.clocks, 6 + 1);
  const DramPartSpec middle = at_data_rate(part, megatransfers(3120));
  EXPECT_EQ(middle.timing.read_latency.clocks, 28 + 3);  // 4 x 1560 / 2112 = 2.95
  EXPECT_EQ(middle.timing.write_latency.clocks, 14 + 1);
  EXPECT_EQ(slow.timing.tRCD, part.timing.tRCD);  // 18 ns whatever the clock
}

TEST(DramRate, Lpddr5HasATableOfItsOwn) {
  const DramPartSpec part = load_dram_part("lpddr5_6400_16gb");
  const DramPartSpec slow = at_data_rate(part, megatransfers(3200));
  EXPECT_GE(slow.timing.read_latency.clocks, 9);
  EXPECT_LT(slow.timing.read_latency.clocks, part.timing.read_latency.clocks);
}

TEST(DramRate, OfOtherStandardsLatenciesStayInTime) {
  const DramPartSpec part = load_dram_part("ddr4_3200");
  const DramPartSpec slow = at_data_rate(part, megatransfers(1600));
  EXPECT_EQ(slow.timing.read_latency.clocks, (part.timing.read_latency.clocks + 1) / 2);
}

TEST(DramRate, ADevicesRequestsTravelLongerByTheMemorysClocks) {
  DeviceSpec device = load_device("rk3588");
  device.interconnect.memory_clocks = 64;
  const DeviceSpec slow = at_data_rate(device, megatransfers(1056));
  const Picoseconds added = slow.interconnect.request_latency - device.interconnect.request_latency;
  EXPECT_NEAR(added.as_double(), 64 * (1894 - 473.5), 64);
  EXPECT_EQ(peak_bandwidth(slow).count() * 4, peak_bandwidth(device).count());
}

}  // namespace
}  // namespace kvsim::config
