// SPDX-License-Identifier: Apache-2.0
// A device with a serial PSRAM: engines get what the bus's clocks add up to, in turn.
#include "models/psram/psram_path.h"

#include <gtest/gtest.h>

#include "configs/spec/resolve.h"
#include "models/testing/fake_memory.h"
#include "models/testing/stream_load.h"

namespace kvsim::model {
namespace {

using namespace literals;
using testing::LoadResult;
using testing::run_loads;
using testing::run_of;
using testing::StreamLoad;
using testing::wide_window;
using trace::Access;

/// setup, command, latency, data of 64 B, hold, tCPH, controller's 77.7 ns in clocks of 12.5 ns
constexpr Cycle kSpacing = 3 + 3 + 9 + 32 + 3 + 2 + 7;

config::DeviceSpec esp32s3() {
  return config::load_device("esp32_s3");
}
Picoseconds clocks(Cycle count) {
  return CommandClock(command_clock(esp32s3().dram)).time(count);
}

TEST(PsramPath, OneLineTakesItsCommandAndItsData) {
  const LoadResult result = run_loads(esp32s3(), Granularity::burst, {{wide_window(1), {run_of(0, 64_B)}}});
  EXPECT_EQ(result.elapsed, clocks(7 + 3 + 3 + 9 + 32));
  EXPECT_EQ(result.account.total(), result.elapsed);
}

TEST(PsramPath, AStreamIsBoundByTheSpacingOfItsCommands) {
  const LoadResult result = run_loads(esp32s3(), Granularity::burst, {{wide_window(4), {run_of(0, 64_KiB)}}});
  EXPECT_EQ(result.elapsed, clocks(kSpacing * 1024 - 3 - 2));  // but for the last one's end of chip select
  EXPECT_EQ(result.counters.read, 64_KiB);
  EXPECT_EQ(result.counters.row_misses, 1024);
  EXPECT_EQ(result.account.total(), result.elapsed);
}

TEST(PsramPath, TwoEnginesGetTheBusInTurn) {
  const StreamLoad a{wide_window(4), {run_of(0, 64_KiB)}};
  const StreamLoad b{wide_window(4), {run_of(1 << 20, 64_KiB)}};
  const LoadResult both = run_loads(esp32s3(), Granularity::burst, {a, b});
  EXPECT_EQ(both.elapsed, clocks(kSpacing * 2048 - 3 - 2));
  EXPECT_NEAR(ratio(both.ends[0], both.ends[1]), 1.0, 0.01);
}

TEST(PsramPath, WritesPassTooAndAreCounted) {
  Segment writes = run_of(0, 64_KiB, Access::write);
  writes.posted = true;
  StreamLoad load{wide_window(1), {writes}};
  load.window.stores = 1;
  const LoadResult result = run_loads(esp32s3(), Granularity::burst, {load});
  EXPECT_EQ(result.counters.written, 64_KiB);
  EXPECT_NEAR(ratio(result.elapsed, clocks((kSpacing - 5) * 1024)), 1.0, 0.01);
}

TEST(PsramPath, TakesThePlaceOfTrains) {
  const StreamLoad load{wide_window(2), {run_of(0, 16_KiB)}};
  EXPECT_EQ(run_loads(esp32s3(), Granularity::train, {load}),
            run_loads(esp32s3(), Granularity::burst, {load}));
  EXPECT_EQ(unknown_to_trains(esp32s3()), std::vector<std::string_view>{"dram.psram"});
}

}  // namespace
}  // namespace kvsim::model
