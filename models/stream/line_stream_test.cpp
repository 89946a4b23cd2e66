// SPDX-License-Identifier: Apache-2.0
// Does one engine's pace follow from its window, the latency and its work?
#include "models/stream/line_stream.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/testing/fake_memory.h"

namespace kvsim::model {
namespace {

using namespace literals;
using ::testing::ElementsAre;
using testing::FakeMemory;
using testing::run_of;
using trace::Access;

constexpr Picoseconds kLatency = 100_ns;

Picoseconds constant(const LineRequest& /*request*/) {
  return kLatency;
}

Bytes lines(std::int64_t count) {
  return Bytes(count * kLineBytes);
}

/// Time that a stream needs for `segments`.
Picoseconds time_of(const StreamWindow& window, const std::vector<Segment>& segments) {
  LineStream stream(window);
  stream.begin(Picoseconds());
  for (const Segment& segment : segments) {
    stream.push(segment);
  }
  FakeMemory memory(stream, constant);
  memory.run();
  EXPECT_TRUE(stream.idle());
  return stream.used_until();
}

TEST(LineStream, MovesItsLinesInFlightOncePerLatency) {
  for (const std::int64_t n : {1, 2, 8, 28}) {
    const Picoseconds time =
        time_of({.in_flight = n, .ahead = 2 * n, .stores = n}, {run_of(0, lines(n * 50))});
    EXPECT_EQ(time, kLatency * 50) << n;  // n x 64 B / latency
  }
}

TEST(LineStream, KeepsThePaceOfItsWork) {
  Segment segment = run_of(0, lines(1000));
  segment.per_line = 20_ns;
  const Picoseconds time = time_of({.in_flight = 16, .ahead = 32, .stores = 16}, {segment});
  EXPECT_EQ(time, kLatency + 1000 * segment.per_line);
}

TEST(LineStream, ComputeBoundWorkStallsForItsFirstLineOnly) {
  LineStream stream({.in_flight = 16, .ahead = 32, .stores = 16});
  stream.begin(Picoseconds());
  Segment segment = run_of(0, lines(1000));
  segment.per_line = 20_ns;
  stream.push(segment);
  FakeMemory(stream, constant).run();
  EXPECT_EQ(stream.engine_time().stalls.part(Owner::latency), kLatency);
  EXPECT_EQ(stream.engine_time().stalls.total(), kLatency);
  EXPECT_EQ(stream.engine_time().behind_data, Picoseconds());
}

// Lines run at most `ahead` before the one in use: that many come a latency and a line's work after another.
TEST(LineStream, RunsAtMostAheadOfTheLineInUse) {
  constexpr std::int64_t kAhead = 8;
  Segment segment = run_of(0, lines(kAhead * 50));
  segment.per_line = 3_ns;
  const Picoseconds time = time_of({.in_flight = kAhead, .ahead = kAhead}, {segment});
  EXPECT_EQ(time, 50 * (kLatency + segment.per_line) + (kAhead - 1) * segment.per_line);
}

TEST(LineStream, APrefetcherStartsAnewAtEveryPage) {
  const StreamWindow window{.in_flight = 64, .ahead = 128, .training = 3, .page = 4_KiB};
  Segment segment = run_of(0, 4_KiB * 20);
  segment.demand_lines = 1;  // the three misses that train it come one after the other
  EXPECT_EQ(time_of(window, {segment}), 20 * 3 * kLatency);
  segment.demand_lines = 3;  // side by side
  EXPECT_EQ(time_of(window, {segment}), 20 * kLatency);
}

TEST(LineStream, AnEngineThatKnowsItsAddressesDoesNotStopAtPages) {
  const StreamWindow window{.in_flight = 64, .ahead = 128, .training = 0, .page = 4_KiB};
  Segment segment = run_of(0, 4_KiB * 20);
  EXPECT_EQ(time_of(window, {segment}), 20 * kLatency);
  const StreamWindow wide{.in_flight = 640, .ahead = 1280, .training = 0, .page = 4_KiB};
  EXPECT_EQ(time_of(wide, {segment}), 2 * kLatency);
}

TEST(LineStream, StoresLeaveAsMemoryTakesThem) {
  LineStream stream({.stores = 4});
  stream.begin(Picoseconds());
  stream.push(run_of(0, lines(200), Access::write));
  FakeMemory memory(stream, constant);
  memory.run();
  ASSERT_EQ(memory.transfers().size(), 200U);
  for (std::size_t i = 0; i < 200; ++i) {
    ASSERT_EQ(memory.transfers()[i].asked, kLatency * static_cast<std::int64_t>(i / 4));
  }
  EXPECT_EQ(stream.used_until(), memory.transfers().back().asked);  // the core goes on when the last has left
}

TEST(LineStream, AStoreWaitsForTheWorkBeforeIt) {
  LineStream stream({.in_flight = 4, .ahead = 8, .stores = 4});
  stream.begin(Picoseconds());
  Segment read = run_of(0, lines(4));
  read.per_line = 10_ns;
  Segment write = run_of(1 << 20, lines(1), Access::write);
  write.lead_in = 5_ns;
  stream.push(read);
  stream.push(write);
  FakeMemory memory(stream, constant);
  memory.run();
  EXPECT_EQ(memory.transfers().back().asked, kLatency + 4 * read.per_line + write.lead_in);
}

TEST(LineStream, APostedWriteLeavesAtOnce) {
  LineStream stream({.in_flight = 4, .ahead = 8, .stores = 4});
  stream.begin(Picoseconds());
  Segment write = run_of(1 << 20, lines(1), Access::write);
  write.posted = true;
  stream.push(run_of(0, lines(4)));
  stream.push(write);
  FakeMemory memory(stream, constant);
  memory.run();
  EXPECT_EQ(memory.transfers().back().asked, Picoseconds());
  EXPECT_EQ(stream.used_until(), kLatency);
}

// Write-backs are the cache's, on the way to their own pages: the prefetcher does not see them.
TEST(LineStream, APostedWriteDoesNotStopThePrefetcher) {
  const StreamWindow window{.in_flight = 64, .ahead = 128, .stores = 64, .training = 3, .page = 4_KiB};
  Segment write = run_of(1 << 20, lines(1), Access::write);
  write.posted = true;
  std::vector<Segment> segments;
  for (trace::Address address = 0; address < 4096 * 20; address += 1024) {
    segments.push_back(run_of(address, 1_KiB));
    segments.push_back(write);
  }
  EXPECT_EQ(time_of(window, segments), 20 * 3 * kLatency);
}

TEST(LineStream, WorkOnDataAtHandComesBeforeTheFirstLine) {
  Segment first = run_of(0, lines(1));
  Segment second = run_of(4096, lines(1));
  second.lead_in = 250_ns;
  second.per_line = 7_ns;
  EXPECT_EQ(time_of({.in_flight = 4, .ahead = 8}, {first, second}),
            kLatency + second.lead_in + second.per_line);
  second.lead_in = 0_ns;
  EXPECT_EQ(time_of({.in_flight = 4, .ahead = 8}, {first, second}), kLatency + second.per_line);
}

TEST(LineStream, EachSegmentsEndIsTold) {
  LineStream stream({.in_flight = 2, .ahead = 2});
  stream.begin(1_us);
  stream.push(run_of(0, lines(2)));
  stream.push(run_of(128, lines(2)));
  FakeMemory(stream, constant).run();
  ASSERT_EQ(stream.finished().size(), 2U);
  EXPECT_EQ(stream.finished().front(), 1_us + kLatency);
  stream.finished().pop();
  EXPECT_EQ(stream.finished().front(), 1_us + 2 * kLatency);
}

TEST(LineStream, BeginsAgainWithAnEmptyWindow) {
  LineStream stream({.in_flight = 2, .ahead = 2});
  for (const Picoseconds start : {0_us, 5_us, 9_us}) {
    stream.begin(start);
    stream.push(run_of(0, lines(20)));
    FakeMemory(stream, constant).run();
    EXPECT_EQ(stream.used_until(), start + 10 * kLatency);
    EXPECT_EQ(stream.engine_time().stalls.total(), 10 * kLatency);
  }
}

/// Lines that a segment asks for.
std::vector<trace::Address> asked(const Segment& segment) {
  LineStream stream({.in_flight = 64, .ahead = 64, .stores = 64});
  stream.begin(Picoseconds());
  stream.push(segment);
  FakeMemory memory(stream, constant);
  memory.run();
  return testing::lines_of(memory.transfers());
}

TEST(LineStream, AsksForEveryLineThatARunTouches) {
  EXPECT_THAT(asked(run_of(100, 1_B)), ElementsAre(64));
  EXPECT_THAT(asked(run_of(100, 100_B)), ElementsAre(64, 128, 192));
  EXPECT_THAT(asked(run_of(64, 128_B)), ElementsAre(64, 128));
}

TEST(LineStream, RowsKeepTheirStride) {
  Segment rows = run_of(0, 128_B);
  rows.rows = 3;
  rows.stride = 4096_B;
  EXPECT_THAT(asked(rows), ElementsAre(0, 64, 4096, 4160, 8192, 8256));
}

TEST(LineStream, ALineThatTwoRowsShareIsAskedForOnce) {
  Segment rows = run_of(32, 40_B);
  rows.rows = 4;
  rows.stride = 48_B;  // rows at 32, 80, 128, 176: the second lies in the first's last line, and so on
  EXPECT_THAT(asked(rows), ElementsAre(0, 64, 128, 192));
}

}  // namespace
}  // namespace kvsim::model
