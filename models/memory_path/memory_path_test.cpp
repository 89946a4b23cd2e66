// SPDX-License-Identifier: Apache-2.0
// Are bandwidth and latency what the timings say, where a closed form says it?
#include "models/memory_path/memory_path.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/testing/channel_bench.h"
#include "models/testing/fake_memory.h"
#include "models/testing/stream_load.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using config::RefreshMode;
using testing::LoadResult;
using testing::plain_device;
using testing::run_loads;
using testing::run_of;
using testing::StreamLoad;
using testing::wide_window;
using testing::without_refresh;
using trace::Access;

/// Share of the peak that was reached.
double efficiency(const config::DeviceSpec& device, const LoadResult& result) {
  const Bytes moved = result.counters.read + result.counters.written;
  return ratio(moved / result.elapsed, peak_bandwidth(device));
}

/// Share of the time that all-bank refresh takes from a bus that would be busy: from the last read before to
/// the first one after, but for the last one's own data.
double all_bank_share(const config::DeviceSpec& device) {
  const ClockTiming t = clock_timing(device.dram, true);
  return static_cast<double>(t.read_to_precharge + t.tRPab + t.tRFCab + t.tRCD - t.tCCD) /
         static_cast<double>(t.tREFI);
}

// --- latency
// ----------------------------------------------------------------------------------------------------

TEST(MemoryPathLatency, UnloadedIsTheSumOfItsTerms) {
  const config::DeviceSpec device = without_refresh(testing::device());
  const ClockTiming t = clock_timing(device.dram, true);
  const CommandClock clock(command_clock(device.dram));
  for (const Granularity granularity : {Granularity::burst, Granularity::train}) {
    const LoadResult result = run_loads(device, granularity, {{wide_window(1), {run_of(0, 64_B)}}});
    const Cycle data_end =
        clock.cycle_at(device.interconnect.request_latency) + t.tRCD + t.read_latency + t.tCCD + t.burst;
    const Picoseconds expected = clock.time(data_end) + device.interconnect.response_latency;
    if (granularity == Granularity::burst) {
      EXPECT_EQ(result.elapsed, expected);
    } else {  // trains are not bound to clock edges
      EXPECT_NEAR(ratio(result.elapsed - expected, clock.time(1)), 0.0, 1.0);
    }
    // One of the buses was busy for these beats, which is so much of all buses' time.
    const Picoseconds beats = clock.time(data_end) - clock.time(data_end - t.tCCD - t.burst);
    EXPECT_NEAR(ratio(result.account.part(Owner::other_data), beats / device.controller.channels), 1.0, 0.01);
    const Picoseconds row = clock.time(t.tRCD);
    EXPECT_NEAR(ratio(result.account.part(Owner::row), row), 1.0, 0.03);
    EXPECT_LT(result.account.part(Owner::compute), 2_ps);  // what rounding leaves
    EXPECT_EQ(result.account.total(), result.elapsed);
  }
}

// An operator's last stores are still in the write queues when the next one begins: reads go first.
TEST(MemoryPathLatency, IsNotThatOfWritesNobodyWaitsFor) {
  const config::DeviceSpec device = without_refresh(testing::device());
  BurstPath path(device);
  EngineStream& stream = path.add_stream(wide_window(256));
  Segment writes = run_of(0, 64_B, Access::write);  // all on channel 0
  writes.rows = 40;
  writes.stride = 64_KiB;
  writes.posted = true;
  stream.begin(0_ns);
  stream.push(writes);
  ASSERT_EQ(path.run(), 0_ns);
  stream.finished().pop();
  ASSERT_EQ(path.run(), EngineStream::kNever);

  stream.begin(1_ns);
  stream.push(run_of(128, 64_B));  // on channel 1
  path.run();
  const ClockTiming t = clock_timing(device.dram, true);
  const CommandClock clock(command_clock(device.dram));
  const Cycle data_end =
      clock.cycle_at(1_ns + device.interconnect.request_latency) + t.tRCD + t.read_latency + t.tCCD + t.burst;
  EXPECT_EQ(stream.used_until(), clock.time(data_end) + device.interconnect.response_latency);
}

