// SPDX-License-Identifier: Apache-2.0
#include "models/cpu/segmenter.h"

#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/testing/soc.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using ::testing::ElementsAre;
using testing::extent;
using trace::Access;
using trace::Address;
using trace::Extent;
using trace::Kind;

config::CoreSpec core() {
  return testing::device().clusters[0].core;
}
config::CacheSpec llc() {
  return testing::device().llc;
}

/// All segments of `extents`, and what work is left at their end.
struct Cut {
  std::vector<Segment> segments;
  Picoseconds lead_in;
};

Cut cut(Cache& cache, const std::vector<Extent>& extents, bool passes_cache, Picoseconds per_line = {}) {
  Segmenter segmenter(cache, llc());
  segmenter.begin(extents, {.per_line = per_line, .demand_lines = 1}, passes_cache);
  Cut result;
  while (const auto segment = segmenter.next()) {
    result.segments.push_back(*segment);
  }
  result.lead_in = segmenter.lead_in();
  return result;
}

/// Addresses of a strided run's lines; one that two rows share comes once.
template <class Run>
std::vector<Address> lines_of_run(const Run& run) {
  std::vector<Address> lines;
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(run.rows); ++row) {
    const Address start = run.address + static_cast<Address>(row * run.stride.count());
    for (Address at = start / 64 * 64; at < start + static_cast<Address>(run.row_bytes.count()); at += 64) {
      if (lines.empty() || at != lines.back()) {
        lines.push_back(at);
      }
    }
  }
  return lines;
}

std::vector<Address> lines_of_segments(const std::vector<Segment>& segments, Access access) {
  std::vector<Address> lines;
  for (const Segment& segment : segments) {
    if (segment.access == access) {
      const std::vector<Address> more = lines_of_run(segment);
      lines.insert(lines.end(), more.begin(), more.end());
    }
  }
  return lines;
}

// --- work per line
// ----------------------------------------------------------------------------------------------

TEST(LineWork, SpreadsTheComputeTimeOverTheLines) {
  // 2 operations a cycle at 2.3 GHz.
  EXPECT_EQ(compute_time(core(), 4'600'000), 1_ms);
  EXPECT_EQ(line_work(core(), 4'600'000, 1000).per_line, 1_us);
  EXPECT_EQ(line_work(core(), 0, 1000).per_line, 0_ps);
}

