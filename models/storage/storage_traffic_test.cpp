// SPDX-License-Identifier: Apache-2.0
// Random requests on a device that has everything: nothing is lost.
#include <vector>

#include <gtest/gtest.h>

#include "models/storage/storage_device.h"
#include "models/storage/test_part.h"
#include "traces/record/spread.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;

/// Everything that a device can have, differently for each seed.
config::StoragePartSpec busy_part(std::uint64_t seed) {
  return with([&](auto& p) {
    p.flash.dies = 2;
    p.flash.pages_per_block = 12;
    p.flash.bits_per_cell = 3;
    p.flash.over_provisioning = 0.15;
    p.flash.slc_cache = seed % 2 == 0 ? 4_MiB : Bytes();
    p.flash.suspend = 10_us;
    p.controller.read_ahead = 64_KiB;
    p.controller.map_cache = 16_KiB;
    p.controller.journal = 200;
    p.controller.write_buffer = 16_KiB * static_cast<std::int64_t>(seed);
    p.link.max_request = 128_KiB;
    p.link.queue_depth = static_cast<std::int64_t>(seed) * 3;
  });
}

/// Random requests, and what must have come of them.
struct Traffic {
  explicit Traffic(std::uint64_t seed)
      : device(busy_part(seed), {.seed = seed}), written(device.ftl().units()), random(seed) {}

  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(limit)));
  }

  void ask(int i) {
    const std::int64_t kind = below(10);
    const StorageOp op = kind < 4 ? StorageOp::read : kind < 9 ? StorageOp::write : StorageOp::discard;
    const Bytes bytes(512 * (1 + below(below(8) == 0 ? 2000 : 32)));
    const Bytes offset(512 * below((device.part().capacity - bytes).count() / 512 + 1));
    if (op == StorageOp::discard) {  // the order of what is under way is the device's
      drain();
    }
    device.submit({.op = op, .offset = offset, .bytes = bytes, .when = now, .lane = i % 4});
    completions.push_back(0);
    if (op == StorageOp::discard || i % 8 == 7) {
      drain();
    }
    note(op, offset.count(), (offset + bytes).count());
  }

  void note(StorageOp op, std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kUnit = 4096;
    if (op == StorageOp::read) {
      read += Bytes(end - begin);
    } else if (op == StorageOp::write) {
      wrote += Bytes(end - begin);
      for (std::int64_t unit = begin / kUnit; unit * kUnit < end; ++unit) {
        written[static_cast<std::size_t>(unit)] = true;
      }
    } else {
      for (std::int64_t unit = (begin + kUnit - 1) / kUnit; (unit + 1) * kUnit <= end; ++unit) {
        written[static_cast<std::size_t>(unit)] = false;
      }
    }
  }

  void drain() {
    while (const std::optional<StorageCompletion> done = device.next()) {
      EXPECT_EQ(done->status, StorageStatus::ok);
      EXPECT_GE(done->done, now);
      now = done->done;
      ++completions[done->id];
    }
  }

  StorageDevice device;
  std::vector<bool> written;
  trace::SplitMix64 random;
  std::vector<int> completions;
  Bytes read, wrote;
  Picoseconds now;
};

/// Requests of all kinds, sizes and alignments: each is completed once, in order of time; bytes add up; what
/// the mapping says is what was written.
TEST(StorageDevice, NothingIsLost) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Traffic traffic(seed);
    for (int i = 0; i < 3000; ++i) {
      traffic.ask(i);
    }
    traffic.drain();
    for (const int count : traffic.completions) {
      ASSERT_EQ(count, 1);
    }
    const StorageDevice& device = traffic.device;
    EXPECT_EQ(device.counters().host_read, traffic.read);
    EXPECT_EQ(device.counters().host_written, traffic.wrote);
    for (Unit unit = 0; unit < device.ftl().units(); ++unit) {
      ASSERT_EQ(device.ftl().map().find(unit) != kNowhere, traffic.written[unit]) << unit;
    }
    EXPECT_GE(device.wear(BytesPerSecond(1)).write_amplification, 0.99);
  }
}

}  // namespace
}  // namespace kvsim::model
