// SPDX-License-Identifier: Apache-2.0
// Does a stream get the bandwidth that the part's table allows, and never more? Do trains agree with bursts?
#include "models/dram/request_player.h"

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "configs/spec/catalogue.h"
#include "configs/spec/named_map.h"
#include "configs/spec/resolve.h"
#include "models/dram/load_curve.h"

namespace kvsim::model {
namespace {

using namespace literals;

/// Requests of a list.
class ListSource : public RequestSource {
 public:
  explicit ListSource(std::vector<PackedRequest> requests) : requests_(std::move(requests)) {}
  std::span<const PackedRequest> next() override {
    if (done_) {
      return {};
    }
    done_ = true;
    return requests_;
  }

 private:
  std::vector<PackedRequest> requests_;
  bool done_ = false;
};

config::AddressMapSpec row_bank_column(const config::DramPartSpec& part) {
  config::AddressMapSpec map;
  int next = 0;
  const auto deal = [&](std::vector<config::AddressBit>& to, std::int64_t values) {
    for (; values > 1; values /= 2) {
      to.push_back({std::uint64_t{1} << next++});
    }
  };
  deal(map.column, row_bytes(part).count());
  deal(map.bank, part.banks);
  deal(map.row, part.rows);
  return map;
}

config::AddressMapSpec bank_row_column(const config::DramPartSpec& part) {
  config::AddressMapSpec map = row_bank_column(part);
  std::uint64_t bit = map.column.back().mask;
  for (std::vector<config::AddressBit>* bits : {&map.row, &map.bank}) {
    for (config::AddressBit& each : *bits) {
      each.mask = bit <<= 1;
    }
  }
  return map;
}

struct Rig {
  config::DramPartSpec part = config::load_dram_part("lpddr4-3200");
  config::MemoryControllerSpec controller;

