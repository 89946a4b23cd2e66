// SPDX-License-Identifier: Apache-2.0
// The stream of trains against the stream that goes line by line: with single lines, the same rules.
#include "models/train/train_stream.h"

#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/stream/line_stream.h"
#include "models/testing/fake_memory.h"

namespace kvsim::model {
namespace {

using namespace literals;
using testing::run_of;
using trace::Access;

constexpr std::int64_t kLatency = 100'000;

std::int64_t pick(Random& random, std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(last - first + 1)));
}

StreamWindow random_window(Random& random) {
  StreamWindow window;
  window.in_flight = pick(random, 1, 40);
  window.ahead = window.in_flight + pick(random, 0, 40);
  window.stores = pick(random, 1, 16);
  window.training = pick(random, 0, 4);
  if (pick(random, 0, 2) == 0) {
    window.regulation = {.interval = Picoseconds(pick(random, 1, 20'000)),
                         .burst = Picoseconds(pick(random, 0, 100'000))};
  }
  return window;
}

std::vector<Segment> random_segments(Random& random) {
  std::vector<Segment> segments;
  const Picoseconds per_line(pick(random, 0, 2) == 0 ? 0 : pick(random, 1, 20'000));
  const std::int64_t demand = pick(random, 1, 8);
  for (std::int64_t i = pick(random, 1, 20); i > 0; --i) {
    Segment s = run_of(random.below(1 << 24), Bytes(pick(random, 1, 3000)));
    s.rows = pick(random, 1, 4);
    s.stride = s.row_bytes + Bytes(pick(random, 0, 1) * pick(random, 0, 3000));
    s.per_line = per_line;
    s.demand_lines = demand;
    s.lead_in = Picoseconds(pick(random, 0, 2) == 0 ? pick(random, 0, 300'000) : 0);
    if (pick(random, 0, 3) == 0) {
      s.access = Access::write;
      s.posted = pick(random, 0, 1) == 1;
      s.per_line = s.lead_in = {};
    }
    segments.push_back(s);
  }
  return segments;
}

/// Memory that answers every group a latency later, and takes stores a latency later.
void run(TrainStream& stream, std::int64_t spacing = 0) {
  while (stream.next() != TrainStream::kNotYet) {
    const LineGroup group = stream.take();
    if (group.access == Access::read) {
      stream.deliver({.first = group.asked + kLatency, .spacing = spacing, .behind_data = 0, .held = 0});
    } else {
      for (std::int64_t i = 0; i < group.lines; ++i) {
        stream.taken(group.store + static_cast<std::uint64_t>(i), group.asked + kLatency);
      }
    }
  }
}

TEST(TrainStream, WithSingleLinesItFollowsTheRulesOfTheLineStream) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const StreamWindow window = random_window(random);
    const std::vector<Segment> segments = random_segments(random);
    LineStream lines(window);
    TrainStream train(window, {.granule = 2_KiB, .most_lines = 1, .spread = {}});
    for (EngineStream* stream : {static_cast<EngineStream*>(&lines), static_cast<EngineStream*>(&train)}) {
      stream->begin(7_us);
      for (const Segment& segment : segments) {
        stream->push(segment);
      }
    }
    testing::FakeMemory(lines, [](const LineRequest&) { return Picoseconds(kLatency); }).run();
    run(train);
    ASSERT_TRUE(train.idle()) << seed;
    ASSERT_EQ(train.used_until(), lines.used_until()) << seed;
    ASSERT_EQ(train.finished().size(), lines.finished().size());
    while (!train.finished().empty()) {
      ASSERT_EQ(train.finished().front(), lines.finished().front()) << seed;
      train.finished().pop();
      lines.finished().pop();
    }
    ASSERT_EQ(train.engine_time().stalls.total() + train.engine_time().behind_data,
              lines.engine_time().stalls.total() + lines.engine_time().behind_data)
        << seed;
  }
}

TEST(TrainStream, GroupsMoveTheirLinesInFlightOncePerLatency) {
  for (const std::int64_t lines : {2, 4, 8}) {
    TrainStream stream({.in_flight = 16, .ahead = 32, .stores = 16},
                       {.granule = 2_KiB, .most_lines = lines, .spread = 5_ns});
    stream.begin(0_ns);
    stream.push(run_of(0, Bytes(16 * 50 * kLineBytes)));
    run(stream);
    EXPECT_EQ(stream.used_until(), Picoseconds(50 * kLatency)) << lines;
  }
}

TEST(TrainStream, AGroupStaysWithinItsGranuleAndSpread) {
  TrainStream stream({.in_flight = 64, .ahead = 64, .stores = 64},
                     {.granule = 256_B, .most_lines = 8, .spread = 5_ns});
  stream.begin(0_ns);
  stream.push(run_of(64, 512_B));
  std::vector<std::int64_t> sizes;
  while (stream.next() != TrainStream::kNotYet) {
    sizes.push_back(stream.take().lines);
    stream.deliver({.first = kLatency});
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{3, 4, 1}));
}

// A bucket of ten lines empties at once; from then on a line goes at each interval.
TEST(TrainStream, ARegulatedStreamTakesItsShareAndNoMore) {
  for (const Access access : {Access::read, Access::write}) {
    TrainStream stream({.in_flight = 64, .ahead = 64, .stores = 64, .regulation = {32_ns, 320_ns}},
                       {.granule = 2_KiB, .most_lines = 8, .spread = 5_ns});
    stream.begin(0_ns);
    stream.push(run_of(0, Bytes(1000 * kLineBytes), access));
    std::int64_t last = 0;
    std::int64_t at_once = 0;
    while (stream.next() != TrainStream::kNotYet) {
      last = stream.next();
      at_once += last == 0;
      const LineGroup group = stream.take();
      if (access == Access::read) {
        stream.deliver({.first = group.asked});
      } else {
        stream.taken(group.store, group.asked);
      }
    }
    EXPECT_EQ(at_once, 10);
    EXPECT_EQ(last, (1000 - 10) * 32'000);
  }
}

TEST(TrainStream, AStoreThatMemoryHasNotTakenHoldsTheNext) {
  TrainStream stream({.in_flight = 4, .ahead = 8, .stores = 2},
                     {.granule = 2_KiB, .most_lines = 1, .spread = {}});
  stream.begin(0_ns);
  stream.push(run_of(0, 256_B, Access::write));
  const std::uint64_t first = stream.take().store;
  stream.take();
  EXPECT_EQ(stream.next(), TrainStream::kNotYet);
  stream.taken(first, 40'000);
  EXPECT_EQ(stream.next(), 40'000);
}

}  // namespace
}  // namespace kvsim::model
