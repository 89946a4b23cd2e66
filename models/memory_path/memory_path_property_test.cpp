// SPDX-License-Identifier: Apache-2.0
// Whatever engines ask for: do bytes, times and the breakdown add up, and is no rule of the part broken?
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/dram/legality.h"
#include "models/memory_path/memory_path.h"
#include "models/testing/channel_bench.h"
#include "models/testing/fake_memory.h"
#include "models/testing/stream_load.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using testing::CommandLogs;
using testing::LoadResult;
using testing::run_loads;
using testing::run_of;
using testing::StreamLoad;
using testing::wide_window;
using trace::Access;

struct Mix {
  config::DeviceSpec device;
  Granularity granularity = Granularity::burst;
  std::vector<StreamLoad> loads;
};

std::int64_t pick(Random& random, std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(last - first + 1)));
}

StreamLoad random_load(Random& random) {
  StreamLoad load;
  load.window.in_flight = pick(random, 1, 64);
  load.window.ahead = load.window.in_flight + pick(random, 0, 64);
  load.window.stores = pick(random, 1, 40);
  load.window.training = pick(random, 0, 1) * 3;
  const Picoseconds per_line(pick(random, 0, 1) * pick(random, 0, 12'000));
  const std::int64_t demand = pick(random, 1, 8);
  for (std::int64_t i = pick(random, 1, 12); i > 0; --i) {
    Segment s = run_of(random.below(1 << 29) * 8, Bytes(pick(random, 1, 16'384)));
    s.rows = pick(random, 1, 4);
    s.stride = s.row_bytes + Bytes(pick(random, 0, 1) * pick(random, 0, 70'000));
    s.owner = static_cast<Owner>(pick(random, 0, 3));
    s.per_line = per_line;
    s.demand_lines = demand;
    if (pick(random, 0, 3) == 0) {
      s.access = Access::write;
      s.posted = pick(random, 0, 1) == 1;
    }
    load.segments.push_back(s);
  }
  return load;
}

Mix random_mix(std::uint64_t seed) {
  Random random(seed);
  const std::vector<config::DeviceSpec> devices = {testing::device(), testing::plain_device(),
                                                   testing::one_rank_device(), testing::lpddr5_device()};
  Mix mix{.device = devices[seed % devices.size()],
          .granularity = random.below(2) == 0 ? Granularity::burst : Granularity::train,
          .loads = {}};
  config::MemoryControllerSpec& controller = mix.device.controller;
  controller.refresh = static_cast<config::RefreshMode>(random.below(3));
  controller.read_queue = pick(random, 4, 64);
  controller.turnaround = random.below(4) != 0;
  for (std::int64_t i = pick(random, 1, 8); i > 0; --i) {
    mix.loads.push_back(random_load(random));
  }
  return mix;
}

/// Bytes of the lines that a load's segments touch, reads and writes.
void add_lines(const StreamLoad& load, Bytes& read, Bytes& written) {
  for (const Segment& s : load.segments) {
    std::int64_t next = 0;  // the line after the last one
    for (std::int64_t row = 0; row < s.rows; ++row) {
      const std::int64_t start = static_cast<std::int64_t>(s.address) + row * s.stride.count();
      const std::int64_t first = std::max(start / kLineBytes, next);
      next = std::max(next, (start + s.row_bytes.count() - 1) / kLineBytes + 1);
      (s.access == Access::read ? read : written) += Bytes((next - first) * kLineBytes);
    }
  }
}

class MemoryPathProperty : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(MemoryPathProperty, EveryByteMovesOnceAndNoneFasterThanTheBus) {
  const Mix mix = random_mix(GetParam());
  CommandLogs logs;  // trains have none
  const LoadResult result = run_loads(mix.device, mix.granularity, mix.loads,
                                      mix.granularity == Granularity::burst ? &logs : nullptr);
  Bytes read;
  Bytes written;
  for (const StreamLoad& load : mix.loads) {
    add_lines(load, read, written);
  }
  read += Bytes(kLineBytes);  // the line that drains
  EXPECT_EQ(result.drained.read, read);
  EXPECT_EQ(result.drained.written, written);
  std::int64_t columns = 0;
  for (const std::vector<IssuedCommand>& log : logs) {
    const std::vector<Violation> found = violations(log, mix.device);  // overlapping beats are one
    ASSERT_TRUE(found.empty()) << found[0].rule << " at clock " << log[found[0].position].clock;
    columns += std::count_if(log.begin(), log.end(), [](const IssuedCommand& issued) {
      return issued.command == Command::read || issued.command == Command::write;
    });
  }
  if (mix.granularity == Granularity::train) {
    columns = (read + written).count() / burst_bytes(mix.device.dram).count();
  }
  EXPECT_EQ(burst_bytes(mix.device.dram) * columns, read + written);
  const MemoryCounters& c = result.drained;
  EXPECT_EQ(c.row_hits + c.row_misses + c.row_conflicts, columns);
}

TEST_P(MemoryPathProperty, ReadsNeverExceedThePeak) {
  Mix mix = random_mix(GetParam());
  for (StreamLoad& load : mix.loads) {
    std::erase_if(load.segments, [](const Segment& s) { return s.access == Access::write; });
    if (load.segments.empty()) {
      load.segments.push_back(run_of(0, 4_KiB));
    }
  }
  const LoadResult result = run_loads(mix.device, mix.granularity, mix.loads);
  EXPECT_LT(ratio(result.counters.read / result.elapsed, peak_bandwidth(mix.device)), 1.0);
}

TEST_P(MemoryPathProperty, TheAccountAddsUpToTheElapsedTime) {
  const Mix mix = random_mix(GetParam());
  const LoadResult result = run_loads(mix.device, mix.granularity, mix.loads);
  EXPECT_EQ(result.account.total(), result.elapsed);
  EXPECT_EQ(result.account.part(Owner::barrier), Picoseconds());
  if (mix.device.controller.refresh == config::RefreshMode::none) {
    EXPECT_EQ(result.account.part(Owner::refresh), Picoseconds());
  }
  if (!mix.device.controller.turnaround) {
    EXPECT_EQ(result.account.part(Owner::turnaround), Picoseconds());
  }
  for (int owner = 0; owner < kOwners; ++owner) {
    EXPECT_GE(result.account.part(static_cast<Owner>(owner)), Picoseconds())
        << to_string(static_cast<Owner>(owner));
  }
}

TEST_P(MemoryPathProperty, EqualRunsAreEqual) {
  const Mix mix = random_mix(GetParam());
  EXPECT_TRUE(run_loads(mix.device, mix.granularity, mix.loads) ==
              run_loads(mix.device, mix.granularity, mix.loads));
}

INSTANTIATE_TEST_SUITE_P(Mixes, MemoryPathProperty, ::testing::Range(std::uint64_t{0}, std::uint64_t{24}));

}  // namespace
}  // namespace kvsim::model