TEST(LineWork, LoadsReachAsFarAsTheReorderBuffer) {
  EXPECT_EQ(line_work(core(), 0, 1000).demand_lines, 8);        // all the misses that the core can have
  EXPECT_EQ(line_work(core(), 20'000, 1000).demand_lines, 4);   // 128 entries / (20 operations x 1.6)
  EXPECT_EQ(line_work(core(), 500'000, 1000).demand_lines, 1);  // never less than the line in use
}

TEST(LinesOf, CountsTheLinesThatAreTouched) {
  EXPECT_EQ(lines_of({extent(0, 64_B)}), 1);
  EXPECT_EQ(lines_of({extent(63, 2_B)}), 2);
  EXPECT_EQ(lines_of({extent(0, 1_MiB), extent(0, 65_B)}), (1 << 14) + 2);
  Extent rows = extent(0, 128_B);
  rows.rows = 10;
  rows.stride = 4_KiB;
  EXPECT_EQ(lines_of({rows}), 20);
  rows.stride = 128_B;
  rows.address = 32;
  EXPECT_EQ(lines_of({rows}), 21);  // in truth one run
}

// --- past the cache
// ---------------------------------------------------------------------------------------------

TEST(Segmenter, ALargeExtentPassesInSlices) {
  Cache cache(llc());
  const Cut result = cut(cache, {extent(100, 1_MiB)}, true);
  EXPECT_EQ(lines_of_segments(result.segments, Access::read), lines_of_run(extent(100, 1_MiB)));
  EXPECT_GT(result.segments.size(), 32U);
  EXPECT_EQ(cache.hits() + cache.misses(), 0);
  EXPECT_FALSE(cache.access(128, Access::read, Owner::weights).hit);
}

TEST(Segmenter, StridedRowsKeepTheirOrder) {
  Cache cache(llc());
  Extent rows = extent(1 << 20, 256_B, Kind::kv);
  rows.rows = 3000;
  rows.stride = 2_KiB;
  const Cut result = cut(cache, {rows}, true);
  EXPECT_EQ(lines_of_segments(result.segments, Access::read), lines_of_run(rows));
  EXPECT_EQ(result.segments[0].owner, Owner::kv_read);
}

TEST(Segmenter, SmallExtentsAreKeptEvenInALargeOperator) {
  Cache cache(llc());
  const Extent activations = extent(1 << 30, 16_KiB, Kind::scratch);
  const Cut first = cut(cache, {activations, extent(0, 1_MiB)}, true);
  EXPECT_EQ(lines_of_segments(first.segments, Access::read).size(), 256U + (1U << 14));
  const Cut second = cut(cache, {activations, extent(1 << 20, 1_MiB)}, true);
  EXPECT_EQ(lines_of_segments(second.segments, Access::read).size(), 1U << 14);
}

// --- through the cache
// ------------------------------------------------------------------------------------------

TEST(Segmenter, AsksOnlyForWhatTheCacheLacks) {
  Cache cache(llc());
  for (const Address at : {256, 320, 640}) {
    cache.access(at, Access::read, Owner::weights);
  }
  const Cut result = cut(cache, {extent(0, 768_B)}, false);
  EXPECT_THAT(lines_of_segments(result.segments, Access::read),
              ElementsAre(0, 64, 128, 192, 384, 448, 512, 576, 704));
  ASSERT_EQ(result.segments.size(), 3U);  // runs of missing lines
}

TEST(Segmenter, HitsAreWorkBeforeTheNextSegment) {
  Cache cache(llc());
  const Picoseconds hit_time = 64_B / llc().bandwidth;
  cut(cache, {extent(0, 4_KiB)}, false);
  const Cut again = cut(cache, {extent(0, 4_KiB), extent(1 << 20, 64_B)}, false);
  ASSERT_EQ(again.segments.size(), 1U);
  EXPECT_EQ(again.segments[0].lead_in, 64 * hit_time);
  const Cut slow = cut(cache, {extent(0, 4_KiB)}, false, 5_ns);  // slower than the cache
  EXPECT_EQ(slow.lead_in, 64 * 5_ns);
}

TEST(Segmenter, WrittenLinesComeBackWhenTheyLeaveTheCache) {
  Cache cache(llc());
  const Cut writes = cut(cache, {extent(1 << 20, 4_KiB, Kind::kv, Access::write)}, false);
  EXPECT_TRUE(writes.segments.empty());
  const Cut pass = cut(cache, {extent(1 << 24, 8_MiB)}, true);
  std::vector<Segment> written;
  for (const Segment& segment : pass.segments) {
    if (segment.access == Access::write) {
      written.push_back(segment);
    }
  }
  ASSERT_EQ(written.size(), 1U);  // neighbours together
  EXPECT_EQ(written[0].address, 1U << 20);
  EXPECT_EQ(written[0].row_bytes, 4_KiB);
  EXPECT_EQ(written[0].owner, Owner::kv_write);
  EXPECT_TRUE(written[0].posted);
}

// --- properties
// -------------------------------------------------------------------------------------------------

std::int64_t pick(Random& random, std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(last - first + 1)));
}

/// Extents within 4 MiB, so that they meet each other; rows begin at lines, as tensors' do.
std::vector<Extent> random_extents(Random& random) {
  std::vector<Extent> extents;
  for (std::int64_t i = pick(random, 1, 8); i > 0; --i) {
    Extent e = extent(random.below(1 << 16) * 64, Bytes(pick(random, 1, 100'000)));
    e.access = pick(random, 0, 2) == 0 ? Access::write : Access::read;
    e.kind = static_cast<Kind>(pick(random, 0, 3));
    if (pick(random, 0, 1) == 0) {
      e.row_bytes = Bytes(64 * pick(random, 1, 40));
      e.rows = static_cast<std::uint32_t>(pick(random, 1, 50));
      e.stride = e.row_bytes + Bytes(64 * pick(random, 0, 40));
    }
    extents.push_back(e);
  }
  return extents;
}

TEST(SegmenterProperty, EveryLineIsHitOrAskedForOnceInOrder) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    config::CacheSpec small = llc();
    small.size = 192_KiB;
    Cache cache(small);
    Cache twin(small);  // goes through the same accesses line by line
    for (int round = 0; round < 6; ++round) {
      const std::vector<Extent> extents = random_extents(random);
      const Picoseconds per_line(pick(random, 0, 4'000));
      const Cut result = cut(cache, extents, false, per_line);
      std::vector<Address> expected;
      std::int64_t at_hand = 0;
      for (const Extent& e : extents) {
        Extent run = e;
        if (e.stride == e.row_bytes) {  // in truth one run
          run.row_bytes = total_bytes(e);
          run.rows = 1;
        }
        for (const Address at : lines_of_run(run)) {
          const bool hit = twin.access(at, e.access, data_owner(e.kind, e.access)).hit;
          if (hit || e.access == Access::write) {
            ++at_hand;
          } else {
            expected.push_back(at);
          }
        }
      }
      ASSERT_EQ(lines_of_segments(result.segments, Access::read), expected) << seed;
      Picoseconds lead_in = result.lead_in;
      for (const Segment& segment : result.segments) {
        lead_in += segment.lead_in;
        ASSERT_TRUE(segment.access == Access::write || segment.row_bytes <= 16_KiB);
      }
      ASSERT_EQ(lead_in, at_hand * std::max(per_line, 64_B / llc().bandwidth));
    }
  }
}

TEST(SegmenterProperty, EveryWrittenLineIsWrittenBackOnce) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    config::CacheSpec small = llc();
    small.size = 192_KiB;
    Cache cache(small);
    std::map<Address, int> owed;  // 1: written since it last came back
    const auto pay = [&](const std::vector<Segment>& segments) {
      for (const Address line : lines_of_segments(segments, Access::write)) {
        ASSERT_EQ(owed[line], 1);
        owed[line] = 0;
      }
    };
    for (int round = 0; round < 10; ++round) {
      // One extent at a time, and at most a line of each of the cache's sets, so that no line comes back and
      // is written again unseen.
      for (Extent e : random_extents(random)) {
        e.row_bytes = e.stride = Bytes(std::min<std::int64_t>(e.row_bytes.count(), 16'000));
        e.rows = 1;
        const Cut result = cut(cache, {e}, pick(random, 0, 1) == 1);
        if (e.access == Access::write) {
          for (const Address line : lines_of_run(e)) {
            owed[line] = 1;
          }
        }
        pay(result.segments);
      }
    }
    pay(cut(cache, {extent(1 << 28, 400_KiB)}, true).segments);
    for (const auto& [line, due] : owed) {
      ASSERT_EQ(due, 0) << "line " << line;
    }
  }
}

}  // namespace
}  // namespace kvsim::model
