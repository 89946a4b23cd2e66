// SPDX-License-Identifier: Apache-2.0
// Whatever is asked of a stream, and however late it comes back: do the window's rules hold?
#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "models/stream/line_stream.h"
#include "models/testing/fake_memory.h"

namespace kvsim::model {
namespace {

using namespace literals;
using testing::FakeMemory;
using testing::Transfer;
using trace::Access;

struct Scenario {
  StreamWindow window;
  std::vector<Segment> segments;
};

std::int64_t pick(Random& random, std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(last - first + 1)));
}

StreamWindow random_window(Random& random) {
  StreamWindow window;
  window.in_flight = pick(random, 1, 40);
  window.ahead = window.in_flight + pick(random, 0, 40);
  window.stores = pick(random, 1, 16);
  window.training = pick(random, 0, 4);
  window.page = Bytes(pick(random, 0, 1) == 0 ? 1024 : 4096);
  return window;
}

/// Runs and strided rows, at any byte, that read; with `writes` also stores and write-backs.
std::vector<Segment> random_segments(Random& random, bool writes) {
  std::vector<Segment> segments;
  const std::int64_t demand = pick(random, 1, 8);
  const Picoseconds per_line(pick(random, 0, 3) == 0 ? 0 : pick(random, 1, 20'000));
  for (std::int64_t i = pick(random, 1, 30); i > 0; --i) {
    Segment s;
    s.address = random.below(1 << 24);
    s.row_bytes = Bytes(pick(random, 1, 3000));
    s.rows = pick(random, 1, 4);
    s.stride = s.row_bytes + Bytes(pick(random, 0, 1) * pick(random, 0, 3000));
    s.per_line = per_line;
    s.demand_lines = demand;
    s.lead_in = Picoseconds(pick(random, 0, 2) == 0 ? pick(random, 0, 300'000) : 0);
    if (writes && pick(random, 0, 3) == 0) {
      s.access = Access::write;
      s.posted = pick(random, 0, 1) == 1;
      if (s.posted) {
        s.per_line = s.lead_in = Picoseconds();
      }
    }
    segments.push_back(s);
  }
  return segments;
}

struct Finished {
  std::vector<Transfer> transfers;
  Picoseconds end;
  EngineTime engine;
};

/// Latencies between 50 and 350 ns, so that lines overtake each other.
Finished run(const Scenario& scenario, std::uint64_t seed, Picoseconds start = {}) {
  LineStream stream(scenario.window);
  stream.begin(start);
  for (const Segment& segment : scenario.segments) {
    stream.push(segment);
  }
  Random random(seed);
  FakeMemory memory(stream, [&](const LineRequest&) { return Picoseconds(pick(random, 50'000, 350'000)); });
  memory.run();
  EXPECT_TRUE(stream.idle());
  EXPECT_EQ(stream.finished().size(), scenario.segments.size());
  return {memory.transfers(), stream.used_until(), stream.engine_time()};
}

/// The rules line by line, as the class comment has them, for reads, without a window that slides.
class Reference {
 public:
  explicit Reference(const StreamWindow& window) : window_(window) {}

  void line(trace::Address address, const Segment& segment, bool leads, Picoseconds latency) {
    const std::size_t k = used_.size();
    Picoseconds asked = asked_.empty() ? Picoseconds() : asked_.back();
    if (k >= pos(window_.in_flight)) {
      asked = std::max(asked, arrived_[k - pos(window_.in_flight)]);
    }
    if (k >= pos(window_.ahead)) {
      asked = std::max(asked, used_[k - pos(window_.ahead)]);
    }
    const auto page = static_cast<std::int64_t>(address) / window_.page.count();
    lines_in_page_ = page == page_ ? lines_in_page_ + 1 : 0;
    page_ = page;
    if (lines_in_page_ < window_.training && k >= pos(segment.demand_lines)) {
      asked = std::max(asked, used_[k - pos(segment.demand_lines)]);
    }
    asked_.push_back(asked);
    const Picoseconds arrived = asked + latency;
    arrived_.insert(std::upper_bound(arrived_.begin(), arrived_.end(), arrived), arrived);
    const Picoseconds free =
        (used_.empty() ? Picoseconds() : used_.back()) + (leads ? segment.lead_in : Picoseconds());
    used_.push_back(std::max(free, arrived) + segment.per_line);
  }
  [[nodiscard]] const std::vector<Picoseconds>& asked() const { return asked_; }
  [[nodiscard]] Picoseconds end() const { return used_.back(); }

 private:
  static std::size_t pos(std::int64_t n) { return static_cast<std::size_t>(n); }

  StreamWindow window_;
  std::vector<Picoseconds> asked_, used_;
  std::vector<Picoseconds> arrived_;  ///< sorted
  std::int64_t page_ = -1;
  std::int64_t lines_in_page_ = 0;
};

/// Lines of each segment in order.
std::vector<std::vector<trace::Address>> expected_lines(const std::vector<Segment>& segments) {
  std::vector<std::vector<trace::Address>> all;
  for (const Segment& s : segments) {
    std::vector<trace::Address>& lines = all.emplace_back();
    for (std::int64_t row = 0; row < s.rows; ++row) {
      const trace::Address start = s.address + static_cast<trace::Address>(row * s.stride.count());
      const trace::Address end = start + static_cast<trace::Address>(s.row_bytes.count());
      for (trace::Address at = start / 64 * 64; at < end; at += 64) {
        if (lines.empty() || at > lines.back()) {
          lines.push_back(at);
        }
      }
    }
  }
  return all;
}

TEST(LineStreamProperty, LineByLineItFollowsTheRules) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Scenario scenario{.window = random_window(random), .segments = random_segments(random, false)};
    const Finished actual = run(scenario, seed);
    Reference reference(scenario.window);
    Random latencies(seed);
    const auto lines = expected_lines(scenario.segments);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      for (std::size_t j = 0; j < lines[i].size(); ++j) {
        reference.line(lines[i][j], scenario.segments[i], j == 0,
                       Picoseconds(pick(latencies, 50'000, 350'000)));
      }
    }
    ASSERT_EQ(actual.transfers.size(), reference.asked().size()) << seed;
    for (std::size_t i = 0; i < reference.asked().size(); ++i) {
      ASSERT_EQ(actual.transfers[i].asked, reference.asked()[i]) << "seed " << seed << ", line " << i;
    }
    ASSERT_EQ(actual.end, reference.end()) << seed;
  }
}

TEST(LineStreamProperty, EveryLineIsAskedForOnceAndInOrder) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Scenario scenario{.window = random_window(random), .segments = random_segments(random, true)};
    std::vector<trace::Address> expected;
    for (const auto& lines : expected_lines(scenario.segments)) {
      expected.insert(expected.end(), lines.begin(), lines.end());
    }
    ASSERT_EQ(testing::lines_of(run(scenario, seed).transfers), expected) << seed;
  }
}