// Rows that stay open: a line is on its way for the latencies of the interconnect, RL and its own beats.
TEST(MemoryPathLatency, BoundsOneEngineWithNLinesOutstanding) {
  const config::DeviceSpec device = without_refresh(testing::device());
  const ClockTiming t = clock_timing(device.dram, true);
  const CommandClock clock(command_clock(device.dram));
  const Cycle latency =
      clock.cycle_at(device.interconnect.request_latency + device.interconnect.response_latency) +
      t.read_latency + t.tCCD + t.burst;
  const std::vector<Segment> again(200, run_of(0, 32_KiB));  // four rows of each channel
  for (const std::int64_t n : {1, 2, 4, 8, 16}) {
    const LoadResult result = run_loads(device, Granularity::burst, {{wide_window(n), again}});
    const Bytes lines(n * kLineBytes);
    EXPECT_NEAR(ratio(result.counters.read / result.elapsed, lines / clock.time(latency)), 1.0, 0.002) << n;
  }
}

// --- bandwidth
// --------------------------------------------------------------------------------------------------

/// 8 MiB in order, split over `engines` that together keep 256 lines in flight.
LoadResult split_stream(const config::DeviceSpec& device, Granularity granularity, std::int64_t engines) {
  std::vector<StreamLoad> loads;
  const Bytes share = 8_MiB / engines;
  for (std::int64_t i = 0; i < engines; ++i) {
    loads.push_back(
        {wide_window(256 / engines), {run_of(static_cast<trace::Address>((share * i).count()), share)}});
  }
  return run_loads(device, granularity, loads);
}

TEST(MemoryPathBandwidth, OfASplitStreamIsTheBusesPeak) {
  for (const Granularity granularity : {Granularity::burst, Granularity::train}) {
    for (const config::DeviceSpec& device : {testing::device(), plain_device(), testing::lpddr5_device()}) {
      for (const std::int64_t engines : {1, 2, 4}) {
        const double reached =
            efficiency(device, split_stream(without_refresh(device), granularity, engines));
        EXPECT_LE(reached, 1.0);
        // Trains take bank groups as they come, where the controller picks another group's burst to go
        // between.
        const bool as_they_come =
            granularity == Granularity::train && device.dram.bank_groups > 1 && engines > 1;
        EXPECT_NEAR(reached, 1.0, as_they_come ? 0.12 : 0.02)
            << device.dram.name << ", " << engines << " engines";
      }
    }
  }
}

TEST(MemoryPathBandwidth, OfASplitStreamLosesWhatRefreshTakes) {
  for (const Granularity granularity : {Granularity::burst, Granularity::train}) {
    for (config::DeviceSpec device : {testing::one_rank_device(), plain_device()}) {
      device.controller.refresh = RefreshMode::all_bank;
      for (const std::int64_t engines : {1, 2, 4}) {
        const double reached = efficiency(device, split_stream(device, granularity, engines));
        const double closed_form = 1.0 - all_bank_share(device);
        EXPECT_NEAR(reached / closed_form, 1.0, 0.02) << engines << " engines";
      }
    }
  }
}

TEST(MemoryPathBandwidth, PerBankRefreshHidesBehindADeepQueue) {
  config::DeviceSpec device = testing::device();
  device.controller.refresh = RefreshMode::per_bank;
  for (const std::int64_t engines : {1, 2, 4}) {
    EXPECT_NEAR(efficiency(device, split_stream(device, Granularity::burst, engines)), 1.0, 0.02);
  }
}

/// All rows of one bank of plain_device(), from `first` on: `bytes` of each.
Segment rows_of_bank(std::int64_t bank, std::int64_t first, std::int64_t rows, Bytes bytes) {
  Segment segment = run_of(static_cast<trace::Address>((first * 8 + bank) * 2048), bytes);
  segment.rows = rows;
  segment.stride = 16_KiB;
  return segment;
}

