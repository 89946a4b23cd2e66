// SPDX-License-Identifier: Apache-2.0
// Does a serial PSRAM take what its clocks add up to, and what was measured on a board?
#include "models/psram/psram_player.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "configs/error/test_support.h"
#include "configs/spec/resolve.h"

namespace kvsim::model {
namespace {

using namespace literals;
using trace::Access;

constexpr Cycle kFixed = 3 + 3 + 9 + 3 + 2 + 7;  // setup, command, latency, hold, tCPH, controller's 77.7 ns

config::DramPartSpec esp32s3(std::int64_t line = 64) {
  config::DramPartSpec part = config::load_dram_part("psram_aps6408l_esp32s3");
  part.burst_length = line;
  return part;
}

config::MemoryControllerSpec queue(std::int64_t depth) {
  config::MemoryControllerSpec controller;
  controller.read_queue = depth;
  return controller;
}

PlayResult play(const config::DramPartSpec& part, PatternSpec spec, std::int64_t depth = 1) {
  spec.capacity = rank_bytes(part);
  PatternSource source(spec);
  PsramPlayer player(part, queue(depth));
  while (player.take_batch(source)) {
  }
  return player.result();
}

double mbs(const PlayResult& result) {
  return (result.moved / result.elapsed).count() / 1e6;
}

TEST(PsramBus, AReadIsTheSumOfItsClocks) {
  PsramBus bus(esp32s3());
  const PsramBus::Transfer first = bus.transfer(100, Access::read);
  EXPECT_EQ(first.select, 100 + 7);
  EXPECT_EQ(first.data_start, 107 + 3 + 3 + 9);
  EXPECT_EQ(first.data_end, first.data_start + 32);
  const PsramBus::Transfer second = bus.transfer(100, Access::write);
  EXPECT_EQ(second.select, first.data_end + 3 + 2 + 7);
  EXPECT_EQ(second.data_start, second.select + 3 + 3 + 4);
  EXPECT_EQ(bus.spacing(Access::read), kFixed + 32);
  EXPECT_EQ(bus.spacing(Access::write), kFixed - 5 + 32);
}

// A tCPH in ns counts in clocks, rounded up: 18 ns are two of 12.5 ns.
TEST(PsramBus, TheLargerOfTimeAndClocksCounts) {
  config::DramPartSpec part = esp32s3();
  part.psram->tCPH = {26_ns, 2};
  EXPECT_EQ(PsramBus(part).spacing(Access::read), kFixed + 1 + 32);
}

TEST(PsramPlayer, EveryPatternGetsItsClosedForm) {
  for (const Pattern pattern : {Pattern::seq, Pattern::random, Pattern::stride}) {
    const PlayResult result = play(esp32s3(), {.pattern = pattern, .requests = 10'000});
    EXPECT_NEAR(mbs(result), 64 / (12.5e-3 * (kFixed + 32)), 0.01) << to_string(pattern);
    EXPECT_NEAR(mbs(result) * 1e6, psram_bound(esp32s3(), 1).count(), 1e4);
  }
  const PlayResult writes = play(esp32s3(), {.requests = 10'000, .read_share = 0});
  EXPECT_NEAR(mbs(writes), 64 / (12.5e-3 * (kFixed - 5 + 32)), 0.01);
}

// project-x51/esp32-s3-memorycopy, issue 2: cache lines of 16, 32 and 64 B read by the core, and the formula
// that its author gives for them, 327.7 ns a line and 147 MB/s.
TEST(PsramPlayer, IsWithinATenthOfWhatWasMeasured) {
  for (const auto& [line, measured] : {std::pair{16, 37.0}, {32, 58.1}, {64, 84.2}}) {
    for (const Pattern pattern : {Pattern::seq, Pattern::random}) {
      const double got = mbs(play(esp32s3(line), {.pattern = pattern, .requests = 10'000}));
      EXPECT_NEAR(got / measured, 1, 0.1) << line << ' ' << to_string(pattern);
      EXPECT_NEAR(line / got / (0.3277 + line / 147.0), 1, 0.1) << line;
    }
  }
}

TEST(PsramPlayer, LatencyIsOfTheQueue) {
  const PlayResult one = play(esp32s3(), {.requests = 1000}, 1);
  const PlayResult eight = play(esp32s3(), {.requests = 10'000}, 8);
  const double spacing = 12'500.0 * (kFixed + 32);
  EXPECT_NEAR(one.mean_read_latency.as_double() / spacing, 1, 0.01);
  EXPECT_NEAR(eight.mean_read_latency.as_double() / spacing, 8, 0.05);
}

TEST(PsramPlayer, CyclesAddUp) {
  const PlayResult r = play(esp32s3(32), {.pattern = Pattern::mix, .requests = 5000, .read_share = 0.7}, 4);
  const Cycle all = r.bus.data + r.bus.refresh + r.bus.command;
  EXPECT_EQ(CommandClock(80_MHz).time(all), r.elapsed);
  EXPECT_EQ(r.counters.reads + r.counters.writes, 2 * r.requests);
  EXPECT_EQ(CommandClock(80_MHz).time(r.read_cycles.total()) / r.reads, r.mean_read_latency);
  EXPECT_EQ(r.latencies.count(), r.reads);
}

// Variable latency: a command that comes in the 9 clocks of a refresh waits 9 clocks more. Back to back, the
// refreshes that fall due while the chip is selected (all but 9 of 59 clocks) begin at its end, and so meet
// the next command, 9 clocks later, just no more.
TEST(PsramPlayer, HiddenRefreshLengthensSomeReads) {
  config::DramPartSpec part = esp32s3();
  part.psram->refresh_latency = {{}, 20};
  part.psram->tREFI = {{}, 590};
  const PlayResult result = play(part, {.pattern = Pattern::random, .requests = 10'000});
  const double spacing = kFixed + 32;
  const double refreshes = static_cast<double>(result.bus.refresh) / 20;
  const auto all = static_cast<double>(result.bus.data + result.bus.refresh + result.bus.command);
  EXPECT_NEAR(refreshes, all / 590, all / 590 * 0.01) << "back to back, every refresh is in the way";
  EXPECT_NEAR(all, 10'000 * spacing + refreshes * 20, 100);
  EXPECT_LT(mbs(result) * 1e6, psram_bound(part, 1).count());
}

TEST(PsramPlayer, ARefreshThatIsOverCostsNothing) {
  config::DramPartSpec part = esp32s3();
  part.psram->refresh_latency = {{}, 9};
  part.psram->tREFI = {{}, 1000};
  PsramBus bus(part);
  EXPECT_EQ(bus.transfer(1100, Access::read).waited, 0);
  EXPECT_EQ(bus.transfer(1998, Access::read).waited, 9) << "select at 2005, in the one of 2000";
  EXPECT_EQ(bus.transfer(5003, Access::read).waited, 0);
}

class ListSource : public RequestSource {
 public:
  explicit ListSource(std::vector<PackedRequest> requests) : requests_(std::move(requests)) {}
  std::span<const PackedRequest> next() override { return std::exchange(done_, true) ? Batch{} : requests_; }

 private:
  using Batch = std::span<const PackedRequest>;
  std::vector<PackedRequest> requests_;
  bool done_ = false;
};

TEST(PsramPlayer, UnalignedRequestsTakeEveryLineTheyTouch) {
  ListSource source({pack(0, false), pack(8, false)});
  PsramPlayer player(esp32s3(), queue(8));
  while (player.take_batch(source)) {
  }
  EXPECT_EQ(player.result().counters.reads, 3);
}

TEST(PsramPlayer, RequestsBeyondTheEndAreRefused) {
  ListSource source({pack(8 * 1024 * 1024 - 60, false)});
  PsramPlayer player(esp32s3(), queue(8));
  EXPECT_THROW(static_cast<void>(player.take_batch(source)), UserError);
}

TEST(PsramLoad, IsServedAndWaitsLongerTheMoreIsAsked) {
  const config::DramPartSpec part = esp32s3();
  Picoseconds last{};
  for (const double load : {0.1, 0.5, 0.9}) {
    PatternSource source({.pattern = Pattern::random, .requests = 20'000, .capacity = rank_bytes(part)});
    const LoadPoint point =
        psram_load_point(part, source, BytesPerSecond(psram_bound(part, 1).count() * load));
    EXPECT_NEAR(ratio(point.served, point.offered), 1, 0.03);
    EXPECT_GT(point.mean_latency, last);
    last = point.mean_latency;
  }
}

}  // namespace
}  // namespace kvsim::model