Picoseconds work_of(const std::vector<Segment>& segments) {
  Picoseconds work;
  const auto lines = expected_lines(segments);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    work += segments[i].lead_in + segments[i].per_line * static_cast<std::int64_t>(lines[i].size());
  }
  return work;
}

TEST(LineStreamProperty, AnEngineWorksOrStallsOrIsBehindData) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const Scenario scenario{.window = random_window(random), .segments = random_segments(random, true)};
    const Picoseconds start(pick(random, 0, 1'000'000));
    const Finished actual = run(scenario, seed, start);
    ASSERT_EQ(work_of(scenario.segments) + actual.engine.stalls.total() + actual.engine.behind_data,
              actual.end - start)
        << seed;
    for (int owner = 0; owner < kOwners; ++owner) {
      ASSERT_GE(actual.engine.stalls.part(static_cast<Owner>(owner)), Picoseconds()) << seed;
    }
    ASSERT_GE(actual.engine.behind_data, Picoseconds()) << seed;
  }
}

/// Most reads that are on their way at any time.
std::int64_t most_in_flight(const std::vector<Transfer>& transfers) {
  std::vector<std::pair<Picoseconds, std::int64_t>> changes;
  for (const Transfer& transfer : transfers) {
    if (transfer.request.access == Access::read) {
      changes.emplace_back(transfer.asked, 1);
      changes.emplace_back(transfer.done, -1);
    }
  }
  std::sort(changes.begin(), changes.end());  // at the same time, what arrives makes room first
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const auto& [time, change] : changes) {
    now += change;
    most = std::max(most, now);
  }
  return most;
}

TEST(LineStreamProperty, NoMoreLinesAreInFlightThanTheWindowHolds) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const Scenario scenario{.window = random_window(random), .segments = random_segments(random, true)};
    ASSERT_LE(most_in_flight(run(scenario, seed).transfers), scenario.window.in_flight) << seed;
  }
}

TEST(LineStreamProperty, EqualRunsAreEqual) {
  Random random(9);
  const Scenario scenario{.window = random_window(random), .segments = random_segments(random, true)};
  const Finished first = run(scenario, 9);
  const Finished second = run(scenario, 9);
  EXPECT_EQ(first.end, second.end);
  EXPECT_EQ(first.engine.stalls, second.engine.stalls);
  EXPECT_EQ(first.engine.behind_data, second.engine.behind_data);
}

}  // namespace
}  // namespace kvsim::model