TEST(MemoryPathBandwidth, OfStreamsInBanksOfTheirOwnIsTheBusesPeak) {
  for (const RefreshMode refresh : {RefreshMode::none, RefreshMode::all_bank}) {
    config::DeviceSpec device = plain_device();
    device.controller.refresh = refresh;
    const double closed_form = refresh == RefreshMode::none ? 1.0 : 1.0 - all_bank_share(device);
    for (const std::int64_t streams : {2, 4, 8}) {
      std::vector<StreamLoad> loads;
      for (std::int64_t bank = 0; bank < streams; ++bank) {
        loads.push_back({wide_window(64), {rows_of_bank(bank, 0, 800 / streams, 2_KiB)}});
      }
      EXPECT_NEAR(efficiency(device, run_loads(device, Granularity::burst, loads)) / closed_form, 1.0, 0.03)
          << streams << " streams";
    }
  }
}

// A line is two bursts: its row could close after tRAS at the earliest, so that the row cycle is tRAS + tRP.
TEST(MemoryPathBandwidth, OfStreamsInOneBankIsBoundByItsRowCycle) {
  for (const RefreshMode refresh : {RefreshMode::none, RefreshMode::all_bank}) {
    config::DeviceSpec device = plain_device();
    device.controller.refresh = refresh;
    const ClockTiming t = clock_timing(device.dram, true);
    const double share = refresh == RefreshMode::none ? 0.0 : all_bank_share(device);
    const CommandClock clock(command_clock(device.dram));
    const double bound = (64_B / clock.time(t.tRAS + t.tRPpb)).count() * (1.0 - share);
    for (const std::int64_t streams : {1, 2, 4}) {
      std::vector<StreamLoad> loads;
      for (std::int64_t i = 0; i < streams; ++i) {
        loads.push_back({wide_window(16), {rows_of_bank(3, i * 8000, 4000 / streams, 64_B)}});
      }
      const LoadResult result = run_loads(device, Granularity::burst, loads);
      const double reached = (result.counters.read / result.elapsed).count();
      EXPECT_NEAR(reached / bound, 1.0, 0.05) << streams << " streams";
      EXPECT_GE(result.counters.row_conflicts + result.counters.row_misses, 4000);
    }
  }
}

/// Bandwidth when every line opens a row in the next bank.
BytesPerSecond activate_bound(const config::DeviceSpec& device) {
  Segment lines = run_of(0, 64_B);
  lines.rows = 8000;
  lines.stride = 2_KiB;
  const LoadResult result = run_loads(device, Granularity::burst, {{wide_window(128), {lines}}});
  return result.counters.read / result.elapsed;
}

TEST(MemoryPathBandwidth, OfSingleLinesIsBoundByTheActivates) {
  config::DeviceSpec device = without_refresh(plain_device());
  const CommandClock clock(command_clock(device.dram));
  const Cycle tRRD = clock_timing(device.dram, true).tRRD;
  EXPECT_NEAR(ratio(activate_bound(device), 64_B / clock.time(tRRD)), 1.0, 0.02);

  device.dram.timing.tRRD = {5_ns, 0};
  device.dram.timing.tFAW = {60_ns, 0};
  const Cycle tFAW = clock_timing(device.dram, true).tFAW;
  EXPECT_NEAR(ratio(activate_bound(device), 256_B / clock.time(tFAW)), 1.0, 0.02);
}

TEST(MemoryPathBandwidth, IsTheInterconnectsWhereThatIsNarrower) {
  config::DeviceSpec device = without_refresh(testing::device());
  device.interconnect.bandwidth = 12_GBps;
  for (const Granularity granularity : {Granularity::burst, Granularity::train}) {
    const LoadResult result = split_stream(device, granularity, 4);
    EXPECT_NEAR(ratio(result.counters.read / result.elapsed, device.interconnect.bandwidth), 1.0, 0.02);
    EXPECT_GT(ratio(result.account.part(Owner::queue), result.elapsed), 0.5);
  }
}

TEST(MemoryPathBandwidth, OfWritesIsTheBusesPeakToo) {
  const config::DeviceSpec device = without_refresh(testing::device());
  Segment writes = run_of(0, 4_MiB, Access::write);
  writes.posted = true;
  const LoadResult result = run_loads(device, Granularity::burst, {{wide_window(256), {writes}}});
  EXPECT_EQ(result.drained.written, 4_MiB);
  EXPECT_NEAR(efficiency(device, result), 1.0, 0.02);
}

