// SPDX-License-Identifier: Apache-2.0
// Whatever is asked of a channel: does it keep every rule of the part, and serve everything once?
#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/resolve.h"
#include "models/dram/channel.h"
#include "models/dram/legality.h"
#include "models/testing/channel_bench.h"
#include "models/testing/energy_recount.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using config::RefreshMode;
using testing::ChannelBench;

struct Case {
  std::string name;
  config::DeviceSpec device;
  std::uint16_t max_bursts = 1;
  std::uint64_t seed = 0;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

/// Queues from tiny to roomy, and an age cap from none to long.
void randomise_controller(config::MemoryControllerSpec& controller, Random& random) {
  controller.read_queue = 1 + static_cast<std::int64_t>(random.below(64));
  controller.write_queue = 1 + static_cast<std::int64_t>(random.below(64));
  controller.write_high =
      1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(controller.write_queue)));
  controller.write_low =
      static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(controller.write_high)));
  controller.age_cap = Picoseconds(static_cast<std::int64_t>(random.below(4'000'000)));
}

/// Page policy, queue, postponed refreshes, and sleep after pauses that the traffic has.
void randomise_policies(config::DeviceSpec& device, Random& random) {
  config::MemoryControllerSpec& controller = device.controller;
  const auto most_postponed = static_cast<std::uint64_t>(config::most_postponed(device.dram));
  const auto up_to = [&](std::uint64_t picoseconds) {
    return Picoseconds(static_cast<std::int64_t>(random.below(picoseconds)));
  };
  controller.page_policy = static_cast<config::PagePolicy>(random.below(3));
  controller.page_timeout = up_to(2'000'000);
  controller.queue = static_cast<config::QueueKind>(random.below(2));
  controller.postponed_refreshes = static_cast<std::int64_t>(random.below(most_postponed + 1));
  if (random.below(3) != 0) {
    controller.power_down = up_to(3'000'000);
  }
  if (random.below(3) != 0) {
    controller.self_refresh = up_to(9'000'000);
  }
}

/// One to four of them, as many as a channel can have.
std::int64_t some_ranks(const config::DramPartSpec& part, std::size_t number) {
  return std::min<std::int64_t>(1 + static_cast<std::int64_t>(number % 4), 64 / part.banks);
}

config::DeviceSpec ddr5_device() {
  config::DeviceSpec device = testing::device();
  device.dram = config::load_dram_part("ddr5_4800");
  return device;
}

std::string_view name_of(config::DramStandard standard) {
  return standard == config::DramStandard::ddr5     ? "ddr5"
         : standard == config::DramStandard::lpddr5 ? "lpddr5"
                                                    : "lpddr4x";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const config::DeviceSpec& device : {testing::device(), testing::lpddr5_device(), ddr5_device()}) {
    for (const RefreshMode refresh : {RefreshMode::none, RefreshMode::all_bank, RefreshMode::per_bank}) {
      for (const std::uint16_t max_bursts : {1, 32}) {
        for (const bool turnaround : {true, false}) {
          Case c{.name = std::string(name_of(device.dram.standard)) + "_refresh" +
                         std::to_string(static_cast<int>(refresh)) + (max_bursts == 1 ? "_burst" : "_train") +
                         (turnaround ? "" : "_freebus"),
                 .device = device,
                 .max_bursts = max_bursts,
                 .seed = all.size()};
          Random random(c.seed);
          randomise_controller(c.device.controller, random);
          c.device.controller.refresh = refresh;
          c.device.controller.turnaround = turnaround;
          c.device.controller.ranks = some_ranks(c.device.dram, all.size());
          all.push_back(c);
        }
      }
    }
  }
  const std::size_t plain = all.size();
  for (std::size_t i = 0; i < 4 * plain; ++i) {
    Case c = all[i % plain];
    c.name += "_policies" + std::to_string(i / plain);
    c.seed = all.size();
    Random random(c.seed);
    randomise_policies(c.device, random);
    c.device.controller.ranks = some_ranks(c.device.dram, i % plain + i / plain);
    all.push_back(c);
  }
  return all;
}