  Rig() {
    controller.channels = 1;
    controller.refresh = config::RefreshMode::all_bank;
    controller.age_cap = 2_us;
    controller.mapping = row_bank_column(part);
  }
  [[nodiscard]] Bytes capacity() const { return rank_bytes(part) * controller.channels; }
  [[nodiscard]] PlayResult play(RequestSource& source, Decisions decisions = Decisions::bursts) const {
    return RequestPlayer(part, controller, decisions).play(source);
  }
  [[nodiscard]] PlayResult play_pattern(PatternSpec spec, Decisions decisions = Decisions::bursts) const {
    spec.capacity = capacity();
    PatternSource source(spec);
    return play(source, decisions);
  }
  [[nodiscard]] PlayResult play(std::vector<PackedRequest> list,
                                Decisions decisions = Decisions::bursts) const {
    ListSource source(std::move(list));
    return play(source, decisions);
  }
};

double gbs(const PlayResult& result) {
  return (result.moved / result.elapsed).count() / 1e9;
}

// The closed form of issue trackers and simulators alike: the bus is silent from the last read before a
// refresh to the first one after it. All terms from the part's table: 1 - (14 + 34 + 448 - 2 + 29)/6246.
TEST(RequestPlayer, SequentialBandwidthIsWhatRefreshLeaves) {
  for (const Decisions decisions : {Decisions::bursts, Decisions::rows}) {
    const PlayResult result = Rig().play_pattern({.requests = 400'000}, decisions);
    EXPECT_NEAR(gbs(result) / (12.8 * (1 - 523.0 / 6246)), 1.0, 0.005);
  }
}

// Four activates in 64 clocks, each good for 64 B, and none in 523 of 6246 clocks.
TEST(RequestPlayer, RandomBandwidthIsWhatActivatesAllow) {
  for (const Decisions decisions : {Decisions::bursts, Decisions::rows}) {
    const PlayResult result =
        Rig().play_pattern({.pattern = Pattern::random, .requests = 200'000}, decisions);
    EXPECT_NEAR(gbs(result) / (6.4 * (1 - 523.0 / 6246)), 1.0, 0.03);
  }
}

// ACT-1, ACT-2, two RD and a PRE for each line, of which 4 CK of data and 4 CK of tFAW / 4 go at once:
// LPDDR5's command bus is what limits random lines. With auto-precharge the PRE is saved.
TEST(RequestPlayer, RandomBandwidthOfLpddr5IsWhatItsCommandBusAllows) {
  Rig rig;
  rig.part = config::load_dram_part("lpddr5_6400_16gb");
  rig.controller.mapping = row_bank_column(rig.part);
  rig.controller.refresh = config::RefreshMode::none;
  for (const auto& [policy, clocks] :
       {std::pair{config::PagePolicy::open, 5.0}, {config::PagePolicy::closed, 4.0}}) {
    rig.controller.page_policy = policy;
    const PlayResult result = rig.play_pattern({.pattern = Pattern::random, .requests = 50'000});
    const double bound = 64 * 0.8 / clocks;
    EXPECT_NEAR(gbs(result) / bound, 1, 0.01);
    const BoundCase c{.part = rig.part, .controller = rig.controller, .elapsed = result.elapsed};
    EXPECT_NEAR(bandwidth_bound(c, Pattern::random).count() / 1e9 / bound, 1, 0.001);
    EXPECT_LE(gbs(result), bandwidth_bound(c, Pattern::random).count() / 1e9);
  }
}

std::vector<std::string> dram_parts() {
  std::vector<std::string> all;
  for (const std::string& part : config::catalogue_ids("dram")) {
    if (!config::load_dram_part(part).psram) {
      all.push_back(part);
    }
  }
  return all;
}

class EveryPart : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPart, ReadsAtRandomWithinThreePerCentOfItsBound) {
  for (const config::PagePolicy policy : {config::PagePolicy::open, config::PagePolicy::closed}) {
    Rig rig;
    rig.part = config::load_dram_part(GetParam());
    rig.controller.mapping = row_bank_column(rig.part);
    rig.controller.read_queue = 256;
    rig.controller.page_policy = policy;
    const PlayResult result = rig.play_pattern({.pattern = Pattern::random, .requests = 50'000});
    const BoundCase c{.part = rig.part, .controller = rig.controller, .elapsed = result.elapsed};
    const double share = gbs(result) * 1e9 / bandwidth_bound(c, Pattern::random).count();
    EXPECT_GT(share, 0.97);
    EXPECT_LE(share, 1);
  }
}

// Rows of one bank one after the other, so that no line of another bank group is in reach. Changing the row
// takes tRPpb and tRCD, which a row of 2 KiB does not hide.
TEST_P(EveryPart, ReadsAndWritesABankGroupWithinThreePerCentOfItsBound) {
  Rig rig;
  rig.part = config::load_dram_part(GetParam());
  rig.controller.mapping = bank_row_column(rig.part);
  rig.controller.refresh = config::RefreshMode::none;
  const ClockTiming t = clock_timing(rig.part, true);
  for (const bool reads : {true, false}) {
    const auto share = reads ? 1.0 : 0.0;
    const PlayResult result = rig.play_pattern({.requests = 50'000, .read_share = share});
    const BoundCase c{
        .part = rig.part, .controller = rig.controller, .elapsed = result.elapsed, .read_share = share};
    const auto spacing = static_cast<double>(reads ? t.tCCD_L : t.tCCD_L_WR);
    const double clock = command_clock(rig.part).as_double();
    const double bound = burst_bytes(rig.part).as_double() * clock / spacing;
    EXPECT_NEAR(bandwidth_bound(c, Pattern::seq).count() / bound, 1, 1e-6);
    const auto columns = static_cast<double>(rig.part.columns / rig.part.burst_length);
    const Cycle closing = reads ? t.read_to_precharge : t.write_to_precharge;
    const auto row = columns * spacing - spacing + static_cast<double>(closing + t.tRPpb + t.tRCD);
    EXPECT_NEAR(gbs(result) * 1e9 / (bound * columns * spacing / row), 1, 0.03);
    EXPECT_LE(gbs(result) * 1e9, bound);
  }
}
INSTANTIATE_TEST_SUITE_P(All, EveryPart, ::testing::ValuesIn(dram_parts()));

struct BoundSweep {
  std::string part;
  Pattern pattern;
};
void PrintTo(const BoundSweep& c, std::ostream* out) {
  *out << c.part << ' ' << to_string(c.pattern);
}
class Bound : public ::testing::TestWithParam<BoundSweep> {};

TEST_P(Bound, IsNeverExceeded) {
  for (const double read_share : {1.0, 0.7}) {
    for (const config::QueueKind queue : {config::QueueKind::shared, config::QueueKind::bank}) {
      for (const Decisions decisions : {Decisions::bursts, Decisions::rows}) {
        Rig rig;
        rig.part = config::load_dram_part(GetParam().part);
        rig.controller.mapping = row_bank_column(rig.part);
        rig.controller.queue = queue;
        rig.controller.page_policy =
            queue == config::QueueKind::bank ? config::PagePolicy::closed : config::PagePolicy::open;
        const bool per_bank = read_share == 1 && rig.part.timing.tRFCpb != config::ClockedTime{};
        rig.controller.refresh = per_bank ? config::RefreshMode::per_bank : config::RefreshMode::all_bank;
        const PlayResult result = rig.play_pattern(
            {.pattern = GetParam().pattern, .requests = 20'000, .read_share = read_share, .streams = 4},
            decisions);
        const BytesPerSecond bound = bandwidth_bound({.part = rig.part,
                                                      .controller = rig.controller,
                                                      .elapsed = result.elapsed,
                                                      .read_share = read_share,
                                                      .streams = 4},
                                                     GetParam().pattern);
        EXPECT_LE(gbs(result), bound.count() / 1e9);
      }
    }
  }
}

std::vector<BoundSweep> bound_sweep() {
  std::vector<BoundSweep> all;
  for (const std::string& part : dram_parts()) {
    for (int pattern = 0; pattern < kPatterns; ++pattern) {
      all.push_back({part, static_cast<Pattern>(pattern)});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Bound, ::testing::ValuesIn(bound_sweep()));

struct Agreement {
  Pattern pattern;
  double read_share;
  std::int64_t streams;
  config::QueueKind queue;
  double bandwidth;  ///< allowed relative difference
  std::string part = "lpddr4-3200";
};
void PrintTo(const Agreement& c, std::ostream* out) {
  *out << c.part << ' ' << to_string(c.pattern) << ' ' << c.streams << ' ' << c.read_share
       << (c.queue == config::QueueKind::bank ? " bank" : "");
}
class Trains : public ::testing::TestWithParam<Agreement> {};

/// With the map that `kvsim dram` takes if none is given.
Rig usual_rig(const std::string& part) {
  Rig rig;
  rig.part = config::load_dram_part(part);
  rig.controller.mapping = {};
  rig.controller.mapping.order =
      rig.part.bank_groups > 1 ? config::MapOrder::row_bank_column_group : config::MapOrder::row_bank_column;
  config::name_masks(rig.controller.mapping, rig.part, {});
  return rig;
}

TEST_P(Trains, AgreeWithBursts) {
  const Agreement& c = GetParam();
  Rig rig = usual_rig(c.part);
  rig.controller.queue = c.queue;
  if (c.queue == config::QueueKind::bank) {
    rig.controller.read_queue = 8;
  }
  const PatternSpec spec{
      .pattern = c.pattern, .requests = 300'000, .read_share = c.read_share, .streams = c.streams};
  const PlayResult exact = rig.play_pattern(spec);
  const PlayResult train = rig.play_pattern(spec, Decisions::rows);
  EXPECT_NEAR(gbs(train) / gbs(exact), 1.0, c.bandwidth);
  EXPECT_NEAR(ratio(train.mean_read_latency, exact.mean_read_latency), 1.0, 0.05);
  EXPECT_EQ(train.requests, exact.requests);
  EXPECT_EQ(train.counters.reads + train.counters.writes, exact.counters.reads + exact.counters.writes);
}

constexpr config::QueueKind kShared = config::QueueKind::shared;
constexpr config::QueueKind kBank = config::QueueKind::bank;
INSTANTIATE_TEST_SUITE_P(Patterns, Trains,
                         ::testing::Values(Agreement{Pattern::seq, 1, 1, kShared, 0.005},
                                           Agreement{Pattern::seq, 1, 1, kBank, 0.005},
                                           Agreement{Pattern::kv, 0.9, 4, kShared, 0.02},
                                           Agreement{Pattern::kv, 0.9, 4, kBank, 0.02},
                                           Agreement{Pattern::seq, 0.7, 2, kShared, 0.02},
                                           Agreement{Pattern::mix, 1, 1, kShared, 0.02},
                                           Agreement{Pattern::mix, 0.7, 2, kBank, 0.02},
                                           Agreement{Pattern::seq, 0.5, 4, kShared, 0.02},
                                           Agreement{Pattern::random, 1, 1, kShared, 0.03},
                                           Agreement{Pattern::random, 0.7, 1, kBank, 0.03},
                                           Agreement{Pattern::stride, 1, 1, kShared, 0.03}));

// Where bank groups take turns a row's lines are joined, but their bursts alternate with other groups'.
std::vector<Agreement> grouped_cases() {
  std::vector<Agreement> all;
  for (const std::string& part : dram_parts()) {
    if (config::load_dram_part(part).bank_groups > 1) {
      for (const config::QueueKind queue : {kShared, kBank}) {
        all.push_back({Pattern::seq, 1, 1, queue, 0.005, part});
      }
      all.push_back({Pattern::seq, 0.7, 2, kShared, 0.02, part});
      all.push_back({Pattern::kv, 1, 4, kShared, 0.02, part});
      all.push_back({Pattern::kv, 0.9, 4, kBank, 0.02, part});
      all.push_back({Pattern::mix, 0.7, 2, kShared, 0.02, part});
      all.push_back({Pattern::random, 1, 1, kShared, 0.03, part});
      all.push_back({Pattern::stride, 1, 1, kShared, 0.02, part});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(BankGroups, Trains, ::testing::ValuesIn(grouped_cases()));

// One read alone: activate, read, and its beats, after the activate's own four edges.
TEST(RequestPlayer, LatencyOfOneRead) {
  for (const Decisions decisions : {Decisions::bursts, Decisions::rows}) {
    const PlayResult result = Rig().play({pack(4096, false)}, decisions);
    EXPECT_EQ(result.mean_read_latency, Picoseconds((4 + 29 + 34 + 8) * 625));
    EXPECT_EQ(result.elapsed, Picoseconds((4 + 29 + 34 + 8) * 625));
  }
}

// With one place a request enters when the one before it is on its way: from read to read in an open row.
TEST(RequestPlayer, APlaceIsFreeWithTheReadCommand) {
  Rig rig;
  rig.controller.read_queue = 1;
  const PlayResult result = rig.play({pack(0, false), pack(64, false), pack(128, false)});
  EXPECT_EQ(result.elapsed, Picoseconds((4 + 29 + 8 + 8 + 34 + 8) * 625));
  EXPECT_EQ(result.latencies.max(), 4 + 29 + 34 + 8);
}

TEST(RequestPlayer, WhatWaitsKeepsBackWhatFollows) {
  Rig rig;
  rig.controller.queue = kBank;
  rig.controller.read_queue = 1;
  // The second request waits for the first one's place; the third is for another bank, and waits with it.
  const PlayResult in_line = rig.play({pack(0, false), pack(1 << 15, false), pack(4096, false)});
  const PlayResult beside = rig.play({pack(0, false), pack(4096, false), pack(1 << 15, false)});
  EXPECT_GT(in_line.mean_read_latency, Picoseconds());
  EXPECT_EQ(beside.counters.row_conflicts, 1);
  EXPECT_EQ(in_line.counters.row_conflicts, 1);
  EXPECT_NE(in_line.mean_read_latency, beside.mean_read_latency);
}

TEST(RequestPlayer, AnUnalignedReadTakesTheBurstsItTouches) {
  const PlayResult result = Rig().play({pack(32, false), pack(4096 - 32, false)});
  EXPECT_EQ(result.requests, 2);
  EXPECT_EQ(result.counters.reads, 4);
  EXPECT_EQ(result.counters.activates, 2);
  EXPECT_EQ(result.latencies.count(), 2);
}

TEST(RequestPlayer, PartsOfBurstsAreWrittenMasked) {
  Rig rig;
  RequestPlayer player(rig.part, rig.controller, Decisions::bursts);
  std::vector<IssuedCommand> log;
  player.log_commands(0, &log);
  ListSource source({pack(0, true), pack(4096 * 3 + 16, true)});
  static_cast<void>(player.play(source));
  int masked = 0;
  int whole = 0;
  for (const IssuedCommand& command : log) {
    masked += command.command == Command::masked_write;
    whole += command.command == Command::write;
  }
  EXPECT_EQ(masked, 2);
  EXPECT_EQ(whole, 1);
}

TEST(RequestPlayer, LinesOfTwoBurstsAreOneRequest) {
  Rig rig;
  rig.part = config::load_dram_part("lpddr4_3200_8gb");
  rig.controller.mapping = row_bank_column(rig.part);
  const PlayResult result = rig.play({pack(0, false), pack(64, false)});
  EXPECT_EQ(result.requests, 2);
  EXPECT_EQ(result.latencies.count(), 2);
  EXPECT_EQ(result.counters.reads, 4);
}

TEST(RequestPlayer, BeyondTheMemoryIsAUserError) {
  const Rig rig;
  const auto end = static_cast<std::uint64_t>(rig.capacity().count());
  EXPECT_NO_THROW(static_cast<void>(rig.play({pack(end - 64, false)})));
  for (const Decisions decisions : {Decisions::bursts, Decisions::rows}) {
    EXPECT_THROW(static_cast<void>(rig.play({pack(end - 63, false)}, decisions)), UserError);
    EXPECT_THROW(static_cast<void>(rig.play({pack(0, false), pack(end, true)}, decisions)), UserError);
    EXPECT_THROW(static_cast<void>(rig.play({~PackedRequest{0}}, decisions)), UserError);
  }
}

/// Dies of 6 Gb: three quarters of the rows. Addresses end there, though the row has a bit more.
TEST(RequestPlayer, MemoryEndsWithItsRows) {
  Rig rig;
  rig.part.rows = rig.part.rows / 4 * 3;
  rig.controller.mapping.order = config::MapOrder::row_bank_column;
  config::name_masks(rig.controller.mapping, rig.part, {});
  const auto end = static_cast<std::uint64_t>(rig.capacity().count());
  EXPECT_EQ(rig.capacity(), 1536_MiB);
  for (const Decisions decisions : {Decisions::bursts, Decisions::rows}) {
    EXPECT_EQ(rig.play({pack(0, false), pack(end - 64, true)}, decisions).moved, 128_B);
    EXPECT_THROW(static_cast<void>(rig.play({pack(end, false)}, decisions)), UserError);
  }
}

TEST(RequestPlayer, NothingAskedForTakesNoTime) {
  const PlayResult result = Rig().play(std::vector<PackedRequest>());
  EXPECT_EQ(result.requests, 0);
  EXPECT_EQ(result.elapsed, Picoseconds());
}

TEST(RequestPlayer, BusCyclesAndLatencyPartsAddUp) {
  for (const Pattern pattern : {Pattern::seq, Pattern::random, Pattern::kv, Pattern::mix}) {
    const Rig rig;
    const PlayResult result =
        rig.play_pattern({.pattern = pattern, .requests = 50'000, .read_share = 0.8, .streams = 4});
    const BusCycles& bus = result.bus;
    const std::int64_t all = bus.data + bus.turnaround + bus.refresh + bus.activate + bus.command + bus.idle;
    EXPECT_EQ(CommandClock(command_clock(rig.part)).time(all), result.elapsed);
    EXPECT_EQ(bus.data, 8 * result.requests);
    for (const std::int64_t part : {bus.turnaround, bus.refresh, bus.activate, bus.command, bus.idle}) {
      EXPECT_GE(part, 0);
    }
    const ReadCycles& reads = result.read_cycles;
    EXPECT_NEAR(static_cast<double>(reads.total()) * 625 / static_cast<double>(result.reads),
                result.mean_read_latency.as_double(), 2.0);
    for (const std::int64_t part :
         {reads.queue, reads.refresh, reads.precharge, reads.activate, reads.column, reads.bus}) {
      EXPECT_GE(part, 0);
    }
    std::int64_t hits = 0;
    std::int64_t others = 0;
    for (const BankCounters& bank : result.banks) {
      hits += bank.hits;
      others += bank.misses + bank.conflicts;
    }
    EXPECT_EQ(hits + others, result.requests);
    EXPECT_EQ(others, result.counters.row_misses + result.counters.row_conflicts);
  }
}

TEST(RequestPlayer, FourChannelsServeFourTimesAsMuch) {
  Rig rig;
  rig.controller.channels = 4;
  config::AddressMapSpec& map = rig.controller.mapping;
  map = {};
  int next = 0;
  const auto deal = [&](std::vector<config::AddressBit>& to, int count) {
    for (; count > 0; --count) {
      to.push_back({std::uint64_t{1} << next++});
    }
  };
  deal(map.column, 8);
  deal(map.channel, 2);
  deal(map.column, 4);
  deal(map.bank, 3);
  deal(map.row, 16);
  const PlayResult one = Rig().play_pattern({.requests = 100'000});
  const PlayResult exact = rig.play_pattern({.requests = 400'000});
  const PlayResult train = rig.play_pattern({.requests = 400'000}, Decisions::rows);
  EXPECT_NEAR(gbs(exact) / gbs(one), 4.0, 0.04);
  EXPECT_NEAR(gbs(train) / gbs(exact), 1.0, 0.005);
  EXPECT_NEAR(ratio(train.mean_read_latency, exact.mean_read_latency), 1.0, 0.05);
}

TEST(LoadCurve, LatencyRisesWithLoadAndServiceKeepsUp) {
  const Rig rig;
  Picoseconds before;
  for (const double load : {1.0, 3.0, 5.0}) {
    PatternSource source({.pattern = Pattern::random, .requests = 50'000, .capacity = rig.capacity()});
    const LoadPoint point = load_point(rig.part, rig.controller, source, BytesPerSecond(load * 1e9));
    EXPECT_NEAR(ratio(point.served, point.offered), 1.0, 0.02);
    EXPECT_GT(point.mean_latency, before);
    EXPECT_GE(point.p99_latency, point.mean_latency);
    before = point.mean_latency;
  }
}

}  // namespace
}  // namespace kvsim::model