// --- a fabric with a clock of its own
// --------------------------------------------------------------------------------------------------

config::FabricSpec fabric(BytesPerSecond bandwidth) {
  return {.width = 16_B, .clock = Hertz(static_cast<std::int64_t>(bandwidth.count() / 16))};
}

TEST(MemoryPathFabric, CapsASequentialStreamAtWidthTimesClock) {
  config::DeviceSpec device = without_refresh(testing::device());
  device.interconnect.fabric = config::FabricSpec{.width = 8_B, .clock = Hertz(1'500'000'000)};
  for (const Granularity granularity : {Granularity::burst, Granularity::train}) {
    for (const std::int64_t engines : {1, 4}) {
      const LoadResult result = split_stream(device, granularity, engines);
      EXPECT_NEAR(ratio(result.counters.read / result.elapsed, 12_GBps), 1.0, 0.02) << engines;
      EXPECT_GT(ratio(result.account.part(Owner::queue), result.elapsed), 0.5);
    }
  }
}

// Reads alone would have time to spare: it is the sum of both that fills the fabric.
TEST(MemoryPathFabric, CapsTheSumOfReadsAndWrites) {
  config::DeviceSpec device = without_refresh(testing::device());
  device.interconnect.fabric = fabric(8_GBps);
  for (const Granularity granularity : {Granularity::burst, Granularity::train}) {
    std::vector<StreamLoad> loads;
    for (int i = 0; i < 4; ++i) {
      const Access access = i % 2 == 0 ? Access::read : Access::write;
      Segment segment = run_of(static_cast<trace::Address>(i) << 24, 1_MiB, access);
      segment.posted = access == Access::write;
      loads.push_back({wide_window(32), {segment}});
      loads.back().window.stores = 32;
    }
    const LoadResult result = run_loads(device, granularity, loads);
    const Bytes moved = result.counters.read + result.counters.written;
    EXPECT_NEAR(ratio(moved / result.elapsed, 8_GBps), 1.0, 0.03);
  }
}

TEST(MemoryPathFabric, ThatTakesWhatAllChannelsGiveChangesNothing) {
  config::DeviceSpec device = testing::device();
  for (const Granularity granularity : {Granularity::burst, Granularity::train}) {
    device.interconnect.fabric.reset();
    const LoadResult without = split_stream(device, granularity, 4);
    device.interconnect.fabric = fabric(BytesPerSecond(2 * peak_bandwidth(device).count()));
    EXPECT_EQ(split_stream(device, granularity, 4), without);
  }
}

TEST(MemoryPathFabric, DoesNotSlowAStreamBelowTheCap) {
  config::DeviceSpec device = without_refresh(testing::device());
  StreamLoad slow{wide_window(4), {run_of(0, 1_MiB)}};
  slow.window.regulation = {.interval = 64_B / 4_GBps, .burst = {}};
  for (const Granularity granularity : {Granularity::burst, Granularity::train}) {
    device.interconnect.fabric.reset();
    const Picoseconds without = run_loads(device, granularity, {slow}).elapsed;
    device.interconnect.fabric = fabric(12_GBps);
    EXPECT_NEAR(ratio(run_loads(device, granularity, {slow}).elapsed, without), 1.0, 0.001);
  }
}

// Four engines ask for more than memory has: without a priority each gets a quarter.
TEST(MemoryPathPriority, APreferredEngineGetsWhatItAsksFor) {
  const config::DeviceSpec device = without_refresh(testing::device());
  const auto time = [&](std::uint8_t priority, int engines) {
    std::vector<StreamLoad> loads;
    for (int i = 0; i < engines; ++i) {
      loads.push_back({wide_window(32), {run_of(static_cast<std::uint64_t>(i) << 26, 1_MiB)}});
    }
    loads.front().window.priority = priority;
    return run_loads(device, Granularity::burst, loads).ends.front();
  };
  const double alone = time(0, 1).as_double();
  const double equal = time(0, 4).as_double();
  const double preferred = time(3, 4).as_double();
  EXPECT_GT(equal / alone, 2);
  EXPECT_LT(preferred / alone, 1.3);
}

}  // namespace
}  // namespace kvsim::model