/// Phases of traffic: bursts of arrivals and pauses, one direction or both, few banks and rows or many.
void add_traffic(ChannelBench& bench, const Case& c, std::vector<RowRun>& runs) {
  Random random(c.seed + 1000);
  const auto banks = static_cast<std::uint64_t>(c.device.dram.banks * c.device.controller.ranks);
  Cycle arrival = 0;
  for (int phase = 0; phase < 40; ++phase) {
    const std::uint64_t gap = random.below(3) == 0 ? 1 : 1 + random.below(200);
    const std::uint64_t writes = random.below(101);
    const std::uint64_t bank_range = 1 + random.below(banks);
    const std::uint64_t row_range = 1 + random.below(4);
    for (int i = 0; i < 200; ++i) {
      arrival += static_cast<Cycle>(random.below(gap));
      runs.push_back({.arrival = arrival,
                      .line_spacing = static_cast<Cycle>(random.below(40)),
                      .row = static_cast<std::uint32_t>(random.below(row_range)),
                      .bank = static_cast<std::uint16_t>(random.below(bank_range)),
                      .bursts = static_cast<std::uint16_t>(2 * (1 + random.below(c.max_bursts))),
                      .access = random.below(100) < writes ? trace::Access::write : trace::Access::read});
      if (c.seed % 3 == 2) {
        runs.back().priority = static_cast<std::uint8_t>((7 * i + phase) % 4);
      }
      runs.back().masked = runs.back().access == trace::Access::write && random.below(4) == 0;
      bench.add(runs.back());
    }
    arrival += static_cast<Cycle>(random.below(30'000));  // up to several refresh intervals
  }
}

class ChannelProperty : public ::testing::TestWithParam<Case> {};

TEST_P(ChannelProperty, KeepsEveryRuleOfThePart) {
  ChannelBench bench(GetParam().device, GetParam().max_bursts);
  std::vector<RowRun> runs;
  add_traffic(bench, GetParam(), runs);
  bench.run();
  std::vector<IssuedCommand> log = bench.log();
  if (GetParam().max_bursts == 1) {
    EXPECT_TRUE(bus_violations(log, GetParam().device).empty());
  }
  // A train is logged whole at its decision; what follows may lie between its bursts.
  std::stable_sort(log.begin(), log.end(),
                   [](const IssuedCommand& a, const IssuedCommand& b) { return a.clock < b.clock; });
  const std::vector<Violation> found = violations(log, GetParam().device);
  EXPECT_TRUE(found.empty()) << found.size() << " violations, the first: " << found[0].rule << " at clock "
                             << log[found[0].position].clock;
}

TEST_P(ChannelProperty, ServesEveryBurstOnceAndNotBeforeItsTime) {
  ChannelBench bench(GetParam().device, GetParam().max_bursts);
  std::vector<RowRun> runs;
  add_traffic(bench, GetParam(), runs);
  bench.run();
  const ClockTiming& t = bench.timing();
  std::vector<int> bursts(runs.size());
  std::vector<int> ends(runs.size());
  for (const Served& served : bench.served()) {
    const RowRun& run = runs[served.tag];
    const Cycle latency = run.access == trace::Access::read ? t.read_latency : t.write_latency;
    bursts[served.tag] += served.bursts;
    ends[served.tag] += served.last;
    ASSERT_EQ(served.access, run.access);
    ASSERT_GE(served.unhindered, run.arrival + latency);
    ASSERT_GE(served.data_start, served.unhindered);
  }
  for (std::size_t tag = 0; tag < runs.size(); ++tag) {
    ASSERT_EQ(bursts[tag], runs[tag].bursts);
    ASSERT_EQ(ends[tag], 1);
  }
  const ChannelCounters& counted = bench.counters();
  const auto logged = [&](Command command) {
    return static_cast<std::int64_t>(bench.clocks(command).size());
  };
  EXPECT_EQ(counted.reads, logged(Command::read) + logged(Command::read_auto_precharge));
  EXPECT_EQ(counted.writes,
            logged(Command::write) + logged(Command::write_auto_precharge) + logged(Command::masked_write));
  EXPECT_EQ(counted.activates, logged(Command::activate));
  EXPECT_EQ(counted.refreshes, logged(Command::refresh_all) + logged(Command::refresh_bank));
}

// What the controller counts is what its commands say, in commands and in every rank's state over time.
TEST_P(ChannelProperty, CountsWhatItsCommandsCost) {
  ChannelBench bench(GetParam().device, GetParam().max_bursts);
  std::vector<RowRun> runs;
  add_traffic(bench, GetParam(), runs);
  bench.run();
  const Cycle end = bench.served().back().data_end + 100'000;  // some 12 refresh intervals
  bench.idle_until(end - 1);
  std::vector<IssuedCommand> log = bench.log();
  std::stable_sort(log.begin(), log.end(),
                   [](const IssuedCommand& a, const IssuedCommand& b) { return a.clock < b.clock; });
  const DramActivity counted = bench.activity(end);
  const DramActivity recounted = testing::recount(log, GetParam().device, end);
  EXPECT_EQ(counted.activates, recounted.activates);
  EXPECT_EQ(counted.reads, recounted.reads);
  EXPECT_EQ(counted.writes, recounted.writes);
  EXPECT_EQ(counted.refreshes_all, recounted.refreshes_all);
  EXPECT_EQ(counted.refreshes_bank, recounted.refreshes_bank);
  EXPECT_EQ(counted.background, recounted.background);
  Picoseconds all;
  for (const Picoseconds time : counted.background) {
    EXPECT_GE(time, 0_ps);
    all += time;
  }
  const config::DeviceSpec& device = GetParam().device;
  const Picoseconds elapsed = CommandClock(command_clock(device.dram)).time(end);
  // Each rank's five times are rounded down to a picosecond.
  EXPECT_NEAR(all.as_double(), (elapsed * device.controller.ranks).as_double(),
              static_cast<double>(6 * device.controller.ranks));
}

INSTANTIATE_TEST_SUITE_P(All, ChannelProperty, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

/// A real log of a busy channel, for planting faults.
std::vector<IssuedCommand> real_log(const config::DeviceSpec& device) {
  const Case c{.name = "real", .device = device, .seed = 77};
  ChannelBench bench(device);
  std::vector<RowRun> runs;
  add_traffic(bench, c, runs);
  bench.run();
  return bench.log();
}

/// Whether the row that is opened is read or written: a refresh may close it before.
bool is_used(const std::vector<IssuedCommand>& log, std::size_t activate) {
  const auto next = std::find_if(log.begin() + static_cast<std::ptrdiff_t>(activate) + 1, log.end(),
                                 [&](const IssuedCommand& c) { return c.bank == log[activate].bank; });
  return next != log.end() && (is_read(next->command) || is_write(next->command));
}

/// Applies `plant` at many places where it finds `command`; returns at how many the checker is silent.
template <class Plant>
int unseen(Command command, Plant plant) {
  const config::DeviceSpec device = testing::device();
  const std::vector<IssuedCommand> log = real_log(device);
  std::vector<std::size_t> places;
  for (std::size_t i = 2000; i < log.size() && places.size() < 20; i += 37) {
    if (log[i].command == command && (command != Command::activate || is_used(log, i))) {
      places.push_back(i);
    }
  }
  EXPECT_EQ(places.size(), 20U);
  int silent = 0;
  for (const std::size_t place : places) {
    std::vector<IssuedCommand> faulty(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(place) + 400);
    plant(faulty, place);
    silent += violations(faulty, device).empty();
  }
  return silent;
}

void drop(std::vector<IssuedCommand>& log, std::size_t at) {
  log.erase(log.begin() + static_cast<std::ptrdiff_t>(at));
}

TEST(PlantedFault, IsSeenInARealLog) {
  EXPECT_EQ(unseen(Command::activate, drop), 0);
  EXPECT_EQ(unseen(Command::precharge, drop), 0);
  EXPECT_EQ(unseen(Command::activate, [](auto& log, std::size_t at) { log[at].bank ^= 1; }), 0);
  EXPECT_EQ(unseen(Command::read,
                   [](auto& log, std::size_t at) {
                     log.insert(log.begin() + static_cast<std::ptrdiff_t>(at), log[at]);
                   }),
            0);
}

TEST(PlantedFault, OfMissingRefreshIsSeen) {
  const config::DeviceSpec device = testing::device();
  std::vector<IssuedCommand> log = real_log(device);
  ASSERT_TRUE(violations(log, device).empty());
  std::erase_if(log, [](const IssuedCommand& issued) {
    return issued.command == Command::refresh_bank && issued.bank == 3;
  });
  EXPECT_FALSE(violations(log, device).empty());
}

}  // namespace
}  // namespace kvsim::model
