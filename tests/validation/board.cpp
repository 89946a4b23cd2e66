// SPDX-License-Identifier: Apache-2.0
#include "tests/validation/board.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "models/cache/cache.h"
#include "models/cpu/cpu_core.h"
#include "models/cpu/segmenter.h"
#include "models/memory_path/burst_path.h"

namespace kvsim::testing {

using model::Cache;
using model::EngineStream;
using model::MemoryPath;
using model::Owner;
using model::Segment;
using trace::Access;

namespace {

/// memchr compares 64 B with four loads, four comparisons and the ors that join them.
constexpr std::uint64_t kScanOperations = 10;
constexpr Bytes kScan{64 << 20};
constexpr int kChases = 400'000;
constexpr std::uint64_t kPageBytes = 4096;

void run_to_end(MemoryPath& path, std::vector<EngineStream*> streams) {
  while (path.run() != EngineStream::kNever) {
    for (EngineStream* stream : streams) {
      while (!stream->finished().empty()) {
        stream->finished().pop();
      }
    }
  }
}

/// SplitMix64.
class Random {
 public:
  std::uint64_t below(std::uint64_t limit) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return (z ^ (z >> 31U)) % limit;
  }

 private:
  std::uint64_t state_ = 1;
};

/// Physical frames in the order in which a long-running system hands them out: any.
std::vector<std::uint64_t> scattered_frames(std::uint64_t pages, std::uint64_t memory, Random& random) {
  std::vector<std::uint64_t> frames;
  std::set<std::uint64_t> taken;
  while (frames.size() < pages) {
    const std::uint64_t frame = random.below(memory / kPageBytes);
    if (taken.insert(frame).second) {
      frames.push_back(frame);
    }
  }
  return frames;
}

}  // namespace

BytesPerSecond read_bandwidth(const config::DeviceSpec& device, int cores) {
  const config::CoreSpec& core = device.clusters.front().core;
  const std::int64_t lines = kScan.count() / model::kLineBytes;
  const model::LineWork work =
      model::line_work(core, kScanOperations * static_cast<std::uint64_t>(lines), lines);
  model::BurstPath path(device);
  std::vector<EngineStream*> streams;
  for (int i = 0; i < cores; ++i) {
    streams.push_back(&path.add_stream(model::window_of(core)));
    streams.back()->begin(Picoseconds());
    streams.back()->push({.address = static_cast<trace::Address>(i * kScan.count()),
                          .row_bytes = kScan,
                          .stride = kScan,
                          .per_line = work.per_line,
                          .demand_lines = work.demand_lines});
  }
  run_to_end(path, streams);
  Picoseconds end;
  for (const EngineStream* stream : streams) {
    end = std::max(end, stream->used_until());
  }
  return kScan * cores / end;
}

Picoseconds random_latency(const config::DeviceSpec& device, Bytes bytes) {
  const config::CoreSpec& core = device.clusters.front().core;
  Cache l2({.size = core.l2_size, .ways = 8, .line = device.llc.line, .latency = {}, .bandwidth = {}});
  Cache llc(device.llc);
  Cache tlb({.size = core.tlb_reach,
             .ways = 5,
             .line = Bytes(static_cast<std::int64_t>(kPageBytes)),
             .latency = {},
             .bandwidth = {}});
  model::BurstPath path(device);
  EngineStream& stream = path.add_stream({.in_flight = 1, .ahead = 1, .stores = 1});
  Random random;
  const auto lines = static_cast<std::uint64_t>(bytes.count() / model::kLineBytes);
  const std::vector<std::uint64_t> frames =
      scattered_frames(static_cast<std::uint64_t>(bytes.count()) / kPageBytes,
                       static_cast<std::uint64_t>(dram_capacity(device).count()), random);
  const auto chase = [&](int loads) {
    Picoseconds at_hand;
    for (int i = 0; i < loads; ++i) {
      const std::uint64_t offset = random.below(lines) * model::kLineBytes;
      const trace::Address address = frames[offset / kPageBytes] * kPageBytes + offset % kPageBytes;
      at_hand += tlb.access(address, Access::read, Owner::other_data).hit ? Picoseconds() : core.tlb_walk;
      if (l2.access(address, Access::read, Owner::other_data).hit) {
        at_hand += core.l2_latency;
      } else if (llc.access(address, Access::read, Owner::other_data).hit) {
        at_hand += device.llc.latency;
      } else {
        stream.push({.address = address,
                     .row_bytes = Bytes(model::kLineBytes),
                     .stride = Bytes(model::kLineBytes),
                     .lead_in = std::exchange(at_hand, Picoseconds())});
      }
    }
    run_to_end(path, {&stream});
    return at_hand;
  };
  stream.begin(Picoseconds());
  static_cast<void>(chase(kChases));  // fills the caches
  const Picoseconds start = stream.used_until();
  stream.begin(start);
  const Picoseconds left = chase(kChases);
  return (stream.used_until() + left - start) / kChases;
}

}  // namespace kvsim::testing
