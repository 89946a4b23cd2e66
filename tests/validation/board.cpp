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

/// STREAM's arrays of 240 MB in four parts, as OpenMP shares them out; of each part so much is worked on.
constexpr trace::Address kArray = 240'000'000;
constexpr trace::Address kPart = kArray / 4 / 64 * 64;
constexpr Bytes kWorked{16 << 20};
/// A random line takes an eighth of a latency at best, so that these outlast any scan.
constexpr int kRandomLines = 400'000;

Segment one_line(trace::Address address, Access access) {
  return {.address = address,
          .row_bytes = Bytes(model::kLineBytes),
          .stride = Bytes(model::kLineBytes),
          .access = access};
}

void push_copy(EngineStream& stream, trace::Address part, const model::LineWork& work) {
  for (std::int64_t at = 0; at < kWorked.count(); at += model::kLineBytes) {
    Segment load = one_line(part + static_cast<trace::Address>(at), Access::read);
    load.per_line = work.per_line;
    load.demand_lines = work.demand_lines;
    stream.push(load);
    Segment store = one_line(kArray + part + static_cast<trace::Address>(at), Access::write);
    store.posted = true;  // it leaves the cache when it likes; the loads behind it do not wait
    stream.push(store);
  }
}

void push_random(EngineStream& stream, std::uint64_t lines, Random& random) {
  for (int i = 0; i < kRandomLines; ++i) {
    stream.push(one_line(random.below(lines) * model::kLineBytes, Access::read));
  }
}

}  // namespace

LoadResult load_bandwidth(const config::DeviceSpec& device, const Load& load) {
  const config::CoreSpec& core = device.clusters.front().core;
  const std::int64_t lines = kWorked.count() / model::kLineBytes;
  const model::LineWork work =
      model::line_work(core, kScanOperations * static_cast<std::uint64_t>(lines), lines);
  const model::StreamWindow by_loads{
      .in_flight = core.demand_misses, .ahead = core.demand_misses, .stores = 1};
  model::BurstPath path(device);
  Random random;
  std::vector<EngineStream*> streams;
  const int counted = load.readers + load.copiers;
  for (int i = 0; i < counted + load.random_readers; ++i) {
    streams.push_back(&path.add_stream(i < counted ? model::window_of(core) : by_loads));
    EngineStream& stream = *streams.back();
    stream.begin(Picoseconds());
    if (i >= counted) {
      push_random(stream, static_cast<std::uint64_t>(dram_capacity(device).count() / model::kLineBytes),
                  random);
    } else if (i >= load.readers) {
      push_copy(stream, static_cast<trace::Address>(i) * kPart, work);
    } else {
      stream.push({.address = static_cast<trace::Address>(i) * kPart,
                   .row_bytes = kWorked,
                   .stride = kWorked,
                   .per_line = work.per_line,
                   .demand_lines = work.demand_lines});
    }
  }
  run_to_end(path, streams);
  Picoseconds end;
  for (int i = 0; i < counted; ++i) {
    end = std::max(end, streams[static_cast<std::size_t>(i)]->used_until());
  }
  const Bytes first = kWorked * (load.readers > 0 ? 1 : 2);
  return {.first = first / streams.front()->used_until(),
          .all = kWorked * (load.readers + 2 * load.copiers) / end};
}

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
